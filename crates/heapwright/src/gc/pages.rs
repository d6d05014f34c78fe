//! The records of a heap's pages, by number.
//!
//! ```text
//!   unit --record.heap--> number --> segment 0: 1..=64 | segment 1: 128 | segment 2: 256 | ...
//!                                    each twice as long as the one before, in side memory
//! ```
//!
//! A record never moves while its heap lives, and is used again when its page has gone
//! back. Finding one takes no lock; making one is under the heap's.

use core::ptr;

use crate::address_map::MAP;
use crate::chunk::Side;
use crate::segments;
use crate::sync::atomic::{AtomicPtr, Ordering};

use super::cell::Num;
use super::page::Page;

const FIRST: usize = 64;
const SEGMENTS: usize = 19;

/// All records of one heap. Zero has none.
pub(super) struct Pages {
    segments: [AtomicPtr<Page>; SEGMENTS],
    /// Records that were ever made. Under the heap's lock.
    made: Num,
    /// The first record without a page, or 0. Under the heap's lock.
    vacant: Num,
}

impl Pages {
    /// The record of a number that a page of this heap has or had.
    #[inline]
    pub(super) fn get(&self, number: usize) -> Option<&Page> {
        let (segment, index) = segments::place(number.checked_sub(1)?, FIRST);
        let at = self.segments.get(segment)?.load(Ordering::Acquire);
        if at.is_null() {
            return None;
        }
        // SAFETY: the segment has this many records, zeroed at first, and lives as long
        // as the heap.
        Some(unsafe { &*at.wrapping_add(index) })
    }

    /// The record of the page that begins at `unit`, which is this heap's.
    #[inline]
    pub(super) fn at_unit(&self, unit: usize) -> Option<&Page> {
        self.get(MAP.record(unit).heap.load(Ordering::Relaxed) as usize)
    }

    /// A record without a page. `None` where there is no memory. Under the heap's lock.
    pub(super) fn make(&self) -> Option<&Page> {
        if let Some(page) = self.get(self.vacant.get()) {
            self.vacant.set(page.next.get());
            return Some(page);
        }
        let number = self.made.get() + 1;
        let (segment, _) = segments::place(number - 1, FIRST);
        let place = self.segments.get(segment)?;
        if place.load(Ordering::Relaxed).is_null() {
            let side = Side::take((FIRST << segment) * size_of::<Page>())?;
            place.store(side.at().cast(), Ordering::Release);
        }
        self.made.set(number);
        let page = self.get(number)?;
        page.number.set(number);
        Some(page)
    }

    /// Takes a record back whose page has gone. Under the heap's lock.
    pub(super) fn give(&self, page: &Page) {
        page.set_state(super::page::State::None);
        page.next.set(self.vacant.get());
        self.vacant.set(page.number.get());
    }

    /// All records, also those without a page.
    pub(super) fn all(&self) -> impl Iterator<Item = &Page> {
        (1..=self.made.get()).filter_map(|number| self.get(number))
    }

    /// Gives all records back. Nobody looks any more.
    pub(super) fn end(&self) {
        for segment in &self.segments {
            Side::give_at(segment.swap(ptr::null_mut(), Ordering::Relaxed).cast());
        }
        self.made.set(0);
        self.vacant.set(0);
    }
}
