//! Threads with short lives.
//!
//! Thousands of threads, at most four at a time. Each allocates a little and frees half of it
//! itself. The thread that started it frees the other blocks after its death. The workload shows
//! the cost of setting up and tearing down a thread's cache. It also shows whether memory of dead
//! threads comes back: a program with a thread for each task must not grow.
//!
//! Life cycle: 40 blocks a thread, mostly to 128 bytes, some to 8 KiB.

use crate::checksum::fold;
use crate::memory::Block;
use crate::random::Random;
use crate::{Workload, joined, scaled};
use std::collections::VecDeque;

const AT_ONCE: usize = 4;

const BLOCKS: usize = 40;

pub(crate) const WORKLOAD: Workload = Workload {
    name: "threads",
    stands_for: "Programs that start a thread for every task: setting up and tearing down a \
                 thread's cache, and blocks that are freed after their maker died.",
    threads: AT_ONCE as u32,
    live_bytes: 65_000,
    operations: 1_410_000,
    run,
};

fn run(scale: u32) -> u64 {
    std::thread::scope(|scope| {
        let mut running = VecDeque::with_capacity(AT_ONCE);
        let mut sum = 0;
        for thread in 0..scaled(scale, 14_000, 20) {
            if running.len() == AT_ONCE {
                sum = running.pop_front().map(joined).into_iter().fold(sum, collect);
            }
            running.push_back(scope.spawn(move || work(thread)));
        }
        running.into_iter().map(joined).fold(sum, collect)
    })
}

/// Runs a short thread. Returns the sum of its freed blocks, and the remaining blocks.
fn work(thread: usize) -> (u64, Vec<Block>) {
    let mut random = Random::of(0x7d, thread);
    let (mut sum, mut left) = (0, Vec::new());
    for number in 0..BLOCKS {
        let block = Block::new(random.small_size(), random.next());
        if number % 2 == 0 {
            left.push(block);
        } else {
            sum = fold(sum, block.release());
        }
    }
    (sum, left)
}

fn collect(sum: u64, (freed, left): (u64, Vec<Block>)) -> u64 {
    left.into_iter().map(Block::release).fold(fold(sum, freed), fold)
}
