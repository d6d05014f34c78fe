//! The shelves: a heap's pages by pool and kind, and the tomb. Under the heap's lock.
//!
//! ```text
//!   shelf    | page | page | page | page | page | page |      all its pages, the newest first
//!                             ^ sweep: what follows has not been swept in this cycle
//!   available  page -> page -> page                           swept, with free slots, nobody's
//!
//!   tomb       page -> page -> page                           wholly free, any pool's
//! ```
//!
//! A page that a mutator allocates from, or sweeps, is in its shelf's list and in no other:
//! it is *claimed*, and its record the mutator's.
//!
//! When a cycle ends every list of available pages is forgotten and every cursor is at its
//! shelf's start: 256 words, however large the heap. Pages that come later are put in
//! front of the cursor.
//!
//! Called by `mutator`, `cycle` and `sweep`.

use crate::size_class::UNIT;

use super::growth::{self, Decision, Swept};
use super::held::State;
use super::layout::{KINDS, LARGE, POOLS, SHELVES, slots_in_page};
use super::page::{Found, Page};
use super::pages::Pages;

/// Pages of one pool and kind.
#[derive(Clone, Copy)]
struct Shelf {
    first: usize,
    sweep: usize,
    available: usize,
}

/// What is counted of a pool.
#[derive(Clone, Copy)]
pub(super) struct Pool {
    pub(super) pages: usize,
    /// Of these, those that have not been swept in this cycle.
    pub(super) unswept: usize,
    /// Pages with free slots that are nobody's.
    pub(super) available: usize,
    /// Slots that this cycle's sweep found free.
    free: usize,
    /// Pages that its sweep found wholly free.
    freed: usize,
    /// Pages that mutators took since the cycle, and in the one before.
    pub(super) taken: usize,
    taken_before: usize,
    /// Pages it may take beyond the goal.
    pub(super) granted: usize,
    /// Pages it took as a grant, and on credit, ever.
    pub(super) grown: usize,
    pub(super) borrowed: usize,
    pub(super) decision: Decision,
    /// Bytes of a slot.
    pub(super) slot: usize,
    /// Objects when the last cycle ended.
    pub(super) live: usize,
    /// With per-pool tombs (`Sweep::ToTheEnd`): its own.
    tomb: usize,
}

/// All lists of one heap.
pub(super) struct Shelves {
    shelf: [Shelf; SHELVES],
    pub(super) pool: [Pool; POOLS],
    tomb: usize,
    /// Pages in the tombs.
    pub(super) tombs: usize,
    /// The fewest pages in the tomb since it was last looked after.
    pub(super) tomb_low: usize,
    pub(super) tomb_since: u32,
    /// Pages in use, but for large objects.
    pub(super) eden: usize,
    /// Bytes of large objects, in whole units.
    pub(super) large: usize,
    /// Pages that have not been swept in this cycle.
    pub(super) unswept: usize,
    /// Old objects on each shelf, and their bytes.
    pub(super) old: [usize; SHELVES],
    pub(super) old_bytes: usize,
    /// Bytes of objects that survived the last cycle as their first.
    pub(super) young_bytes: usize,
    /// Pages on credit.
    pub(super) debt: usize,
    /// The shelf whose turn it is to be swept a little.
    turn: usize,
    /// Whether each pool has a tomb of its own.
    own_tombs: bool,
}

impl Shelves {
    /// No page on any shelf.
    pub(super) const fn new() -> Self {
        const SHELF: Shelf = Shelf { first: 0, sweep: 0, available: 0 };
        const POOL: Pool = Pool {
            pages: 0,
            unswept: 0,
            available: 0,
            free: 0,
            freed: 0,
            taken: 0,
            taken_before: 0,
            granted: 0,
            grown: 0,
            borrowed: 0,
            decision: Decision::None,
            slot: 0,
            live: 0,
            tomb: 0,
        };
        Self {
            shelf: [SHELF; SHELVES],
            pool: [POOL; POOLS],
            tomb: 0,
            tombs: 0,
            tomb_low: 0,
            tomb_since: 0,
            eden: 0,
            large: 0,
            unswept: 0,
            old: [0; SHELVES],
            old_bytes: 0,
            young_bytes: 0,
            debt: 0,
            turn: 0,
            own_tombs: false,
        }
    }

    /// Forgets all pages.
    pub(super) fn clear(&mut self) {
        const FRESH: Shelves = Shelves::new();
        self.shelf.copy_from_slice(&FRESH.shelf);
        self.pool.copy_from_slice(&FRESH.pool);
        (self.tomb, self.tombs, self.tomb_low, self.tomb_since) = (0, 0, 0, 0);
        (self.eden, self.large, self.unswept, self.debt, self.turn) = (0, 0, 0, 0, 0);
        self.old.fill(0);
        (self.old_bytes, self.young_bytes) = (0, 0);
        self.own_tombs = false;
    }

    /// Chooses between one tomb for all pools and one for each.
    pub(super) fn set_own_tombs(&mut self, own: bool) {
        self.own_tombs = own;
    }

    /// Bytes the heap has.
    pub(super) fn bytes(&self) -> usize {
        (self.eden + self.tombs) * UNIT + self.large
    }

    /// Puts a page on its shelf, in front of the cursor: it counts as swept.
    pub(super) fn add(&mut self, pages: &Pages, page: &Page) {
        let shelf = &mut self.shelf[page.shelf.get()];
        page.next.set(shelf.first);
        page.prev.set(0);
        if let Some(first) = pages.get(shelf.first) {
            first.prev.set(page.number.get());
        }
        shelf.first = page.number.get();
        self.pool[page.pool()].pages += 1;
        if page.is_large() {
            self.large += page.footprint();
        } else {
            self.eden += 1;
        }
    }

    /// Takes a page off its shelf. It is claimed.
    pub(super) fn remove(&mut self, pages: &Pages, page: &Page) {
        let shelf = &mut self.shelf[page.shelf.get()];
        let (next, prev) = (page.next.get(), page.prev.get());
        match pages.get(prev) {
            Some(before) => before.next.set(next),
            None => shelf.first = next,
        }
        if let Some(behind) = pages.get(next) {
            behind.prev.set(prev);
        }
        self.pool[page.pool()].pages -= 1;
        if page.is_large() {
            self.large -= page.footprint();
        } else {
            self.eden -= 1;
        }
    }

    /// Claims a page that was swept and has free slots.
    pub(super) fn take_available<'a>(
        &mut self,
        pages: &'a Pages,
        shelf: usize,
    ) -> Option<&'a Page> {
        let page = pages.get(self.shelf[shelf].available)?;
        self.shelf[shelf].available = page.next_available.get();
        self.pool[shelf / KINDS].available -= 1;
        self.pool[shelf / KINDS].taken += 1;
        Some(page)
    }

    /// Lets go of a page that has free slots.
    pub(super) fn put_available(&mut self, page: &Page) {
        let shelf = &mut self.shelf[page.shelf.get()];
        page.next_available.set(shelf.available);
        shelf.available = page.number.get();
        self.pool[page.pool()].available += 1;
    }

    /// Claims the next page of a shelf that has not been swept.
    pub(super) fn take_unswept<'a>(&mut self, pages: &'a Pages, shelf: usize) -> Option<&'a Page> {
        let page = pages.get(self.shelf[shelf].sweep)?;
        self.shelf[shelf].sweep = page.next.get();
        self.pool[shelf / KINDS].unswept -= 1;
        self.unswept -= 1;
        Some(page)
    }

    /// As [`Shelves::take_unswept`], of the shelf whose turn it is.
    pub(super) fn take_unswept_in_turn<'a>(&mut self, pages: &'a Pages) -> Option<&'a Page> {
        if self.unswept == 0 {
            return None;
        }
        for _ in 0..SHELVES {
            self.turn = (self.turn + 1) % SHELVES;
            if let Some(page) = self.take_unswept(pages, self.turn) {
                return Some(page);
            }
        }
        None
    }

    /// Notes what a sweep found in a page. If it is the last of its pool, the pool is judged.
    pub(super) fn note_swept(&mut self, page: &Page, found: Found, allowance: usize) {
        let Found { live, old, young, .. } = found;
        self.young_bytes += young * page.footprint();
        let were = page.old();
        if old != were {
            let sum = &mut self.old[page.shelf.get()];
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

    /// So many old objects were moved to a shelf.
    pub(super) fn add_old(&mut self, shelf: usize, count: usize, bytes: usize) {
        self.old[shelf] += count;
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

    /// Buries a page without objects: off its shelf, into the tomb. It is claimed.
    pub(super) fn bury(&mut self, pages: &Pages, page: &Page) {
        self.remove(pages, page);
        page.held.close(State::Tomb);
        let tomb = if self.own_tombs { &mut self.pool[page.pool()].tomb } else { &mut self.tomb };
        page.next.set(*tomb);
        *tomb = page.number.get();
        self.tombs += 1;
    }

    /// Takes a page out of the tomb that `pool` may use. Claimed, and on no shelf.
    pub(super) fn exhume<'a>(&mut self, pages: &'a Pages, pool: usize) -> Option<&'a Page> {
        let tomb = if self.own_tombs { &mut self.pool[pool].tomb } else { &mut self.tomb };
        let page = pages.get(*tomb)?;
        *tomb = page.next.get();
        self.tombs -= 1;
        self.tomb_low = self.tomb_low.min(self.tombs);
        Some(page)
    }

    /// Takes any page out of any tomb.
    pub(super) fn exhume_any<'a>(&mut self, pages: &'a Pages) -> Option<&'a Page> {
        let from =
            if self.own_tombs { (0..POOLS).find(|&pool| self.pool[pool].tomb != 0)? } else { 0 };
        self.exhume(pages, from)
    }

    /// The first page of each shelf: for walks.
    pub(super) fn first(&self, shelf: usize) -> usize {
        self.shelf[shelf].first
    }

    /// A cycle has ended: every page is to be swept. `live` says what each shelf has.
    pub(super) fn begin_sweep(&mut self, live: &[usize; SHELVES]) {
        self.unswept = 0;
        for (pool, live) in self.pool.iter_mut().zip(live.chunks(KINDS)) {
            pool.unswept = pool.pages;
            pool.available = 0;
            pool.free = 0;
            pool.freed = 0;
            pool.taken_before = core::mem::take(&mut pool.taken);
            pool.granted = 0;
            pool.live = live.iter().sum();
            self.unswept += pool.pages;
        }
        for shelf in &mut self.shelf {
            shelf.available = 0;
            shelf.sweep = shelf.first;
        }
        self.debt = 0;
        self.young_bytes = 0;
    }
}
