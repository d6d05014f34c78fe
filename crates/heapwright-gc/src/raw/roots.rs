//! Handles keep objects alive, weak handles do not, and pins keep objects in place.

use super::Mutator;

impl Mutator {
    /// Makes a handle: a cell that is a root, read and written freely. `None` without memory.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super).
    #[must_use]
    pub unsafe fn new_root(&self, object: *mut u8) -> Option<*mut *mut u8> {
        self.heap().trace.handles.make(&self.inner().handles, object).map(<*mut _>::cast)
    }

    /// Frees a handle.
    ///
    /// # Safety
    ///
    /// `cell` is a handle of this heap that was not freed.
    pub unsafe fn free_root(&self, cell: *mut *mut u8) {
        // SAFETY: a handle of this heap that was not freed, as the caller promises.
        unsafe { self.heap().trace.handles.free(&self.inner().handles, cell.cast()) };
    }

    /// Makes a weak handle, which may be read freely and keeps nothing alive. The heap sets it to
    /// null when its object has died, before finalizers run. The runtime may store null. It may
    /// store an object directly over a null of this call, of [`Mutator::set_weak`] or of the heap.
    /// Over an object or its own null, it must call [`Mutator::set_weak`]: collections skip weak
    /// handles of old objects. `VERIFY_BARRIERS` looks for other stores. `None` without memory.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super).
    #[must_use]
    pub unsafe fn new_weak(&self, object: *mut u8) -> Option<*mut *mut u8> {
        self.heap().trace.weak.cells.make(&self.inner().weak, object).map(<*mut _>::cast)
    }

    /// Frees a weak handle.
    ///
    /// # Safety
    ///
    /// `cell` is a weak handle of this heap that was not freed.
    pub unsafe fn free_weak(&self, cell: *mut *mut u8) {
        self.heap().trace.weak.cells.free(&self.inner().weak, cell.cast());
    }

    /// Stores an object, or null, into a weak handle, whatever the handle holds.
    ///
    /// # Safety
    ///
    /// `cell` is a weak handle of this heap that was not freed; the duties of the [module](super).
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

    /// Exempts an object from barriers: stores into it need no report. Each minor collection traces
    /// it, even if it is old. The objects that it refers to do not move, unless the runtime changes
    /// references itself. Returns false without memory.
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
