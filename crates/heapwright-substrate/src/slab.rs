//! Slabs: one unit of 64 KiB cut into equal slots.
//!
//! ```text
//!   unit     | slot 0 | slot 1 | ... | slot carved-1 | untouched ........ |
//!   record   | links | carved | free | summary | ... | bitmap of 512 bits |   far from the slots
//!   summary  bit i: word i of the bitmap is not 0
//!
//!   untouched --carve--> out (in a list, or in use) --put--> returned
//!                            ^---------------take---------------------+
//! ```
//!
//! Only the slab's owner changes the state of a slot. *Carving* advances a frontier a page at a
//! time, so memory that no request needs is not touched. *Returned* slots are bits, not links: the
//! lowest addresses (or random ones) go out first, and a second return is detected. A page can go
//! back to the kernel if no slot in it is out.
//!
//! Slabs with more than 512 slots (slots under 128 bytes) keep their bitmap in the unit's side
//! bitmap.
//!
//! Invariants: `free` counts the set bits of the bitmap, `summary` has a bit for each non-zero
//! word, and no bit at or above `carved` is set. For access to fields see `unit_record`.

use core::mem::offset_of;

use crate::address_map::{AddressMap, SIDE_BITMAP};
use crate::os::{self, Memory};
use crate::purge_delay;
use crate::remote::Block;
use crate::size_class::{self, UNIT, UNIT_SHIFT};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::unit_record::{INLINE_WORDS, Record};

/// The grain of carving, and of the bitmap of purged pages.
pub const CARVE: usize = 4096;

/// A chain of free blocks, linked through their first words.
#[derive(Clone, Copy)]
pub struct Chain {
    /// The first block.
    pub head: *mut Block,
    /// The last block.
    pub tail: *mut Block,
    /// The number of blocks.
    pub count: usize,
}

/// One slab, for its owner.
#[derive(Clone, Copy)]
pub struct Slab<'a> {
    map: &'a AddressMap,
    record: &'a Record,
    /// The unit of the slab.
    pub unit: usize,
    /// The size class of its slots.
    pub class: usize,
}

impl<'a> Slab<'a> {
    /// The slab of `class` at `unit`.
    #[inline]
    pub fn at(map: &'a AddressMap, unit: usize, class: usize) -> Self {
        Self { map, record: map.record(unit), unit, class }
    }

    /// Sets the record of a new slab, whose slots are all untouched. The bitmap must be clear.
    pub fn open(&self, zero: bool) {
        let record = self.record;
        debug_assert!(record.summary.load(Ordering::Relaxed) == 0);
        record.carved.store(0, Ordering::Relaxed);
        record.free.store(0, Ordering::Relaxed);
        record.purged.store(0, Ordering::Relaxed);
        record.listed.store(0, Ordering::Relaxed);
        record.zero.store(u8::from(zero), Ordering::Relaxed);
    }

    /// In a forked child: counts every slot as out, and takes the slab out of its list.
    pub fn all_out_after_fork(&self) {
        let capacity = size_class::capacity(self.class);
        for word in 0..capacity.div_ceil(64) {
            self.word(word).store(0, Ordering::Relaxed);
        }
        self.record.summary.store(0, Ordering::Relaxed);
        self.record.carved.store(capacity as u16, Ordering::Relaxed);
        self.record.free.store(0, Ordering::Relaxed);
        self.record.purged.store(0, Ordering::Relaxed);
        self.record.listed.store(0, Ordering::Relaxed);
    }

    /// Clears the bitmap for another use of the unit.
    #[inline]
    pub fn clear(&self) {
        let mut summary = self.record.summary.load(Ordering::Relaxed);
        while summary != 0 {
            self.word(summary.trailing_zeros() as usize).store(0, Ordering::Relaxed);
            summary &= summary - 1;
        }
        self.record.summary.store(0, Ordering::Relaxed);
    }

    /// Slots below the frontier: they were handed out, or opened ([`Slab::open_slots`]).
    #[inline]
    pub fn carved(&self) -> usize {
        self.record.carved.load(Ordering::Relaxed) as usize
    }

    /// Slots that count as returned.
    #[inline]
    pub fn free(&self) -> usize {
        self.record.free.load(Ordering::Relaxed) as usize
    }

    /// Whether some slots are untouched.
    #[inline]
    pub fn has_untouched(&self) -> bool {
        self.carved() < size_class::capacity(self.class)
    }

    /// Whether no slot is out.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.carved() == self.free()
    }

    /// Whether the slab is in the partial list.
    #[inline]
    pub fn is_listed(&self) -> bool {
        self.record.listed.load(Ordering::Relaxed) != 0
    }

    /// Notes whether the slab is in the partial list.
    #[inline]
    pub fn set_listed(&self, listed: bool) {
        self.record.listed.store(u8::from(listed), Ordering::Relaxed);
    }

    fn slot(&self, index: usize) -> *mut Block {
        self.map.address_of(self.unit).wrapping_add(index * size_class::size(self.class)).cast()
    }

    #[inline]
    fn word(&self, index: usize) -> &'a AtomicU64 {
        if size_class::capacity(self.class) <= INLINE_WORDS * 64 {
            &self.record.bitmap[index]
        } else {
            let word = self.map.side_bitmap(self.unit).cast::<AtomicU64>().wrapping_add(index);
            // SAFETY: the side bitmap is committed with the record, aligned, and has a word for
            // every 64 slots of the smallest class.
            unsafe { &*word }
        }
    }

    /// Whether untouched slots read as zero.
    #[inline]
    pub fn is_zero(&self) -> bool {
        self.record.zero.load(Ordering::Relaxed) != 0
    }

    /// Hands out untouched slots, at least one and at most `most`, each linked to the next. Links
    /// touch memory, so all these slots end in one page. Slots of more than half a page are
    /// different: only one goes out if the slab reads as zero, otherwise up to `most`.
    pub fn carve(&self, most: usize) -> Option<Chain> {
        let size = size_class::size(self.class);
        let capacity = size_class::capacity(self.class);
        let from = self.carved();
        if from == capacity {
            return None;
        }
        let page_end = ((from + 1) * size).next_multiple_of(CARVE);
        let at_once = match (size > CARVE / 2, self.is_zero()) {
            (true, false) => capacity - from,
            (true, true) => 1,
            (false, _) => page_end / size - from,
        };
        let to = (from + at_once.min(most.max(1))).min(capacity);
        self.record.carved.store(to as u16, Ordering::Relaxed);
        self.touch(from, to);
        let head = self.slot(from);
        let mut tail = head;
        for index in from + 1..to {
            let next = self.slot(index);
            // SAFETY: this is an untouched slot of this slab, a word at least.
            unsafe { Block::set_next(tail, next) };
            tail = next;
        }
        Some(Chain { head, tail, count: to - from })
    }

    /// Whether a slot was returned, and not taken since.
    #[inline]
    pub fn is_returned(&self, index: usize) -> bool {
        index < size_class::capacity(self.class)
            && self.word(index / 64).load(Ordering::Relaxed) >> (index % 64) & 1 != 0
    }

    /// Takes up to `most` returned slots, lowest addresses first, linked. The stamp becomes `now`.
    pub fn take(&self, most: usize, now: u32) -> Option<Chain> {
        let mut chain: Option<Chain> = None;
        let mut count = 0;
        let mut summary = self.record.summary.load(Ordering::Relaxed);
        while summary != 0 && count < most {
            let at = summary.trailing_zeros() as usize;
            let word = self.word(at);
            let mut bits = word.load(Ordering::Relaxed);
            while bits != 0 && count < most {
                let index = at * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                count += 1;
                self.touch(index, index + 1);
                let block = self.slot(index);
                match &mut chain {
                    None => chain = Some(Chain { head: block, tail: block, count: 0 }),
                    Some(chain) => {
                        // SAFETY: this is a returned slot of this slab, a word at least.
                        unsafe { Block::set_next(chain.tail, block) };
                        chain.tail = block;
                    }
                }
            }
            word.store(bits, Ordering::Relaxed);
            if bits == 0 {
                summary &= summary - 1;
            }
        }
        self.record.summary.store(summary, Ordering::Relaxed);
        let free = self.free();
        self.record.free.store((free - count) as u16, Ordering::Relaxed);
        self.record.stamp.store(now, Ordering::Relaxed);
        chain.map(|chain| Chain { count, ..chain })
    }

    /// Makes untouched slots below `to` count as returned, for an owner that draws at random.
    pub fn open_slots(&self, to: usize) {
        let from = self.carved();
        let to = to.min(size_class::capacity(self.class));
        let mut summary = self.record.summary.load(Ordering::Relaxed);
        for index in from..to {
            let word = self.word(index / 64);
            word.store(word.load(Ordering::Relaxed) | 1 << (index % 64), Ordering::Relaxed);
            summary |= 1 << (index / 64);
        }
        self.record.summary.store(summary, Ordering::Relaxed);
        self.record.carved.store(to as u16, Ordering::Relaxed);
        self.record.free.store((self.free() + to - from) as u16, Ordering::Relaxed);
    }

    /// Takes up to `most` returned slots, from a random slot on. Passes their indexes to `sink`.
    /// Returns their number.
    #[inline]
    pub fn draw(&self, most: usize, random: u32, mut sink: impl FnMut(usize)) -> usize {
        let mut summary = self.record.summary.load(Ordering::Relaxed);
        let has_purged = self.record.purged.load(Ordering::Relaxed) != 0;
        let mut left = most;
        let first = one_of(summary, random & 0xffff);
        while summary != 0 && left > 0 {
            let at = ((summary.rotate_right(first).trailing_zeros() + first) % 64) as usize;
            let word = self.word(at);
            let free = word.load(Ordering::Relaxed);
            let turn = one_of(free, random >> 16);
            let mut bits = free.rotate_right(turn);
            while bits != 0 && left > 0 {
                let bit = (bits.trailing_zeros() + turn) % 64;
                bits &= bits - 1;
                left -= 1;
                let index = at * 64 + bit as usize;
                if has_purged {
                    self.touch(index, index + 1);
                }
                sink(index);
            }
            word.store(bits.rotate_left(turn), Ordering::Relaxed);
            if bits == 0 {
                summary &= !(1 << at);
            }
        }
        self.record.summary.store(summary, Ordering::Relaxed);
        self.record.free.store((self.free() - (most - left)) as u16, Ordering::Relaxed);
        most - left
    }

    #[inline]
    fn touch(&self, from: usize, to: usize) {
        let purged = self.record.purged.load(Ordering::Relaxed);
        if purged != 0 {
            let size = size_class::size(self.class);
            let mask = pages(from * size / CARVE, (to * size).div_ceil(CARVE));
            self.record.purged.store(purged & !mask, Ordering::Relaxed);
            if purged & mask != 0 && purge_delay::were_given() {
                let touched = (purged & mask).count_ones() as usize * CARVE;
                purge_delay::note_touched(touched, os::coarse_ms());
            }
        }
    }

    /// Bytes that are probably in memory: pages that were touched, by this slab or an earlier use
    /// of the unit, and not given back since. Huge pages may add more.
    pub fn reckoned_resident(&self) -> usize {
        let touched = if self.is_zero() {
            (self.carved() * size_class::size(self.class)).div_ceil(CARVE).min(UNIT / CARVE)
        } else {
            UNIT / CARVE
        };
        let purged = self.record.purged.load(Ordering::Relaxed) & pages(0, touched);
        (touched - purged.count_ones() as usize) * CARVE
    }

    /// The time at which a slot was last taken (not drawn) or returned, in milliseconds.
    #[inline]
    pub fn stamp(&self) -> u32 {
        self.record.stamp.load(Ordering::Relaxed)
    }

    /// Gives back carved pages in which no slot is out. Returns the number of bytes.
    pub fn purge(&self, os: &impl Memory) -> usize {
        let size = size_class::size(self.class);
        let page = os.page_size().max(CARVE);
        if page > UNIT || self.free() * size < page {
            return 0;
        }
        let carved = self.carved();
        let mut given = 0;
        let mut from = None;
        for at in (0..UNIT).step_by(page).chain([UNIT]) {
            let goes = at < carved * size && at < UNIT && {
                let first = at / size;
                let last = ((at + page - 1) / size).min(carved - 1);
                let here = pages(at / CARVE, (at + page) / CARVE);
                self.record.purged.load(Ordering::Relaxed) & here != here
                    && (first..=last).all(|index| self.is_returned(index))
            };
            match (goes, from) {
                (true, None) => from = Some(at),
                (false, Some(start)) => {
                    let first = self.map.address_of(self.unit).wrapping_add(start);
                    // SAFETY: every slot in these committed pages was returned: no thread uses
                    // them.
                    if unsafe { os.decommit(first, at - start) } {
                        let purged = self.record.purged.load(Ordering::Relaxed);
                        let mask = pages(start / CARVE, at / CARVE);
                        self.record.purged.store(purged | mask, Ordering::Relaxed);
                        given += at - start;
                    }
                    from = None;
                }
                _ => {}
            }
        }
        given
    }

    /// The slot that contains `address`, and the offset in it. `None`: behind the last slot.
    #[inline]
    pub fn locate(&self, address: usize) -> Option<(usize, usize)> {
        let offset = address & (UNIT - 1);
        let index = size_class::slot_of(self.class, offset);
        (index < size_class::capacity(self.class))
            .then(|| (index, offset - index * size_class::size(self.class)))
    }
}

/// Returns slots of one class to their slabs, each slab in a [`Visit`].
#[derive(Clone, Copy)]
pub struct WayBack {
    records: *const Record,
    /// The bitmap of unit 0, and the bytes from a unit's bitmap to the next unit's.
    bitmaps: *const u8,
    stride: usize,
    reciprocal: u64,
    now: u32,
}

impl WayBack {
    /// For slots of `class` that return at the time `now`.
    #[inline]
    pub fn of(map: &AddressMap, class: usize, now: u32) -> Self {
        let records = map.records();
        let (bitmaps, stride) = if size_class::capacity(class) <= INLINE_WORDS * 64 {
            (records.cast::<u8>().wrapping_add(offset_of!(Record, bitmap)), size_of::<Record>())
        } else {
            (map.side_bitmap(0).cast_const(), SIDE_BITMAP)
        };
        Self { records, bitmaps, stride, reciprocal: size_class::reciprocal(class).into(), now }
    }

    /// Begins to put slots back into the slab at `unit`.
    ///
    /// # Safety
    ///
    /// The unit is a slab of the class and map, and the caller's.
    #[inline(always)]
    pub unsafe fn visit(&self, unit: usize) -> Visit<'_> {
        // SAFETY: records below the limit are committed, and all fields are atomics.
        let record = unsafe { &*self.records.wrapping_add(unit) };
        Visit {
            way: self,
            record,
            words: self.bitmaps.wrapping_add(unit * self.stride).cast(),
            carved: record.carved.load(Ordering::Relaxed).into(),
            free: record.free.load(Ordering::Relaxed).into(),
            summary: record.summary.load(Ordering::Relaxed),
        }
    }
}

/// The return of slots to one slab, one after another.
pub struct Visit<'a> {
    way: &'a WayBack,
    record: &'a Record,
    words: *const AtomicU64,
    carved: usize,
    free: usize,
    summary: u64,
}

impl Visit<'_> {
    /// Takes back the slot at `offset`. False: it was never out, or is back already.
    #[inline(always)]
    #[must_use]
    pub fn put(&mut self, offset: usize) -> bool {
        let index = ((offset as u64 * self.way.reciprocal) >> 32) as usize;
        if index >= self.carved {
            return false;
        }
        // SAFETY: a carved slot's bit is in the slab's bitmap.
        let word = unsafe { &*self.words.wrapping_add(index / 64) };
        let bits = word.load(Ordering::Relaxed);
        let bit = 1 << (index % 64);
        if bits & bit != 0 {
            return false;
        }
        word.store(bits | bit, Ordering::Relaxed);
        self.summary |= 1 << (index / 64);
        self.free += 1;
        true
    }

    /// Ends the visit. True: the slab is empty or not in the partial list, so the caller must act.
    #[inline(always)]
    #[must_use]
    pub fn finish(self) -> bool {
        let record = self.record;
        record.summary.store(self.summary, Ordering::Relaxed);
        record.free.store(self.free as u16, Ordering::Relaxed);
        record.stamp.store(self.way.now, Ordering::Relaxed);
        self.free == self.carved || record.listed.load(Ordering::Relaxed) == 0
    }
}

/// The place of a set bit of the mask. All set bits are equally probable. 0: the mask is empty.
fn one_of(mask: u64, random: u32) -> u32 {
    let mut before = random.checked_rem(mask.count_ones()).unwrap_or(0);
    let mut from = 0;
    let mut byte = mask as u8;
    while before >= byte.count_ones() && from < 56 {
        before -= byte.count_ones();
        from += 8;
        byte = (mask >> from) as u8;
    }
    for _ in 0..before {
        byte &= byte - 1;
    }
    (from + byte.trailing_zeros()) % 64
}

fn pages(from: usize, to: usize) -> u16 {
    (((1u32 << to.min(16)) - 1) & !((1u32 << from) - 1)) as u16
}

const _: () = assert!(UNIT / CARVE == 16 && UNIT_SHIFT == 16);

#[cfg(test)]
mod tests;
