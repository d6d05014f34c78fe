//! Roots keep objects alive, weak cells do not, and pins keep objects in place.

use super::Mutator;

impl Mutator {
    /// Makes a root: a cell that may be read and written freely. Returns `None` without memory.
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

    /// Makes a weak root: a cell that may be read freely. The cell keeps nothing alive. It becomes
    /// null when its object has died, before finalizers run. The runtime may store null into the
    /// cell. It may store an object directly only if the cell holds a null from this call, from
    /// [`Mutator::set_weak`] or from the heap. Otherwise it calls [`Mutator::set_weak`], because
    /// collections look only at cells that may lead to a young object. `VERIFY_BARRIERS` finds
    /// other stores. Returns `None` without memory.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super).
    #[must_use]
    pub unsafe fn new_weak(&self, object: *mut u8) -> Option<*mut *mut u8> {
        self.heap().trace.weak.cells.make(&self.inner().weak, object).map(<*mut _>::cast)
    }

    /// Frees a weak root.
    ///
    /// # Safety
    ///
    /// `cell` is a weak root of this heap that was not freed.
    pub unsafe fn free_weak(&self, cell: *mut *mut u8) {
        self.heap().trace.weak.cells.free(&self.inner().weak, cell.cast());
    }

    /// Stores an object, or null, into a weak root.
    ///
    /// # Safety
    ///
    /// `cell` is a weak root of this heap that was not freed; the duties of the [module](super).
    pub unsafe fn set_weak(&self, cell: *mut *mut u8, object: *mut u8) {
        self.heap().trace.weak.cells.set(cell.cast(), object);
    }

    /// From now on, collections scan the thread's C stack up to `base` for addresses. Null ends the
    /// scans. A thread that changes to another stack (`makecontext`, `sigaltstack`) names the other
    /// stack first. A collection on a stack that was not named ends the program.
    ///
    /// # Safety
    ///
    /// `base` is within the calling thread's stack, above all frames that may hold objects.
    pub unsafe fn scan_stack(&self, base: *const u8) {
        self.inner().stack.name(base.cast_mut());
    }

    /// Keeps an object in place until it is unpinned as often as pinned. A pin does not keep the
    /// object alive. Returns false for an object that is not of this heap.
    pub fn pin(&self, object: *mut u8) -> bool {
        self.heap().space.pin(object)
    }

    /// Stores into this object need not be reported from now on. Every collection traces it, minor
    /// ones too. The objects that it leads to stay in place. Returns false without memory.
    ///
    /// # Safety
    ///
    /// `object` is an object of this heap; the other duties of the [module](super).
    pub unsafe fn unprotect(&self, object: *mut u8) -> bool {
        self.heap().trace.unprotected.add(object)
    }

    /// Undoes a [`Mutator::pin`]. The caller does so before the object dies.
    ///
    /// # Safety
    ///
    /// The object was pinned more often than unpinned.
    pub unsafe fn unpin(&self, object: *mut u8) {
        self.heap().space.unpin(object);
    }
}
