//! Overhead: when a heap whose limit leaves hardly any room is given up.
//!
//! ```text
//!   major cycle --- 1 % of the limit --- cycle --- 2 % --- cycle --- 1 % --- ...
//!     futile: each marks all live objects      8 in a row, which marked 1 GiB --> refuse
//! ```
//!
//! Such a heap would run a collection for every few objects. So when 8 or more such cycles in a row
//! have marked 1 GiB, an allocation that needs another cycle is refused. Each later allocation may
//! try one cycle, because the runtime may have dropped references. The heap recovers when mutators
//! can again allocate at least one part in [`HARDLY`] of the limit between two cycles.
//!
//! The measure is the number of bytes that mutators got between two cycles. Bytes that a cycle
//! found free may be unusable. A measure of time would make a program differ from run to run.
//!
//! Minor cycles do not count, because they do not mark all live objects. A requested collection
//! resets the account. Part of `pacing`.

use super::cell::Num;

/// A heap is given up after this many futile major cycles in a row that marked `LOOKED_AT` bytes.
const FUTILE: usize = 8;
const LOOKED_AT: usize = 1 << 30;
/// Bytes are hardly anything if they are less than one part in this many of the limit.
const HARDLY: usize = 32;

pub(super) struct Overhead {
    /// Bytes allocated from the last major cycle to the last minor one.
    before_minors: Num,
    /// Major cycles in a row that gained hardly anything. `looked_at`: the bytes that they marked.
    futile: Num,
    looked_at: Num,
}

/// Returns whether `bytes` are hardly anything, of a limit of `most`.
fn is_hardly_anything(bytes: usize, most: usize) -> bool {
    most != usize::MAX && bytes < most / HARDLY
}

impl Overhead {
    /// Notes an ended cycle. `allocated`: bytes since the cycle before. `live`: for a major cycle.
    pub(super) fn note_cycle(&self, most: usize, allocated: usize, live: usize, minor: bool) {
        let allocated = self.before_minors.get() + allocated;
        self.before_minors.set(if minor { allocated } else { 0 });
        if minor || allocated == 0 {
            // A cycle right after another one says nothing.
        } else if is_hardly_anything(allocated, most) {
            self.futile.add(1);
            self.looked_at.set(self.looked_at.get().saturating_add(live));
        } else {
            self.forget();
        }
    }

    /// Returns whether another cycle would be in vain, after `used` allocated bytes.
    pub(super) fn is_in_vain(&self, most: usize, used: usize) -> bool {
        self.futile.get() >= FUTILE
            && self.looked_at.get() >= LOOKED_AT
            && is_hardly_anything(used, most)
    }

    pub(super) fn note_refusal(&self) {
        self.futile.set(self.futile.get().min(FUTILE - 1));
    }

    /// Resets the account: the runtime collects by itself, or mutators got enough.
    pub(super) fn forget(&self) {
        self.futile.set(0);
        self.looked_at.set(0);
    }

    pub(super) fn end(&self) {
        self.before_minors.set(0);
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 256 << 20;

    fn fresh() -> Overhead {
        // SAFETY: zero has no accounts.
        unsafe { core::mem::zeroed() }
    }

    #[test]
    fn a_heap_is_given_up_when_cycles_come_in_a_row_for_hardly_anything() {
        let overhead = fresh();
        let in_vain = || overhead.is_in_vain(MOST, 0);
        for _ in 0..FUTILE {
            assert!(!in_vain());
            // A cycle right after another does not count, nor does a minor one.
            overhead.note_cycle(MOST, 0, MOST, false);
            overhead.note_cycle(MOST, MOST / 200, 0, true);
            overhead.note_cycle(MOST, MOST / 200, MOST, false);
        }
        assert!(in_vain());
        assert!(!overhead.is_in_vain(MOST, MOST / 32), "there may be something to free");
        // The next allocation tries one cycle, and is refused after it.
        overhead.note_refusal();
        assert!(!in_vain());
        overhead.note_cycle(MOST, 1, MOST, false);
        assert!(in_vain());
        // Allocations of minor cycles count.
        overhead.note_cycle(MOST, MOST / 32, 0, true);
        overhead.note_cycle(MOST, 1, MOST, false);
        assert!(!in_vain());
    }

    #[test]
    fn a_small_heap_may_try_for_longer_and_one_without_a_limit_for_ever() {
        let (small, free) = (fresh(), fresh());
        let tries = (0..).take_while(|_| {
            small.note_cycle(1 << 20, 1, 1 << 20, false);
            free.note_cycle(usize::MAX, 1, 1 << 30, false);
            !small.is_in_vain(1 << 20, 0)
        });
        assert_eq!(tries.count(), 1023);
        assert!(!free.is_in_vain(usize::MAX, 0));
        small.end();
        assert!(!small.is_in_vain(1 << 20, 0));
    }
}
