//! Chunks: runs of units carved from the window, merged, and given back.
//!
//! ```text
//!             take                      give
//!   window --------> slab, large block -----> dirty runs --purge--> clean runs
//!      ^ frontier         ^      ^                 |  oldest first      |
//!      |                  |      +---- reuse ------+                    |
//!      |                  +------------- reuse (reads as zero) ---------+
//! ```
//!
//! *Dirty* runs may still have pages. They are reused first, because a fresh page costs a fault.
//! The *low water* is the fewest dirty units during the last purge delay. After each part of a
//! delay it goes back to the kernel, the oldest runs first (`low_water`). A thread that gives a run
//! back purges only a few runs.
//!
//! A run merges only with runs of the same state. A merged dirty run gets the queue place of its
//! *oldest* part. So it is purged in time, even if a neighbour is freed again and again.
//!
//! If no dirty run is large enough for a *long* run (1 MiB or more), `take_joined` joins a dirty
//! run with its free neighbours. If this fails, the run takes clean or fresh units. Then as many
//! dirty units go back, except a few. So old copies of a growing buffer do not stay resident.
//!
//! Before a request is refused, all dirty runs are purged, and all runs merge. `process` lists the
//! callers. One lock protects all. System calls are made without the lock, with these exceptions:
//! calls at the frontier, under an address limit or without writable memory, and in `purge_all`.

mod address_limit;
mod dense;
pub mod large_block;
mod low_water;
pub mod metadata;
mod process;
mod runs;
mod side;
mod window;

use crate::address_map::{AddressMap, Entry, Kind};
use crate::memory_limit;
use crate::os::{self, Memory};
use crate::purge_delay;
use crate::size_class::UNIT;

use crate::sync::atomic::Ordering;
use crate::unit_list::{ByOwner, UnitList};
use dense::Region;
use low_water::LowWater;
pub use process::*;
use runs::{RunIndex, State};
pub use side::Side;
pub use window::Back;
use window::Window;

/// Dirty units that may wait: this many, plus twice the number of units in use.
const ALLOWANCE: usize = (256 << 20) / UNIT;
/// Dirty units that may wait while the heap grows by short runs: this many, plus a quarter of the
/// units in use.
const FEW: usize = (32 << 20) / UNIT;
/// The fewest units of a long run: 1 MiB. For dirty units that may wait while the heap grows by a
/// long run, see `pay_for_growth` and `few_beside`.
const LONG: usize = (1 << 20) / UNIT;
const FEW_BESIDE_LONG: usize = (2 << 20) / UNIT;
const PART_OF_LONG: usize = 32;
const PART_OF_OTHERS: usize = 8;
/// `take_joined` makes a long run around a dirty run of at least a quarter of the length.
const PART_WARM: usize = 4;
const LOOKS: usize = 8;
const HOPS: usize = 32;
/// From this length on the kernel zeroes memory faster than heapwright does.
pub const ZERO_BY_KERNEL: usize = 32 << 20;

/// The use that the caller has for units.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// Any use.
    Any,
    /// The run must read as zero.
    Zero,
    /// The caller will probably fill the unit to its end, and then take the next one.
    Dense,
}

impl Want {
    /// Whether a run should be clean. To zero a shorter run in place costs less than page faults.
    fn is_zero_by_kernel(self, units: usize) -> bool {
        self == Self::Zero && units * UNIT >= ZERO_BY_KERNEL
    }
}

/// A run of units that was taken.
#[derive(Clone, Copy)]
pub struct Run {
    /// Its first unit.
    pub unit: usize,
    /// Whether the run reads as zero.
    pub zero: bool,
    /// Whether the caller should put a huge page over the run and the units behind it.
    pub dense: bool,
}

/// All runs of one window.
pub struct Chunk<O: 'static> {
    map: &'static AddressMap,
    window: Window<O>,
    dirty: RunIndex,
    clean: RunIndex,
    absent: RunIndex,
    /// Units that their owners have withdrawn.
    withdrawn: usize,
    cut: usize,
    /// Dirty runs, newest first.
    queue: UnitList<ByOwner>,
    oldest: usize,
    taken: usize,
    /// The most units that were in use when another run was requested.
    most_taken: usize,
    low: LowWater,
    /// `due`: dirty units that should go back. `owed`: the part of `due` that growth has caused.
    due: usize,
    owed: usize,
    /// `due_waited`: the ms in which the due units were not needed. `seen`: time of last `expire`.
    due_waited: i32,
    seen: u32,
    region: Region,
    huge_pages: bool,
}

impl<O: Memory + Copy> Chunk<O> {
    /// A chunk of a window that is not open yet: it has no units.
    pub const fn closed(os: O, map: &'static AddressMap) -> Self {
        Self {
            map,
            window: Window::closed(os, map),
            dirty: RunIndex::new(map, State::Dirty),
            clean: RunIndex::new(map, State::Clean),
            absent: RunIndex::new(map, State::Absent),
            withdrawn: 0,
            cut: 0,
            queue: UnitList::new(),
            oldest: 0,
            taken: 0,
            most_taken: 0,
            low: LowWater::new(),
            due: 0,
            owed: 0,
            due_waited: 0,
            seen: 0,
            region: Region::none(),
            huge_pages: false,
        }
    }

    /// Opens the window: at most `most` bytes.
    #[cfg(test)]
    pub fn open(&mut self, most: usize) -> bool {
        self.open_as(most, false)
    }

    /// Opens the window with at most `most` bytes. For `scattered` see `window`.
    pub fn open_as(&mut self, most: usize, scattered: bool) -> bool {
        // Unit 0 is never a run, so that 0 can end lists of units.
        let opened = self.window.open(most, scattered) && self.window.advance(1).is_some();
        if opened {
            self.map.set_entry(0, Entry::METADATA);
        }
        opened
    }

    /// Takes a run of exactly `units` units. Their entries are still `FREE`.
    pub fn take(&mut self, units: usize, want: Want) -> Option<Run> {
        let dirty = self.dirty.units();
        let run = self
            .take_dirty(units, want)
            .or_else(|| self.take_dense(want))
            .or_else(|| self.take_joined(units, want))
            .or_else(|| self.take_clean(units))
            .or_else(|| self.take_absent(units))
            .or_else(|| self.take_fresh(units))
            .or_else(|| self.take_last(units))?;
        self.note_taken(units, dirty);
        Some(run)
    }

    /// `dirty`: dirty units before the take. Returns whether all taken units read as zero.
    fn note_taken(&mut self, units: usize, dirty: usize) -> bool {
        // This run does not count: if a block moves into the run, its old run is free soon.
        self.most_taken = self.most_taken.max(self.taken);
        self.taken += units;
        let fresh = units - (dirty - self.dirty.units());
        if fresh > 0 {
            memory_limit::note_fresh(fresh * UNIT);
            self.pay_for_growth(units, fresh);
        }
        fresh == units
    }

    /// If many dirty units wait, makes up to `fresh` of them due: no dirty run fitted a request.
    fn pay_for_growth(&mut self, units: usize, fresh: usize) {
        let few = if units < LONG {
            FEW + self.taken / 4
        } else if memory_limit::is_short_of(0) {
            0
        } else {
            // `most`: the most units in use before this run. The units in use and the waiting units
            // may be 2 x `most` in total. They may be 5/4 x `most` if this run makes the heap
            // larger than ever, and is longer than all other runs in total.
            let (others, most) = (self.taken - units, self.most_taken);
            let grows = self.taken > most && units > others;
            let in_memory = if grows { most + most / 4 } else { 2 * most };
            let as_before = in_memory.saturating_sub(self.taken);
            as_before.max(few_beside(units, others))
        };
        let may_wait = few.min(memory_limit::may_wait() / UNIT);
        let many = self.dirty.units().saturating_sub(may_wait);
        self.owed = (self.owed + fresh).min(many.max(self.owed));
        self.due = self.due.max(self.owed);
    }

    fn pay(&mut self, units: usize) -> bool {
        let is_owed = self.owed > 0;
        self.owed = self.owed.saturating_sub(units);
        is_owed
    }

    fn take_dirty(&mut self, units: usize, want: Want) -> Option<Run> {
        if want.is_zero_by_kernel(units) {
            let clean = self.take_clean(units);
            if clean.is_some() {
                return clean;
            }
        }
        let unit = self.dirty.find(units)?;
        self.split(unit, units, State::Dirty);
        Some(Run { unit, zero: false, dense: false })
    }

    fn take_clean(&mut self, units: usize) -> Option<Run> {
        let unit = self.clean.find(units)?;
        self.split(unit, units, State::Clean);
        Self::note_touched(units);
        Some(Run { unit, zero: true, dense: false })
    }

    /// Notes that clean units are taken. Their pages may have gone back to the kernel.
    fn note_touched(units: usize) {
        if units > 0 && purge_delay::were_given() {
            purge_delay::note_touched(units * UNIT, os::coarse_ms());
        }
    }

    fn split(&mut self, unit: usize, units: usize, state: State) {
        if state == State::Dirty {
            let stamp = self.map.record(unit).stamp.load(Ordering::Relaxed);
            let older = self.queue.after(self.map, unit);
            let newer = self.unqueue(unit);
            let length = self.dirty.remove(unit);
            if length > units {
                let rest = unit + units;
                self.dirty.insert(rest, length - units);
                self.enqueue(rest, newer, older, stamp);
            }
            self.note_fewer();
        } else {
            let length = self.clean.remove(unit);
            if length > units {
                self.clean.insert(unit + units, length - units);
            }
        }
    }

    fn take_fresh(&mut self, units: usize) -> Option<Run> {
        let advance = self.window.advance(units)?;
        if let Some((unit, units)) = advance.skipped {
            self.map.set_entries(unit, units, Entry::FREE);
            self.give_clean(unit, units);
        }
        self.map.set_entries(advance.unit, units, Entry::FREE);
        Some(Run { unit: advance.unit, zero: true, dense: false })
    }

    /// Makes a long run of one of the longest dirty runs, its free neighbours and fresh units. So a
    /// longer buffer can reuse the pages of the buffer before it.
    fn take_joined(&mut self, units: usize, want: Want) -> Option<Run> {
        if units < LONG || want.is_zero_by_kernel(units) {
            return None;
        }
        let least = units / PART_WARM;
        let warm: [Option<usize>; LOOKS] = {
            let mut longest = self.dirty.longest().take_while(|&(_, length)| length >= least);
            core::array::from_fn(|_| longest.next().map(|(unit, _)| unit))
        };
        warm.into_iter().map_while(|unit| unit).find_map(|unit| self.join(unit, units))
    }

    fn take_last(&mut self, units: usize) -> Option<Run> {
        let (last, _) = self.free_beside(self.window.frontier(), true)?;
        self.join(last, units)
    }

    /// Takes `units` units of the free run at `unit`, its free neighbours and fresh units.
    fn join(&mut self, unit: usize, units: usize) -> Option<Run> {
        let end = self.reach(unit, units);
        let mut first = unit;
        for _ in 0..HOPS {
            if end - first >= units {
                break;
            }
            let Some((before, _)) = self.free_beside(first, true) else { break };
            first = before;
        }
        let lacks = units.saturating_sub(end - first);
        if !self.lengthen(end, lacks) {
            return None;
        }
        let start = unit.min((end + lacks).saturating_sub(units).max(first));
        let dirty = self.dirty.units();
        self.take_range(first, start, units);
        let clean = units - (dirty - self.dirty.units());
        Self::note_touched(clean - lacks);
        Some(Run { unit: start, zero: clean == units, dense: false })
    }

    fn reach(&self, unit: usize, units: usize) -> usize {
        let mut end = unit;
        for _ in 0..HOPS {
            if end - unit >= units {
                break;
            }
            let Some((behind, _)) = self.free_beside(end, false) else { break };
            end = behind + RunIndex::length(self.map, behind);
        }
        end
    }

    /// Makes `units` fresh units free. Fails unless `end` is the frontier.
    fn lengthen(&mut self, end: usize, units: usize) -> bool {
        if units == 0 {
            return true;
        }
        let lengthened = self.window.advance_in_place(end, units);
        if lengthened {
            self.map.set_entries(end, units, Entry::FREE);
            self.give_clean(end, units);
        }
        lengthened
    }

    /// Takes units from adjacent free runs, the first of which begins at `first`.
    fn take_range(&mut self, first: usize, start: usize, units: usize) {
        let (mut at, end) = (first, start + units);
        while at < end {
            let length = RunIndex::length(self.map, at);
            let (_, state) = self.free_beside(at, false).expect("a free run");
            let next = at + length;
            if next <= start {
            } else if at >= start {
                self.split(at, length.min(end - at), state);
            } else if state == State::Dirty {
                self.detach_end(at, next - start);
                self.note_fewer();
            } else {
                self.clean.remove(at);
                self.clean.insert(at, start - at);
            }
            at = next;
        }
    }

    /// Gives back a run whose pages may hold anything.
    pub fn give(&mut self, unit: usize, units: usize, now: u32) {
        self.taken -= units;
        self.map.set_entries(unit, units, Entry::FREE);
        self.give_dirty(unit, units, now);
        self.shed();
    }

    /// Gives back a run that reads as zero.
    pub fn give_unused(&mut self, unit: usize, units: usize) {
        self.taken -= units;
        self.map.set_entries(unit, units, Entry::FREE);
        self.give_clean(unit, units);
        self.shed();
    }

    fn give_dirty(&mut self, mut unit: usize, mut units: usize, now: u32) {
        let mut stamp = now;
        let mut newer = None;
        let mut older = self.queue.first();
        for before in [true, false] {
            let Some(neighbour) = self.neighbour(unit, units, before, State::Dirty) else {
                continue;
            };
            let age = self.map.record(neighbour).stamp.load(Ordering::Relaxed);
            let behind = self.queue.after(self.map, neighbour);
            let ahead = self.unqueue(neighbour);
            if older == Some(neighbour) {
                older = behind;
            }
            if newer == Some(neighbour) {
                newer = ahead;
            }
            if waited(age, stamp) >= 0 {
                (stamp, newer, older) = (age, ahead, behind);
            }
            units += self.dirty.remove(neighbour);
            unit = unit.min(neighbour);
        }
        self.dirty.insert(unit, units);
        self.enqueue(unit, newer, older, stamp);
    }

    fn give_clean(&mut self, mut unit: usize, mut units: usize) {
        for before in [true, false] {
            if let Some(neighbour) = self.neighbour(unit, units, before, State::Clean) {
                units += self.clean.remove(neighbour);
                unit = unit.min(neighbour);
            }
        }
        self.clean.insert(unit, units);
    }

    fn neighbour(&self, unit: usize, units: usize, before: bool, state: State) -> Option<usize> {
        let at = if before { unit.checked_sub(1)? } else { unit + units };
        if at >= self.window.frontier() {
            return None;
        }
        // SAFETY: units below the frontier are below the map's limit.
        let entry = unsafe { self.map.entry(at) };
        let record = self.map.record(at);
        let same = entry.kind() == Kind::Free
            && record.state.load(Ordering::Relaxed) == state as u8
            // A run whose pages are going back now is in no index.
            && record.units.load(Ordering::Relaxed) != 0;
        same.then(|| if before { unit - RunIndex::length(self.map, at) } else { at })
    }

    fn free_beside(&self, unit: usize, before: bool) -> Option<(usize, State)> {
        [State::Dirty, State::Clean]
            .into_iter()
            .find_map(|state| Some((self.neighbour(unit, 0, before, state)?, state)))
    }

    fn enqueue(&mut self, unit: usize, newer: Option<usize>, older: Option<usize>, stamp: u32) {
        self.map.record(unit).stamp.store(stamp, Ordering::Relaxed);
        self.queue.insert_after(self.map, newer, unit);
        if older.is_none() {
            self.oldest = unit;
        }
    }

    fn unqueue(&mut self, unit: usize) -> Option<usize> {
        let newer = self.queue.before(self.map, unit);
        if self.oldest == unit {
            self.oldest = newer.unwrap_or(0);
        }
        self.queue.remove(self.map, unit);
        newer
    }

    /// If dirty units are due, takes the oldest dirty run, or its end, out of all indexes. The tags
    /// of such a *detached* run contain 0 units, so that no run merges with it.
    fn expire(&mut self, now: u32, delay: i32) -> Option<(usize, usize)> {
        if delay < 0 {
            return None;
        }
        let unseen = waited(self.seen, now);
        self.seen = now;
        if let Some(due) = self.low.due(now, delay, self.dirty.units()) {
            (self.due, self.owed) = (due, 0);
            self.due_waited = delay.max(unseen);
            self.rest_region(now);
        }
        let too_many = self.dirty.units().saturating_sub(ALLOWANCE + 2 * self.taken);
        let due = if delay == 0 { self.dirty.units() } else { self.due.max(too_many) };
        self.detach_oldest(due)
    }

    fn detach_oldest(&mut self, most: usize) -> Option<(usize, usize)> {
        if self.oldest == 0 || most == 0 {
            return None;
        }
        // Owed units go back in pieces of at most a huge page. The pages of detached units are
        // still in memory, but other threads no longer count these units as owed.
        let end = self.oldest + RunIndex::length(self.map, self.oldest);
        let most = if self.owed > 0 { most.min((end - 1) % dense::HUGE + 1) } else { most };
        let run = self.detach_end(self.oldest, most);
        self.due = self.due.saturating_sub(run.1);
        self.low.give(run.1);
        Some(run)
    }

    fn expire_owed(&mut self) -> Option<(usize, usize)> {
        let run = self.detach_oldest(self.owed)?;
        self.pay(run.1);
        Some(run)
    }

    fn waiting(&self) -> usize {
        self.dirty.units() + self.opened_units()
    }

    fn detach_end(&mut self, unit: usize, units: usize) -> (usize, usize) {
        let length = RunIndex::length(self.map, unit);
        if length <= units {
            return self.detach(unit);
        }
        let keep = length - units;
        self.dirty.remove(unit);
        self.dirty.insert(unit, keep);
        self.tag_detached(unit + keep, units);
        (unit + keep, units)
    }

    fn detach(&mut self, unit: usize) -> (usize, usize) {
        self.unqueue(unit);
        let units = self.dirty.remove(unit);
        self.tag_detached(unit, units);
        (unit, units)
    }

    fn tag_detached(&self, unit: usize, units: usize) {
        for tag in [unit, unit + units - 1] {
            self.map.record(tag).units.store(0, Ordering::Relaxed);
        }
    }

    fn purge_run(map: &AddressMap, os: &impl Memory, (unit, units): (usize, usize)) -> bool {
        // SAFETY: the run is free, committed, and detached or under the lock: no thread uses it.
        unsafe { os.decommit(map.address_of(unit), units * UNIT) }
    }

    fn attach(&mut self, (unit, units): (usize, usize), purged: bool, now: u32) {
        if purged {
            self.give_clean(unit, units);
        } else {
            self.give_dirty(unit, units, now);
        }
    }

    fn purge_all(&mut self, keep: usize) -> usize {
        let mut purged = 0;
        let os = self.window.os();
        self.close_region(os::coarse_ms());
        if self.window.is_limited() {
            let dirty = self.dirty.units();
            self.shed_all_but(keep);
            purged = dirty - self.dirty.units();
        }
        while self.dirty.units() > keep {
            let unit = self.oldest;
            let units = RunIndex::length(self.map, unit);
            if !Self::purge_run(self.map, &os, (unit, units)) {
                break;
            }
            self.detach(unit);
            self.give_clean(unit, units);
            purged += units;
        }
        self.note_fewer();
        purged
    }

    /// Call this after dirty units were taken out: no more units can be due than are dirty.
    fn note_fewer(&mut self) {
        self.low.note(self.dirty.units());
        self.due = self.due.min(self.dirty.units());
        self.owed = self.owed.min(self.due);
    }

    /// Lengthens the run `[unit, unit + units)` by `more` units if they are free. Returns whether
    /// the new part reads as zero.
    fn extend(&mut self, unit: usize, units: usize, more: usize) -> Option<bool> {
        let end = unit + units;
        let have = self.reach(end, more) - end;
        if !self.lengthen(end + have, more.saturating_sub(have)) {
            return None;
        }
        let dirty = self.dirty.units();
        self.take_range(end, end, more);
        Some(self.note_taken(more, dirty))
    }
}

fn few_beside(units: usize, others: usize) -> usize {
    FEW_BESIDE_LONG.max(units / PART_OF_LONG) + others / PART_OF_OTHERS
}

/// Milliseconds from `since` to `until`. Below zero if another thread's clock was a bit ahead.
pub const fn waited(since: u32, until: u32) -> i32 {
    let waited = until.wrapping_sub(since).cast_signed();
    // A value far below zero is a time too long for the type.
    if waited < -60_000 { i32::MAX } else { waited }
}

#[cfg(test)]
mod tests;
