//! Ways to find the bucket of an address, on what the program of Zig's PR #17383 asks of
//! them.
//!
//! ```text
//! debug-lookups POLICY ROUNDS [ALL]
//!
//!   POLICY     a bucket is found by              opened, emptied        was
//!   list       walking its class, newest first   linked, unlinked       Zig before PR #17383
//!   treap      descending in its class's tree    descended, rotated     the PR
//!   current    the class's newest; the treap     as the treap           the PR's follow-up
//!   map        a table of units: two loads       a byte is written      heapwright's way
//!   heap       heapwright's `DebugHeap`, all of its work with the search in it
//! ```
//!
//! As `rounds.c`: a round makes as many blocks of 128 bytes as a bucket has slots and
//! frees all but the first; after ROUNDS rounds the survivors are freed, in the order
//! they were made. `heap` does this. The others are structures with no heap around them
//! and are asked what such a heap asks: a round opens a bucket and looks up each of its
//! slots but the first, the last frees look each bucket up and empty it. Buckets are
//! 8 KiB, one behind the other. That each answer is right is asserted.
//!
//! There are ALL / ROUNDS structures, which take turns, a round each: so runs with the
//! same ALL have the same memory under them, and only what a policy searches is of
//! another size. ALL is ROUNDS unless it is given. The first pass over all of it is not
//! counted: it gets the memory.
//!
//! Prints the processor's nanoseconds a round, its share of the last frees included
//! (`round_ns`), those of one of the last frees (`free_ns`), and bytes of the structure,
//! when all was freed, for each survivor there was (`record_bytes`; of `heap`: of all its
//! records).

mod heap;
mod list;
mod map;
mod nodes;
#[cfg(test)]
mod tests;
mod treap;

use std::hint::black_box;
use std::process::ExitCode;

const USAGE: &str = "usage: debug-lookups list|treap|current|map|heap ROUNDS [ALL]";
/// The PR's slots a bucket.
const SLOTS: usize = 32;
const SLOT_BYTES: usize = 128;
/// The slots and what is beside them, in whole pages.
const BUCKET_BYTES: usize = 8 << 10;
/// Where the first bucket is, a multiple of a unit.
const BASE: usize = 1 << 40;

/// Where a bucket starts.
fn start_of(bucket: u32) -> usize {
    BASE + bucket as usize * BUCKET_BYTES
}

/// Where a slot of a bucket starts.
fn slot_of(bucket: u32, slot: usize) -> usize {
    start_of(bucket) + (slot + 1) * SLOT_BYTES
}

/// The open buckets of one class.
trait Policy {
    /// None is open, of so many.
    fn new(buckets: usize) -> Self;
    /// Notes a bucket that was opened.
    fn open(&mut self, bucket: u32);
    /// The open bucket that an address is in.
    fn find(&mut self, address: usize) -> Option<u32>;
    /// Takes the bucket that an address is in out.
    fn empty(&mut self, address: usize) -> Option<u32>;
    /// Bytes of all of it.
    fn bytes(&self) -> usize;
}

/// Who can run the program.
trait Rounds {
    /// One for so many rounds.
    fn new(rounds: usize) -> Self;
    /// The round with this number.
    fn round(&mut self, number: u32);
    /// Frees what survived the round with this number.
    fn last_free(&mut self, number: u32);
    /// Bytes, for `record_bytes`.
    fn bytes(&self) -> usize;
    /// All was freed.
    fn end(self);
}

/// A policy, asked what a heap would ask.
struct Asked<P>(P);

impl<P: Policy> Rounds for Asked<P> {
    fn new(rounds: usize) -> Self {
        Self(P::new(rounds))
    }

    fn round(&mut self, number: u32) {
        self.0.open(number);
        for slot in 1..SLOTS {
            assert_eq!(self.0.find(black_box(slot_of(number, slot))), Some(number));
        }
    }

    fn last_free(&mut self, number: u32) {
        assert_eq!(self.0.empty(black_box(slot_of(number, 0))), Some(number));
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn end(mut self) {
        assert_eq!(self.0.find(slot_of(0, 0)), None);
    }
}

/// Processor time of this thread, in nanoseconds: others on the machine take none.
fn now() -> f64 {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `at` is a place for the answer.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut at) };
    assert_eq!(failed, 0, "a thread has a clock");
    at.tv_sec as f64 * 1e9 + at.tv_nsec as f64
}

/// Nanoseconds.
struct Spent {
    rounds: f64,
    frees: f64,
}

/// One pass over all.
fn pass<R: Rounds>(all: &mut [R], rounds: u32) -> Spent {
    let start = now();
    for number in 0..rounds {
        all.iter_mut().for_each(|one| one.round(number));
    }
    let between = now();
    for number in 0..rounds {
        all.iter_mut().for_each(|one| one.last_free(number));
    }
    Spent { rounds: between - start, frees: now() - between }
}

/// What instructions are counted of: callgrind is given this name.
#[unsafe(no_mangle)]
#[inline(never)]
fn measured(pass: &mut dyn FnMut() -> Spent) -> Spent {
    pass()
}

fn run<R: Rounds>(rounds: u32, count: usize) {
    let mut heaps: Vec<R> = (0..count).map(|_| R::new(rounds as usize)).collect();
    pass(&mut heaps, rounds);
    let spent = measured(&mut || pass(&mut heaps, rounds));
    let bytes: usize = heaps.iter().map(R::bytes).sum();
    heaps.into_iter().for_each(R::end);

    let all = f64::from(rounds) * count as f64;
    println!("figure rounds {rounds}");
    println!("figure round_ns {:.1}", (spent.rounds + spent.frees) / all);
    println!("figure free_ns {:.1}", spent.frees / all);
    println!("figure record_bytes {:.1}", bytes as f64 / all);
    println!("all freed");
}

fn understood(arguments: &[String]) -> Option<()> {
    let [policy, rounds, rest @ ..] = arguments else { return None };
    let rounds: u32 = rounds.parse().ok().filter(|&rounds| rounds > 0)?;
    let count = match rest {
        [] => 1,
        [all] => (all.parse::<usize>().ok()? / rounds as usize).max(1),
        _ => return None,
    };
    match policy.as_str() {
        "list" => run::<Asked<nodes::Listed>>(rounds, count),
        "treap" => run::<Asked<nodes::InTreap<false>>>(rounds, count),
        "current" => run::<Asked<nodes::InTreap<true>>>(rounds, count),
        "map" => run::<Asked<map::Map>>(rounds, count),
        "heap" => run::<heap::Heap>(rounds, count),
        _ => return None,
    }
    Some(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match understood(&arguments) {
        Some(()) => ExitCode::SUCCESS,
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
