//! Changes of phase: each phase uses other sizes than the previous phase.
//!
//! The program fills 64 MiB with blocks of one range of sizes, frees three in four of them at
//! random, and continues with another range. The remaining blocks pin slabs that are mostly empty
//! and useless for the new sizes. Four ranges follow each other, and then the first again. The
//! workload shows the peak memory that a change of phase costs.
//!
//! Life cycle: 64 MiB more in each phase; a quarter survives it, and dies at random in the next
//! changes.

use crate::checksum::fold;
use crate::memory::Block;
use crate::random::Random;
use crate::{MIB, Workload, scaled, sized};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "fragment",
    stands_for: "Programs that load, work and answer in phases with blocks of other sizes in \
                 each: what slabs pinned by a few survivors cost in peak memory.",
    threads: 1,
    live_bytes: 104_570_000,
    operations: 4_260_000,
    run,
};

const PHASES: [(usize, usize); 4] = [(48, 112), (160, 272), (400, 800), (1_200, 3_000)];

fn run(scale: u32) -> u64 {
    let mut random = Random::new(0xf4);
    let fill = sized(scale, 64 * MIB, 64 << 10);
    // The list has its final size from the start, so that its growth does not count.
    let most = fill / (PHASES[0].0 + PHASES[0].1) * 2;
    let mut live: Vec<Block> = Vec::with_capacity(most + most / 8);
    let mut sum = 0;
    for phase in 0..scaled(scale, 5, 5) {
        let (least, most) = PHASES[phase % PHASES.len()];
        let mut bytes = 0;
        while bytes < fill {
            let block = Block::new(random.between(least, most), random.next());
            bytes += block.size();
            live.push(block);
        }
        random.shuffle(&mut live);
        let stay = live.len() / 4;
        for block in live.drain(stay..) {
            sum = fold(sum, block.release());
        }
    }
    live.into_iter().map(Block::release).fold(sum, fold)
}
