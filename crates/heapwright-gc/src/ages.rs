//! Ages and places: the heap's facts about one object.
//!
//! ```text
//!   old      a minor collection does not trace the object   its mark stayed, or was cleared
//!                                                           because the object is remembered
//!   pinned   the object stays where it is                   its page has pins
//!   moved    the object was at this address before          its first word has the new address
//! ```
//!
//! Called by `raw` and `dump`.

use super::heap::Heap;
use super::held::StickyMarks;
use super::mutator::Mutator;
use super::page::Page;
use super::phase::Phase;

impl Heap {
    /// Gives remembered objects their marks while `with` runs. The world must be stopped.
    pub(super) fn with_marks_of_remembered<R>(&self, with: impl FnOnce() -> R) -> R {
        let generations = &self.trace.generations;
        if !generations.has_ages() {
            return with();
        }
        self.give_notes();
        generations.remembered.with_marks(&self.space, with)
    }

    /// Returns whether the next collection, if it is a minor one, takes the object for live. Stops
    /// the world for a survivor without a mark, because it may be young, or remembered.
    pub(super) fn is_old(&self, me: &Mutator, object: *mut u8) -> bool {
        let Some(page) = self.space.page_of(object.addr()) else { return false };
        let offset = object.addr() - page.base().addr();
        if !self.trace.generations.has_ages() || page.slot_of(offset) != Some(offset) {
            return false;
        }
        self.is_seen_old(page, offset)
            || page.has_survived(offset)
                && self.stopped(me, || {
                    self.with_marks_of_remembered(|| self.is_seen_old(page, offset))
                })
    }

    /// Returns whether an object is old. False for remembered objects, whose marks were cleared.
    pub(super) fn is_seen_old(&self, page: &Page, offset: usize) -> bool {
        let all = self.trace.generations.sticky_marks() == StickyMarks::Everything
            && self.space.cycle.phase() != Phase::Marking;
        self.trace.generations.has_ages()
            && page.is_marked(offset)
            && (all || page.has_survived(offset))
    }
}
