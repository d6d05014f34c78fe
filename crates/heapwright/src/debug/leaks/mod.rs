//! Leak checks: which blocks the program has lost, and what leads to the others.
//!
//! ```text
//!   at exit, at a signal, at a call                          while it runs, now and then
//!     | locks of the heap                                      |
//!     | hold: each thread says what is in its registers        count: live blocks a stack
//!     | copy of the process; the program goes on               |
//!     v                                                        v
//!   index    a number for each slot                          groups, fullness, timeline
//!   roots    where the program's pointers are                  |
//!   mark     what leads to what                                |
//!   groups   blocks of one stack and one fate                  |
//!     \-> record file, standard error  <----------------------/
//! ```
//!
//! A snapshot is a copy of the process (`os`: `standstill`): what the kernel does for
//! `fork`, without a thread, a handler or a signal that the program could notice. It
//! needs no rights that a process does not have over itself, so it works in containers,
//! where what needs ptrace does not. The program stands still for as long as its threads
//! take to answer and the kernel to copy its page tables; the rest is the copy's time.
//!
//! A process of one thread that ends is not copied: nothing happens in it any more.
//!
//! What a forked child has of its parent's it only looks through. It reports blocks that
//! were made since, or all where the parent is no more: then the child is the program.
//!
//! | what it may take for | which is wrong | when |
//! |---|---|---|
//! | reachable | lost | a number is like its address; litter in a live stack frame |
//! | lost | reachable | the only pointer is kept by the kernel (epoll, io_uring), is not at a multiple of 8, or is not kept as an address |
//!
//! Called by `process`, and by `heap` where a bucket is opened.

mod groups;
mod index;
mod mark;
mod report;
mod request;
mod roots;
mod timeline;
mod zeroed;

use core::ops::Range;
use core::{hint, ptr, slice};

use heapwright_record::debug::{Entry, Note, Occasion, Reach, Sample};

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

/// How long somebody waits for the copy that looks for leaks, in milliseconds.
const WAIT: u64 = 60_000;
/// A forked child looks for leaks if that costs no more than one of so many of its life,
/// or this many nanoseconds.
const CHILD_SHARE: u64 = 4;
const CHILD_LEAST: u64 = 5_000_000;

/// How much of the stack above a check is looked at for the frame of `exit`.
const EXIT_NEAR: usize = 64 << 10;

/// One check at a time. It is its scratch: no state of the heap is taken for it.
static ONE: Lock<Walker> = Lock::new(Walker(stacks::Scratch::new()));

/// What a stack is walked with.
struct Walker(stacks::Scratch);

// SAFETY: the holder of the lock has it alone, and it refers to no thread's memory.
unsafe impl Send for Walker {}

/// Checks and counts so far.
static NUMBER: AtomicU32 = AtomicU32::new(0);
/// The copy that works still, by its number; 0: none.
static COPY: AtomicU32 = AtomicU32::new(0);
static TIMELINE: Lock<Timeline> = Lock::new(Timeline::new());
/// Bytes of thread-local variables below a thread's pointer and above it.
static THREAD_LOCAL: (AtomicUsize, AtomicUsize) = (AtomicUsize::new(0), AtomicUsize::new(0));

/// The sum of what has this reach.
fn sum_of(found: &mut LeakCheck, reach: Reach) -> &mut Amount {
    match reach {
        Reach::Definite => &mut found.definite,
        Reach::Indirect => &mut found.indirect,
        Reach::Possible => &mut found.possible,
        _ => &mut found.reachable,
    }
}

/// What a check is given before it works.
struct Assignment {
    number: u32,
    occasion: Occasion,
    caller: Caller,
    answers: &'static [Answer],
    /// The number of the caller's thread in findings.
    thread: u32,
    /// When the program began to stand still.
    began: u64,
    /// Of a forked child: only blocks with later sequence numbers are reported.
    since: Option<u32>,
}

/// Where heapwright's own data is, if it is a module of its own.
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

/// Checks the process's heap, and waits for what is found. `None`: it could not be done
/// now (another check is under way, or the heap is locked by the thread that the caller
/// interrupted), or it was not done to the end.
pub(in crate::debug) fn check(heap: &'static Heap, occasion: Occasion) -> Option<LeakCheck> {
    run(heap, occasion).ok()?
}

/// Checks the process's heap at its end. Where that cannot be done although it is worth
/// it, it is said: a program that was not looked at is not a clean one.
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
        let parts = b"no leak check: ".iter().chain(why.as_bytes());
        let length = text.iter_mut().zip(parts).map(|(place, &byte)| *place = byte).count();
        recorder.put(&Entry::Note(Note { bytes: text[..length].into() }));
        recorder.flush();
    }
}

/// Has the process's heap checked; what is found is in the record, some time. False: it
/// could not be done now.
pub(in crate::debug) fn begin(heap: &'static Heap, occasion: Occasion) -> bool {
    run(heap, occasion).is_ok()
}

/// `Err`: why it could not be done; nothing: it is not worth it.
fn run(heap: &'static Heap, occasion: Occasion) -> Result<Option<LeakCheck>, &'static str> {
    os::without_cancellation(|| run_locked(heap, occasion))
}

#[inline(never)]
fn run_locked(heap: &'static Heap, occasion: Occasion) -> Result<Option<LeakCheck>, &'static str> {
    const MEMORY: &str = "there is no memory for it";
    const BUSY: &str = "another one is under way";
    const LOCKED: &str = "the heap is locked by what was interrupted";
    const UNSEEN: &str = "the process cannot read /proc/self/mem";
    const THREADS: &str = "the process's threads cannot be listed, or not be stopped";
    const SANDBOX: &str = "the process has forbidden itself the system calls for it";
    if os::is_filtered() {
        return Err(SANDBOX);
    }
    // A child of vfork has its parent's memory.
    if !substrate::is_original_process() {
        return Err("");
    }
    // What the caller's callers keep in registers is on the stack then, above the place
    // from where it is read.
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
    let proc_mem = if has_blocks { ProcMem::open().ok_or(UNSEEN)? } else { ProcMem::NONE };
    let caller = Caller {
        thread: os::thread_id(),
        stack: if is_exit && has_blocks { below_exit(&mut one.0, &proc_mem, here) } else { here },
        pointer: os::thread_pointer(),
    };
    drop(proc_mem);
    let thread = heap.threads.number_of_system(caller.thread);
    let others = count_threads().ok_or(THREADS)?.saturating_sub(1);
    // They may start some before they are held.
    let mut room =
        ZeroedArray::<Answer>::new(if others == 0 { 0 } else { others * 2 + 64 }).ok_or(MEMORY)?;
    let (at, length) = (room.as_mut_ptr(), room.len());
    // SAFETY: the array stays until nobody reads there any more: where a thread may still do,
    // it is forgotten, and not given back.
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
    // SAFETY: the copy only reads, writes the record and what is shared, and ends.
    let copy = if is_exit && others == 0 { None } else { unsafe { os::copy() } };
    if copy == Some(0) {
        os::forget_held();
        os::leave_no_dump();
        if !heap.reporter.is_loud() {
            os::close_all();
        }
        let result = examine(heap, &work, &mut output, &timeline);
        if let (Some(result), Some(place)) = (result, found) {
            // SAFETY: memory for one, and the original reads when the copy has ended.
            unsafe { place.write(result) };
        }
        os::end_copy(i32::from(result.is_none()));
    }
    let mut result = None;
    if copy.is_none() {
        result = examine(heap, &work, &mut output, &timeline);
    }
    if held && !os::release() {
        core::mem::forget(room);
    }
    drop((timeline, output, store));
    if let Some(copy) = copy {
        COPY.store(copy, Ordering::Relaxed);
        drop(one);
        if matches!(occasion, Occasion::Exit | Occasion::Call) && reap(WAIT) {
            // SAFETY: the copy has written it, and ended.
            result = found.map(|place| unsafe { place.read() });
        }
    }
    if let Some(place) = found {
        // SAFETY: made above; a copy that works still has its own.
        unsafe { os::give_shared(place) };
    }
    Ok(result)
}

/// Whether the copy that worked last has ended as it should; waits for that.
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

/// How many threads the process has. `None`: it cannot be known, and neither can what
/// they hold.
fn count_threads() -> Option<usize> {
    let mut count = 0;
    os::each_thread(&mut |_| count += 1).then_some(count)
}

/// Of a forked child, from which operation on blocks are its own to report; `None`
/// inside: all are. `None`: it is not worth the while.
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

/// From where the calling thread's stack counts at the process's end: above the frames
/// of `exit`, which overwrite in part what the program left there.
fn below_exit(scratch: &mut stacks::Scratch, proc_mem: &ProcMem, here: usize) -> usize {
    const WORD: usize = size_of::<usize>();
    let frames = stacks::frames(stacks::here(scratch, stacks::MAX_DEPTH));
    let Some(exit) = frames.iter().position(|&pc| is_exit(pc)) else { return here };
    let Some(&[within, caller]) = frames.get(exit..exit + 2) else { return here };
    // The frames' return addresses lie there, the one into `exit` first. The kernel
    // reads: a stack may have pages that nobody can touch.
    let mut words = [0; 4096 / WORD];
    let mut wanted = within;
    let mut at = here.next_multiple_of(WORD);
    while at < here + EXIT_NEAR {
        let got = proc_mem.read_words(at, &mut words);
        if got == 0 {
            return here;
        }
        for &word in &words[..got] {
            at += WORD;
            if word == wanted {
                if wanted == caller {
                    return at;
                }
                wanted = caller;
            }
        }
    }
    here
}

/// Whether a return address is in the C library's `exit`.
fn is_exit(pc: usize) -> bool {
    /// It does nothing but call another function.
    const LENGTH: usize = 64;
    let mut is = os::exit_function().is_some_and(|exit| pc.wrapping_sub(exit) <= LENGTH);
    stacks::symbol_of(pc - 1, |name, _| is |= matches!(name, b"exit" | b"quick_exit"));
    is
}

/// In a forked child: what another thread held, it does not any more, and what others
/// were about to do is not done.
pub(in crate::debug) fn in_child() {
    // SAFETY: nobody else is here, and the caller is in no check of its own.
    unsafe { ONE.release() };
    // SAFETY: no other thread is here, and its holder is not either.
    unsafe { TIMELINE.release() };
    COPY.store(0, Ordering::Relaxed);
    os::forget_held();
    request::in_child();
}

/// Finds leaks and reports them. `None`: there is no /proc, or no memory.
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
    // Where nothing is live nothing is read.
    let (proc_mem, roots) = if live.amount.blocks == 0 {
        (ProcMem::NONE, Roots::none(work.caller, work.answers)?)
    } else {
        let proc_mem = ProcMem::open()?;
        let roots = Roots::new(heap.id(), &proc_mem, work.caller, work.answers, locals)?;
        (proc_mem, roots)
    };
    let mut marks = Marks::new(&index, live, &proc_mem)?;
    marks.mark(&roots);
    let report = LeakReport::new(heap, work, output, timeline, stopped)?;
    report.write(&index, live.amount, &roots, &mut marks)
}

/// Notes what is live now, where a moment is due. Called where buckets are opened.
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
