//! Dirty slots: places that were stored into after they were traced, by stores without the stored
//! value.
//!
//! ```text
//!   touch(parent, place) --> recent: was it reported just now? --> buffer --> bag
//!                                                                             |
//!   the next step: each place is traced once more <---------------------------+
//! ```
//!
//! A store that is reported with its value shades that at once (see `cycle`), or its slot is noted
//! (see `moving`). A place that is only reported as about to be stored into is traced afterwards,
//! while the world is stopped. Only the place is traced, and not its whole object, which may be a
//! large array. The same place is often reported again and again. Each mutator recognises the last
//! few dozen ([`Recent`](super::bag::Recent)).
//!
//! The object lives until the sweep after next, because it was traced already: it was marked, or is
//! new.
//!
//! Filled by `raw` and `stores`, emptied by `mark` and `moving`.

use super::bag;
use super::find;
use super::layout;
use super::phase::Phase;
use super::tracer::{TraceSlot, Tracer};

/// A place, and the function that traces it.
type Place = (*mut u8, TraceSlot);

/// Traces a whole object, whose changed place is not known.
///
/// # Safety
///
/// An object of the tracer's heap begins there.
pub(super) unsafe fn whole(object: *mut u8, tracer: &Tracer) {
    tracer.trace_whole(object);
}

/// Traces a slot.
///
/// # Safety
///
/// A place for a reference in an object of the tracer's heap.
pub(super) unsafe fn one(slot: *mut u8, tracer: &Tracer) {
    // SAFETY: as the caller promises.
    unsafe { tracer.mark_slot(slot.cast()) };
}

impl Tracer {
    /// Something is stored in `place`, in the object `parent`, before the next safepoint. `place`
    /// is traced again if it was traced before. During marking, or while objects are moved.
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

    /// Traces all dirty slots. While the world is stopped, and tracers have given their notes.
    pub(super) fn trace_dirty_slots(&self) {
        while let Some(chunk) = self.of().dirty_slots.take() {
            bag::each(chunk, |(place, trace): Place| {
                // SAFETY: the reporting caller gave the function for it. Its object was traced
                // already, so it is marked or new, and lives until the sweep after next.
                unsafe { trace(place, self) };
            });
            self.of().marking.give_back(chunk);
        }
    }
}
