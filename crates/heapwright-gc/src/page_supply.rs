//! The page supply: where a heap's pages come from, and where they go to.
//!
//! ```text
//!   chunk --new_page--> in use --swept, no object--> empty --take_empty--> in use, of any pool
//!     ^                   |                            |
//!     +---- release ------+                            +--not needed for a purge delay--> chunk
//!      evacuated, or very large                                          decay, trim
//! ```
//!
//! [`PageSupply`] owns the records of all pages and the lists they are on. A record and a list change
//! under the lock of the lists, or by the thread that has claimed the page. How many pages a heap may
//! have `pacing` says; it is asked under that lock.
//!
//! Called by `mutator`, `sweep`, `moving` and `heap`.

use heapwright_substrate::address_map::{Entry, MAP};
use heapwright_substrate::chunk::{self, Want};
use heapwright_substrate::os;
use heapwright_substrate::purge_delay;
use heapwright_substrate::runs;
use heapwright_substrate::size_class::UNIT;
use heapwright_substrate::sync::Lock;
use heapwright_substrate::sync::atomic::Ordering;

use super::bits;
use super::held::State;
use super::layout::KINDS;
use super::pacing::Pacing;
use super::page::Page;
use super::page_lists::PageLists;
use super::pages::Pages;

/// Pages of a pool from which on fresh ones are had from the system in one go, and not as they are
/// touched: that costs two thirds of it, and of the last page only some may ever be used.
const USED_WHOLE: usize = 64;

/// Bytes of the largest object of which a program probably touches all.
const TOUCHED_WHOLE: usize = 4 << 10;

/// Empty pages that are given back at a time.
const DECAYS: usize = 64;

/// All pages of one heap. Zero has none.
pub(super) struct PageSupply {
    pub(super) pages: Pages,
    pub(super) lists: Lock<PageLists>,
}

/// What a page is to be.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// The heap's id.
    pub(super) heap: u32,
    pub(super) page_list: usize,
    /// Bytes of a slot; of a large object, all that it asks for.
    pub(super) slot: usize,
    /// The heap's last cycle: the page is as new as that.
    pub(super) cycle: usize,
    /// Bytes that the heap may have in all.
    pub(super) limit: usize,
    /// Whether a large object's memory is to be zero.
    pub(super) zero: bool,
}

impl Wanted {
    pub(super) fn entry(&self) -> Entry {
        Entry::collected(self.heap, self.page_list)
    }

    pub(super) fn open(&self, page: &Page, run: &chunk::Run, units: usize) {
        MAP.record(run.unit).heap.store(page.number.get() as u32, Ordering::Relaxed);
        page.open(run.unit, units, self.page_list, self.slot, run.zero, self.cycle);
    }
}

impl PageSupply {
    /// A page of one unit, fresh from below, if the heap has less than `most` bytes with it; what
    /// the runtime has in malloc for dead objects does not count there.
    pub(super) fn new_page(&self, pacing: &Pacing, wanted: Wanted, most: usize) -> Option<&Page> {
        let mut lists = self.lists.lock();
        while !pacing.admits(lists.bytes() + UNIT, most, wanted.limit) {
            if !self.give_free_large(&mut lists) {
                return None;
            }
        }
        let page = self.pages.make()?;
        // Not `Dense`: huge pages under a heap that has just begun cost more to clear than they
        // save in marking (ci/gc.sh: splay 1.5 to 1.8 times the time, gcbench 0.85).
        let Some(run) = runs::take(1, 1, Want::Any, wanted.entry(), |_| Entry::FREE) else {
            self.pages.give(page);
            return None;
        };
        wanted.open(page, &run, 1);
        lists.add(&self.pages, page);
        let pool = &mut lists.pool[wanted.page_list / KINDS];
        pool.taken += 1;
        let used_whole = pool.pages >= USED_WHOLE && wanted.slot <= TOUCHED_WHOLE;
        pacing.note_pages(lists.bytes());
        drop(lists);
        if run.zero && used_whole {
            // SAFETY: the run was just taken, in whole system pages or more.
            unsafe { os::populate(page.base(), UNIT) };
        }
        Some(page)
    }

    /// A page from the empty ones.
    pub(super) fn take_empty(&self, wanted: Wanted) -> Option<&Page> {
        let mut lists = self.lists.lock();
        let page = lists.take_empty(&self.pages)?;
        MAP.set_entries(page.unit.get(), 1, wanted.entry());
        page.assign(wanted.page_list, wanted.slot, wanted.cycle);
        lists.add(&self.pages, page);
        lists.pool[wanted.page_list / KINDS].taken += 1;
        Some(page)
    }

    /// Gives a page's units back: it is none any more. The record stays.
    pub(super) fn give_units(page: &Page) {
        page.held.close(State::None);
        bits::clear_words(page.marks(), page.words());
        runs::give(page.unit.get(), page.units.get());
    }

    /// Gives a page back in which nothing lives, and that is not to wait: see `sweep`. It is claimed.
    pub(super) fn release(&self, page: &Page) {
        let mut lists = self.lists.lock();
        lists.remove(&self.pages, page);
        Self::give_units(page);
        self.pages.give(page);
    }

    /// Gives one empty page back. False: there is none.
    pub(super) fn give_empty(&self, lists: &mut PageLists) -> bool {
        let Some(page) = lists.take_empty(&self.pages) else { return false };
        Self::give_units(page);
        self.pages.give(page);
        true
    }

    /// Gives empty pages back that nobody needed for a while. (They then wait for a purge delay as any free memory.)
    pub(super) fn decay(&self) {
        let Some(delay) = purge_delay::purge_delay().map(purge_delay::interval) else { return };
        let now = os::coarse_ms();
        let mut lists = self.lists.lock();
        if chunk::waited(lists.empty_since, now) < delay {
            return;
        }
        self.give_unneeded(&mut lists, DECAYS);
        for _ in 0..lists.empty_low.min(DECAYS) {
            if !self.give_empty(&mut lists) {
                break;
            }
        }
        lists.empty_low = lists.empty_pages;
        lists.empty_since = now;
    }

    /// Gives all empty pages back. Returns bytes.
    pub(super) fn trim(&self) -> usize {
        let mut lists = self.lists.lock();
        let bytes = lists.empty_bytes();
        while self.give_empty(&mut lists) || self.give_free_large(&mut lists) {}
        lists.empty_low = 0;
        bytes
    }

    /// Holds the lock across a fork.
    pub(super) fn before_fork(&self) {
        self.lists.acquire();
    }

    /// Gives it back on either side of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`PageSupply::before_fork`] in the forking thread or its copy.
    pub(super) unsafe fn after_fork(&self) {
        // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
        unsafe { self.lists.release() };
    }
}
