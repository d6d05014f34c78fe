//! Shared pools with ending threads and forking processes, under each cache model.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use std::cell::RefCell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::{end_of_a_child, this_program};
use heapwright::arena::SharedArena;
use heapwright::pool::{SharedBoxed, SharedPool};

fn model() -> Option<String> {
    let options = std::env::var("HEAPWRIGHT").ok()?;
    Some(options.strip_prefix("cache=")?.to_owned())
}

#[test]
fn all_of_this_under_every_other_model() {
    if model().is_some() {
        return;
    }
    for model in ["shared:1", "shared:2", "percpu"] {
        let child = this_program().env("HEAPWRIGHT", format!("cache={model}")).output();
        let child = child.expect("the program starts");
        let said = String::from_utf8_lossy(&child.stdout);
        let errors = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success(), "cache={model}: {}\n{said}\n{errors}", child.status);
        assert!(said.contains(" 0 failed") && !said.contains(" 0 passed"), "{model}: {said}");
    }
}

/// Uses a pool and an arena before the first fork. (A fork that has begun would miss a first use.)
fn begin() {
    drop(SharedPool::new().boxed(1));
    SharedArena::new().alloc(1);
}

fn use_pool(pool: &SharedPool<[u64; 4]>) {
    let held: Vec<_> = (0..500).map(|n| pool.boxed([n; 4])).collect();
    assert!(held.iter().enumerate().all(|(n, object)| **object == [n as u64; 4]));
    drop(held);
    assert!(pool.len() < 1_000_000);
    pool.trim();
    let mut other: SharedPool<String> = SharedPool::new();
    let _left = other.create(String::from("dropped with the pool"));
    other.for_each(|text| text.push('!'));
}

#[test]
fn a_child_of_many_threads_uses_pools() {
    begin();
    static POOL: SharedPool<[u64; 4]> = SharedPool::new();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    use_pool(&POOL);
                }
            });
        }
        let ends: Vec<_> = (0..200).map(|_| end_of_a_child(|| use_pool(&POOL))).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(ends.iter().all(|&status| status == 0), "{ends:x?}");
    });
}

#[test]
fn threads_that_fork_at_the_same_time() {
    begin();
    static POOL: SharedPool<[u64; 4]> = SharedPool::new();
    let ends: Vec<i32> = thread::scope(|scope| {
        let forks = || (0..100).map(|_| end_of_a_child(|| drop(POOL.boxed([1; 4])))).max().unwrap();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(forks)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ends, [0; 4]);
}

/// The child finds all kept objects, and perhaps objects that the other threads held at the fork.
#[test]
fn a_child_finds_every_slot_of_magazines_that_were_shared() {
    // If magazines belong to threads, a fork cannot stop their changes: see `pool::fork`.
    if model().is_none_or(|model| model == "exclusive") {
        return;
    }
    begin();
    static POOL: SharedPool<[u64; 4]> = SharedPool::new();
    const THREADS: usize = 3;
    const KEPT: usize = 500;
    let kept: Vec<_> = (0..KEPT as u64).map(|n| POOL.boxed([n; 4])).collect();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let (mut held, mut round) = (Vec::new(), 0);
                while !stop.load(Ordering::Relaxed) {
                    // Some rounds make more objects than a magazine holds.
                    let most = 1 + round % 200;
                    round += 37;
                    held.extend((0..most).map(|n| POOL.boxed([n; 4])));
                    held.clear();
                }
            });
        }
        let life = || {
            let before = POOL.len();
            assert!((KEPT..=KEPT + THREADS * 200).contains(&before), "{before}");
            assert_eq!(POOL.stats().live, before);
            let more: Vec<_> = (0..2000).map(|n| POOL.boxed([n + 10_000; 4])).collect();
            assert_eq!(POOL.len(), before + more.len());
            let is = |n: u64| {
                move |(at, object): (usize, &SharedBoxed<'_, _>)| **object == [n + at as u64; 4]
            };
            assert!(more.iter().enumerate().all(is(10_000)), "each has a slot of its own");
            assert!(kept.iter().enumerate().all(is(0)), "and none of its parent's");
            drop(more);
            assert_eq!(POOL.len(), before);
            POOL.trim();
            assert_eq!(POOL.len(), before);
        };
        let ends: Vec<_> = (0..200).map(|_| end_of_a_child(life)).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(ends.iter().all(|&status| status == 0), "{ends:x?}");
    });
    assert_eq!(POOL.len(), KEPT);
}

#[test]
fn a_child_uses_an_arena_of_many_threads() {
    begin();
    let stop = AtomicBool::new(false);
    let arena = SharedArena::with_limit(64 << 20);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // Most of these are refused, under the lock.
                let _ = arena.try_alloc([0u8; 5000]);
            }
        });
        let life = || drop(arena.try_alloc([0u8; 100_000]));
        let ends: Vec<_> = (0..200).map(|_| end_of_a_child(life)).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(ends.iter().all(|&status| status == 0), "{ends:x?}");
    });
}

#[test]
fn threads_come_and_go_while_another_forks() {
    begin();
    static POOL: SharedPool<u64> = SharedPool::new();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                thread::spawn(|| drop(POOL.boxed(1))).join().unwrap();
            }
        });
        let ends: Vec<_> = (0..200).map(|_| end_of_a_child(|| drop(POOL.boxed(2)))).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(ends.iter().all(|&status| status == 0), "{ends:x?}");
    });
}

#[test]
fn destructors_of_thread_local_data_use_pools() {
    static POOL: SharedPool<u64> = SharedPool::new();
    struct Late(SharedBoxed<'static, u64>);
    impl Drop for Late {
        fn drop(&mut self) {
            assert_eq!(*self.0, 5);
            let more: Vec<_> = (0..300).map(|n| POOL.boxed(n)).collect();
            drop(more);
        }
    }
    thread_local!(static HELD: RefCell<Option<Late>> = const { RefCell::new(None) });
    for _ in 0..100 {
        thread::spawn(|| HELD.with(|held| *held.borrow_mut() = Some(Late(POOL.boxed(5)))))
            .join()
            .unwrap();
    }
    assert_eq!(POOL.len(), 0);
    assert!(POOL.stats().capacity <= 65_536, "{:?}", POOL.stats());
}

#[test]
fn more_threads_than_indices() {
    let threads = 4200;
    let pool: SharedPool<usize> = SharedPool::new();
    let all = Barrier::new(threads);
    thread::scope(|scope| {
        for n in 0..threads {
            let (pool, all) = (&pool, &all);
            let run = move || {
                let held = [pool.boxed(n), pool.boxed(n)];
                all.wait();
                assert!(*held[0] == n && *held[1] == n);
            };
            thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, run).unwrap();
        }
    });
    assert_eq!(pool.len(), 0);
}

#[test]
fn keys_of_a_preheated_pool_lead_to_their_objects() {
    for touch in [false, true] {
        let mut pool: SharedPool<u64> = SharedPool::new();
        assert!(pool.preheat(100_000, touch) && pool.stats().capacity >= 100_000);
        let keys: Vec<_> = (0..120_000u64).map(|n| pool.insert(n)).collect();
        let found = keys.iter().zip(0..).filter(|&(&key, n)| pool.get(key).as_deref() == Some(&n));
        assert_eq!(found.count(), keys.len());
        let distinct: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len(), "no key is there twice");
        pool.reset(heapwright::pool::Reset::FreeAll);
        assert!(keys.iter().all(|&key| pool.get(key).is_none()));
    }
}
