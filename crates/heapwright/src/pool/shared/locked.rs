//! The store of a shared pool behind its lock.
//!
//! ```text
//!   Locked   null, until a thread first needs it --> | id | Lock<Store> |
//!                                                          ^
//!   STORES   every store that was ever made ---------------+    a fork holds all these locks
//!            a store without a pool waits for the next pool
//! ```
//!
//! A pool may lie anywhere and end at any time, so a fork cannot find it. So stores with their
//! locks are recycled and never freed, and a fork finds all of them here.
//!
//! Invariants: until [`Locked::end`], the store of a [`Locked`] belongs to one pool. A store
//! without a pool is ended. A magazine's lock is taken before a store's.
//!
//! Called by `slots`, `keyed`, `walk` and `whole`, and by the parent module for a fork.

use core::ptr;

use super::super::fork;
use super::super::store::Store;
use crate::ids::{Recycled, Slot};
use crate::substrate;
use crate::sync::Lock;
use crate::sync::atomic::{AtomicPtr, Ordering};

static STORES: Recycled<Lock<Store>> = Recycled::new();

/// The store of one pool, which the first use makes.
pub(super) struct Locked(AtomicPtr<Slot<Lock<Store>>>);

impl Locked {
    pub(super) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    pub(super) fn made(&self) -> Option<&'static Lock<Store>> {
        // SAFETY: the pointer is null or a recycled object, which is never freed.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }.map(|slot| &slot.value)
    }

    /// Returns the store. The first call makes it. `None` if there is no memory.
    pub(super) fn made_now(&self, fresh: impl Fn() -> Store) -> Option<&'static Lock<Store>> {
        self.made().or_else(|| {
            // The window must be open, because the store will lie in it.
            if !substrate::open_and_begin() {
                return None;
            }
            fork::join();
            let slot = STORES.take(Lock::new(fresh()))?;
            let new = ptr::from_ref(slot).cast_mut();
            let none = ptr::null_mut();
            // A recycled store has the shape of another pool.
            *slot.value.lock() = fresh();
            if self.0.compare_exchange(none, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
                STORES.give(slot);
            }
            self.made()
        })
    }

    /// Ends and recycles the store. No slot may be in use.
    pub(super) fn end(&mut self) {
        let slot = core::mem::replace(self.0.get_mut(), ptr::null_mut());
        // SAFETY: the pointer is null or a recycled object, which is never freed.
        if let Some(slot) = unsafe { slot.as_ref() } {
            slot.value.lock().end();
            STORES.give(slot);
        }
    }
}

pub(super) fn before_fork() {
    STORES.before_fork();
    for store in STORES.all() {
        store.acquire();
    }
}

/// Releases the locks after a fork, in the parent and in the child.
///
/// # Safety
///
/// The call follows [`before_fork`] in the forking thread or its copy in the child.
pub(super) unsafe fn after_fork() {
    for store in STORES.all() {
        // SAFETY: this thread, or the thread that it is a copy of, took the lock before the fork.
        unsafe { store.release() };
    }
    // SAFETY: this thread, or the thread that it is a copy of, took these locks before the fork.
    unsafe { STORES.after_fork() };
}
