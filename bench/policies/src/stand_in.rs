//! K caches of next to nothing, and threads that work with them.
//!
//! ```text
//!   cache    lock | precedence | 3 lines of numbers             what an operation of an allocator touches
//!   thread   work 100 steps -> acquire -> a number in each line -> give back        and again
//! ```
//!
//! The lock is std's mutex: like the library's, one locked instruction for a try, some looks
//! and then a futex for who waits. So a policy meets here what it meets in the library: caches
//! that are held for some dozens of instructions, or for a time slice where a holder loses its
//! CPU. What it does not meet is the memory behind a cache.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Instant;

use policies::{Caches, Choice, Policy, Visitor, strides};

/// Each so many operations are timed: a look at the clock takes as long as one of them.
const TIMED: usize = 16;
/// Steps of a thread between two operations.
const WORK: usize = 100;

/// A line of 64 bytes.
#[derive(Default)]
#[repr(align(64))]
struct Line(u64);

type Lines = [Line; 3];

#[derive(Default)]
#[repr(align(128))]
struct Cache {
    lines: Mutex<Lines>,
    /// The clock at the first failed try since it was last locked; 0: none failed.
    precedence: AtomicUsize,
}

struct Row {
    caches: Vec<Cache>,
    strides: Vec<usize>,
    began: Instant,
}

impl Row {
    fn try_lock(&self, cache: usize) -> Option<MutexGuard<'_, Lines>> {
        let Cache { lines, precedence } = &self.caches[cache];
        let guard = match lines.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                if precedence.load(Ordering::Relaxed) == 0 {
                    let now = self.began.elapsed().as_nanos() as usize;
                    precedence.store(now.max(1), Ordering::Relaxed);
                }
                return None;
            }
        };
        precedence.store(0, Ordering::Relaxed);
        Some(guard)
    }

    /// Locks the thread's cache or another, which is then the thread's.
    fn acquire<P: Policy>(&self, current: &Cell<usize>) -> MutexGuard<'_, Lines> {
        if let Some(guard) = self.try_lock(current.get()) {
            return guard;
        }
        let seen = Seen { row: self, got: RefCell::new(None) };
        let choice = P::choose(&seen, current.get());
        let (Choice::Locked(cache) | Choice::Wait(cache)) = choice;
        current.set(cache);
        seen.got.into_inner().unwrap_or_else(|| {
            let guard = self.caches[cache].lines.lock().unwrap_or_else(PoisonError::into_inner);
            self.caches[cache].precedence.store(0, Ordering::Relaxed);
            guard
        })
    }
}

/// The caches as a policy sees them, and the one that it got.
struct Seen<'a> {
    row: &'a Row,
    got: RefCell<Option<MutexGuard<'a, Lines>>>,
}

impl Caches for Seen<'_> {
    fn count(&self) -> usize {
        self.row.caches.len()
    }

    fn strides(&self) -> usize {
        self.row.strides.len()
    }

    fn stride(&self, index: usize) -> usize {
        self.row.strides[index]
    }

    fn try_lock(&self, cache: usize) -> bool {
        let guard = self.row.try_lock(cache);
        let got = guard.is_some();
        *self.got.borrow_mut() = guard;
        got
    }

    fn precedence(&self, cache: usize) -> usize {
        self.row.caches[cache].precedence.load(Ordering::Relaxed)
    }
}

/// One run: so many threads, each with so many operations, over so many caches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) caches: usize,
    pub(crate) threads: usize,
    pub(crate) operations: usize,
}

/// Nanoseconds of an operation, waiting and lost CPUs included. An error if an operation got
/// lost: then a lock had two holders.
impl Visitor for Run {
    type Output = Result<f64, String>;

    fn visit<P: Policy>(self) -> Self::Output {
        let Self { caches, threads, operations } = self;
        let row = Row {
            caches: (0..caches).map(|_| Cache::default()).collect(),
            strides: strides(caches).collect(),
            began: Instant::now(),
        };
        let barrier = Barrier::new(threads);
        let inside = AtomicU64::new(0);
        thread::scope(|scope| {
            for number in 0..threads {
                let (row, barrier, inside) = (&row, &barrier, &inside);
                scope.spawn(move || {
                    let current = Cell::new(number % caches);
                    let mut ns = 0;
                    barrier.wait();
                    for operation in 0..operations {
                        for step in 0..WORK {
                            black_box(step);
                        }
                        let start = (operation % TIMED == 0).then(Instant::now);
                        let mut lines = row.acquire::<P>(&current);
                        for line in lines.iter_mut() {
                            line.0 += 1;
                        }
                        drop(lines);
                        ns += start.map_or(0, |start| start.elapsed().as_nanos() as u64);
                    }
                    inside.fetch_add(ns, Ordering::Relaxed);
                });
            }
        });
        let counted: u64 = row
            .caches
            .into_iter()
            .flat_map(|cache| cache.lines.into_inner().unwrap_or_else(PoisonError::into_inner))
            .map(|line| line.0)
            .sum();
        let expected = (3 * threads * operations) as u64;
        if counted != expected {
            return Err(format!("{counted} touches were counted instead of {expected}"));
        }
        let timed = threads * operations.div_ceil(TIMED);
        Ok(inside.into_inner() as f64 / timed as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policies::{ALL, with};

    #[test]
    fn no_operation_is_lost_under_any_policy() {
        for variant in ALL {
            for caches in [1, 2, 5] {
                let run = Run { caches, threads: 4, operations: 2000 };
                let ns = with(variant.name, run).unwrap();
                assert!(ns.is_ok_and(|ns| ns > 0.0), "{}, {caches} caches", variant.name);
            }
        }
    }
}
