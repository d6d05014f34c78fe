//! The heap profile of pools, arenas and collected heaps: its estimates against the truth.
//!
//! All cases are one test, because a process has one profile.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use common::in_a_child;
use common::profiled::Written;
use heapwright::arena::{Arena, SharedArena};
use heapwright::gc::LEAF;
use heapwright::gc::raw::{Heap, Options, Runtime};
use heapwright::pool::{Pool, RawPool, Reset, SharedPool};
use heapwright::profile;
use heapwright_record::debug::Memory;
use std::alloc::Layout;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// This is four units, so a run of one unit is a sample in about one case of five.
const PERIOD: usize = 256 << 10;

type Object = [u64; 64];

fn live() -> u64 {
    Written::now().checked.bytes
}

fn is_all(memory: Memory) {
    let now = Written::now();
    assert!(now.checked.bytes > 0);
    assert!(now.sites.iter().all(|site| site.live_samples == 0 || site.memory == memory));
}

fn pools() -> Vec<Pool<Object>> {
    let grown = |number: usize| {
        let pool = Pool::new();
        (0..120 << (number % 6)).for_each(|_| _ = pool.create([1; 64]));
        pool
    };
    (0..300).map(grown).collect()
}

fn reserved(pools: &mut [Pool<Object>]) -> usize {
    pools.iter_mut().map(|pool| pool.stats().reserved_bytes).sum()
}

fn pools_come_and_go() {
    let mut made = pools();
    let bytes = reserved(&mut made);
    assert!(bytes > 100 << 20, "{bytes}");
    Written::now().is_about(bytes);
    assert!(Written::now().sum(|site| site.live_samples) > 100, "there are many samples");
    is_all(Memory::Pool);

    // Pools give memory back in three ways, and in another thread.
    made.drain(..100);
    Written::now().is_about(reserved(&mut made));
    made[..50].iter_mut().for_each(|pool| pool.reset(Reset::FreeAll));
    Written::now().is_about(reserved(&mut made));
    for pool in &mut made[50..100] {
        pool.reset(Reset::RetainCapacity);
        pool.trim();
        assert_eq!(pool.stats().reserved_bytes, 0);
    }
    Written::now().is_about(reserved(&mut made));
    thread::spawn(move || drop(made)).join().unwrap();
    assert_eq!(live(), 0);

    // A large pool with a limit is one piece. It is much larger than the period, so its estimate is
    // exact.
    let mut raw = RawPool::builder(Layout::new::<Object>()).limit(64 << 10).build();
    assert!(!raw.alloc().is_null());
    Written::now().is_about(raw.stats().reserved_bytes);
    drop(raw);
    assert_eq!(live(), 0);
}

fn shared_pools_come_and_go() {
    let shared: Vec<SharedPool<Object>> = (0..100).map(|_| SharedPool::new()).collect();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for pool in &shared {
                    (0..300).for_each(|_| _ = pool.create([2; 64]));
                }
            });
        }
    });
    Written::now().is_about(shared.iter().map(|pool| pool.stats().reserved_bytes).sum());
    drop(shared);
    assert_eq!(live(), 0);
}

fn arenas_come_and_go() {
    let filled = |number: usize| {
        let arena = Arena::new();
        (0..10 << (number % 8)).for_each(|_| _ = arena.alloc([0u64; 500]));
        arena
    };
    let reserved = |arenas: &[Arena]| arenas.iter().map(Arena::reserved_bytes).sum();
    let mut arenas: Vec<Arena> = (0..200).map(filled).collect();
    Written::now().is_about(reserved(&arenas));
    is_all(Memory::Arena);
    for arena in &mut arenas[..100] {
        arena.reset();
        assert!(arena.trim() > 0);
    }
    Written::now().is_about(reserved(&arenas));
    drop(arenas);
    assert_eq!(live(), 0);

    let shared: Vec<SharedArena> = (0..100).map(|_| SharedArena::new()).collect();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for arena in &shared {
                    (0..200).for_each(|_| _ = arena.alloc([0u64; 300]));
                }
            });
        }
    });
    Written::now().is_about(shared.iter().map(SharedArena::reserved_bytes).sum());
    thread::spawn(move || drop(shared)).join().unwrap();
    assert_eq!(live(), 0);
}

fn collected_heaps_come_and_go() {
    let heap = Heap::new(Options::new(), Runtime::new()).unwrap();
    let pages = || {
        let now = heap.statistics();
        (now.in_use_bytes + now.empty_bytes + now.large_bytes) as usize
    };
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mutator = heap.attach().unwrap();
                mutator.defer();
                for number in 0..20_000 {
                    let size = if number % 100 == 0 { 100_000 } else { 500 };
                    // SAFETY: no object is in use.
                    assert!(!unsafe { mutator.alloc(size, LEAF) }.is_null());
                }
                mutator.resume();
                // SAFETY: no object is in use.
                unsafe { mutator.detach() };
            });
        }
    });
    assert!(pages() > 40 << 20, "{}", pages());
    Written::now().is_about(pages());
    is_all(Memory::Collected);

    // A collection gives the memory of large dead objects back. A trim gives empty pages back.
    let mutator = heap.attach().unwrap();
    // SAFETY: no object is in use.
    unsafe { mutator.collect() };
    // SAFETY: no object is in use.
    unsafe { mutator.detach() };
    Written::now().is_about(pages());
    heap.trim();
    Written::now().is_about(pages());
    drop(heap);
    assert_eq!(live(), 0);
}

/// Forks while other threads take runs and give them back. The children do so too.
fn forks_come_between() {
    let over = AtomicBool::new(false);
    let kept = pools();
    let shared = SharedPool::<Object>::new();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let arena = SharedArena::new();
                    (0..100).for_each(|_| _ = arena.alloc([0u64; 1000]));
                    let objects: Vec<_> = (0..1000).map(|_| shared.boxed([3; 64])).collect();
                    drop(objects);
                    shared.trim();
                }
            });
        }
        for _ in 0..8 {
            in_a_child(|| {
                let before = live();
                // SAFETY: only the child drops its copy; the parent has another one.
                drop(unsafe { std::ptr::read(&raw const kept) });
                assert!(live() < before / 2, "{before} bytes were live");
                let mut made = pools();
                let more = live();
                assert!(more > before / 2, "{more} bytes are live");
                made.iter_mut().for_each(|pool| pool.reset(Reset::FreeAll));
                assert!(live() < before / 2);
            });
        }
        over.store(true, Ordering::Relaxed);
    });
    drop((kept, shared));
    assert_eq!(live(), 0);
}

#[test]
fn estimates_of_runs_are_right_whichever_way_they_come_and_go() {
    // The profile does not see earlier runs, and their releases are no releases of samples.
    let before = pools();
    assert!(profile::begin(PERIOD));
    drop(before);
    assert_eq!(live(), 0);

    pools_come_and_go();
    shared_pools_come_and_go();
    arenas_come_and_go();
    collected_heaps_come_and_go();
    forks_come_between();
    assert_eq!(Written::now().profile.lost, 0);

    // From now on no new run is a sample, but the profile sees the releases of live samples.
    let made = pools();
    profile::end();
    let then = live();
    let more = pools();
    assert_eq!(live(), then);
    drop(made);
    assert_eq!(live(), 0);
    drop(more);
}
