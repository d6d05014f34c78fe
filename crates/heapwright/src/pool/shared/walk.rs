//! Walks, resets and the end of a shared pool. The caller has the pool to itself.
//!
//! ```text
//!   settle   move all magazines' slots into the store's sets, once, before the first step
//!   step     take the lock, find the next slot that is in no set, release the lock, run the
//!            user's code
//!   end      drop the remaining objects, free their slots, leave the store to the next pool
//! ```
//!
//! The lock is not held while the user's code runs, because that code may be slow, panic, or use
//! another pool. No other thread can use this pool meanwhile, because it is borrowed mutably.
//!
//! After a panic in a destructor, the guards [`Ending`] and `Remaining` complete the reset or drop.

use core::mem;
use core::ptr::NonNull;

use super::super::store::Walk;
use super::super::{Reset, checked};
use super::SharedPool;
use crate::unwinding;

impl<T> SharedPool<T> {
    /// Calls `visit` with every live object, in address order. Takes time in proportion to the
    /// slots handed out.
    ///
    /// ```
    /// use heapwright::pool::SharedPool;
    /// let mut pool = SharedPool::new();
    /// let _two = [pool.create(1), pool.create(2)];
    /// let mut sum = 0;
    /// pool.for_each(|n| sum += *n);
    /// assert_eq!(sum, 3);
    /// ```
    pub fn for_each(&mut self, mut visit: impl FnMut(&mut T)) {
        let mut walk = Walk::default();
        while let Some(mut object) = self.next_live(&mut walk) {
            // SAFETY: the object is live, and the pool is borrowed mutably.
            visit(unsafe { object.as_mut() });
        }
    }

    fn next_live(&mut self, walk: &mut Walk) -> Option<NonNull<T>> {
        self.next_slot(walk, false)
    }

    /// Returns the next live object. If `ends`, its key becomes stale.
    fn next_slot(&mut self, walk: &mut Walk, ends: bool) -> Option<NonNull<T>> {
        let settled = walk.has_begun();
        let store = if settled { self.slots.store.made()? } else { self.slots.settle()? };
        let store = store.lock();
        let (segment, slot) = store.next_out(walk)?;
        if ends && let Some(lease) = store.lease(segment, slot) {
            lease.end();
        }
        NonNull::new(store.slot(segment, slot).cast())
    }

    /// Drops all live objects in address order, and keeps as much memory as `how` says. All keys
    /// become stale for good. For panics see [`Pool::reset`](crate::pool::Pool::reset).
    pub fn reset(&mut self, how: Reset) {
        let mut ending = Ending { pool: self, walk: Walk::default(), how };
        ending.drop_live();
        drop(ending);
        unwinding::surface();
    }
}

impl<T> Drop for SharedPool<T> {
    fn drop(&mut self) {
        if cfg!(feature = "checked")
            && let Some(store) = self.slots.settle()
        {
            checked::at_end(&store.lock());
        }
        struct Remaining<'p, T>(&'p mut SharedPool<T>);
        impl<T> Drop for Remaining<'_, T> {
            fn drop(&mut self) {
                self.0.slots.store.end();
            }
        }
        Remaining(self).0.reset(Reset::FreeAll);
    }
}

/// A reset in progress. Its drop completes the reset even if a destructor panics.
struct Ending<'p, T> {
    pool: &'p mut SharedPool<T>,
    walk: Walk,
    how: Reset,
}

impl<T> Ending<'_, T> {
    fn drop_live(&mut self) {
        let keyed = self.pool.slots.store.made().is_some_and(|store| store.lock().has_leases());
        while (mem::needs_drop::<T>() || keyed)
            && let Some(object) = self.pool.next_slot(&mut self.walk, keyed)
        {
            unwinding::caught(|| {
                // SAFETY: the object is live, and the walk does not return to it.
                unsafe { object.drop_in_place() };
            });
        }
    }
}

impl<T> Drop for Ending<'_, T> {
    fn drop(&mut self) {
        self.drop_live();
        self.pool.slots.take_all_back(self.how);
    }
}
