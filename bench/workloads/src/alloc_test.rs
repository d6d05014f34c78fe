//! A sweep over the sizes: 16 bytes to 1 MiB, most of them small.
//!
//! The model is the field's "alloc-test". Each operation frees the block in a random slot of a
//! table and allocates a new one there. Sizes follow a power law: each doubling has about the same
//! number of bytes. Every page of a block is written. The workload shows all size classes together,
//! with random ages. One variant has one thread; the other has four threads that share nothing, and
//! shows what locks and shared lists cost.
//!
//! Life cycle: 190,000 live blocks (4 x 12,000), replaced at random.

use crate::checksum::fold;
use crate::memory::Block;
use crate::random::Random;
use crate::{Workload, joined, scaled, sized};

/// From 16 bytes to 1 MiB.
const LEAST: usize = 16;
const DOUBLINGS: u32 = 16;

pub(crate) const ONE_THREAD: Workload = Workload {
    name: "alloc-test",
    stands_for: "A long-running program with blocks of all sizes from 16 bytes to 1 MiB and of \
                 random ages: every size class at once, rounding, and slabs that stay partly \
                 used.",
    threads: 1,
    live_bytes: 44_370_000,
    operations: 5_380_000,
    run: |scale| sweep(0, sized(scale, 190_000, 300), scaled(scale, 2_500_000, 1_000)),
};

pub(crate) const FOUR_THREADS: Workload = Workload {
    name: "alloc-test-4",
    stands_for: "The same sizes and ages in four threads that share nothing: what an allocator's \
                 locks and shared lists cost independent threads.",
    threads: 4,
    live_bytes: 14_500_000,
    operations: 24_100_000,
    run: |scale| {
        let (slots, replacements) = (sized(scale, 12_000, 100), scaled(scale, 3_000_000, 500));
        std::thread::scope(|scope| {
            let threads: Vec<_> = (1..=4)
                .map(|thread| scope.spawn(move || sweep(thread, slots, replacements)))
                .collect();
            threads.into_iter().map(joined).fold(0, fold)
        })
    },
};

/// Fills a table of slots, replaces random ones, and empties it.
fn sweep(thread: usize, slots: usize, replacements: usize) -> u64 {
    let mut random = Random::of(0xa7, thread);
    let mut table: Vec<Block> = (0..slots).map(|_| block(&mut random)).collect();
    let mut sum = 0;
    for _ in 0..replacements {
        let slot = &mut table[random.below(slots)];
        let old = std::mem::replace(slot, block(&mut random));
        sum = fold(sum, old.release());
    }
    table.into_iter().map(Block::release).fold(sum, fold)
}

fn block(random: &mut Random) -> Block {
    let mut block = Block::new(random.power_law_size(LEAST, DOUBLINGS), random.next());
    block.touch_pages();
    block
}
