//! A collected heap: what it has, and where pages come from and go to.
//!
//! ```text
//!   Heap   setup: runtime, layout, target | world | gang | pages | page lists | handles | finalizers
//!          phase, goal, allowance, what was allocated since
//!
//! ```
//!
//! Heaps are made once and recycled, never freed, so an id that was read from the address
//! map a moment ago leads to a heap. Locks, in the order in which they are taken: members, the plan,
//! finalizers, page lists; the gang's and the handles' alone.
//!
//! The phases and what is done in them are in `cycle`, sweeping in `sweep`.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr;

use crate::address_map::Entry;
use crate::ids::{Recycled, Slot};
use crate::substrate;
use crate::sync::Lock;
use crate::sync::atomic::{AtomicU32, Ordering};

use super::bag::Bag;
use super::cell::Num;
use super::finalizers::Finalizers;
use super::generations::Generations;
use super::growth::Target;
use super::handles::Handles;
use super::held::State;
use super::layout::{self, KINDS, LARGE, Sizes};
use super::marking::Marking;
use super::moving::Moving;
use super::mutator::Mutator;
use super::pacing::Pacing;
use super::page::{self, Page};
use super::page_supply::{PageSupply, Wanted};
use super::raw::{Options, Runtime, Sweep};
use super::statistics::Pauses;
use super::weak::Weak;
use super::world::World;

/// What a heap is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing.
    Idle = 0,
    /// It marks.
    Marking = 1,
    /// It has marked, and pages are still to be swept.
    Sweeping = 2,
    /// It has marked, and objects are still to be moved; then it sweeps.
    Moving = 3,
}

/// What a heap was made with.
pub(super) struct Setup {
    pub(super) runtime: Runtime,
    pub(super) options: Options,
    pub(super) target: Target,
    pub(super) sizes: Sizes,
}

/// A heap. Zero is one that nobody has.
pub(super) struct Heap {
    setup: UnsafeCell<MaybeUninit<Setup>>,
    tag: AtomicU32,
    id: Num,
    pub(super) world: World,
    pub(super) supply: PageSupply,
    pub(super) pacing: Pacing,
    pub(super) marking: Marking,
    pub(super) generations: Generations,
    pub(super) handles: Handles,
    pub(super) weak: Weak,
    pub(super) moving: Moving,
    /// Places to be asked what was stored there: see `stored`.
    pub(super) stored: Bag,
    pub(super) finalizers: Lock<Finalizers>,

    pub(super) phase: AtomicU32,
    pub(super) barrier: AtomicU32,
    pub(super) cycles: Num,
    /// Handles made less handles freed by mutators that have left.
    pub(super) handle_balance: Num,
    /// Whether it was copied by a fork while a mutator was at work: nothing is collected any more.
    pub(super) torn: Num,
    /// Its part in the fork under way: see `fork`.
    pub(super) forking: Num,
    open: Num,
    /// Whether references are where nobody looks for roots: nothing is collected meanwhile.
    held: Num,
    pub(super) pauses: Pauses,
}

// SAFETY: the setup is written before anybody else knows the heap, and after everybody has
// forgotten it; all else is atomics and locks.
unsafe impl Sync for Heap {}

static HEAPS: Recycled<Heap> = Recycled::new();

/// The heap of an id.
pub(super) fn of(id: u32) -> Option<&'static Heap> {
    HEAPS.get(id)
}

/// All heaps that were ever made.
pub(super) fn all() -> impl Iterator<Item = &'static Heap> {
    HEAPS.all()
}

/// Holds the lock of the registry across a fork.
pub(super) fn before_fork() {
    HEAPS.before_fork();
}

/// Gives it back on either side of a fork.
///
/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy.
pub(super) unsafe fn after_fork() {
    // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
    // copy of.
    unsafe { HEAPS.after_fork() };
}

impl Heap {
    /// A heap of its own. `None` where there is no memory.
    pub(super) fn make(options: Options, runtime: Runtime) -> Option<&'static Slot<Self>> {
        if !substrate::open_and_begin() {
            return None;
        }
        super::fork::join();
        // SAFETY: zero is a heap that nobody has.
        let slot = unsafe { HEAPS.take_zeroed() }?;
        let heap = &slot.value;
        let target = Target {
            factor: options.factor_percent(),
            least: options.least_bytes(),
            most: options.most_bytes(),
            incremental: options.incremental,
        };
        let setup = Setup { runtime, options, target, sizes: Sizes::of(options.layout) };
        // SAFETY: nobody else knows the heap yet.
        unsafe { (*heap.setup.get()).write(setup) };
        let mut lists = heap.supply.lists.lock();
        // Piece by piece: the whole is too large for a stack.
        lists.clear();
        lists.set_own_empty(options.sweep == Sweep::ToTheEnd);
        for (pool, of) in lists.pool.iter_mut().enumerate() {
            of.slot = heap.sizes().slot(pool);
        }
        drop(lists);
        *heap.finalizers.lock() = Finalizers::new();
        heap.id.set(slot.id() as usize);
        heap.tag.store(Entry::tag(slot.id()), Ordering::Relaxed);
        heap.set_goal(0);
        if !heap.marking.begin() {
            HEAPS.give(slot);
            return None;
        }
        heap.open.set(1);
        Some(slot)
    }

    /// Ends a heap: objects that want to be freed are, and all memory goes back.
    pub(super) fn end(slot: &'static Slot<Self>) {
        let heap = &slot.value;
        heap.open.set(0);
        heap.marking.helpers.end();
        // Who is still attached is not to be waited for by who has the heap next.
        heap.world.forget_others(None, |handshake| {
            // SAFETY: a handshake of a heap's world is a mutator's.
            let mutator = unsafe { Mutator::of(handshake) };
            mutator.settle();
            mutator.clear();
        });
        for page in heap.supply.pages.all() {
            match page.state() {
                State::None => continue,
                State::InUse => {
                    if layout::is_freed(page.page_list.get()) {
                        super::bits::clear(page.marks());
                        page.each_dead(|object| heap.runtime().free(object, page.slot.get()));
                    }
                }
                State::Empty => {}
            }
            PageSupply::give_units(page);
        }
        heap.supply.pages.end();
        heap.handles.end();
        heap.weak.end();
        heap.moving.end();
        heap.stored.end();
        heap.finalizers.lock().end();
        heap.marking.end();
        heap.generations.end();
        for number in [&heap.cycles, &heap.handle_balance, &heap.torn, &heap.held] {
            number.set(0);
        }
        heap.pacing.end();
        heap.pauses.clear();
        heap.phase.store(Phase::Idle as u32, Ordering::Relaxed);
        heap.barrier.store(0, Ordering::Relaxed);
        HEAPS.give(slot);
    }

    #[inline]
    fn setup(&self) -> &Setup {
        // SAFETY: written by `make`, before anybody else knew the heap.
        let setup = unsafe { &*self.setup.get() };
        // SAFETY: `make` wrote it before anybody else knew the heap.
        unsafe { setup.assume_init_ref() }
    }

    /// The runtime.
    #[inline]
    pub(super) fn runtime(&self) -> &Runtime {
        &self.setup().runtime
    }

    /// What it was made with.
    pub(super) fn options(&self) -> &Options {
        &self.setup().options
    }

    /// What it is to be content with.
    pub(super) fn target(&self) -> &Target {
        &self.setup().target
    }

    /// The layout's sizes.
    #[inline]
    pub(super) fn sizes(&self) -> &Sizes {
        &self.setup().sizes
    }

    /// Bytes of a slot of a page list.
    #[inline]
    pub(super) fn slot(&self, page_list: usize) -> usize {
        self.sizes().slot(page_list / KINDS)
    }

    /// Its id in the entries of its pages.
    pub(super) fn id(&self) -> u32 {
        self.id.get() as u32
    }

    /// The bits of the id in the entries of its pages.
    #[inline]
    pub(super) fn tag(&self) -> u32 {
        self.tag.load(Ordering::Relaxed)
    }

    /// What it is doing.
    #[inline]
    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Idle,
            1 => Phase::Marking,
            2 => Phase::Sweeping,
            _ => Phase::Moving,
        }
    }

    /// Whether stores of references must be reported, as mutators see it.
    pub(super) fn barrier(&self) -> u32 {
        self.barrier.load(Ordering::Relaxed)
    }

    /// How it sweeps.
    pub(super) fn sweep_policy(&self) -> Sweep {
        self.options().sweep
    }

    /// Whether it collects at every allocation.
    #[inline]
    pub(super) fn is_stressed(&self) -> bool {
        self.options().verify & super::raw::STRESS != 0
    }

    /// An object stays where it is until it is unpinned. False: it is none of this heap.
    pub(super) fn pin(&self, object: *mut u8) -> bool {
        let Some(page) = self.page_of(object.addr()) else { return false };
        page.pins.add_shared(1);
        self.stays_where_it_is(object);
        true
    }

    /// Ends a [`Heap::pin`].
    pub(super) fn unpin(&self, object: *mut u8) {
        if let Some(page) = self.page_of(object.addr()) {
            page.pins.sub_shared(1);
        }
    }

    /// An object is to have `size` bytes. Whether it has them.
    pub(super) fn resize(&self, object: *mut u8, size: usize) -> bool {
        let Some(page) = self.page_of(object.addr()) else { return false };
        let pool = self.sizes().pool(size);
        if page.is_large() && self.is_large_of(size, page.footprint()) {
            page.resize_large(size);
            return true;
        }
        if pool != page.pool() || page.is_large() {
            page.resized.set(1);
        }
        size <= page.slot.get()
    }

    /// Whether an object of `size` bytes is a large one that has a `footprint` of so many.
    pub(super) fn is_large_of(&self, size: usize, footprint: usize) -> bool {
        self.sizes().pool(size) == LARGE && page::large_footprint(size) == footprint
    }

    /// What a page of a page list is to be, whose slots have so many bytes.
    fn page_wanted(&self, page_list: usize, slot: usize) -> Wanted {
        let (cycle, limit) = (self.cycles.get(), self.target().most);
        Wanted { heap: self.id(), page_list, slot, cycle, limit }
    }

    /// A fresh page for a page list, if the heap has less than `most` bytes with it.
    pub(super) fn new_page(&self, page_list: usize, most: usize) -> Option<&'static Page> {
        let wanted = self.page_wanted(page_list, self.slot(page_list));
        self.whole().supply.new_page(&self.pacing, wanted, most)
    }

    /// A page for a page list, from the empty ones.
    pub(super) fn take_empty(&self, page_list: usize) -> Option<&'static Page> {
        self.whole().supply.take_empty(self.page_wanted(page_list, self.slot(page_list)))
    }

    /// A page that is one large object.
    pub(super) fn new_large(&self, size: usize, page_list: usize) -> Option<&'static Page> {
        let wanted = self.page_wanted(page_list, size);
        let page = self.whole().supply.new_large(&self.pacing, wanted)?;
        self.pacing.add_allocated(page.footprint());
        self.note_used(page);
        Some(page)
    }

    /// The heap, for as long as the process: heaps are never freed.
    pub(super) fn whole(&self) -> &'static Self {
        // SAFETY: heaps are made in memory that lives as long as the process.
        unsafe { &*ptr::from_ref(self) }
    }

    /// Whether nothing may be collected now.
    pub(super) fn is_held(&self) -> bool {
        self.held.get() != 0
    }

    /// From now on nothing is collected, or it may be again.
    pub(super) fn hold(&self, held: bool) {
        self.held.set(usize::from(held));
    }

    /// Whether somebody has it.
    pub(super) fn is_open(&self) -> bool {
        self.open.get() != 0
    }

    /// A mutator that is no more: keeps what it counted.
    pub(super) fn forget_mutator(&self, mutator: &Mutator) {
        mutator.tracer.publish();
        mutator.tracer.give_notes();
        self.marking.keep_counts(&mutator.tracer);
        self.handle_balance.add_shared(mutator.handles.balance.get());
        mutator.clear();
    }

    /// Holds the locks across a fork.
    pub(super) fn before_fork(&self) {
        self.moving.before_fork();
        self.stored.before_fork();
        self.finalizers.acquire();
        self.supply.before_fork();
        self.marking.before_fork();
        self.generations.remembered.before_fork();
        self.handles.before_fork();
        self.weak.before_fork();
    }

    /// Gives them back on either side of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`Heap::before_fork`] in the forking thread or its copy.
    pub(super) unsafe fn after_fork(&self) {
        // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.weak.after_fork() };
        // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.handles.after_fork() };
        // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.generations.remembered.after_fork() };
        // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.marking.after_fork() };
        // SAFETY: its lock was taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.supply.after_fork() };
        // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
        unsafe { self.finalizers.release() };
        // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.stored.after_fork() };
        // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.moving.after_fork() };
    }

    /// Calls `with` for each mutator. While none comes or goes.
    pub(super) fn each_mutator(&self, mut with: impl FnMut(&'static Mutator)) {
        self.world.each(|handshake| {
            // SAFETY: the members of a heap's world are its mutators'.
            with(unsafe { Mutator::of(handshake) });
            true
        });
    }
}
