//! Runs: the units that pools, arenas and collected heaps take, and what a heap profile knows of
//! them.
//!
//! ```text
//!   a pool's segment, an arena's chunk, a collected heap's page
//!        |                                                  ^ |
//!        | take                                             | | give, give_purged
//!        v                                                  | v
//!   chunk::take --> is sampling on? the sampler: is it      record's `sampled` --> the sampler: no longer live
//!                   a sample? `sampled` = 1                                    --> chunk::give
//! ```
//!
//! The sampler stands above: the heap profile, which has the stacks. It is two functions, which the
//! profile leaves here when it begins ([`sample`]).
//!
//! A run of `n` bytes is a sample with the probability of a block of `n` bytes (`poisson`), so what
//! a profile says of runs and of blocks is the same estimate. All bytes of a run count, touched or
//! not, from when it is taken until it is given back whole; what its owner makes of them is not
//! looked at, so pools and arenas hand out at full speed.
//!
//! Invariants: `sampled` is set only in the record of the first unit of a run that is out, only its
//! owner changes it, and only after there was a sampler. A sample is removed before its run goes
//! back; where the lock of samples is held for very long, before the next profile is written, or
//! when its address is another sample's.
//!
//! Without the feature `debug` there are no samples, and these are the functions of `chunk`.
//!
//! Called by `pool`, `arena` and `gc`, whichever locks they have. What is cut by `cache` is sampled
//! block by block there.

use crate::address_map::Entry;
use crate::chunk::{self, Run, Want};

#[cfg(feature = "debug")]
pub use marks::{Sampler, sample};

/// Takes a run as [`chunk::take`], which may be a sample.
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

/// Gives a run back as [`chunk::give`].
pub fn give(unit: usize, units: usize) {
    marks::gives(unit);
    chunk::give(unit, units);
}

/// Gives a run back as [`chunk::give_purged`], its pages to the kernel at once.
///
/// # Safety
///
/// The run is the caller's, and nobody uses its contents.
pub unsafe fn give_purged(unit: usize, units: usize) {
    marks::gives(unit);
    // SAFETY: the run is the caller's, and not used, as it promises.
    unsafe { chunk::give_purged(unit, units) };
}

/// The marks of samples.
#[cfg(feature = "debug")]
mod marks {
    use core::ptr;

    use crate::address_map::{Entry, Kind, MAP};
    use crate::size_class::UNIT;
    use crate::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

    /// What keeps samples.
    pub struct Sampler {
        /// A run was taken at this address, of so many bytes, for this kind of memory. Whether it
        /// is a sample.
        pub took: fn(*mut u8, usize, Kind) -> bool,
        /// A run that is a sample is about to be given back.
        pub gave: fn(*mut u8),
    }

    /// The last sampler. It stays when no more samples are made, for those that are live.
    static SAMPLER: AtomicPtr<Sampler> = AtomicPtr::new(ptr::null_mut());
    static ARE_SAMPLED: AtomicBool = AtomicBool::new(false);

    /// Runs that are taken from now on may be samples, as this sampler says; `None`: they are not.
    pub fn sample(by: Option<&'static Sampler>) {
        if let Some(sampler) = by {
            SAMPLER.store(ptr::from_ref(sampler).cast_mut(), Ordering::Release);
        }
        ARE_SAMPLED.store(by.is_some(), Ordering::Relaxed);
    }

    /// The sampler; `None` before the first [`sample`].
    fn sampler() -> Option<&'static Sampler> {
        // SAFETY: null, or what `sample` was given, which lives as long as the process.
        unsafe { SAMPLER.load(Ordering::Acquire).as_ref() }
    }

    /// A run was taken, and has this entry.
    pub(super) fn took(unit: usize, units: usize, head: Entry) {
        if !ARE_SAMPLED.load(Ordering::Relaxed) {
            return;
        }
        let Some(sampler) = sampler() else { return };
        // First: a profile that is written meanwhile takes a sample without the mark for one that
        // is gone.
        let sampled = &MAP.record(unit).sampled;
        sampled.store(1, Ordering::Relaxed);
        let is_sample = (sampler.took)(MAP.address_of(unit), units * UNIT, MAP.kind_of(unit, head));
        sampled.store(u8::from(is_sample), Ordering::Relaxed);
    }

    /// The run at `unit` is about to be given back.
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

/// There are none in this build.
#[cfg(not(feature = "debug"))]
mod marks {
    use crate::address_map::Entry;

    pub(super) fn took(_unit: usize, _units: usize, _head: Entry) {}

    pub(super) fn gives(_unit: usize) {}
}
