//! Desks: a small number for each thread that asks, passed on when it ends.
//!
//! ```text
//!   taken    word 0            word 1
//!            1 1 0 1 ......    0 0 ......      bit d: some thread sits at desk d
//!
//!   a thread asks:   the lowest free bit, once; the number stays in the thread
//!   a thread ends:   the bit is clear; the next thread finds the desk as it was left
//! ```
//!
//! Whoever has something per thread (the magazines of shared pools) keeps it in
//! an array by desk number. There is then nothing to do in each of them when a
//! thread ends, and there are never more than there were threads at a time. What
//! was left at a desk belongs to whoever sits there next: leaving *releases*, and
//! taking *acquires*, so the next thread sees all that the last one wrote. That is
//! the whole protocol; loom checks it.
//!
//! A thread keeps its number in its desk word, beside another small number: which of
//! the objects that threads share (`common`) it had last.
//!
//! ```text
//!   desk word    | shared number + 1, or 0 : 16 | desk + 1, or 0, or LEFT : 16 |
//! ```
//!
//! Where nothing is shared, the word is the desk's number and 1, and [`alone`] finds the
//! desk by one subtraction; where something is, what it says is no desk.
//!
//! Called by `places` (what pools keep a thread), `common` and `debug::seat`.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Desks; threads beyond so many at a time get none.
pub(crate) const DESKS: usize = if cfg!(miri) { 64 } else { 4096 };

/// Who sits where: `WORDS` times 64 desks.
pub(crate) struct Desks<const WORDS: usize> {
    taken: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Desks<WORDS> {
    /// All free.
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self { taken: [const { AtomicU64::new(0) }; WORDS] }
    }

    /// All free.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self { taken: core::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// Takes a desk that nobody sits at.
    pub(crate) fn take(&self) -> Option<usize> {
        for (at, word) in self.taken.iter().enumerate() {
            let mut taken = word.load(Ordering::Relaxed);
            while taken != u64::MAX {
                let bit = 1 << (!taken).trailing_zeros();
                // Acquire: the desk is as the last one left it.
                let before = word.fetch_or(bit, Ordering::Acquire);
                if before & bit == 0 {
                    return Some(at * 64 + bit.trailing_zeros() as usize);
                }
                taken = before;
            }
        }
        None
    }

    /// Leaves a desk that was taken.
    pub(crate) fn leave(&self, desk: usize) {
        // Release: the next one sees it as we leave it.
        self.taken[desk / 64].fetch_and(!(1 << (desk % 64)), Ordering::Release);
    }
}

#[cfg(not(loom))]
mod thread {
    use core::ffi::c_void;
    use core::ptr;

    use super::super::MOST;
    use super::{DESKS, Desks};
    use crate::os::{self, Exit, tls};
    use crate::sync::atomic::{AtomicU8, AtomicU32, Ordering};

    /// The lower half of the word of a thread that has left its desk.
    const LEFT: usize = HALF;
    const HALF: usize = 0xffff;
    const SHIFT: u32 = 16;

    const _: () = assert!(DESKS < LEFT && MOST < HALF);

    static ALL: Desks<{ DESKS / 64 }> = Desks::new();
    /// How many threads have sat at each desk.
    static SITTINGS: [AtomicU32; DESKS] = [const { AtomicU32::new(0) }; DESKS];

    /// A number that changes when another thread sits down at the desk.
    #[cfg(feature = "debug")]
    #[inline]
    pub(crate) fn sitting(desk: usize) -> u32 {
        SITTINGS[desk].load(Ordering::Relaxed)
    }

    /// The desk of the calling thread, if it took one; else a number that is none.
    #[cfg(any(test, feature = "debug"))]
    #[inline(always)]
    pub(crate) fn mine() -> usize {
        (tls::desk() & HALF).wrapping_sub(1)
    }

    /// The desk of the calling thread, if it took one and nothing is shared; else a
    /// number that is none.
    #[inline(always)]
    pub(crate) fn alone() -> usize {
        tls::desk().wrapping_sub(1)
    }

    /// The number of the shared object that the calling thread had last.
    #[inline(always)]
    pub(crate) fn shared() -> Option<usize> {
        (tls::desk() >> SHIFT).checked_sub(1)
    }

    /// Remembers a number of a shared object, which is below [`MOST`].
    pub(crate) fn set_shared(number: usize) {
        tls::set_desk(tls::desk() & HALF | (number + 1) << SHIFT);
    }

    /// Sets the lower half of the word.
    fn set(desk: usize) {
        tls::set_desk(tls::desk() & !HALF | desk);
    }

    /// Takes a desk for the calling thread, which has none. `None` where all are
    /// taken, or nobody would hear of the thread's end.
    #[cold]
    pub(crate) fn take() -> Option<usize> {
        // Once; where the system has no key to spare, it is not asked again. No lock,
        // for a fork would have to hold it: who comes while another thread asks has no
        // desk yet.
        const ASKING: u8 = 1;
        const WATCHED: u8 = 2;
        const UNWATCHED: u8 = 3;
        static STATE: AtomicU8 = AtomicU8::new(0);
        if tls::desk() & HALF == LEFT {
            // The thread is ending: nobody would hear of its end a second time.
            return None;
        }
        let first = STATE.compare_exchange(0, ASKING, Ordering::Acquire, Ordering::Acquire);
        match first {
            Ok(_) => {
                let watched = os::on_thread_exit(Exit::Desk, leave);
                STATE.store(if watched { WATCHED } else { UNWATCHED }, Ordering::Release);
                if !watched {
                    return None;
                }
            }
            Err(WATCHED) => {}
            Err(_) => return None,
        }
        let desk = ALL.take()?;
        let token = ptr::without_provenance_mut(desk + 1);
        // Before the system hears of it, which may allocate and come here again.
        SITTINGS[desk].fetch_add(1, Ordering::Relaxed);
        set(desk + 1);
        if !os::watch_this_thread(Exit::Desk, token) {
            set(0);
            ALL.leave(desk);
            return None;
        }
        Some(desk)
    }

    unsafe extern "C" fn leave(token: *mut c_void) {
        set(LEFT);
        ALL.leave(token.addr() - 1);
    }
}

#[cfg(all(not(loom), any(test, feature = "debug")))]
pub(crate) use thread::mine;
#[cfg(all(not(loom), feature = "debug"))]
pub(crate) use thread::sitting;
#[cfg(not(loom))]
pub(crate) use thread::{alone, set_shared, shared, take};

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    extern crate std;

    #[test]
    fn desks_are_taken_once_lowest_first() {
        let desks: Desks<2> = Desks::new();
        for desk in 0..128 {
            assert_eq!(desks.take(), Some(desk));
        }
        assert_eq!(desks.take(), None);
        desks.leave(100);
        desks.leave(7);
        assert_eq!((desks.take(), desks.take(), desks.take()), (Some(7), Some(100), None));
    }

    #[test]
    fn the_two_numbers_of_a_thread_do_not_touch_each_other() {
        std::thread::spawn(|| {
            assert_eq!((mine() < DESKS, shared()), (false, None));
            set_shared(1023);
            let desk = take();
            assert!(desk.is_some_and(|desk| desk < DESKS && mine() == desk));
            assert_eq!(shared(), Some(1023));
            assert!(alone() >= DESKS, "no desk, where something is shared");
            set_shared(0);
            assert_eq!((Some(mine()), shared()), (desk, Some(0)));
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

    /// Two desks with a magazine each, as a shared pool has them.
    struct Pool {
        desks: Desks<1>,
        magazines: [UnsafeCell<usize>; 2],
    }

    impl Pool {
        /// What a thread does: it sits down, takes and puts slots, and leaves.
        fn work(&self) {
            let desk = self.desks.take().expect("there are 64");
            self.magazines[desk].with_mut(|slots| {
                // SAFETY: the desk is ours alone; loom checks that it is.
                unsafe { *slots += 1 };
            });
            self.desks.leave(desk);
        }
    }

    fn model(threads: usize) {
        loom::model(move || {
            let pool = Arc::new(Pool {
                desks: Desks::new(),
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
            // Whoever destroys the pool finds every slot.
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
    fn loom_a_desk_is_one_threads_at_a_time() {
        model(2);
    }

    #[test]
    fn loom_a_desk_passed_on_is_as_it_was_left() {
        model(3);
    }
}
