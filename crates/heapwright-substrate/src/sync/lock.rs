//! The futex mutex.
//!
//! A thread counts the locks that it holds or is about to take. If the count is not 0 when a call
//! begins, the caller is a signal handler that has interrupted another call of its thread. It must
//! not wait for the locks of that call: see [`is_interrupted`].
//!
//! A lock knows its holder, so no thread waits for itself: a handler gets no lock of its own thread
//! ([`Lock::try_lock`], [`Lock::lock_soon`]). If the handler must have the lock, the process ends
//! with a line.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};

use super::atomic::{AtomicU32, AtomicUsize, Ordering};
use crate::os;

/// The thread that called [`hold_all`], or 0.
static HOLDER_OF_ALL: AtomicUsize = AtomicUsize::new(0);

/// From now on, the calling thread passes held locks without waiting. It holds every lock (across a
/// fork, in which other fork handlers may allocate), or is about to end the process.
pub fn hold_all() {
    HOLDER_OF_ALL.store(os::thread_token(), Ordering::Relaxed);
}

/// Ends [`hold_all`]. Call this before the first lock is released.
pub fn hold_all_no_more() {
    HOLDER_OF_ALL.store(0, Ordering::Relaxed);
}

/// Whether the calling thread has called [`hold_all`].
#[inline]
pub fn holds_all() -> bool {
    let holder = HOLDER_OF_ALL.load(Ordering::Relaxed);
    holder != 0 && holder == os::thread_token()
}

/// Call this at the start of an operation. True: the caller is a signal handler which interrupted
/// another operation of its thread, and must not wait for a lock. (False after [`hold_all`].)
#[inline]
pub fn is_interrupted() -> bool {
    os::tls::locks() != 0 && !holds_all()
}

#[inline]
fn begin() {
    os::tls::set_locks(os::tls::locks() + 1);
}

/// The count may be 0: a forked child may release a lock that another thread held.
#[inline]
fn end() {
    os::tls::set_locks(os::tls::locks().saturating_sub(1));
}

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

const SPINS: u32 = 60;

/// After this many naps of a millisecond, an unknown holder counts as this thread, which a signal
/// interrupted as it took or released the lock. (A holder is usually known after two instructions.
/// The code counts naps, because a clock would advance while the process is stopped.)
const MOST_NAPS: u32 = 10_000;

/// Ends the process, because the calling thread waits for its own lock.
#[cold]
fn end_of_waiting() -> ! {
    os::write_stderr(
        b"heapwright: a signal handler called malloc, free or their kin, and would wait for ever for \
          such a call, which it interrupted: keep these calls out of signal handlers\n",
    );
    // A handler of SIGABRT may allocate.
    hold_all();
    os::abort()
}

/// A mutual-exclusion lock around `T`.
pub struct Lock<T> {
    state: AtomicU32,
    /// The token of the thread that holds the lock. 0: none, or it takes or releases the lock now.
    holder: AtomicUsize,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands out one exclusive reference at a time, so sharing it moves `T` between
// threads and never shares it.
unsafe impl<T: Send> Sync for Lock<T> {}
// SAFETY: the owner of the lock owns the value.
unsafe impl<T: Send> Send for Lock<T> {}

/// The right to the value; a drop releases the lock.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// False if the thread held the lock already, across a fork.
    gives_back: bool,
}

impl<T> Lock<T> {
    /// A free lock around `value`.
    pub const fn new(value: T) -> Self {
        Self {
            state: AtomicU32::new(FREE),
            holder: AtomicUsize::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the lock.
    pub fn lock(&self) -> Guard<'_, T> {
        Guard { lock: self, gives_back: self.acquire() }
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        begin();
        if !self.try_acquire() {
            end();
            return None;
        }
        Some(Guard { lock: self, gives_back: true })
    }

    /// [`Lock::lock_within`] 200 ms, for callers that may be signal handlers.
    pub fn lock_soon(&self) -> Option<Guard<'_, T>> {
        self.lock_within(200)
    }

    /// Takes the lock if it is free within some milliseconds.
    pub fn lock_within(&self, milliseconds: u64) -> Option<Guard<'_, T>> {
        let until = os::now_ns() + milliseconds * 1_000_000;
        loop {
            if let Some(guard) = self.try_lock() {
                return Some(guard);
            }
            if self.is_mine() || os::now_ns() > until {
                return None;
            }
            os::yield_now();
        }
    }

    /// Takes the lock without a guard, for `fork` handlers. They release it on both sides of the
    /// fork. False: the thread holds the lock already ([`hold_all`]), and must not release it.
    pub fn acquire(&self) -> bool {
        begin();
        let acquired = self.try_acquire() || self.acquire_contended();
        if !acquired {
            end();
        }
        acquired
    }

    fn try_acquire(&self) -> bool {
        let order = Ordering::Acquire;
        let acquired = self.state.compare_exchange(FREE, HELD, order, Ordering::Relaxed).is_ok();
        if acquired {
            self.holder.store(os::thread_token(), Ordering::Relaxed);
        }
        acquired
    }

    /// Whether the calling thread holds the lock. (Only this thread writes its token.)
    fn is_mine(&self) -> bool {
        self.holder.load(Ordering::Relaxed) == os::thread_token()
    }

    /// Waits while the holder is not known. If the calling thread is the holder, the process ends.
    fn await_holder(&self) {
        let mut polls = 0;
        loop {
            let state = self.state.load(Ordering::Relaxed);
            match self.holder.load(Ordering::Relaxed) {
                _ if state == FREE => return,
                0 => {}
                holder if holder == os::thread_token() => end_of_waiting(),
                _ => return,
            }
            polls += 1;
            if polls <= SPINS {
                os::yield_now();
            } else if polls - SPINS <= MOST_NAPS {
                // A holder of a lower priority can run meanwhile.
                os::futex_wait_for(&self.state, state, 1_000_000);
            } else {
                end_of_waiting();
            }
        }
    }

    #[cold]
    fn acquire_contended(&self) -> bool {
        if holds_all() {
            return false;
        }
        // (The count includes this call.)
        let may_wait_for_itself = os::tls::locks() > 1;
        if may_wait_for_itself {
            self.await_holder();
        }
        for _ in 0..SPINS {
            if self.state.load(Ordering::Relaxed) == FREE && self.try_acquire() {
                return true;
            }
            core::hint::spin_loop();
        }
        while self.state.swap(CONTENDED, Ordering::Acquire) != FREE {
            os::futex_wait(&self.state, CONTENDED);
        }
        self.holder.store(os::thread_token(), Ordering::Relaxed);
        true
    }

    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// The caller holds the lock through [`Lock::acquire`], or is the only thread of a process that
    /// was forked while it was held.
    pub unsafe fn release(&self) {
        self.holder.store(0, Ordering::Relaxed);
        if self.state.swap(FREE, Ordering::Release) == CONTENDED {
            os::futex_wake_one(&self.state);
        }
        end();
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
        // SAFETY: this thread holds the lock, and `&mut self` makes this the only reference.
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

    /// A signal handler would wait in vain for code of its own thread.
    #[test]
    fn a_thread_does_not_wait_for_itself() {
        let lock = Lock::new(());
        let _guard = lock.lock();
        let began = os::now_ns();
        assert!(lock.lock_within(60_000).is_none() && os::now_ns() - began < 30_000_000_000);
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(!lock.is_mine() && lock.lock_within(1).is_none()));
        });
    }

    #[test]
    fn a_thread_counts_its_locks() {
        let (one, other) = (Lock::new(()), Lock::new(()));
        assert!(!is_interrupted());
        let guard = one.lock();
        assert!(is_interrupted() && one.try_lock().is_none());
        assert!(other.acquire());
        drop(guard);
        assert!(is_interrupted());
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(!is_interrupted() && other.try_lock().is_none()));
        });
        // SAFETY: acquired above, without a guard.
        unsafe { other.release() };
        assert!(!is_interrupted());
    }

    #[test]
    fn a_thread_that_holds_every_lock_enters_and_does_not_give_back() {
        let lock = Lock::new(1);
        assert!(lock.acquire());
        hold_all();
        assert!(!is_interrupted(), "it need not wait for what it has");
        *lock.lock() += 1;
        assert!(!lock.acquire(), "a second time, and nothing to give back");
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(lock.try_lock().is_none()));
        });
        hold_all_no_more();
        assert!(lock.try_lock().is_none());
        // SAFETY: acquired above, without a guard.
        unsafe { lock.release() };
        assert_eq!(*lock.lock(), 2);
    }
}
