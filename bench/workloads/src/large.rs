//! Large blocks, partly used, freed in any order.
//!
//! The model is the field's "malloc-large". Buffers have 64 KiB to 16 MiB, each doubling equally
//! frequent; a few live at a time. A program writes only the first part of its buffer. One request
//! in four is for zeroed memory. The workload shows whether an allocator keeps the memory of large
//! blocks or releases it, and the cost of page faults.
//!
//! Life cycle: 12 buffers with 3 MiB on average, of random ages; a quarter to all of each is
//! written.

use crate::checksum::fold;
use crate::memory::Block;
use crate::random::Random;
use crate::{KIB, Workload, scaled, sized};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "large",
    stands_for: "Media, network and numerical code with a few buffers of 64 KiB to 16 MiB that \
                 are only partly used: keeping memory or giving it back, and the page faults \
                 either costs.",
    threads: 1,
    live_bytes: 83_820_000,
    operations: 5_030,
    run,
};

fn run(scale: u32) -> u64 {
    let mut random = Random::new(0x1a);
    let mut live: Vec<Block> = Vec::new();
    let mut sum = 0;
    for _ in 0..scaled(scale, 2_500, 30) {
        if live.len() == sized(scale, 12, 4) {
            let oldest_or_not = random.below(live.len());
            sum = fold(sum, live.swap_remove(oldest_or_not).release());
        }
        live.push(buffer(&mut random));
    }
    live.into_iter().map(Block::release).fold(sum, fold)
}

fn buffer(random: &mut Random) -> Block {
    let size = random.exponential_size(64 * KIB, 8);
    let stamp = random.next();
    let mut block =
        if random.one_in(4) { Block::zeroed(size, stamp) } else { Block::new(size, stamp) };
    block.touch_pages_to(block.size() / 4 * random.between(1, 4));
    block
}
