//! Dirty slots: places that may have been traced before a store whose value was not reported.
//!
//! ```text
//!   touch(parent, place) --> recent: was it reported just now? --> buffer --> bag
//!                                                                             |
//!   the next step: each place is traced once more <---------------------------+
//! ```
//!
//! If a store is reported with its value, the value is shaded at once (see `cycle`), or the slot is
//! noted (see `moving`). If only the place is reported, the place is traced later, while the world
//! is stopped. A place is a slot, a value in an array, or the whole object. Each mutator recognises
//! up to 64 recent places ([`Recent`](super::bag::Recent)).
//!
//! The place's object was marked, or is new, so the coming sweep does not free it. Filled by `raw`
//! and `stores`, emptied by `mark` and `moving`.

use super::bag;
use super::find;
use super::layout;
use super::phase::Phase;
use super::tracer::{TraceSlot, Tracer};

type Place = (*mut u8, TraceSlot);

/// Traces a whole object. The changed place is not known.
///
/// # Safety
///
/// An object of the tracer's heap begins at `object`.
pub(super) unsafe fn whole(object: *mut u8, tracer: &Tracer) {
    tracer.trace_whole(object);
}

/// Traces a slot.
///
/// # Safety
///
/// `slot` is a place for a reference in an object of the tracer's heap.
pub(super) unsafe fn one(slot: *mut u8, tracer: &Tracer) {
    // SAFETY: as the caller promises.
    unsafe { tracer.mark_slot(slot.cast()) };
}

impl Tracer {
    /// Notes a store into `place`, in the object `parent`: it is done, or comes before the next
    /// safepoint. If `place` was traced already, it is traced again. Called during marking, and
    /// while there is a plan to move objects.
    pub(super) fn note_dirty_slot(&self, parent: *mut u8, place: *mut u8, trace: TraceSlot) {
        let (space, of) = (self.space(), self.of());
        let traced = |(_, page_list)| layout::is_traced(page_list);
        let is_marking = || space.cycle.phase() == Phase::Marking;
        // While marking goes on, an object without a mark was not traced yet.
        let was_scanned = || !is_marking() || space.is_marked(parent);
        if !find::list_of(parent.addr(), space.tag()).is_some_and(traced)
            || !was_scanned()
            || self.dirty_slots.has(place.addr(), trace as usize)
        {
            return;
        }
        let entry: Place = (place, trace);
        if self.dirty_slots.push(&of.marking, &of.dirty_slots, entry) {
            return;
        }
        if is_marking() {
            self.note_overflow(parent);
        } else {
            // The place will not be traced again, so no object that it may lead to may move.
            space.abandon_plan();
        }
    }

    /// Traces all dirty slots. The world is stopped, and tracers have given their notes.
    pub(super) fn trace_dirty_slots(&self) {
        while let Some(chunk) = self.of().dirty_slots.take() {
            bag::each(chunk, |(place, trace): Place| {
                // SAFETY: the caller that reported the place gave the function for it. The place's
                // object was in use then, and no sweep of a later marking has begun.
                unsafe { trace(place, self) };
            });
            self.of().marking.give_back(chunk);
        }
    }
}
