//! Tests of the shared registry with many real threads, in the orders that the machine chooses.

extern crate std;

use core::cell::Cell;
use std::boxed::Box;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use std::vec::Vec;

use super::*;

const MOST: usize = 64;
const THREADS: usize = 32;
const ACQUISITIONS: usize = if cfg!(miri) { 16 } else { 4096 };

#[derive(Default)]
struct Canary {
    is_alone: Cell<bool>,
    visits: Cell<u64>,
}

type Many = Shared<Canary, (), MOST>;
type ManySlot = &'static Slot<Canary>;

fn make(number: usize) -> Option<ManySlot> {
    Some(Box::leak(Box::new(Slot::new(number, (), Canary::default()))))
}

fn caches(count: usize) -> &'static Many {
    let registry: &'static Many = Box::leak(Box::new(Shared::new()));
    assert_eq!(registry.raise(count, make), count);
    registry
}

fn visit(canary: &Canary, random: &mut u64) {
    assert!(!canary.is_alone.replace(true), "two hold one cache");
    canary.visits.set(canary.visits.get() + 1);
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    if random.is_multiple_of(16) {
        thread::yield_now();
    }
    assert!(canary.is_alone.replace(false), "somebody else was here");
}

fn storm(registry: &'static Many, begin: &Barrier) -> BTreeSet<u16> {
    let seen = Mutex::new(BTreeSet::new());
    thread::scope(|scope| {
        for number in 0..THREADS {
            let seen = &seen;
            scope.spawn(move || {
                let mut mine = BTreeSet::new();
                let mut current = registry.assign();
                let mut random = number as u64 + 1;
                begin.wait();
                for _ in 0..ACQUISITIONS {
                    let held = loop {
                        // On a busy machine, a waiter may give up.
                        if let Some(held) = registry.acquire(current) {
                            break held;
                        }
                    };
                    current = held.slot();
                    mine.insert(current.number);
                    visit(&held, &mut random);
                }
                seen.lock().unwrap().extend(mine);
            });
        }
    });
    seen.into_inner().unwrap()
}

fn visits(registry: &'static Many) -> u64 {
    registry
        .all()
        .map(|slot| {
            assert!(slot.try_lock(), "a lock was not given back");
            // SAFETY: just locked.
            let visits = unsafe { slot.value() }.visits.get();
            // SAFETY: just locked.
            unsafe { slot.unlock() };
            visits
        })
        .sum()
}

#[test]
fn threads_see_as_many_caches_as_there_are_and_no_more() {
    let registry = caches(3);
    let begin = Barrier::new(THREADS);
    assert_eq!(storm(registry, &begin), (0..3).collect());
    assert_eq!(registry.raise(2, make), 3, "it is never lowered");
    assert_eq!(registry.raise(11, make), 11);
    assert_eq!(storm(registry, &begin), (0..11).collect());
    assert_eq!(registry.raise(MOST + 1, make), MOST, "there is no room for more");
    assert_eq!(visits(registry), 2 * (THREADS * ACQUISITIONS) as u64);
}

#[test]
fn caches_are_added_beside_threads_that_use_them() {
    let registry = caches(1);
    let begin = Barrier::new(THREADS + 1);
    thread::scope(|scope| {
        let storm = scope.spawn(|| storm(registry, &begin));
        begin.wait();
        for count in 2..=MOST {
            assert_eq!(registry.raise(count, make), count);
            thread::yield_now();
        }
        let seen = storm.join().unwrap();
        assert!(seen.iter().all(|&number| usize::from(number) < MOST), "{seen:?}");
    });
    assert_eq!(visits(registry), (THREADS * ACQUISITIONS) as u64);
}

#[test]
fn where_there_is_no_memory_there_are_fewer() {
    let registry: Many = Shared::new();
    assert_eq!(registry.raise(8, |number| if number < 5 { make(number) } else { None }), 5);
    assert_eq!(registry.raise(8, |_| None), 5);
    assert_eq!(registry.count(), 5);
    assert_eq!(registry.raise(8, make), 8);
}

#[test]
fn who_waited_in_vain_has_nothing_and_gives_nothing_back() {
    let registry = caches(1);
    let slot = registry.slot(0);
    let held = registry.acquire(slot).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let began = Instant::now();
            assert!(registry.acquire(slot).is_none());
            assert!(began.elapsed() >= Duration::from_nanos(PATIENCE_NS));
            assert!(registry.acquire_this(slot).is_none());
        });
    });
    assert!(!slot.try_lock(), "a thread that waited in vain gave a lock back that it never had");
    assert_eq!(slot.sleepers.load(Ordering::Relaxed), 0);
    drop(held);
    assert!(slot.try_lock());
    // SAFETY: just locked.
    unsafe { slot.unlock() };
}

#[test]
#[cfg_attr(miri, ignore = "there, a thread is not stopped in the middle of anything so short")]
fn who_sleeps_for_a_cache_is_woken() {
    let registry = caches(1);
    let slot = registry.slot(0);
    let rounds = if cfg!(miri) { 2 } else { 200 };
    let asleep = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..rounds {
                let held = registry.acquire(slot).expect("it is held for a moment only");
                asleep.fetch_add(u64::from(held.waited), Ordering::Relaxed);
                drop(held);
                thread::sleep(Duration::from_micros(50));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        while !is_over.load(Ordering::Relaxed) {
            let held = registry.acquire(slot).expect("it is held for a moment only");
            // This is long enough for the other thread to find the lock held, and to sleep.
            thread::sleep(Duration::from_micros(200));
            drop(held);
            thread::sleep(Duration::from_micros(100));
        }
    });
    assert!(asleep.load(Ordering::Relaxed) > 0, "nobody ever waited");
}

#[test]
fn what_was_contended_longest_is_reported() {
    let registry = caches(2);
    let slot = registry.slot(0);
    assert!(slot.try_lock());
    assert_eq!(slot.precedence.load(Ordering::Relaxed), 0);
    let other = registry.acquire(slot).expect("the other one is free");
    assert_eq!((other.slot().number, other.failed > 0, other.waited), (1, true, false));
    let since = slot.precedence.load(Ordering::Relaxed);
    assert_ne!(since, 0, "a failed try says since when");
    slot.note_failure();
    assert_eq!(slot.precedence.load(Ordering::Relaxed), since, "the first one does");
    // SAFETY: locked above.
    unsafe { slot.unlock() };
    let numbers: Vec<u16> = (0..4).map(|_| registry.assign().number).collect();
    assert_eq!(numbers, [0, 1, 0, 1], "threads that come get each in turn");
    assert!(slot.try_lock());
    assert_eq!(slot.precedence.load(Ordering::Relaxed), 0, "a try that succeeds ends it");
}
