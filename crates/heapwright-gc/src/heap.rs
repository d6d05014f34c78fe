//! A collected heap: its parts, and how it begins and ends.
//!
//! ```text
//!   algorithm   cycle         phases, steps, barriers           generations   sticky marks, minor or major
//!               pacing        allowance, debt                   moving        plan, evacuation
//!               sizing        factor, balance, policy
//!   space       supply        pages, their lists                handles       roots, one word each
//!   mechanism   world         stops at safepoints                  marking       gang, helpers, mark chunks
//!               weak, dirty_slots, finalizers, guardians, weak_passes, unprotected: what is looked at when marking ends, or again
//! ```
//!
//! Each part owns its fields. `Heap` only joins them: what needs several parts is a method of `Heap` in the
//! file of the part that it is about.
//!
//! Heaps are made once and recycled, never freed, so an id that was read from the address
//! map a moment ago leads to a heap. Locks, in the order in which they are taken: members, the plan,
//! finalizers, guardians, weak passes, objects without barriers, page lists; the gang's, the handles' and the time line's alone.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr;

use heapwright_substrate::address_map::Entry;
use heapwright_substrate::ids::{Recycled, Slot};
use heapwright_substrate::substrate;
use heapwright_substrate::sync::Lock;
use heapwright_substrate::sync::atomic::{AtomicU32, Ordering};

use super::bag::Bag;
use super::cell::Num;
use super::due::Due;
use super::events::Events;
use super::finalizers::Finalizers;
use super::forks::ForkPart;
use super::generations::Generations;
use super::growth::Target;
use super::guardians::Guardians;
use super::handles::Handles;
use super::held::State;
use super::layout::{self, KINDS, Sizes};
use super::marking::Marking;
use super::moving::Moving;
use super::mutator::Mutator;
use super::options::Options;
use super::pacing::Pacing;
use super::page::Page;
use super::page_supply::{PageSupply, Wanted};
use super::pauses::Pauses;
use super::phase::Cycle;
use super::runtime::Runtime;
use super::sizing::Sizing;
use super::unprotected::Unprotected;
use super::weak::Weak;
use super::weak_passes::WeakPasses;
use super::world::World;

/// What a heap was made with.
pub(super) struct Setup {
    pub(super) runtime: Runtime,
    pub(super) options: Options,
    pub(super) sizes: Sizes,
}

/// A heap. Zero is one that nobody uses.
pub(super) struct Heap {
    setup: UnsafeCell<MaybeUninit<Setup>>,
    tag: AtomicU32,
    id: Num,
    pub(super) world: World,
    pub(super) cycle: Cycle,
    pub(super) supply: PageSupply,
    pub(super) pacing: Pacing,
    pub(super) marking: Marking,
    pub(super) generations: Generations,
    pub(super) handles: Handles,
    pub(super) weak: Weak,
    pub(super) moving: Moving,
    /// Places to be traced again: see `dirty_slots`.
    pub(super) dirty_slots: Bag,
    pub(super) finalizers: Lock<Finalizers>,
    pub(super) guardians: Guardians,
    pub(super) due: Due,
    pub(super) weak_passes: WeakPasses,
    pub(super) unprotected: Unprotected,
    pub(super) sizing: Sizing,

    /// Its part in a fork.
    pub(super) fork: ForkPart,
    /// How much memory it may have (see `growth::Target`).
    factor: Num,
    least: Num,
    most: Num,
    /// Whether it is in use.
    open: Num,
    pub(super) pauses: Pauses,
    pub(super) events: Events,
}

// SAFETY: the setup is written before any other thread knows the heap, and after all have
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
        // SAFETY: zero is a heap that nobody uses.
        let slot = unsafe { HEAPS.take_zeroed() }?;
        let heap = &slot.value;
        let setup = Setup { runtime, options, sizes: Sizes::of(options.layout) };
        // SAFETY: nobody else knows the heap yet.
        unsafe { (*heap.setup.get()).write(setup) };
        let mut lists = heap.supply.lists.lock();
        // Piece by piece: the whole is too large for a stack.
        lists.clear();
        for (pool, of) in lists.pool.iter_mut().enumerate() {
            of.slot = heap.sizes().slot(pool);
        }
        drop(lists);
        *heap.finalizers.lock() = Finalizers::new();
        heap.id.set(slot.id() as usize);
        heap.tag.store(Entry::tag(slot.id()), Ordering::Relaxed);
        heap.set_target(options.factor_percent(), options.least_bytes(), options.most_bytes());
        if !heap.marking.begin() {
            HEAPS.give(slot);
            return None;
        }
        heap.sizing.begin();
        heap.begin_events();
        heap.set_barrier(0);
        heap.open.set(1);
        Some(slot)
    }

    /// Ends a heap: objects of kind `FREED` are freed, and all memory goes back.
    pub(super) fn end(slot: &'static Slot<Self>) {
        let heap = &slot.value;
        heap.world.close(super::fork::patience());
        heap.open.set(0);
        heap.marking.helpers.end();
        // A mutator that is still attached must not be waited for when the heap is used again.
        heap.world.forget_others(None, |handshake| {
            if heap.is_verified() {
                Self::refuse("a collected heap was destroyed that a mutator is attached to");
            }
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
                    if page.is_large() {
                        heap.large_ends(page);
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
        heap.dirty_slots.end();
        heap.finalizers.lock().end();
        heap.guardians.end();
        heap.due.end();
        heap.weak_passes.end();
        heap.unprotected.end();
        heap.sizing.end();
        heap.marking.end();
        heap.generations.end();
        heap.cycle.end();
        heap.fork.end();
        heap.pacing.end();
        heap.pauses.clear();
        heap.events.end();
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

    /// How much memory it may have.
    pub(super) fn target(&self) -> Target {
        Target {
            factor: self.factor.get(),
            least: self.least.get(),
            most: self.most.get(),
            incremental: self.options().incremental,
        }
    }

    /// Changes that, from now on: what may be allocated before the next cycle ends is decided anew. By any thread.
    pub(super) fn set_target(&self, factor: usize, least: usize, most: usize) {
        self.factor.set(factor);
        self.least.set(least);
        self.most.set(most);
        self.set_goal(self.pacing.live());
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

    /// Whether it collects at every allocation.
    #[inline]
    pub(super) fn is_stressed(&self) -> bool {
        self.options().verify & super::options::STRESS != 0
    }

    /// Whether the heap is verified, and mistakes of the runtime are named.
    #[inline]
    pub(super) fn is_verified(&self) -> bool {
        self.options().verify & (super::options::VERIFY_HEAP | super::options::VERIFY_BARRIERS) != 0
    }

    /// What a page of a page list is to be, whose slots have so many bytes.
    fn page_wanted(&self, page_list: usize, slot: usize) -> Wanted {
        let (cycle, limit) = (self.cycle.number(), self.page_limit());
        Wanted { heap: self.id(), page_list, slot, cycle, limit, zero: self.clears(page_list) }
    }

    /// Whether objects of a page list arrive zeroed.
    pub(super) fn clears(&self, page_list: usize) -> bool {
        layout::is_traced(page_list) && !self.options().uncleared
    }

    /// Bytes that its pages may have, with what the runtime has in malloc.
    pub(super) fn page_limit(&self) -> usize {
        self.target().most.saturating_sub(self.marking.chunks.beyond_a_few())
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

    /// Whether it is in use.
    pub(super) fn is_open(&self) -> bool {
        self.open.get() != 0
    }

    /// A mutator leaves: keeps what it counted.
    pub(super) fn forget_mutator(&self, mutator: &Mutator) {
        mutator.tracer.publish();
        mutator.tracer.give_notes();
        self.marking.keep_counts(&mutator.tracer);
        self.handles.keep_balance(&mutator.handles);
        mutator.clear();
    }

    /// Holds the locks across a fork.
    pub(super) fn before_fork(&self) {
        self.moving.before_fork();
        self.dirty_slots.before_fork();
        self.finalizers.acquire();
        self.guardians.before_fork();
        self.due.before_fork();
        self.weak_passes.before_fork();
        self.unprotected.before_fork();
        self.sizing.before_fork();
        self.supply.before_fork();
        self.weak.before_fork();
        self.marking.before_fork();
        self.generations.remembered.before_fork();
        self.handles.before_fork();
        self.events.timeline.before_fork();
    }

    /// Gives them back on either side of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`Heap::before_fork`] in the forking thread or its copy.
    pub(super) unsafe fn after_fork(&self) {
        // SAFETY: its lock was taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.events.timeline.after_fork() };
        // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.handles.after_fork() };
        // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.generations.remembered.after_fork() };
        // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.marking.after_fork() };
        // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.weak.after_fork() };
        // SAFETY: its lock was taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.supply.after_fork() };
        // SAFETY: its lock was taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.sizing.after_fork() };
        // SAFETY: its lock was taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.unprotected.after_fork() };
        // SAFETY: its lock was taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.weak_passes.after_fork() };
        // SAFETY: its lock was taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.due.after_fork() };
        // SAFETY: its lock was taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.guardians.after_fork() };
        // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
        unsafe { self.finalizers.release() };
        // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.dirty_slots.after_fork() };
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
