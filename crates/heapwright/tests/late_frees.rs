//! Frees of blocks after the end of the thread that made them.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use std::thread;

use common::{Owned, UNIT, stats};
use heapwright::{Kind, describe, heap};

fn in_slabs() -> u64 {
    let now = stats();
    now.rss_live + now.rss_rounding + now.rss_partial + now.rss_caches + now.rss_remote
}

#[test]
fn blocks_of_ended_threads_go_back_to_the_kernel_when_they_are_freed() {
    // Makes this thread's own cache first, so that the cache does not count.
    Owned::malloc(1).free();
    let before = in_slabs();
    let blocks: Vec<Owned> = (0..4)
        .map(|thread| {
            thread::spawn(move || {
                (0..8000).map(|at| Owned::malloc(100 + thread * 400 + at % 7)).collect::<Vec<_>>()
            })
        })
        .flat_map(|thread| thread.join().unwrap())
        .collect();
    let held: u64 = blocks.iter().map(|block| block.size as u64).sum();
    let with_blocks = stats();
    assert_eq!(with_blocks.live_blocks, blocks.len() as u64);
    assert!(with_blocks.caches_orphaned > 0, "{with_blocks:?}");
    assert!(in_slabs() >= before + held);
    let addresses: Vec<*mut u8> = blocks.iter().map(|block| block.at).collect();
    // Frees every second block first, which leaves half-empty slabs of ended threads.
    let (even, odd): (Vec<_>, Vec<_>) =
        blocks.into_iter().enumerate().partition(|(number, _)| number % 2 == 0);
    even.into_iter().for_each(|(_, block)| block.free());
    heap::trim(0);
    assert_eq!(stats().live_blocks, odd.len() as u64);
    odd.into_iter().for_each(|(_, block)| block.free());
    heap::trim(0);
    let after = stats();
    assert_eq!((after.live_blocks, after.caches_orphaned), (0, 0), "{after:?}");
    assert!(after.purged_bytes >= held, "{after:?}");
    let left = in_slabs();
    assert!(left <= before + UNIT as u64, "{left} bytes in slabs, {before} before");
    for at in addresses {
        assert_eq!(describe(at).kind, Kind::Free, "{:?}", describe(at));
    }
}
