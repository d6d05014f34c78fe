//! Scarce address space: what the heap does not use goes back, addresses and all.
//!
//! ```text
//!   free runs      | dirty | clean |  --shed-->  | absent |  --take--> reserved again
//!
//!   large block    | in use, whole pages | tail |  --cut-->  | in use | nothing |
//!                    unit 0      unit 1
//! ```
//!
//! Under `RLIMIT_AS` (`ulimit -v`) each mapped page counts, touched or not, and what the
//! heap holds is missing elsewhere: the C library can map no stack for a thread, and the
//! loader no library. So in a thrifty window whose limit is known:
//!
//! - Free runs stay mapped up to an eighth of what is left to others. What is
//!   more is unmapped, at once and not after a delay: clean runs first, then the oldest
//!   dirty ones. Their units stay free, and are *absent* until they are taken. A heap
//!   that is empty so keeps at most a ninth of the limit.
//! - Before a request is refused, all free runs become absent, and large blocks
//!   lose the pages behind their last byte: a block of 100,000 bytes then takes 100 KiB
//!   of address space and not 128.
//!
//! (Of runs that a thread's cache keeps, too.)
//!
//! Both split mappings, of which the kernel allows 65,530 by default, so there are only so
//! many holes of each kind.
//!
//! **A cut block.** `CUT` in its record's `usable` says that there is nothing behind the
//! bytes in use. It is set under the chunk's lock, and cleared under it when the tail was
//! mapped again or given up. The owner changes `usable` without the lock as long as it
//! sees no cut, by a compare-and-exchange: the first one wins, and the other sees it.
//!
//! In other windows no block is cut. Free runs become absent there only if a request would be
//! refused for lack of writable memory (`RLIMIT_DATA`), not of addresses. They stay reserved.
//!
//! Called by the rest of `chunk`, under its lock; [`set_usable`] by `heap` (large blocks).

use super::process::CHUNK;
use super::{Chunk, Run, RunIndex, State, Window};
use crate::address_map::{Entry, HARDENED, Kind, MAP};
use crate::os::{self, Memory};
use crate::size_class::UNIT;
use crate::sync::atomic::Ordering;
use crate::unit_record::Record;

/// In a large block's `usable`: nothing is mapped behind the bytes in use.
const CUT: usize = 1 << (usize::BITS - 1);
/// Holes of each kind, at most.
const MOST_HOLES: usize = 8192;
/// Units of free runs that stay in any case: 1 MiB.
const KEPT: usize = (1 << 20) / UNIT;
/// Of the address space that is left to others, free runs may be one of so many parts.
const SHARE: usize = 8;

/// Bytes the program may use of the large block of a record.
#[inline]
pub fn usable(record: &Record) -> usize {
    record.usable.load(Ordering::Relaxed) & !CUT
}

/// Whether `size` bytes of the caller's large block can be used as it is, and not much more.
#[inline]
pub fn is_usable(record: &Record, size: usize) -> bool {
    // One compare, which a cut block does not pass.
    record.usable.load(Ordering::Relaxed).wrapping_sub(size) < UNIT + size / 4
}

/// [`is_usable`] for a block whose run has just the units that `size` bytes take.
#[inline]
pub fn is_usable_as_long(record: &Record, size: usize) -> bool {
    record.usable.load(Ordering::Relaxed).wrapping_sub(size) < UNIT
}

/// Says how many bytes, in whole pages and within its run, the program may use of the
/// caller's large block at `unit`. False: there is no address space for more than before.
#[inline]
pub fn set_usable(unit: usize, usable: usize) -> bool {
    // Most blocks are as long as the last one of their run.
    MAP.record(unit).usable.load(Ordering::Relaxed) == usable || change_usable(unit, usable)
}

#[inline(never)]
fn change_usable(unit: usize, usable: usize) -> bool {
    let record = MAP.record(unit);
    let mut before = record.usable.load(Ordering::Relaxed);
    while before & CUT == 0 {
        let set =
            record.usable.compare_exchange(before, usable, Ordering::Relaxed, Ordering::Relaxed);
        match set {
            Ok(_) => return true,
            Err(other) => before = other,
        }
    }
    if usable <= before & !CUT {
        // The bytes in between may stay.
        return true;
    }
    let mut chunk = CHUNK.lock();
    let mended = chunk.mend_tail(unit);
    if mended {
        record.usable.store(usable, Ordering::Relaxed);
    }
    mended
}

/// [`set_usable`] for fewer bytes, under the lock.
pub(super) fn set_usable_locked(record: &Record, usable: usize) {
    // What is cut stays so: the bytes in between may stay.
    if record.usable.load(Ordering::Relaxed) & CUT == 0 {
        record.usable.store(usable, Ordering::Relaxed);
    }
}

impl<O: Memory + Copy> Chunk<O> {
    /// Takes a run whose addresses had gone back.
    pub(super) fn take_absent(&mut self, units: usize) -> Option<Run> {
        let run = self.absent.find(units)?;
        let end = run + RunIndex::length(self.map, run);
        // At its end, if a mapping of the program's own lies at its start.
        let unit = [run, end - units]
            .into_iter()
            .find(|&unit| self.window.get_back(self.map.address_of(unit), units * UNIT))?;
        self.absent.remove(run);
        for (from, to) in [(run, unit), (unit + units, end)] {
            if from < to {
                self.absent.insert(from, to - from);
            }
        }
        Some(Run { unit, zero: true, dense: false })
    }

    /// Lets free runs go that others may lack.
    pub(super) fn shed(&mut self) {
        if self.window.is_scarce() {
            self.shed_all_but(KEPT.max(self.window.left_to_others() / SHARE / UNIT));
        }
    }

    /// Lets all free runs go but `keep` units.
    pub(super) fn shed_all_but(&mut self, keep: usize) {
        loop {
            let free = self.clean.units() + self.dirty.units();
            if free <= keep || self.absent.runs() >= MOST_HOLES {
                return;
            }
            let (unit, units) = match self.clean.any() {
                Some(unit) => {
                    let units = RunIndex::length(self.map, unit).min(free - keep);
                    self.split(unit, units, State::Clean);
                    (unit, units)
                }
                None => {
                    let run = self.detach_end(self.oldest, free - keep);
                    self.note_fewer();
                    run
                }
            };
            // SAFETY: the units are free, committed, and in no index: nobody uses them.
            if !unsafe { self.window.give_back(self.map.address_of(unit), units * UNIT) } {
                // The kernel keeps no more mappings apart. The pages go at least.
                let os = self.window.os();
                let purged = Self::purge_run(self.map, &os, (unit, units));
                self.attach((unit, units), purged, os::coarse_ms());
                return;
            }
            self.insert_absent(unit, units);
        }
    }

    /// Makes free runs absent. For a request that would be refused for lack of writable memory
    /// (`RLIMIT_DATA`, `vm.overcommit_memory=2`), although address space is not scarce. Whether any
    /// run became absent.
    pub(super) fn retract_free(&mut self) -> bool {
        let before = self.absent.units();
        if self.window.is_generous() {
            self.shed_all_but(0);
        }
        self.absent.units() > before
    }

    /// Changes the window by `change`. If it becomes thrifty, the addresses of absent runs go, too.
    pub(super) fn become_thrifty(&mut self, change: impl FnOnce(&mut Window<O>)) {
        let was_generous = self.window.is_generous();
        change(&mut self.window);
        if was_generous && !self.window.is_generous() {
            let os = self.window.os();
            for (unit, units) in self.absent.longest() {
                // SAFETY: reserved, and neither committed nor in use. (If the kernel allows no more
                // mappings, the run stays absent for good.)
                unsafe { os.release(self.map.address_of(unit), units * UNIT) };
            }
        }
    }

    fn insert_absent(&mut self, mut unit: usize, mut units: usize) {
        for before in [true, false] {
            if let Some(neighbour) = self.neighbour(unit, units, before, State::Absent) {
                units += self.absent.remove(neighbour);
                unit = unit.min(neighbour);
            }
        }
        self.absent.insert(unit, units);
    }

    /// Cuts what is behind the bytes in use off all large blocks. Returns whether there
    /// was anything. Takes time in proportion to the window.
    pub(super) fn cut_tails(&mut self) -> bool {
        if !self.window.is_scarce() {
            return false;
        }
        let before = self.cut;
        for unit in 1..self.window.frontier() {
            // SAFETY: units below the frontier are below the map's limit.
            if unsafe { self.map.entry(unit) }.kind() == Kind::LargeHead && self.cut < MOST_HOLES {
                self.cut_tail(unit);
            }
        }
        self.cut > before
    }

    fn cut_tail(&mut self, unit: usize) {
        let record = self.map.record(unit);
        let size = record.units.load(Ordering::Relaxed) as usize * UNIT;
        let used = record.usable.load(Ordering::Relaxed);
        if used >= size || record.heap.load(Ordering::Relaxed) == HARDENED {
            // All of it is in use; or it is cut. Or the tail is a guard.
            return;
        }
        let cut =
            record.usable.compare_exchange(used, used | CUT, Ordering::Relaxed, Ordering::Relaxed);
        if cut.is_ok() {
            let tail = self.map.address_of(unit).wrapping_add(used);
            // SAFETY: committed, in whole pages, and behind what the owner uses, which sees the
            // cut before it would use more, and then waits for the lock.
            if unsafe { self.window.give_back(tail, size - used) } {
                self.cut += 1;
            } else {
                // The kernel keeps no more mappings apart.
                record.usable.store(used, Ordering::Relaxed);
            }
        }
    }

    /// Maps again what was cut off the large block at `unit`. False: it cannot be had.
    pub(super) fn mend_tail(&mut self, unit: usize) -> bool {
        let record = self.map.record(unit);
        let used = record.usable.load(Ordering::Relaxed);
        if used & CUT == 0 {
            return true;
        }
        let used = used & !CUT;
        let size = record.units.load(Ordering::Relaxed) as usize * UNIT;
        let mended =
            self.window.get_back(self.map.address_of(unit).wrapping_add(used), size - used);
        if mended {
            record.usable.store(used, Ordering::Relaxed);
            self.cut -= 1;
        }
        mended
    }

    /// The end of a run is about to be given back, but for the first `keep` units: gives up
    /// what was cut off it. Returns how many of its `units` units are still to be given
    /// back or kept; the rest is free already.
    pub(super) fn settle_tail(&mut self, unit: usize, units: usize, keep: usize) -> usize {
        let record = self.map.record(unit);
        let used = record.usable.load(Ordering::Relaxed);
        if used & CUT == 0 {
            return units;
        }
        let used = used & !CUT;
        let mut whole = used.div_ceil(UNIT);
        if whole <= keep && used < keep * UNIT {
            // The cut begins in what is kept, and stays.
            whole = keep;
        } else {
            self.cut -= 1;
            record.usable.store(used, Ordering::Relaxed);
            let hole = self.map.address_of(unit).wrapping_add(used);
            let rest = whole * UNIT - used;
            if rest > 0 && !self.window.get_back(hole, rest) {
                // The unit that the hole begins in goes after it.
                whole -= 1;
                let left = self.map.address_of(unit + whole);
                // SAFETY: behind what is kept, and the last bytes of the run that are mapped:
                // the caller gives them back, and nobody uses them.
                let gone = unsafe { self.window.give_back(left, used - whole * UNIT) };
                debug_assert!(gone, "the end of a mapping, which splits none");
            }
        }
        if whole < units {
            self.map.set_entries(unit + whole, units - whole, Entry::FREE);
            self.insert_absent(unit + whole, units - whole);
            self.taken -= units - whole;
        }
        whole
    }
}
