//! Roots: what keeps objects alive, weak cells, which do not, and pins, which keep them in place.

use super::Mutator;

impl Mutator {
    /// A root: a cell that may be read and written freely. `None` where there is no memory.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super).
    #[must_use]
    pub unsafe fn new_root(&self, object: *mut u8) -> Option<*mut *mut u8> {
        self.heap().trace.handles.make(&self.inner().handles, object).map(<*mut _>::cast)
    }

    /// Frees a root.
    ///
    /// # Safety
    ///
    /// `cell` is a root of this heap that was not freed.
    pub unsafe fn free_root(&self, cell: *mut *mut u8) {
        // SAFETY: a root of this heap that was not freed, as the caller promises.
        unsafe { self.heap().trace.handles.free(&self.inner().handles, cell.cast()) };
    }

    /// A weak root: a cell that may be read and written freely, keeps nothing, and becomes null
    /// when what it leads to has died, before its finalizers run. `None` where there is no memory.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super).
    #[must_use]
    pub unsafe fn new_weak(&self, object: *mut u8) -> Option<*mut *mut u8> {
        self.heap().trace.weak.handles.make(&self.inner().weak, object).map(<*mut _>::cast)
    }

    /// Frees a weak root.
    ///
    /// # Safety
    ///
    /// `cell` is a weak root of this heap that was not freed.
    pub unsafe fn free_weak(&self, cell: *mut *mut u8) {
        // SAFETY: a weak root of this heap that was not freed, as the caller promises.
        unsafe { self.heap().trace.weak.handles.free(&self.inner().weak, cell.cast()) };
    }

    /// From now on the thread's C stack up to `base` is scanned for addresses; null: no more.
    ///
    /// # Safety
    ///
    /// `base` is within the calling thread's stack, above all frames that may hold objects.
    pub unsafe fn scan_stack(&self, base: *const u8) {
        self.inner().stack.base.set(base.cast_mut());
    }

    /// From now on an object stays where it is, until it is unpinned as often. It is not kept.
    /// False: it is none of this heap.
    pub fn pin(&self, object: *mut u8) -> bool {
        self.heap().space.pin(object)
    }

    /// From now on stores into this object need not be reported: it is looked at in every
    /// collection, a minor one as well, and what it leads to stays where it is. For as long as it
    /// lives. False: there is no memory.
    ///
    /// # Safety
    ///
    /// `object` is one of this heap; the other duties of the [module](super).
    pub unsafe fn unprotect(&self, object: *mut u8) -> bool {
        self.heap().trace.unprotected.add(object)
    }

    /// Ends a [`Mutator::pin`]. Before the object dies.
    ///
    /// # Safety
    ///
    /// The object was pinned more often than unpinned.
    pub unsafe fn unpin(&self, object: *mut u8) {
        self.heap().space.unpin(object);
    }
}
