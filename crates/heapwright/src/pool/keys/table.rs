//! The slots of keyed objects: segments of slots with their generations, and a bit for each slot.
//!
//! ```text
//!   index      0 .. S | S .. 2S | 2S ....... 4S | 4S .............. 8S |       S: a power of two
//!   slots,     by segment (the highest bit of its indexes): the addresses that slot 0 and the
//!   live       word with its bit would have if the segment began at index 0
//!
//!   units      | colour | generation | object | generation | object | ...
//!   side       | head | live: a bit for each slot | words with room |
//!   cursor     the word of 64 slots that the next insertions fill, lowest first
//! ```
//!
//! A key's index selects a segment by its highest bit. The generation in the four bytes before the
//! object decides whether the key is stale, so a lookup touches one cache line. A bit says whether
//! a slot holds an object, so iterations look at 64 slots with one load and never touch dead ones.
//!
//! An insertion takes the lowest free slot of the cursor's word. A full word sends the cursor on:
//! to the word of the last removal, the lowest word with room, the next untouched word, or a new
//! segment.
//!
//! The generations in released pages are lost. Before a release, the segment's floor becomes at
//! least as large as each free slot's generation. Later generations begin above the floor. So stale
//! keys stay stale. If the floor would be above [`HIGHEST_FLOOR`], the segment keeps its pages.
//!
//! Invariants: a generation is odd if and only if its slot's bit is set. Every index below its
//! segment's end has a slot. If a segment exists, all segments before it exist. A touched word with
//! a free slot is the cursor's, or its segment's set has it and `pending` has the segment.
//!
//! Called by the other files of this folder.

use core::ptr;
use core::slice;

use super::super::fork;
use super::super::layout::Shape;
use super::super::returned::Levels;
use super::super::segment;
use super::super::store::Config;
use super::super::{Reset, Stats};
use super::key::RawKey;
use crate::address_map::{Entry, MAP};
use crate::chunk::{self, Side, Want};
use crate::ids::Slot;
use crate::names::Name;
use crate::os::{self, HUGE_PAGE, Memory, SYSTEM};
use crate::runs;
use crate::size_class::UNIT;
use crate::substrate;
use crate::sync::atomic::Ordering;

/// A segment for each highest bit of an index.
const SEGMENTS: usize = 32;
const WORD: usize = 64;
/// The word of a cursor without slots, in which no slot is free.
static FULL: u64 = u64::MAX;
/// The highest floor of a segment's generations. 2^30 odd generations are above it.
const HIGHEST_FLOOR: u32 = 1 << 31;
/// The hint if no object was removed since the cursor last moved. No object has this index.
const NO_HINT: u32 = u32::MAX;

/// The form of a table: its slots' shape and the number of slots of its first segment.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) shape: Shape,
    /// The first segment has `1 << log` slots: at most 64 KiB of them, but at least 64 slots.
    log: u32,
}

impl Form {
    /// Returns the form for objects of a type. An unsuitable type is an error at compile time.
    pub(super) const fn of<T>() -> Self {
        let align =
            if align_of::<T>() < align_of::<u32>() { align_of::<u32>() } else { align_of::<T>() };
        let shape = Shape::of_objects(size_of::<T>() + size_of::<u32>(), align);
        let slots = UNIT / shape.size();
        let log = if slots < WORD { WORD.ilog2() } else { slots.ilog2() };
        Self { shape, log }
    }

    #[inline(always)]
    const fn segment(&self, index: u32) -> usize {
        (index | ((1 << self.log) - 1)).ilog2() as usize
    }

    const fn first_segment(&self) -> usize {
        self.log as usize - 1
    }

    const fn first_index(&self, segment: usize) -> usize {
        if segment == self.first_segment() { 0 } else { 1 << segment }
    }

    /// The number of indexes of a segment.
    const fn share(&self, segment: usize) -> usize {
        if segment == self.first_segment() { 1 << self.log } else { 1 << segment }
    }

    /// Returns the bytes before a segment's first object, for a colour and the first generation.
    const fn colour(&self, id: u32) -> usize {
        self.shape.colour(id) + self.shape.align()
    }
}

#[inline(always)]
fn generation_of(slot: *mut u8) -> *mut u32 {
    slot.cast::<u32>().wrapping_sub(1)
}

/// The other fields of a segment, at the start of its side memory.
struct Head {
    side: Side,
    unit: usize,
    units: usize,
    slots: usize,
    /// Words of live bits that insertions have reached.
    touched: usize,
    /// Words of slots whose generations may be nonzero.
    used: usize,
    /// The places of the set of words with room.
    levels: Levels,
    set: *mut u64,
    huge: bool,
}

impl Head {
    fn words(&self) -> usize {
        self.slots.div_ceil(WORD)
    }

    fn slots_used(&self) -> usize {
        (self.used.max(self.touched) * WORD).min(self.slots)
    }

    fn set(&mut self) -> (Levels, &mut [u64]) {
        let (levels, at) = (self.levels, self.set);
        // SAFETY: the side memory has the set's words, which only this function touches.
        (levels, unsafe { slice::from_raw_parts_mut(at, levels.words()) })
    }

    /// Returns the bits of a word whose slots exist.
    #[inline(always)]
    fn slots_of(&self, word: usize) -> u64 {
        match self.slots - word * WORD {
            count @ 1..WORD => !(u64::MAX << count),
            _ => u64::MAX,
        }
    }
}

/// Words follow the head.
const _: () = assert!(size_of::<Head>().is_multiple_of(size_of::<u64>()));

/// The word that insertions fill, its first slot and index, and its segment's floor.
struct Cursor {
    /// The live bits of the word. Before the first segment: [`FULL`], which is never written.
    word: *mut u64,
    slots: *mut u8,
    first: u32,
    floor: u32,
}

impl Cursor {
    const NONE: Self =
        Self { word: ptr::from_ref(&FULL).cast_mut(), slots: ptr::null_mut(), first: 0, floor: 0 };
}

/// Gives the whole pages of `from..to`, addresses in the run at `unit`, back to the kernel. Returns
/// the number of bytes.
///
/// # Safety
///
/// No object and no generation that matters lies in these pages. No code uses them meanwhile.
unsafe fn purge(unit: usize, from: usize, to: usize) -> usize {
    let page = SYSTEM.page_size();
    let (from, to) = (from.next_multiple_of(page), to / page * page);
    if from >= to {
        return 0;
    }
    let begin = MAP.address_of(unit);
    // SAFETY: whole pages of the run; the caller promises that their contents do not matter.
    unsafe { chunk::purge_pages(begin.wrapping_add(from - begin.addr()), to - from) }
}

/// A free slot, uninitialised, that the next insertion may take.
pub(super) struct Vacant {
    pub(super) slot: *mut u8,
    pub(super) key: RawKey,
    /// The bits of the cursor's word.
    live: u64,
}

/// The slot of a key that another pool chose; see [`Table::place`].
pub(super) struct Place {
    found: Found,
    key: RawKey,
    /// The key of the object in the slot, if there is one.
    pub(super) there: Option<RawKey>,
}

impl Place {
    /// Returns the slot, which is uninitialised if no object is there.
    pub(super) fn slot(&self) -> *mut u8 {
        self.found.slot
    }
}

#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) slot: *mut u8,
    /// The word with the slot's bit.
    word: *mut u64,
    index: u32,
}

impl Found {
    #[inline(always)]
    pub(super) fn key(&self) -> RawKey {
        // SAFETY: the slot is the table's, and every slot has a generation.
        RawKey::of(self.index, unsafe { generation_of(self.slot).read() })
    }
}

#[derive(Clone, Copy)]
pub(super) struct Walk {
    /// Bits of the current word's objects that the walk has not reached.
    bits: u64,
    /// The current word, its first slot and its first index.
    word: *mut u64,
    slots: *mut u8,
    first: u32,
    /// The current segment, and the number of its next word.
    segment: usize,
    next: usize,
}

impl Walk {
    pub(super) const fn new(form: Form) -> Self {
        Self {
            bits: 0,
            word: ptr::null_mut(),
            slots: ptr::null_mut(),
            first: 0,
            segment: form.first_segment(),
            next: 0,
        }
    }

    #[inline(always)]
    pub(super) fn next(&mut self, table: &Table, form: Form) -> Option<Found> {
        if self.bits == 0 && !self.advance(table, form) {
            return None;
        }
        let bit = self.bits.trailing_zeros();
        self.bits &= self.bits - 1;
        Some(Found {
            slot: self.slots.wrapping_add(bit as usize * form.shape.size()),
            word: self.word,
            index: self.first + bit,
        })
    }

    /// Moves to the next word with objects.
    #[inline]
    fn advance(&mut self, table: &Table, form: Form) -> bool {
        while let Some(head) = table.head(self.segment) {
            let first = form.first_index(self.segment);
            while self.next < head.touched {
                let index = first + self.next * WORD;
                let word = table.live[self.segment].wrapping_add(index / WORD);
                // SAFETY: the word is one of the segment's.
                self.bits = unsafe { word.read() } & head.slots_of(self.next);
                self.next += 1;
                if self.bits != 0 {
                    self.word = word;
                    self.slots = table.slot(form, self.segment, index);
                    self.first = index as u32;
                    return true;
                }
            }
            self.segment += 1;
            self.next = 0;
        }
        false
    }
}

pub(super) struct Table {
    cursor: Cursor,
    len: usize,
    /// The index of the last removal.
    hint: u32,
    /// A bit for each segment whose set is not empty.
    pending: u32,
    /// By segment: one more than the last index with a slot, or 0 if there is no segment.
    ends: [u32; SEGMENTS],
    /// By segment: the floor, an even number. No lost generation is above it.
    floors: [u32; SEGMENTS],
    /// By segment: the addresses that slot 0 and its bit would have.
    slots: [*mut u8; SEGMENTS],
    live: [*mut u64; SEGMENTS],
    /// By segment: null, or the other fields of the segment.
    heads: [*mut Head; SEGMENTS],
    name: Option<&'static Slot<Name>>,
    config: Config,
}

// SAFETY: the pointers lead to memory that belongs to the table alone. Only the cursor may point to
// the static `FULL`, which is never written.
unsafe impl Send for Table {}
// SAFETY: a shared table is only read.
unsafe impl Sync for Table {}

impl Table {
    pub(super) const fn new(config: Config) -> Self {
        Self {
            cursor: Cursor::NONE,
            len: 0,
            hint: NO_HINT,
            pending: 0,
            ends: [0; SEGMENTS],
            floors: [0; SEGMENTS],
            slots: [ptr::null_mut(); SEGMENTS],
            live: [ptr::null_mut(); SEGMENTS],
            heads: [ptr::null_mut(); SEGMENTS],
            name: None,
            config,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        self.config.called.name()
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn head(&self, segment: usize) -> Option<&Head> {
        let head = *self.heads.get(segment)?;
        // SAFETY: the pointer is null or leads to a head, which only `&mut self` changes.
        unsafe { head.as_ref() }
    }

    fn head_mut(&mut self, segment: usize) -> Option<&mut Head> {
        let head = *self.heads.get(segment)?;
        // SAFETY: the pointer is null or leads to a head of this table, which is borrowed mutably.
        unsafe { head.as_mut() }
    }

    #[inline(always)]
    fn slot(&self, form: Form, segment: usize, index: usize) -> *mut u8 {
        self.slots[segment].wrapping_add(index * form.shape.size())
    }

    /// Returns the slot that the next insertion takes. `None` without memory or at the limit.
    #[inline(always)]
    pub(super) fn vacant(&mut self, form: Form) -> Option<Vacant> {
        // SAFETY: the cursor's word is a word of this table, or `FULL`.
        let mut live = unsafe { self.cursor.word.read() };
        if live == u64::MAX {
            if !self.move_cursor(form) {
                return None;
            }
            // SAFETY: the cursor was just moved to a word of this table.
            live = unsafe { self.cursor.word.read() };
        }
        let bit = (!live).trailing_zeros();
        let slot = self.cursor.slots.wrapping_add(bit as usize * form.shape.size());
        // SAFETY: the slot is this table's, and every slot has a generation.
        let generation = unsafe { generation_of(slot).read() }.max(self.cursor.floor);
        Some(Vacant { slot, key: RawKey::of(self.cursor.first + bit, generation), live })
    }

    /// Takes the slot that [`Table::vacant`] returned.
    ///
    /// # Safety
    ///
    /// The table did not change since then, and the caller wrote an object into the slot.
    #[inline(always)]
    pub(super) unsafe fn occupy(&mut self, vacant: &Vacant) {
        // SAFETY: the cursor did not move since `vacant`: its word is this table's, not `FULL`.
        unsafe { self.cursor.word.write(vacant.live | (vacant.live + 1)) };
        // SAFETY: the slot is this table's, and every slot has a generation.
        unsafe { generation_of(vacant.slot).write(vacant.key.generation()) };
        self.len += 1;
    }

    #[inline(always)]
    pub(super) fn find(&self, form: Form, key: RawKey) -> Option<Found> {
        let index = key.index();
        let segment = form.segment(index);
        if index >= self.ends[segment] {
            return None;
        }
        let slot = self.slot(form, segment, index as usize);
        // SAFETY: every index below its segment's end has a slot with a generation.
        if unsafe { generation_of(slot).read() } != key.generation() {
            return None;
        }
        let word = self.live[segment].wrapping_add(index as usize / WORD);
        Some(Found { slot, word, index })
    }

    /// Frees a slot. The caller must have dropped the object or moved it out, or do so next.
    ///
    /// # Safety
    ///
    /// `found` is of this table, and its object was not removed since. Before the table is used
    /// again, nothing but the caller uses the object.
    #[inline(always)]
    pub(super) unsafe fn vacate(&mut self, form: Form, found: Found) {
        let generation = generation_of(found.slot);
        // SAFETY: the slot is this table's, and every slot has a generation.
        let next = unsafe { generation.read() }.wrapping_add(1);
        // SAFETY: the slot is this table's, and every slot has a generation.
        unsafe { generation.write(next) };
        // SAFETY: the slot is this table's, and this word has its bit.
        let live = unsafe { found.word.read() };
        // SAFETY: the slot is this table's, and this word has its bit.
        unsafe { found.word.write(live & !(1 << (found.index % WORD as u32))) };
        self.hint = found.index;
        self.len -= 1;
        if live == u64::MAX {
            self.note_room(form, found.index);
        }
    }

    #[inline(never)]
    fn note_room(&mut self, form: Form, index: u32) {
        let segment = form.segment(index);
        let word = (index as usize - form.first_index(segment)) / WORD;
        if let Some(head) = self.head_mut(segment) {
            let (levels, set) = head.set();
            levels.insert(set, word);
            self.pending |= 1 << segment;
        }
    }

    /// Moves the cursor to a word with room. False if there is no memory, or the limit is reached.
    #[cold]
    #[inline(never)]
    fn move_cursor(&mut self, form: Form) -> bool {
        let hint = core::mem::replace(&mut self.hint, NO_HINT);
        if hint != NO_HINT {
            let segment = form.segment(hint);
            let word = (hint as usize - form.first_index(segment)) / WORD;
            if self.set_cursor(form, segment, word) {
                if let Some(head) = self.head_mut(segment) {
                    let (levels, set) = head.set();
                    levels.remove(set, word);
                }
                return true;
            }
        }
        while self.pending != 0 {
            let segment = self.pending.trailing_zeros() as usize;
            let Some(head) = self.head_mut(segment) else { break };
            let (levels, set) = head.set();
            let (first, bits) = levels.take_lowest(set, 1);
            if bits == 0 {
                self.pending &= !(1 << segment);
            } else if self.set_cursor(form, segment, first + bits.trailing_zeros() as usize) {
                return true;
            }
        }
        self.touch_word(form)
    }

    /// Moves the cursor to a touched word with room. False if the word is untouched or full.
    fn set_cursor(&mut self, form: Form, segment: usize, word: usize) -> bool {
        if self.head(segment).is_none_or(|head| head.touched <= word) {
            return false;
        }
        let index = form.first_index(segment) + word * WORD;
        let word = self.live[segment].wrapping_add(index / WORD);
        // SAFETY: the word is one of the segment's.
        if unsafe { word.read() } == u64::MAX {
            return false;
        }
        let slots = self.slot(form, segment, index);
        self.cursor = Cursor { word, slots, first: index as u32, floor: self.floors[segment] };
        true
    }

    fn touch_word(&mut self, form: Form) -> bool {
        for segment in form.first_segment()..SEGMENTS {
            if self.head(segment).is_none() && !self.open(form, segment, 1) {
                return false;
            }
            let live = self.live[segment].wrapping_add(form.first_index(segment) / WORD);
            let Some(head) = self.head_mut(segment) else { return false };
            let word = head.touched;
            if word < head.words() {
                head.touched += 1;
                let absent = !head.slots_of(word);
                // SAFETY: the word is one of the segment's. Slots that do not exist are not free.
                unsafe { live.wrapping_add(word).write(absent) };
                return self.set_cursor(form, segment, word);
            }
        }
        false
    }

    /// Takes an id for the table, if it has none. False if there is no memory.
    fn begin(&mut self) -> bool {
        if self.name.is_none() && substrate::open_and_begin() {
            fork::join();
            self.name = Name::take(self.name());
        }
        self.name.is_some()
    }

    fn id(&self) -> u32 {
        self.name.map_or(0, Slot::id)
    }

    /// Makes the next segment. If memory does not suffice for all indexes, the segment has fewer
    /// slots, but not fewer than `least`. False without memory or at the limit.
    #[cold]
    fn open(&mut self, form: Form, segment: usize, least: usize) -> bool {
        let left = (self.config.limit as usize).saturating_sub(self.capacity());
        // The last index stays unused: it is the null key's.
        let all = form.share(segment).min(u32::MAX as usize - form.first_index(segment));
        let mut slots = all.min(left);
        while slots >= least.max(1) && self.begin() {
            if self.open_with(form, segment, slots) {
                return true;
            }
            slots = if slots * form.shape.size() > UNIT { slots / 2 } else { 0 };
        }
        false
    }

    pub(super) fn open_with(&mut self, form: Form, segment: usize, slots: usize) -> bool {
        let (shape, id, first) = (form.shape, self.id(), form.first_index(segment));
        let colour = form.colour(id);
        let Some(bytes) = slots.checked_mul(shape.size()).and_then(|b| b.checked_add(colour))
        else {
            return false;
        };
        let huge = bytes >= HUGE_PAGE && self.config.wants_huge_pages(&shape, self.capacity());
        let align = if huge { shape.align().max(HUGE_PAGE) } else { shape.align() };
        let (units, align) = (bytes.div_ceil(UNIT), align.div_ceil(UNIT));
        let words = slots.div_ceil(WORD);
        let levels = Levels::of(words);
        let side = size_of::<Head>() + (words + levels.words()) * size_of::<u64>();
        let Some(side) = Side::take(side) else { return false };
        let head = Entry::pool_head(id);
        let Some(run) = runs::take(units, align, Want::Zero, head, Entry::pool_rest) else {
            let mut side = side;
            side.give();
            return false;
        };
        let record = MAP.record(run.unit);
        record.usable.store(shape.size(), Ordering::Relaxed);
        record.requested.store(colour, Ordering::Relaxed);
        record.heap.store(segment as u32, Ordering::Relaxed);
        let at = MAP.address_of(run.unit);
        if huge {
            // SAFETY: the run is ours, committed, and whole pages.
            unsafe { os::advise_huge_pages(at, units * UNIT, true) };
        }
        let slot = at.wrapping_add(colour);
        if !run.zero {
            for slot in (0..slots).map(|number| slot.wrapping_add(number * shape.size())) {
                // SAFETY: the slot is in the new run, and every slot has a generation.
                unsafe { generation_of(slot).write(0) };
            }
        }
        self.slots[segment] = slot.wrapping_sub(first * shape.size());
        let head = side.at().cast::<Head>();
        let live = side.at().wrapping_add(size_of::<Head>()).cast::<u64>();
        self.live[segment] = live.wrapping_sub(first / WORD);
        let (unit, set) = (run.unit, live.wrapping_add(words));
        let new = Head { side, unit, units, slots, touched: 0, used: 0, levels, set, huge };
        // SAFETY: the side memory begins with room for the head, aligned to a unit.
        unsafe { head.write(new) };
        self.heads[segment] = head;
        self.ends[segment] = (first + slots) as u32;
        true
    }

    /// Returns the slot for another pool's key. Makes its segment if needed. `None` without memory.
    pub(super) fn place(&mut self, form: Form, key: RawKey) -> Option<Place> {
        let (index, segment) = (key.index() as usize, form.segment(key.index()));
        // Other keys want the segment's other indexes, so a map makes only whole segments.
        for segment in form.first_segment()..=segment {
            let all = form.share(segment).min(u32::MAX as usize - form.first_index(segment));
            if self.head(segment).is_none() && !self.open(form, segment, all) {
                return None;
            }
        }
        if key.index() >= self.ends[segment] {
            return None;
        }
        let word = (index - form.first_index(segment)) / WORD;
        let head = self.head_mut(segment)?;
        head.touched = head.touched.max(word + 1);
        let slot = self.slot(form, segment, index);
        // SAFETY: every index below its segment's end has a slot with a generation.
        let generation = unsafe { generation_of(slot).read() };
        let there = (generation % 2 == 1).then(|| RawKey::of(key.index(), generation));
        let word = self.live[segment].wrapping_add(index / WORD);
        Some(Place { found: Found { slot, word, index: key.index() }, key, there })
    }

    /// Notes that the slot of a place holds an object of the place's key.
    ///
    /// # Safety
    ///
    /// [`Table::place`] of this table made the place, and the table did not change since. The slot
    /// holds an object.
    pub(super) unsafe fn hold(&mut self, place: Place) {
        let Place { found: Found { slot, word, index }, key, there } = place;
        // SAFETY: `place` found the slot in this table, and every slot has a generation.
        unsafe { generation_of(slot).write(key.generation()) };
        if there.is_none() {
            // SAFETY: `place` found the slot in this table, and this word has its bit.
            let live = unsafe { word.read() };
            // SAFETY: `place` found the slot in this table, and this word has its bit.
            unsafe { word.write(live | 1 << (index % WORD as u32)) };
            self.len += 1;
        }
    }

    /// Hides an object from searches for its key, or shows it again.
    ///
    /// # Safety
    ///
    /// `found` is of this table, and its object is there. The caller shows the object again before
    /// it calls any function of the table but [`Table::find`].
    #[inline]
    pub(super) unsafe fn hide(&mut self, found: Found, hidden: bool) {
        let generation = generation_of(found.slot);
        // SAFETY: the slot is this table's, and every slot has a generation.
        let now = unsafe { generation.read() };
        let next = if hidden { now.wrapping_add(1) } else { now.wrapping_sub(1) };
        // SAFETY: the slot is this table's, and every slot has a generation.
        unsafe { generation.write(next) };
    }

    /// Returns the key of the object that begins at an address, if there is one.
    pub(super) fn at(&self, form: Form, address: usize) -> Option<RawKey> {
        let (segment, offset) = self.segment_of(form, address)?;
        let index = form.first_index(segment) + form.shape.slot_at(offset)?;
        if index >= self.ends[segment] as usize {
            return None;
        }
        // SAFETY: every index below its segment's end has a slot with a generation.
        let generation = unsafe { generation_of(self.slot(form, segment, index)).read() };
        (generation % 2 == 1).then(|| RawKey::of(index as u32, generation))
    }

    /// Returns an address's segment, and the address's offset from the segment's first slot.
    pub(super) fn segment_of(&self, form: Form, address: usize) -> Option<(usize, usize)> {
        let segment = segment::number_of(self.id(), address)?;
        let first = self.slots.get(segment)?.addr();
        let first = first.wrapping_add(form.first_index(segment) * form.shape.size());
        Some((segment, address.wrapping_sub(first)))
    }

    pub(super) fn capacity(&self) -> usize {
        self.heads().map(|head| head.slots).sum()
    }

    fn heads(&self) -> impl Iterator<Item = &Head> + Clone {
        (0..SEGMENTS).filter_map(|segment| self.head(segment))
    }

    pub(super) fn preheat(&mut self, form: Form, count: usize, touch: bool) -> bool {
        for segment in form.first_segment()..SEGMENTS {
            if self.capacity() >= count {
                break;
            }
            if self.head(segment).is_none() && !self.open(form, segment, 1) {
                return false;
            }
        }
        for segment in form.first_segment()..SEGMENTS {
            if let Some(head) = self.head(segment).filter(|_| touch) {
                let at = MAP.address_of(head.unit);
                // SAFETY: the pages belong to the segment's run, and their contents stay.
                unsafe { os::populate(at, head.units * UNIT) };
            }
        }
        self.capacity() >= count
    }

    /// Raises a segment's floor to its highest generation. If false, the segment's pages must stay.
    fn raise_floor(&mut self, form: Form, segment: usize) -> bool {
        let Some(head) = self.head(segment) else { return false };
        let (first, mut floor) = (form.first_index(segment), self.floors[segment]);
        for index in first..first + head.slots_used() {
            // SAFETY: the segment has slots from its first index on, each with a generation.
            let generation = unsafe { generation_of(self.slot(form, segment, index)).read() };
            floor = floor.max(generation & !1);
        }
        if floor > HIGHEST_FLOOR {
            return false;
        }
        self.floors[segment] = floor;
        if form.segment(self.cursor.first) == segment {
            self.cursor.floor = floor;
        }
        true
    }

    /// Releases the last segment, which has no object. Its floor is raised, or no key is left.
    fn close(&mut self, form: Form, segment: usize, now: bool) -> usize {
        self.no_more_huge_pages(segment);
        let Some(head) = self.head_mut(segment) else { return 0 };
        let (unit, units) = (head.unit, head.units);
        let bytes = head.slots_used() * form.shape.size();
        let mut side = core::mem::replace(&mut head.side, Side::NONE);
        self.ends[segment] = 0;
        self.heads[segment] = ptr::null_mut();
        self.pending &= !(1 << segment);
        if form.segment(self.cursor.first) == segment {
            self.cursor = Cursor::NONE;
        }
        // The head lies in this memory, and is not used from here on.
        side.give();
        if now {
            // SAFETY: the run is ours, and no object is in its slots.
            unsafe { runs::give_purged(unit, units) };
        } else {
            runs::give(unit, units);
        }
        bytes
    }

    /// Stops the use of huge pages, which would make released memory resident again.
    fn no_more_huge_pages(&mut self, segment: usize) {
        if let Some(head) = self.head_mut(segment)
            && core::mem::take(&mut head.huge)
        {
            let at = MAP.address_of(head.unit);
            // SAFETY: the run is ours, committed, and whole pages.
            unsafe { os::advise_huge_pages(at, head.units * UNIT, false) };
        }
    }

    /// Frees every slot without a drop, makes every key stale, and keeps memory as `how` says.
    pub(super) fn reset(&mut self, form: Form, how: Reset) {
        let mut walk = Walk::new(form);
        while let Some(found) = walk.next(self, form) {
            // SAFETY: the walk just found the slot, and nothing uses its object any more.
            unsafe { self.vacate(form, found) };
        }
        let keep = match how {
            Reset::FreeAll => 0,
            Reset::RetainCapacity => usize::MAX,
            Reset::RetainUpTo(slots) => slots,
        };
        let mut last = true;
        for segment in (form.first_segment()..SEGMENTS).rev() {
            let first = form.first_index(segment);
            let Some(head) = self.head(segment) else { continue };
            let (unit, end) = (head.unit, first + head.slots);
            let goes = keep < end && self.raise_floor(form, segment);
            last &= goes && keep <= first;
            if last {
                self.close(form, segment, false);
            } else if goes {
                self.no_more_huge_pages(segment);
                let from = self.slot(form, segment, keep.max(first));
                let to = self.slot(form, segment, end);
                // SAFETY: all objects are gone, no generation is above the floor, and the table is
                // borrowed mutably.
                unsafe { purge(unit, from.addr(), to.addr()) };
            }
            // The next insertions fill the segment from its start.
            if let Some(head) = self.head_mut(segment) {
                let (levels, set) = head.set();
                levels.clear(set);
                (head.used, head.touched) = (head.used.max(head.touched), 0);
            }
        }
        (self.cursor, self.hint, self.pending) = (Cursor::NONE, NO_HINT, 0);
    }

    pub(super) fn trim(&mut self, form: Form) -> usize {
        let (mut bytes, mut last) = (0, true);
        for segment in (form.first_segment()..SEGMENTS).rev() {
            let Some(head) = self.head(segment) else { continue };
            let (unit, slots) = (head.unit, head.slots_used());
            let first = form.first_index(segment);
            let mut walk = Walk { segment, ..Walk::new(form) };
            let mut next =
                |table: &Self| walk.next(table, form).filter(|_| walk.segment == segment);
            let mut found = next(self);
            let goes = self.raise_floor(form, segment);
            last &= goes && found.is_none();
            if last {
                bytes += self.close(form, segment, true);
            }
            if last || !goes {
                continue;
            }
            self.no_more_huge_pages(segment);
            let mut from = MAP.address_of(unit).addr();
            while let Some(one) = found {
                // SAFETY: the walk found no object between `from` and this object's generation. No
                // other generation is above the floor, and the table is borrowed mutably.
                bytes += unsafe { purge(unit, from, generation_of(one.slot).addr()) };
                from = one.slot.addr() + form.shape.size();
                found = next(self);
            }
            let end = self.slot(form, segment, first + slots).addr();
            let end = end.next_multiple_of(SYSTEM.page_size());
            // SAFETY: the walk found no object from here on, no generation there is above the
            // floor, and the table is borrowed mutably.
            bytes += unsafe { purge(unit, from, end) };
        }
        bytes
    }

    /// Releases all memory and the id. The objects must have been dropped.
    pub(super) fn end(&mut self, form: Form) {
        for segment in (form.first_segment()..SEGMENTS).rev() {
            // No key exists any more, so no generation matters.
            self.close(form, segment, false);
        }
        if let Some(name) = self.name.take() {
            Name::give(name);
        }
        self.len = 0;
    }

    pub(super) fn stats(&self, form: Form) -> Stats {
        let heads = self.heads();
        let units = heads.clone().map(|head| head.units).sum::<usize>();
        Stats {
            live: self.len,
            capacity: self.capacity(),
            slot_size: form.shape.size(),
            segments: heads.count(),
            reserved_bytes: units * UNIT,
        }
    }
}
