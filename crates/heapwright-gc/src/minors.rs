//! Whether minor collections pay: judged by the allocations that they make possible.
//!
//! ```text
//!   major ---- first ----> minor -- gained --> minor -- gained --> major
//!         as without minors        allocated from what minor ones had freed
//!
//!   gained / first  <  work of the minor ones / work of a major one:  a rest, of some major ones
//! ```
//!
//! In a heap with hardly more memory than its live bytes, a minor collection frees scattered slots.
//! Other pools cannot use them. Then a major collection follows at once, and the minor one was
//! useless. The number of freed bytes does not show that, but the number of bytes allocated before
//! the next major collection does. A collection's work is the bytes that it marks, plus a part of
//! the live bytes for the sweep and the stop of the world.
//!
//! Sums are judged, not single intervals. Each judgement halves the sums first. Each rest is twice
//! as long as the rest before, up to [`LONGEST_REST`]. Part of `generations`.

use super::cell::{Num, clear};

/// A collection costs at least one part in this many of the cost of marking the live bytes.
const SWEEP_OF_MARKING: usize = 16;
/// The longest rest, in major collections.
const LONGEST_REST: usize = 16;

/// The account of a heap's minor collections. All-zero bytes: an empty account.
pub(super) struct Minors {
    /// Since the last major collection: bytes allocated before the first minor one (`first`) and
    /// afterwards (`gained`), the work of minor ones in bytes, and their number.
    first: Num,
    gained: Num,
    work: Num,
    count: Num,
    /// Sums of `first`, `gained` and `work`, in which older values weigh less.
    sum_first: Num,
    sum_gained: Num,
    sum_work: Num,
    /// The length of the last rest, in major collections. `left`: how much of it is left.
    rest: Num,
    left: Num,
}

impl Minors {
    /// Notes a collection that marked `marked` bytes, after `allocated` bytes. `live` are the bytes
    /// that are known to live.
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

    /// Returns whether minor collections pay. They do unless major ones with the same work would
    /// have made more room. `major`: the work of one major collection.
    fn do_pay(&self, major: usize) -> bool {
        let (first, gained) = (self.sum_first.get(), self.sum_gained.get());
        gained as f64 * major as f64 >= first as f64 * self.sum_work.get() as f64
    }

    pub(super) fn rest(&self) -> bool {
        self.left.get() != 0
    }

    pub(super) fn end(&self) {
        clear!(self: first gained work count sum_first sum_gained sum_work rest left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// A heap with 80 MiB live and 8 MiB free: a minor collection, after which `gained` could be
    /// allocated, and then a major one.
    fn pair(minors: &Minors, gained: usize, marked: usize) {
        minors.note(true, 8 * MIB, marked, 80 * MIB);
        minors.note(false, gained, 80 * MIB, 80 * MIB);
    }

    fn fresh() -> Minors {
        // SAFETY: zero is an empty account.
        unsafe { core::mem::zeroed() }
    }

    #[test]
    fn minor_collections_pay_by_what_could_be_allocated() {
        let minors = fresh();
        pair(&minors, 4 * MIB, 4 * MIB);
        assert!(!minors.rest(), "half as much again for an eighth of the work");
        // Their freed bytes cannot be used.
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
