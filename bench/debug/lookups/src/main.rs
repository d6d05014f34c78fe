//! The program of Zig's PR #17383 on debug heaps of ours, whose way to find the
//! bucket of an address is chosen.
//!
//! ```text
//! debug-lookups POLICY ROUNDS [ALL [SLOTS]]     POLICY: list, treap, current, map
//! ```
//!
//! As `rounds.c`: a round makes as many blocks of 128 bytes as a bucket has slots
//! and frees all but the first; after ROUNDS rounds the survivors are freed, in the
//! order they were made. SLOTS is how many slots a bucket may have, 32 as in the PR
//! unless it is given; `own` are as many as the library gives it by itself.
//!
//! There are ALL / ROUNDS heaps, which take turns, a round each: so runs with the
//! same ALL have the same memory under them, from the processor's caches to the
//! kernel's pages, and only what a policy searches is of another size. ALL is
//! ROUNDS unless it is given. The first pass over all of it is not counted: it gets
//! the memory. No stacks, no guards, no fills or checks of bytes: what is left is the
//! heap's own work and the search.
//!
//! Prints the processor's nanoseconds a round, its share of the last frees included
//! (`round_ns`), those of one of the last frees (`free_ns`), and, for each survivor
//! there was, bytes of records, the policy's nodes among them, when all was freed.
//! Asserts that nothing leaks and nothing is found.

use std::alloc::{GlobalAlloc as _, Layout};
use std::hint::black_box;
use std::process::ExitCode;

use heapwright::debug::{Config, DebugHeap, Detect, Guard, Leaks, Lookup};

const USAGE: &str = "usage: debug-lookups list|treap|current|map ROUNDS [ALL [SLOTS|own]]";
const BLOCK: Layout = Layout::new::<[u8; 128]>();
/// The PR's slots a bucket.
const SLOTS: usize = 32;

fn make(heap: &DebugHeap) -> *mut u8 {
    // SAFETY: the size is not zero.
    let block = unsafe { heap.alloc(black_box(BLOCK)) };
    assert!(!block.is_null(), "no memory");
    block
}

fn free(heap: &DebugHeap, block: *mut u8) {
    // SAFETY: made with this layout, and freed once.
    unsafe { heap.dealloc(block, black_box(BLOCK)) }
}

/// How many slots the buckets of such blocks have: blocks until a second one opens.
fn slots_a_bucket(config: Config) -> usize {
    let heap = DebugHeap::new(config);
    let mut blocks = Vec::new();
    while heap.buckets().0 < 2 {
        blocks.push(make(&heap));
    }
    blocks.iter().for_each(|&block| free(&heap, block));
    assert_eq!(heap.deinit(), Leaks::default());
    blocks.len() - 1
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

/// One pass: `survivors` are the heaps' in turn.
fn pass(heaps: &[DebugHeap], survivors: &mut [*mut u8], slots: &mut [*mut u8]) -> Spent {
    let start = now();
    for (heap, survivor) in heaps.iter().cycle().zip(survivors.iter_mut()) {
        slots.iter_mut().for_each(|slot| *slot = make(heap));
        *survivor = slots[0];
        slots[1..].iter().for_each(|&slot| free(heap, slot));
    }
    let between = now();
    for (heap, &survivor) in heaps.iter().cycle().zip(survivors.iter()) {
        free(heap, survivor);
    }
    Spent { rounds: between - start, frees: now() - between }
}

/// What instructions are counted of: callgrind is told this name.
#[unsafe(no_mangle)]
#[inline(never)]
fn measured(heaps: &[DebugHeap], survivors: &mut [*mut u8], slots: &mut [*mut u8]) -> Spent {
    pass(heaps, survivors, slots)
}

fn run(arguments: &[String]) -> Option<()> {
    let [policy, rounds, rest @ ..] = arguments else { return None };
    let lookup = match policy.as_str() {
        "list" => Lookup::List,
        "treap" => Lookup::Treap,
        "current" => Lookup::TreapCurrentFirst,
        "map" => Lookup::Map,
        _ => return None,
    };
    let rounds: usize = rounds.parse().ok().filter(|&rounds| rounds > 0)?;
    let all = match rest.first() {
        Some(all) => all.parse().ok()?,
        None => rounds,
    };
    let count = (all / rounds).max(1);
    let slots = match rest.get(1).map(String::as_str) {
        Some("own") => Config::DEFAULT.slots,
        Some(slots) => slots.parse().ok().filter(|&slots| slots > 1)?,
        None => SLOTS,
    };
    let config = Config {
        traces: 0,
        guard: Guard::Never,
        detect: Detect { fill: false, canary: false, ..Detect::ALL },
        slots,
        quiet: true,
        lookup,
        ..Config::DEFAULT
    };
    let a_bucket = slots_a_bucket(config);

    let heaps: Vec<DebugHeap> = (0..count).map(|_| DebugHeap::new(config)).collect();
    let mut survivors = vec![std::ptr::null_mut(); rounds * count];
    let mut slots = vec![std::ptr::null_mut(); a_bucket];
    pass(&heaps, &mut survivors, &mut slots);
    let spent = measured(&heaps, &mut survivors, &mut slots);
    let after: usize = heaps.iter().map(|heap| heap.buckets().1).sum();
    for heap in heaps {
        assert_eq!((heap.findings(), heap.deinit()), (0, Leaks::default()));
    }

    let all = (rounds * count) as f64;
    println!("figure rounds {rounds}");
    println!("figure round_ns {:.1}", (spent.rounds + spent.frees) / all);
    println!("figure free_ns {:.1}", spent.frees / all);
    println!("figure record_bytes {:.1}", after as f64 / all);
    println!("all freed, {a_bucket} slots a bucket");
    Some(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Some(()) => ExitCode::SUCCESS,
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
