//! Stores: the notes that the storing thread makes of a store into an object.
//!
//! ```text
//!   remember   old object, young child      --> remembered set, for the next minor collection
//!   touch      old object, child not known  --> the same
//!   note_store child in a candidate's page  --> the slot is noted with the page (see `references`)
//! ```
//!
//! An object is remembered once between two collections: the store that remembers it clears its
//! mark (see `remembered`).
//!
//! Called by `raw`; `mark` has remembered objects traced.

use heapwright_substrate::address_map::MAP;

use super::bag;
use super::dirty_slots;
use super::find;
use super::layout;
use super::page::Page;
use super::phase::Phase;
use super::tracer::Tracer;

impl Tracer {
    /// A reference to `child` was stored into `parent`, which has its mark, while marks say which
    /// objects are old.
    pub(super) fn remember(&self, parent: *mut u8, child: *mut u8) {
        let space = self.space();
        let Some(head) = space.head_of(parent.addr()) else { return };
        let Some((unit, _)) = find::list_of(child.addr(), space.tag()) else { return };
        // A minor collection does not look at an old child.
        if !self.has_marks_that_stay(unit) || !space.is_marked(child) {
            self.remember_at(head, parent);
        }
    }

    /// Returns whether a page's marks say which objects are old, and not only which live.
    fn has_marks_that_stay(&self, head: usize) -> bool {
        let space = self.space();
        let swept = |page: &Page| page.held.is_swept(space.cycle.number());
        space.cycle.phase() != Phase::Marking && space.pages.at_unit(head).is_some_and(swept)
    }

    fn remember_at(&self, head: usize, parent: *mut u8) {
        let (space, trace) = (self.space(), self.of());
        let remembered = &trace.generations.remembered;
        let known = if self.has_marks_that_stay(head) {
            !space.take_mark(parent)
        } else {
            self.stores.has(parent.addr(), 0)
        };
        if !known && !self.stores.push(&trace.marking, remembered.stores(), parent.addr()) {
            remembered.lose();
            space.give_mark(parent);
        }
    }

    /// Something was stored into `parent`, or will be before the next safepoint. `parent` is
    /// remembered if it is old.
    pub(super) fn touch(&self, parent: *mut u8) {
        let space = self.space();
        let Some((head, page_list)) = find::list_of(parent.addr(), space.tag()) else { return };
        if layout::is_traced(page_list) && space.is_marked(parent) {
            self.remember_at(head, parent);
        }
    }

    /// Reports some remembered objects. Returns false if none is left.
    pub(super) fn trace_remembered(&self) -> bool {
        let (space, trace) = (self.space(), self.of());
        let Some((chunk, again)) = trace.generations.remembered.take() else { return false };
        // An object that is there twice is traced once: it has no mark the first time.
        bag::each(chunk, |object: usize| _ = space.take_mark(MAP.base().with_addr(object)));
        bag::each(chunk, |object: usize| self.look_again(object));
        if again {
            // SAFETY: taken just now.
            unsafe { trace.generations.remembered.give_again(chunk) };
        } else {
            trace.marking.give_back(chunk);
        }
        true
    }

    /// A reference to `child` was stored into a slot of `parent`; null if the slot is not known.
    pub(super) fn note_store(&self, parent: *mut u8, slot: *mut *mut u8, child: *mut u8) {
        let space = self.space();
        if space.candidate(child).is_none() {
            return;
        }
        if parent.is_null() {
            // A root: it is not known whether its slot will be reported.
            return space.keep_in_place(child);
        }
        if slot.is_null() {
            return self.note_dirty_slot(parent, parent, dirty_slots::whole);
        }
        // While marking goes on, an object without a mark was not traced yet.
        if space.cycle.phase() != Phase::Marking || space.is_marked(parent) {
            self.note_slot(slot, child);
        }
    }
}
