//! The window: the address space of all heaps, and its reserved and committed parts.
//!
//! ```text
//!   base           frontier      committed         reserved         span
//!   | handed out ..... | writable .. | inaccessible .. | not ours yet .. |
//! ```
//!
//! A *generous* window reserves its whole span at once: 1 TiB, halved until the span fits. If
//! address space is limited (`ulimit -v`), or has no room for the span, the window is *piecewise*.
//! It reserves pieces as the frontier advances, and steps over foreign mappings. Its tables lie
//! below the base and are reserved as needed. Under a limit its span is [`SLACK`] times the limit,
//! because the frontier may pass ranges whose addresses went back (see `address_limit`). In a
//! *scattered*, generous window (`mode=hardened`), units and tables lie at random places.
//!
//! The first commit steps are small, because committed pages of a locked process are in memory at
//! once. Steps grow with the heap. If the kernel refuses a step, the window commits only the needed
//! units: under `overcommit_memory=2` the last megabytes matter.
//!
//! Invariants, in units: `frontier <= committed <= reserved <= span`; the map's limit is
//! `committed`. Only `chunk` calls this module, under its lock.

use crate::address_map::{AddressMap, MAX_UNITS, SIDE_BITMAP, TABLE_GAP};
use crate::os::{self, Memory};
use crate::size_class::{UNIT, UNIT_SHIFT};
use crate::unit_record::Record;

const MIN_SPAN: usize = 1 << 20;
/// The fewest units that a piecewise window reserves at a time.
pub(super) const PIECE: usize = 16;
/// The first and the largest commit step, in units.
const FIRST_STEP: usize = 16;
const MAX_STEP: usize = 512;
const TRIES: usize = 32;
const HOPS: usize = 64;
/// The units of `bytes` bytes, rounded up to a power of two.
fn units(bytes: usize) -> usize {
    bytes.min(os::MAX_WINDOW).next_power_of_two() >> UNIT_SHIFT
}

/// The span of a piecewise window is this multiple of the address space limit.
const SLACK: usize = 4;

struct Side {
    at: *mut u8,
    grain: usize,
    reserved: usize,
    committed: usize,
}

impl Side {
    const fn none(grain: usize) -> Self {
        Self { at: core::ptr::null_mut(), grain, reserved: 0, committed: 0 }
    }

    fn need(&self, os: &impl Memory, units: usize) -> usize {
        (units * self.grain).next_multiple_of(os.page_size())
    }

    fn begin(&mut self, os: &impl Memory, at: usize, units: usize) -> bool {
        let bytes = self.need(os, units);
        self.at = Self::reserve(os, at, bytes);
        self.reserved = if self.at.is_null() { 0 } else { bytes };
        self.reserved > 0
    }

    fn reserve(os: &impl Memory, at: usize, bytes: usize) -> *mut u8 {
        let got = os.reserve_at(at, bytes);
        if !got.is_null() {
            // SAFETY: the reservation just made.
            unsafe { note_records(got, bytes) };
        }
        got
    }

    /// Releases the reservation behind the first `keep` bytes.
    ///
    /// # Safety
    ///
    /// Nothing behind them is committed.
    unsafe fn give_up(&mut self, os: &impl Memory, keep: usize) {
        let more = self.reserved.saturating_sub(keep);
        if more > 0 {
            // SAFETY: this side reserved the range, and by the contract no thread uses it.
            if unsafe { os.release(self.at.wrapping_add(keep), more) } {
                self.reserved = keep;
            }
        }
    }

    fn grow(&mut self, os: &impl Memory, units: usize) -> bool {
        let need = self.need(os, units);
        if need > self.reserved {
            let at = self.at.addr() + self.reserved;
            if Self::reserve(os, at, need - self.reserved).is_null() {
                return false;
            }
            self.reserved = need;
        }
        if need > self.committed {
            let from = self.at.wrapping_add(self.committed);
            // SAFETY: reserved above or before, in whole pages.
            if !unsafe { os.commit(from, need - self.committed) } {
                return false;
            }
            self.committed = need;
        }
        true
    }
}

/// Whether memory that was [withdrawn](super::withdraw) came back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Back {
    /// It reads as zero.
    Done,
    /// The program has mapped something there.
    Taken,
    /// There is no memory.
    NoMemory,
}

pub(super) struct Window<O: 'static> {
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
    /// The process's limit of address space in bytes, if there is one.
    limit: Option<usize>,
    /// The span when the window opened. The places of the records have room for this span.
    widest: usize,
    /// Bytes below the frontier that went back to the kernel and are not accessible now.
    returned: usize,
    /// Whether the whole span is reserved.
    generous: bool,
    exposed: bool,
}

// SAFETY: the raw pointers name reservations that belong to the window.
unsafe impl<O: Send> Send for Window<O> {}

pub(super) struct Advance {
    /// The first of the requested units, which read as zero.
    pub unit: usize,
    /// Free units that were stepped over: first and count.
    pub skipped: Option<(usize, usize)>,
}

/// Notes that a range holds heapwright's records, and keeps it out of core dumps.
///
/// # Safety
///
/// The range is the caller's reservation.
pub(super) unsafe fn note_records(at: *mut u8, size: usize) {
    os::note_own(at.addr(), size);
    // SAFETY: by the contract the range is the caller's reservation.
    unsafe { os::keep_out_of_dumps(at, size) };
}

const PLACES: usize = 16;

/// Reserves `size` bytes at a random multiple of `align` below 2^46. If such places are taken, the
/// system chooses the place. Null: there is no room.
pub(super) fn reserve_anywhere(os: &impl Memory, size: usize, align: usize) -> *mut u8 {
    for _ in 0..PLACES {
        let mut bytes = [0; 8];
        os::random(&mut bytes);
        let at = (usize::from_ne_bytes(bytes) >> 18) & !(align - 1);
        let got = if at < LOWEST { core::ptr::null_mut() } else { os.reserve_at(at, size) };
        if !got.is_null() {
            return got;
        }
    }
    os.reserve(size, align)
}

/// Programs that are not position independent lie below this address, with their `brk` memory.
const LOWEST: usize = 1 << 40;

impl<O: Memory> Window<O> {
    pub(super) const fn closed(os: O, map: &'static AddressMap) -> Self {
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
            limit: None,
            widest: 0,
            returned: 0,
            generous: false,
            exposed: false,
        }
    }

    /// If possible, makes the table readable for the whole span, until the reserve is given up.
    /// Returns the number of units with readable entries.
    pub(super) fn expose_table(&mut self) -> usize {
        let bytes = (self.span * size_of::<u32>()).next_multiple_of(self.os.page_size());
        let rest = bytes - self.table.committed;
        let from = self.table.at.wrapping_add(self.table.committed);
        // SAFETY: the part of the table's reservation that is not committed.
        if !self.exposed && self.generous && (rest == 0 || unsafe { self.os.expose(from, rest) }) {
            self.exposed = true;
        }
        if self.exposed { self.span } else { self.committed }
    }

    pub(super) fn open(&mut self, most: usize, scattered: bool) -> bool {
        debug_assert!(self.span == 0);
        let limit = self.os.address_space_limit();
        if limit.is_none() {
            let span = 1 << most.clamp(MIN_SPAN, os::MAX_WINDOW).ilog2();
            if scattered && self.open_scattered(span >> UNIT_SHIFT) {
                return true;
            }
            let mut span = 1 << most.clamp(MIN_SPAN, os::MAX_WINDOW).ilog2();
            while span >= MIN_SPAN {
                if self.open_generous(span >> UNIT_SHIFT) {
                    return true;
                }
                span /= 2;
            }
        }
        self.limit = limit;
        let room = limit.map_or(64 << 20, |limit| limit.saturating_mul(SLACK));
        let mut span = room.min(most).clamp(MIN_SPAN, os::MAX_WINDOW).next_power_of_two();
        while os::TABLE_ADJACENT && span >= MIN_SPAN {
            if self.open_piecewise(span >> UNIT_SHIFT) {
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
                // SAFETY: the reservation just made, which no other thread knows.
                unsafe { self.os.release(at, size) };
            }
            // SAFETY: the reservation of the sides, which no other thread knows.
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

    fn open_scattered(&mut self, span: usize) -> bool {
        let page = self.os.page_size();
        let (records_size, bitmaps_size) = self.sides_of(span);
        let table_size = (span * size_of::<u32>()).next_multiple_of(page);
        let sizes = [span * UNIT, table_size, records_size, bitmaps_size];
        let mut places = [core::ptr::null_mut::<u8>(); 4];
        for (place, size) in places.iter_mut().zip(sizes) {
            *place = reserve_anywhere(&self.os, size, UNIT);
        }
        if places.iter().any(|place| place.is_null()) {
            for (at, size) in places.into_iter().zip(sizes).filter(|(at, _)| !at.is_null()) {
                // SAFETY: the reservation just made, which no other thread knows.
                unsafe { self.os.release(at, size) };
            }
            return false;
        }
        let [base, table, records, bitmaps] = places;
        for (at, size) in places.into_iter().zip(sizes).skip(1) {
            // SAFETY: the reservation just made.
            unsafe { note_records(at, size) };
        }
        (self.table.at, self.table.reserved) = (table, table_size);
        (self.records.at, self.records.reserved) = (records, records_size);
        (self.bitmaps.at, self.bitmaps.reserved) = (bitmaps, bitmaps_size);
        self.span = span.min(MAX_UNITS);
        self.widest = self.span;
        self.reserved = span;
        self.generous = true;
        self.map.place(base, table.cast(), records.cast(), bitmaps);
        true
    }

    /// `usize::MAX`: no limit.
    pub(super) fn set_limit(&mut self, most: usize) {
        if !os::TABLE_ADJACENT || self.span == 0 {
            return;
        }
        let limited = most != usize::MAX;
        self.limit = limited.then_some(most);
        if limited {
            self.give_up_reserve(most);
        }
        // An exposed table is read without a check against the limit, so it keeps its end.
        if !self.generous && !self.exposed {
            let span = units(most.saturating_mul(SLACK));
            self.span = span.clamp(self.reserved, self.widest);
        }
    }

    /// Makes a generous window piecewise, because uncommitted reservations count against the limit.
    /// The tables keep room for `most` bytes of units.
    pub(super) fn give_up_reserve(&mut self, most: usize) {
        if !os::TABLE_ADJACENT || self.span == 0 || !self.generous {
            return;
        }
        let rest = (self.reserved - self.committed) * UNIT;
        if rest > 0 {
            // SAFETY: this window reserved the range and never committed it.
            if !unsafe { self.os.release(self.map.address_of(self.committed), rest) } {
                return;
            }
        }
        let likely = units(most).clamp(self.committed, self.span);
        for side in [&mut self.table, &mut self.records, &mut self.bitmaps] {
            let keep = side.need(&self.os, likely).max(side.committed);
            // SAFETY: `keep` covers all committed bytes of the side.
            unsafe { side.give_up(&self.os, keep) };
        }
        self.reserved = self.committed;
        self.generous = false;
        self.exposed = false;
    }

    /// Finds room below the system's own mappings, which grow down.
    fn open_piecewise(&mut self, span: usize) -> bool {
        let page = self.os.page_size();
        let top = self.os.reserve(page, page);
        if top.is_null() {
            return false;
        }
        // SAFETY: the reservation just made, which no other thread knows.
        unsafe { self.os.release(top, page) };
        let (records_size, bitmaps_size) = self.sides_of(span);
        let below_base = TABLE_GAP + records_size + bitmaps_size;
        let room = span * UNIT + below_base;
        let mut below = 2 * room;
        for _ in 0..TRIES {
            let Some(base) = top.addr().checked_sub(below) else { break };
            below += (below / 2).max(room);
            let base = base & !(UNIT - 1);
            let Some(bitmaps) = base.checked_sub(below_base) else { break };
            if self.begin_at(base, bitmaps, bitmaps + bitmaps_size) {
                self.span = span.min(MAX_UNITS);
                self.widest = self.span;
                return true;
            }
        }
        false
    }

    fn begin_at(&mut self, base: usize, bitmaps: usize, records: usize) -> bool {
        let first = self.os.reserve_at(base, PIECE * UNIT);
        if first.is_null() {
            return false;
        }
        if self.table.begin(&self.os, base - TABLE_GAP, PIECE)
            && self.records.begin(&self.os, records, PIECE)
            && self.bitmaps.begin(&self.os, bitmaps, PIECE)
        {
            self.reserved = PIECE;
            self.map.place(first, self.table.at.cast(), self.records.at.cast(), self.bitmaps.at);
            return true;
        }
        for side in [&mut self.table, &mut self.records, &mut self.bitmaps] {
            // SAFETY: nothing is committed yet.
            unsafe { side.give_up(&self.os, 0) };
        }
        // SAFETY: the reservation just made, which no other thread knows.
        unsafe { self.os.release(first, PIECE * UNIT) };
        false
    }

    fn place(&mut self, table: *mut u8, base: *mut u8, side: *mut u8, records: usize, span: usize) {
        self.table.at = table;
        self.records.at = side;
        self.bitmaps.at = side.wrapping_add(records);
        self.table.reserved =
            if os::TABLE_ADJACENT { TABLE_GAP } else { self.table.need(&self.os, span) };
        self.records.reserved = records;
        self.bitmaps.reserved = self.bitmaps.need(&self.os, span);
        self.span = span.min(MAX_UNITS);
        self.widest = self.span;
        self.map.place(base, table.cast(), side.cast(), self.bitmaps.at);
    }

    /// Advances the frontier. `None`: it stays, but more units may be reserved and committed now.
    pub(super) fn advance(&mut self, units: usize) -> Option<Advance> {
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

    pub(super) fn advance_in_place(&mut self, end: usize, units: usize) -> bool {
        let fits = end == self.frontier
            && (units <= self.reserved - end || self.reserve_next(units))
            && self.commit_to(end + units);
        if fits {
            self.frontier = end + units;
        }
        fits
    }

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

    /// Reserves `units` units further on and moves the frontier there, past foreign mappings. The
    /// rest of the earlier reservation becomes writable, and is returned as skipped.
    fn hop(&mut self, units: usize) -> Option<Option<(usize, usize)>> {
        let size = units.next_multiple_of(PIECE);
        // At a limit the kernel refuses every place, so none is tried.
        let anywhere = self.os.reserve(size * UNIT, self.os.page_size());
        if anywhere.is_null() {
            return None;
        }
        // SAFETY: the reservation just made, which no other thread knows.
        unsafe { self.os.release(anywhere, size * UNIT) };
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
                // SAFETY: the reservation just made, which no other thread knows.
                unsafe { self.os.release(piece, size * UNIT) };
                return None;
            }
            distance += distance.next_multiple_of(PIECE * 4) / 4;
        }
        None
    }

    fn commit_elsewhere(&mut self, at: usize, size: usize, units: usize) -> bool {
        let before = (self.committed, self.reserved);
        (self.committed, self.reserved) = (at, at + size);
        let done = self.commit_to(at + units);
        if !done {
            (self.committed, self.reserved) = before;
        }
        done
    }

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

    pub(super) fn is_limited(&self) -> bool {
        !self.generous && self.limit.is_some()
    }

    /// At most this many bytes of the limit are left to other users of address space.
    pub(super) fn left_to_others(&self) -> usize {
        let sides = self.table.reserved + self.records.reserved + self.bitmaps.reserved;
        let ours = self.reserved * UNIT - self.returned + sides;
        self.limit.unwrap_or(usize::MAX).saturating_sub(ours)
    }

    /// Gives the memory `[at, at + size)` back to the kernel. A piecewise window also gives the
    /// addresses back. False: the memory stays accessible; it is unchanged, or reads as zero.
    ///
    /// # Safety
    ///
    /// The range is in whole pages, committed, below the frontier, and no thread uses it.
    pub(super) unsafe fn give_back(&mut self, at: *mut u8, size: usize) -> bool {
        let gone = if self.generous {
            // SAFETY: by the contract the range is committed and no thread uses it.
            unsafe { self.os.retract(at, size) }
        } else {
            // SAFETY: by the contract no thread uses the range, and it lies in our reservation.
            unsafe { self.os.release(at, size) }
        };
        if gone {
            self.returned += size;
        }
        gone
    }

    /// Undoes [`Window::give_back`]: the memory reads as zero. False: the memory is still gone.
    pub(super) fn get_back(&mut self, at: *mut u8, size: usize) -> bool {
        self.get_back_as(at, size, self.generous) == Back::Done
    }

    /// As [`Window::get_back`]. `is_reserved`: the window was generous when the memory went.
    pub(super) fn get_back_as(&mut self, at: *mut u8, size: usize, is_reserved: bool) -> Back {
        let got = if is_reserved { at } else { self.os.reserve_at(at.addr(), size) };
        if got.is_null() {
            // If there are addresses elsewhere, these are taken.
            let elsewhere = self.os.reserve(size, self.os.page_size());
            if elsewhere.is_null() {
                return Back::NoMemory;
            }
            // SAFETY: the range was reserved just now, and no thread has seen it.
            unsafe { self.os.release(elsewhere, size) };
            return Back::Taken;
        }
        // SAFETY: the range is in whole pages, and reserved just now or all the time.
        if !unsafe { self.os.commit(got, size) } {
            if !is_reserved {
                // SAFETY: the range was reserved just now, and no thread has seen it.
                unsafe { self.os.release(got, size) };
            }
            return Back::NoMemory;
        }
        self.returned -= size;
        Back::Done
    }

    pub(super) fn is_generous(&self) -> bool {
        self.generous
    }

    pub(super) fn span_bytes(&self) -> usize {
        self.span * UNIT
    }

    pub(super) fn reserved_bytes(&self) -> usize {
        self.reserved * UNIT
    }

    /// Metadata included.
    pub(super) fn committed_bytes(&self) -> usize {
        let sides = self.table.committed + self.records.committed + self.bitmaps.committed;
        self.committed * UNIT - self.returned + sides
    }

    pub(super) fn side_ranges(&self) -> [(*const u8, usize); 3] {
        [&self.table, &self.records, &self.bitmaps]
            .map(|side| (side.at.cast_const(), side.committed))
    }

    /// Units below the frontier: handed out, free or foreign.
    pub(super) fn frontier(&self) -> usize {
        self.frontier
    }

    pub(super) fn os(&self) -> O
    where
        O: Copy,
    {
        self.os
    }
}
