//! GCBench, by Ellis, Kovac and Boehm: binary trees of many lifetimes, as
//! `bench/gc/loads/gcbench.c` for the C interface.
//!
//! A tree stretches the heap and is dropped. A smaller tree and an array of numbers stay to the
//! end. Then trees of every second depth come and go, built from the top down (stores into existing
//! nodes) and from the bottom up.

use super::Collector;

const LEAST: u32 = 4;

/// A dropped tree returns 1 if the root's left child has a right child.
pub(crate) trait GcBench {
    /// Builds a tree, parents before children, and drops it.
    fn top_down(&mut self, depth: u32) -> u64;

    /// Builds a tree, children before parents, and drops it.
    fn bottom_up(&mut self, depth: u32) -> u64;

    /// Builds a tree from the top down, and an array of `length` [`value`]s; both stay.
    fn keep(&mut self, depth: u32, length: usize);

    /// Returns the nodes of the kept tree plus the kept numbers that are [`right`].
    fn count_kept(&mut self) -> u64;

    fn collector(&self) -> Option<Collector> {
        None
    }
}

pub(crate) fn value(at: usize) -> f64 {
    1.0 / (at + 1) as f64
}

pub(crate) fn right(values: &[f64]) -> u64 {
    values.iter().enumerate().map(|(at, &found)| u64::from(found == value(at))).sum()
}

fn nodes(depth: u32) -> u64 {
    (2 << depth) - 1
}

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
