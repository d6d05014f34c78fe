//! Places that were stored into since they reported what they lead to, for who does not say what was stored.
//!
//! ```text
//!   touch(parent, place) --> recent: was it reported just now? --> buffer --> bag
//!                                                                             |
//!   the next step: each place is asked once more what it leads to <-----------+
//! ```
//!
//! Where a store is reported with what is stored, that is shaded at once (see `cycle`) or its slot noted (see
//! `moving`). Who only says that it is about to store somewhere is asked afterwards, while the world
//! stands still: the place, and not the whole object that it lies in, which may be a large
//! array. The same place is often reported again and again; each mutator knows the last few dozen
//! ([`Recent`](super::bag::Recent)).
//!
//! The object lives until the sweep after next, because it had reported already: it was marked, or is new.
//!
//! Filled by `raw` and `moving`, emptied by `cycle` and `moving`.

use super::bag;
use super::cycle::Phase;
use super::heap::Heap;
use super::layout;
use super::mutator::Mutator;
use super::tracer::{self, Tracer};

/// How a place reports what it leads to.
pub(super) type TracePlace = unsafe fn(place: *mut u8, tracer: &Tracer);

/// A place, and how it is asked.
type Place = (*mut u8, TracePlace);

/// How an object is asked of which nobody says where it was stored into.
///
/// # Safety
///
/// An object of the tracer's heap begins there.
pub(super) unsafe fn whole(object: *mut u8, tracer: &Tracer) {
    tracer.trace(object);
}

impl Heap {
    /// Something is stored in `place`, in the object `parent`, before the next safepoint: then it is
    /// to be asked, if it has reported already. While all is marked, or objects are moved.
    pub(super) fn note_stored(
        &self,
        me: &Mutator,
        parent: *mut u8,
        place: *mut u8,
        trace: TracePlace,
    ) {
        let traced = |(_, page_list)| layout::is_traced(page_list);
        // While marking goes on, who has no mark has not reported anything yet.
        let was_scanned = || self.cycle.phase() != Phase::Marking || self.is_marked(parent);
        let recent = &me.tracer.stored;
        if !tracer::list_of(parent.addr(), self.tag()).is_some_and(traced)
            || !was_scanned()
            || recent.has(place.addr())
        {
            return;
        }
        let entry: Place = (place, trace);
        if recent.push(self, &self.stored, entry) {
            return;
        }
        if self.cycle.phase() == Phase::Marking {
            self.note_overflow(parent);
        } else {
            // Nobody will ask: so nothing that it may lead to moves.
            self.give_plan_up();
        }
    }

    /// Has all places report what they lead to. While the world stands still, and tracers have
    /// given what they had.
    pub(super) fn ask_stored(&self, tracer: &Tracer) {
        while let Some(chunk) = self.stored.take() {
            bag::each(chunk, |(place, trace): Place| {
                // SAFETY: whoever reported it said how it is asked; its object had reported already,
                // marked or new, and so lives until the sweep after next.
                unsafe { trace(place, tracer) };
            });
            self.give_back(chunk);
        }
    }
}
