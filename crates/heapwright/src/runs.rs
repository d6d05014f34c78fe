//! Runs: the units that pools, arenas and collected heaps take, and what a heap profile knows of them.
//!
//! ```text
//!   a pool's segment, an arena's chunk, a collected heap's page
//!        |                                                  ^ |
//!        | take                                             | | give, give_purged
//!        v                                                  | v
//!   chunk::take --> is sampling on, and is it a sample?     record's `sampled` --> no longer live --> chunk::give
//!                     |
//!                     +--> its stack and kind, `sampled` = 1 (`samples`)
//! ```
//!
//! A run of `n` bytes is a sample with the probability of a block of `n` bytes (`poisson`), so what a profile says of
//! runs and of blocks is the same estimate. All bytes of a run count, touched or not, from when it is taken until it
//! is given back whole; what its owner makes of them is not looked at, so pools and arenas hand out at full speed.
//!
//! Invariants: `sampled` is set only in the record of the first unit of a run that is out, and only its owner
//! changes it. A sample is removed before its run goes back; where the lock of samples is held for very long, before the next profile is
//! written, or when its address is another sample's.
//!
//! Without the feature `debug` there are no stacks, and these are the functions of `chunk`.
//!
//! Called by `pool`, `arena` and `gc`, whichever locks they have. What is cut by `cache` is sampled block by block there.

use crate::address_map::Entry;
use crate::chunk::{self, Run, Want};

/// Takes a run as [`chunk::take`], which may be a sample.
pub(crate) fn take(
    units: usize,
    align_units: usize,
    want: Want,
    head: Entry,
    rest: fn(usize) -> Entry,
) -> Option<Run> {
    let run = chunk::take(units, align_units, want, head, rest)?;
    marks::took(run.unit, units, head);
    Some(run)
}

/// Gives a run back as [`chunk::give`].
pub(crate) fn give(unit: usize, units: usize) {
    marks::gives(unit);
    chunk::give(unit, units);
}

/// Gives a run back as [`chunk::give_purged`], its pages to the kernel at once.
///
/// # Safety
///
/// The run is the caller's, and nobody uses its contents.
pub(crate) unsafe fn give_purged(unit: usize, units: usize) {
    marks::gives(unit);
    // SAFETY: the run is the caller's, and not used, as it promises.
    unsafe { chunk::give_purged(unit, units) };
}

/// The marks of samples.
#[cfg(feature = "debug")]
mod marks {
    use crate::address_map::{Entry, Kind, MAP};
    use crate::samples;
    use crate::size_class::UNIT;
    use crate::sync::atomic::Ordering;
    use heapwright_record::debug::Memory;

    /// A run was taken, and has this entry.
    pub(super) fn took(unit: usize, units: usize, head: Entry) {
        if !samples::are_runs_sampled() {
            return;
        }
        // First: a profile that is written meanwhile takes a sample without the mark for one that is gone.
        let sampled = &MAP.record(unit).sampled;
        sampled.store(1, Ordering::Relaxed);
        let is_sample = samples::took(MAP.address_of(unit), units * UNIT, memory(unit, head));
        sampled.store(u8::from(is_sample), Ordering::Relaxed);
    }

    /// What a run is for that begins at `unit` with this entry.
    fn memory(unit: usize, head: Entry) -> Memory {
        match MAP.kind_of(unit, head) {
            Kind::PoolHead => Memory::Pool,
            Kind::Arena => Memory::Arena,
            Kind::Collected(_) => Memory::Collected,
            _ => Memory::Unknown,
        }
    }

    /// The run at `unit` is about to be given back.
    pub(super) fn gives(unit: usize) {
        let sampled = &MAP.record(unit).sampled;
        if sampled.load(Ordering::Relaxed) != 0 {
            sampled.store(0, Ordering::Relaxed);
            samples::gave(MAP.address_of(unit));
        }
    }
}

/// There are none in this build.
#[cfg(not(feature = "debug"))]
mod marks {
    use crate::address_map::Entry;

    pub(super) fn took(_unit: usize, _units: usize, _head: Entry) {}

    pub(super) fn gives(_unit: usize) {}
}
