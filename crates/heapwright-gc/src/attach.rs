//! Attaching: how a thread gets a mutator of a heap, and how it leaves.
//!
//! ```text
//!   join --> away --enter--> at work --detach--> its regions, notes and counts go to the heap
//!                                                thread_ends: the same for a thread that forgot to
//! ```
//!
//! Called by `raw`, and by the system at a thread's end.

use core::ptr;

use heapwright_substrate::address_map::Entry;
use heapwright_substrate::ids::Slot;
use heapwright_substrate::os::{self, Exit};
use heapwright_substrate::sync::atomic::Ordering;

use super::heap::{self, Heap};
use super::layout::KINDS;
use super::mutator::{MUTATORS, Mutator};
use super::safepoints::{ATTACHED, ENDED};
use super::tracer;

/// Rounds of destructors that the system runs at a thread's end (POSIX: at least four).
const ROUNDS: usize = 4;

/// Runs at the end of a thread that has mutators. A mutator that the thread attached, and is still
/// at work with, is detached: otherwise all collections would wait for it. A mutator that the
/// thread entered stays, because another thread detaches it. A collector that waits for such a
/// mutator reports it. A mutator that the thread has left no longer belongs to it. All this happens
/// in the last round, because destructors of the program may use a mutator.
pub(super) unsafe extern "C" fn thread_ends(round: *mut core::ffi::c_void) {
    if round.addr() < ROUNDS && os::watch_this_thread(Exit::Mutators, round.wrapping_byte_add(1)) {
        return;
    }
    let me = os::thread_token();
    for heap in heap::all().filter(|heap| heap.is_open()) {
        loop {
            let mut forgotten = None;
            heap.each_mutator(|mutator: &'static Mutator| {
                // In this order: if another thread is at work with the mutator, it is that
                // thread's.
                let (is_in, is_mine) = (mutator.handshake.is_in(), mutator.thread.get() == me);
                if is_in && is_mine && mutator.how.get() & ATTACHED != 0 {
                    forgotten = Some(mutator);
                } else if is_in && is_mine {
                    mutator.how.set(mutator.how.get() | ENDED);
                } else if !is_in {
                    mutator.thread.clear_if(me);
                }
            });
            let Some(mutator) = forgotten else { break };
            // SAFETY: a mutator of a heap's world is in a slot, which is never freed.
            let slot = unsafe { Slot::containing(mutator) };
            // SAFETY: the slot that the mutator is in, which is never freed.
            Mutator::detach(unsafe { &*slot });
        }
    }
}

impl Mutator {
    /// The calling thread joins a heap. Returns `None` without memory.
    pub(super) fn attach(heap: &'static Heap) -> Option<&'static Slot<Self>> {
        let slot = Self::join(heap)?;
        let me = &slot.value;
        me.note_thread();
        me.enter();
        Some(slot)
    }

    /// Makes a mutator that is away, and belongs to no thread: the next thread that enters gets it.
    /// Does not wait, because the calling thread may be at work with another mutator, for which a
    /// collector waits. Returns `None` without memory.
    pub(super) fn join(heap: &'static Heap) -> Option<&'static Slot<Self>> {
        // SAFETY: zero is an unused mutator.
        let slot = unsafe { MUTATORS.take_zeroed() }?;
        let me = &slot.value;
        me.heap.set(ptr::from_ref(heap).cast_mut());
        for (to, &place) in me.places.iter().zip(heap.space.sizes().table()) {
            to.store(place, Ordering::Relaxed);
        }
        me.number.set(slot.id() as usize);
        me.thread.set(0);
        me.marks.set(tracer::marks_of_nothing());
        me.units.set(tracer::entry_of_nothing());
        me.first_list.store(Entry::collected(heap.space.id(), 0).word(), Ordering::Relaxed);
        me.tracer.belong(&heap.trace);
        for (page_list, region) in me.regions.iter().enumerate() {
            // A size in no pool must not fit, though the region is empty.
            region.slot.set(heap.space.sizes().slot(page_list / KINDS).max(1));
        }
        // SAFETY: mutators are never freed.
        unsafe { heap.world.join(&me.handshake, &me.poll, ptr::from_ref(me).cast_mut().cast()) };
        // The barrier that a cycle under way announced when it began. Under the lock of the list: a
        // collector that announces another barrier at this time either comes later, or its barrier
        // is seen here.
        heap.world.each(|handshake| {
            let is_mine = ptr::eq(handshake, &me.handshake);
            if is_mine {
                me.barrier.store(heap.space.cycle.barrier(), Ordering::Relaxed);
            }
            !is_mine
        });
        Some(slot)
    }

    /// The calling thread leaves the heap.
    pub(super) fn detach(slot: &'static Slot<Self>) {
        let me = &slot.value;
        let heap = me.heap();
        heap.at_safepoint(me);
        me.drop_regions(true);
        heap.trace.handles.take_back(&me.handles);
        heap.trace.weak.cells.take_back(&me.weak);
        heap.forget_mutator(me);
        heap.world.leave(&me.handshake);
        heap.world.part(&me.handshake);
        MUTATORS.give(slot);
    }
}

impl Heap {
    /// A mutator leaves: keeps its counts.
    pub(super) fn forget_mutator(&self, mutator: &Mutator) {
        mutator.tracer.publish();
        mutator.tracer.give_notes();
        mutator.tracer.give_counts();
        self.trace.handles.keep_balance(&mutator.handles);
        mutator.clear();
    }
}
