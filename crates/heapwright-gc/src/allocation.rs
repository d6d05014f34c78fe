//! Allocation: the slow path when a mutator's region is used up, and large objects.
//!
//! ```text
//!   alloc --> region: bump --used up--> refill --> stretch of the page --> page_search: 1 to 5
//!
//!   6  a collection, if enough was allocated since the last     7  a new page, up to the limit
//!   8  collections, unless several in a row freed hardly anything (see `overhead`)
//! ```
//!
//! A mutator pays for each page that it claims (see `payment`). Called by `raw`.

use core::ptr;

use heapwright_substrate::size_class::UNIT;
use heapwright_substrate::sync::atomic::Ordering;

use super::large;
use super::layout::{KINDS, LARGE, REGION_BYTES};
use super::mutator::Mutator;
use super::page::Page;
use super::phase::Phase;

/// Collections before an allocation is refused: other mutators may take the freed memory.
pub(super) const ATTEMPTS: usize = 4;
/// A mutator pays for external bytes as soon as it owes this many.
const OWES: usize = 256 << 10;

impl Mutator {
    #[inline]
    pub(super) fn alloc(&self, size: usize, kind: usize) -> *mut u8 {
        let Some(place) = self.places.get(size.div_ceil(8)) else {
            return self.alloc_large(size, kind);
        };
        let page_list = usize::from(place.load(Ordering::Relaxed)) / REGION_BYTES + kind;
        if page_list / KINDS == LARGE {
            return self.alloc_large(size, kind);
        }
        loop {
            let object = self.regions[page_list].take();
            if !object.is_null() {
                return object;
            }
            if !self.refill(page_list) {
                return ptr::null_mut();
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn refill(&self, page_list: usize) -> bool {
        let _noted = self.stack.enter();
        let heap = self.heap();
        if heap.space.is_stressed() {
            heap.stress(self);
        }
        if self.owed.get() >= OWES {
            heap.pay(self, self.owed.take());
        }
        heap.pay_debts(self);
        loop {
            heap.at_safepoint(self);
            if self.next_stretch(page_list) {
                return true;
            }
            let Some(page) = self.acquire(page_list) else { return false };
            if self.enter_page(page_list, page) {
                return true;
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn alloc_large(&self, size: usize, kind: usize) -> *mut u8 {
        let _noted = self.stack.enter();
        let heap = self.heap();
        if heap.space.is_stressed() {
            heap.stress(self);
        }
        heap.at_safepoint(self);
        if large::is_too_large(size, heap.space.target().most) {
            return ptr::null_mut();
        }
        heap.pay(self, size);
        let page_list = LARGE * KINDS + kind;
        for attempt in 0..=ATTEMPTS {
            loop {
                if let Some(page) = heap.new_large(size, page_list) {
                    heap.large_begins(self, page);
                    return page.base();
                }
                if !heap.sweep_for(large::footprint(size)) {
                    break;
                }
            }
            if attempt == ATTEMPTS || !self.may_collect_for_room() {
                break;
            }
            heap.collect(self);
        }
        heap.space.pacing.note_refusal();
        ptr::null_mut()
    }

    /// Returns whether an allocation may collect because the limit is reached, or the system has no
    /// memory. Objects that no root leads to yet are safe while collections are deferred.
    fn may_collect_for_room(&self) -> bool {
        let space = &self.heap().space;
        self.deferred.get() == 0 && !space.pacing.is_in_vain(&space.target())
    }

    /// Notes `bytes` more external bytes of the runtime. From [`OWES`] bytes on, cuts the regions
    /// off. The next allocation then takes the slow path, which pays for the bytes as for a page.
    pub(super) fn owe(&self, bytes: usize) {
        self.owed.add(bytes);
        if self.owed.get() >= OWES {
            self.each_region(|_, region, _| region.cut_off());
        }
    }

    /// Pays for a page, and claims a page with free slots from a page list. `None` without memory.
    fn acquire(&self, page_list: usize) -> Option<&'static Page> {
        let heap = self.heap();
        if heap.fork.is_poisoned() {
            return heap.new_page(page_list, usize::MAX);
        }
        heap.pay(self, UNIT);
        let page = self.look_for_page(page_list)?;
        heap.space.note_claimed(page);
        Some(page)
    }

    /// Runs the steps 1 to 8 of the picture until a step finds a page.
    fn look_for_page(&self, page_list: usize) -> Option<&'static Page> {
        let heap = self.heap();
        let up_to_the_limit =
            || self.find_page(page_list).or_else(|| heap.new_page(page_list, usize::MAX));
        for attempt in 0..ATTEMPTS {
            if let Some(page) = self.find_page(page_list) {
                return Some(page);
            }
            // During the sweep, tries freed pages, and then a new page, before any collection. A
            // collection would have to finish the sweep.
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
            // The limit is reached, or the system has no memory: frees as much as possible.
            if !self.may_collect_for_room() {
                break;
            }
            heap.collect(self);
        }
        // The last collection may have freed a page.
        let page = up_to_the_limit();
        if page.is_none() {
            heap.space.pacing.note_refusal();
        }
        page
    }
}
