//! Binary trees, built and torn down, beside one that stays.
//!
//! The model is the classic benchmark of garbage collection (Ellis, Kovac and Boehm's GCBench; the
//! "binary-trees" of the Benchmarks Game). One large tree lives through the whole run. Smaller ones
//! of several depths come and go. All nodes have one size, and a whole tree is freed in the order
//! of a walk. The workload shows whether thousands of freed neighbours are reused densely.
//!
//! Life cycle: 2^20 nodes of 32 bytes stay; trees of 2^5 to 2^17 nodes live only while they are
//! built and walked.

use crate::checksum::fold;
use crate::{Workload, scaled, sized};
use std::hint::black_box;

pub(crate) const WORKLOAD: Workload = Workload {
    name: "tree",
    stands_for: "Compilers and interpreters with trees of equal nodes, built and dropped beside a \
                 large one that stays: small blocks of one size in batches, and the density of \
                 their reuse.",
    threads: 1,
    live_bytes: 37_750_000,
    operations: 17_700_000,
    run,
};

struct Node {
    left: Option<Box<Node>>,
    right: Option<Box<Node>>,
    key: u64,
    weight: u64,
}

fn run(scale: u32) -> u64 {
    let stays = build(sized(scale, 20, 8) as u32, 1);
    let mut sum = 0;
    for round in 0..scaled(scale, 12, 1) {
        for depth in (5..=sized(scale, 17, 7) as u32).step_by(3) {
            for tree in 0..1usize << (sized(scale, 17, 7) as u32 - depth) {
                let tree = build(depth, (round + tree) as u64);
                sum = fold(sum, walk(&tree));
            }
        }
    }
    fold(sum, walk(&stays))
}

fn build(depth: u32, key: u64) -> Option<Box<Node>> {
    if depth == 0 {
        return None;
    }
    let left = build(depth - 1, key.wrapping_mul(2));
    let right = build(depth - 1, key.wrapping_mul(2).wrapping_add(1));
    Some(black_box(Box::new(Node { left, right, key, weight: u64::from(depth) })))
}

fn walk(tree: &Option<Box<Node>>) -> u64 {
    match tree {
        Some(node) => {
            fold(node.key.wrapping_add(walk(&node.left)), node.weight ^ walk(&node.right))
        }
        None => 1,
    }
}
