//! Numbers and pointers that several threads may read, and one thread at a time changes.
//!
//! The declaration of a field says which thread changes the field, and what orders the changes. Any
//! number of threads may call the methods whose names end in `_shared`. Loads and stores are
//! relaxed, unless the name says otherwise. A late reader may see an old value, but no torn value.

use heapwright_substrate::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// A number. Zeroed memory holds 0.
#[repr(transparent)]
pub(crate) struct Num(AtomicUsize);

impl Num {
    /// A number. (Without loom, all numbers are in zeroed memory.)
    #[cfg(loom)]
    pub(crate) fn new(value: usize) -> Self {
        Self(AtomicUsize::new(value))
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set(&self, value: usize) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Reads the number. The reader sees all that was done before [`Num::set_released`] stored it.
    #[inline]
    pub(crate) fn get_acquired(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    /// Changes the number, for readers that use [`Num::get_acquired`].
    #[inline]
    pub(crate) fn set_released(&self, value: usize) {
        self.0.store(value, Ordering::Release);
    }

    /// Adds to the number. Only the thread that changes it may call this.
    #[inline(always)]
    pub(crate) fn add(&self, more: usize) {
        self.set(self.get().wrapping_add(more));
    }

    /// Subtracts from the number, down to 0. Only the thread that changes it may call this.
    #[inline(always)]
    pub(crate) fn sub(&self, less: usize) {
        self.set(self.get().saturating_sub(less));
    }

    /// Adds to the number. Any number of threads may call this.
    #[inline]
    pub(crate) fn add_shared(&self, more: usize) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Subtracts from the number, down to 0. Any number of threads may call this.
    #[inline]
    pub(crate) fn sub_shared(&self, less: usize) {
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        let _was = self.0.fetch_update(set, fetch, |now| Some(now.saturating_sub(less)));
    }

    /// Raises the number to `least` if it is lower. Any number of threads may call this.
    #[inline]
    pub(crate) fn raise_shared(&self, least: usize) {
        self.0.fetch_max(least, Ordering::Relaxed);
    }

    /// Sets the number to 0 if it is `value`. Other threads may change it meanwhile.
    #[inline]
    pub(crate) fn clear_if(&self, value: usize) {
        _ = self.0.compare_exchange(value, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(crate) fn replace(&self, value: usize) -> usize {
        let was = self.get();
        self.set(value);
        was
    }

    #[inline]
    pub(crate) fn take(&self) -> usize {
        self.replace(0)
    }
}

/// A number below 2^32, in 4 bytes. Zeroed memory holds 0.
#[repr(transparent)]
pub(crate) struct Small(AtomicU32);

impl Small {
    /// A number, as [`Num::new`].
    #[cfg(loom)]
    pub(crate) fn new(value: usize) -> Self {
        Self(AtomicU32::new(value as u32))
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed) as usize
    }

    #[inline(always)]
    pub(crate) fn set(&self, value: usize) {
        debug_assert!(u32::try_from(value).is_ok());
        self.0.store(value as u32, Ordering::Relaxed);
    }
}

/// A pointer. Zeroed memory holds null.
#[repr(transparent)]
pub(crate) struct Ptr<T>(AtomicPtr<T>);

impl<T> Ptr<T> {
    /// A pointer, as [`Num::new`].
    #[cfg(loom)]
    pub(crate) fn new(value: *mut T) -> Self {
        Self(AtomicPtr::new(value))
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> *mut T {
        self.0.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set(&self, value: *mut T) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// Sets the named numbers of a struct to 0.
#[cfg(not(loom))]
macro_rules! clear {
    ($of:ident: $($number:ident)+) => { $( $of.$number.set(0); )+ };
}
#[cfg(not(loom))]
pub(crate) use clear;
