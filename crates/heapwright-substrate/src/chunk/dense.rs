//! Huge pages, only where memory is dense.
//!
//! ```text
//!   frontier at the time     opened, 2 MiB each, a huge page     not yet
//!   | ..... | pad | [ slab slab slab ... ] [ slab slab ..... ] | ........ |
//!                                                     next  opened     end
//! ```
//!
//! A fresh page costs a fault. A huge page costs one fault for 512 pages, and one entry of the
//! processor's page cache instead of 512. But huge pages everywhere cost memory that is not used:
//! blocks that are partly touched, classes with few slabs, and returned pages that the kernel's
//! collector brings back.
//!
//! So the chunk uses them only if nearly all of the 2 MiB will be used: the heap already holds
//! more, and the class has filled many slabs and leaves at most a sixteenth behind the last slot.
//! No other slab and no large block may lie there, because they would be resident before they are
//! touched. (Measured with all slabs there from the start, and large blocks in the rest: git needed
//! a fifth more memory, and was no faster.)
//!
//! A *region* is set aside for them. Its length is a share of the heap, so that regions are few and
//! the kernel's list of mappings stays short. It uses clean runs if one is long enough, so that a
//! heap that shrinks and grows again does not walk through its address space. It is opened 2 MiB at
//! a time: huge pages are allowed, the first byte is written, and they are forbidden again, so that
//! the kernel neither makes nor remakes one later.
//!
//! Invariants: `opened` and `end` are multiples of 2 MiB as addresses; units from
//! `next` to `end` are not taken, their entries say `METADATA`, and they
//! read as zero.
//!
//! Called by `chunk` alone, under its lock. The caller puts the huge page behind the units, without
//! the lock.

use super::{Chunk, Run, RunIndex, State, Want};
use crate::address_map::Entry;
use crate::os::{self, HUGE_PAGE, Memory};
use crate::size_class::UNIT;

/// Units in a huge page.
pub(super) const HUGE: usize = HUGE_PAGE / UNIT;
/// The units in use from which on dense slabs lie in regions: 4 MiB.
pub(super) const MANY: usize = (4 << 20) / UNIT;
/// A region is this part of the units in use: at least a huge page, and at most so long. (If all
/// memory is locked, a whole region is resident at once.) After a refusal, the heap must grow by
/// such a part before the next try.
const SHARE: usize = 8;
const LONGEST: usize = (32 << 20) / UNIT;

/// The most clean units at the beginning of a region of fresh memory: 256 MiB.
const MOST_CLEAN: usize = (256 << 20) / UNIT;

/// The rest of the region that is being opened.
pub(super) struct Region {
    /// The next unit.
    next: usize,
    /// The end of the opened huge page that contains `next`.
    opened: usize,
    end: usize,
    /// `next` at the end of the last purge delay.
    rested: usize,
    /// Units in use when a region last found no room.
    refused: usize,
}

impl Region {
    pub(super) const fn none() -> Self {
        Self { next: 0, opened: 0, end: 0, rested: 0, refused: 0 }
    }
}

impl<O: Memory + Copy> Chunk<O> {
    /// Takes a unit of a region for dense memory. `None`: the heap is small, or has no room for a
    /// region.
    pub(super) fn take_dense(&mut self, want: Want) -> Option<Run> {
        if want != Want::Dense {
            return None;
        }
        let dense = self.region.next == self.region.opened;
        if dense {
            if self.region.next == self.region.end {
                self.begin_region()?;
            }
            self.region.opened += HUGE;
        }
        let unit = self.region.next;
        self.region.next += 1;
        self.map.set_entry(unit, Entry::FREE);
        Some(Run { unit, zero: true, dense })
    }

    /// Sets a new region aside: of clean runs if one is long enough, else of fresh memory. It takes
    /// no fresh memory while more clean memory waits than is in use. (Fresh memory costs addresses
    /// and their page tables. With a region's length as the limit, a heap with many guards, whose
    /// pages are clean when they go, had no huge pages: see docs/decisions.md.)
    fn begin_region(&mut self) -> Option<()> {
        let again = self.region.refused + self.region.refused / SHARE;
        if self.taken < MANY.max(again) || !os::HAS_HUGE_PAGES || !self.huge_pages {
            return None;
        }
        let units = (self.taken / SHARE).clamp(HUGE, LONGEST) / HUGE * HUGE;
        let (next, units) = match self.clean.find(2 * HUGE - 1) {
            Some(from) => self.region_of_clean(from, units),
            None if self.clean.units() > self.taken.min(MOST_CLEAN) => return None,
            None => self.region_of_fresh(units)?,
        };
        self.map.set_entries(next, units, Entry::METADATA);
        self.region = Region { next, opened: next, end: next + units, ..Region::none() };
        Some(())
    }

    /// Units before the next multiple of 2 MiB.
    fn pad(&self, unit: usize) -> usize {
        let base = self.map.base().addr() / UNIT;
        (base + unit).next_multiple_of(HUGE) - (base + unit)
    }

    /// Up to `units` units of the clean run at `from`, which is twice as long as a huge page, less
    /// one unit.
    fn region_of_clean(&mut self, from: usize, units: usize) -> (usize, usize) {
        let pad = self.pad(from);
        let units = units.min((RunIndex::length(self.map, from) - pad) / HUGE * HUGE);
        self.split(from, pad + units, State::Clean);
        if pad > 0 {
            self.clean.insert(from, pad);
        }
        (from + pad, units)
    }

    fn region_of_fresh(&mut self, units: usize) -> Option<(usize, usize)> {
        let from = self.window.frontier();
        let pad = self.pad(from);
        if !self.window.advance_in_place(from, pad + units) {
            self.region.refused = self.taken;
            return None;
        }
        if pad > 0 {
            self.map.set_entries(from, pad, Entry::FREE);
            self.give_clean(from, pad);
        }
        Some((from + pad, units))
    }

    /// Units in memory that are not in use.
    pub(super) fn opened_units(&self) -> usize {
        self.region.opened - self.region.next
    }

    /// Ends a purge delay: if no request took opened units in it, others may use them, or they go
    /// back later.
    pub(super) fn rest_region(&mut self, now: u32) {
        if self.region.next == self.region.rested {
            self.close_region(now);
        }
        self.region.rested = self.region.next;
    }

    /// Gives up the opened units.
    pub(super) fn close_region(&mut self, now: u32) {
        let (unit, units) = (self.region.next, self.opened_units());
        if units > 0 {
            self.region.next = self.region.opened;
            self.map.set_entries(unit, units, Entry::FREE);
            self.give_dirty(unit, units, now);
        }
    }

    /// Gives up the rest of the region, because all memory is needed.
    pub(super) fn end_region(&mut self, now: u32) {
        self.close_region(now);
        let Region { next, end, .. } = core::mem::replace(&mut self.region, Region::none());
        if next < end {
            self.map.set_entries(next, end - next, Entry::FREE);
            self.give_clean(next, end - next);
        }
    }
}
