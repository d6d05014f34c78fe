//! Locks: all of one heap's, which a fork holds.
//!
//! Each part names its own, in the order in which they are taken. `fork` takes them before the
//! process is copied, and gives them back on either side.

use heapwright_substrate::sync::Lock;

/// A lock, whatever it guards.
pub(super) trait AnyLock {
    /// Takes it without a guard.
    fn acquire(&self);

    /// Gives it back.
    ///
    /// # Safety
    ///
    /// Taken by [`AnyLock::acquire`], by this thread or by the one that it is a copy of.
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

/// What each lock of a part is handed to.
pub(super) type With<'a> = &'a mut dyn FnMut(&dyn AnyLock);
