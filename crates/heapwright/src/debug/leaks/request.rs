//! Requests: checks and counts that no call starts.
//!
//! ```text
//!   leak_signal=NAME    the signal's handler: a check at once, or, if the interrupted code
//!                       holds a lock of the heap, when the next bucket is opened
//!   growth=on           counts of live blocks: the first after 100 ms; together at most
//!                       one hundredth of the time; after each 24 counts the time between
//!                       two counts doubles
//! ```
//!
//! A copy of the process counts a large heap. Called by `process`, and by `heap` when a bucket is
//! opened.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;

use heapwright_record::debug::Occasion;

use crate::options;
use crate::os;
use crate::substrate;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::super::heap::Heap;
use super::super::process;
use super::report::LeakReport;
use super::{Assignment, Caller, NUMBER, ONE, THREAD_LOCAL, TIMELINE};

/// The time of the first count, and at first the time between two counts, in nanoseconds.
const FIRST: u64 = 100_000_000;
const BEFORE_DOUBLING: u32 = 24;
/// Counts take at most 1/`SHARE` of the time.
const SHARE: u64 = 100;
/// If more blocks than these are live, a copy of the process counts.
const MANY: u64 = 400_000;

/// Whether a signal's check was not possible, and is still wanted.
static WANTED: AtomicBool = AtomicBool::new(false);
/// The time of the next count, 0 without counts, or `u64::MAX` while a thread counts.
static NEXT: AtomicU64 = AtomicU64::new(0);
static STEP: AtomicU64 = AtomicU64::new(FIRST);
static COUNTS: AtomicU32 = AtomicU32::new(0);

pub(in crate::debug) fn prepare() {
    os::constructors_run();
    let (below, above) = os::thread_local_bytes();
    THREAD_LOCAL.0.store(below, Ordering::Relaxed);
    THREAD_LOCAL.1.store(above, Ordering::Relaxed);
    let options = options::leaks();
    if options.growth {
        NEXT.store(FIRST, Ordering::Relaxed);
    }
    if options.signal != 0 {
        install(options.signal.into());
    }
}

fn install(signal: c_int) {
    extern "C" fn handle(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
        WANTED.store(true, Ordering::Relaxed);
        os::keeping_errno(take_up);
    }
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a sigaction of zeros is valid.
    let action = unsafe { action.assume_init_mut() };
    action.sa_sigaction = handle as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: the mask is a signal set that can be written.
    unsafe { libc::sigfillset(&raw mut action.sa_mask) };
    // SAFETY: reads the struct; the handler does only what a handler may.
    unsafe { libc::sigaction(signal, action, ptr::null_mut()) };
}

fn take_up() {
    if process::check_at_signal() {
        WANTED.store(false, Ordering::Relaxed);
    }
}

/// Forgets another thread's count in a forked child.
pub(super) fn in_child() {
    let next = NEXT.load(Ordering::Relaxed);
    if next == u64::MAX {
        NEXT.store(FIRST, Ordering::Relaxed);
    }
}

/// Runs what is due. Enters no state, because the caller may hold the common state's lock.
#[inline]
pub(in crate::debug) fn tick(heap: &'static Heap) {
    if WANTED.load(Ordering::Relaxed) && heap.is_process_heap() {
        take_up();
    }
    let next = NEXT.load(Ordering::Relaxed);
    if next != 0 && heap.is_process_heap() && heap.reporter.now() >= next {
        count(heap, next);
    }
}

#[cold]
#[inline(never)]
fn count(heap: &'static Heap, next: u64) {
    if NEXT.compare_exchange(next, u64::MAX, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return;
    }
    let began = os::now_ns();
    os::without_cancellation(|| count_now(heap, began));
    let took = os::now_ns() - began;
    let mut step = STEP.load(Ordering::Relaxed);
    if COUNTS.fetch_add(1, Ordering::Relaxed) % BEFORE_DOUBLING == BEFORE_DOUBLING - 1 {
        step *= 2;
        STEP.store(step, Ordering::Relaxed);
    }
    NEXT.store(heap.reporter.now() + step.max(took * SHARE), Ordering::Relaxed);
}

fn count_now(heap: &'static Heap, began: u64) -> Option<()> {
    // A child of vfork has its parent's memory.
    if !substrate::is_original_process() || os::is_filtered() {
        return None;
    }
    let _one = ONE.try_lock()?;
    super::reap(0);
    if super::COPY.load(Ordering::Relaxed) != 0 {
        return None;
    }
    let thread = heap.threads.number_of_system(os::thread_id());
    let _store = heap.hold_store()?;
    let mut output = heap.reporter.hold()?;
    let recorder = output.recorder()?;
    recorder.begins();
    recorder.flush();
    let timeline = TIMELINE.try_lock()?;
    let work = Assignment {
        number: NUMBER.fetch_add(1, Ordering::Relaxed) + 1,
        occasion: Occasion::Time,
        caller: Caller { thread: 0, stack: 0, pointer: 0 },
        answers: &[],
        thread,
        began,
        since: None,
    };
    let is_large = heap.made().wrapping_sub(heap.freed()) > MANY;
    // SAFETY: the copy only reads, writes the record, and ends.
    let copy = if is_large { unsafe { os::copy() } } else { None };
    if copy == Some(0) {
        os::leave_no_dump();
        os::close_all();
    }
    if let Some(copy @ 1..) = copy {
        super::COPY.store(copy, Ordering::Relaxed);
        return Some(());
    }
    let stopped = os::now_ns() - began;
    let report = LeakReport::new(heap, &work, &mut output, &timeline, stopped);
    let done = report.and_then(LeakReport::count);
    if copy == Some(0) {
        os::end_copy(i32::from(done.is_none()));
    }
    done
}
