//! One segment of a pool: a run of units cut into slots, and its metadata.
//!
//! ```text
//!   units     | colour | slot 0 | slot 1 | ... | slot carved-1 | untouched ........ |
//!
//!   side      the set of returned slots (`returned`), in units of its own
//!   leases    a word for each slot of a shared pool, in units of its own, from the first key on
//! ```
//!
//! A slot is in one of three states:
//!
//! ```text
//!   untouched --carve--> out (the program's, or in a front) --put--> returned
//!                            ^---------------take----------------------+
//! ```
//!
//! The record of the first unit holds the slot size, the colour and the segment's number, for
//! lookups of any address. Free slots hold no data, so their pages can go back to the kernel.
//!
//! Leases outlive the slots: a closed segment keeps them, so keys of dead objects stay stale.
//!
//! Called by `store`, `raw`, `checked` and `keys`.

use core::ptr;
use core::slice;

use super::layout::Shape;
use super::returned::Levels;
use crate::address_map::{Entry, Kind, MAP};
use crate::chunk::{self, Side, Want};
use crate::leases::Lease;
use crate::os::SYSTEM;
use crate::os::{self, HUGE_PAGE, Memory};
use crate::runs;
use crate::size_class::UNIT;
use crate::sync::atomic::Ordering;

/// A segment. If all bytes are zero, there is none.
pub(super) struct Segment {
    base: *mut u8,
    unit: usize,
    units: usize,
    slots: usize,
    /// Bytes of all slots.
    span: usize,
    /// Slots that were ever handed out, from the start of the segment.
    pub(super) carved: usize,
    /// Slots in the set of returned slots.
    pub(super) free: usize,
    levels: Levels,
    side: Side,
    leases: Side,
    huge: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Of {
    pub(super) shape: Shape,
    pub(super) id: u32,
    pub(super) huge: bool,
}

/// Returns the number of the segment of pool `id` that an address lies in.
#[inline]
pub(super) fn number_of(id: u32, address: usize) -> Option<usize> {
    let (unit, entry) = MAP.lookup(address);
    let head = match entry.kind() {
        Kind::PoolHead => unit,
        Kind::PoolRest(head) => head,
        _ => return None,
    };
    let (_, entry) = MAP.lookup(MAP.address_of(head).addr());
    let is_ours = entry.kind() == Kind::PoolHead && entry.owner() == id;
    is_ours.then(|| MAP.record(head).heap.load(Ordering::Relaxed) as usize)
}

impl Segment {
    pub(super) fn exists(&self) -> bool {
        !self.base.is_null()
    }

    pub(super) fn open(&mut self, of: Of, number: usize, slots: usize) -> bool {
        debug_assert!(!self.exists());
        let Of { shape, id, huge } = of;
        let colour = shape.colour(id);
        let Some(bytes) = slots.checked_mul(shape.size()).and_then(|b| b.checked_add(colour))
        else {
            return false;
        };
        let huge = huge && bytes >= HUGE_PAGE;
        let align = if huge { shape.align().max(HUGE_PAGE) } else { shape.align() };
        let (units, align) = (bytes.div_ceil(UNIT), align.div_ceil(UNIT));
        let head = Entry::pool_head(id);
        let Some(run) = runs::take(units, align, Want::Any, head, Entry::pool_rest) else {
            return false;
        };
        let levels = Levels::of(slots);
        // Checked builds have a second set, of the slots that are out.
        let sets = if cfg!(feature = "checked") { 2 } else { 1 };
        let Some(side) = Side::take(sets * levels.words() * size_of::<u64>()) else {
            runs::give(run.unit, units);
            return false;
        };
        let record = MAP.record(run.unit);
        record.usable.store(shape.size(), Ordering::Relaxed);
        record.requested.store(colour, Ordering::Relaxed);
        record.heap.store(number as u32, Ordering::Relaxed);
        let at = MAP.address_of(run.unit);
        if huge {
            // SAFETY: the run is ours, committed, and whole pages.
            unsafe { os::advise_huge_pages(at, units * UNIT, true) };
        }
        *self = Self {
            base: at.wrapping_add(colour),
            unit: run.unit,
            units,
            slots,
            span: slots * shape.size(),
            carved: 0,
            free: 0,
            levels,
            side,
            leases: self.leases,
            huge,
        };
        true
    }

    /// Releases all memory but the leases, at once if `now`. No slot may be in use.
    pub(super) fn close(&mut self, now: bool) {
        self.no_more_huge_pages();
        if now {
            // SAFETY: the run is ours, and the caller promises that no slot is in use.
            unsafe { runs::give_purged(self.unit, self.units) };
        } else {
            runs::give(self.unit, self.units);
        }
        self.side.give();
        self.base = ptr::null_mut();
        (self.units, self.slots, self.span, self.carved, self.free) = (0, 0, 0, 0, 0);
    }

    /// Stops the use of huge pages, which would make released memory resident again.
    fn no_more_huge_pages(&mut self) {
        if self.huge {
            // SAFETY: the run is ours, committed, and whole pages.
            unsafe { os::advise_huge_pages(MAP.address_of(self.unit), self.units * UNIT, false) };
            self.huge = false;
        }
    }

    /// Releases the leases. No key may exist any more.
    pub(super) fn forget_leases(&mut self) {
        self.leases.give();
    }

    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    pub(super) fn untouched(&self) -> usize {
        self.slots - self.carved
    }

    pub(super) fn base(&self) -> *mut u8 {
        self.base
    }

    #[inline(always)]
    pub(super) fn holds(&self, address: usize) -> bool {
        address.wrapping_sub(self.base.addr()) < self.span
    }

    pub(super) fn bytes(&self) -> usize {
        self.units * UNIT
    }

    #[inline]
    pub(super) fn slot(&self, shape: &Shape, slot: usize) -> *mut u8 {
        debug_assert!(slot <= self.slots);
        self.base.wrapping_add(slot * shape.size())
    }

    /// Returns the number of the slot that begins at `address`, if it was ever handed out.
    #[inline]
    pub(super) fn number_of(&self, shape: &Shape, address: usize) -> Option<usize> {
        shape.slot_at(address.wrapping_sub(self.base.addr())).filter(|&slot| slot < self.carved)
    }

    fn set(&self, which: usize) -> (*mut u64, usize) {
        let words = self.levels.words();
        (self.side.at().cast::<u64>().wrapping_add(which * words), words)
    }

    /// Set 0 has the returned slots. In checked builds, set 1 has the slots that are out.
    fn words(&mut self, which: usize) -> &mut [u64] {
        let (at, words) = self.set(which);
        // SAFETY: the side memory has each set's words, aligned; the segment is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(at, words) }
    }

    fn words_seen(&self, which: usize) -> &[u64] {
        let (at, words) = self.set(which);
        // SAFETY: the side memory has each set's words, aligned; nothing writes during the borrow.
        unsafe { slice::from_raw_parts(at, words) }
    }

    /// Adds a slot to the set. False if the set had it already.
    #[inline]
    pub(super) fn put(&mut self, slot: usize) -> bool {
        let levels = self.levels;
        let fresh = levels.insert(self.words(0), slot);
        self.free += usize::from(fresh);
        fresh
    }

    /// Removes up to `most` of the lowest slots from the set. Returns the first slot of their word,
    /// and a bit for each removed slot.
    pub(super) fn take(&mut self, most: usize) -> (usize, u64) {
        let levels = self.levels;
        let (first, bits) = levels.take_lowest(self.words(0), most);
        self.free -= bits.count_ones() as usize;
        (first, bits)
    }

    pub(super) fn is_returned(&self, slot: usize) -> bool {
        self.levels.contains(self.words_seen(0), slot)
    }

    /// Returns the first slot at or after `from` that is out. All free slots must be in the set.
    pub(super) fn next_out(&self, from: usize) -> Option<usize> {
        self.levels.next_absent(self.words_seen(0), from, self.carved)
    }

    pub(super) fn forget(&mut self) {
        let levels = self.levels;
        levels.clear(self.words(0));
        if cfg!(feature = "checked") {
            levels.clear(self.words(1));
        }
        (self.carved, self.free) = (0, 0);
    }

    /// Records whether a slot is out. False if this was recorded already.
    pub(super) fn note_out(&mut self, slot: usize, out: bool) -> bool {
        let levels = self.levels;
        let words = self.words(1);
        if out {
            return levels.insert(words, slot);
        }
        levels.remove(words, slot)
    }

    /// Releases pages without a slot that is out. Returns the bytes. Free slots must be in the set.
    pub(super) fn purge(&mut self, shape: &Shape) -> usize {
        self.no_more_huge_pages();
        let page = SYSTEM.page_size();
        let end = self.touched(shape).next_multiple_of(page);
        let mut given = 0;
        let mut stretch = None;
        for at in (0..=end).step_by(page) {
            let goes = at < end && self.is_free(shape, at, at + page);
            match (goes, stretch) {
                (true, None) => stretch = Some(at),
                (false, Some(since)) => {
                    given += self.decommit(since, at);
                    stretch = None;
                }
                _ => {}
            }
        }
        given
    }

    /// Releases the pages behind the first `keep` slots. No code may use the later slots any more.
    pub(super) fn purge_behind(&self, shape: &Shape, keep: usize) {
        let page = SYSTEM.page_size();
        let from = self.slot(shape, keep).addr() - MAP.address_of(self.unit).addr();
        let (from, to) = (from.next_multiple_of(page), self.touched(shape).next_multiple_of(page));
        if from < to {
            self.decommit(from, to);
        }
    }

    /// Returns the bytes from the units' start to the end of the carved slots.
    fn touched(&self, shape: &Shape) -> usize {
        self.slot(shape, self.carved).addr() - MAP.address_of(self.unit).addr()
    }

    /// Gives bytes `from..to` of the units back to the kernel. They must be whole unused pages.
    fn decommit(&self, from: usize, to: usize) -> usize {
        let first = MAP.address_of(self.unit).wrapping_add(from);
        // SAFETY: the caller promises that no slot that is out reaches into these whole pages.
        unsafe { chunk::purge_pages(first, to - from) }
    }

    /// Returns whether no slot that is out reaches into bytes `from..to` of the units.
    fn is_free(&self, shape: &Shape, from: usize, to: usize) -> bool {
        let before = self.base.addr() - MAP.address_of(self.unit).addr();
        let first = from.saturating_sub(before) / shape.size();
        let last = to.saturating_sub(before).div_ceil(shape.size()).min(self.carved);
        first >= last || self.levels.contains_all(self.words_seen(0), first, last)
    }

    pub(super) fn populate(&self, shape: &Shape, count: usize) {
        let page = SYSTEM.page_size();
        let start = MAP.address_of(self.unit);
        let offset = |slot| self.slot(shape, slot).addr() - start.addr();
        let from = offset(self.carved) / page * page;
        let to = offset(self.carved + count).next_multiple_of(page);
        // SAFETY: the pages belong to our run, and their contents stay.
        unsafe { os::populate(start.wrapping_add(from), to - from) };
    }

    /// Returns the leases, one for each slot. Null before [`Segment::want_leases`].
    #[inline]
    pub(super) fn leases(&self) -> *mut Lease {
        self.leases.at().cast()
    }

    /// Makes leases for a segment of `share` indexes, if there are none. False without memory.
    #[cold]
    #[inline(never)]
    pub(super) fn want_leases(&mut self, share: usize) -> bool {
        if self.leases.at().is_null() {
            match Side::take(share * size_of::<Lease>()) {
                Some(leases) => self.leases = leases,
                None => return false,
            }
        }
        true
    }
}
