//! Everything at the same time, across threads.
//!
//! The model is rpmalloc's benchmark. Each of four threads owns a table of slots. An operation
//! empties a random slot and fills it again. Sizes go from 16 bytes to 16 KiB. In one half of the
//! rounds all sizes are equally frequent, in the other all doublings. Some blocks come from
//! `calloc`, some are aligned. A thread sends one block in eight, in batches, to another thread,
//! which frees them when it next looks into its letter box. A thread that finds the box full frees
//! the batch itself. The workload shows the mix of local and remote frees.
//!
//! Life cycle: 4 x 1600 slots of random ages, with 8 KiB on average in one half of the rounds and
//! 2.4 KiB in the other.

use crate::letters::{LetterBox, exchange, open, release_all};
use crate::memory::Block;
use crate::random::Random;
use crate::{Workload, scaled, sized};

const THREADS: usize = 4;

const ROOM: usize = 256;

/// A thread posts this many blocks in one batch, and then looks into its own box.
const POST: usize = 16;

pub(crate) const WORKLOAD: Workload = Workload {
    name: "rptest",
    stands_for: "Busy servers in which most blocks are freed where they were allocated and some \
                 elsewhere: local and remote frees mixed over all sizes from 16 bytes to 16 KiB.",
    threads: THREADS as u32,
    live_bytes: 63_000_000,
    operations: 4_840_000,
    run,
};

fn run(scale: u32) -> u64 {
    let boxes = std::array::from_fn(|_| LetterBox::new(Vec::with_capacity(ROOM + POST)));
    exchange(boxes, |thread, boxes| work(scale, thread, boxes))
}

fn work(scale: u32, thread: usize, boxes: &[LetterBox; THREADS]) -> u64 {
    let mut random = Random::of(0x49, thread);
    let mut slots: Vec<Option<Block>> = Vec::new();
    slots.resize_with(sized(scale, 1_600, 50), || None);
    let mut post = Vec::with_capacity(POST);
    // The checksum is a sum of freed stamps: chance decides which thread frees a block.
    let mut sum = 0u64;
    for round in 0..scaled(scale, 10, 2) {
        for _ in 0..sized(scale, 60_000, 500) {
            let slot = random.below(slots.len());
            match slots[slot].take() {
                Some(old) if random.one_in(8) => post.push(old),
                Some(old) => sum = sum.wrapping_add(old.release()),
                None => {}
            }
            slots[slot] = Some(block(&mut random, round));
            if post.len() == POST {
                let other = (thread + random.between(1, THREADS - 1)) % THREADS;
                sum = send(&mut post, &boxes[other], sum);
                sum = release_all(receive(&boxes[thread]), sum);
            }
        }
    }
    sum = release_all(post, sum);
    slots.into_iter().flatten().map(Block::release).fold(sum, u64::wrapping_add)
}

fn block(random: &mut Random, round: usize) -> Block {
    let size = if round.is_multiple_of(2) {
        random.between(16, 16 << 10)
    } else {
        random.exponential_size(16, 10)
    };
    let stamp = random.next();
    match random.below(64) {
        0 => Block::aligned(64 << random.below(3), size, stamp),
        1..5 => Block::zeroed(size, stamp),
        _ => Block::new(size, stamp),
    }
}

/// Posts all blocks, or frees all of them if the box is full. Returns the sum with the freed ones.
fn send(post: &mut Vec<Block>, to: &LetterBox, sum: u64) -> u64 {
    let mut letters = open(to);
    if letters.len() < ROOM {
        letters.append(post);
        return sum;
    }
    drop(letters);
    post.drain(..).map(Block::release).fold(sum, u64::wrapping_add)
}

fn receive(from: &LetterBox) -> Vec<Block> {
    let mut letters = open(from);
    std::mem::replace(&mut *letters, Vec::with_capacity(ROOM + POST))
}
