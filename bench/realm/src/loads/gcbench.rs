//! GCBench, by Ellis, Kovac and Boehm: binary trees of many lifetimes. `bench/gc/loads/gcbench.c`
//! measures the same through the C interface.
//!
//! A tree stretches the heap and is dropped. A smaller tree and an array of numbers stay to the
//! end. Then trees of every second depth come and go. They are built from the top down (stores into
//! existing nodes, through a cell) and from the bottom up. Nodes have two numbers that never
//! change.

use super::Collector;

/// The least depth.
const LEAST: u32 = 4;

/// The operations of a peer. A dropped tree returns a small proof that it existed: 1 if the root's
/// left child has a right child.
pub(crate) trait GcBench {
    /// Builds a tree, parents before children, and drops it.
    fn top_down(&mut self, depth: u32) -> u64;

    /// Builds a tree, children before parents, and drops it.
    fn bottom_up(&mut self, depth: u32) -> u64;

    /// Builds a tree from the top down, and an array of `length` [`value`]s; both stay.
    fn keep(&mut self, depth: u32, length: usize);

    /// Returns the nodes of the kept tree plus the kept numbers that are [`right`].
    fn count_kept(&mut self) -> u64;

    /// Returns the counts of the peer's collector, if it has any.
    fn collector(&self) -> Option<Collector> {
        None
    }
}

/// Returns the number at a place of the array.
pub(crate) fn value(at: usize) -> f64 {
    1.0 / (at + 1) as f64
}

/// Returns the number of unchanged values.
pub(crate) fn right(values: &[f64]) -> u64 {
    values.iter().enumerate().map(|(at, &found)| u64::from(found == value(at))).sum()
}

/// Returns the number of nodes of a tree.
fn nodes(depth: u32) -> u64 {
    (2 << depth) - 1
}

/// Runs the load.
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
