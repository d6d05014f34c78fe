//! `check` makes a test fail that misuses the heap or leaks blocks.
//!
//! ```text
//!   begin   a scope for this thread and those it starts (see `scope`)
//!   run     the closure; a panic passes through
//!   judge   a sweep: writes to bytes that must not change
//!           findings of the scope?           \
//!           blocks of the scope still live,   > panic
//!           which nothing leads to (`reach`)? /
//!   tell    with the feature `symbols`: the same with functions and lines (see `symbols`)
//! ```
//!
//! A leak is a block that nothing outside the closure leads to: no `static`, thread-local, variable
//! of the caller, or result of the closure. Blocks that std keeps for later are no leaks, either.

use core::fmt;
use core::mem::ManuallyDrop;

use heapwright_record::debug::Call;

use crate::os;

use super::HEAPS;
use super::reach::Suspects;
use super::scope::{Entered, MOST};

/// The longest wait, in milliseconds, for threads to end. Scoped threads free some blocks late.
const PATIENCE: usize = 2000;
/// The longest wait for an outside thread to free a block it received, in milliseconds.
const HURRY: usize = 100;

/// Runs `closure` and returns its result; panics if the closure misuses a block or leaks one. The
/// check covers the calling thread, and all threads that the closure and these threads start.
///
/// `check` watches every [`DebugHeap`](super::DebugHeap) and [`Checked`](super::Checked) of the
/// program, so make such a heap the `#[global_allocator]`. Mistakes of other threads do not count,
/// so tests can run at once. Checks nest: the outer one also sees the mistakes of the inner one.
///
/// # Complexity
///
/// Takes the closure's time, plus time in proportion to the heap for a sweep. If blocks are left,
/// `check` also reads the whole heap. Then it waits at most two seconds for threads of the closure.
/// For other threads, which may have received a block, it waits a tenth of a second.
///
/// # Limits of the search
///
/// A block counts as a leak if only the stack of a thread from outside leads to it. Linux hands a
/// thread's timer slack to its children, and `check` recognises threads by it. A thread that sets
/// its own slack is not recognised. On other systems `check` watches only the calling thread.
///
/// # Panics
///
/// Panics if `check` found a mistake or a leak, after a report on standard error (unless the
/// configuration is `quiet`). With the feature `symbols`, `check` reports again, with functions and
/// lines. Also panics if no debug heap is in use, or if more than 127 checks run at a time. A panic
/// of the closure passes through.
///
/// ```
/// use heapwright::debug::{Config, DebugHeap, check};
///
/// #[global_allocator]
/// static HEAP: DebugHeap = DebugHeap::new(Config { quiet: true, ..Config::DEFAULT });
///
/// let words = check(|| {
///     let lines = std::thread::spawn(|| vec!["one two", "three"]).join().unwrap();
///     lines.join(" ").split(' ').map(String::from).collect::<Vec<_>>()
/// });
/// assert_eq!(words, ["one", "two", "three"]);
///
/// let leaks = std::panic::catch_unwind(|| check(|| std::mem::forget(Box::new(7))));
/// assert!(leaks.is_err());
/// ```
#[track_caller]
pub fn check<R>(closure: impl FnOnce() -> R) -> R {
    let Some(entered) = Entered::begin() else {
        panic!("heapwright::debug::check: more than {} checks run at a time", MOST - 1);
    };
    let closure = ManuallyDrop::new(closure);
    // SAFETY: the closure is not used again, nor dropped.
    let result = unsafe { run(&raw const *closure) };
    // The stack above `result` belongs to the callers.
    judge(entered, (&raw const result).addr());
    result
}

/// Runs a copy of the closure in its own frame, so its captured variables lie below the result.
///
/// # Safety
///
/// The closure is valid, and no code uses it afterwards.
#[inline(never)]
unsafe fn run<R, F: FnOnce() -> R>(closure: *const F) -> R {
    // SAFETY: the caller promises that the closure is valid and not used afterwards.
    let closure = unsafe { closure.read() };
    closure()
}

#[inline(never)]
#[track_caller]
fn judge(entered: Entered, stack: usize) {
    let mut is_watched = false;
    for heap in HEAPS.all() {
        if heap.is_in_use() {
            is_watched = true;
            heap.sweep_all(Call::Sweep);
            super::checked::sweep(heap, Call::Sweep);
        }
    }
    let (blocks, bytes) = left(&entered, stack);
    let threads = if blocks > 0 && entered.has_threads() {
        "; threads that it started still run: join them"
    } else {
        ""
    };
    let (findings, last) = entered.findings();
    let mistakes = findings - u32::try_from(blocks).unwrap_or(0).min(findings);
    #[cfg(feature = "symbols")]
    let taken = super::symbols::take(entered.id);
    // Blocks of the panic itself belong to no scope.
    drop(entered);
    #[cfg(feature = "symbols")]
    super::symbols::tell(&taken);
    assert!(
        is_watched,
        "heapwright::debug::check: no debug heap is in use: make a DebugHeap the #[global_allocator]"
    );
    let left = Left { blocks, bytes, threads };
    let last = (blocks == 0).then(|| last.word());
    let found = Mistakes { count: mistakes, last };
    match (mistakes, blocks) {
        (0, 0) => {}
        (0, _) => panic!("heapwright::debug::check: {left}"),
        (_, 0) => panic!("heapwright::debug::check: {found}"),
        _ => panic!("heapwright::debug::check: {found}, and {left}"),
    }
}

struct Left {
    blocks: usize,
    bytes: usize,
    threads: &'static str,
}

impl fmt::Display for Left {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { blocks, bytes, threads } = self;
        match blocks {
            1 => write!(out, "1 block of {bytes} bytes was not freed{threads}"),
            _ => write!(out, "{blocks} blocks, together {bytes} bytes, were not freed{threads}"),
        }
    }
}

struct Mistakes {
    count: u32,
    last: Option<&'static str>,
}

impl fmt::Display for Mistakes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.count, self.last) {
            (1, None) => out.write_str("1 mistake was found"),
            (1, Some(last)) => write!(out, "1 mistake was found: {last}"),
            (count, None) => write!(out, "{count} mistakes were found"),
            (count, Some(last)) => write!(out, "{count} mistakes were found, the last one: {last}"),
        }
    }
}

/// Reports each leaked block. Returns their number and their bytes.
fn left(entered: &Entered, stack: usize) -> (usize, usize) {
    let found = || {
        let mut suspects = Suspects::of(entered.id)?;
        suspects.follow(entered.id, stack);
        if suspects.unreached().next().is_none() { None } else { Some(suspects) }
    };
    let Some(mut suspects) = found() else { return (0, 0) };
    for waited in 0..PATIENCE {
        if waited >= HURRY && !entered.has_threads() {
            break;
        }
        os::nap();
        if !suspects.unreached().any(|suspect| suspect.is_live()) {
            return (0, 0);
        }
    }
    // The search is repeated, because a thread may have stored its blocks in reach.
    let Some(mut suspects) = found() else { return (0, 0) };
    let (mut blocks, mut bytes) = (0, 0);
    for suspect in suspects.unreached() {
        suspect.report();
        blocks += 1;
        bytes += suspect.size;
    }
    (blocks, bytes)
}
