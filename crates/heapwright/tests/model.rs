//! The heap against a model: any order of calls in one thread.
//!
//! The model is a map of the address ranges in use. Each block's pattern is checked at each resize
//! and free.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use std::collections::BTreeMap;

use common::{Owned, SLAB_MAX, UNIT, stats};
use heapwright::heap;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::Config;

#[derive(Clone, Debug)]
enum Op {
    Malloc(usize),
    Calloc(usize),
    Aligned { size: usize, shift: u32 },
    Realloc(Index, usize),
    Free(Index),
    FreeSized(Index),
    Trim(usize),
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        6 => 0..=520usize,
        4 => 0..=5000usize,
        2 => 0..=SLAB_MAX + 100,
        2 => SLAB_MAX..200 << 10,
        1 => (0..5usize, 0..5usize).prop_map(|(units, more)| (units * UNIT + more).saturating_sub(2)),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => size().prop_map(Op::Malloc),
        3 => size().prop_map(Op::Calloc),
        2 => (size(), 0..20u32).prop_map(|(size, shift)| Op::Aligned { size, shift }),
        5 => (any::<Index>(), size()).prop_map(|(which, size)| Op::Realloc(which, size)),
        8 => any::<Index>().prop_map(Op::Free),
        2 => any::<Index>().prop_map(Op::FreeSized),
        1 => (0..4 * UNIT).prop_map(Op::Trim),
    ]
}

#[derive(Default)]
struct World {
    blocks: Vec<(Owned, usize)>,
    ranges: BTreeMap<usize, usize>,
}

impl World {
    fn add(&mut self, block: Owned, align: usize) {
        let (start, usable) = (block.at.addr(), block.usable());
        assert!(usable >= block.size, "{usable} usable of {}", block.size);
        let before = self.ranges.range(..=start).next_back();
        assert!(before.is_none_or(|(_, &end)| end <= start), "{block:?} overlaps {before:?}");
        let behind = self.ranges.range(start..).next();
        assert!(behind.is_none_or(|(&next, _)| start + usable <= next), "{block:?}: {behind:?}");
        // An empty block also has an address of its own.
        assert!(usable > 0);
        self.ranges.insert(start, start + usable);
        self.blocks.push((block, align));
    }

    fn remove(&mut self, which: Index) -> Option<(Owned, usize)> {
        if self.blocks.is_empty() {
            return None;
        }
        let (block, align) = self.blocks.swap_remove(which.index(self.blocks.len()));
        self.ranges.remove(&block.at.addr()).unwrap();
        Some((block, align))
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Malloc(size) => self.add(Owned::malloc(size), 16),
            Op::Calloc(size) => self.add(Owned::calloc(size), 16),
            Op::Aligned { size, shift } => self.add(Owned::aligned(size, 1 << shift), 1 << shift),
            Op::Realloc(which, size) => {
                if let Some((mut block, _)) = self.remove(which) {
                    block.realloc(size);
                    self.add(block, 16);
                }
            }
            Op::Free(which) => {
                if let Some((block, _)) = self.remove(which) {
                    block.free();
                }
            }
            Op::FreeSized(which) => {
                if let Some((block, align)) = self.remove(which) {
                    let size = block.size;
                    // SAFETY: the block is in use, of this size and alignment, and not used again.
                    unsafe { heap::free_sized(block.into_raw(), size, align) };
                }
            }
            Op::Trim(keep) => {
                heap::trim(keep);
            }
        }
    }
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn any_order_of_calls_keeps_blocks_apart_and_intact(ops in prop::collection::vec(op(), 1..120)) {
        let mut world = World::default();
        for op in &ops {
            world.apply(op);
        }
        let now = stats();
        prop_assert_eq!(now.live_blocks, world.blocks.len() as u64);
        let usable = world.blocks.iter().map(|(block, _)| block.usable() as u64).sum::<u64>();
        prop_assert_eq!(now.live_bytes, usable);
        for (block, _) in world.blocks {
            block.free();
        }
        let end = stats();
        prop_assert_eq!((end.live_blocks, end.live_bytes), (0, 0));
    }
}
