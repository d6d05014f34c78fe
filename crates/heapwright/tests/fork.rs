//! Forks while other threads are inside the heap.
//!
//! Each child frees blocks that it inherited from its own thread and from others. Then it
//! allocates, uses a first-class heap and starts a thread. Some children fork again.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::{Owned, Random, in_a_child, stats};
use heapwright::heap::{self, Heap};

fn child(own: Vec<Owned>, others: Vec<Owned>, shared: *mut Heap, depth: u32) {
    let mut random = Random::new(u64::from(std::process::id()));
    own.into_iter().for_each(Owned::free);
    // The threads that made these blocks are not in this process.
    others.into_iter().for_each(Owned::free);
    let mut blocks: Vec<Owned> = (0..300).map(|_| Owned::malloc(random.size())).collect();
    for _ in 0..200 {
        blocks.swap_remove(random.below(blocks.len())).free();
    }
    // SAFETY: the heap exists.
    let block = unsafe { Heap::alloc(shared, 500, 16, false) };
    blocks.push(Owned::adopt(block, 500));
    let theirs = thread::spawn(|| (0..50).map(|n| Owned::malloc(n * 20)).collect::<Vec<_>>());
    blocks.extend(theirs.join().unwrap());
    heap::trim(0);
    assert!(heap::walk(&mut |_| true));
    let now = stats();
    assert_eq!(now.rss_parts(), now.rss);
    if depth > 0 {
        let half = blocks.split_off(blocks.len() / 2);
        in_a_child(move || child(half, Vec::new(), shared, depth - 1));
    }
    blocks.into_iter().for_each(Owned::free);
}

static MADE: Mutex<Vec<Owned>> = Mutex::new(Vec::new());

#[test]
fn children_of_a_busy_process_can_use_the_heap() {
    let shared = Heap::create();
    let stop = AtomicBool::new(false);
    let address = shared.expose_provenance();
    thread::scope(|scope| {
        for seed in 0..3 {
            let stop = &stop;
            scope.spawn(move || {
                let shared: *mut Heap = std::ptr::with_exposed_provenance_mut(address);
                let mut random = Random::new(seed);
                let mut blocks = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    match random.below(5) {
                        0..=2 => blocks.push(Owned::malloc(random.size())),
                        3 if !blocks.is_empty() => {
                            blocks.swap_remove(random.below(blocks.len())).free();
                        }
                        4 => {
                            // SAFETY: the heap exists.
                            let at = unsafe { Heap::alloc(shared, 300, 16, false) };
                            Owned::adopt(at, 300).free();
                        }
                        _ => {}
                    }
                    if blocks.len() > 400 {
                        let given = blocks.split_off(200);
                        *MADE.lock().unwrap() = given;
                        blocks.into_iter().for_each(Owned::free);
                        blocks = Vec::new();
                    }
                }
                blocks.into_iter().for_each(Owned::free);
            });
        }
        let mut random = Random::new(77);
        for round in 0..24 {
            let own: Vec<Owned> = (0..200).map(|_| Owned::malloc(random.size())).collect();
            let others = std::mem::take(&mut *MADE.lock().unwrap());
            let copies = |blocks: &[Owned]| blocks.iter().map(Owned::copy).collect::<Vec<_>>();
            let (theirs, theirs_too) = (copies(&own), copies(&others));
            in_a_child(move || child(theirs, theirs_too, shared, u32::from(round % 6 == 0)));
            own.into_iter().chain(others).for_each(Owned::free);
        }
        stop.store(true, Ordering::Relaxed);
    });
    MADE.lock().unwrap().drain(..).for_each(Owned::free);
    // SAFETY: no code uses the heap or its blocks afterwards.
    unsafe { Heap::destroy(shared) };
}
