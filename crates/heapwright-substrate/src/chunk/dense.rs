//! Huge pages, only for memory that the program will fill.
//!
//! ```text
//!   frontier at the time     opened, 2 MiB each, a huge page     not yet
//!   | ..... | pad | [ slab slab slab ... ] [ slab slab ..... ] | ........ |
//!                                                     next  opened     end
//! ```
//!
//! A huge page costs one fault instead of 512, and one entry of the TLB. But all its memory is
//! resident before the program touches it. So the heap must not be small, and the caller asks for
//! dense memory only if the program will probably fill it (`cache::slab_lists`, `debug::store`).
//!
//! A *region* of units is set aside for huge pages. Its length is a share of the heap, so that the
//! kernel's list of mappings stays short. The chunk opens a region 2 MiB at a time. Then `process`
//! allows huge pages, writes the first byte, and forbids huge pages again, without the lock. So the
//! kernel makes no huge page later.
//!
//! Invariants: the addresses of `opened` and `end` are multiples of 2 MiB. Units from `next` to
//! `end` are not taken, have the entry `METADATA`, and read as zero. Only `chunk` calls this
//! module, under its lock.

use super::{Chunk, Run, RunIndex, State, Want};
use crate::address_map::Entry;
use crate::os::{self, HUGE_PAGE, Memory};
use crate::size_class::UNIT;

pub(super) const HUGE: usize = HUGE_PAGE / UNIT;
/// Regions exist only if at least this many units are in use.
pub(super) const MANY: usize = (4 << 20) / UNIT;
/// A region's length is 1 / `SHARE` of the units in use: at least a huge page, at most `LONGEST`.
/// After a refusal, the heap must grow by 1 / `SHARE` before the next try.
const SHARE: usize = 8;
const LONGEST: usize = (32 << 20) / UNIT;

/// A region takes fresh memory only if at most this many units are clean.
const MOST_CLEAN: usize = (256 << 20) / UNIT;

pub(super) struct Region {
    next: usize,
    /// The end of the opened huge page that contains `next`.
    opened: usize,
    end: usize,
    /// The value of `next` at the end of the last part of the purge delay (see `low_water`).
    rested: usize,
    refused: usize,
}

impl Region {
    pub(super) const fn none() -> Self {
        Self { next: 0, opened: 0, end: 0, rested: 0, refused: 0 }
    }
}

impl<O: Memory + Copy> Chunk<O> {
    /// `None`: the heap is small or cannot have a region, or the request is not for `Dense`.
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

    /// Fresh memory costs addresses and page tables. So a region takes none while many clean units
    /// wait: more than are in use, or more than `MOST_CLEAN`.
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

    fn pad(&self, unit: usize) -> usize {
        let base = self.map.base().addr() / UNIT;
        (base + unit).next_multiple_of(HUGE) - (base + unit)
    }

    /// The clean run at `from` lacks at most one unit of two huge pages, so one aligned page fits.
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

    pub(super) fn opened_units(&self) -> usize {
        self.region.opened - self.region.next
    }

    /// Call this at the end of a part of the purge delay. Gives up opened units if no request took
    /// any of them during this part.
    pub(super) fn rest_region(&mut self, now: u32) {
        if self.region.next == self.region.rested {
            self.close_region(now);
        }
        self.region.rested = self.region.next;
    }

    pub(super) fn close_region(&mut self, now: u32) {
        let (unit, units) = (self.region.next, self.opened_units());
        if units > 0 {
            self.region.next = self.region.opened;
            self.map.set_entries(unit, units, Entry::FREE);
            self.give_dirty(unit, units, now);
        }
    }

    pub(super) fn end_region(&mut self, now: u32) {
        self.close_region(now);
        let Region { next, end, .. } = core::mem::replace(&mut self.region, Region::none());
        if next < end {
            self.map.set_entries(next, end - next, Entry::FREE);
            self.give_clean(next, end - next);
        }
    }
}
