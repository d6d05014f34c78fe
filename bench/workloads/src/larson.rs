//! A server whose threads hand their blocks to the next generation.
//!
//! The model is Larson and Krishnan's "Memory allocation for long-running server applications"
//! (1998). Each lane owns a table of blocks. A thread replaces random blocks in it, starts its
//! successor, leaves it the table and dies. So a thread often frees a block of another, perhaps
//! dead, thread. The workload shows whether the memory of dead threads is reused or piles up.
//!
//! Life cycle: 2000 blocks live in each lane, mostly to 128 bytes, some to 8 KiB; random ages.

use crate::checksum::fold;
use crate::memory::Block;
use crate::random::Random;
use crate::{Workload, scaled, sized};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Scope;

const FEW_LANES: usize = 4;
const MANY_LANES: usize = 16;
const MOST_LANES: usize = 64;

pub(crate) const ONE: Workload = Workload {
    name: "larson-1",
    stands_for: "The same server with one thread at a time: what is left of the costs where nobody \
                 else is there.",
    threads: 1,
    live_bytes: 580_000,
    operations: 21_600_000,
    run: run::<1>,
};

pub(crate) const FEW: Workload = Workload {
    name: "larson",
    stands_for: "A server whose short-lived threads leave their blocks to a successor: frees of \
                 blocks that other, often dead threads allocated, and the reuse of a dead \
                 thread's memory.",
    threads: FEW_LANES as u32,
    live_bytes: 2_440_000,
    operations: 21_600_000,
    run: run::<FEW_LANES>,
};

pub(crate) const MANY: Workload = Workload {
    name: "larson-16",
    stands_for: "The same server with more threads than processors: what caches of many threads \
                 cost, and whose memory serves whom.",
    threads: MANY_LANES as u32,
    live_bytes: 9_480_000,
    operations: 21_200_000,
    run: run::<MANY_LANES>,
};

pub(crate) const MOST: Workload = Workload {
    name: "larson-64",
    stands_for: "The same server with thirty threads a processor: caches that can hardly all be \
                 of use.",
    threads: MOST_LANES as u32,
    live_bytes: 37_900_000,
    operations: 19_200_000,
    run: run::<MOST_LANES>,
};

const GENERATIONS: usize = 360;

/// A lane: a series of threads, one of which lives at a time.
struct Lane {
    blocks: Vec<Block>,
    random: Random,
    generations_left: usize,
    replacements: usize,
    checksum: u64,
}

fn run<const LANES: usize>(scale: u32) -> u64 {
    let total = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            let mut random = Random::of(0x1a45, lane);
            let blocks = (0..sized(scale, 2000, 50))
                .map(|_| Block::new(random.small_size(), random.next()))
                .collect();
            let lane = Lane {
                blocks,
                random,
                generations_left: scaled(scale, GENERATIONS / LANES, 3),
                replacements: sized(scale, 30_000, 200),
                checksum: 0,
            };
            let total = &total;
            scope.spawn(move || serve(scope, lane, total));
        }
    });
    total.into_inner()
}

fn serve<'scope>(scope: &'scope Scope<'scope, '_>, mut lane: Lane, total: &'scope AtomicU64) {
    for _ in 0..lane.replacements {
        let at = lane.random.below(lane.blocks.len());
        let fresh = Block::new(lane.random.small_size(), lane.random.next());
        let old = std::mem::replace(&mut lane.blocks[at], fresh);
        lane.checksum = fold(lane.checksum, old.release());
    }
    lane.generations_left -= 1;
    if lane.generations_left > 0 {
        scope.spawn(move || serve(scope, lane, total));
    } else {
        let rest = lane.blocks.into_iter().map(Block::release).fold(lane.checksum, fold);
        total.fetch_add(rest, Ordering::Relaxed);
    }
}
