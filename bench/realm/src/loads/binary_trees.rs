//! binary-trees, of the Computer Language Benchmarks Game: complete trees without values come and
//! go. Trees of each depth have about the same number of nodes in total.
//!
//! A deeper tree stretches the heap and is dropped, and one tree stays to the end. No store changes
//! an existing node: the load measures only allocation and finding dead objects.

use super::Collector;

const LEAST: u32 = 4;

pub(crate) trait BinaryTrees {
    /// Builds a tree from the bottom up, counts its nodes and drops it.
    fn short_lived(&mut self, depth: u32) -> u64;

    /// Builds a tree that stays.
    fn keep(&mut self, depth: u32);

    /// Counts the nodes of that tree.
    fn count_kept(&mut self) -> u64;

    fn collector(&self) -> Option<Collector> {
        None
    }
}

pub(crate) fn work(trees: &mut impl BinaryTrees, depth: u32) -> u64 {
    let mut checksum = trees.short_lived(depth + 1);
    trees.keep(depth);
    for short in (LEAST..=depth).step_by(2) {
        let times = 1 << (depth - short + LEAST);
        let nodes: u64 = (0..times).map(|_| trees.short_lived(short)).sum();
        checksum = checksum.wrapping_mul(31).wrapping_add(nodes);
    }
    checksum.wrapping_mul(31).wrapping_add(trees.count_kept())
}
