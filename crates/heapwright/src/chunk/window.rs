//! The window: how much address space there is, and how much of it is ours to
//! touch.
//!
//! ```text
//!   base           frontier      committed         reserved         span
//!   | handed out ..... | writable .. | inaccessible .. | not ours yet .. |
//! ```
//!
//! *Generous*: all of the span (1 TiB, or halved until it fits) is reserved at
//! once; it costs nothing until it is touched. *Thrifty*: where address space
//! is limited (`ulimit -v`) or cannot be had in one piece, only the range is
//! chosen, and reservations follow the frontier in pieces; what somebody else
//! maps into the range is stepped over and stays foreign. Either way there is
//! one base and one table, so `free` knows one way to find an entry.
//!
//! Commit steps begin small (a locked process pays for every committed page)
//! and grow with the heap (a commit is a system call). A refused step is tried
//! again with just what is needed: under `overcommit_memory=2` the last
//! megabytes are worth having.
//!
//! Invariants: `frontier <= committed <= reserved <= span`, in units; the
//! map's limit is `committed`.
//!
//! Called by `chunk` alone, under its lock.

use crate::address_map::{AddressMap, MAX_UNITS, SIDE_BITMAP, TABLE_GAP};
use crate::os::{self, Memory};
use crate::size_class::{UNIT, UNIT_SHIFT};
use crate::slab::Record;

/// The smallest window worth having, in bytes.
const MIN_SPAN: usize = 1 << 20;
/// What a thrifty window reserves at a time, at least, in units.
pub(super) const PIECE: usize = 16;
/// The first and the largest commit step, in units.
const FIRST_STEP: usize = 16;
const MAX_STEP: usize = 512;
/// How many places for a thrifty window are tried.
const TRIES: usize = 32;
/// How far a thrifty window looks past what others mapped, in pieces.
const HOPS: usize = 64;

/// Per-unit metadata that grows with the window.
struct Side {
    at: *mut u8,
    /// Bytes a unit.
    grain: usize,
    /// Bytes committed.
    committed: usize,
}

impl Side {
    const fn none(grain: usize) -> Self {
        Self { at: core::ptr::null_mut(), grain, committed: 0 }
    }

    /// Commits what `units` units need.
    fn grow(&mut self, os: &impl Memory, units: usize) -> bool {
        let need = (units * self.grain).next_multiple_of(os.page_size());
        if need > self.committed {
            let from = self.at.wrapping_add(self.committed);
            // SAFETY: the side is reserved for the whole span, in whole pages.
            if !unsafe { os.commit(from, need - self.committed) } {
                return false;
            }
            self.committed = need;
        }
        true
    }
}

/// The window's bounds, in units.
pub(crate) struct Window<O: 'static> {
    os: O,
    map: &'static AddressMap,
    table: Side,
    records: Side,
    bitmaps: Side,
    span: usize,
    reserved: usize,
    committed: usize,
    frontier: usize,
    step: usize,
    /// All of the span is reserved, and the gap between table and base too.
    generous: bool,
    /// All of the table can be read.
    exposed: bool,
}

// SAFETY: the raw pointers name reservations that belong to the window.
unsafe impl<O: Send> Send for Window<O> {}

/// Units that the frontier passed.
pub(crate) struct Advance {
    /// The first of the units asked for, which read as zero.
    pub(crate) unit: usize,
    /// Units stepped over that are ours and free: first and count.
    pub(crate) skipped: Option<(usize, usize)>,
}

impl<O: Memory> Window<O> {
    /// A window of nothing.
    pub(crate) const fn closed(os: O, map: &'static AddressMap) -> Self {
        Self {
            os,
            map,
            table: Side::none(size_of::<u32>()),
            records: Side::none(size_of::<Record>()),
            bitmaps: Side::none(SIDE_BITMAP),
            span: 0,
            reserved: 0,
            committed: 0,
            frontier: 0,
            step: FIRST_STEP,
            generous: false,
            exposed: false,
        }
    }

    /// Makes the table readable for all of the span, if it may be. Returns how many
    /// units' entries can be read from now on: until the reserve is given up.
    pub(crate) fn expose_table(&mut self) -> usize {
        let bytes = (self.span * size_of::<u32>()).next_multiple_of(self.os.page_size());
        let rest = bytes - self.table.committed;
        let from = self.table.at.wrapping_add(self.table.committed);
        // SAFETY: the part of the table's reservation that is not committed.
        if !self.exposed && self.generous && (rest == 0 || unsafe { self.os.expose(from, rest) }) {
            self.exposed = true;
        }
        if self.exposed { self.span } else { self.committed }
    }

    /// Reserves the window: at most `most` bytes. False where there is no room.
    pub(crate) fn open(&mut self, most: usize) -> bool {
        debug_assert!(self.span == 0);
        let limit = self.os.address_space_limit();
        if limit.is_none() {
            let mut span = 1 << most.clamp(MIN_SPAN, os::MAX_WINDOW).ilog2();
            while span >= MIN_SPAN {
                if self.open_generous(span >> UNIT_SHIFT) {
                    return true;
                }
                span /= 2;
            }
        }
        // Smaller and smaller, for the side tables are reserved for all of it,
        // and what is locked in memory (`mlockall`) may be little.
        let most = limit.unwrap_or(64 << 20).min(most).clamp(MIN_SPAN, os::MAX_WINDOW);
        let mut span = most.next_power_of_two();
        while os::TABLE_ADJACENT && span >= MIN_SPAN {
            if self.open_thrifty(span >> UNIT_SHIFT) {
                return true;
            }
            span /= 4;
        }
        false
    }

    fn sides_of(&self, span: usize) -> (usize, usize) {
        let page = self.os.page_size();
        let records = (span * size_of::<Record>()).next_multiple_of(page);
        (records, (span * SIDE_BITMAP).next_multiple_of(page))
    }

    fn open_generous(&mut self, span: usize) -> bool {
        let page = self.os.page_size();
        let (records_size, bitmaps_size) = self.sides_of(span);
        let table_size = (span * size_of::<u32>()).next_multiple_of(page);
        let side = self.os.reserve(records_size + bitmaps_size, page.max(align_of::<Record>()));
        if side.is_null() {
            return false;
        }
        let (table, base) = if os::TABLE_ADJACENT {
            let all = self.os.reserve(TABLE_GAP + span * UNIT, UNIT);
            (all, if all.is_null() { all } else { all.wrapping_add(TABLE_GAP) })
        } else {
            (self.os.reserve(table_size, page), self.os.reserve(span * UNIT, UNIT))
        };
        if table.is_null() || base.is_null() {
            let rest = [(table, table_size), (base, span * UNIT)];
            for (at, size) in rest.into_iter().filter(|(at, _)| !at.is_null()) {
                // SAFETY: the reservation just made, which nobody has seen.
                unsafe { self.os.release(at, size) };
            }
            // SAFETY: the reservation of the sides, which nobody has seen.
            unsafe { self.os.release(side, records_size + bitmaps_size) };
            return false;
        }
        self.place(table, base, side, records_size, span);
        // SAFETY: the reservation just made.
        unsafe { os::keep_out_of_dumps(table, table_size) };
        // SAFETY: the reservation just made.
        unsafe { os::keep_out_of_dumps(side, records_size + bitmaps_size) };
        self.reserved = span;
        self.generous = true;
        true
    }

    /// Becomes thrifty: gives up what is reserved and not committed, because
    /// the process is about to be allowed only `most` bytes of address space.
    pub(crate) fn give_up_reserve(&mut self, most: usize) {
        if !self.generous || !os::TABLE_ADJACENT {
            return;
        }
        let (records, bitmaps) = self.sides_of(self.span);
        let span = most.checked_next_power_of_two().unwrap_or(most) >> UNIT_SHIFT;
        let span = span.clamp(self.committed, self.span);
        let (fewer_records, fewer_bitmaps) = self.sides_of(span);
        let table = (span * size_of::<u32>()).next_multiple_of(self.os.page_size());
        let tails = [
            (self.map.address_of(self.committed), (self.reserved - self.committed) * UNIT),
            (self.table.at.wrapping_add(table), TABLE_GAP - table),
            (self.records.at.wrapping_add(fewer_records), records - fewer_records),
            (self.bitmaps.at.wrapping_add(fewer_bitmaps), bitmaps - fewer_bitmaps),
        ];
        for (at, size) in tails {
            if size > 0 {
                // SAFETY: reserved by us, never committed, and behind what the
                // new span needs.
                unsafe { self.os.release(at, size) };
            }
        }
        self.reserved = self.committed;
        self.span = span;
        self.generous = false;
        self.exposed = false;
    }

    /// Finds room below where the system puts its own mappings, which grow
    /// down towards it and leave most of the address space between.
    fn open_thrifty(&mut self, span: usize) -> bool {
        let page = self.os.page_size();
        let (records_size, bitmaps_size) = self.sides_of(span);
        let table_size = (span * size_of::<u32>()).next_multiple_of(page);
        let side = self.os.reserve(records_size + bitmaps_size, page.max(align_of::<Record>()));
        if side.is_null() {
            return false;
        }
        let room = span * UNIT + TABLE_GAP;
        // Further and further below: past what is large, such as other windows.
        let mut below = 2 * room;
        for _ in 0..TRIES {
            let Some(base) = side.addr().checked_sub(below) else { break };
            below += (below / 2).max(room);
            let base = base & !(UNIT - 1);
            let table = self.os.reserve_at(base.saturating_sub(TABLE_GAP), table_size);
            if table.is_null() {
                continue;
            }
            let first = self.os.reserve_at(base, PIECE * UNIT);
            if !first.is_null() {
                self.place(table, first, side, records_size, span);
                self.reserved = PIECE;
                return true;
            }
            // SAFETY: the reservation just made, which nobody has seen.
            unsafe { self.os.release(table, table_size) };
        }
        // SAFETY: the reservation just made, which nobody has seen.
        unsafe { self.os.release(side, records_size + bitmaps_size) };
        false
    }

    fn place(&mut self, table: *mut u8, base: *mut u8, side: *mut u8, records: usize, span: usize) {
        self.table.at = table;
        self.records.at = side;
        self.bitmaps.at = side.wrapping_add(records);
        self.span = span.min(MAX_UNITS);
        self.map.place(base, table.cast(), side.cast(), self.bitmaps.at);
    }

    /// Moves the frontier over `units` units and makes them writable. `None`:
    /// nothing changed but what is reserved and committed.
    pub(crate) fn advance(&mut self, units: usize) -> Option<Advance> {
        let mut skipped = None;
        if units > self.reserved - self.frontier {
            if units > self.span - self.frontier {
                return None;
            }
            if !self.reserve_next(units) {
                skipped = self.hop(units)?;
            }
        }
        if !self.commit_to(self.frontier + units) {
            return None;
        }
        let unit = self.frontier;
        self.frontier += units;
        Some(Advance { unit, skipped })
    }

    /// Whether the frontier was at `end` and moved over `units` units more.
    pub(crate) fn advance_in_place(&mut self, end: usize, units: usize) -> bool {
        let fits = end == self.frontier
            && (units <= self.reserved - end || self.reserve_next(units))
            && self.commit_to(end + units);
        if fits {
            self.frontier = end + units;
        }
        fits
    }

    /// Reserves what `units` more units need right behind what is reserved.
    fn reserve_next(&mut self, units: usize) -> bool {
        let need = (self.frontier + units).saturating_sub(self.reserved);
        if self.reserved + need > self.span {
            return false;
        }
        let at = self.map.address_of(self.reserved).addr();
        for more in [need.next_multiple_of(PIECE).min(self.span - self.reserved), need] {
            if !self.os.reserve_at(at, more * UNIT).is_null() {
                self.reserved += more;
                return true;
            }
        }
        false
    }

    /// Reserves `units` units somewhere further on in the span, makes them
    /// writable and moves the frontier there. What is in between belongs to
    /// somebody else and stays foreign; what was reserved before is made
    /// writable too and returned as skipped.
    fn hop(&mut self, units: usize) -> Option<Option<(usize, usize)>> {
        let size = units.next_multiple_of(PIECE);
        let mut distance = PIECE;
        for _ in 0..HOPS {
            let at = self.reserved + distance;
            if at + size > self.span {
                return None;
            }
            let piece = self.os.reserve_at(self.map.address_of(at).addr(), size * UNIT);
            if !piece.is_null() {
                let left = self.reserved - self.frontier;
                let skipped = (left > 0).then_some((self.frontier, left));
                if self.commit_to(self.reserved) && self.commit_elsewhere(at, size, units) {
                    self.frontier = at;
                    return Some(skipped);
                }
                // SAFETY: the reservation just made, which nobody has seen.
                unsafe { self.os.release(piece, size * UNIT) };
                return None;
            }
            distance += distance.next_multiple_of(PIECE * 4) / 4;
        }
        None
    }

    /// Goes on in the piece of `size` units at `at`, if `units` units of it can
    /// be made writable.
    fn commit_elsewhere(&mut self, at: usize, size: usize, units: usize) -> bool {
        let before = (self.committed, self.reserved);
        (self.committed, self.reserved) = (at, at + size);
        let done = self.commit_to(at + units);
        if !done {
            (self.committed, self.reserved) = before;
        }
        done
    }

    /// Makes the units below `end` of the current reservation writable.
    fn commit_to(&mut self, end: usize) -> bool {
        if end <= self.committed {
            return true;
        }
        let generous = end.max(self.committed + self.step).min(self.reserved);
        if self.try_commit(generous) || (generous > end && self.try_commit(end)) {
            self.step = (self.committed / 8).clamp(FIRST_STEP, MAX_STEP);
            return true;
        }
        false
    }

    fn try_commit(&mut self, end: usize) -> bool {
        let from = self.map.address_of(self.committed);
        let sides = self.table.grow(&self.os, end)
            && self.records.grow(&self.os, end)
            && self.bitmaps.grow(&self.os, end);
        // SAFETY: the units are reserved, and units are whole pages.
        if !sides || !unsafe { self.os.commit(from, (end - self.committed) * UNIT) } {
            return false;
        }
        self.committed = end;
        self.map.extend(end);
        true
    }

    /// Bytes of address space the heap may use.
    pub(crate) fn span_bytes(&self) -> usize {
        self.span * UNIT
    }

    /// Bytes made writable so far, metadata included.
    pub(crate) fn committed_bytes(&self) -> usize {
        let sides = self.table.committed + self.records.committed + self.bitmaps.committed;
        self.committed * UNIT + sides
    }

    /// The tables' committed parts, for whoever counts resident pages.
    pub(crate) fn side_ranges(&self) -> [(*const u8, usize); 3] {
        [&self.table, &self.records, &self.bitmaps]
            .map(|side| (side.at.cast_const(), side.committed))
    }

    /// Units handed out or set aside so far.
    pub(crate) fn frontier(&self) -> usize {
        self.frontier
    }

    /// The system it lives on.
    pub(crate) fn os(&self) -> O
    where
        O: Copy,
    {
        self.os
    }
}
