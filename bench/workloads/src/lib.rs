//! The programs that heapwright races memory allocators with.
//!
//! Each is modelled on something the field measures allocators by, written anew
//! and small: one file, one concept, one sentence on what it stands for. They
//! were fixed before heapwright was tuned, and are tuned for no allocator.
//!
//! What holds for all of them:
//! - *the same work every time*: chance comes from seeded generators, and the
//!   amount of work is a number, never a length of time;
//! - *the same answer everywhere*: the checksum is made of what was written into
//!   the blocks and read back, never of addresses, and where threads meet, of
//!   sums that do not care who came first. An allocator that loses, mixes up or
//!   hands out twice any memory gives another checksum;
//! - *memory is used*: blocks are written before they are freed;
//! - *a fixed number of threads*: what the workload is does not depend on the
//!   machine it runs on.
//!
//! At scale 1 each takes about half a second with glibc on a small machine;
//! scale N does N times the work (not with more live memory), and scale 0 is a
//! miniature for tests.
//!
//! `live_bytes` and `operations` are counts, not estimates: those that a
//! counting library saw, put in front of glibc's allocator with `LD_PRELOAD`,
//! rounded (`live_bytes` counts the bytes asked for, without the allocator's own
//! rounding, and what Rust's threads and containers need is part of both). For
//! workloads of several threads they differ a little from run to run, as the
//! threads meet differently.

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

/// A program to race allocators with.
#[derive(Debug)]
pub struct Workload {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it models in the field, and which property of an allocator it
    /// exercises: one sentence.
    pub stands_for: &'static str,
    /// The threads that work in it, on every machine.
    pub threads: u32,
    /// The most bytes it has asked for and not yet given back, at scale 1.
    pub live_bytes: u64,
    /// The blocks it asks for, resizes and gives back at scale 1.
    pub operations: u64,
    /// Does the work `scale` times over (0: a miniature) and answers a
    /// checksum, the same under every allocator.
    pub run: fn(scale: u32) -> u64,
}

/// All workloads, in the order in which tables list them.
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

/// The workload of this name.
pub fn find(name: &str) -> Option<&'static Workload> {
    ALL.iter().find(|workload| workload.name == name)
}

/// `full` things a scale, or the miniature's `tiny` ones.
fn scaled(scale: u32, full: usize, tiny: usize) -> usize {
    if scale == 0 { tiny } else { full * scale as usize }
}

/// `full` things at any scale, or the miniature's `tiny` ones.
fn sized(scale: u32, full: usize, tiny: usize) -> usize {
    if scale == 0 { tiny } else { full }
}

/// What a thread answered; its panic is the workload's own.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

#[cfg(test)]
mod tests;
