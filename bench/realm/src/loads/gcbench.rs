//! GCBench, by Ellis, Kovac and Boehm: binary trees of many lifetimes, as in
//! `bench/gc/loads/gcbench.c`, which measures the same through the C door.
//!
//! A tree stretches the heap and is dropped; a smaller one and an array of numbers stay to the
//! end; then trees of every second depth come and go, built from the top down (a store into a
//! node that exists, through a cell) and from the bottom up. Nodes have two numbers that
//! nobody changes.

use super::Collector;

/// The least depth.
const LEAST: u32 = 4;

/// What a peer does. Of a tree that is dropped it says a little, so that there has to be one:
/// 1 if the node at its left has one at its right.
pub(crate) trait GcBench {
    /// Builds a tree, each node before those below it, and lets go of it.
    fn top_down(&mut self, depth: u32) -> u64;

    /// Builds a tree, each node after those below it, and lets go of it.
    fn bottom_up(&mut self, depth: u32) -> u64;

    /// Builds a tree from the top down, and an array of so many [`value`]s; both stay.
    fn keep(&mut self, depth: u32, length: usize);

    /// How many nodes that tree has, and how many of those numbers are [`right`].
    fn count_kept(&mut self) -> u64;

    /// What the peer's collector did, if it says so.
    fn collector(&self) -> Option<Collector> {
        None
    }
}

/// The number at a place of the array.
pub(crate) fn value(at: usize) -> f64 {
    1.0 / (at + 1) as f64
}

/// How many numbers are what they were.
pub(crate) fn right(values: &[f64]) -> u64 {
    values.iter().enumerate().map(|(at, &found)| u64::from(found == value(at))).sum()
}

/// The nodes of a tree.
fn nodes(depth: u32) -> u64 {
    (2 << depth) - 1
}

/// The load.
pub(crate) fn work(trees: &mut impl GcBench, depth: u32) -> u64 {
    let mut checksum = trees.bottom_up(depth + 2);
    trees.keep(depth, 1 << (depth + 3));
    for short in (LEAST..=depth).step_by(2) {
        let times = 2 * nodes(depth + 2) / nodes(short);
        checksum += (0..times).map(|_| trees.top_down(short)).sum::<u64>();
        checksum += (0..times).map(|_| trees.bottom_up(short)).sum::<u64>();
    }
    checksum.wrapping_mul(31).wrapping_add(trees.count_kept())
}
