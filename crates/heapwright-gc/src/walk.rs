//! Walks: every object of a heap, while its world is stopped.

use super::heap::Heap;
use super::kept::AllKept;
use super::mutator::Mutator;

impl Heap {
    /// As `Space::find`, but also finds objects that only a mutator's region knows.
    pub(super) fn find_fresh(&self, address: *const u8) -> Option<*mut u8> {
        self.space.find_or(address, |page, start| {
            let mut found = false;
            self.each_mutator(|mutator| found |= mutator.has_used(page, start));
            found
        })
    }

    pub(super) fn stopped<R>(&self, me: &Mutator, with: impl FnOnce() -> R) -> R {
        me.stack.note();
        while !self.stop_world(me) {}
        /// Lets the world go on, even if `with` panics.
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

    /// See [`Mutator::walk`](super::raw::Mutator::walk).
    pub(super) fn walk(
        &self,
        me: &Mutator,
        mut visit: impl FnMut(*mut u8, usize, u32) -> bool,
    ) -> bool {
        self.stopped(me, || {
            self.space.each_page(|page| {
                let (slot, kind) = (page.slot.get(), page.kind() as u32);
                page.objects()
                    .filter(|&offset| self.space.holds(page, offset))
                    .all(|offset| visit(page.base().wrapping_add(offset), slot, kind))
            })
        })
    }

    /// Returns the objects that guardians and finalizers keep (see `kept`). `None` without memory.
    pub(super) fn all_kept(&self) -> Option<AllKept> {
        AllKept::of(|mut with| {
            self.trace.guardians.each_kept(&mut with);
            self.trace.finalizers.lock().each_kept(&mut with);
        })
    }
}
