//! Stores: the notes that the storing thread makes of a store into an object.
//!
//! ```text
//!   remember   old object, young child      --> remembered set, for the next minor collection: the
//!              place alone, if it is known and the object is large
//!   touch      old object, child not known  --> the same
//!   note_store child in a candidate         --> the slot is noted with the page (see `references`)
//! ```
//!
//! A candidate is a page whose objects are to move. Called by `raw`, and by `mark`, which traces
//! remembered objects.

use heapwright_substrate::address_map::MAP;

use super::bag;
use super::dirty_slots;
use super::find;
use super::layout::{self, KINDS, LARGE};
use super::page::Page;
use super::phase::Phase;
use super::remembered::PLACE;
use super::tracer::{TraceSlot, Tracer};

/// A place in a large object that was stored into, or null, and the function that traces the place.
type Place = (*mut u8, TraceSlot);

const _: () = assert!(size_of::<Place>() == PLACE);

impl Tracer {
    /// Notes a store of a reference to `child` into a slot of `parent`. The slot is null if it is
    /// not known. Call this only if `parent` is marked, and marks say which objects are old.
    pub(super) fn remember(&self, parent: *mut u8, slot: *mut *mut u8, child: *mut u8) {
        let space = self.space();
        let Some(head) = space.head_of(parent.addr()) else { return };
        let Some((unit, _)) = find::list_of(child.addr(), space.tag()) else { return };
        // A minor collection does not look at an old child.
        if !self.has_marks_that_stay(unit) || !space.is_marked(child) {
            self.remember_place(head, parent, slot.cast(), dirty_slots::one);
        }
    }

    /// Remembers a place in `parent`. Remembers all of `parent` if the place is null or `parent`
    /// itself, if `parent` is small, or if very many places are remembered. (A large object may be
    /// made smaller, so [`Tracer::trace_place`] checks that a place is still in the object.)
    fn remember_place(&self, head: usize, parent: *mut u8, place: *mut u8, trace: TraceSlot) {
        let (space, of) = (self.space(), self.of());
        let large = |(_, page_list): (usize, usize)| page_list / KINDS == LARGE;
        if place.is_null()
            || place == parent
            || !find::list_of(parent.addr(), space.tag()).is_some_and(large)
        {
            return self.remember_at(head, parent);
        }
        if self.places.has(place.addr(), trace as usize) {
            return;
        }
        let remembered = &of.generations.remembered;
        let entry: Place = (place, trace);
        let fits = remembered.counts_place(space.large_size(head));
        if !fits || !self.places.push(&of.marking, remembered.places(), entry) {
            self.remember_at(head, parent);
        }
    }

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

    /// Remembers a place of `parent`, if `parent` is old: something was stored there, or will be
    /// before the next safepoint. `trace` traces the place, which may be all of `parent`.
    pub(super) fn touch(&self, parent: *mut u8, place: *mut u8, trace: TraceSlot) {
        let space = self.space();
        let Some((head, page_list)) = find::list_of(parent.addr(), space.tag()) else { return };
        if layout::is_traced(page_list) && space.is_marked(parent) {
            self.remember_place(head, parent, place, trace);
        }
    }

    /// Reports some remembered objects. Returns false if none is left.
    pub(super) fn trace_remembered(&self) -> bool {
        let (space, trace) = (self.space(), self.of());
        let Some((chunk, again)) = trace.generations.remembered.take() else {
            return self.trace_places();
        };
        // An object that is there twice is traced once: only its first visit finds no mark.
        bag::each(chunk, |object: usize| _ = space.take_mark(MAP.base().with_addr(object)));
        bag::each(chunk, |object: usize| self.look_again(object));
        if again {
            // SAFETY: the chunk was taken just now.
            unsafe { trace.generations.remembered.give_again(chunk) };
        } else {
            trace.marking.give_back(chunk);
        }
        true
    }

    /// Reports some remembered places. Returns false if none is left.
    fn trace_places(&self) -> bool {
        let trace = self.of();
        let Some((chunk, again)) = trace.generations.remembered.take_places() else {
            return false;
        };
        bag::each(chunk, |(place, of): Place| self.trace_place(place, of));
        if again {
            // SAFETY: the chunk was taken just now.
            unsafe { trace.generations.remembered.give_places_again(chunk) };
        } else {
            trace.marking.give_back(chunk);
        }
        true
    }

    fn trace_place(&self, place: *mut u8, trace: TraceSlot) {
        let space = self.space();
        let slot = space.head_of(place.addr()).and_then(|head| space.slot_in(head, place.addr()));
        // (Behind the end of an object that was made smaller there is no slot.)
        let Some((page, start)) = slot else { return };
        if page.is_marked(start) {
            // SAFETY: the caller that stored gave the function for the place. The object is marked,
            // so it exists, and the place lies in it.
            unsafe { trace(place, self) };
        } else {
            // The object was new at the store, so it may be young. The next collection gets the
            // place as well, so the object must live until then. It is marked as a reference is: if
            // it becomes old now, the next collection looks at all of it.
            self.mark(page.base().wrapping_add(start));
        }
    }

    /// Notes a store of a reference to `child` into a slot of `parent`. The slot is null if it is
    /// not known. The parent is null if it is a root.
    pub(super) fn note_store(&self, parent: *mut u8, slot: *mut *mut u8, child: *mut u8) {
        let space = self.space();
        if space.candidate(child).is_none() {
            return;
        }
        if parent.is_null() {
            // The parent is a root. Nobody knows whether the root's slot will be reported.
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
