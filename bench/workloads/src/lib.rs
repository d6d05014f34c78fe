//! The programs of heapwright's race of memory allocators.
//!
//! Most programs follow a benchmark of the field, rewritten and small. The programs were fixed
//! before heapwright was tuned.
//!
//! Common to all of them:
//! - *the same work every time*: random numbers come from seeded generators, and the amount of work
//!   is a number, never a length of time;
//! - *the same answer everywhere*: the checksum depends on the bytes that were written and read
//!   back, never on addresses or the order of threads. An allocator that loses memory, mixes it up
//!   or hands it out twice gives another checksum;
//! - *memory is used*: blocks are written before they are freed;
//! - *a fixed number of threads*: the workload does not depend on the machine.
//!
//! At scale 1 each but `empty` takes about half a second with glibc on a small machine. Scale N
//! does N times the work (with the same live memory), and scale 0 is a miniature for tests.
//!
//! A counting library in front of glibc's allocator (`LD_PRELOAD`) took `live_bytes` and
//! `operations`, which are rounded. Both include the needs of Rust's threads and containers, and
//! differ a little from run to run with several threads.

mod checksum;
mod letters;
mod memory;
mod random;

mod alloc_test;
mod barnes;
mod burst;
mod cache;
mod cfrac;
mod crowd;
mod empty;
mod espresso;
mod fragment;
mod large;
mod larson;
mod mstress;
mod random_frees;
mod realloc;
mod rptest;
mod strings;
mod threads;
mod tree;
mod xmalloc;

use std::thread::ScopedJoinHandle;

/// A program of the race.
#[derive(Debug)]
pub struct Workload {
    /// The name on the command line.
    pub name: &'static str,
    /// The programs that it stands for, and what it shows of an allocator: one sentence.
    pub stands_for: &'static str,
    /// The threads that work in it, on every machine.
    pub threads: u32,
    /// The most live bytes, as requested, at scale 1.
    pub live_bytes: u64,
    /// The blocks that it allocates, resizes and frees at scale 1.
    pub operations: u64,
    /// Does the work `scale` times (0: a miniature). Returns a checksum, which is the same under
    /// every allocator.
    pub run: fn(scale: u32) -> u64,
}

/// All workloads, in the order of tables.
pub const ALL: &[Workload] = &[
    empty::WORKLOAD,
    cfrac::WORKLOAD,
    espresso::WORKLOAD,
    barnes::WORKLOAD,
    tree::WORKLOAD,
    strings::WORKLOAD,
    alloc_test::ONE_THREAD,
    alloc_test::FOUR_THREADS,
    random_frees::WORKLOAD,
    large::WORKLOAD,
    realloc::WORKLOAD,
    fragment::WORKLOAD,
    larson::ONE,
    larson::FEW,
    larson::MANY,
    larson::MOST,
    xmalloc::WORKLOAD,
    rptest::WORKLOAD,
    mstress::WORKLOAD,
    threads::WORKLOAD,
    burst::WORKLOAD,
    crowd::WORKLOAD,
    cache::SCRATCH,
    cache::THRASH,
];

/// Returns the workload of this name.
pub fn find(name: &str) -> Option<&'static Workload> {
    ALL.iter().find(|workload| workload.name == name)
}

/// Returns `full` for each scale, or the miniature's `tiny`.
fn scaled(scale: u32, full: usize, tiny: usize) -> usize {
    if scale == 0 { tiny } else { full * scale as usize }
}

/// Returns `full` at any scale, or the miniature's `tiny`.
fn sized(scale: u32, full: usize, tiny: usize) -> usize {
    if scale == 0 { tiny } else { full }
}

/// Returns a thread's result; its panic is the workload's own.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

#[cfg(test)]
mod tests;
