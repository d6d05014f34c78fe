//! Locks: all locks of one heap, which a fork holds.
//!
//! Each part lists its own locks, in the order in which they are taken. `fork` takes them before
//! the process is copied, and releases them in parent and child.

use heapwright_substrate::sync::Lock;

pub(super) trait AnyLock {
    fn acquire(&self);

    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// [`AnyLock::acquire`] took it, in this thread or in its original in the parent.
    unsafe fn release(&self);
}

impl<T> AnyLock for Lock<T> {
    fn acquire(&self) {
        Self::acquire(self);
    }

    unsafe fn release(&self) {
        // SAFETY: by the contract.
        unsafe { Self::release(self) };
    }
}

/// The function that gets each lock of a part.
pub(super) type With<'a> = &'a mut dyn FnMut(&dyn AnyLock);
