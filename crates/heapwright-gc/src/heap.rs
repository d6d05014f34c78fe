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

use core::ptr;

use heapwright_substrate::ids::{Recycled, Slot};
use heapwright_substrate::substrate;

use super::cell::Num;
use super::events::Events;
use super::forks::ForkPart;
use super::held::State;
use super::layout;
use super::moving::Moving;
use super::mutator::Mutator;
use super::options::Options;
use super::page::Page;
use super::pauses::Pauses;
use super::runtime::Runtime;
use super::space::Space;
use super::trace::Trace;
use super::world::World;

/// A heap. Zero is one that nobody uses.
pub(super) struct Heap {
    pub(super) space: Space,
    pub(super) trace: Trace,
    pub(super) world: World,
    pub(super) moving: Moving,

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
        unsafe { heap.space.begin(slot.id(), options) };
        heap.set_target(options.factor_percent(), options.least_bytes(), options.most_bytes());
        // SAFETY: nobody else knows the heap yet.
        if !unsafe { heap.trace.begin(&heap.space, runtime) } {
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
        heap.trace.marking.helpers.end();
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
        heap.moving.end();
        heap.trace.end();
        heap.fork.end();
        heap.pauses.clear();
        heap.events.end();
        HEAPS.give(slot);
    }

    /// The runtime.
    #[inline]
    pub(super) fn runtime(&self) -> &Runtime {
        self.trace.runtime()
    }

    /// Changes how much memory it may have: what may be allocated before the next cycle ends is decided anew. By any thread.
    pub(super) fn set_target(&self, factor: usize, least: usize, most: usize) {
        self.space.sizing.set_target(factor, least, most);
        self.set_goal(self.space.pacing.live());
    }

    /// Bytes that its pages may have, with what the runtime has in malloc.
    pub(super) fn page_limit(&self) -> usize {
        self.space.target().most.saturating_sub(self.trace.marking.chunks.beyond_a_few())
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
        self.moving.note_used(&self.space, page);
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
        mutator.tracer.give_counts();
        self.trace.handles.keep_balance(&mutator.handles);
        mutator.clear();
    }

    /// Holds the locks across a fork.
    pub(super) fn before_fork(&self) {
        self.moving.before_fork();
        self.trace.before_fork();
        self.space.before_fork();
        self.trace.before_fork_below();
        self.events.timeline.before_fork();
    }

    /// Gives them back on either side of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`Heap::before_fork`] in the forking thread or its copy.
    pub(super) unsafe fn after_fork(&self) {
        // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
        unsafe { self.events.timeline.after_fork() };
        // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
        unsafe { self.trace.after_fork_below() };
        // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
        unsafe { self.space.after_fork() };
        // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
        unsafe { self.trace.after_fork() };
        // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
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
