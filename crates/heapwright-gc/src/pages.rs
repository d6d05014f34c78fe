//! The records of a heap's pages, by number.
//!
//! ```text
//!   unit --record.heap--> number, from 1 --> table --> record
//! ```
//!
//! A record never moves while its heap lives, and is reused when its page has gone back. Finding a
//! record takes no lock. Records are made and given back under the lock of the page lists.

use heapwright_substrate::address_map::MAP;
use heapwright_substrate::segments::Zeroed;
use heapwright_substrate::sync::atomic::Ordering;

use super::cell::Num;
use super::page::{Evacuation, Page};
use super::table::Table;

// SAFETY: all-zero bytes are a record without a page.
unsafe impl Zeroed for Page {}

pub(super) struct Pages {
    records: Table<Page, 64, 19>,
    /// The number of records that were ever made.
    made: Num,
    /// The first record without a page, or 0.
    vacant: Num,
}

impl Pages {
    /// Returns the record with a number. A page of this heap has, or had, the number.
    #[inline]
    pub(super) fn get(&self, number: usize) -> Option<&Page> {
        self.records.get(number.checked_sub(1)?)
    }

    /// The record of the page that begins at `unit`, which is this heap's.
    #[inline]
    pub(super) fn at_unit(&self, unit: usize) -> Option<&Page> {
        self.get(MAP.record(unit).heap.load(Ordering::Relaxed) as usize)
    }

    /// Takes a record without a page. `None` without memory.
    pub(super) fn make(&self) -> Option<&Page> {
        if let Some(page) = self.get(self.vacant.get()) {
            self.vacant.set(page.next.get());
            return Some(page);
        }
        let made = self.made.get();
        let page = self.records.get_or_make(made)?;
        self.made.set(made + 1);
        page.number.set(made + 1);
        Some(page)
    }

    /// Takes back the record of a page that has gone.
    pub(super) fn give(&self, page: &Page) {
        page.set_evacuation(Evacuation::No);
        page.next.set(self.vacant.get());
        self.vacant.set(page.number.get());
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Page> {
        (1..=self.made.get()).filter_map(|number| self.get(number))
    }

    /// Returns how many records were ever made: the largest number.
    pub(super) fn made(&self) -> usize {
        self.made.get()
    }

    /// Gives all records back. No thread may use a record afterwards.
    pub(super) fn end(&self) {
        self.records.end();
        self.made.set(0);
        self.vacant.set(0);
    }
}
