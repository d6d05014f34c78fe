//! The stash: runs of units that a thread freed and will soon want again.
//!
//! ```text
//!   length    1 unit      2        3      ...    64
//!             run         run      (none)        run
//!             run                                         newest first
//! ```
//!
//! A run costs the chunk's lock and a search when it is taken, and both
//! and two merges when it is given back. A program that frees a buffer of
//! 100 KiB and asks for the next one should pay neither, nor one whose blocks of
//! 10 KiB fill a few slabs and leave them: runs of each
//! length wait here, bounded in bytes. While a run waits, its
//! first entry says `KEPT`, so it is a block for nobody.
//!
//! What no allocation has come to fetch while the scavenger went by once goes
//! back to the chunk, where it is purged in its time; and so does all of it, the stashes of some other
//! threads included (`visit`), before the process grows for something else.
//!
//! Invariants: a run's first entry is `KEPT`, its record says its length, its
//! pages may hold anything. Only the holder of the tenure touches it; its size is an
//! atomic, for visitors.
//!
//! Called by `heap` (large blocks) and the rest of `cache`.

use core::cell::Cell;
use core::ops::RangeInclusive;

use crate::address_map::MAP;
use crate::chunk::{self, scarce};
use crate::size_class::{SLAB_MAX, UNIT};
use crate::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use crate::unit_record::Record;

/// Units in the longest run that is kept: 4 MiB.
const LONGEST: usize = (4 << 20) / UNIT;
/// Units that all threads' stashes together may keep, that one may keep at most, and always: 64 MiB,
/// 4 MiB, 256 KiB. And that of a shared cache: 2 MiB.
const ALL: usize = (64 << 20) / UNIT;
const MOST: usize = (4 << 20) / UNIT;
const LEAST: usize = (256 << 10) / UNIT;
const SHARED: usize = (2 << 20) / UNIT;
/// A stash of so many units is worth a visit by a thread that would make the process grow: 1 MiB.
const PLENTY: usize = (1 << 20) / UNIT;
/// And gives way to a run of so many times its size.
const PART: usize = 4;
/// A run that is longer by one of so many parts serves, too.
const LONGER: usize = 4;
/// One fetch in so many does a step of the scavenger's.
const STEP: usize = 64;

/// Units that one stash may keep: the fewer, the more caches were made.
static ROOM: AtomicUsize = AtomicUsize::new(MOST);

/// Bytes that one stash may keep.
pub(super) fn room_bytes() -> usize {
    ROOM.load(Ordering::Relaxed) * UNIT
}

/// So many caches were made.
pub(super) fn note_made(caches: usize) {
    ROOM.fetch_min((ALL / caches).max(LEAST), Ordering::Relaxed);
}

/// Runs that wait for the next large block, or slab. Zero is an empty stash.
pub(crate) struct Stash {
    /// Of each length, the newest run; its record leads to the next (`by_owner`).
    runs: [AtomicU32; LONGEST],
    units: AtomicUsize,
    /// How often a run was fetched since the scavenger last passed by.
    fetched: Cell<usize>,
}

impl Stash {
    /// Sizes of large blocks that one of its runs may serve.
    pub(crate) const LENGTHS: RangeInclusive<usize> = SLAB_MAX + 1..=LONGEST * UNIT;

    /// Keeps a run whose first entry is `KEPT`, or about to be, in a thread's stash. False: there is no
    /// room.
    #[inline(always)]
    pub(crate) fn keep(&self, unit: usize, record: &Record, units: usize) -> bool {
        self.keep_within(ROOM.load(Ordering::Relaxed), unit, record, units)
    }

    /// [`Stash::keep`] in the stash of a shared cache.
    pub(crate) fn keep_shared(&self, unit: usize, units: usize) -> bool {
        self.keep_within(SHARED, unit, MAP.record(unit), units)
    }

    #[inline(always)]
    fn keep_within(&self, room: usize, unit: usize, record: &Record, units: usize) -> bool {
        let total = self.units.load(Ordering::Relaxed) + units;
        let Some(runs) = self.runs.get(units - 1).filter(|_| total <= room) else { return false };
        record.by_owner.next.store(runs.load(Ordering::Relaxed), Ordering::Relaxed);
        runs.store(unit as u32, Ordering::Relaxed);
        self.units.store(total, Ordering::Relaxed);
        true
    }

    /// The newest run of a length.
    #[inline(always)]
    fn first(&self, units: usize) -> Option<usize> {
        match self.runs.get(units - 1)?.load(Ordering::Relaxed) {
            0 => None,
            unit => Some(unit as usize),
        }
    }

    /// Takes the newest run of its length out, whose record is given.
    #[inline(always)]
    fn pop(&self, record: &Record, units: usize) {
        let next = record.by_owner.next.load(Ordering::Relaxed);
        self.runs[units - 1].store(next, Ordering::Relaxed);
        self.units.store(self.units.load(Ordering::Relaxed) - units, Ordering::Relaxed);
    }

    /// Takes a run of `units` units out, or of some more. Returns how many it has.
    pub(crate) fn take(&self, units: usize) -> Option<(usize, usize)> {
        let longest = units.saturating_add(units / LONGER).min(LONGEST);
        let length = (units..=longest).find(|&length| self.first(length).is_some())?;
        Some((self.take_exactly(length)?, length))
    }

    /// Takes a run of exactly `units` units out.
    pub(super) fn take_exactly(&self, units: usize) -> Option<usize> {
        let unit = self.first(units)?;
        self.fetched.set(self.fetched.get() + 1);
        self.pop(MAP.record(unit), units);
        Some(unit)
    }

    /// [`Stash::take_exactly`] for a run whose record says that `size` bytes can be used, unless a step
    /// of the scavenger's is due. Returns the record, too.
    #[inline(always)]
    pub(crate) fn take_ready(&self, units: usize, size: usize) -> Option<(usize, &'static Record)> {
        let unit = self.first(units)?;
        let record = MAP.record(unit);
        if self.is_step_due() || !scarce::is_usable(record, size) {
            return None;
        }
        self.fetched.set(self.fetched.get() + 1);
        self.pop(record, units);
        Some((unit, record))
    }

    /// Makes way where a run of `units` units would be taken from memory that was not used yet, although
    /// the runs that wait here may do, or may be a part of one that does.
    pub(crate) fn make_way(&self, units: usize) {
        if self.units.load(Ordering::Relaxed).saturating_mul(PART) >= units
            && !chunk::has_dirty(units)
        {
            self.release();
        }
    }

    /// Whether so much waits here that a visit is worth it, for a thread that would make the process grow.
    pub(super) fn has_plenty(&self) -> bool {
        self.units.load(Ordering::Relaxed) >= PLENTY
    }

    /// Whether nothing waits here.
    pub(super) fn is_empty(&self) -> bool {
        self.units.load(Ordering::Relaxed) == 0
    }

    /// Whether the caller of [`Stash::take`] should do a step of the scavenger's:
    /// it reads the clock, which costs as much as the take.
    #[inline]
    pub(crate) fn is_step_due(&self) -> bool {
        self.fetched.get() % STEP == STEP - 1
    }

    /// Gives all runs back to the chunk.
    pub(crate) fn release(&self) {
        if self.units.load(Ordering::Relaxed) == 0 {
            return;
        }
        for units in 1..=LONGEST {
            if self.units.load(Ordering::Relaxed) == 0 {
                break;
            }
            while let Some(unit) = self.first(units) {
                self.pop(MAP.record(unit), units);
                chunk::give(unit, units);
            }
        }
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
            runs.store(0, Ordering::Relaxed);
        }
        self.units.store(0, Ordering::Relaxed);
    }
}
