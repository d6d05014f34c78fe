//! The stages of settling: how far a collection has judged weak references, guardians, finalizers.
//!
//! Between two steps, a collection remembers only this of its visits. Part of `trace`; read by
//! `tracer`, which looks marked objects up, and by mutators.

use super::cell::Num;

pub(super) const NOT_BEGUN: usize = 0;
pub(super) const CONTEXTS: usize = 1;
pub(super) const GUARDIANS: usize = 2;
pub(super) const REGISTERED: usize = 3;
pub(super) const CLOSED: usize = 4;
pub(super) const CELLS: usize = 5;
pub(super) const WEAK: usize = 6;
pub(super) const JUDGE: usize = 7;
pub(super) const DUE: usize = 8;
pub(super) const DYING: usize = 9;
pub(super) const EMPTY: usize = 10;
pub(super) const SWEEP: usize = 11;
pub(super) const AGE_FINALIZERS: usize = 12;
pub(super) const AGE_GUARDIANS: usize = 13;
pub(super) const AGE_REGISTERED: usize = 14;
pub(super) const LAST: usize = 15;

/// How far a collection has settled. All-zero bytes: it has not begun.
pub(super) struct Settling {
    pub(super) stage: Num,
    /// The last entry that the stage has visited.
    pub(super) at: Num,
    /// The priority of finalizers that is judged.
    pub(super) priority: Num,
    /// The stage that follows CLOSED.
    pub(super) next: Num,
    /// Whether marks were set without a lookup.
    pub(super) missed: Num,
    /// Whether this step is not the first one that settles, so the program has run meanwhile.
    pub(super) resumed: Num,
    /// The lists in which marked objects are looked up: `HAS_CONTEXTS`, `HAS_GUARDED`.
    pub(super) among: Num,
}

/// Contexts of finalizers, and registrations with guardians.
pub(super) const HAS_CONTEXTS: usize = 1;
pub(super) const HAS_GUARDED: usize = 2;

impl Settling {
    pub(super) fn is_begun(&self) -> bool {
        self.stage.get() != NOT_BEGUN
    }

    /// Returns the lists in which marked objects are looked up. (Ephemerons have their own table.)
    pub(super) fn among(&self) -> usize {
        self.among.get()
    }

    /// Notes that objects were marked without a lookup, because memory was short.
    pub(super) fn miss(&self) {
        self.missed.set(1);
    }

    pub(super) fn enter(&self, stage: usize) {
        self.stage.set(stage);
        self.at.set(0);
    }

    /// Forgets all, because a collection begins or has settled.
    pub(super) fn clear(&self) {
        [
            &self.stage,
            &self.at,
            &self.priority,
            &self.next,
            &self.missed,
            &self.resumed,
            &self.among,
        ]
        .into_iter()
        .for_each(|number| number.set(0));
    }
}
