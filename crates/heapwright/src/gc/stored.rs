//! Places that were stored into since they told what they lead to, for who does not say what was stored.
//!
//! ```text
//!   touch(parent, place) --> recent: was it told of just now? --> buffer --> pile
//!                                                                             |
//!   the next step: each place is asked once more what it leads to <-----------+
//! ```
//!
//! Where a store is told with what is stored, that is shaded at once (see `cycle`) or its slot noted (see
//! `moving`). Who only says that it is about to store somewhere is asked afterwards, while the world
//! stands still: the place, and not the whole object that it lies in, which may be a large
//! array. The same place is often told of again and again; each mutator knows the last few dozen
//! ([`Recent`](super::pile::Recent)).
//!
//! The object lives until the sweep after next, because it had told already: it was marked, or is new.
//!
//! Filled by `raw` and `moving`, emptied by `cycle` and `moving`.

use super::heap::{Heap, Phase};
use super::layout;
use super::mutator::Mutator;
use super::pile;
use super::tracer::{self, Tracer};

/// How a place tells what it leads to.
pub(super) type Tell = unsafe fn(place: *mut u8, tracer: &Tracer);

/// A place, and how it is asked.
type Place = (*mut u8, Tell);

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
    /// to be asked, if it has told already. While all is marked, or objects are moved.
    pub(super) fn note_stored(&self, me: &Mutator, parent: *mut u8, place: *mut u8, tell: Tell) {
        let traced = |(_, shelf)| layout::is_traced(shelf);
        // While marking goes on, who has no mark has not told anything yet.
        let told = || self.phase() != Phase::Marking || self.is_marked(parent);
        let recent = &me.tracer.stored;
        if !tracer::shelf_of(parent.addr(), self.tag()).is_some_and(traced)
            || !told()
            || recent.has(place.addr())
        {
            return;
        }
        let entry: Place = (place, tell);
        if recent.push(self, &self.stored, entry) {
            return;
        }
        if self.phase() == Phase::Marking {
            self.note_overflow(parent);
        } else {
            // Nobody will ask: so nothing that it may lead to moves.
            self.give_plan_up();
        }
    }

    /// Has all places tell what they lead to. While the world stands still, and tracers have
    /// given what they had.
    pub(super) fn ask_stored(&self, tracer: &Tracer) {
        while let Some(chunk) = self.stored.take() {
            pile::each(chunk, |(place, tell): Place| {
                // SAFETY: whoever told of it said how it is asked; its object had told already,
                // marked or new, and so lives until the sweep after next.
                unsafe { tell(place, tracer) };
            });
            self.give_back(chunk);
        }
    }
}
