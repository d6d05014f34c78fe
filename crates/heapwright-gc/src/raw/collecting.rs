//! Collecting: steps and whole collections, when one is due, and how it is put off.

use super::super::heap::Heap;
use super::Mutator;

impl Mutator {
    /// Collects for about `budget` nanoseconds: sweeps, marks, and begins a cycle if one is due.
    /// Whether nothing is left to do.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super).
    #[inline]
    pub unsafe fn step(&self, budget: u64) -> bool {
        let _noted = self.inner().stack.enter();
        self.heap().step(self.inner(), budget)
    }

    /// A collection from its beginning to its end.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super).
    #[inline]
    pub unsafe fn collect(&self) {
        let _noted = self.inner().stack.enter();
        self.heap().collect(self.inner());
        self.heap().space.pacing.note_request();
    }

    /// A minor collection from its beginning to its end; or a major one, if that is due, or the
    /// heap does not know what is old: it has no generations, or has not collected yet. Whether it
    /// was a minor one.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super).
    #[inline]
    pub unsafe fn collect_young(&self) -> bool {
        let _noted = self.inner().stack.enter();
        self.heap().collect_young(self.inner())
    }

    /// A collection from its beginning to its end, after which objects lie close together, and
    /// pages without objects have been given back. What is pinned, or reported by value, has not
    /// moved, nor what lies in its page.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super), and those for objects that move.
    #[inline]
    pub unsafe fn compact(&self) {
        let _noted = self.inner().stack.enter();
        self.heap().compact(self.inner(), false);
        self.heap().space.pacing.note_request();
    }

    /// As [`Mutator::compact`], but every object moves that may, from full pages, too: for tests of
    /// a runtime, whether it keeps an address that it does not report.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super), and those for objects that move.
    #[inline]
    pub unsafe fn compact_all(&self) {
        let _noted = self.inner().stack.enter();
        self.heap().compact(self.inner(), true);
        self.heap().space.pacing.note_request();
    }

    /// From now on a collection is due that compacts as [`Mutator::compact`] does, but for giving
    /// back pages that others may use: steps begin it.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super), and those for objects that move.
    pub unsafe fn ask_compact(&self) {
        self.heap().moving.ask();
        self.ask();
    }

    /// From now on a collection is due: steps begin one.
    pub fn ask(&self) {
        self.heap().space.pacing.ask();
    }

    /// Whether a collection is due or under way.
    #[must_use]
    pub fn is_owed(&self) -> bool {
        self.heap().is_owed()
    }

    /// Until [`Mutator::resume_majors`], collections are minor ones, as far as the heap has
    /// generations and memory: for requests, between which there is time for a major one. Nests,
    /// also with those of other mutators. Within the first such scope of a heap there may be a
    /// major one, if it was chosen before.
    pub fn defer_majors(&self) {
        self.heap().trace.generations.defer_majors();
    }

    /// Ends a [`Mutator::defer_majors`].
    pub fn resume_majors(&self) {
        self.heap().trace.generations.resume_majors();
    }

    /// Whether the next collection is to be a major one, and would be but for
    /// [`Mutator::defer_majors`].
    #[must_use]
    pub fn is_major_owed(&self) -> bool {
        self.heap().trace.generations.is_major_owed()
    }

    /// Until [`Mutator::resume`], allocation does no collecting of its own. Nests.
    pub fn defer(&self) {
        self.inner().deferred.add(1);
    }

    /// Ends a [`Mutator::defer`].
    pub fn resume(&self) {
        self.inner().deferred.sub(1);
    }

    /// Calls `with`, during which nothing is collected, whatever is allocated; and then pays for
    /// it, which may collect. Where there is no memory, allocations in it are refused.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super) when it returns. The heap has no other mutator.
    pub unsafe fn held<R>(&self, with: impl FnOnce() -> R) -> R {
        /// Lets go, also when unwinding.
        struct Hold<'a>(&'a Heap);
        impl Drop for Hold<'_> {
            fn drop(&mut self) {
                self.0.space.cycle.hold(false);
            }
        }
        let hold = Hold(self.heap());
        hold.0.space.cycle.hold(true);
        let result = with();
        drop(hold);
        self.heap().pay_rest(self.inner());
        result
    }
}
