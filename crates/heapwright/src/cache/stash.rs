//! The stash: runs of units that a thread freed and will soon want again.
//!
//! ```text
//!   length    1 unit      2        3      ...    16
//!             run         run      (none)        run
//!             run                                         newest first
//! ```
//!
//! A large block costs the chunk's lock and a search when it is taken, and both
//! and two merges when it is given back. A program that frees a buffer of
//! 100 KiB and asks for the next one should pay neither: a few runs of each
//! length wait here, bounded in bytes. While a run waits, its
//! first entry says `KEPT`, so it is a block for nobody.
//!
//! What no allocation has come to fetch while the scavenger went by once goes
//! back to the chunk, where it is purged in its time.
//!
//! Invariants: a run's first entry is `KEPT`, its record says its length, its
//! pages may hold anything; runs are linked as their owner's. Only the holder of
//! the tenure touches it; its size is an atomic, for visitors.
//!
//! Called by `heap` (large blocks) and the rest of `cache`.

use core::cell::Cell;

use crate::address_map::MAP;
use crate::chunk;
use crate::size_class::UNIT;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::unit_list::{ByOwner, UnitList};

/// Units in the longest run that is kept: 1 MiB.
const LONGEST: usize = (1 << 20) / UNIT;
/// Units in all runs: 2 MiB.
const MOST: usize = 2 * LONGEST;
/// One fetch in so many does a step of the scavenger's.
const STEP: usize = 16;

/// Runs that wait for the next large block. Zero is an empty stash.
pub(crate) struct Stash {
    runs: [UnitList<ByOwner>; LONGEST],
    units: AtomicUsize,
    /// How often a run was fetched since the scavenger last passed by.
    fetched: Cell<usize>,
}

impl Stash {
    /// Keeps a run whose first entry is `KEPT`. False: there is no room.
    pub(crate) fn keep(&self, unit: usize, units: usize) -> bool {
        let total = self.units.load(Ordering::Relaxed) + units;
        let Some(runs) = self.runs.get(units - 1).filter(|_| total <= MOST) else { return false };
        runs.push(&MAP, unit);
        self.units.store(total, Ordering::Relaxed);
        true
    }

    /// Takes a run of exactly `units` units out.
    pub(crate) fn take(&self, units: usize) -> Option<usize> {
        let runs = self.runs.get(units - 1)?;
        let unit = runs.first()?;
        runs.remove(&MAP, unit);
        self.fetched.set(self.fetched.get() + 1);
        self.units.store(self.units.load(Ordering::Relaxed) - units, Ordering::Relaxed);
        Some(unit)
    }

    /// Whether nothing waits here.
    pub(super) fn is_empty(&self) -> bool {
        self.units.load(Ordering::Relaxed) == 0
    }

    /// Whether the caller of [`Stash::take`] should do a step of the scavenger's:
    /// it reads the clock, which costs as much as the take.
    pub(crate) fn is_step_due(&self) -> bool {
        self.fetched.get().is_multiple_of(STEP)
    }

    /// Gives all runs back to the chunk.
    pub(crate) fn release(&self) {
        if self.units.load(Ordering::Relaxed) == 0 {
            return;
        }
        for (runs, units) in self.runs.iter().zip(1..) {
            while let Some(unit) = runs.first() {
                runs.remove(&MAP, unit);
                chunk::give(unit, units);
            }
        }
        self.units.store(0, Ordering::Relaxed);
    }

    /// The scavenger goes by: gives all runs back if none was wanted.
    pub(super) fn pass(&self) {
        if self.fetched.take() == 0 {
            self.release();
        }
    }

    /// In a forked child: forgets what may have been changing while it was copied.
    pub(super) fn forget_after_fork(&self) {
        for runs in &self.runs {
            runs.forget();
        }
        self.units.store(0, Ordering::Relaxed);
    }
}
