//! Two threads that work in bursts and hand blocks to each other.
//!
//! In a burst each thread replaces a hundred of its thousand blocks. It frees the old blocks
//! itself; in every second burst the other thread frees them, in that thread's next burst. Then it
//! rests for a millisecond. The workload shows whether memory for the next burst is released in the
//! pause and faulted in again, and whether blocks return while their owner sleeps.
//!
//! Life cycle: 2 x 1000 blocks live, of 5.3 KB on average; random ages.

use crate::letters::{LetterBox, exchange, open, release_all};
use crate::memory::Block;
use crate::random::Random;
use crate::{Workload, scaled, sized};
use std::mem;
use std::time::Duration;

const PAIR: usize = 2;

const MOST: usize = 16_000;

const BLOCKS: usize = 1000;
const REPLACED: usize = 100;

pub(crate) const WORKLOAD: Workload = Workload {
    name: "burst",
    stands_for: "Servers that work in bursts and hand every second batch of blocks to another thread: memory that goes back in pauses of a millisecond, and is faulted in after them.",
    threads: PAIR as u32,
    live_bytes: 12_800_000,
    operations: 167_000,
    run,
};

fn run(scale: u32) -> u64 {
    let boxes: [LetterBox; PAIR] = Default::default();
    exchange(boxes, |thread, boxes| serve(scale, thread, boxes))
}

fn serve(scale: u32, thread: usize, boxes: &[LetterBox; PAIR]) -> u64 {
    let mut random = Random::of(0xb057, thread);
    let mut blocks: Vec<Block> =
        (0..sized(scale, BLOCKS, 50)).map(|_| fresh(&mut random)).collect();
    let mut sum = 0;
    for burst in 0..scaled(scale, 400, 4) {
        let mut replaced = Vec::with_capacity(REPLACED);
        for _ in 0..REPLACED {
            let at = random.below(blocks.len());
            replaced.push(mem::replace(&mut blocks[at], fresh(&mut random)));
        }
        if burst % 2 == 0 {
            sum = release_all(replaced, sum);
        } else {
            open(&boxes[1 - thread]).append(&mut replaced);
        }
        let mine = mem::take(&mut *open(&boxes[thread]));
        sum = release_all(mine, sum);
        std::thread::sleep(Duration::from_millis(1));
    }
    release_all(blocks, sum)
}

/// Makes a block; the frequency falls linearly with the size.
fn fresh(random: &mut Random) -> Block {
    let size = random.between(8, MOST).min(random.between(8, MOST));
    Block::new(size, random.next())
}
