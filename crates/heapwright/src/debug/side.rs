//! Side memory: reservations for the records of blocks.
//!
//! ```text
//!   piece   | guard page | record | record | ...... | reserved .... | guard page |
//!   free    lists by order: 512 bytes, 1 KiB, 2 KiB, ... 128 KiB, and one for poison bits
//! ```
//!
//! Records are read without a lock, even after their end. A late read then sees another record of
//! the same order. So a record's memory is used for records only. Poison's bits have their own list
//! ([`Side::take_bits`]).
//!
//! The memory is not in the window, because a write far beyond a large block could reach it there.
//! It is excluded from core dumps. A freed record keeps its pages, cleared, while such pages are at
//! most 256 KiB, or a 32nd of the bytes in use. Other whole pages go back. Called by `store`,
//! `poisoned` and `process`, under the store's lock.

use core::ptr;

use crate::os::SYSTEM;
use crate::os::{self, Memory};

const SMALLEST: usize = 512;
const ORDERS: usize = 9;
pub(crate) const LARGEST: usize = SMALLEST << (ORDERS - 1);
/// Address space reserved at a time. If the kernel refuses, half of it is tried next.
const PIECE: usize = if cfg!(miri) { 1 << 20 } else { 64 << 20 };
const LEAST: usize = 4 * LARGEST;
/// A piece is at most this fraction of an address-space limit.
const SHARE: usize = 32;
/// Bytes that become accessible at a time.
const STEP: usize = 256 << 10;
/// Set in a free record's link if the record kept its pages. A stale reader sees the link's lowest
/// byte as a span's form, so it must stay 0 (`Form::Gone`).
const KEEPS: usize = SMALLEST / 2;
/// Free records keep pages up to this share of used bytes, or this many bytes.
const KEPT_SHARE: usize = 32;
const KEPT_LEAST: usize = 256 << 10;

pub(crate) struct Side {
    next: *mut u8,
    committed: *mut u8,
    end: *mut u8,
    /// Each free record begins with the address of the next, with [`KEEPS`] if this record's pages
    /// are in `kept`.
    free: [*mut u8; ORDERS + 1],
    used: usize,
    /// Bytes in free records that consist of whole pages and kept them.
    kept: usize,
}

// SAFETY: the pointers lead to memory that only the holder uses.
unsafe impl Send for Side {}

const OF_BITS: usize = ORDERS;
pub(crate) const BITS: usize = 8 << 10;

const fn order(size: usize) -> usize {
    let size = if size < SMALLEST { SMALLEST } else { size };
    (size.next_power_of_two() / SMALLEST).trailing_zeros() as usize
}

impl Side {
    pub(crate) const fn new() -> Self {
        Self {
            next: ptr::null_mut(),
            committed: ptr::null_mut(),
            end: ptr::null_mut(),
            free: [ptr::null_mut(); ORDERS + 1],
            used: 0,
            kept: 0,
        }
    }

    pub(crate) const fn used(&self) -> usize {
        self.used
    }

    /// Returns zeroed memory for a record of `size` bytes, aligned to 512, or null.
    pub(crate) fn take(&mut self, size: usize) -> *mut u8 {
        let order = order(size);
        if order >= ORDERS { ptr::null_mut() } else { self.take_from(order, SMALLEST << order) }
    }

    /// Returns [`BITS`] zeroed bytes that were never a record, or null.
    pub(crate) fn take_bits(&mut self) -> *mut u8 {
        self.take_from(OF_BITS, BITS)
    }

    fn take_from(&mut self, list: usize, size: usize) -> *mut u8 {
        let mut at = self.free[list];
        if at.is_null() {
            at = self.fresh(size);
            if at.is_null() {
                return at;
            }
        } else {
            // SAFETY: a free record begins with the next one's address.
            let next = unsafe { at.cast::<*mut u8>().read() };
            if next.addr() & KEEPS != 0 {
                self.kept -= size;
            }
            self.free[list] = next.map_addr(|next| next & !KEEPS);
            // SAFETY: free, and ours; all but its first word reads as zero.
            unsafe { at.cast::<*mut u8>().write(ptr::null_mut()) };
        }
        self.used += size;
        at
    }

    /// Releases a record that was taken with this size.
    ///
    /// # Safety
    ///
    /// The record is taken, with this size, and no longer written. Stale reads see zeros or the
    /// free list's link, whose lowest byte is 0.
    pub(crate) unsafe fn give(&mut self, at: *mut u8, size: usize) {
        let order = order(size);
        // SAFETY: as the caller promises.
        unsafe { self.give_to(order, at, SMALLEST << order) };
    }

    /// # Safety
    ///
    /// As for [`Side::give`].
    pub(crate) unsafe fn give_bits(&mut self, at: *mut u8) {
        // SAFETY: as the caller promises.
        unsafe { self.give_to(OF_BITS, at, BITS) };
    }

    /// # Safety
    ///
    /// As for [`Side::give`]; the memory was taken from this list.
    unsafe fn give_to(&mut self, list: usize, at: *mut u8, size: usize) {
        let page = SYSTEM.page_size();
        let whole = size.is_multiple_of(page) && at.addr().is_multiple_of(page);
        let keeps = whole && self.kept + size <= KEPT_LEAST.max(self.used / KEPT_SHARE);
        // SAFETY: the record is ours, and committed.
        if !whole || keeps || unsafe { !SYSTEM.decommit(at, size) } {
            // SAFETY: the memory is committed, and no code uses it any more.
            unsafe { at.write_bytes(0, size) };
        }
        let next = self.free[list].map_addr(|next| next | if keeps { KEEPS } else { 0 });
        // SAFETY: the first word is aligned, and no code uses it any more.
        unsafe { at.cast::<*mut u8>().write(next) };
        self.free[list] = at;
        self.used -= size;
        if keeps {
            self.kept += size;
        }
    }

    fn fresh(&mut self, size: usize) -> *mut u8 {
        // Large records begin at pages, so that the pages can go back.
        let skip = self.next.align_offset(size.min(SYSTEM.page_size()));
        if self.next.is_null() || skip + size > self.end.addr() - self.next.addr() {
            if !self.reserve() {
                return ptr::null_mut();
            }
            return self.fresh(size);
        }
        let at = self.next.wrapping_add(skip);
        let end = at.wrapping_add(size);
        while end > self.committed {
            let step = STEP.min(self.end.addr() - self.committed.addr());
            // SAFETY: reserved by us, in whole pages.
            if unsafe { !SYSTEM.commit(self.committed, step) } {
                return ptr::null_mut();
            }
            self.committed = self.committed.wrapping_add(step);
        }
        self.next = end;
        at
    }

    /// Releases the reserved rest of the piece, because reserved addresses will be limited.
    pub(crate) fn give_up_reserve(&mut self) {
        // A guard page stays behind the piece.
        let end = self.committed.wrapping_add(SYSTEM.page_size().max(PAGE_AT_LEAST));
        let size = self.end.addr().saturating_sub(self.committed.addr());
        // SAFETY: this part of the piece was reserved and never committed.
        if size > 0 && unsafe { SYSTEM.release(end, size) } {
            self.end = self.committed;
        }
    }

    fn reserve(&mut self) -> bool {
        let page = SYSTEM.page_size().max(PAGE_AT_LEAST);
        let mut size = SYSTEM
            .address_space_limit()
            .map_or(PIECE, |limit| (limit / SHARE).next_multiple_of(STEP).clamp(LEAST, PIECE));
        loop {
            let at = SYSTEM.reserve(size, page);
            if !at.is_null() {
                // SAFETY: just reserved.
                unsafe { os::keep_out_of_dumps(at, size) };
                self.next = at.wrapping_add(page);
                self.committed = self.next;
                self.end = at.wrapping_add(size - page);
                return true;
            }
            size /= 2;
            if size < LEAST {
                return false;
            }
        }
    }
}

const PAGE_AT_LEAST: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    #[test]
    fn records_are_zero_apart_and_used_again() {
        let mut side = Side::new();
        let mut taken = Vec::new();
        for size in [1, 512, 513, 5000, 40_000, LARGEST, 700] {
            let at = side.take(size);
            assert!(!at.is_null() && at.addr().is_multiple_of(512));
            for i in (0..size).step_by(61) {
                // SAFETY: in the record.
                assert_eq!(unsafe { at.wrapping_add(i).read() }, 0);
            }
            // SAFETY: in the record.
            unsafe { at.write_bytes(7, size) };
            assert!(taken.iter().all(|&(other, length): &(*mut u8, usize)| {
                at.addr() >= other.addr() + length || other.addr() >= at.addr() + size
            }));
            taken.push((at, size));
        }
        assert!(side.take(LARGEST + 1).is_null());
        for (at, size) in taken {
            // SAFETY: taken above with this size.
            unsafe { side.give(at, size) };
            let again = side.take(size);
            assert_eq!(again, at);
            // SAFETY: in the record.
            let byte = |i| unsafe { at.wrapping_add(i).read() };
            assert!((0..size).step_by(if cfg!(miri) { 61 } else { 1 }).all(|i| byte(i) == 0));
        }
    }

    #[test]
    fn a_share_of_what_is_in_use_keeps_its_pages() {
        let size = (32 << 10).max(SYSTEM.page_size());
        let mut side = Side::new();
        let taken: Vec<_> = (0..24).map(|_| side.take(size)).collect();
        for (gone, &at) in taken.iter().enumerate() {
            // SAFETY: taken above with this size.
            unsafe { at.write_bytes(7, size) };
            // SAFETY: taken above with this size, and not used afterwards.
            unsafe { side.give(at, size) };
            assert_eq!(side.kept, ((gone + 1) * size).min(KEPT_LEAST / size * size));
            // SAFETY: the record's first byte, which stale readers of a span see.
            assert_eq!(unsafe { at.read() }, 0, "a record that has gone has a span's form");
        }
        // The records released last come first, without pages. All are clear.
        for left in (0..24).rev() {
            let at = side.take(size);
            assert_eq!(at, taken[left]);
            assert_eq!(side.kept, (left * size).min(KEPT_LEAST / size * size));
            // SAFETY: in the record.
            let byte = |i| unsafe { at.wrapping_add(i).read() };
            assert!((0..size).step_by(61).all(|i| byte(i) == 0));
        }
    }

    #[test]
    fn what_was_a_record_never_becomes_bits() {
        let mut side = Side::new();
        let (record, bits) = (side.take(BITS), side.take_bits());
        assert!(!record.is_null() && !bits.is_null() && record != bits);
        // SAFETY: taken above.
        unsafe { side.give_bits(bits) };
        // SAFETY: taken above with this size.
        unsafe { side.give(record, BITS) };
        assert_eq!(side.used(), 0);
        assert_eq!((side.take_bits(), side.take(BITS)), (bits, record));
        let (more_bits, another) = (side.take_bits(), side.take(BITS));
        assert!(![record, bits].contains(&more_bits) && ![record, bits].contains(&another));
    }
}
