//! Walks: every object of a heap, while its world stands still.

use super::heap::Heap;
use super::held::State;
use super::kept::AllKept;
use super::layout::PAGE_LISTS;
use super::mutator::Mutator;
use super::page::Page;

impl Heap {
    /// Calls `with` while the world stands still, and the pages know how far mutators have come.
    pub(super) fn stopped<R>(&self, me: &Mutator, with: impl FnOnce() -> R) -> R {
        me.stack.note();
        while !self.stop_world(me) {}
        /// The world goes on, also if `with` unwinds.
        struct GoOn<'a>(&'a Heap, &'a Mutator);
        impl Drop for GoOn<'_> {
            fn drop(&mut self) {
                self.0.go_on(self.1);
            }
        }
        let _goes_on = GoOn(self, me);
        self.each_mutator(Mutator::settle);
        with()
    }

    /// Calls `with` for every page in use, page list by page list. While the world stands still.
    pub(super) fn each_page(&self, mut with: impl FnMut(&Page) -> bool) -> bool {
        for page_list in 0..PAGE_LISTS {
            let mut number = self.supply.lists.lock().first(page_list);
            while let Some(page) = self.supply.pages.get(number) {
                number = page.next.get();
                if page.state() == State::InUse && !with(page) {
                    return false;
                }
            }
        }
        true
    }

    /// See [`Mutator::walk`](super::raw::Mutator::walk).
    pub(super) fn walk(
        &self,
        me: &Mutator,
        mut visit: impl FnMut(*mut u8, usize, u32) -> bool,
    ) -> bool {
        self.stopped(me, || {
            self.each_page(|page| {
                let (slot, kind) = (page.slot.get(), page.kind() as u32);
                page.objects()
                    .filter(|&offset| self.holds(page, offset))
                    .all(|offset| visit(page.base().wrapping_add(offset), slot, kind))
            })
        })
    }

    /// What is kept and no object leads to. `None` where there is no memory.
    pub(super) fn all_kept(&self) -> Option<AllKept> {
        AllKept::of(|mut with| {
            self.guardians.each_kept(&mut with);
            self.finalizers.lock().each_kept(&mut with);
        })
    }
}
