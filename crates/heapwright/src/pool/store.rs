//! The slots of a pool: its segments, fresh slots, and returned slots in sets.
//!
//! ```text
//!   table      | segment 0 | segment 1 | ...            in units of its own
//!   frontier     next ---> end                          fresh slots of one segment
//!   returned     a bit for each segment whose set is not empty
//!
//!   take:   returned slots, lowest first; if there are none, the frontier; at its end,
//!           a segment with untouched slots; if there is none, a new segment
//! ```
//!
//! Fresh slots are on no list: the frontier moves over them in address order, and unused memory is
//! not touched. While slots wait in sets, the frontier is *closed* (`next == end`). So one
//! comparison sends the slow path to the sets, or to another segment.
//!
//! Invariants: every carved slot is in use, in a front or magazine, or in its segment's set.
//! `returned` has a bit for each segment with a nonempty set. While the frontier is open, its
//! segment's `carved` may be too low ([`Store::sync`] mends it).
//!
//! Used by `raw`, `front` and `typed` (one thread), by `shared` (under its lock), and by `checked`.

use super::layout::{SEGMENTS, Shape};
use super::segment::{self, Of, Segment};
use super::{Reset, Stats, fork};
use crate::chunk::{self, Side};
use crate::ids::Slot;
use crate::leases::Lease;
use crate::misuse;
use crate::names::Name;
use crate::size_class::UNIT;
use crate::substrate;

use core::ptr;

/// From this many bytes of slots on, segments use huge pages by default.
const MANY: usize = 4 << 20;
/// Programs touch nearly all bytes of objects up to this size.
const SMALL: usize = 1024;

#[derive(Clone, Copy)]
pub(super) enum Called {
    /// The builder set it.
    Name(&'static str),
    /// The function returns the path of the objects' type.
    Type(fn() -> &'static str),
}

impl Called {
    /// Returns the name. For a type without parameters, this is only the last part of its path.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Name(name) => name,
            Self::Type(path) => {
                let path = path();
                match path.rfind("::") {
                    Some(at) if !path.contains(['<', '(', '[', '&']) => &path[at + 2..],
                    _ => path,
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Config {
    pub(super) called: Called,
    pub(super) limit: u32,
    /// Whether the slots up to the limit are reserved in one piece.
    pub(super) in_one: bool,
    /// Whether large segments get huge pages; `None` for only those that will probably be filled.
    pub(super) huge: Option<bool>,
}

impl Config {
    pub(super) const fn of(called: Called) -> Self {
        Self { called, limit: u32::MAX, in_one: true, huge: None }
    }

    /// By default, small objects get huge pages from [`MANY`] bytes of slots on: such a pool will
    /// probably fill the next segment too.
    pub(super) fn wants_huge_pages(&self, shape: &Shape, capacity: usize) -> bool {
        let fills = shape.size() <= SMALL && capacity * shape.size() >= MANY;
        chunk::may_have_huge_pages() && self.huge.unwrap_or(fills)
    }
}

// SAFETY: the pointers lead to memory that belongs to the store alone.
unsafe impl Send for Store {}

/// The state of a walk over the slots that are out.
#[derive(Clone, Copy, Default)]
pub(super) struct Walk {
    /// The first slot of the current segment, or 0 before the walk begins.
    base: usize,
    segment: usize,
    slot: usize,
}

impl Walk {
    pub(super) fn has_begun(&self) -> bool {
        self.base != 0
    }
}

pub(super) struct Store {
    next: *mut u8,
    /// The end of the fresh slots; `next` while the frontier is closed.
    end: *mut u8,
    shape: Shape,
    table: *mut Segment,
    /// A bit for each segment whose set is not empty.
    returned: u64,
    /// The segment of the open frontier.
    current: usize,
    /// The segment of the last lookup. The next slot is usually in this segment, too.
    near: usize,
    name: Option<&'static Slot<Name>>,
    home: Option<Side>,
    config: Config,
    /// Whether pages of free slots may read as zero, because they were released.
    pub(super) given_back_pages: bool,
}

impl Store {
    pub(super) const fn new(shape: Shape, config: Config) -> Self {
        Self {
            next: ptr::null_mut(),
            end: ptr::null_mut(),
            shape,
            table: ptr::null_mut(),
            returned: 0,
            current: 0,
            near: 0,
            name: None,
            home: None,
            config,
            given_back_pages: false,
        }
    }

    #[inline]
    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(super) fn id(&self) -> u32 {
        self.name.map_or(0, Slot::id)
    }

    pub(super) fn name(&self) -> &'static str {
        self.config.called.name()
    }

    fn of(&self) -> Of {
        let huge = self.config.wants_huge_pages(&self.shape, self.capacity());
        Of { shape: self.shape, id: self.id(), huge }
    }

    pub(super) fn segments(&self) -> &[Segment] {
        let count = if self.table.is_null() { 0 } else { SEGMENTS };
        let table = if count == 0 { ptr::dangling() } else { self.table.cast_const() };
        // SAFETY: `table` belongs to this store. If the store has no table, `count` is 0.
        unsafe { core::slice::from_raw_parts(table, count) }
    }

    fn segments_mut(&mut self) -> &mut [Segment] {
        let count = if self.table.is_null() { 0 } else { SEGMENTS };
        let table = if count == 0 { ptr::dangling_mut() } else { self.table };
        // SAFETY: `table` is this store's, borrowed mutably. Without a table, `count` is 0.
        unsafe { core::slice::from_raw_parts_mut(table, count) }
    }

    fn at(&mut self, segment: usize) -> &mut Segment {
        debug_assert!(segment < SEGMENTS && !self.table.is_null());
        // SAFETY: the table has this place and belongs to the store, which is borrowed mutably.
        unsafe { &mut *self.table.wrapping_add(segment) }
    }

    /// Returns the next fresh slot of the open frontier, or null.
    #[inline(always)]
    pub(super) fn fresh(&mut self) -> *mut u8 {
        let slot = self.next;
        if slot == self.end {
            return ptr::null_mut();
        }
        self.next = slot.wrapping_add(self.shape.size());
        slot
    }

    /// Like [`Store::fresh`], but grows if necessary. Null without memory or at the limit.
    pub(super) fn fresh_or_grow(&mut self) -> *mut u8 {
        let slot = self.fresh();
        if !slot.is_null() || !self.open_frontier() { slot } else { self.fresh() }
    }

    /// Writes the position of the open frontier to its segment.
    pub(super) fn sync(&mut self) {
        if !self.end.is_null() {
            let (next, size, current) = (self.next, self.shape.size(), self.current);
            let segment = self.at(current);
            segment.carved = (next.addr() - segment.base().addr()) / size;
        }
    }

    pub(super) fn close_frontier(&mut self) {
        self.sync();
        (self.next, self.end) = (ptr::null_mut(), ptr::null_mut());
    }

    /// Opens the frontier, maybe in a new segment. False without memory or at the limit.
    #[cold]
    fn open_frontier(&mut self) -> bool {
        self.close_frontier();
        let Some(segment) = self.segments().iter().position(|s| s.untouched() > 0) else {
            return self.grow() && self.open_frontier();
        };
        let shape = self.shape;
        let found = self.at(segment);
        let (next, end) = (found.slot(&shape, found.carved), found.slot(&shape, found.slots()));
        (self.next, self.end, self.current) = (next, end, segment);
        true
    }

    #[cold]
    fn grow(&mut self) -> bool {
        if self.table.is_null() {
            let limit = self.config.limit;
            if !self.begin((limit < u32::MAX && self.config.in_one).then_some(limit)) {
                return false;
            }
            if self.segments()[0].exists() {
                return true;
            }
        }
        let have: usize = self.segments().iter().map(Segment::slots).sum();
        let Some(number) = self.segments().iter().position(|s| !s.exists()) else { return false };
        let left = self.config.limit as usize - have;
        let mut slots = left.min(self.shape.indexes(number) as usize);
        let of = self.of();
        // Halves the request until there is memory for it.
        while slots > 0 {
            if self.at(number).open(of, number, slots) {
                return true;
            }
            let bytes = slots.checked_mul(of.shape.size());
            if bytes.is_some_and(|bytes| bytes <= UNIT) {
                return false;
            }
            slots /= 2;
        }
        false
    }

    /// Takes a table and an id. If memory suffices, also makes one segment of `in_one` slots.
    fn begin(&mut self, in_one: Option<u32>) -> bool {
        if !substrate::open_and_begin() {
            return false;
        }
        fork::join();
        let Some(home) = Side::take(SEGMENTS * size_of::<Segment>()) else { return false };
        let Some(name) = Name::take(self.config.called.name()) else {
            let mut home = home;
            home.give();
            return false;
        };
        (self.table, self.home, self.name) = (home.at().cast(), Some(home), Some(name));
        if let Some(slots) = in_one {
            let one = self.shape.in_one(slots);
            let of = Of { shape: one, ..self.of() };
            if self.at(0).open(of, 0, slots as usize) {
                self.shape = one;
            }
        }
        true
    }

    /// Returns the segment of a slot of this store. Ends the process if the slot lies in none.
    #[inline(always)]
    fn segment_near(&mut self, slot: *mut u8) -> usize {
        let near = self.near;
        if self.at(near).holds(slot.addr()) { near } else { self.segment_far(slot) }
    }

    #[cold]
    #[inline(never)]
    fn segment_far(&mut self, slot: *mut u8) -> usize {
        match self.segment_of(slot.addr()) {
            Some(segment) => self.near = segment,
            None => misuse::not_of_pool(self.name(), slot.addr()),
        }
        self.near
    }

    /// Returns a slot's segment and number. Ends the process if no such slot was handed out.
    #[inline]
    fn find(&mut self, slot: *mut u8) -> (usize, usize) {
        let segment = self.segment_near(slot);
        let shape = self.shape;
        match self.at(segment).number_of(&shape, slot.addr()) {
            Some(number) => (segment, number),
            None => misuse::not_of_pool(self.name(), slot.addr()),
        }
    }

    /// Returns the segment and number of the slot at `address`, if it was out before the last sync.
    #[inline]
    pub(super) fn position(&self, address: usize) -> Option<(usize, usize)> {
        let number = self.segment_of(address)?;
        let slot = self.segments()[number].number_of(&self.shape, address)?;
        Some((number, slot))
    }

    #[inline]
    pub(super) fn segment_of(&self, address: usize) -> Option<usize> {
        segment::number_of(self.id(), address)
    }

    /// Adds slots to their segments' sets. Ends the process if a slot is in its set already.
    #[cold]
    pub(super) fn put(&mut self, slots: &[*mut u8]) {
        if let Some(twice) = self.put_each(slots) {
            misuse::freed_twice_in_pool(self.name(), twice.addr());
        }
    }

    /// Adds slots to their segments' sets. Returns a slot that was in its set already.
    pub(super) fn put_each(&mut self, slots: &[*mut u8]) -> Option<*mut u8> {
        self.close_frontier();
        if slots.is_empty() {
            return None;
        }
        let mut twice = None;
        if self.table.is_null() {
            misuse::not_of_pool(self.name(), slots[0].addr());
        }
        for &slot in slots {
            let (segment, number) = self.find(slot);
            if !self.at(segment).put(number) {
                twice = Some(slot);
            }
            self.returned |= 1 << segment;
        }
        twice
    }

    /// Moves the lowest returned slots to the start of `out`, highest first. Returns their number.
    #[cold]
    pub(super) fn take(&mut self, out: &mut [*mut u8]) -> usize {
        let shape = self.shape;
        let mut count = 0;
        while self.returned != 0 && count < out.len() {
            let number = self.returned.trailing_zeros() as usize;
            let segment = self.at(number);
            let (first, mut bits) = segment.take(out.len() - count);
            while bits != 0 {
                out[count] = segment.slot(&shape, first + bits.trailing_zeros() as usize);
                bits &= bits - 1;
                count += 1;
            }
            if segment.free == 0 {
                self.returned &= !(1 << number);
            }
        }
        out[..count].reverse();
        count
    }

    pub(super) fn take_one(&mut self) -> Option<*mut u8> {
        let mut one = [ptr::null_mut()];
        (self.take(&mut one) > 0).then_some(one[0])
    }

    #[inline]
    pub(super) fn has_returned(&self) -> bool {
        self.returned != 0
    }

    /// Returns the number of slots that are in use, or in a front or magazine.
    pub(super) fn out(&mut self) -> usize {
        self.sync();
        self.segments().iter().map(|s| s.carved - s.free).sum()
    }

    pub(super) fn ready(&mut self) -> usize {
        self.sync();
        self.segments().iter().map(|s| s.untouched() + s.free).sum()
    }

    pub(super) fn capacity(&self) -> usize {
        self.segments().iter().map(Segment::slots).sum()
    }

    pub(super) fn preheat(&mut self, count: usize, touch: bool) -> bool {
        self.close_frontier();
        // Makes one first segment for all slots, so that they are adjacent.
        if self.table.is_null()
            && self.config.in_one
            && self.config.limit == u32::MAX
            && count < u32::MAX as usize
            && count as u64 > self.shape.indexes(0)
        {
            self.begin(Some(count as u32));
        }
        let before: u64 = self.existing();
        while self.ready() < count {
            if !self.grow() {
                // The segments made so far do not suffice, so they are released again.
                for number in 0..self.segments().len() {
                    if before >> number & 1 == 0 && self.at(number).exists() {
                        self.at(number).close(false);
                    }
                }
                return false;
            }
        }
        let returned: usize = self.segments().iter().map(|s| s.free).sum();
        let mut left = if touch { count.saturating_sub(returned) } else { 0 };
        let shape = self.shape;
        for segment in self.segments().iter().filter(|s| s.exists()) {
            let here = left.min(segment.untouched());
            if here > 0 {
                segment.populate(&shape, here);
            }
            left -= here;
        }
        true
    }

    fn existing(&self) -> u64 {
        let all = self.segments().iter().enumerate();
        all.fold(0, |bits, (number, segment)| bits | u64::from(segment.exists()) << number)
    }

    /// Returns the next slot that is out. The free slots must be in sets, and the frontier closed.
    pub(super) fn next_out(&self, walk: &mut Walk) -> Option<(usize, usize)> {
        loop {
            if walk.base != 0
                && let Some(slot) = self.segments()[walk.segment].next_out(walk.slot)
            {
                walk.slot = slot + 1;
                return Some((walk.segment, slot));
            }
            // Searches the next segment by address. There are few segments, in no order.
            let behind = |(number, s): (usize, &Segment)| (s.base().addr(), number);
            let all = self.segments().iter().enumerate().map(behind);
            let (base, segment) = all.filter(|&(base, _)| base > walk.base).min()?;
            *walk = Walk { base, segment, slot: 0 };
        }
    }

    #[inline]
    pub(super) fn slot(&self, segment: usize, slot: usize) -> *mut u8 {
        self.segments()[segment].slot(&self.shape, slot)
    }

    /// Releases pages without a slot that is out. Returns the bytes. Free slots must be in sets.
    pub(super) fn trim(&mut self) -> usize {
        self.close_frontier();
        self.given_back_pages = true;
        let shape = self.shape;
        let mut bytes = 0;
        for number in 0..self.segments().len() {
            let segment = self.at(number);
            if segment.exists() && segment.carved == segment.free {
                bytes += segment.carved * shape.size();
                segment.close(true);
                self.returned &= !(1 << number);
            } else if segment.exists() {
                bytes += segment.purge(&shape);
            }
        }
        bytes
    }

    /// Makes all slots free, and keeps as much memory as `how` says. No code may use them any more.
    pub(super) fn reset(&mut self, how: Reset) {
        self.close_frontier();
        if cfg!(feature = "checked") {
            super::checked::before_reset(self);
        }
        (self.next, self.end, self.returned) = (ptr::null_mut(), ptr::null_mut(), 0);
        let shape = self.shape;
        let keep = match how {
            Reset::FreeAll => 0,
            Reset::RetainCapacity => usize::MAX,
            Reset::RetainUpTo(slots) => slots,
        };
        let (mut kept, mut returned) = (0, 0);
        let all = self.segments_mut().iter_mut().enumerate();
        for (number, segment) in all.filter(|(_, segment)| segment.exists()) {
            if kept >= keep {
                segment.close(false);
                continue;
            }
            if keep - kept < segment.carved {
                segment.purge_behind(&shape, keep - kept);
            }
            if cfg!(feature = "checked") {
                // In checked builds the slots stay in the sets, and are checked when handed out.
                returned |= u64::from(segment.free > 0) << number;
            } else {
                segment.forget();
            }
            kept += segment.slots();
        }
        self.returned = returned;
        self.given_back_pages |= matches!(how, Reset::RetainUpTo(_));
    }

    /// Releases all memory and the id. No code may use a slot any more.
    pub(super) fn end(&mut self) {
        self.reset(Reset::FreeAll);
        for segment in self.segments_mut() {
            segment.forget_leases();
        }
        if let Some(mut home) = self.home.take() {
            home.give();
        }
        (self.table, self.near) = (ptr::null_mut(), 0);
        if let Some(name) = self.name.take() {
            Name::give(name);
        }
    }

    #[inline]
    pub(super) fn index_of(&self, segment: usize, slot: usize) -> u32 {
        (self.shape.first_index(segment) + slot as u64) as u32
    }

    /// Returns a segment's leases, one a slot. The first call makes them. `None` without memory.
    pub(super) fn want_leases(&mut self, segment: usize) -> Option<*mut Lease> {
        let share = self.shape.indexes(segment) as usize;
        let at = self.at(segment);
        at.want_leases(share).then(|| at.leases())
    }

    pub(super) fn lease(&self, segment: usize, slot: usize) -> Option<&Lease> {
        let leases = self.segments()[segment].leases();
        // SAFETY: `leases` is not null here: it leads to the segment's leases, one for each slot.
        (!leases.is_null()).then(|| unsafe { &*leases.wrapping_add(slot) })
    }

    pub(super) fn has_leases(&self) -> bool {
        self.segments().iter().any(|segment| !segment.leases().is_null())
    }

    /// Records whether a slot is out. Ends the process if that was recorded, or `slot` is no slot.
    pub(super) fn note_out(&mut self, slot: *mut u8, out: bool) {
        if self.table.is_null() {
            misuse::not_of_pool(self.name(), slot.addr());
        }
        self.sync();
        let (segment, number) = self.find(slot);
        if !self.at(segment).note_out(number, out) {
            misuse::freed_twice_in_pool(self.name(), slot.addr());
        }
    }

    /// Returns statistics. Slots in fronts and magazines count as live.
    pub(super) fn stats(&mut self) -> Stats {
        let live = self.out();
        Stats {
            live,
            capacity: self.capacity(),
            slot_size: self.shape.size(),
            segments: self.segments().iter().filter(|s| s.exists()).count(),
            reserved_bytes: self.segments().iter().map(Segment::bytes).sum(),
        }
    }
}
