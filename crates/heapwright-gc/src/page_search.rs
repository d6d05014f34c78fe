//! Page search: where a mutator gets its next page, and in which order it looks.
//!
//! ```text
//!   1  swept, with free slots     2  sweep some of the page list's, claim the first with a free slot
//!   3  the empty pages                   4  a new page, up to the goal or the pool's grant (marking, moving: the limit)
//!   5  on credit, while the pool's sweep is under way; the free slots of a larger pool
//!   6  a collection, if enough was allocated since the last     7  a new page, up to the limit
//!   8  collections, but not if the last ones came in a row for hardly anything (see `overhead`)
//! ```
//!
//! Each page that is claimed is paid for: a little sweeping of every pool, and, while the
//! heap marks, marking (see `pacing`).
//!
//! Called by `mutator`; for objects that move, by `moving` through it.

use heapwright_substrate::size_class::UNIT;

use super::growth;
use super::layout::{self, KINDS, LARGE};
use super::mutator::Mutator;
use super::page::{Evacuation, Page};
use super::phase::Phase;

/// Collections before an allocation is refused: other mutators may take what one of them frees.
pub(super) const ATTEMPTS: usize = 4;
/// Pages of its own page list that a mutator sweeps before it looks elsewhere.
const OWN_SWEEPS: usize = 16;

impl Mutator {
    /// Claims a page of a page list that has free slots, and pays for it. `None`: there is no memory.
    pub(super) fn acquire(&self, page_list: usize) -> Option<&'static Page> {
        let heap = self.heap();
        if heap.fork.is_poisoned() {
            return heap.new_page(page_list, usize::MAX);
        }
        heap.pay(self, UNIT);
        let page = self.look_for_page(page_list)?;
        heap.space.note_claimed(page);
        Some(page)
    }

    /// Steps 1 to 8.
    fn look_for_page(&self, page_list: usize) -> Option<&'static Page> {
        let heap = self.heap();
        let up_to_the_limit =
            || self.find_page(page_list).or_else(|| heap.new_page(page_list, usize::MAX));
        for attempt in 0..ATTEMPTS {
            if let Some(page) = self.find_page(page_list) {
                return Some(page);
            }
            // While the sweep is under way, what it frees comes first, and then a new page:
            // never a collection, which would have to finish it.
            if attempt == 0 && heap.space.cycle.phase() == Phase::Sweeping {
                heap.sweep_more();
                let page = up_to_the_limit();
                if page.is_some() {
                    return page;
                }
            }
            let may = attempt == 0 && self.deferred.get() == 0;
            if may && heap.space.pacing.is_worth_collecting(&heap.space.target()) {
                heap.collect_or_begin(self);
                continue;
            }
            if let Some(page) = heap.new_page(page_list, usize::MAX) {
                return Some(page);
            }
            // The limit, or no memory: everything that is to be had.
            if heap.space.pacing.is_in_vain(&heap.space.target()) {
                break;
            }
            heap.collect(self);
        }
        // What the last of them freed.
        let page = up_to_the_limit();
        if page.is_none() {
            heap.space.pacing.note_refusal();
        }
        page
    }

    /// Steps 1 to 5.
    fn find_page(&self, page_list: usize) -> Option<&'static Page> {
        let heap = self.heap();
        let pool = page_list / KINDS;
        loop {
            let mut swept = 0;
            if let Some(page) = self.take_page(page_list, &mut swept) {
                return Some(page);
            }
            let lists = heap.space.lists.lock();
            let unswept = lists.pool[pool].unswept > 0;
            let granted = lists.pool[pool].granted > 0;
            let borrows = unswept && lists.debt < growth::credit(heap.space.pacing.allowance());
            drop(lists);
            if let Some(page) = heap.take_empty(page_list) {
                return Some(page);
            }
            let busy = matches!(heap.space.cycle.phase(), Phase::Marking | Phase::Moving);
            let most =
                if granted || borrows || busy { usize::MAX } else { heap.space.pacing.goal() };
            if let Some(page) = heap.new_page(page_list, most) {
                let mut lists = heap.space.lists.lock();
                if most == usize::MAX && granted {
                    lists.pool[pool].granted = lists.pool[pool].granted.saturating_sub(1);
                    lists.pool[pool].grown += 1;
                } else if most == usize::MAX && borrows {
                    lists.debt += 1;
                    lists.pool[pool].borrowed += 1;
                }
                return Some(page);
            }
            if swept == 0 {
                return self.find_larger(page_list);
            }
            // Unswept pages are left: sweeps on, a bounded number at a time.
        }
    }

    /// Claims a page with free slots of a larger pool, whose slots are at most twice as large:
    /// rather than collecting while much of the heap is free.
    fn find_larger(&self, page_list: usize) -> Option<&'static Page> {
        let heap = self.heap();
        if heap.space.pacing.used() >= heap.space.pacing.allowance() / 8 * 7 {
            return None;
        }
        let most = 2 * heap.space.slot(page_list);
        let mut lists = heap.space.lists.lock();
        (page_list + KINDS..LARGE * KINDS)
            .step_by(KINDS)
            .take_while(|&other| (1..=most).contains(&heap.space.slot(other)))
            .find_map(|other| lists.take_available(&heap.space.pages, other))
    }

    /// Claims a page of a page list that has free slots and was swept, or is now: a few are, and counted.
    fn take_page(&self, page_list: usize, swept: &mut usize) -> Option<&'static Page> {
        let heap = self.heap();
        let mut lists = heap.space.lists.lock();
        if let Some(page) = lists.take_available(&heap.space.pages, page_list) {
            return Some(page);
        }
        while *swept < OWN_SWEEPS {
            let page = lists.take_unswept(&heap.space.pages, page_list)?;
            drop(lists);
            // A page whose objects are to be moved is skipped, not swept: it is not counted.
            *swept += usize::from(page.evacuation() == Evacuation::No);
            let found = heap.pauses.while_sweeping(|| heap.sweep_page(page));
            lists = heap.space.lists.lock();
            lists.note_swept(page, found, heap.space.pacing.allowance());
            if found.live < page.slots() {
                lists.pool[page_list / KINDS].taken += 1;
                return Some(page);
            }
        }
        None
    }

    /// Claims a page of a page list that has free slots, for objects that move.
    pub(super) fn page_to_move_to(&self, page_list: usize) -> Option<&'static Page> {
        let heap = self.heap();
        // No `free` callback while the world is stopped: a stopped thread may hold a lock that the callback
        // takes.
        let page = if layout::is_freed(page_list) {
            heap.space.lists.lock().take_available(&heap.space.pages, page_list)
        } else {
            self.take_page(page_list, &mut 0)
        };
        page.or_else(|| heap.take_empty(page_list)).or_else(|| heap.new_page(page_list, usize::MAX))
    }
}
