//! Statistics: the parts add up, and a quiet process is counted exactly.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use std::sync::Barrier;
use std::thread;

use common::{Owned, Random, SLAB_MAX, UNIT, pass_alone, stats};
use heapwright::Stats;
use heapwright::heap;

fn check(now: &Stats, blocks: &[Owned]) {
    let usable = |large: bool| -> (u64, u64) {
        let these = blocks.iter().filter(|block| (block.usable() > SLAB_MAX) == large);
        these.fold((0, 0), |(n, bytes), block| (n + 1, bytes + block.usable() as u64))
    };
    let (small, large) = (usable(false), usable(true));
    assert_eq!((now.large_blocks, now.large_bytes), large);
    assert_eq!((now.live_blocks, now.live_bytes), (small.0 + large.0, small.1 + large.1));
    assert_eq!(now.rss_parts(), now.rss);
    assert!(now.rss <= now.peak_rss);
    // Every block was written at both ends. A large block also has pages in between that were not.
    // Pages behind the block, up to a whole unit, may be resident from earlier use.
    assert!(now.rss_live <= now.live_bytes, "{now:?}");
    let most = now.live_bytes + now.large_blocks * UNIT as u64;
    assert!(now.rss_live + now.rss_rounding <= most, "{now:?}");
    assert!(now.rss_live + now.rss_rounding >= small.1 * 9 / 10, "{now:?}");
    assert!(now.committed_bytes <= now.window_bytes + now.window_bytes / 64, "{now:?}");
    assert!(now.rss_metadata > 0 && now.rss_not_ours > 0);
}

fn counted() {
    let mut random = Random::new(2);
    let mut blocks: Vec<Owned> = Vec::new();
    for round in 0..30 {
        for _ in 0..200 {
            blocks.push(Owned::malloc(random.size()));
        }
        for _ in 0..random.below(250).min(blocks.len()) {
            blocks.swap_remove(random.below(blocks.len())).free();
        }
        if round % 5 == 0 {
            let which = random.below(blocks.len());
            blocks[which].realloc(random.size());
        }
        check(&stats(), &blocks);
    }
    // Another thread holds free blocks in its cache, and lives.
    let (ready, go_on) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let theirs: Vec<Owned> = (0..500).map(|_| Owned::malloc(100)).collect();
            theirs.into_iter().for_each(Owned::free);
            ready.wait();
            go_on.wait();
        });
        ready.wait();
        let now = stats();
        assert_eq!(now.rss_parts(), now.rss);
        assert_eq!(now.caches_live, 2);
        assert!(now.rss_caches > 0);
        go_on.wait();
        // A scope alone would not wait until the thread's cache is given back.
        other.join().unwrap();
    });
    let count = blocks.len();
    assert_eq!(stats().live_blocks, count as u64);
    assert_eq!(stats().caches_live, 1);
    blocks.into_iter().for_each(Owned::free);
    check(&stats(), &[]);
}

fn counted_in_detail() {
    Owned::malloc(1).free();
    assert_eq!(stats().detailed, 1);
    let before = stats();
    let sizes = [1, 16, 17, 100, 5000, SLAB_MAX + 1, 1 << 20];
    let mut blocks: Vec<Owned> = sizes.map(Owned::malloc).into();
    let now = stats();
    assert_eq!(now.allocations - before.allocations, sizes.len() as u64);
    assert_eq!(now.requested_bytes - before.requested_bytes, sizes.iter().sum::<usize>() as u64);
    for size in sizes {
        let bucket = Stats::size_bucket(size);
        assert!(now.sizes[bucket] > before.sizes[bucket], "{size}");
    }
    check(&now, &blocks);
    let peak = now.live_bytes;
    blocks.pop().unwrap().free();
    blocks[5].realloc(3 * SLAB_MAX);
    thread::scope(|scope| {
        scope.spawn(|| blocks.pop().unwrap().free()).join().unwrap();
    });
    let now = stats();
    check(&now, &blocks);
    assert!(now.peak_live_bytes >= peak && now.peak_live_bytes <= 2 * peak, "{now:?}");
    blocks.into_iter().for_each(Owned::free);
    let end = stats();
    assert_eq!(end.allocations, end.frees);
    assert_eq!((end.live_blocks, end.live_bytes), (0, 0));
    assert_eq!(heap::trim(0), stats().purged_bytes > end.purged_bytes);
}

#[test]
fn the_account_is_right() {
    match common::case().as_deref() {
        Some("detailed") => counted_in_detail(),
        Some(_) => counted(),
        None => {
            pass_alone("the_account_is_right", "fast", "");
            pass_alone("the_account_is_right", "fast", "page=64k");
            pass_alone("the_account_is_right", "fast", "purge=0");
            pass_alone("the_account_is_right", "detailed", "stats_file=/tmp/never-written");
        }
    }
}
