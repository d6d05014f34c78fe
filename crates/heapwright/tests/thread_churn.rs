//! Hundreds of threads, one after another: each takes over the abandoned cache of the one before.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use std::thread;

use common::{Owned, stats};

fn a_short_life() {
    let blocks: Vec<Owned> = (0..50).map(|at| Owned::malloc(at * 37)).collect();
    blocks.into_iter().for_each(Owned::free);
}

#[test]
fn five_hundred_threads_in_sequence_share_a_few_caches() {
    a_short_life();
    for _ in 0..300 {
        thread::spawn(a_short_life).join().unwrap();
    }
    let before = stats();
    for _ in 0..500 {
        thread::spawn(a_short_life).join().unwrap();
    }
    let after = stats();
    assert!(after.caches_made <= 4, "{} caches", after.caches_made);
    assert_eq!(after.live_blocks, 0);
    assert_eq!(after.rss_metadata, before.rss_metadata, "metadata grows with threads");
    let (was, is) = (before.committed_bytes, after.committed_bytes);
    assert!(is <= was + (1 << 20), "{was} bytes committed, then {is}");
}
