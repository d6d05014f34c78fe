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

use heapwright_substrate::ids::{Recycled, Slot};
use heapwright_substrate::substrate;
use heapwright_substrate::sync::Lock;

use super::bag::Bag;
use super::cell::Num;
use super::due::Due;
use super::events::Events;
use super::finalizers::Finalizers;
use super::forks::ForkPart;
use super::generations::Generations;
use super::guardians::Guardians;
use super::handles::Handles;
use super::held::State;
use super::layout;
use super::marking::Marking;
use super::moving::Moving;
use super::mutator::Mutator;
use super::options::Options;
use super::page::Page;
use super::pauses::Pauses;
use super::runtime::Runtime;
use super::space::Space;
use super::unprotected::Unprotected;
use super::weak::Weak;
use super::weak_passes::WeakPasses;
use super::world::World;

/// A heap. Zero is one that nobody uses.
pub(super) struct Heap {
    runtime: UnsafeCell<MaybeUninit<Runtime>>,
    pub(super) space: Space,
    pub(super) world: World,
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

    /// Its part in a fork.
    pub(super) fork: ForkPart,
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
        // SAFETY: nobody else knows the heap yet.
        unsafe { (*heap.runtime.get()).write(runtime) };
        // SAFETY: nobody else knows the heap yet.
        unsafe { heap.space.begin(slot.id(), options) };
        *heap.finalizers.lock() = Finalizers::new();
        heap.set_target(options.factor_percent(), options.least_bytes(), options.most_bytes());
        if !heap.marking.begin() {
            HEAPS.give(slot);
            return None;
        }
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
            if heap.space.is_verified() {
                Self::refuse("a collected heap was destroyed that a mutator is attached to");
            }
            // SAFETY: a handshake of a heap's world is a mutator's.
            let mutator = unsafe { Mutator::of(handshake) };
            mutator.settle();
            mutator.clear();
        });
        for page in heap.space.pages.all() {
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
            Space::give_units(page);
        }
        heap.space.end();
        heap.handles.end();
        heap.weak.end();
        heap.moving.end();
        heap.dirty_slots.end();
        heap.finalizers.lock().end();
        heap.guardians.end();
        heap.due.end();
        heap.weak_passes.end();
        heap.unprotected.end();
        heap.marking.end();
        heap.generations.end();
        heap.fork.end();
        heap.pauses.clear();
        heap.events.end();
        HEAPS.give(slot);
    }

    /// The runtime.
    #[inline]
    pub(super) fn runtime(&self) -> &Runtime {
        // SAFETY: written by `make`, before anybody else knew the heap.
        let runtime = unsafe { &*self.runtime.get() };
        // SAFETY: `make` wrote it before anybody else knew the heap.
        unsafe { runtime.assume_init_ref() }
    }

    /// Changes how much memory it may have: what may be allocated before the next cycle ends is decided anew. By any thread.
    pub(super) fn set_target(&self, factor: usize, least: usize, most: usize) {
        self.space.sizing.set_target(factor, least, most);
        self.set_goal(self.space.pacing.live());
    }

    /// Bytes that its pages may have, with what the runtime has in malloc.
    pub(super) fn page_limit(&self) -> usize {
        self.space.target().most.saturating_sub(self.marking.chunks.beyond_a_few())
    }

    /// A fresh page for a page list, if the heap has less than `most` bytes with it.
    pub(super) fn new_page(&self, page_list: usize, most: usize) -> Option<&'static Page> {
        let wanted = self.space.wanted(page_list, self.space.slot(page_list), self.page_limit());
        self.whole().space.new_page(wanted, most)
    }

    /// A page for a page list, from the empty ones.
    pub(super) fn take_empty(&self, page_list: usize) -> Option<&'static Page> {
        self.whole().space.take_empty(self.space.wanted(
            page_list,
            self.space.slot(page_list),
            self.page_limit(),
        ))
    }

    /// A page that is one large object.
    pub(super) fn new_large(&self, size: usize, page_list: usize) -> Option<&'static Page> {
        let wanted = self.space.wanted(page_list, size, self.page_limit());
        let page = self.whole().space.new_large(wanted)?;
        self.space.pacing.add_allocated(page.footprint());
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
        self.space.before_fork();
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
        unsafe { self.space.after_fork() };
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
