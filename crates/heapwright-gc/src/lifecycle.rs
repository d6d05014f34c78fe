//! The beginning and the end of a heap.
//!
//! Called by `raw`.

use heapwright_substrate::ids::Slot;
use heapwright_substrate::ticks::{self, Whose};
use heapwright_substrate::{chunk, misuse, os, purge_delay, substrate};

use super::bits;
use super::fork;
use super::heap::{self, HEAPS, Heap};
use super::held::State;
use super::layout;
use super::mutator::Mutator;
use super::options::Options;
use super::runtime::Runtime;
use super::space::Space;

/// The longest time between two calls of `tend_all`, in milliseconds.
const SECONDS: u32 = 5_000;

/// Gives back pages of all heaps that have waited long enough, because a heap may be idle. Returns
/// the milliseconds until the next call.
fn tend_all(_now: u32) -> u32 {
    heap::all().filter(|heap| heap.is_open() && !heap.fork.is_poisoned()).for_each(|heap| {
        heap.space.decay();
    });
    let delay = purge_delay::purge_delay().map(purge_delay::interval);
    delay.map_or(SECONDS, |delay| (delay.max(1) as u32).min(SECONDS))
}

impl Heap {
    /// Gives back pages of this heap, and units of the process, that have waited long enough.
    /// Called at safepoints and on slow paths.
    pub(super) fn tend(&self) {
        if !self.fork.is_poisoned() {
            self.space.decay();
        }
        if chunk::has_waiting() {
            chunk::purge_waiting(os::coarse_ms());
        }
    }

    pub(super) fn make(options: Options, runtime: Runtime) -> Option<&'static Slot<Self>> {
        if !substrate::open_and_begin() {
            return None;
        }
        fork::join();
        // SAFETY: all-zero bytes are an unused heap.
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
        ticks::begin(Whose::Collected, tend_all);
        Some(slot)
    }

    /// Ends a heap: objects of kind `FREED` are freed, and all memory goes back.
    pub(super) fn end(slot: &'static Slot<Self>) {
        let heap = &slot.value;
        heap.world.close(fork::wait_limit());
        heap.open.set(0);
        heap.trace.marking.helpers.end();
        // When the heap is reused, no collector may wait for a mutator that is still attached.
        heap.world.forget_others(
            |_| false,
            |handshake| {
                if heap.space.is_verified() {
                    misuse::collected_heap(
                        "a collected heap was destroyed that a mutator is attached to",
                    );
                }
                // SAFETY: a handshake of a heap's world is a mutator's.
                let mutator = unsafe { Mutator::of(handshake) };
                mutator.settle();
                mutator.clear();
            },
        );
        heap.space.forget_empty();
        for page in heap.space.pages.all() {
            match page.state() {
                State::None => continue,
                State::InUse => {
                    if layout::is_freed(page.page_list.get()) {
                        bits::clear(page.marks());
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
}
