//! Tests of the shared registry under loom. Loom tries every order of two or three threads, and
//! every value that the memory model lets a load see.
//!
//! ```text
//!   slot    lock | canary: loom's cell, which two threads may not touch without an
//!                  order between them, and whose count shows each holder's visit
//! ```
//!
//! `ci/loom.sh` removes the orderings one by one and expects these tests to fail. Under loom a
//! waiter yields instead of sleeping. A test with its own futex shows that an unlock *does* miss a
//! sleeper in some orders, as the header of `shared` says. The sleeper gets the lock after its nap.

extern crate std;

use std::boxed::Box;
use std::vec::Vec;

use loom::cell::UnsafeCell;
use loom::sync::atomic::fence;
use loom::sync::{Arc, Mutex};
use loom::thread;

use super::*;

const MOST: usize = 4;

type Canary = UnsafeCell<usize>;
type Few = Shared<Canary, (), MOST>;
type FewSlot = &'static Slot<Canary>;

struct Row {
    registry: Few,
    made: Mutex<Vec<FewSlot>>,
}

impl Row {
    fn new(count: usize) -> Arc<Self> {
        let caches = Arc::new(Self { registry: Few::new(), made: Mutex::new(Vec::new()) });
        assert_eq!(caches.raise(count), count);
        caches
    }

    fn raise(&self, count: usize) -> usize {
        let mut made = self.made.lock().unwrap();
        self.registry.raise(count, |number| {
            let slot: FewSlot = Box::leak(Box::new(Slot::new(number, (), UnsafeCell::new(0))));
            made.push(slot);
            Some(slot)
        })
    }

    fn visit(&self, current: FewSlot) -> FewSlot {
        let held = self.registry.acquire(current).expect("with loom, waiting ends");
        touch(&held);
        held.slot()
    }

    fn end(&self, visits: usize) {
        let mut found = 0;
        for slot in self.made.lock().unwrap().drain(..) {
            assert!(slot.try_lock(), "a lock was not given back");
            // SAFETY: just locked.
            let canary = unsafe { slot.value() };
            found += canary.with(|count| {
                // SAFETY: all other threads have ended.
                unsafe { *count }
            });
            // SAFETY: made by `raise`, and no thread knows it any more.
            drop(unsafe { Box::from_raw(core::ptr::from_ref(slot).cast_mut()) });
        }
        assert_eq!(found, visits);
    }
}

fn touch(canary: &Canary) {
    canary.with_mut(|count| {
        // SAFETY: the caller holds the cache; loom checks that no other thread does.
        unsafe { *count += 1 };
    });
}

fn visitors(count: usize, begins: &'static [usize], each: usize) {
    loom::model(move || {
        let caches = Row::new(count);
        let visit = move |caches: &Row, begin: usize| {
            let mut current = caches.registry.slot(begin);
            for _ in 0..each {
                current = caches.visit(current);
            }
        };
        let others: Vec<_> = begins[1..]
            .iter()
            .map(|&begin| {
                let caches = Arc::clone(&caches);
                thread::spawn(move || visit(&caches, begin))
            })
            .collect();
        visit(&caches, begins[0]);
        for other in others {
            other.join().unwrap();
        }
        caches.end(each * begins.len());
    });
}

#[test]
fn loom_a_cache_has_one_holder_where_there_is_only_one() {
    visitors(1, &[0, 0], 2);
}

#[test]
fn loom_a_cache_has_one_holder_where_there_are_two() {
    visitors(2, &[0, 0], 2);
}

#[test]
fn loom_three_threads_share_two_caches() {
    visitors(2, &[0, 1, 0], 1);
}

#[test]
fn loom_raising_disturbs_nobody() {
    loom::model(|| {
        let caches = Row::new(1);
        let other = {
            let caches = Arc::clone(&caches);
            thread::spawn(move || {
                let current = caches.visit(caches.registry.slot(0));
                caches.visit(current);
            })
        };
        let mine = caches.visit(caches.registry.slot(0));
        assert_eq!(caches.raise(2), 2);
        caches.visit(mine);
        other.join().unwrap();
        assert_eq!(caches.registry.count(), 2);
        caches.visit(caches.registry.slot(1));
        caches.end(5);
    });
}

fn look(registry: &Few) -> usize {
    let seen = Seen { registry, count: registry.count(), failed: core::cell::Cell::new(0) };
    let count = seen.count();
    for cache in 0..count {
        assert_eq!(usize::from(registry.slot(cache).number), cache);
        // SAFETY: only reads the value with which the slot was made.
        let canary = unsafe { registry.slot(cache).value() };
        canary.with(|_| {});
    }
    for index in 0..seen.strides() {
        let stride = seen.stride(index);
        assert!((1..MOST).contains(&stride), "a stride that is not there yet");
        if count == MOST {
            assert!(stride % 2 == 1, "a stride of fewer caches");
        }
    }
    count
}

#[test]
fn loom_a_reader_sees_all_that_k_promises() {
    // From 3 caches (strides 1, 2) to 4 (strides 1, 3); and from 1 (stride 1).
    for before in [1, 3] {
        loom::model(move || {
            let caches = Row::new(before);
            let reader = {
                let caches = Arc::clone(&caches);
                thread::spawn(move || {
                    let first = look(&caches.registry);
                    assert!(look(&caches.registry) >= first, "K was lowered");
                })
            };
            assert_eq!(caches.raise(MOST), MOST);
            reader.join().unwrap();
            assert_eq!(look(&caches.registry), MOST);
            caches.end(0);
        });
    }
}

/// A futex. A sleep ends by a wake, or by [`Futex::end`] when no wake will follow.
struct Futex(Mutex<Sleep>);

#[derive(Default)]
struct Sleep {
    sleeps: bool,
    woken: bool,
    over: bool,
}

impl Futex {
    fn wait(&self, word: &AtomicU32, value: u32) -> bool {
        let mut sleep = self.0.lock().unwrap();
        if word.load(Ordering::Relaxed) != value {
            return false;
        }
        sleep.sleeps = true;
        loop {
            drop(sleep);
            thread::yield_now();
            sleep = self.0.lock().unwrap();
            if sleep.woken || sleep.over {
                return !sleep.woken;
            }
        }
    }

    fn wake_one(&self) {
        let mut sleep = self.0.lock().unwrap();
        sleep.woken = sleep.sleeps;
    }

    fn end(&self) {
        self.0.lock().unwrap().over = true;
    }
}

/// Returns the number of orders in which the unlock missed the sleeper. `ordered`: in each thread,
/// a fence orders the store before the load.
fn missed(ordered: bool) -> usize {
    let missed = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let in_all = std::sync::Arc::clone(&missed);
    loom::model(move || {
        let caches = Row::new(1);
        let futex = Arc::new(Futex(Mutex::new(Sleep::default())));
        let slot = caches.registry.slot(0);
        assert!(slot.try_lock());
        let waiter = {
            let (futex, missed) = (Arc::clone(&futex), std::sync::Arc::clone(&missed));
            thread::spawn(move || {
                slot.sleepers.fetch_add(1, Ordering::Relaxed);
                if ordered {
                    fence(Ordering::SeqCst);
                }
                while !slot.try_lock() {
                    if futex.wait(&slot.state, HELD) {
                        missed.fetch_add(1, Ordering::Relaxed);
                    }
                }
                slot.sleepers.fetch_sub(1, Ordering::Relaxed);
                // SAFETY: just locked.
                touch(unsafe { slot.value() });
                // SAFETY: just locked.
                let _nobody = unsafe { slot.unlock_asks() };
            })
        };
        // SAFETY: locked above.
        touch(unsafe { slot.value() });
        let asks = if ordered {
            slot.state.store(FREE, Ordering::Release);
            fence(Ordering::SeqCst);
            slot.sleepers.load(Ordering::Relaxed) != 0
        } else {
            // SAFETY: just locked.
            unsafe { slot.unlock_asks() }
        };
        if asks {
            futex.wake_one();
        }
        futex.end();
        waiter.join().unwrap();
        caches.end(2);
    });
    in_all.load(Ordering::Relaxed)
}

#[test]
fn loom_a_sleeper_that_is_missed_finds_the_lock_after_its_nap() {
    assert!(missed(false) > 0, "the nap is no longer needed");
}

#[test]
fn loom_with_an_order_no_sleeper_would_be_missed() {
    // But then each unlock would need a second locked instruction.
    assert_eq!(missed(true), 0);
}
