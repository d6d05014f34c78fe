//! Phases with leftovers.
//!
//! The model is mimalloc's stress test. In every phase four new threads make short chains of blocks
//! of mixed sizes, with a large one now and then. A thread keeps many chains for a while, drops
//! some at random, and swaps others with the contents of a shared array. At the end of the phase it
//! drops most chains, leaves the others in that array, and dies. So later threads hold blocks of
//! dead threads, whose slabs stay alive unused. The workload shows whether these slabs are reused.
//!
//! Life cycle: 4 x about 2500 chains at the end of a phase, 2000 between two.

use crate::memory::Block;
use crate::random::Random;
use crate::{Workload, joined, scaled, sized};
use std::sync::{Mutex, PoisonError};

const THREADS: usize = 4;

pub(crate) const WORKLOAD: Workload = Workload {
    name: "mstress",
    stands_for: "Programs that work in phases, with new threads in each and leftovers that later \
                 threads drop: slabs that a few old blocks keep alive after their owner died.",
    threads: THREADS as u32,
    live_bytes: 40_000_000,
    operations: 11_770_000,
    run,
};

struct Link {
    block: Block,
    next: Option<Box<Link>>,
}

type Shared = Vec<Mutex<Option<Box<Link>>>>;

fn run(scale: u32) -> u64 {
    let mut shared = Shared::new();
    shared.resize_with(sized(scale, 2_000, 20), Default::default);
    let mut sum = 0u64;
    for phase in 0..scaled(scale, 14, 3) {
        std::thread::scope(|scope| {
            let shared = &shared;
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let random = Random::of(0x57 + phase as u64, thread);
                    scope.spawn(move || work(scale, random, shared))
                })
                .collect();
            sum = threads.into_iter().map(joined).fold(sum, u64::wrapping_add);
        });
    }
    shared.iter().fold(sum, |sum, place| sum.wrapping_add(release(swap(place, None))))
}

fn work(scale: u32, mut random: Random, shared: &Shared) -> u64 {
    let mut kept: Vec<Option<Box<Link>>> = Vec::new();
    let mut sum = 0u64;
    for _ in 0..sized(scale, 5_000, 50) {
        kept.push(chain(&mut random));
        if random.one_in(2) {
            let at = random.below(kept.len());
            sum = sum.wrapping_add(release(kept.swap_remove(at)));
        }
        if random.one_in(8) && !kept.is_empty() {
            let (at, place) = (random.below(kept.len()), random.below(shared.len()));
            let given = kept[at].take();
            kept[at] = swap(&shared[place], given);
        }
    }
    for (at, chain) in kept.into_iter().enumerate() {
        let dropped =
            if at % 8 == 0 { swap(&shared[random.below(shared.len())], chain) } else { chain };
        sum = sum.wrapping_add(release(dropped));
    }
    sum
}

fn chain(random: &mut Random) -> Option<Box<Link>> {
    let mut first = None;
    for _ in 0..random.between(1, 20) {
        let size = match random.below(4096) {
            0 => random.between(64 << 10, 512 << 10),
            1..16 => random.between(4 << 10, 64 << 10),
            _ => random.power_law_size(16, 8),
        };
        let mut block = Block::new(size, random.next());
        block.touch_pages();
        first = Some(Box::new(Link { block, next: first }));
    }
    first
}

fn swap(place: &Mutex<Option<Box<Link>>>, chain: Option<Box<Link>>) -> Option<Box<Link>> {
    let mut inside = place.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::replace(&mut *inside, chain)
}

/// Frees a chain, link by link. Returns the sum of its stamps.
fn release(chain: Option<Box<Link>>) -> u64 {
    let (mut sum, mut rest) = (0u64, chain);
    while let Some(link) = rest {
        sum = sum.wrapping_add(link.block.release());
        rest = link.next;
    }
    sum
}
