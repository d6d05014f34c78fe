//! Many live blocks, freed in random order.
//!
//! Each operation frees a random block and allocates another (two `operations`). No memory of the
//! freed block is in the cache: neither its bytes, nor its slab's record, nor its list. The cost of
//! a pair is the number of cache lines that the allocator touches.
//!
//! Life cycle: 400,000 blocks of 16 to 128 bytes of random ages.

use crate::checksum::fold;
use crate::memory::Block;
use crate::random::Random;
use crate::{Workload, scaled, sized};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "random-400k",
    stands_for: "Databases and caches with hundreds of thousands of small live objects that die \
                 in random order: how many cold cache lines a free and a malloc touch.",
    threads: 1,
    live_bytes: 35_230_000,
    operations: 6_800_000,
    run,
};

fn run(scale: u32) -> u64 {
    let mut random = Random::new(0x4a);
    let live = sized(scale, 400_000, 1_000);
    let mut blocks: Vec<Block> = (0..live).map(|_| block(&mut random)).collect();
    let mut sum = 0;
    for _ in 0..scaled(scale, 3_000_000, 5_000) {
        let slot = &mut blocks[random.below(live)];
        let old = std::mem::replace(slot, block(&mut random));
        sum = fold(sum, old.release());
    }
    blocks.into_iter().map(Block::release).fold(sum, fold)
}

fn block(random: &mut Random) -> Block {
    Block::new(random.between(16, 128), random.next())
}
