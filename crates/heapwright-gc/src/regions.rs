//! A mutator's regions: how it allocates from the pages that it has claimed.
//!
//! ```text
//!   claimed page   | taken | free | taken |   enter_page --> open_stretch --> ... --> leave_page
//!                            ^ region, with the stretches behind it as holes
//! ```
//!
//! Called by `allocation`, `page_search` and `attach`, and by collectors for stopped mutators.

use core::ptr;

use super::mutator::Mutator;
use super::page::Page;
use super::region::{Hole, Region};

const REGION: usize = 8 << 10;

/// Zeroes the free slots from `at` to `stop` of a claimed page, but nothing from `dirty` on.
#[inline]
fn clean(base: *mut u8, at: usize, stop: usize, dirty: usize) {
    /// Up to this many bytes, a loop is faster than a call. (A plain loop would become a call.)
    const FEW: usize = 256;
    let stop = stop.min(dirty);
    if stop.saturating_sub(at) > FEW {
        // SAFETY: the bytes are free slots of a page that this mutator claimed.
        unsafe { ptr::write_bytes(base.wrapping_add(at), 0, stop - at) };
        return;
    }
    for word in (at..stop).step_by(8) {
        // SAFETY: free slots, multiples of 8 bytes, of a page that this mutator claimed.
        unsafe { base.wrapping_add(word).cast::<u64>().write_volatile(0) };
    }
}

impl Mutator {
    /// Makes the next stretch of the current page the region. Returns false if there is none.
    pub(super) fn next_stretch(&self, page_list: usize) -> bool {
        let region = &self.regions[page_list];
        let Some(page) = self.heap().space.pages.get(region.page.get()) else { return false };
        // A used-up region ends at `next`, unless objects were moved into it meanwhile.
        let from = region.next.get().addr() - page.base().addr();
        self.open_stretch(page_list, page, from) || self.leave_page(page_list, page)
    }

    /// Makes the first stretch of a claimed page the region. Returns false if there is none.
    pub(super) fn enter_page(&self, page_list: usize, page: &Page) -> bool {
        let region = &self.regions[page_list];
        // The payment for this page may have moved objects, into a region of this page list.
        if let Some(other) = self.heap().space.pages.get(region.page.get()) {
            self.drop_region(page_list, region, other, true);
        }
        region.page.set(page.number.get());
        region.slot.set(page.slot.get());
        self.used[page_list / 64].set(self.used[page_list / 64].get() | 1 << (page_list % 64));
        self.open_stretch(page_list, page, page.held.cursor()) || self.leave_page(page_list, page)
    }

    /// Finishes with a page. Returns false.
    fn leave_page(&self, page_list: usize, page: &Page) -> bool {
        page.held.settle(page.end());
        self.close_region(page_list);
        self.heap().moving.note_used(&self.heap().space, page);
        false
    }

    /// Makes the next free stretches of a page the region. Returns false if there are none.
    fn open_stretch(&self, page_list: usize, page: &Page, from: usize) -> bool {
        let mut most = if self.heap().space.is_stressed() { 0 } else { REGION };
        let Some((at, mut stop)) = page.next_free(from, most) else { return false };
        let (base, dirty) = (page.base(), page.zero_from.get());
        let zero = if self.heap().space.clears(page_list) { dirty } else { 0 };
        clean(base, at, stop, zero);
        let (first, end) = (base.wrapping_add(at), base.wrapping_add(stop));
        most = most.saturating_sub(stop - at);
        let slot = page.slot.get();
        let (mut holes, mut last) = (ptr::null_mut(), ptr::null_mut::<Hole>());
        while most >= slot
            && let Some((at, until)) = page.next_free(stop, most)
        {
            clean(base, at, until, zero);
            let hole = base.wrapping_add(at).cast::<Hole>();
            // SAFETY: the hole is free slots of a page that this mutator claimed. It begins at a
            // multiple of 8, and has at least two words.
            unsafe { hole.write(Hole { end: base.wrapping_add(until), next: ptr::null_mut() }) };
            match last.is_null() {
                true => holes = hole,
                // SAFETY: the hole was written just now, in a page that this mutator claimed.
                false => unsafe { (*last).next = hole },
            }
            last = hole;
            most = most.saturating_sub(until - at);
            stop = until;
        }
        // The words of holes are not zero, even if nobody takes their slots.
        page.zero_from.set(dirty.max(stop));
        let region = &self.regions[page_list];
        region.open(first, end);
        region.hole.set(holes);
        true
    }

    fn close_region(&self, page_list: usize) {
        self.regions[page_list].close();
        self.used[page_list / 64].set(self.used[page_list / 64].get() & !(1 << (page_list % 64)));
    }

    pub(super) fn each_region(&self, mut with: impl FnMut(usize, &Region, &Page)) {
        for (word, used) in self.used.iter().enumerate() {
            let mut rest = used.get();
            while rest != 0 {
                let page_list = word * 64 + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                if let Some(page) = self.heap().space.pages.get(self.regions[page_list].page.get())
                {
                    with(page_list, &self.regions[page_list], page);
                }
            }
        }
    }

    pub(super) fn each_page_in_use(&self, mut with: impl FnMut(&Page)) {
        self.each_region(|_, _, page| with(page));
    }

    /// Returns whether the mutator allocated the slot at `start` from a region in use.
    pub(super) fn has_used(&self, page: &Page, start: *mut u8) -> bool {
        let (number, end) = (page.number.get(), page.base().addr() + page.end());
        let mut used = false;
        self.each_region(|_, region, _| {
            used |= region.has_handed_out(number, start.addr(), end);
        });
        used
    }

    /// Writes the state of the mutator's regions to their pages. Nobody may allocate meanwhile.
    pub(super) fn settle(&self) {
        self.each_region(|_, region, page| {
            page.held.settle(region.next.get().addr() - page.base().addr());
        });
    }

    /// Returns how many claimed bytes the mutator has not allocated. Nobody may allocate meanwhile.
    pub(super) fn unused(&self) -> usize {
        let mut bytes = 0;
        self.each_region(|_, region, page| {
            bytes += page.free_from(region.next.get().addr() - page.base().addr());
        });
        bytes
    }

    /// Releases all regions. Releases their pages as well if `available`.
    pub(super) fn drop_regions(&self, available: bool) {
        self.each_region(|page_list, region, page| {
            self.drop_region(page_list, region, page, available)
        });
    }

    fn drop_region(&self, page_list: usize, region: &Region, page: &Page, available: bool) {
        let next = region.next.get().addr() - page.base().addr();
        page.held.settle(next);
        self.heap().moving.note_used(&self.heap().space, page);
        if available && page.next_free(next, 0).is_some() {
            self.heap().space.note_released(page, next);
            self.heap().space.lists.lock().unclaim(page);
        }
        self.close_region(page_list);
    }
}
