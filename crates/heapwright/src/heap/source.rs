//! A source: what a request is served from.
//!
//! A thread's own cache, a first-class heap's, or a cache that threads share. The door
//! serves all requests in the same way; this is what it needs of whichever it is. The
//! caller holds the source: it is its thread's and its lock is taken, or it is locked.
//!
//! Called by `door` and `large`.

use crate::cache::magazines::{self, Magazines};
use crate::cache::{Allocated, Cache, Counters, Stash, Use};

use super::start;

/// What a request is served from.
pub(super) trait Source {
    /// A block of `class`. `None`: there is no memory.
    fn alloc(&self, class: usize) -> Option<Allocated>;
    /// Whether [`Source::alloc`] gave none of `class` because the next one is to be a sample, or may be a guarded block.
    fn is_sample_due(&self, class: usize) -> bool;
    /// Runs kept for the next large block.
    fn stash(&self) -> &Stash;
    /// A bounded step towards giving back what nobody has wanted for a while.
    fn tend(&self);
    /// Before a run of `units` units is taken from memory that was not used yet: gives back what may do.
    fn make_way(&self, units: usize);
    /// Gives back all that is free.
    fn release(&self);
    /// Where calls are counted, if they are.
    fn counters(&self) -> &Counters;
    /// The first-class heap whose large blocks it lists, if it is one's. (Those of threads that have no cache
    /// are in no list, as other threads' are: a free of one need not wait for that heap.)
    fn heap(&self) -> Option<&Cache>;
}

impl Source for Cache {
    fn alloc(&self, class: usize) -> Option<Allocated> {
        self.alloc(class)
    }

    fn is_sample_due(&self, class: usize) -> bool {
        self.sampling.is_due(class) || self.guard_draw.is_pending()
    }

    fn stash(&self) -> &Stash {
        &self.stash
    }

    fn tend(&self) {
        self.scavenge();
        // A thread that allocates nothing but large blocks has no other slow path.
        if self.is_asked_to_follow_sampling() {
            self.follow_sampling();
        }
    }

    fn make_way(&self, units: usize) {
        self.make_way(units);
    }

    fn release(&self) {
        self.release_free();
        self.purge_slabs();
        magazines::release_all(self.id());
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn heap(&self) -> Option<&Cache> {
        (self.owned_by() == Use::Heap && !start::is_late(self)).then_some(self)
    }
}

impl Source for Magazines {
    fn alloc(&self, class: usize) -> Option<Allocated> {
        self.alloc(class)
    }

    fn is_sample_due(&self, _class: usize) -> bool {
        false
    }

    fn stash(&self) -> &Stash {
        &self.stash
    }

    fn tend(&self) {
        self.tend();
    }

    fn make_way(&self, units: usize) {
        self.make_way(units);
    }

    fn release(&self) {
        self.release();
        magazines::release_all(0);
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn heap(&self) -> Option<&Cache> {
        None
    }
}
