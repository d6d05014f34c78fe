//! The page lists: a heap's pages by pool and kind, and the empty pages. All under one lock.
//!
//! ```text
//!   page list  | page | page | page | page | page | page |    all its pages, the newest first
//!                             ^ sweep: the pages from here on have not been swept in this cycle
//!   available  page -> page -> page                           swept, with free slots, unclaimed
//!
//!   empty      page -> page -> page                           wholly free, for any pool
//!              (large ones: see `large`)
//! ```
//!
//! A *claimed* page, which a mutator allocates from or sweeps, is on its page list and in no other
//! list. Only that mutator changes the page's record.
//!
//! When marking ends, every list of available pages is dropped, and every cursor is set to its page
//! list's start. The time for that does not depend on the heap's size. New pages go in front of the
//! cursor. Part of `space`. Called by all files that take, sweep, move or count pages.

use heapwright_substrate::size_class::UNIT;

use super::free_large::FreeLarge;
use super::growth::{self, Decision, Swept};
use super::held::State;
use super::layout::{KINDS, LARGE, PAGE_LISTS, POOLS, slots_in_page};
use super::page::{Found, Page};
use super::pages::Pages;

#[derive(Clone, Copy)]
struct PageList {
    first: usize,
    sweep: usize,
    available: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Pool {
    pub(super) pages: usize,
    /// Pages that have not been swept in this cycle.
    pub(super) unswept: usize,
    /// Unclaimed pages with free slots.
    pub(super) available: usize,
    /// Slots that this cycle's sweep found free.
    free: usize,
    /// Pages that this cycle's sweep found wholly free.
    freed: usize,
    /// Pages that mutators took since marking last ended. `taken_before`: in the cycle before.
    pub(super) taken: usize,
    taken_before: usize,
    /// Free slots of these pages when they were taken. Objects that were moved elsewhere are
    /// subtracted, because they still count in `live`.
    pub(super) claimed: isize,
    /// Pages that the pool may take beyond the goal.
    pub(super) granted: usize,
    /// Pages that the pool has ever taken as a grant. `borrowed`: pages ever taken on credit.
    pub(super) grown: usize,
    pub(super) borrowed: usize,
    pub(super) decision: Decision,
    pub(super) slot: usize,
    /// Live objects when the last cycle ended.
    pub(super) live: usize,
}

pub(super) struct PageLists {
    page_list: [PageList; PAGE_LISTS],
    pub(super) pool: [Pool; POOLS],
    empty: usize,
    pub(super) empty_pages: usize,
    /// The fewest empty pages since the last decay or sweep.
    pub(super) empty_low: usize,
    /// Whether the heap took an empty page into use since the last decay or sweep.
    pub(super) took_empty: bool,
    pub(super) empty_since: u32,
    pub(super) in_use: usize,
    /// Bytes of large objects, in whole system pages.
    pub(super) large: usize,
    /// Empty pages of large objects.
    pub(super) free_large: FreeLarge,
    pub(super) unswept: usize,
    /// The page lists that have unswept pages, as bits.
    to_sweep: [u64; PAGE_LISTS / 64],
    /// Old objects on each page list, and their bytes.
    pub(super) old: [usize; PAGE_LISTS],
    pub(super) old_bytes: usize,
    /// Bytes of objects that the last cycle found live for the first time, on pages swept since.
    pub(super) young_bytes: usize,
    /// Pages that were taken on credit, and are not repaid yet.
    pub(super) debt: usize,
    /// The page list that `take_unswept_in_turn` took from last.
    turn: usize,
}

impl PageLists {
    pub(super) const fn new() -> Self {
        const PAGE_LIST: PageList = PageList { first: 0, sweep: 0, available: 0 };
        const POOL: Pool = Pool {
            pages: 0,
            unswept: 0,
            available: 0,
            free: 0,
            freed: 0,
            taken: 0,
            taken_before: 0,
            claimed: 0,
            granted: 0,
            grown: 0,
            borrowed: 0,
            decision: Decision::None,
            slot: 0,
            live: 0,
        };
        Self {
            page_list: [PAGE_LIST; PAGE_LISTS],
            pool: [POOL; POOLS],
            empty: 0,
            empty_pages: 0,
            empty_low: 0,
            took_empty: false,
            empty_since: 0,
            in_use: 0,
            large: 0,
            free_large: FreeLarge::NONE,
            unswept: 0,
            to_sweep: [0; PAGE_LISTS / 64],
            old: [0; PAGE_LISTS],
            old_bytes: 0,
            young_bytes: 0,
            debt: 0,
            turn: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        const FRESH: PageLists = PageLists::new();
        self.page_list.copy_from_slice(&FRESH.page_list);
        self.pool.copy_from_slice(&FRESH.pool);
        (self.empty, self.empty_pages, self.empty_low, self.empty_since) = (0, 0, 0, 0);
        self.took_empty = false;
        (self.in_use, self.large, self.unswept, self.debt, self.turn) = (0, 0, 0, 0, 0);
        self.free_large = FreeLarge::NONE;
        self.to_sweep.fill(0);
        self.old.fill(0);
        (self.old_bytes, self.young_bytes) = (0, 0);
    }

    pub(super) fn bytes(&self) -> usize {
        self.in_use * UNIT + self.large + self.empty_bytes()
    }

    pub(super) fn empty_bytes(&self) -> usize {
        self.empty_pages * UNIT + self.free_large.bytes()
    }

    /// Counts `bytes` more bytes of memory of a large object.
    pub(super) fn large_grows(&mut self, page: &Page, bytes: usize) {
        self.large += bytes;
        self.old_bytes += page.old() * bytes;
    }

    /// Puts a page on its page list, in front of the cursor, so that it counts as swept.
    pub(super) fn add(&mut self, pages: &Pages, page: &Page) {
        let page_list = &mut self.page_list[page.page_list.get()];
        page.next.set(page_list.first);
        page.prev.set(0);
        if let Some(first) = pages.get(page_list.first) {
            first.prev.set(page.number.get());
        }
        page_list.first = page.number.get();
        self.pool[page.pool()].pages += 1;
        if page.is_large() {
            self.large += page.footprint();
        } else {
            self.in_use += 1;
        }
    }

    pub(super) fn remove(&mut self, pages: &Pages, page: &Page) {
        let page_list = &mut self.page_list[page.page_list.get()];
        let (next, prev) = (page.next.get(), page.prev.get());
        match pages.get(prev) {
            Some(before) => before.next.set(next),
            None => page_list.first = next,
        }
        if let Some(behind) = pages.get(next) {
            behind.prev.set(prev);
        }
        self.pool[page.pool()].pages -= 1;
        if page.is_large() {
            self.large -= page.footprint();
        } else {
            self.in_use -= 1;
        }
    }

    /// Claims a page that was swept and has free slots.
    pub(super) fn take_available<'a>(
        &mut self,
        pages: &'a Pages,
        page_list: usize,
    ) -> Option<&'a Page> {
        let page = pages.get(self.page_list[page_list].available)?;
        self.page_list[page_list].available = page.next_available.get();
        self.pool[page_list / KINDS].available -= 1;
        self.claim(page);
        Some(page)
    }

    /// Counts a page that a mutator takes, and its free slots.
    pub(super) fn claim(&mut self, page: &Page) {
        let pool = &mut self.pool[page.pool()];
        pool.taken += 1;
        pool.claimed += page.free_slots();
    }

    /// Puts a claimed page back among those that are available.
    pub(super) fn unclaim(&mut self, page: &Page) {
        self.pool[page.pool()].claimed -= page.free_slots();
        self.put_available(page);
    }

    pub(super) fn put_available(&mut self, page: &Page) {
        let page_list = &mut self.page_list[page.page_list.get()];
        page.next_available.set(page_list.available);
        page_list.available = page.number.get();
        self.pool[page.pool()].available += 1;
    }

    /// Claims the next page of a page list that has not been swept.
    pub(super) fn take_unswept<'a>(
        &mut self,
        pages: &'a Pages,
        page_list: usize,
    ) -> Option<&'a Page> {
        let page = pages.get(self.page_list[page_list].sweep)?;
        self.page_list[page_list].sweep = page.next.get();
        if page.next.get() == 0 {
            self.to_sweep[page_list / 64] &= !(1 << (page_list % 64));
        }
        self.pool[page_list / KINDS].unswept -= 1;
        self.unswept -= 1;
        Some(page)
    }

    /// As [`PageLists::take_unswept`], of the page list whose turn it is.
    pub(super) fn take_unswept_in_turn<'a>(&mut self, pages: &'a Pages) -> Option<&'a Page> {
        let behind = (self.turn + 1) % PAGE_LISTS;
        // Reads the word of the first list in two parts: its upper bits first, all of it last.
        let (first, part) = (behind / 64, u64::MAX << (behind % 64));
        let words = self.to_sweep.len();
        self.turn = (0..=words).find_map(|n| {
            let word = (first + n) % words;
            let lists = self.to_sweep[word] & if n == 0 { part } else { u64::MAX };
            (lists != 0).then_some(word * 64 + lists.trailing_zeros() as usize)
        })?;
        self.take_unswept(pages, self.turn)
    }

    /// Adds the result of a page's sweep. After the last page of a pool, the pool is judged.
    pub(super) fn note_swept(&mut self, page: &Page, found: Found, allowance: usize) {
        let Found { live, old, young, .. } = found;
        self.young_bytes += young * page.footprint();
        let were = page.old();
        if old != were {
            let sum = &mut self.old[page.page_list.get()];
            *sum = *sum - were + old;
            self.old_bytes = self.old_bytes - were * page.footprint() + old * page.footprint();
            page.set_old(old);
        }
        let pool = &mut self.pool[page.pool()];
        pool.free += page.slots() - live;
        pool.freed += usize::from(live == 0);
        if live == 0 {
            self.debt = self.debt.saturating_sub(1);
        }
        if pool.unswept == 0 {
            self.judge(page.pool(), allowance);
        }
    }

    pub(super) fn add_old(&mut self, page_list: usize, count: usize, bytes: usize) {
        self.old[page_list] += count;
        self.old_bytes += bytes;
    }

    fn judge(&mut self, number: usize, allowance: usize) {
        if number == LARGE {
            return;
        }
        let pool = &mut self.pool[number];
        let in_page = slots_in_page(pool.slot.max(1));
        let (decision, pages) = growth::judge(Swept {
            slots: pool.pages * in_page,
            free: pool.free.min(pool.pages * in_page),
            in_page,
            taken: pool.taken + pool.taken_before,
            freed: pool.freed,
        });
        pool.decision = decision;
        pool.granted = pages.min(allowance / UNIT + 1);
    }

    pub(super) fn put_empty(&mut self, pages: &Pages, page: &Page) {
        self.remove(pages, page);
        page.held.close(State::Empty);
        page.next.set(self.empty);
        self.empty = page.number.get();
        self.empty_pages += 1;
    }

    /// Takes an empty page. The page is then claimed, and on no page list.
    pub(super) fn take_empty<'a>(&mut self, pages: &'a Pages) -> Option<&'a Page> {
        let page = pages.get(self.empty)?;
        self.empty = page.next.get();
        self.empty_pages -= 1;
        self.empty_low = self.empty_low.min(self.empty_pages);
        Some(page)
    }

    pub(super) fn note_look(&mut self, now: u32) {
        self.empty_low = self.empty_pages;
        self.took_empty = false;
        self.empty_since = now;
    }

    pub(super) fn forget_empty(&mut self) {
        (self.empty, self.empty_pages, self.empty_low) = (0, 0, 0);
        self.free_large = FreeLarge::NONE;
    }

    pub(super) fn first(&self, page_list: usize) -> usize {
        self.page_list[page_list].first
    }

    /// Begins a sweep of all pages. `live` are the numbers of live objects by page list.
    pub(super) fn begin_sweep(&mut self, live: &[usize; PAGE_LISTS]) {
        self.unswept = 0;
        for (pool, live) in self.pool.iter_mut().zip(live.chunks(KINDS)) {
            pool.unswept = pool.pages;
            pool.available = 0;
            pool.free = 0;
            pool.freed = 0;
            pool.taken_before = core::mem::take(&mut pool.taken);
            pool.claimed = 0;
            pool.granted = 0;
            pool.live = live.iter().sum();
            self.unswept += pool.pages;
        }
        self.to_sweep.fill(0);
        for (number, page_list) in self.page_list.iter_mut().enumerate() {
            page_list.available = 0;
            page_list.sweep = page_list.first;
            self.to_sweep[number / 64] |= u64::from(page_list.first != 0) << (number % 64);
        }
        self.debt = 0;
        self.young_bytes = 0;
    }
}
