//! Walking a shared pool, resetting it, and its end: the caller has it to itself.
//!
//! ```text
//!   settle   all magazines into the store's sets, once, before the first step
//!   step     the lock; the next slot that is in no set; the lock back; the user's code
//!   end      what is left is dropped, the slots taken back, the store left to the next pool
//! ```
//!
//! The lock is not held while code of the user's runs: it may take its time, panic, or use
//! another pool. Nobody else can use this one meanwhile, for it is borrowed alone.
//!
//! A destructor that panics stops neither a reset nor a drop: what is left to do hangs on
//! values that are dropped on the way out ([`Ending`], and `Remaining` in the drop).

use core::mem;
use core::ptr::NonNull;

use super::super::store::Walk;
use super::super::{Reset, checked};
use super::SharedPool;
use crate::unwinding;

impl<T> SharedPool<T> {
    /// Calls `visit` with every live object, in order of their addresses.
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
            // SAFETY: a live object, and the pool is borrowed alone.
            visit(unsafe { object.as_mut() });
        }
    }

    /// The next live object.
    fn next_live(&mut self, walk: &mut Walk) -> Option<NonNull<T>> {
        let settled = walk.has_begun();
        let store = if settled { self.slots.store.made()? } else { self.slots.settle()? };
        let store = store.lock();
        let (segment, slot) = store.next_out(walk)?;
        NonNull::new(store.slot(segment, slot).cast())
    }

    /// Drops what is live, in order of addresses, and keeps as much memory as `how`
    /// says. Destructors that panic are treated as by [`Pool::reset`](crate::pool::Pool::reset).
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
        // What is left to do where a destructor panics.
        struct Remaining<'p, T>(&'p mut SharedPool<T>);
        impl<T> Drop for Remaining<'_, T> {
            fn drop(&mut self) {
                self.0.slots.store.end();
            }
        }
        Remaining(self).0.reset(Reset::FreeAll);
    }
}

/// A reset under way, which ends however a destructor does.
struct Ending<'p, T> {
    pool: &'p mut SharedPool<T>,
    walk: Walk,
    how: Reset,
}

impl<T> Ending<'_, T> {
    fn drop_live(&mut self) {
        while mem::needs_drop::<T>()
            && let Some(object) = self.pool.next_live(&mut self.walk)
        {
            unwinding::caught(|| {
                // SAFETY: a live object, which the walk has passed.
                unsafe { object.drop_in_place() };
            });
        }
    }
}

impl<T> Drop for Ending<'_, T> {
    fn drop(&mut self) {
        // What is left, if a destructor panicked.
        self.drop_live();
        self.pool.slots.take_all_back(self.how);
    }
}
