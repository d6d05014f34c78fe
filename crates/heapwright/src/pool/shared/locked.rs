//! The store of a shared pool, behind its lock.
//!
//! ```text
//!   Locked   null, until a thread first needs it --> | id | Lock<Store> |
//!                                                          ^
//!   STORES   every one that was ever made -----------------+    the locks a fork holds
//!            those that no pool has, for the next
//! ```
//!
//! A pool may lie in any place and end at any time, also in one that a fork cannot ask. So
//! the lock is not in the pool: store and lock are recycled and never freed, and a fork
//! finds them all from here.
//!
//! Invariants: what [`Locked`] leads to is this pool's alone until [`Locked::end`]; what
//! nobody has is an ended store. A magazine's lock is taken before a store's.
//!
//! Called by `slots`; across a fork, by the module above.

use core::ptr;

use super::super::fork;
use super::super::store::Store;
use crate::ids::{Recycled, Slot};
use crate::substrate;
use crate::sync::Lock;
use crate::sync::atomic::{AtomicPtr, Ordering};

/// The stores of all shared pools.
static STORES: Recycled<Lock<Store>> = Recycled::new();

/// The store of one pool, made when it is first needed.
pub(super) struct Locked(AtomicPtr<Slot<Lock<Store>>>);

impl Locked {
    /// None so far.
    pub(super) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The store, if there is one.
    pub(super) fn made(&self) -> Option<&'static Lock<Store>> {
        // SAFETY: null, or an object, which is never freed.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }.map(|slot| &slot.value)
    }

    /// The store, made now if there is none. `None` where there is no memory.
    pub(super) fn made_now(&self, fresh: impl Fn() -> Store) -> Option<&'static Lock<Store>> {
        self.made().or_else(|| {
            // The object lies in the window.
            if !substrate::open_and_begin() {
                return None;
            }
            fork::join();
            let slot = STORES.take(Lock::new(fresh()))?;
            let new = ptr::from_ref(slot).cast_mut();
            let none = ptr::null_mut();
            // One that another pool had is of that pool's shape.
            *slot.value.lock() = fresh();
            if self.0.compare_exchange(none, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // Another thread was first.
                STORES.give(slot);
            }
            self.made()
        })
    }

    /// Ends the store, if there is one, and leaves it to the next pool. All that is free is
    /// in its sets, or nothing is in use any more.
    pub(super) fn end(&mut self) {
        let slot = core::mem::replace(self.0.get_mut(), ptr::null_mut());
        // SAFETY: null, or an object, which is never freed.
        if let Some(slot) = unsafe { slot.as_ref() } {
            slot.value.lock().end();
            STORES.give(slot);
        }
    }
}

/// Holds the locks of all stores across a fork.
pub(super) fn before_fork() {
    STORES.before_fork();
    for store in STORES.all() {
        store.acquire();
    }
}

/// Gives the locks back on either side of a fork.
///
/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy in the child.
pub(super) unsafe fn after_fork() {
    for store in STORES.all() {
        // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
        unsafe { store.release() };
    }
    // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
    // copy of.
    unsafe { STORES.after_fork() };
}
