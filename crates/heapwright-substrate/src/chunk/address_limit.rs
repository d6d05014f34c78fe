//! Limited address space: free runs go back to the kernel with their addresses.
//!
//! ```text
//!   free runs      | dirty | clean |  --shed-->  | absent |  --take--> reserved again
//! ```
//!
//! Under `RLIMIT_AS` (`ulimit -v`) each mapped page counts, touched or not, and other users lack
//! the address space that the heap holds. So in a piecewise window whose limit is known:
//!
//! - Free runs stay mapped up to an eighth of the address space that is left to others. The rest is
//!   unmapped at once, clean runs first, and is *absent* until it is taken.
//! - Before a request is refused, all free runs become absent, and the tails of large blocks are
//!   cut off (`large_block`).
//!
//! Both split mappings. The kernel allows 65,530 by default, so `MOST_HOLES` limits them. In other
//! windows, free runs become absent only for lack of writable memory (`RLIMIT_DATA`); their
//! addresses stay reserved. Called by the other files of `chunk`, under its lock.

use super::{Chunk, Run, RunIndex, State, Window};
use crate::os::{self, Memory};
use crate::size_class::UNIT;

/// At most this many absent runs, and as many cut tails.
pub(super) const MOST_HOLES: usize = 8192;
const KEPT: usize = (1 << 20) / UNIT;
const SHARE: usize = 8;

impl<O: Memory + Copy> Chunk<O> {
    /// Takes units of an absent run, and maps their addresses again.
    pub(super) fn take_absent(&mut self, units: usize) -> Option<Run> {
        let run = self.absent.find(units)?;
        let end = run + RunIndex::length(self.map, run);
        // A mapping of the program may lie at the run's start.
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

    /// In a generous window, makes all free runs absent for lack of writable memory (`RLIMIT_DATA`,
    /// `vm.overcommit_memory=2`). Returns whether any run became absent.
    pub(super) fn retract_free(&mut self) -> bool {
        let before = self.absent.units();
        if self.window.is_generous() {
            self.shed_all_but(0);
        }
        self.absent.units() > before
    }

    /// If the window becomes piecewise, releases absent runs' addresses, too.
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
