//! Limited address space: free runs go back to the kernel with their addresses.
//!
//! ```text
//!   free runs      | dirty | clean |  --shed-->  | absent |  --take--> reserved again
//! ```
//!
//! Under `RLIMIT_AS` (`ulimit -v`) each mapped page counts, even if it was never touched. Address
//! space that the heap holds is missing elsewhere. So in a piecewise window whose limit is known:
//!
//! - Free runs stay mapped up to an eighth of the address space that is left to others, or 1 MiB.
//!   Others are unmapped at once, clean runs first, and are *absent* until a request takes them.
//! - Before a request is refused, all free runs become absent, and large blocks lose their tails
//!   (`large_block`).
//!
//! Both actions split mappings. The kernel allows 65,530 mappings by default, so `MOST_HOLES`
//! limits both. In a generous window, free runs become absent only for lack of writable memory
//! (`RLIMIT_DATA`), and their addresses stay reserved. Only `chunk` calls this, under its lock.

use super::{Back, Chunk, Run, RunIndex, State, Window};
use crate::address_map::Entry;
use crate::os::{self, Memory};
use crate::size_class::UNIT;

/// At this many absent runs, no more free runs are unmapped; at this many cut tails, no more cut.
pub(super) const MOST_HOLES: usize = 8192;
const KEPT: usize = (1 << 20) / UNIT;
const SHARE: usize = 8;

impl<O: Memory + Copy> Chunk<O> {
    /// Takes units of an absent run, and maps their addresses again.
    pub(super) fn take_absent(&mut self, units: usize) -> Option<Run> {
        loop {
            let run = self.absent.find(units)?;
            let length = RunIndex::length(self.map, run);
            let end = run + length;
            // If the program has mapped memory at the run's start, the run's end may still be free.
            let (mut is_taken, is_reserved) = (false, self.window.is_generous());
            let place = [run, end - units].into_iter().find(|&unit| {
                let at = self.map.address_of(unit);
                let back = self.window.get_back_as(at, units * UNIT, is_reserved);
                is_taken |= back == Back::Taken;
                back == Back::Done
            });
            if place.is_none() && !(is_taken && self.absent.runs() < MOST_HOLES) {
                return None;
            }
            self.absent.remove(run);
            let parts = match place {
                Some(unit) => [(run, unit), (unit + units, end)],
                None if length == 1 => {
                    self.map.set_entry(run, Entry::FOREIGN);
                    continue;
                }
                // Halves separate free units from the program's memory.
                None => [(run, run + length / 2), (run + length / 2, end)],
            };
            for (from, to) in parts {
                if from < to {
                    self.absent.insert(from, to - from);
                }
            }
            if let Some(unit) = place {
                return Some(Run { unit, zero: true, dense: false });
            }
        }
    }

    pub(super) fn shed(&mut self) {
        if self.window.is_limited() {
            self.shed_all_but(KEPT.max(self.window.left_to_others() / SHARE / UNIT));
        }
    }

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
            // SAFETY: the units are free, committed, and in no index, so no thread uses them.
            if !unsafe { self.window.give_back(self.map.address_of(unit), units * UNIT) } {
                let os = self.window.os();
                let purged = Self::purge_run(self.map, &os, (unit, units));
                self.attach((unit, units), purged, os::coarse_ms());
                return;
            }
            self.insert_absent(unit, units);
        }
    }

    /// Takes back a run that may be inaccessible, and makes it absent. False: the kernel refused,
    /// and the run is lost.
    pub(super) fn give_absent(&mut self, unit: usize, units: usize) -> bool {
        // SAFETY: the caller gives the run, so no thread uses it.
        let gone = unsafe { self.window.give_back(self.map.address_of(unit), units * UNIT) };
        if gone {
            self.taken -= units;
            self.map.set_entries(unit, units, Entry::FREE);
            self.insert_absent(unit, units);
        }
        gone
    }

    /// In a generous window, makes all free runs absent for lack of writable memory (`RLIMIT_DATA`,
    /// `vm.overcommit_memory=2`). Returns whether any run became absent.
    pub(super) fn retract_free(&mut self) -> bool {
        let before = self.absent.units();
        if self.window.is_generous() {
            self.shed_all_but(0);
        }
        self.absent.units() > before
    }

    /// Changes the window. If it becomes piecewise, also releases the addresses of absent runs.
    pub(super) fn become_piecewise(&mut self, change: impl FnOnce(&mut Window<O>)) {
        let was_generous = self.window.is_generous();
        change(&mut self.window);
        if was_generous && !self.window.is_generous() {
            let os = self.window.os();
            for (unit, units) in self.absent.longest() {
                // SAFETY: the run is reserved, and neither committed nor in use. (If the kernel
                // allows no more mappings, the run stays absent for good.)
                unsafe { os.release(self.map.address_of(unit), units * UNIT) };
            }
        }
    }

    pub(super) fn insert_absent(&mut self, mut unit: usize, mut units: usize) {
        for before in [true, false] {
            if let Some(neighbour) = self.neighbour(unit, units, before, State::Absent) {
                units += self.absent.remove(neighbour);
                unit = unit.min(neighbour);
            }
        }
        self.absent.insert(unit, units);
    }
}
