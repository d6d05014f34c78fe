//! `check`: a test fails that misuses the heap, or leaves blocks behind.
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
//! A leak is a block that nothing outside leads to: what the closure puts into a
//! `static`, a thread-local, a variable of its caller's or its result is not one, nor
//! is what std keeps for later (a stream's buffer, a captured output).

use core::fmt;
use core::mem::ManuallyDrop;

use heapwright_record::debug::Call;

use crate::os;

use super::HEAPS;
use super::reach::Suspects;
use super::scope::{Entered, MOST};

/// How long threads may take to end, in milliseconds. `std::thread::scope` returns
/// when their closures have, and what a thread frees last it frees after that.
const PATIENCE: usize = 2000;
/// How long a thread from outside may take to free what it was sent.
const HURRY: usize = 100;

/// Runs `closure` and panics if it does something wrong with a block, or leaves
/// blocks behind that nothing leads to any more, in this thread or in one that it
/// starts, and those start.
///
/// It watches every [`DebugHeap`](super::DebugHeap) and
/// [`Checked`](super::Checked) in the program, so one of these should be the
/// `#[global_allocator]`. What other threads do meanwhile does not count: tests can
/// run at once. Checks can be nested; the outer one sees what the inner one does.
///
/// Takes what the closure takes, and time in proportion to the heap: all of it is
/// looked after; where blocks are left, all of it is read, too. If threads of the
/// closure still run then, they are waited for, for two seconds at most, and other
/// threads that may have been sent a block for a tenth of a second.
///
/// Not a leak: what the closure returns, what it puts where its caller finds it, what a `static` or
/// a thread-local of this thread leads to. A block that a thread from outside keeps, and that
/// nothing but that thread's stack leads to, counts as one. Threads are known by their timer slack,
/// which Linux hands on: one that sets its own is not known. On other systems the closure's own
/// thread is watched alone.
///
/// # Panics
///
/// If a mistake was found or a block was left; what it was is reported on standard error
/// (unless the heap's configuration is `quiet`), with the feature `symbols` once more with
/// functions and lines, behind the check. If there is no debug heap, or more
/// than 127 checks run at a time. Where the closure panics, that panic passes on and
/// nothing is judged.
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
    // What lies above is the callers', and the result.
    judge(entered, (&raw const result).addr());
    result
}

/// Runs a copy of the closure, in a frame of its own: what it leaves in its captured
/// variables is below the result.
///
/// # Safety
///
/// The closure is valid, and nobody uses it afterwards.
#[inline(never)]
unsafe fn run<R, F: FnOnce() -> R>(closure: *const F) -> R {
    // SAFETY: the closure is valid, and nobody uses it afterwards, as the caller promises.
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
    // The panic's own blocks are nobody's.
    drop(entered);
    #[cfg(feature = "symbols")]
    super::symbols::tell(&taken);
    assert!(
        is_watched,
        "heapwright::debug::check: no debug heap is in use: make a DebugHeap the #[global_allocator]"
    );
    let left = Left { blocks, bytes, threads };
    // Where blocks were left, the last finding is one of those.
    let last = (blocks == 0).then(|| last.word());
    let found = Mistakes { count: mistakes, last };
    match (mistakes, blocks) {
        (0, 0) => {}
        (0, _) => panic!("heapwright::debug::check: {left}"),
        (_, 0) => panic!("heapwright::debug::check: {found}"),
        _ => panic!("heapwright::debug::check: {found}, and {left}"),
    }
}

/// Blocks that were not freed, in words.
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

/// Mistakes, in words.
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

/// How many blocks were left, and their bytes; each is reported.
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
    // Once more: the thread that had them may have put them where they are found.
    let Some(mut suspects) = found() else { return (0, 0) };
    let (mut blocks, mut bytes) = (0, 0);
    for suspect in suspects.unreached() {
        suspect.report();
        blocks += 1;
        bytes += suspect.size;
    }
    (blocks, bytes)
}
