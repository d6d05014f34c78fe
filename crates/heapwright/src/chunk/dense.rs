//! Huge pages, only where memory is dense.
//!
//! ```text
//!   frontier at the time     opened, 2 MiB each, a huge page     not yet
//!   | ..... | pad | [ slab slab slab ... ] [ slab ... ] | ............ |
//!                   first                               next       end
//! ```
//!
//! A fresh page costs a fault, and a huge page one fault for 512 pages, and one
//! entry of the processor's page cache instead of 512. But who asks the kernel
//! for huge pages everywhere pays with memory nobody uses: blocks that are
//! partly touched, slabs that stay few, pages given back and put in again by
//! the kernel's collector.
//!
//! So they are asked for only where all of the 2 MiB will be used: for new slabs
//! of a heap that holds much more than that already. A *region* of address space
//! is set aside for slabs, a share of the heap long, so that there are few
//! of them and the kernel's list of mappings stays short. It is opened 2 MiB at
//! a time: huge pages are allowed, the first byte is written, and they are
//! forbidden again, so that the kernel neither makes nor remakes one later.
//!
//! Invariants: `next` and `end` are multiples of 2 MiB as addresses; units from
//! `next` to `end` are taken by nobody and their entries say `METADATA`.
//!
//! Called by `chunk` alone, under its lock; the system calls are its callers'.

use super::Chunk;
use crate::address_map::Entry;
use crate::os::{self, HUGE_PAGE, Memory};
use crate::size_class::UNIT;

/// Units in a huge page.
pub(super) const HUGE: usize = HUGE_PAGE / UNIT;
/// Units in use from which on new slabs lie in regions: 8 MiB.
pub(super) const MANY: usize = (8 << 20) / UNIT;
/// A region is one of so many parts of what is in use, and at most so long: where
/// all memory is locked, all of a region is there at once.
const SHARE: usize = 8;
const LONGEST: usize = (32 << 20) / UNIT;

/// What is left of the region that is being opened.
pub(super) struct Region {
    next: usize,
    end: usize,
    /// Units in use when there was last no room for one.
    refused: usize,
}

impl Region {
    pub(super) const fn none() -> Self {
        Self { next: 0, end: 0, refused: 0 }
    }
}

impl<O: Memory + Copy> Chunk<O> {
    /// Opens the next 2 MiB for slabs, and takes the first unit. `None`: the heap
    /// is small, or has no room for a region.
    pub(super) fn take_dense(&mut self) -> Option<usize> {
        if self.region.next == self.region.end {
            self.begin_region()?;
        }
        let unit = self.region.next;
        self.region.next += HUGE;
        // They read as zero, but will have pages: dirty runs are reused first, and
        // given back in their time.
        self.map.set_entries(unit + 1, HUGE - 1, Entry::FREE);
        self.give_dirty(unit + 1, HUGE - 1, os::coarse_ms());
        // Last, or the others would take it for a neighbour to merge with.
        self.map.set_entries(unit, 1, Entry::FREE);
        Some(unit)
    }

    /// Sets a new region aside.
    fn begin_region(&mut self) -> Option<()> {
        let again = self.region.refused + self.region.refused / SHARE;
        if self.taken < MANY.max(again) || !os::HAS_HUGE_PAGES || !self.huge_pages {
            return None;
        }
        let from = self.window.frontier();
        let base = self.map.base().addr() / UNIT;
        let pad = (base + from).next_multiple_of(HUGE) - (base + from);
        let units = (self.taken / SHARE).clamp(HUGE, LONGEST) / HUGE * HUGE;
        if !self.window.advance_in_place(from, pad + units) {
            self.region.refused = self.taken;
            return None;
        }
        if pad > 0 {
            self.map.set_entries(from, pad, Entry::FREE);
            self.give_clean(from, pad);
        }
        self.map.set_entries(from + pad, units, Entry::METADATA);
        self.region = Region { next: from + pad, end: from + pad + units, refused: 0 };
        Some(())
    }

    /// Gives up what is left of the region: somebody needs any memory there is.
    pub(super) fn end_region(&mut self) {
        let Region { next, end, .. } = core::mem::replace(&mut self.region, Region::none());
        if next < end {
            self.map.set_entries(next, end - next, Entry::FREE);
            self.give_clean(next, end - next);
        }
    }
}
