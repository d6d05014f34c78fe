//! binary-trees, of the Computer Language Benchmarks Game: complete trees without values come
//! and go, as many of each depth as have about the same number of nodes together.
//!
//! A tree one level deeper than all others stretches the heap and is dropped; a tree of the
//! greatest depth stays to the end. Nothing is ever stored into a node that exists: this is
//! allocation, and finding out what is dead, and nothing else.

use super::Collector;

/// The least depth.
const LEAST: u32 = 4;

/// What a peer does.
pub(crate) trait BinaryTrees {
    /// Builds a tree from the bottom up, counts its nodes and lets go of it.
    fn short_lived(&mut self, depth: u32) -> u64;

    /// Builds a tree that stays.
    fn keep(&mut self, depth: u32);

    /// Counts the nodes of that tree.
    fn count_kept(&mut self) -> u64;

    /// What the peer's collector did, if it says so.
    fn collector(&self) -> Option<Collector> {
        None
    }
}

/// The load.
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
