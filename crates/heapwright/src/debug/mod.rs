//! The debug heap: it reports misuse of blocks, and does not slow down with age.
//!
//! The design follows Zig's `GeneralPurposeAllocator` and its pull request 17383. A bucket hands
//! out its slots in order. Two loads lead from a freed address to its bucket, even after the
//! bucket's memory went back to the kernel. Only pattern bytes lie beside the program's bytes.
//!
//! | mistake | found by |
//! |---|---|
//! | double free | the slot's state, for as long as the history remembers it |
//! | free of a pointer that is not a block's start | the address map and arithmetic |
//! | wrong call, size, alignment | a comparison with the slot's record |
//! | write beyond or before | the pattern in the slack: at free, in sweeps, at exit |
//! | write after free | the pattern in the block: in sweeps, before its memory is used again |
//! | any access to freed or neighbouring memory | guard pages, for a sample or for all |
//! | read of uninitialised bytes | two runs with other bytes there (option `fill`) are compared |
//!
//! ```
//! use heapwright::debug::{Config, DebugHeap};
//! use std::alloc::{GlobalAlloc, Layout};
//! let heap = DebugHeap::new(Config { quiet: true, ..Config::DEFAULT });
//! let layout = Layout::new::<[u8; 40]>();
//! // SAFETY: the layout's size is not zero.
//! let block = unsafe { heap.alloc(layout) };
//! // SAFETY: a mistake: one byte too far; the debug heap has room for it.
//! unsafe { block.add(40).write(0x41) };
//! // SAFETY: the block is ours.
//! unsafe { heap.dealloc(block, layout) };
//! assert_eq!(heap.findings(), 1);
//! assert_eq!(heap.deinit().blocks, 0);
//! ```

// This file holds all debug heaps, and their fork handlers. The modules:
//
//   process        the process's heap (mode=debug), which serves `malloc`
//     owned          its blocks in pools, arenas and first-class heaps of C
//   handle         DebugHeap, for Rust programs
//   guards         a few blocks of fast mode (guard=sample)
//   checked        Checked<A>: the same for another allocator's blocks
//     table          records by address, the quarantine                (one lock)
//   leaks          lost blocks, and the paths to the others   (`leak_check`: its sums)
//   check          a test's mistakes and leaks
//     scope          the threads of a test
//     reach          the blocks that pointers still lead to
//     symbols        functions and lines of findings
//   heap           allocate, free, realloc: judge, fill, verify, report
//     store          buckets opened, retired, remembered, used again   (one lock)
//       history        emptied buckets, while they are remembered
//       sparse         freed slots beside live ones, used again
//     thread_state   a thread's current buckets                        (no lock)
//       lifetime       which blocks share a bucket
//     sample         the blocks that stand between guards
//       budget         the time for such blocks
//       module_advance blocks of each library beyond the budget
//     flagged        sites of blocks that were damaged in an earlier run
//     span           the bucket, slot and block of an address, in O(1)
//       slot           24 bytes a slot: stacks, threads, sequence, size, how made
//       shape          slots, leads, buckets: arithmetic
//       poisoned       bytes of live blocks that must not be used for now
//       side           guarded memory for these records
//     bytes          the pattern around blocks and in freed ones
//   report         findings, on standard error and in the record
//     threads        numbers and names of threads
//   fault          accesses that a guard page caught
//     unprotect      removes a guard for one access

mod budget;
mod bytes;
mod check;
mod checked;
#[cfg_attr(any(test, feature = "observe"), allow(dead_code, reason = "tests observe faults"))]
mod fault;
mod flagged;
pub(crate) mod guards;
mod handle;
mod heap;
mod history;
mod leak_check;
#[cfg(all(target_os = "linux", not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
mod leaks;
#[cfg(not(all(
    target_os = "linux",
    not(miri),
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[path = "leaks_nowhere.rs"]
mod leaks;
mod lifetime;
mod owned;
mod poisoned;
mod process;
mod reach;
mod report;
mod sample;
mod scope;
mod shape;
mod side;
mod slot;
mod span;
mod sparse;
mod store;
#[cfg(feature = "symbols")]
mod symbols;
mod table;
mod thread_state;
mod threads;
#[cfg_attr(any(test, feature = "observe"), allow(dead_code, reason = "tests observe faults"))]
mod unprotect;

pub use crate::options::debug::{Config, Detect, Guard};
pub use check::check;
pub use checked::Checked;
pub use handle::{DebugHeap, Leaks};
pub use heapwright_record::debug::{Finding, FindingKind};
pub use leak_check::{Amount, LeakCheck};
pub use owned::{Owner, allocate_owned, free_owned, refuse_owned};
pub use process::check_leaks;

pub(crate) use heap::bounds::Asked;
#[cfg(not(any(test, feature = "observe")))]
pub(crate) use process::fault;
pub(crate) use process::{
    allocate, at_exit, begun, block_history, counts, forget_code, free, give_record,
    give_up_reserve, holds, is_guarded, is_interrupted, is_owned, keep, keep_new, lift_guards,
    live, looks_at_end, note_not_started, note_process, note_unchecked, out_of_bounds, poison,
    poisoned_bytes, prepare, put_guard_back, put_guards_back, realloc, remember_code, room, start,
    usable_size,
};

use crate::describe::{self, Front, Reader};
use crate::fork::{self, Part};
use crate::ids::{Recycled, Slot};
use heap::Heap;

static HEAPS: Recycled<Heap> = Recycled::new();

/// The initial value of a heap, copied because it is too large for a stack.
static FRESH: Heap = Heap::new();

fn take_heap() -> Option<&'static Slot<Heap>> {
    describe::read_with(Front::Debug, &READER);
    // SAFETY: no thread uses `FRESH`. A heap holds no pointer to itself and has no states, and zero
    // is a null pointer.
    unsafe { HEAPS.take_copy(&FRESH, Heap::STATES) }
}

static READER: Reader = Reader {
    read: |_head, address| {
        process::find_block(address.addr()).unwrap_or(describe::nothing(describe::Kind::Debug))
    },
};

static HANDLERS: fork::Handlers = fork::Handlers { before, unlock, in_child };

fn join_forks() {
    fork::join(Part::Debug, &HANDLERS);
}

fn before() {
    guards::before_fork();
    HEAPS.before_fork();
    HEAPS.all().for_each(Heap::before_fork);
}

/// # Safety
///
/// The call follows [`before`] in the forking thread or its copy in the child.
unsafe fn unlock() {
    for heap in HEAPS.all() {
        // SAFETY: this thread, or the one that it is a copy of, took the locks before the fork.
        unsafe { heap.after_fork() };
    }
    // SAFETY: this thread, or the one that it is a copy of, took these locks before the fork.
    unsafe { HEAPS.after_fork() };
    // SAFETY: this thread, or the one that it is a copy of, took the lock before the fork.
    unsafe { guards::after_fork() };
}

fn in_child(alone: bool) {
    HEAPS.all().for_each(|heap| heap.in_child(alone));
}

#[cfg(test)]
mod model;
mod module_advance;
#[cfg(test)]
mod tests;
