//! The futex mutex.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};

use super::atomic::{AtomicU32, AtomicUsize, Ordering};
use crate::os;

/// The thread that holds every lock across a fork, or 0. Fork handlers of
/// others run in it meanwhile, and they may allocate.
static HOLDER_OF_ALL: AtomicUsize = AtomicUsize::new(0);

/// Says that the calling thread holds every lock, so that it need not wait for
/// one that it has.
pub(crate) fn hold_all() {
    HOLDER_OF_ALL.store(os::thread_token(), Ordering::Relaxed);
}

/// Ends [`hold_all`], before the first lock is given back.
pub(crate) fn hold_all_no_more() {
    HOLDER_OF_ALL.store(0, Ordering::Relaxed);
}

/// Whether the calling thread holds every lock, or counts as if it did.
pub(crate) fn holds_all() -> bool {
    let holder = HOLDER_OF_ALL.load(Ordering::Relaxed);
    holder != 0 && holder == os::thread_token()
}

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// How often a waiter looks again before it sleeps.
const SPINS: u32 = 60;

/// A mutual-exclusion lock around `T`.
pub(crate) struct Lock<T> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands out one exclusive reference at a time, so sharing it
// moves `T` between threads and never shares it.
unsafe impl<T: Send> Sync for Lock<T> {}
// SAFETY: owning the lock is owning the value.
unsafe impl<T: Send> Send for Lock<T> {}

/// The right to the value; gives the lock back when dropped.
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// False where the thread held the lock already, across a fork.
    gives_back: bool,
}

impl<T> Lock<T> {
    /// A free lock around `value`.
    pub(crate) const fn new(value: T) -> Self {
        Self { state: AtomicU32::new(FREE), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock.
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        Guard { lock: self, gives_back: self.acquire() }
    }

    /// Takes the lock if it is free.
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.state
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .ok()
            .map(|_| Guard { lock: self, gives_back: true })
    }

    /// Takes the lock, if it can be had within some milliseconds: for whoever may have
    /// interrupted its holder.
    pub(crate) fn lock_soon(&self, milliseconds: u64) -> Option<Guard<'_, T>> {
        let until = os::now_ns() + milliseconds * 1_000_000;
        loop {
            if let Some(guard) = self.try_lock() {
                return Some(guard);
            }
            if os::now_ns() > until {
                return None;
            }
            os::yield_now();
        }
    }

    /// Takes the lock without a guard. `fork` handlers need this: the lock is
    /// taken before the fork and given back after it, on both sides. False
    /// where the thread holds it already, and must not give it back.
    pub(crate) fn acquire(&self) -> bool {
        self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
            || self.acquire_contended()
    }

    #[cold]
    fn acquire_contended(&self) -> bool {
        if holds_all() {
            return false;
        }
        for _ in 0..SPINS {
            if self.state.load(Ordering::Relaxed) == FREE
                && self
                    .state
                    .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return true;
            }
            core::hint::spin_loop();
        }
        while self.state.swap(CONTENDED, Ordering::Acquire) != FREE {
            os::futex_wait(&self.state, CONTENDED);
        }
        true
    }

    /// Gives the lock back.
    ///
    /// # Safety
    ///
    /// The caller holds the lock (through [`Lock::acquire`], not a guard), or
    /// is the only thread of a process that was forked while it was held.
    pub(crate) unsafe fn release(&self) {
        if self.state.swap(FREE, Ordering::Release) == CONTENDED {
            os::futex_wake_one(&self.state);
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: a guard exists only while the lock is held by this thread.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: a guard exists only while the lock is held by this thread,
        // and `&mut self` makes this the only reference through it.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        if self.gives_back {
            // SAFETY: a guard exists only while the lock is held by this thread.
            unsafe { self.lock.release() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    #[test]
    fn counts_from_many_threads_add_up() {
        let rounds = if cfg!(miri) { 50 } else { 20_000 };
        let lock = Lock::new(0u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        *lock.lock() += 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), 4 * rounds);
    }

    #[test]
    fn try_lock_refuses_while_held() {
        let lock = Lock::new(());
        let guard = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(guard);
        assert!(lock.try_lock().is_some());
    }

    #[test]
    fn a_thread_that_holds_every_lock_enters_and_does_not_give_back() {
        let lock = Lock::new(1);
        assert!(lock.acquire());
        hold_all();
        *lock.lock() += 1;
        assert!(!lock.acquire(), "a second time, and nothing to give back");
        std::thread::scope(|scope| {
            // Another thread is kept out all the same.
            scope.spawn(|| assert!(lock.try_lock().is_none()));
        });
        hold_all_no_more();
        assert!(lock.try_lock().is_none());
        // SAFETY: acquired above, without a guard.
        unsafe { lock.release() };
        assert_eq!(*lock.lock(), 2);
    }
}
