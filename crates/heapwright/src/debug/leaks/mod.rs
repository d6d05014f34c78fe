//! Leak checks find blocks that the program has lost, and the paths to the other blocks.
//!
//! ```text
//!   at exit, at a signal, at a call                          while it runs, now and then
//!     | locks of the heap                                      |
//!     | hold: each thread publishes its registers              count: live blocks by stack
//!     | copy of the process; the program goes on               |
//!     v                                                        v
//!   index    a number for each slot                          groups
//!   roots    the program's pointers                            |
//!   mark     the blocks that pointers lead to                  |
//!   groups   blocks of one stack and one result                |
//!     \-> record file, standard error  <----------------------/
//! ```
//!
//! A check uses a copy of the process (`os`: `standstill`). The copy is like the kernel's `fork`,
//! but the program cannot notice it by a thread, handler or signal. The copy needs no special
//! rights. The program stops only while its threads answer and the kernel copies its page tables. A
//! process of one thread is not copied at its end, because it no longer changes.
//!
//! At its exit a forked child reads its parent's blocks, but does not report them. It reports its
//! own blocks, or all blocks if the parent has ended.
//!
//! | reported as | but is | when |
//! |---|---|---|
//! | reachable | lost | a number looks like its address; a live stack frame holds a stale pointer |
//! | lost | reachable | the only pointer is in the kernel (epoll, io_uring), unaligned or encoded |
//!
//! Called by `process`, and by `heap` when a bucket is opened or retired, and in a forked child.

mod groups;
mod heuristics;
mod index;
mod mark;
mod report;
mod request;
mod roots;
mod timeline;
mod zeroed;

use core::ops::Range;
use core::{hint, ptr, slice};

use heapwright_record::debug::{Entry, NO_LEAK_CHECK, Note, Occasion, Reach, Sample};

use crate::os::{self, Answer, ProcMem};
use crate::stacks;
use crate::substrate;
use crate::sync::Lock;
use crate::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use crate::text::Line;

use super::heap::Heap;
use super::leak_check::{Amount, LeakCheck};
use super::report::Output;
use index::Index;
use mark::Marks;
use report::LeakReport;
use roots::{Caller, Roots};
use timeline::Timeline;
use zeroed::{Shelf, ZeroedArray};

pub(super) use request::{prepare, tick};

/// The longest wait for a copy, in milliseconds.
const WAIT: u64 = 60_000;
/// A forked child's check at exit may cost 1/`CHILD_SHARE` of its life, or `CHILD_LEAST` ns.
const CHILD_SHARE: u64 = 4;
const CHILD_LEAST: u64 = 5_000_000;

/// Only one check runs at a time. A check uses this scratch instead of a state of the heap.
static ONE: Lock<Walker> = Lock::new(Walker(stacks::Scratch::new()));

struct Walker(stacks::Scratch);

// SAFETY: only the lock's holder uses the scratch, which refers to no thread's memory.
unsafe impl Send for Walker {}

static NUMBER: AtomicU32 = AtomicU32::new(0);
/// The id of the copy that still works, or 0.
static COPY: AtomicU32 = AtomicU32::new(0);
static TIMELINE: Lock<Timeline> = Lock::new(Timeline::new());
/// Bytes of thread-local variables below a thread's pointer and above it.
static THREAD_LOCAL: (AtomicUsize, AtomicUsize) = (AtomicUsize::new(0), AtomicUsize::new(0));

fn sum_of(found: &mut LeakCheck, reach: Reach) -> &mut Amount {
    match reach {
        Reach::Definite => &mut found.definite,
        Reach::Indirect => &mut found.indirect,
        Reach::Possible => &mut found.possible,
        _ => &mut found.reachable,
    }
}

struct Assignment {
    number: u32,
    occasion: Occasion,
    caller: Caller,
    answers: &'static [Answer],
    thread: u32,
    began: u64,
    /// A forked child reports blocks from this sequence number on.
    since: Option<u32>,
}

/// Returns heapwright's own data, if it is a module of its own.
fn own_module() -> Option<Range<usize>> {
    static START: AtomicUsize = AtomicUsize::new(0);
    static END: AtomicUsize = AtomicUsize::new(0);
    if END.load(Ordering::Acquire) == 0 {
        let range = stacks::own_module().unwrap_or(1..1);
        START.store(range.start, Ordering::Relaxed);
        END.store(range.end, Ordering::Release);
    }
    let (start, end) = (START.load(Ordering::Relaxed), END.load(Ordering::Relaxed));
    (start < end).then_some(start..end)
}

/// Checks the process's heap and waits. Returns `None` if the check was not possible or failed.
pub(in crate::debug) fn check(heap: &'static Heap, occasion: Occasion) -> Option<LeakCheck> {
    run(heap, occasion).ok()?
}

/// Runs the check at exit, or reports why not, because an unchecked program is not clean.
pub(in crate::debug) fn check_at_exit(heap: &'static Heap) {
    let why = match run(heap, Occasion::Exit) {
        Ok(Some(_)) | Err("") => return,
        Ok(None) => "the copy of the process that looked for leaks did not come to its end",
        Err(why) => why,
    };
    if heap.reporter.is_loud() {
        Line::new().text("no leak check: ").text(why).write();
    }
    if let Some(mut recorder) = heap.reporter.begun_recorder() {
        let mut text = [0; 128];
        let parts = NO_LEAK_CHECK.as_bytes().iter().chain(why.as_bytes());
        let length = text.iter_mut().zip(parts).map(|(place, &byte)| *place = byte).count();
        recorder.put(&Entry::Note(Note { bytes: text[..length].into() }));
        recorder.flush();
    }
}

/// Starts a check whose result goes into the record later, or returns false.
pub(in crate::debug) fn begin(heap: &'static Heap, occasion: Occasion) -> bool {
    run(heap, occasion).is_ok()
}

/// Runs a check. The error tells why no check ran, and is empty if a check is not worthwhile.
fn run(heap: &'static Heap, occasion: Occasion) -> Result<Option<LeakCheck>, &'static str> {
    os::without_cancellation(|| run_locked(heap, occasion))
}

#[inline(never)]
fn run_locked(heap: &'static Heap, occasion: Occasion) -> Result<Option<LeakCheck>, &'static str> {
    const MEMORY: &str = "there is no memory for it";
    const BUSY: &str = "another one is under way";
    const LOCKED: &str = "code that a signal interrupted holds a lock of the heap";
    const UNSEEN: &str = "the process cannot read its own memory";
    const NO_PROC: &str = "the process cannot see /proc, as in a chroot";
    const THREADS: &str = "the process's threads cannot be listed or stopped";
    const SANDBOX: &str = "a sandbox forbids the system calls that a leak check needs";
    if os::is_filtered() {
        return Err(SANDBOX);
    }
    // A child of vfork has its parent's memory.
    if !substrate::is_original_process() {
        return Err("");
    }
    // The callers' registers are now on the stack, above `here`, where the check begins to read.
    let saved = hint::black_box(os::saved_registers());
    let is_exit = occasion == Occasion::Exit;
    let here = ptr::from_ref(&saved).addr();
    let mut one = if is_exit { ONE.lock_soon() } else { ONE.try_lock() }.ok_or(BUSY)?;
    reap(if is_exit { WAIT } else { 0 });
    if COPY.load(Ordering::Relaxed) != 0 && !is_exit {
        return Err(BUSY);
    }
    let since = since(heap, occasion).ok_or("")?;
    let has_blocks = heap.made() != heap.freed();
    if has_blocks && ProcMem::open().is_none() {
        return Err(UNSEEN);
    }
    // At exit the stack begins above the frames of `exit`, which overwrote others.
    let above_exit =
        if is_exit && has_blocks { stacks::above(&mut one.0, is_exit_at) } else { None };
    let caller = Caller {
        thread: os::thread_id(),
        stack: above_exit.unwrap_or(here),
        pointer: os::thread_pointer(),
    };
    if !os::each_mapping(&mut |_| false) {
        return Err(os::why_no_mappings().unwrap_or(NO_PROC));
    }
    let thread = heap.threads.number_of_system(caller.thread);
    let others = count_threads().ok_or(THREADS)?.saturating_sub(1);
    let mut room =
        ZeroedArray::<Answer>::new(if others == 0 { 0 } else { others * 2 + 64 }).ok_or(MEMORY)?;
    let (at, length) = (room.as_mut_ptr(), room.len());
    // SAFETY: the array lives as long as a thread may read it, or is leaked.
    let asked: &'static [Answer] = unsafe { slice::from_raw_parts(at, length) };

    let store = heap.hold_store().ok_or(LOCKED)?;
    let mut output = heap.reporter.hold().ok_or(LOCKED)?;
    if let Some(recorder) = output.recorder() {
        recorder.begins();
        recorder.flush();
    }
    let timeline = TIMELINE.lock_soon().ok_or(LOCKED)?;
    let began = os::now_ns();
    let held = others > 0 && os::hold(asked);
    if others > 0 && !held {
        if !os::is_unused() {
            core::mem::forget(room);
        }
        return Err(THREADS);
    }
    let answers = if held { asked } else { &[] };
    let found = os::shared::<LeakCheck>();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed) + 1;
    let work = Assignment { number, occasion, caller, answers, thread, began, since };
    // SAFETY: the copy only reads, writes the record and shared memory, and ends.
    let copy = if is_exit && others == 0 { None } else { unsafe { os::copy() } };
    if copy == Some(0) {
        os::forget_held();
        os::leave_no_dump();
        if !heap.reporter.is_loud() {
            os::close_all();
        }
        let result = examine(heap, &work, &mut output, &timeline);
        if let (Some(result), Some(place)) = (result, found) {
            // SAFETY: the memory holds one result, and the original reads it after the copy's end.
            unsafe { place.write(result) };
        }
        os::end_copy(i32::from(result.is_none()));
    }
    let mut result = None;
    if copy.is_none() {
        result = examine(heap, &work, &mut output, &timeline);
    }
    let mut room = Some(room);
    let mut release = || {
        if held && !os::release() {
            core::mem::forget(room.take());
        }
    };
    // At the process's end the threads wait for the whole check. If they ran on for so long, they
    // would use C++ objects that the program's exit has destroyed.
    if !is_exit {
        release();
    }
    drop((timeline, output, store));
    if let Some(copy) = copy {
        COPY.store(copy, Ordering::Relaxed);
        drop(one);
        if matches!(occasion, Occasion::Exit | Occasion::Call) && reap(WAIT) {
            // SAFETY: the copy wrote it and has ended.
            result = found.map(|place| unsafe { place.read() });
        }
    }
    if is_exit {
        release();
    }
    if let Some(place) = found {
        // SAFETY: made above; a copy that still works has its own mapping.
        unsafe { os::give_shared(place) };
    }
    Ok(result)
}

/// Waits for the last copy. Returns whether it ended successfully.
fn reap(milliseconds: u64) -> bool {
    let copy = COPY.load(Ordering::Relaxed);
    if copy == 0 {
        return true;
    }
    let ended = os::wait_for_copy(copy, milliseconds);
    if ended.is_some() {
        COPY.store(0, Ordering::Relaxed);
    }
    ended == Some(true)
}

fn count_threads() -> Option<usize> {
    let mut count = 0;
    os::each_thread(&mut |_| count += 1).then_some(count)
}

/// Returns the sequence number from which on a forked child reports blocks, or `Some(None)` to
/// report all blocks. Returns `None` if a check is not worthwhile.
fn since(heap: &'static Heap, occasion: Occasion) -> Option<Option<u32>> {
    let Some((forked_at, parent, sequence)) = heap.fork_point() else { return Some(None) };
    if occasion != Occasion::Exit {
        return Some(None);
    }
    let lived = os::now_ns().saturating_sub(forked_at);
    let blocks = heap.made().wrapping_sub(heap.freed());
    let cost = blocks * 60 + heap.live_bytes() / 2;
    if cost > (lived / CHILD_SHARE).max(CHILD_LEAST) {
        return None;
    }
    Some((os::parent_id() == parent).then_some(sequence))
}

fn is_exit_at(pc: usize) -> bool {
    /// The most bytes of `exit`, which only calls another function.
    const LENGTH: usize = 64;
    let mut is = os::exit_function().is_some_and(|exit| pc.wrapping_sub(exit) <= LENGTH);
    stacks::symbol_of(pc - 1, |name, _| is |= matches!(name, b"exit" | b"quick_exit"));
    is
}

pub(in crate::debug) fn in_child() {
    // SAFETY: no other thread exists, and the caller is in no check.
    unsafe { ONE.release() };
    // SAFETY: no other thread exists, so no code holds the lock.
    unsafe { TIMELINE.release() };
    COPY.store(0, Ordering::Relaxed);
    os::forget_held();
    request::in_child();
}

/// Finds leaks and reports them. Returns `None` without `/proc` or memory.
fn examine(
    heap: &'static Heap,
    work: &Assignment,
    output: &mut Output<'_>,
    timeline: &Timeline,
) -> Option<LeakCheck> {
    let stopped = os::now_ns() - work.began;
    let _shelf = Shelf::take();
    let index = Index::new(heap)?;
    let locals = (THREAD_LOCAL.0.load(Ordering::Relaxed), THREAD_LOCAL.1.load(Ordering::Relaxed));
    let live = index.sum();
    // Without live blocks nothing is read.
    let (proc_mem, roots) = if live.amount.blocks == 0 {
        (ProcMem::NONE, Roots::none(work.caller, work.answers)?)
    } else {
        let proc_mem = ProcMem::open()?;
        let roots = Roots::new(heap.id(), &proc_mem, work.caller, work.answers, locals)?;
        (proc_mem, roots)
    };
    let mut marks = Marks::new(&index, live, &proc_mem, &roots)?;
    marks.mark();
    let report = LeakReport::new(heap, work, output, timeline, stopped)?;
    report.write(&index, live.amount, &roots, &mut marks)
}

pub(in crate::debug) fn note_live(
    ns: u64,
    sequence: u32,
    blocks: impl FnOnce() -> u64,
    bytes: u64,
) {
    if let Some(mut timeline) = TIMELINE.try_lock()
        && timeline.is_due(ns)
    {
        let blocks = blocks();
        timeline.note(Sample { ns, sequence: u64::from(sequence), blocks, bytes });
    }
}
