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
//! array. The same place is often told of again and again; each mutator knows the last few dozen.
//!
//! The object lives until the sweep after next, because it had told already: it was marked, or is new.
//!
//! Filled by `remembered` and `moving`, emptied by `cycle` and `moving`.

use super::LEAF;
use super::cell::Num;
use super::heap::{Heap, Phase};
use super::mutator::Mutator;
use super::pile::{self, Buffer, Pile};
use super::tracer::{self, Tracer};

/// How a place tells what it leads to.
pub(super) type Tell = unsafe fn(place: *mut u8, tracer: &Tracer);

/// Places that a mutator knows to have told of.
const KNOWN: usize = 64;

/// The places of one heap. Zero has none.
pub(super) struct Stored {
    places: Pile,
}

/// Addresses that were put down lately, as far as they are known. Zero knows none.
pub(super) struct Known([Num; KNOWN]);

/// What one tracer has told of. Zero is nothing.
pub(super) struct Recent {
    known: Known,
    buffer: Buffer,
}

/// A place, and how it is asked.
type Place = (*mut u8, Tell);

impl Known {
    /// Whether an address was put down just now; from now on it was.
    pub(super) fn has(&self, address: usize) -> bool {
        self.0[address / 16 % KNOWN].replace(address) == address
    }

    /// Knows nothing any more.
    pub(super) fn forget(&self) {
        self.0.iter().for_each(|address| address.set(0));
    }
}

impl Recent {
    /// Gives what it has to the heap.
    pub(super) fn give(&self, to: &Stored) {
        if !self.buffer.is_empty() {
            self.buffer.give(&to.places);
            self.known.forget();
        }
    }
}

impl Stored {
    /// Forgets all; the memory goes with the heap's.
    pub(super) fn end(&self) {
        self.places.end();
    }

    /// Holds the lock across a fork.
    pub(super) fn before_fork(&self) {
        self.places.before_fork();
    }

    /// Gives it back on either side of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`Stored::before_fork`] in the forking thread or its copy.
    pub(super) unsafe fn after_fork(&self) {
        // SAFETY: the same contract.
        unsafe { self.places.after_fork() };
    }
}

impl Heap {
    /// Something is stored in `place`, in the object `parent`, before the next safepoint: then it is
    /// to be asked, if it has told already. While all is marked, or objects are moved.
    pub(super) fn note_stored(&self, me: &Mutator, parent: *mut u8, place: *mut u8, tell: Tell) {
        let traced = |(_, shelf)| shelf & LEAF as usize == 0;
        // While marking goes on, who has no mark has not told anything yet.
        let told = || self.phase() != Phase::Marking || self.is_marked(parent);
        let recent = &me.tracer.stored;
        if !tracer::shelf_of(parent.addr(), self.tag()).is_some_and(traced)
            || !told()
            || recent.known.has(place.addr())
        {
            return;
        }
        let entry: Place = (place, tell);
        if recent.buffer.push(self, &self.stored.places, entry) {
            return;
        }
        recent.known.forget();
        if self.phase() == Phase::Marking {
            self.note_overflow(parent);
        } else {
            // Nobody will ask: so nothing that it may lead to moves.
            self.give_plan_up();
        }
    }

    /// As [`Heap::note_stored`], of who knows where in an object.
    pub(super) fn note_stored_into(&self, me: &Mutator, parent: *mut u8) {
        unsafe fn object(object: *mut u8, tracer: &Tracer) {
            tracer.trace(object);
        }
        self.note_stored(me, parent, parent, object);
    }

    /// Has all places tell what they lead to. While the world stands still, and tracers have
    /// given what they had.
    pub(super) fn ask_stored(&self, tracer: &Tracer) {
        while let Some(chunk) = self.stored.places.take() {
            pile::each(chunk, |(place, tell): Place| {
                // SAFETY: whoever told of it said how it is asked; its object lives: see above.
                unsafe { tell(place, tracer) };
            });
            self.give_back(chunk);
        }
    }
}
