//! Placement: which objects stay in place, are to move, or have moved.
//!
//! ```text
//!   candidate    its page is in the plan           keep_in_place removes the page from the plan
//!   pinned       its page has pins                 and never gets into a plan
//!   forwarded    its first word has its new address   until its page is swept
//! ```
//!
//! Part of `space`. Called by `tracer`, `moving`, `raw`, and files that note stores.

use heapwright_substrate::address_map::MAP;

use super::find;
use super::page::{Evacuation, Page};
use super::phase::Phase;
use super::space::Space;

impl Space {
    /// Returns the page of the plan that an object lies in, and the object's offset there.
    #[inline]
    pub(super) fn candidate(&self, object: *mut u8) -> Option<(&Page, usize)> {
        let (unit, _) = find::list_of(object.addr(), self.tag())?;
        let page = self.pages.at_unit(unit)?;
        (page.evacuation() == Evacuation::Candidate)
            .then(|| (page, object.addr() - MAP.address_of(unit).addr()))
    }

    /// Keeps an object, and its page, in place, because a reference to it cannot be changed.
    pub(super) fn keep_in_place(&self, object: *mut u8) {
        if let Some((page, _)) = self.candidate(object) {
            page.set_evacuation(Evacuation::No);
        }
    }

    /// Returns the new address of an object that has moved since it was marked.
    pub(super) fn forwarded(&self, object: *mut u8) -> Option<*mut u8> {
        let page = self.page_of(object.addr())?;
        let offset = object.addr() - page.base().addr();
        let begins =
            page.evacuation() == Evacuation::Evacuated && page.slot_of(offset) == Some(offset);
        begins.then(|| page.moved_to(offset)).flatten()
    }

    /// Returns where an object is, in a weak pass; null if the object is dead.
    pub(super) fn where_is(&self, object: *mut u8) -> *mut u8 {
        if let Some(to) = self.forwarded(object) {
            return to;
        }
        // During moves, earlier passes have dropped the dead objects, and new objects have no mark.
        if self.cycle.phase() == Phase::Marking && self.is_unmarked(object) {
            return core::ptr::null_mut();
        }
        object
    }

    #[cold]
    pub(super) fn abandon_plan(&self) {
        for page in self.pages.all().filter(|page| page.evacuation() == Evacuation::Candidate) {
            page.set_evacuation(Evacuation::No);
        }
    }

    /// Keeps an object in place until it is unpinned. Returns false for an object of another heap.
    pub(super) fn pin(&self, object: *mut u8) -> bool {
        let Some(page) = self.page_of(object.addr()) else { return false };
        page.pins.add_shared(1);
        self.keep_in_place(object);
        true
    }

    pub(super) fn unpin(&self, object: *mut u8) {
        if let Some(page) = self.page_of(object.addr()) {
            page.pins.sub_shared(1);
        }
    }

    /// Returns whether an object is in a page with a pinned object, so that it does not move.
    pub(super) fn is_pinned(&self, object: *mut u8) -> bool {
        self.page_of(object.addr()).is_some_and(|page| page.pins.get() > 0)
    }
}
