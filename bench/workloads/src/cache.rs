//! False sharing: blocks of different threads on one line of the cache.
//!
//! The models are Berger's "cache-scratch" and "cache-thrash" (Hoard, 2000). An allocator causes
//! false sharing in two ways:
//!
//! - actively, when it serves small blocks for two threads from one line. *cache-thrash*: each
//!   thread repeatedly allocates a small block, writes to it many times, and frees it;
//! - passively, when a thread frees a block in another thread's line and gets it again.
//!   *cache-scratch*: one thread makes neighbouring blocks and gives one to every thread, which
//!   frees it and continues as above.
//!
//! Life cycle: one block of 8 to 64 bytes a thread.

use crate::checksum::fold;
use crate::memory::Block;
use crate::{Workload, joined, scaled};
use std::sync::Barrier;

const THREADS: usize = 4;

const WRITES: usize = 100;

const SIZES: [usize; 4] = [8, 16, 32, 64];

pub(crate) const SCRATCH: Workload = Workload {
    name: "cache-scratch",
    stands_for: "Work handed out in small blocks made by one thread, which others free and then \
                 get again for their own: passive false sharing of cache lines.",
    threads: THREADS as u32,
    live_bytes: 1_600,
    operations: 16_000_000,
    run: |scale| {
        SIZES.iter().fold(0, |sum, &size| {
            let handed = (0..THREADS).map(|thread| Some(Block::new(size, thread as u64)));
            fold(sum, race(scale, size, handed.collect()))
        })
    },
};

pub(crate) const THRASH: Workload = Workload {
    name: "cache-thrash",
    stands_for: "Threads that each keep writing to small blocks of their own: active false \
                 sharing, when an allocator serves two threads from one cache line.",
    threads: THREADS as u32,
    live_bytes: 1_400,
    operations: 16_000_000,
    run: |scale| {
        SIZES.iter().fold(0, |sum, &size| {
            let none = (0..THREADS).map(|_| None);
            fold(sum, race(scale, size, none.collect()))
        })
    },
};

/// Lets every thread free its given block, and then write to blocks of this size.
fn race(scale: u32, size: usize, handed: Vec<Option<Block>>) -> u64 {
    let start = Barrier::new(THREADS);
    let start = &start;
    let rounds = scaled(scale, 500_000, 100);
    std::thread::scope(|scope| {
        let threads: Vec<_> = handed
            .into_iter()
            .map(|block| scope.spawn(move || write(rounds, size, block, start)))
            .collect();
        threads.into_iter().map(joined).fold(0, fold)
    })
}

fn write(rounds: usize, size: usize, handed: Option<Block>, start: &Barrier) -> u64 {
    start.wait();
    let mut sum = handed.map_or(0, Block::release);
    for round in 0..rounds {
        let mut block = Block::new(size, round as u64);
        block.count_up(WRITES);
        sum = fold(sum, block.release());
    }
    sum
}
