//! Threads that allocate, pass blocks to each other, free others' blocks, and end before their
//! blocks. The thread that frees a block checks it, and no block may be left.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use common::{Owned, Random, stats};
use heapwright::{BlockState, Kind, describe, heap};

fn live(seed: u64, rounds: usize, others: &[Sender<Owned>], mine: &Receiver<Owned>) -> Vec<Owned> {
    let mut random = Random::new(seed);
    let mut blocks: Vec<Owned> = Vec::new();
    for _ in 0..rounds {
        match random.below(10) {
            0..=4 => {
                let size = random.size();
                blocks.push(match random.below(8) {
                    0 => Owned::calloc(size),
                    1 => Owned::aligned(size, 1 << random.below(14)),
                    _ => Owned::malloc(size),
                });
            }
            5 | 6 if !blocks.is_empty() => {
                let block = blocks.swap_remove(random.below(blocks.len()));
                let to = random.below(others.len());
                if let Err(back) = others[to].send(block) {
                    back.0.free();
                }
            }
            7 if !blocks.is_empty() => {
                let which = random.below(blocks.len());
                let size = random.size();
                blocks[which].realloc(size);
            }
            8 | 9 if !blocks.is_empty() => {
                blocks.swap_remove(random.below(blocks.len())).free();
            }
            _ => {}
        }
        if let Ok(block) = mine.try_recv() {
            if random.below(4) == 0 {
                blocks.push(block);
            } else {
                block.free();
            }
        }
    }
    blocks
}

#[test]
fn blocks_may_be_freed_by_any_thread_at_any_time() {
    let rounds = 20_000;
    let threads = 4;
    for generation in 0..5 {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| channel()).unzip();
        let lives: Vec<_> = receivers
            .into_iter()
            .enumerate()
            .map(|(number, mine)| {
                let others = senders.clone();
                // Some threads end early, while the others work.
                let rounds = rounds / (1 + number % 2 * 3);
                thread::spawn(move || {
                    let seed = (generation * threads + number) as u64 + 1;
                    let left = live(seed, rounds, &others, &mine);
                    (left, mine)
                })
            })
            .collect();
        drop(senders);
        // Each queue is read after its last writer has ended: a block sent to a dropped reader is
        // lost.
        let ended: Vec<_> = lives.into_iter().map(|life| life.join().unwrap()).collect();
        let mut late = Vec::new();
        for (left, mine) in ended {
            late.extend(left);
            late.extend(mine.try_iter());
        }
        let addresses: Vec<*mut u8> = late.iter().map(|block| block.at).collect();
        late.into_iter().for_each(Owned::free);
        let quiet = stats();
        assert_eq!((quiet.live_blocks, quiet.live_bytes), (0, 0), "generation {generation}");
        heap::trim(0);
        for at in addresses {
            let found = describe(at);
            assert!(found.state != BlockState::InUse, "{at:?} is free, and said to be {found:?}");
            // Without blocks there are no slabs, except the one that the first thread's cache
            // carves from.
            assert!(!heap::owns(at) || found.kind == Kind::Small, "{found:?}");
        }
        let end = stats();
        assert_eq!((end.rss_live, end.rss_remote, end.large_blocks), (0, 0, 0));
        assert_eq!(end.rss_lazy, 0, "all was given back: {end:?}");
        assert_eq!(end.rss_parts(), end.rss);
    }
}
