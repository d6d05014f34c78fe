//! Attaching: how a thread gets a mutator of a heap, and how it detaches.
//!
//! ```text
//!   join --> away --enter--> at work --detach--> its regions, notes and counts go to the heap
//!                                                thread_ends: the same, if `detach` was not called
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

/// Runs at the end of a thread that has mutators, in the last round of destructors. The program's
/// destructors may use a mutator in earlier rounds.
///
/// - If the thread attached a mutator and has not left it, detaches the mutator. Otherwise all
///   collections would wait for it.
/// - If the thread only entered a mutator and has not left it, keeps the mutator, because another
///   thread must detach it. A collector that waits for the mutator reports that the thread has
///   ended.
/// - If the thread has left a mutator, the mutator no longer belongs to the thread.
pub(super) unsafe extern "C" fn thread_ends(round: *mut core::ffi::c_void) {
    if round.addr() < ROUNDS && os::watch_this_thread(Exit::Mutators, round.wrapping_byte_add(1)) {
        return;
    }
    let me = os::thread_token();
    for heap in heap::all().filter(|heap| heap.is_open()) {
        loop {
            let mut forgotten = None;
            heap.each_mutator(|mutator: &'static Mutator| {
                // `is_in` is read first. So if another thread has entered with the mutator,
                // `thread` is that thread.
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
            // SAFETY: a mutator of a heap's world is in a slot, and slots are never freed.
            let slot = unsafe { Slot::containing(mutator) };
            // SAFETY: the mutator is in this slot, and slots are never freed.
            Mutator::detach(unsafe { &*slot });
        }
    }
}

impl Mutator {
    /// Makes a mutator for the calling thread, and enters the heap. Returns `None` without memory.
    pub(super) fn attach(heap: &'static Heap) -> Option<&'static Slot<Self>> {
        let slot = Self::join(heap)?;
        let me = &slot.value;
        me.note_thread();
        me.enter();
        Some(slot)
    }

    /// Makes a mutator that is away, and belongs to no thread. The next thread that enters with it
    /// gets it. Never waits, because a collector may wait for another mutator of the calling
    /// thread. Returns `None` without memory.
    pub(super) fn join(heap: &'static Heap) -> Option<&'static Slot<Self>> {
        // SAFETY: all-zero bytes are an unused mutator.
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
            // A missing pool's region is empty. Its slot size is 1: a size of 0 would always fit.
            region.slot.set(heap.space.sizes().slot(page_list / KINDS).max(1));
        }
        heap.space.sizing.mutators.add_shared(1);
        // SAFETY: mutators are never freed.
        unsafe { heap.world.join(&me.handshake, &me.poll, ptr::from_ref(me).cast_mut().cast()) };
        // Takes over the barrier that a cycle under way announced when it began. `each` holds the
        // list's lock. A collector that announces another barrier needs that lock, too. So this
        // load sees the collector's barrier, or the collector changes this mutator's barrier later.
        heap.world.each(|handshake| {
            let is_mine = ptr::eq(handshake, &me.handshake);
            if is_mine {
                me.barrier.store(heap.space.cycle.barrier(), Ordering::Relaxed);
            }
            !is_mine
        });
        Some(slot)
    }

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
    /// Keeps the notes and counts of a mutator that detaches, or that a forked child drops.
    pub(super) fn forget_mutator(&self, mutator: &Mutator) {
        mutator.tracer.publish();
        mutator.tracer.give_notes();
        mutator.tracer.give_counts();
        self.trace.handles.keep_balance(&mutator.handles);
        self.space.sizing.mutators.sub_shared(1);
        mutator.clear();
    }
}
