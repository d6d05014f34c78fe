//! Runs: the units of pools, arenas and collected heaps, with samples for a heap profile.
//!
//! ```text
//!   a pool's segment, an arena's chunk, a collected heap's page
//!        |                                                  ^ |
//!        | take                                             | | give, give_purged
//!        v                                                  | v
//!   chunk::take --> is sampling on? the sampler: is it    record's `sampled` --> the sampler: gone
//!                   a sample? `sampled` = 1                                  --> chunk::give
//! ```
//!
//! The heap profile, a module above, registers a sampler here ([`sample`]). A run of `n` bytes is a
//! sample with the same probability as a block of `n` bytes (`poisson`). All its bytes count,
//! touched or not. Slots in the run are not sampled.
//!
//! Invariants: `sampled` is set only in the record of the first unit of a run in use. Only the
//! run's owner changes it, and only after a sampler was registered. A sample is removed before its
//! run goes back. If the lock of samples is held for very long, the sample goes later: before the
//! next profile is written, or when another sample has its address.
//!
//! Called by `pool`, `arena` and `gc`, with any of their locks held.

use crate::address_map::Entry;
use crate::chunk::{self, Run, Want};

#[cfg(feature = "debug")]
pub use marks::{Sampler, sample};

/// Takes a run, as [`chunk::take`] does. The run may be a sample.
pub fn take(
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

/// Gives a run back, as [`chunk::give`] does.
pub fn give(unit: usize, units: usize) {
    marks::gives(unit);
    chunk::give(unit, units);
}

/// Gives a run back, as [`chunk::give_purged`] does.
///
/// # Safety
///
/// The run is the caller's, and no thread uses its contents.
pub unsafe fn give_purged(unit: usize, units: usize) {
    marks::gives(unit);
    // SAFETY: by the contract the run is the caller's and not used.
    unsafe { chunk::give_purged(unit, units) };
}

#[cfg(feature = "debug")]
mod marks {
    use core::ptr;

    use crate::address_map::{Entry, Kind, MAP};
    use crate::size_class::UNIT;
    use crate::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

    /// A keeper of samples.
    pub struct Sampler {
        /// Notes address, bytes and kind of a run that was taken. Returns whether it is a sample.
        pub took: fn(*mut u8, usize, Kind) -> bool,
        /// Notes that a sampled run is about to be given back.
        pub gave: fn(*mut u8),
    }

    /// The last sampler stays after the end of sampling, because its samples may still live.
    static SAMPLER: AtomicPtr<Sampler> = AtomicPtr::new(ptr::null_mut());
    static ARE_SAMPLED: AtomicBool = AtomicBool::new(false);

    /// Registers the sampler of runs that are taken from now on; `None`: ends sampling.
    pub fn sample(by: Option<&'static Sampler>) {
        if let Some(sampler) = by {
            SAMPLER.store(ptr::from_ref(sampler).cast_mut(), Ordering::Release);
        }
        ARE_SAMPLED.store(by.is_some(), Ordering::Relaxed);
    }

    fn sampler() -> Option<&'static Sampler> {
        // SAFETY: null, or a sampler from `sample`, which lives as long as the process.
        unsafe { SAMPLER.load(Ordering::Acquire).as_ref() }
    }

    pub(super) fn took(unit: usize, units: usize, head: Entry) {
        if !ARE_SAMPLED.load(Ordering::Relaxed) {
            return;
        }
        let Some(sampler) = sampler() else { return };
        // The mark comes first, because a profile treats an unmarked sample as freed.
        let sampled = &MAP.record(unit).sampled;
        sampled.store(1, Ordering::Relaxed);
        let is_sample = (sampler.took)(MAP.address_of(unit), units * UNIT, MAP.kind_of(unit, head));
        sampled.store(u8::from(is_sample), Ordering::Relaxed);
    }

    pub(super) fn gives(unit: usize) {
        let sampled = &MAP.record(unit).sampled;
        if sampled.load(Ordering::Relaxed) != 0 {
            sampled.store(0, Ordering::Relaxed);
            if let Some(sampler) = sampler() {
                (sampler.gave)(MAP.address_of(unit));
            }
        }
    }
}

#[cfg(not(feature = "debug"))]
mod marks {
    use crate::address_map::Entry;

    pub(super) fn took(_unit: usize, _units: usize, _head: Entry) {}

    pub(super) fn gives(_unit: usize) {}
}
