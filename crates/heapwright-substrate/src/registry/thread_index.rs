//! Thread indices: small numbers of threads, reused when a thread ends.
//!
//! ```text
//!   taken    word 0            word 1
//!            1 1 0 1 ......    0 0 ......      bit i: a thread has index i
//!
//!   a thread's first use   takes the lowest free bit; the index stays in the thread
//!   a thread's end         clears the bit; the next thread inherits the index's objects
//! ```
//!
//! An owner that keeps an object for each thread (the magazines of shared pools) uses an array by
//! thread index. So the end of a thread needs no work in each owner. An index is released with
//! *release* order and taken with *acquire* order, so the next holder sees the last holder's
//! writes. A word of the thread has its index and the number of the shared object (`common`) that
//! the thread used last:
//!
//! ```text
//!   word    | shared number + 1, or 0 : 16 | index + 1, or 0, or ENDED : 16 |
//! ```
//!
//! If nothing is shared, [`exclusive`] finds the index by one subtraction. Otherwise that
//! subtraction gives no valid index. Called by `places` (the places of pools), `common`, `tallies`
//! and `debug::heap`.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Threads that can have an index at the same time; further threads get none.
pub const MOST_THREADS: usize = if cfg!(miri) { 64 } else { 4096 };

/// The taken indices, a bit each.
pub struct Indices<const WORDS: usize> {
    taken: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Indices<WORDS> {
    /// All free.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { taken: [const { AtomicU64::new(0) }; WORDS] }
    }

    /// All free.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { taken: core::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// Takes the lowest free index.
    pub fn take(&self) -> Option<usize> {
        for (at, word) in self.taken.iter().enumerate() {
            let mut taken = word.load(Ordering::Relaxed);
            while taken != u64::MAX {
                let bit = 1 << (!taken).trailing_zeros();
                // Acquire: the last holder's writes are visible.
                let before = word.fetch_or(bit, Ordering::Acquire);
                if before & bit == 0 {
                    return Some(at * 64 + bit.trailing_zeros() as usize);
                }
                taken = before;
            }
        }
        None
    }

    /// Releases a taken index.
    pub fn release(&self, index: usize) {
        // Release: the next holder sees this holder's writes.
        self.taken[index / 64].fetch_and(!(1 << (index % 64)), Ordering::Release);
    }
}

#[cfg(not(loom))]
mod thread {
    use core::ffi::c_void;
    use core::ptr;

    use super::super::MOST;
    use super::{Indices, MOST_THREADS};
    use crate::os::{self, Exit, tls};
    #[cfg(feature = "debug")]
    use crate::sync::atomic::AtomicPtr;
    use crate::sync::atomic::{AtomicU8, AtomicU32, Ordering};

    const ENDED: usize = HALF;
    const HALF: usize = 0xffff;
    const SHIFT: u32 = 16;

    const _: () = assert!(MOST_THREADS < ENDED && MOST < HALF);

    static ALL: Indices<{ MOST_THREADS / 64 }> = Indices::new();
    static HOLDERS: [AtomicU32; MOST_THREADS] = [const { AtomicU32::new(0) }; MOST_THREADS];

    /// A number that changes when another thread takes the index.
    #[cfg(feature = "debug")]
    #[inline]
    pub fn holder(index: usize) -> u32 {
        HOLDERS[index].load(Ordering::Relaxed)
    }

    #[cfg(feature = "debug")]
    static WHEN_RELEASED: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

    /// Sets the one function that a thread with an index calls at its end, with the index.
    #[cfg(feature = "debug")]
    pub fn when_released(call: fn(usize)) {
        WHEN_RELEASED.store(call as *mut (), Ordering::Release);
    }

    /// The index of the calling thread; an invalid number if it has none.
    #[cfg(any(test, feature = "debug"))]
    #[inline(always)]
    pub fn mine() -> usize {
        (tls::thread_index() & HALF).wrapping_sub(1)
    }

    /// The calling thread's index; an invalid number if it has none, or if objects are shared.
    #[inline(always)]
    pub fn exclusive() -> usize {
        tls::thread_index().wrapping_sub(1)
    }

    /// The number of the shared object that the calling thread used last.
    #[inline(always)]
    pub fn shared() -> Option<usize> {
        (tls::thread_index() >> SHIFT).checked_sub(1)
    }

    /// Remembers a number of a shared object, which is below [`MOST`].
    #[inline]
    pub fn set_shared(number: usize) {
        tls::set_thread_index(tls::thread_index() & HALF | (number + 1) << SHIFT);
    }

    fn set(index: usize) {
        tls::set_thread_index(tls::thread_index() & !HALF | index);
    }

    /// Takes an index for a thread without one. `None`: none is left, or the end is not reported.
    #[cold]
    pub fn take() -> Option<usize> {
        // No lock, which a fork would have to hold: while one thread registers, others get none.
        const ASKING: u8 = 1;
        const WATCHED: u8 = 2;
        const UNWATCHED: u8 = 3;
        static STATE: AtomicU8 = AtomicU8::new(0);
        if tls::thread_index() & HALF == ENDED {
            // The end of this thread would not be reported a second time.
            return None;
        }
        let first = STATE.compare_exchange(0, ASKING, Ordering::Acquire, Ordering::Acquire);
        match first {
            Ok(_) => {
                let watched = os::on_thread_exit(Exit::ThreadIndex, release);
                STATE.store(if watched { WATCHED } else { UNWATCHED }, Ordering::Release);
                if !watched {
                    return None;
                }
            }
            Err(WATCHED) => {}
            Err(_) => return None,
        }
        let index = ALL.take()?;
        let token = ptr::without_provenance_mut(index + 1);
        // The index is set first, because `watch_this_thread` may allocate and call this again.
        HOLDERS[index].fetch_add(1, Ordering::Relaxed);
        set(index + 1);
        if !os::watch_this_thread(Exit::ThreadIndex, token) {
            set(0);
            ALL.release(index);
            return None;
        }
        Some(index)
    }

    unsafe extern "C" fn release(token: *mut c_void) {
        set(ENDED);
        let index = token.addr() - 1;
        #[cfg(feature = "debug")]
        {
            let call = WHEN_RELEASED.load(Ordering::Acquire);
            if !call.is_null() {
                // SAFETY: not null, so it is the function that was stored.
                let call: fn(usize) = unsafe { core::mem::transmute(call) };
                call(index);
            }
        }
        ALL.release(index);
    }
}

#[cfg(all(not(loom), any(test, feature = "debug")))]
pub use thread::mine;
#[cfg(not(loom))]
pub use thread::{exclusive, set_shared, shared, take};
#[cfg(all(not(loom), feature = "debug"))]
pub use thread::{holder, when_released};

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    extern crate std;

    #[test]
    fn indices_are_taken_once_lowest_first() {
        let indices: Indices<2> = Indices::new();
        for index in 0..128 {
            assert_eq!(indices.take(), Some(index));
        }
        assert_eq!(indices.take(), None);
        indices.release(100);
        indices.release(7);
        assert_eq!((indices.take(), indices.take(), indices.take()), (Some(7), Some(100), None));
    }

    #[test]
    fn the_two_numbers_of_a_thread_do_not_touch_each_other() {
        std::thread::spawn(|| {
            assert_eq!((mine() < MOST_THREADS, shared()), (false, None));
            set_shared(1023);
            let index = take();
            assert!(index.is_some_and(|index| index < MOST_THREADS && mine() == index));
            assert_eq!(shared(), Some(1023));
            assert!(exclusive() >= MOST_THREADS, "no index, where something is shared");
            set_shared(0);
            assert_eq!((Some(mine()), shared()), (index, Some(0)));
        })
        .join()
        .unwrap();
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    struct Pool {
        indices: Indices<1>,
        magazines: [UnsafeCell<usize>; 2],
    }

    impl Pool {
        fn work(&self) {
            let index = self.indices.take().expect("there are 64");
            self.magazines[index].with_mut(|slots| {
                // SAFETY: this thread alone has the index; loom checks that.
                unsafe { *slots += 1 };
            });
            self.indices.release(index);
        }
    }

    fn model(threads: usize) {
        loom::model(move || {
            let pool = Arc::new(Pool {
                indices: Indices::new(),
                magazines: [UnsafeCell::new(0), UnsafeCell::new(0)],
            });
            let others: [_; 1] = core::array::from_fn(|_| {
                let pool = Arc::clone(&pool);
                thread::spawn(move || (1..threads).for_each(|_| pool.work()))
            });
            pool.work();
            for other in others {
                other.join().unwrap();
            }
            let found: usize = pool
                .magazines
                .iter()
                .map(|m| {
                    // SAFETY: all threads have ended.
                    m.with(|slots| unsafe { *slots })
                })
                .sum();
            assert_eq!(found, threads);
        });
    }

    #[test]
    fn loom_an_index_is_one_threads_at_a_time() {
        model(2);
    }

    #[test]
    fn loom_an_index_passed_on_is_as_it_was_left() {
        model(3);
    }
}
