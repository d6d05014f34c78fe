//! Many threads that allocate a little and wait.
//!
//! Four hundred threads live at the same time. Each allocates sixty blocks, waits until all others
//! have allocated theirs, and frees its own. The workload shows the cost of a thread that does
//! hardly anything: its cache, its slabs' pages, and caches for more threads than processors.
//!
//! Life cycle: 400 x 60 blocks live, mostly to 128 bytes, some to 8 KiB.

use crate::checksum::fold;
use crate::memory::Block;
use crate::random::Random;
use crate::{KIB, Workload, joined, scaled, sized};
use std::sync::Barrier;
use std::thread::Builder;

const THREADS: usize = 400;
const BLOCKS: usize = 60;

pub(crate) const WORKLOAD: Workload = Workload {
    name: "crowd",
    stands_for: "Servers with a thread for each client, most of which wait: the memory cost of a thread that allocates a little, and the time when all threads wake up.",
    threads: THREADS as u32,
    live_bytes: 7_280_000,
    operations: 444_000,
    run,
};

fn run(scale: u32) -> u64 {
    let threads = sized(scale, THREADS, 20);
    let all_are_here = Barrier::new(threads);
    (0..scaled(scale, 8, 2)).fold(0, |sum, round| fold(sum, meet(round, threads, &all_are_here)))
}

fn meet(round: usize, threads: usize, all_are_here: &Barrier) -> u64 {
    std::thread::scope(|scope| {
        let work = |thread| {
            move || {
                let mut random = Random::of(0xc40d + round as u64, thread);
                let blocks: Vec<Block> =
                    (0..BLOCKS).map(|_| Block::new(random.small_size(), random.next())).collect();
                all_are_here.wait();
                blocks.into_iter().map(Block::release).fold(0, fold)
            }
        };
        // Stacks are small, so that most memory is the allocator's.
        let start = |thread| Builder::new().stack_size(64 * KIB).spawn_scoped(scope, work(thread));
        let running: Vec<_> = (0..threads)
            .map(|thread| start(thread).expect("there can be another thread"))
            .collect();
        running.into_iter().map(joined).fold(0, u64::wrapping_add)
    })
}
