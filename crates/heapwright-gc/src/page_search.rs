//! Page search: where a mutator finds its next page without a collection, and in which order.
//!
//! ```text
//!   1  swept, with free slots     2  sweep some of the page list, claim the first with free slots
//!   3  the empty pages            4  a new page, up to the goal or the pool's grant
//!                                    (while marking or moving: up to the limit)
//!   5  on credit, while the pool's sweep is under way; the free slots of a larger pool
//! ```
//!
//! The next step is a collection. Called by `allocation`, and by `cycle` for objects that move.

use super::growth;
use super::layout::{self, KINDS, LARGE};
use super::mutator::Mutator;
use super::page::{Evacuation, Page};
use super::phase::Phase;

/// Pages of its own page list that a mutator sweeps before it looks elsewhere.
const OWN_SWEEPS: usize = 16;

impl Mutator {
    /// Runs the steps 1 to 5 of the picture until a step finds a page.
    pub(super) fn find_page(&self, page_list: usize) -> Option<&'static Page> {
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
            // Unswept pages are left: sweeps more, a bounded number at a time.
        }
    }

    /// Claims a page with free slots of a larger pool, whose slots are at most twice as large. A
    /// larger slot is better than a collection while much of the heap is free.
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

    /// Sweeps a few pages if needed, and adds their number to `swept`.
    fn take_page(&self, page_list: usize, swept: &mut usize) -> Option<&'static Page> {
        let heap = self.heap();
        let mut lists = heap.space.lists.lock();
        if let Some(page) = lists.take_available(&heap.space.pages, page_list) {
            return Some(page);
        }
        while *swept < OWN_SWEEPS {
            let page = lists.take_unswept(&heap.space.pages, page_list)?;
            drop(lists);
            // A page whose objects are to be moved is skipped, not swept, so it is not counted.
            *swept += usize::from(page.evacuation() == Evacuation::No);
            let found = heap.pauses.while_sweeping(|| heap.sweep_page(page));
            lists = heap.space.lists.lock();
            lists.note_swept(page, found, heap.space.pacing.allowance());
            if found.live < page.slots() {
                lists.claim(page);
                return Some(page);
            }
        }
        None
    }

    /// Claims a page with free slots from a page list, for objects that move.
    fn page_to_move_to(&self, page_list: usize) -> Option<&'static Page> {
        let heap = self.heap();
        // Calls no `free` now: a stopped thread may hold a lock that the callback takes.
        let page = if layout::is_freed(page_list) {
            heap.space.lists.lock().take_available(&heap.space.pages, page_list)
        } else {
            self.take_page(page_list, &mut 0)
        };
        page.or_else(|| heap.take_empty(page_list)).or_else(|| heap.new_page(page_list, usize::MAX))
    }

    /// Takes a slot of a page list for an object of `size` bytes that moves. Returns the slot, its
    /// page, and its offset in the page. The world must be stopped, all regions must be written to
    /// their pages, and all new objects must have been scanned.
    pub(super) fn place(
        &self,
        page_list: usize,
        size: usize,
    ) -> Option<(*mut u8, &'static Page, usize)> {
        let heap = self.heap();
        if page_list / KINDS == LARGE {
            let page = heap.new_large(size, page_list)?;
            heap.moving.note_large(page);
            page.scanned_to.set(usize::MAX);
            return Some((page.base(), page, 0));
        }
        loop {
            let object = self.regions[page_list].take();
            if !object.is_null() {
                let page = heap.space.pages.get(self.regions[page_list].page.get())?;
                let offset = object.addr() - page.base().addr();
                page.scanned_to.set(offset + page.slot.get());
                return Some((object, page, offset));
            }
            if !self.next_stretch(page_list) {
                let page = self.page_to_move_to(page_list)?;
                heap.space.note_claimed(page);
                self.enter_page(page_list, page);
            }
        }
    }
}
