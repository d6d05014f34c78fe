//! Whether minor collections pay: judged by what could be allocated thanks to them.
//!
//! ```text
//!   major ---- first ----> minor -- gained --> minor -- gained --> major
//!         as much as without          what minor ones had freed, and was found room in
//!
//!   gained / first  <  work of the minor ones / work of a major one:  the next few are major ones: a rest
//! ```
//!
//! What a minor collection frees in a heap that has hardly more memory than what lives is
//! scattered: other pools cannot have it, and a page that is nearly full yields little. Then the
//! major collection comes at once, and the minor one was for nothing. How many bytes were freed
//! does not say so; how many could be allocated before the next major collection does. The work of
//! a collection is the bytes that it marks, and for the sweep and the stop of the world a part of
//! what lives.
//!
//! Sums are judged, not single intervals, of which older ones count half at each judgement. Each
//! rest is twice as long as the one before, up to [`LONGEST_REST`] major collections, until minor
//! ones pay again.
//!
//! Part of `generations`.

use super::cell::{Num, clear};

/// A collection that marks nothing costs this part of marking what lives.
const SWEEP_OF_MARKING: usize = 16;
/// The longest rest, in major collections.
const LONGEST_REST: usize = 16;

/// What is known of a heap's minor collections. Zero knows nothing.
pub(super) struct Minors {
    /// Since the last major collection: bytes allocated before the first minor one and afterwards,
    /// bytes of work of minor ones, and how many there were.
    first: Num,
    gained: Num,
    work: Num,
    count: Num,
    /// The sums of the first three, older ones with less weight. `work` is of minor ones.
    sum_first: Num,
    sum_gained: Num,
    sum_work: Num,
    /// How long the last rest was, and how much of it is left: major collections.
    rest: Num,
    left: Num,
}

impl Minors {
    /// A collection has marked `marked` bytes, after so many were allocated; so many live, as far
    /// as is known.
    pub(super) fn note(&self, minor: bool, allocated: usize, marked: usize, live: usize) {
        if self.count.get() == 0 {
            self.first.set(allocated);
        } else {
            self.gained.add(allocated);
        }
        if minor {
            self.work.add(marked + live / SWEEP_OF_MARKING);
            return self.count.add(1);
        }
        let (first, gained, work) = (self.first.take(), self.gained.take(), self.work.take());
        if self.count.take() == 0 {
            return self.left.sub(1);
        }
        for (sum, more) in
            [(&self.sum_first, first), (&self.sum_gained, gained), (&self.sum_work, work)]
        {
            sum.set(sum.get() / 2 + more);
        }
        if self.do_pay(live + live / SWEEP_OF_MARKING) {
            self.rest.set(0);
        } else {
            self.rest.set((2 * self.rest.get()).clamp(1, LONGEST_REST));
            self.left.set(self.rest.get());
        }
    }

    /// Returns whether the same work of major ones would have made less room. `major` is the work
    /// of one.
    fn do_pay(&self, major: usize) -> bool {
        let (first, gained) = (self.sum_first.get(), self.sum_gained.get());
        gained as f64 * major as f64 >= first as f64 * self.sum_work.get() as f64
    }

    /// Returns whether the next collection is to be a major one, because minor ones did not pay.
    pub(super) fn rest(&self) -> bool {
        self.left.get() != 0
    }

    /// Forgets all.
    pub(super) fn end(&self) {
        clear!(self: first gained work count sum_first sum_gained sum_work rest left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// A heap of 80 MiB that lives and 8 that are free: a major collection, and a minor one after
    /// which `gained` could be allocated.
    fn pair(minors: &Minors, gained: usize, marked: usize) {
        minors.note(true, 8 * MIB, marked, 80 * MIB);
        minors.note(false, gained, 80 * MIB, 80 * MIB);
    }

    fn fresh() -> Minors {
        // SAFETY: zero knows nothing.
        unsafe { core::mem::zeroed() }
    }

    #[test]
    fn minor_collections_pay_by_what_could_be_allocated() {
        let minors = fresh();
        pair(&minors, 4 * MIB, 4 * MIB);
        assert!(!minors.rest(), "half as much again for an eighth of the work");
        // What they free is found no room in.
        pair(&minors, 0, 4 * MIB);
        pair(&minors, 0, 4 * MIB);
        assert!(minors.rest());
    }

    #[test]
    fn rests_double_and_end_when_minor_collections_pay_again() {
        let minors = fresh();
        for rest in [1, 2, 4, 8, 16, 16] {
            pair(&minors, 0, 4 * MIB);
            for left in (0..rest).rev() {
                assert!(minors.rest(), "{left} of {rest}");
                minors.note(false, 8 * MIB, 80 * MIB, 80 * MIB);
            }
            assert!(!minors.rest());
        }
        pair(&minors, 8 * MIB, 0);
        assert!(!minors.rest());
        assert_eq!(minors.rest.get(), 0, "a short one next time");
    }
}
