//! No memory: every call returns null and sets `ENOMEM`, and freed memory is available again.
//!
//! The window is small. `chunk/tests.rs` of heapwright-substrate tests the system's refusals call
//! by call.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use common::{Owned, Random, SLAB_MAX, UNIT, pass_alone, stats};
use heapwright::heap::{self, Heap};

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn clear_errno() {
    // SAFETY: no preconditions.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the location of errno is valid for the thread's life.
    unsafe { *errno = 0 };
}

fn exhaust(mut next: impl FnMut() -> *mut u8, size: usize) -> Vec<Owned> {
    let mut blocks = Vec::new();
    loop {
        clear_errno();
        let at = next();
        if at.is_null() {
            return blocks;
        }
        blocks.push(Owned::adopt(at, size));
    }
}

fn every_size_is_refused_in_the_end_and_served_again() {
    Owned::malloc(1).free();
    let window = stats().window_bytes as usize;
    for round in 0..2 {
        for size in [1, 16, 100, 512, 1000, 5000, SLAB_MAX, SLAB_MAX + 1, UNIT + 1, 10 * UNIT] {
            let blocks = exhaust(|| heap::malloc(size), size);
            assert_eq!(errno(), libc::ENOMEM);
            // Nearly all of the window is in use, whatever happened before.
            let held: usize = blocks.iter().map(|block| block.size.max(16)).sum();
            let slack = 4 * size + window / 4 + (window / UNIT) * (UNIT % size.max(16));
            assert!(held + slack >= window, "round {round}: {held} of {window} in {size}s");
            assert!(
                heap::calloc(10 * size).is_null(),
                "round {round}, size {size}, {} blocks",
                blocks.len()
            );
            assert!(heap::malloc_aligned(window, 16).is_null());
            blocks.into_iter().for_each(Owned::free);
        }
    }
    assert_eq!(stats().live_blocks, 0);
}

fn a_realloc_that_fails_leaves_the_block_as_it_was() {
    let mut small = Owned::malloc(40);
    let mut medium = Owned::malloc(20_000);
    let mut large = Owned::malloc(3 * UNIT);
    let blocks = exhaust(|| heap::malloc(UNIT), UNIT);
    for block in [&mut small, &mut medium, &mut large] {
        clear_errno();
        assert!(!block.try_realloc(40 * UNIT));
        assert_eq!(errno(), libc::ENOMEM);
        assert!(!block.try_realloc(isize::MAX as usize));
    }
    blocks.into_iter().for_each(Owned::free);
    for block in [&mut small, &mut medium, &mut large] {
        block.realloc(12 * UNIT);
        block.realloc(10);
    }
    [small, medium, large].into_iter().for_each(Owned::free);
}

fn mixed_calls_go_on_at_the_limit() {
    let mut random = Random::new(11);
    let mut blocks: Vec<Owned> = Vec::new();
    let mut refused = 0;
    for _ in 0..20_000 {
        let size = random.size();
        match random.below(8) {
            0..=4 => {
                let at = match random.below(3) {
                    0 => heap::calloc(size),
                    1 => heap::malloc_aligned(size, 1 << random.below(17)),
                    _ => heap::malloc(size),
                };
                if at.is_null() {
                    refused += 1;
                    for _ in 0..random.below(blocks.len() / 2) {
                        blocks.swap_remove(random.below(blocks.len())).free();
                    }
                } else {
                    blocks.push(Owned::adopt(at, size));
                }
            }
            5 if !blocks.is_empty() => {
                let which = random.below(blocks.len());
                refused += u32::from(!blocks[which].try_realloc(size));
            }
            6 if !blocks.is_empty() => blocks.swap_remove(random.below(blocks.len())).free(),
            _ => {}
        }
    }
    assert!(refused > 20, "{refused} requests were refused");
    blocks.into_iter().for_each(Owned::free);
    assert_eq!(stats().live_blocks, 0);
}

fn heaps_and_threads_at_the_limit() {
    let own = Heap::create();
    // SAFETY: the heap exists.
    let blocks = exhaust(|| unsafe { Heap::alloc(own, 700, 16, false) }, 700);
    assert!(heap::malloc(UNIT).is_null());
    // A heap and a thread's cache need memory of their own.
    let mut heaps = Vec::new();
    loop {
        let another = Heap::create();
        if another.is_null() {
            break;
        }
        // SAFETY: the heap exists.
        assert!(unsafe { Heap::alloc(another, 10, 16, false) }.is_null());
        heaps.push(another);
        assert!(heaps.len() < 100);
    }
    let refused = std::thread::spawn(|| heap::malloc(100).is_null()).join().unwrap();
    assert!(refused, "a thread without a cache was served");
    for empty in heaps {
        // SAFETY: the heap exists, and has no blocks.
        unsafe { Heap::destroy(empty) };
    }
    assert!(blocks.iter().all(|block| block.is_intact(block.size)));
    // SAFETY: no code uses the heap or its blocks afterwards.
    unsafe { Heap::destroy(own) };
    let served = std::thread::spawn(|| {
        let block = Owned::malloc(100);
        block.free();
    });
    served.join().unwrap();
    let block = Owned::malloc(10 * UNIT);
    block.free();
}

#[test]
fn no_memory() {
    const ALL: [(&str, fn()); 4] = [
        ("sizes", every_size_is_refused_in_the_end_and_served_again),
        ("realloc", a_realloc_that_fails_leaves_the_block_as_it_was),
        ("mixed", mixed_calls_go_on_at_the_limit),
        ("heaps", heaps_and_threads_at_the_limit),
    ];
    if let Some(case) = common::case() {
        let name = case.strip_prefix("limited ").unwrap_or(case.as_str());
        if name != case {
            limit_address_space();
        }
        let (_, run) = ALL.iter().find(|(known, _)| *known == name).unwrap();
        return run();
    }
    for (case, _) in ALL {
        for options in
            ["window=4m", "window=4m,page=64k", "window=16m,purge=0", "window=4m,purge=never"]
        {
            pass_alone("no_memory", case, options);
        }
        // If address space is limited, the window is reserved piece by piece.
        pass_alone("no_memory", &format!("limited {case}"), "window=8m");
    }
}

/// Leaves a little more address space than the process has now: enough for the window.
fn limit_address_space() {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
    let most = pages * 4096 + (128 << 20);
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the limit is valid.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
}
