//! Memory goes back to the kernel, at once on request, and otherwise after a delay.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use std::thread::sleep;
use std::time::Duration;

use common::{Owned, Random, UNIT, stats};
use heapwright::{heap, options};

const MIB: u64 = 1 << 20;

fn small_blocks(bytes: usize) -> Vec<Owned> {
    let mut random = Random::new(7);
    let mut left = bytes;
    let mut blocks = Vec::new();
    while left > 0 {
        let block = Owned::malloc(16 + random.below(1000));
        left = left.saturating_sub(block.size);
        blocks.push(block);
    }
    blocks
}

fn ours() -> u64 {
    let now = stats();
    now.rss - now.rss_not_ours
}

fn trim_gives_everything_free_back() {
    let before = ours();
    for _ in 0..3 {
        let blocks = small_blocks(20 << 20);
        let large: Vec<Owned> = (0..20).map(|_| Owned::malloc(1 << 20)).collect();
        for block in &large {
            // SAFETY: the block has this many bytes.
            unsafe { block.at.write_bytes(1, block.size) };
        }
        let full = ours();
        assert!(full >= before + 40 * MIB, "{full} bytes with 40 MiB in use, {before} before");
        blocks.into_iter().for_each(Owned::free);
        for block in large {
            // SAFETY: the block is in use, and this is the last use.
            unsafe { heap::free(block.at) };
        }
        assert!(heap::trim(0));
        assert!(!heap::trim(0), "a second time, and more went back");
        let after = ours();
        assert!(after <= before + 2 * MIB, "{after} bytes after all was freed, {before} before");
        let now = stats();
        assert!(now.rss_lazy == 0 && now.rss_live == 0, "{now:?}");
    }
    assert!(stats().purged_bytes >= 3 * 40 * MIB);
}

fn trim_leaves_what_it_is_told_to_keep() {
    let block = Owned::malloc(20 << 20);
    // SAFETY: the block has this many bytes.
    unsafe { block.at.write_bytes(1, block.size) };
    // SAFETY: the block is in use, and this is the last use.
    unsafe { heap::free(block.at) };
    let small = small_blocks(1000);
    heap::trim(64 << 20);
    assert!(stats().rss_lazy >= 19 * MIB, "{:?}", stats());
    heap::trim(0);
    assert_eq!(stats().rss_lazy, 0);
    small.into_iter().for_each(Owned::free);
}

fn pages_between_blocks_in_use_go_back() {
    heap::trim(0);
    let before = ours();
    let blocks = small_blocks(20 << 20);
    // One block of sixty stays. So nearly every slab is kept, and most pages are free.
    let (kept, gone): (Vec<_>, Vec<_>) =
        blocks.into_iter().enumerate().partition(|(number, _)| number % 60 == 0);
    gone.into_iter().for_each(|(_, block)| block.free());
    heap::trim(0);
    let after = ours();
    assert!(after <= before + 8 * MIB, "{after} bytes for {} blocks", kept.len());
    kept.into_iter().for_each(|(_, block)| block.free());
    heap::trim(0);
}

fn what_has_waited_goes_back_without_being_asked() {
    options::set_purge_delay_ms(20);
    let before = ours();
    let blocks: Vec<Owned> = (0..40).map(|_| Owned::malloc(8 * UNIT)).collect();
    for block in &blocks {
        // SAFETY: the block has this many bytes.
        unsafe { block.at.write_bytes(1, block.size) };
    }
    for block in blocks {
        // SAFETY: the block is in use, and this is the last use.
        unsafe { heap::free(block.at) };
    }
    // Each thread that takes or gives back a run purges a few dirty units.
    let mut left = ours();
    for _ in 0..100 {
        sleep(Duration::from_millis(10));
        Owned::malloc(UNIT).free();
        left = ours();
        if left <= before + MIB {
            return;
        }
    }
    panic!("{left} bytes are left of 20 MiB that waited, {before} before");
}

fn what_waits_for_ever_stays() {
    options::set_purge_delay_ms(-1);
    let block = Owned::malloc(10 << 20);
    // SAFETY: the block has this many bytes.
    unsafe { block.at.write_bytes(1, block.size) };
    // SAFETY: the block is in use, and this is the last use.
    unsafe { heap::free(block.at) };
    sleep(Duration::from_millis(30));
    Owned::malloc(UNIT).free();
    assert!(stats().rss_lazy >= 9 * MIB, "{:?}", stats());
    heap::trim(0);
    assert_eq!(stats().rss_lazy, 0);
}

/// One test, because it looks at the memory of the whole process.
#[test]
fn memory_is_given_back() {
    Owned::malloc(1).free();
    trim_gives_everything_free_back();
    trim_leaves_what_it_is_told_to_keep();
    pages_between_blocks_in_use_go_back();
    what_has_waited_goes_back_without_being_asked();
    what_waits_for_ever_stays();
}
