//! Sweeping: mutators that take pages also sweep pages, a few at a time, of all pools.
//!
//! ```text
//!   a page is swept     by the mutator that needs a page of this page list, and allocates from it,
//!                       by turns of all page lists, a share for each page that is taken, or
//!                       in a step (`cycle`)
//!
//!   no object left      to the empty pages; a large or evacuated one: see `large`, `space`
//!   some slots free     available
//!   full                stays on its page list
//! ```
//!
//! A page is claimed under the lock and swept outside it. A mutator's share is such that the sweep
//! ends before three eighths of the allowance are used. With incremental marking, a long share is
//! swept in pieces (see `pacing`).

use heapwright_substrate::os;

use super::heap::Heap;
use super::held::StickyMarks;
use super::layout;
use super::page::{Evacuation, Found, Page};
use super::phase::Phase;

/// Pages that a mutator sweeps when its own pool has nothing.
const MORE: usize = 16;

impl Heap {
    pub(super) fn sweep_page(&self, page: &Page) -> Found {
        let sticky = self.trace.generations.sticky_marks();
        if page.evacuation() != Evacuation::No && self.space.cycle.phase() == Phase::Moving {
            // The page is swept when its objects have moved (see `moving`).
            page.passed.set(1);
            return Found { live: page.slots(), old: page.old(), young: 0, evacuated: false };
        }
        if sticky == StickyMarks::Survivors && page.is_settled() {
            return page.pass(self.space.cycle.number());
        }
        if layout::is_freed(page.page_list.get()) {
            let size = page.slot.get();
            let free = |object| self.runtime().free(object, size);
            self.space.pacing.while_freeing(|| page.each_dead(free));
        }
        page.sweep(self.space.cycle.number(), sticky)
    }

    pub(super) fn put_swept(&self, page: &Page, found: Found) {
        let mut lists = self.space.lists.lock();
        lists.note_swept(page, found, self.space.pacing.allowance());
        if found.live > 0 {
            if found.live < page.slots() {
                lists.put_available(page);
            }
        } else if page.is_large() {
            drop(lists);
            self.large_ends(page);
            self.space.retire(page);
        } else if found.evacuated {
            drop(lists);
            self.space.release(page);
        } else {
            lists.put_empty(&self.space.pages, page);
        }
    }

    fn sweep_next(&self) -> bool {
        let mut lists = self.space.lists.lock();
        let Some(page) = lists.take_unswept_in_turn(&self.space.pages) else {
            drop(lists);
            let passed = self.moving.next_passed(&self.space);
            match passed {
                Some(page) => self.put_swept(page, self.sweep_page(page)),
                None => self.end_sweep(),
            }
            return passed.is_some();
        };
        drop(lists);
        let found = self.sweep_page(page);
        self.put_swept(page, found);
        true
    }

    /// Ends the sweep. Call this after every page was claimed for the sweep.
    fn end_sweep(&self) {
        if self.space.cycle.end_sweep() {
            self.know_external();
            self.space.end_sweep();
            self.moving.choose(&self.space, self.trace.generations.is_minor());
            self.sweep_ends();
        }
    }

    /// Sweeps up to `most` pages, of any page list, until about `deadline`, nanoseconds of the
    /// clock (0: no limit). Returns how many pages were swept, or `most` if nothing is left.
    pub(super) fn sweep_some(&self, most: usize, deadline: u64) -> usize {
        self.pauses.while_sweeping(|| {
            for swept in 0..most {
                if !self.sweep_next() {
                    return most;
                }
                if deadline != 0 && os::now_ns() >= deadline {
                    return swept + 1;
                }
            }
            most
        })
    }

    /// Sweeps some pages beyond the share, for a mutator that found no page with free slots.
    pub(super) fn sweep_more(&self) {
        self.sweep_some(MORE, 0);
    }

    /// Sweeps until nothing is left, or until `deadline`, nanoseconds of the clock (0: no limit).
    /// Returns whether nothing is left.
    pub(super) fn sweep_until(&self, deadline: u64) -> bool {
        self.sweep_some(usize::MAX, deadline) == usize::MAX
            || self.space.cycle.phase() != Phase::Sweeping
    }

    pub(super) fn sweep_all(&self) {
        self.sweep_some(usize::MAX, 0);
    }

    /// Sweeps until empty pages and freed large objects have `bytes`. Returns true only if this
    /// call swept a page, and bytes are free. Otherwise the caller would try again for ever.
    pub(super) fn sweep_for(&self, bytes: usize) -> bool {
        let before = self.space.lists.lock().bytes();
        let found = || {
            let lists = self.space.lists.lock();
            lists.empty_bytes() + before.saturating_sub(lists.bytes())
        };
        let mut sweeps = false;
        self.pauses.while_sweeping(|| {
            while found() < bytes && self.sweep_next() {
                sweeps = true;
            }
        });
        sweeps && found() > 0
    }
}
