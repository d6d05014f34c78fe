//! Steps and whole collections: to run, to request and to defer them.

use super::super::heap::Heap;
use super::Mutator;

impl Mutator {
    /// Collects for about `budget` nanoseconds: moves, sweeps, marks, and begins a cycle if one is
    /// due. In a heap that is not incremental, marking takes as long as it needs. Returns whether
    /// no work is left.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super).
    #[inline]
    pub unsafe fn step(&self, budget: u64) -> bool {
        let _noted = self.inner().stack.enter();
        self.heap().step(self.inner(), budget)
    }

    /// Runs a whole collection, in steps if the heap is incremental. Empty pages that the heap
    /// cannot use before the next collection go back to the kernel.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super).
    #[inline]
    pub unsafe fn collect(&self) {
        let _noted = self.inner().stack.enter();
        self.heap().collect_in_steps(self.inner());
        self.heap().space.pacing.note_request();
        self.heap().space.purge_beyond_allowance();
    }

    /// Runs a whole collection. It is a minor one, unless a major one is due or the heap does not
    /// know which objects are old. (Such a heap has no generations, or has not collected yet.)
    /// Returns whether the collection was minor.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super).
    #[inline]
    pub unsafe fn collect_young(&self) -> bool {
        let _noted = self.inner().stack.enter();
        self.heap().collect_young(self.inner())
    }

    /// Runs a whole collection, moves objects close together, and gives empty pages back. An object
    /// that is pinned or reported by value does not move, nor does any other object in its page.
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

    /// As [`Mutator::compact`], but moves every movable object, also from full pages. So a test
    /// finds a runtime that keeps an address without reporting it.
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

    /// Makes a compacting collection due. Unlike after [`Mutator::compact`], empty pages stay. The
    /// next step begins the collection.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super), and those for objects that move.
    pub unsafe fn ask_compact(&self) {
        self.heap().moving.ask();
        self.ask();
    }

    /// Makes a collection due. The next step begins it, or the next allocation that needs a page.
    pub fn ask(&self) {
        self.heap().space.pacing.ask();
    }

    /// Bytes that this mutator has allocated in [`Mutator::held`], and must pay for.
    #[inline]
    #[must_use]
    pub fn unpaid(&self) -> usize {
        self.inner().unpaid.get()
    }

    /// Returns whether a collection is due or under way.
    #[must_use]
    pub fn is_owed(&self) -> bool {
        self.heap().is_owed()
    }

    /// Makes collections minor until [`Mutator::resume_majors`], if the heap has generations and
    /// enough memory. Calls nest, also with those of other mutators. A server may call this for
    /// each request. A major collection that was already chosen may still run.
    pub fn defer_majors(&self) {
        self.inner().scopes.set(self.inner().scopes.get().wrapping_add(1));
        self.heap().trace.generations.defer_majors();
    }

    /// Ends a [`Mutator::defer_majors`].
    pub fn resume_majors(&self) {
        // In this order a fork in between leaves no scope to the child.
        self.heap().trace.generations.resume_majors();
        self.inner().scopes.set(self.inner().scopes.get().wrapping_sub(1));
    }

    /// Returns whether a major collection is due; [`Mutator::defer_majors`] may hold it back.
    #[must_use]
    pub fn is_major_owed(&self) -> bool {
        self.heap().trace.generations.is_major_owed()
    }

    /// Defers collections: until [`Mutator::resume`], no allocation collects. If the limit is
    /// reached or the system has no memory, allocations fail. Calls nest.
    pub fn defer(&self) {
        self.inner().deferred.add(1);
    }

    /// Ends a [`Mutator::defer`].
    pub fn resume(&self) {
        self.inner().deferred.sub(1);
    }

    /// Calls `with`, in which no allocation collects. Afterwards pays for the allocations, which
    /// may collect. If memory runs out in `with`, allocations fail.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super) when `with` returns. The heap has no other mutator.
    pub unsafe fn held<R>(&self, with: impl FnOnce() -> R) -> R {
        /// Ends the hold, also when unwinding.
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
