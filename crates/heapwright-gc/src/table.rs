//! A table of numbered entries. [`Table::end`] gives its memory back.
//!
//! ```text
//!   FIRST = 64:   0..64  64..192  192..448  ...        numbers
//!   segments      [ p0      p1       p2     null ... ]    each twice as long as the one before
//! ```
//!
//! As [`heapwright_substrate::segments`], but the segments lie in side memory. An entry never moves
//! while the table lives, and a search for it takes no lock. The caller of [`Table::get_or_make`]
//! holds its own lock. Used by `pages` and `handles`.

use core::ptr;

use heapwright_substrate::chunk::Side;
use heapwright_substrate::segments::{self, Zeroed};
use heapwright_substrate::sync::atomic::{AtomicPtr, Ordering};

/// A table of up to `FIRST * (2^SEGMENTS - 1)` entries. All-zero bytes: an empty table.
pub(super) struct Table<T, const FIRST: usize, const SEGMENTS: usize> {
    segments: [AtomicPtr<T>; SEGMENTS],
}

impl<T: Zeroed, const FIRST: usize, const SEGMENTS: usize> Table<T, FIRST, SEGMENTS> {
    #[inline]
    pub(super) fn get(&self, number: usize) -> Option<&T> {
        let (segment, index) = segments::place(number, FIRST);
        let at = self.segments.get(segment)?.load(Ordering::Acquire);
        if at.is_null() {
            return None;
        }
        // SAFETY: the segment has this entry, zeroed at first, and lives as long as the table.
        Some(unsafe { &*at.wrapping_add(index) })
    }

    /// Returns entry `number`. A new entry is zero. Returns `None` without memory, or if the number
    /// is too large. Only one thread at a time may call this.
    pub(super) fn get_or_make(&self, number: usize) -> Option<&T> {
        let (segment, _) = segments::place(number, FIRST);
        let place = self.segments.get(segment)?;
        if place.load(Ordering::Relaxed).is_null() {
            let side = Side::take((FIRST << segment) * size_of::<T>())?;
            place.store(side.at().cast(), Ordering::Release);
        }
        self.get(number)
    }

    /// Gives all memory back. No thread may use the table meanwhile.
    pub(super) fn end(&self) {
        for segment in &self.segments {
            Side::give_at(segment.swap(ptr::null_mut(), Ordering::Relaxed).cast());
        }
    }
}
