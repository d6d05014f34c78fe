//! The stash: free runs of units that a thread will probably need again soon.
//!
//! ```text
//!   length    1 unit      2        3      ...    64
//!             run         run      (none)        run
//!             run                                         newest first
//! ```
//!
//! A run from the chunk costs a lock and a search. Giving it back costs a lock and two merges. A
//! program that frees a buffer of 100 KiB and allocates the next one should not pay this. Nor
//! should a program whose blocks of 10 KiB fill and empty a few slabs. So runs of each length wait
//! here, bounded in bytes. A waiting run's first entry is a large block's, but its record says that
//! it is kept.
//!
//! Runs that no allocation needed between two passes of the scavenger go back to the chunk, which
//! purges them later. Before the process grows for something that these runs may serve, all runs of
//! this stash go back. So do the runs of some other threads' stashes (`visit`).
//!
//! Invariants: a run is [`Kind::Kept`](crate::address_map::Kind). Its record has its length and no
//! heap. Its pages may hold anything. Only the holder of the ownership accesses the stash, except
//! for its size.
//!
//! Called by `heap` (large blocks) and the other files of `cache`.

use core::cell::Cell;
use core::iter;
use core::ops::RangeInclusive;

use super::Cache;
use crate::address_map::{Entry, MAP};
use crate::chunk::{self, large_block};
use crate::memory_limit::{self, Nearness};
use crate::os;
use crate::size_class::{SLAB_MAX, UNIT};
use crate::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use crate::unit_record::Record;

/// Units in the longest run that a stash keeps: 4 MiB.
const LONGEST: usize = (4 << 20) / UNIT;
/// Units for all threads' stashes together (64 MiB). One stash gets 256 KiB to 4 MiB. All shared
/// caches' stashes together get 64 MiB more.
const ALL: usize = (64 << 20) / UNIT;
const MOST: usize = (4 << 20) / UNIT;
const LEAST: usize = (256 << 10) / UNIT;
/// One in this many runs that find no room displaces runs of other lengths. (If each run did, a
/// program with more lengths than fit would never find a run here.)
const DISPLACES: u32 = 8;
/// A stash that refuses and misses this many runs within one tick gets room for [`MORE`] units (4
/// MiB). All stashes together get at most [`ALL_MORE`] (64 MiB).
const REGRETS: u32 = 1000;
/// Refusals between two looks at the clock, a multiple of [`DISPLACES`].
const LOOK: u32 = 64;
const MORE: usize = (4 << 20) / UNIT;
const ALL_MORE: usize = (64 << 20) / UNIT;
/// With this many units (1 MiB), a stash is worth a visit before the process grows.
const PLENTY: usize = (1 << 20) / UNIT;
/// A stash gives its runs back for a run of at most [`PART`] times its size. All stashes together
/// do so for a run of at least 16 MiB ([`LONG`]).
const PART: usize = 16;
const LONG: usize = PART * PLENTY;
/// A run may be longer than requested by the requested length divided by this.
const LONGER: usize = 4;
/// One fetch in this many does a step of the scavenger. The first fetches in each tick do a step,
/// too, so that a program with few calls gives memory back.
const STEP: u32 = 128;
const FIRST_IN_TICK: u32 = 16;

/// Units that one stash may keep. The number falls as more caches are made.
static ROOM: AtomicUsize = AtomicUsize::new(MOST);
/// Units given to stashes beyond [`ROOM`].
static EXTRA: AtomicUsize = AtomicUsize::new(0);

/// Units that one stash may keep now: few if the memory limit is near.
fn most() -> usize {
    let most = ROOM.load(Ordering::Relaxed);
    if memory_limit::nearness() >= Nearness::Near { most.min(LEAST) } else { most }
}

pub(super) fn room_bytes() -> usize {
    most() * UNIT
}

pub(super) fn note_made(caches: usize) {
    let most = if chunk::is_limited() { LEAST } else { (ALL / caches).max(LEAST) };
    ROOM.fetch_min(most, Ordering::Relaxed);
}

pub(crate) fn note_address_limit() {
    ROOM.fetch_min(LEAST, Ordering::Relaxed);
}

/// Whether the stashes of `caches` together must give runs back for a run of `units` units.
pub(super) fn keep_plenty<'a>(caches: impl Iterator<Item = &'a Cache>, units: usize) -> bool {
    units >= LONG && caches.map(|cache| cache.stash.units()).sum::<usize>() * PART >= units
}

pub(super) fn mark_kept(unit: usize) {
    // The record comes first: the unit is a slab's until the entry changes.
    let record = MAP.record(unit);
    record.requested.store(Record::KEPT, Ordering::Relaxed);
    record.heap.store(0, Ordering::Relaxed);
    MAP.set_entry(unit, Entry::LARGE_HEAD);
}

/// Runs that wait for the next large block or slab. If all fields are zero, the stash is empty.
pub(crate) struct Stash {
    /// The newest run of each length. Its record leads to the next run (`by_owner`).
    runs: [AtomicU32; LONGEST + 1],
    units: AtomicUsize,
    /// Units that the stash may keep: a copy that the scavenger and [`Stash::keep`] update.
    room: Cell<usize>,
    /// The part of `room` that was granted because the stash was too small.
    extra: Cell<usize>,
    /// The fewest units since the scavenger's last pass.
    low: Cell<usize>,
    /// Runs refused and missed, in the tick of the last refusal.
    refused: Cell<u32>,
    missed: Cell<u32>,
    refused_at: Cell<u32>,
    displaced: Cell<usize>,
    /// Fetches until the scavenger's next step.
    quick_left: Cell<u32>,
    /// Whether every fetch does a step, because allocations are counted (`sampling`, `guard_draw`).
    is_counted: Cell<bool>,
    /// How many more of the first fetches in `tick` do a step each.
    steps_left: Cell<u32>,
    tick: Cell<u32>,
}

impl Stash {
    pub(crate) const LENGTHS: RangeInclusive<usize> = SLAB_MAX + 1..=LONGEST * UNIT;

    /// Keeps a run that is, or will be, [`Kind::Kept`](crate::address_map::Kind), if there is room.
    pub(crate) fn keep(&self, unit: usize, units: usize) -> bool {
        let room = most() + self.extra.get();
        self.room.set(room);
        let record = MAP.record(unit);
        if self.keep_ready(unit, record, units) {
            return true;
        }
        self.refused.set(self.refused.get() + 1);
        if units > LONGEST || !self.refused.get().is_multiple_of(DISPLACES) {
            return false;
        }
        (self.is_regretted() && self.get_extra() || self.displace(units))
            && self.keep_ready(unit, record, units)
    }

    fn is_regretted(&self) -> bool {
        if !self.refused.get().is_multiple_of(LOOK) {
            return false;
        }
        let now = os::coarse_ms();
        if self.refused_at.replace(now) != now {
            self.refused.set(0);
            self.missed.set(0);
        }
        let regretted = self.refused.get().min(self.missed.get()) >= REGRETS;
        if regretted {
            self.refused.set(0);
        }
        regretted
    }

    /// Gives back runs of other lengths, one by one, until `units` units fit. False if they cannot.
    fn displace(&self, units: usize) -> bool {
        let is_full = || self.units() + units > self.room.get();
        if self.of_length(units) + units > self.room.get() {
            return false;
        }
        for _ in 0..=LONGEST {
            let length = self.displaced.get();
            while is_full()
                && length != units
                && let Some(unit) = self.first(length)
            {
                self.pop(MAP.record(unit), length);
                chunk::give(unit, length);
            }
            if !is_full() {
                return true;
            }
            self.displaced.set(length.checked_sub(1).unwrap_or(LONGEST));
        }
        false
    }

    fn of_length(&self, units: usize) -> usize {
        let next = |&unit: &usize| match MAP.record(unit).by_owner.next.load(Ordering::Relaxed) {
            0 => None,
            next => Some(next as usize),
        };
        iter::successors(self.first(units), next).count() * units
    }

    /// Gets more room. Returns false if there is none, or if address space is limited.
    fn get_extra(&self) -> bool {
        if chunk::is_limited() {
            return false;
        }
        if EXTRA.fetch_add(MORE, Ordering::Relaxed) >= ALL_MORE {
            EXTRA.fetch_sub(MORE, Ordering::Relaxed);
            return false;
        }
        self.extra.set(self.extra.get() + MORE);
        self.room.set(self.room.get() + MORE);
        true
    }

    /// [`Stash::keep`], if `room`, which may be out of date, suffices.
    #[inline(always)]
    pub(crate) fn keep_ready(&self, unit: usize, record: &Record, units: usize) -> bool {
        let total = self.units.load(Ordering::Relaxed) + units;
        let Some(runs) = self.runs.get(units).filter(|_| total <= self.room.get()) else {
            return false;
        };
        record.by_owner.next.store(runs.load(Ordering::Relaxed), Ordering::Relaxed);
        runs.store(unit as u32, Ordering::Relaxed);
        self.units.store(total, Ordering::Relaxed);
        true
    }

    #[inline(always)]
    fn first(&self, units: usize) -> Option<usize> {
        match self.runs.get(units)?.load(Ordering::Relaxed) {
            0 => None,
            unit => Some(unit as usize),
        }
    }

    /// Takes out a run, which must be the newest of its length.
    #[inline(always)]
    fn pop(&self, record: &Record, units: usize) {
        let next = record.by_owner.next.load(Ordering::Relaxed);
        self.runs[units].store(next, Ordering::Relaxed);
        let left = self.units.load(Ordering::Relaxed) - units;
        self.units.store(left, Ordering::Relaxed);
        if left < self.low.get() {
            self.low.set(left);
        }
    }

    /// The unit and length of a run of `units` units, or of a slightly longer run.
    pub(crate) fn take(&self, units: usize) -> Option<(usize, usize)> {
        let length = Self::fitting(units).find(|&length| self.first(length).is_some());
        let length = length.unwrap_or(units);
        Some((self.take_exactly(length)?, length))
    }

    pub(crate) fn take_exactly(&self, units: usize) -> Option<usize> {
        let Some(unit) = self.first(units) else {
            self.missed.set(self.missed.get() + 1);
            return None;
        };
        self.pop(MAP.record(unit), units);
        Some(unit)
    }

    /// [`Stash::take_exactly`] for a block of `size` bytes, if the run is usable to its end and no
    /// step of the scavenger is due. Passes the unit and the record to `use_it`.
    #[inline(always)]
    pub(crate) fn take_ready<R>(
        &self,
        units: usize,
        size: usize,
        use_it: impl FnOnce(usize, &Record) -> R,
    ) -> Option<R> {
        let unit = self.first(units)?;
        let record = MAP.record(unit);
        let left = self.quick_left.get();
        if left == 0 || !large_block::is_usable_as_long(record, size) {
            return None;
        }
        self.quick_left.set(left - 1);
        self.pop(record, units);
        Some(use_it(unit, record))
    }

    /// [`Stash::take`] for a block of `size` bytes, under the conditions of [`Stash::take_ready`].
    pub(crate) fn take_fitting_ready(&self, size: usize) -> Option<(usize, &'static Record)> {
        let (length, unit) = Self::fitting(size.div_ceil(UNIT))
            .find_map(|length| Some((length, self.first(length)?)))?;
        let record = MAP.record(unit);
        let left = self.quick_left.get();
        if left == 0 || !large_block::is_usable(record, size) {
            return None;
        }
        self.quick_left.set(left - 1);
        self.pop(record, length);
        Some((unit, record))
    }

    /// The lengths of runs that serve a request for `units` units.
    fn fitting(units: usize) -> RangeInclusive<usize> {
        units..=units.saturating_add(units / LONGER).min(LONGEST)
    }

    /// Gives all runs back if a run of `units` units would take unused memory that they may serve.
    pub(crate) fn make_way(&self, units: usize) {
        if self.units().saturating_mul(PART) >= units && !chunk::has_dirty(units) {
            self.release();
        }
    }

    /// Whether a thread that would make the process grow by `units` units should visit the cache.
    pub(super) fn has_plenty(&self, units: usize) -> bool {
        self.units() >= if units >= LONG { LEAST } else { PLENTY.max(units / PART) }
    }

    pub(super) fn units(&self) -> usize {
        self.units.load(Ordering::Relaxed)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.units() == 0
    }

    /// Sets the number of fetches that need no further step.
    pub(crate) fn note_step(&self) {
        let now = os::coarse_ms();
        if self.tick.replace(now) != now {
            self.steps_left.set(FIRST_IN_TICK);
        }
        let left = self.steps_left.get().checked_sub(1);
        self.steps_left.set(left.unwrap_or(0));
        let is_quick = left.is_none() && !self.is_counted.get();
        self.quick_left.set(if is_quick { STEP } else { 0 });
    }

    /// If `counted`, makes each fetch take a slow path (`sampling`, `guard_draw`).
    pub(super) fn count_fetches(&self, counted: bool) {
        self.is_counted.set(counted);
        self.quick_left.set(0);
    }

    pub(crate) fn release(&self) {
        self.release_down_to(0);
    }

    /// The longest runs go first.
    fn release_down_to(&self, most: usize) {
        for units in (1..=LONGEST).rev() {
            while self.units.load(Ordering::Relaxed) > most
                && let Some(unit) = self.first(units)
            {
                self.pop(MAP.record(unit), units);
                chunk::give(unit, units);
            }
        }
    }

    /// Gives back runs that were not needed after the scavenger's last pass.
    pub(super) fn pass(&self) {
        if self.low.get() >= MORE {
            self.give_extra_back();
        }
        self.room.set(most() + self.extra.get());
        let units = self.units.load(Ordering::Relaxed);
        self.release_down_to(units - self.low.get().min(units));
        self.low.set(self.units.load(Ordering::Relaxed));
    }

    pub(super) fn give_extra_back(&self) {
        let extra = self.extra.take();
        // (In a forked child the two numbers may be from different times.)
        let _ = EXTRA.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |all| {
            Some(all.saturating_sub(extra))
        });
        self.room.set(0);
    }

    /// For a forked child: the runs may have been changing during the copy.
    pub(super) fn forget_after_fork(&self) {
        for runs in &self.runs {
            runs.store(0, Ordering::Relaxed);
        }
        self.units.store(0, Ordering::Relaxed);
        self.low.set(0);
        self.give_extra_back();
    }
}
