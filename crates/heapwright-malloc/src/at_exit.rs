//! The end of a process: statistics, the end of a trace, and the debug heap's last checks.
//!
//! The library sees four ways to end. `exit` runs our destructor, and `quick_exit` our handler.
//! `_exit` and `_Exit` are interposed here, because forked children of shells and servers end that
//! way. In debug mode `ending_signals` catches signals without a handler. Faults, SIGKILL and
//! `execve` leave no report.
//!
//! Our destructor runs after every handler of `atexit`, every destructor of a C++ object and the
//! program's functions in `.fini_array`. Destructors of libraries that were loaded after us, and
//! the end of the C library's streams, may come later: the last leak check misses only their frees.
//!
//! **Invariants.** A process makes at most one report and one last check. [`REPORTED`] holds the
//! process that reported, so a child of a late fork reports for itself. A child of `vfork` shares
//! our memory and reports nothing: its parent will.
//!
//! Without the options, an exit only reads a few flags. The destructor also withdraws the memory
//! that shows the process to `heapwright top`.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, Ordering};
use heapwright::{heap, options, process, profile, stats, status};
use heapwright_record::Stats;
use libc::c_int;
#[cfg(not(target_env = "musl"))]
use libc::c_void;

/// The process that has reported, or is about to report. 0 means none.
static REPORTED: AtomicU64 = AtomicU64::new(0);
/// A bit in [`REPORTED`] beside the process, set if a signal ends the process.
const BY_SIGNAL: u64 = 1 << 32;
/// The process whose report is complete.
static COMPLETE: AtomicU64 = AtomicU64::new(0);

/// The state of the last check.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// No thread has begun the check.
    Ahead,
    UnderWay,
    Done,
}

/// Runs when the program returns from main or calls exit, after the program's handlers.
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = end_of_program;

/// The function of [`DESTRUCTOR`]. (A child of `vfork` does not come here, so the page that
/// `withdraw` clears is this process's own.)
extern "C" fn end_of_program() {
    report();
    status::withdraw();
}

#[cfg(not(target_env = "musl"))]
unsafe extern "C" {
    /// `at_quick_exit` as glibc exports it: with the library that owns the handler.
    fn __cxa_at_quick_exit(handler: extern "C" fn(*mut c_void), library: *mut c_void) -> c_int;
}

#[cfg(target_env = "musl")]
unsafe extern "C" {
    fn at_quick_exit(handler: extern "C" fn()) -> c_int;
}

pub(crate) fn prepare() {
    #[cfg(not(target_env = "musl"))]
    extern "C" fn handler(_: *mut c_void) {
        report();
    }
    if wanted() || profile::is_wanted() || heap::traces() || looks() || heap::hardens() {
        // SAFETY: the handler lives as long as the process: the library is never unloaded.
        #[cfg(not(target_env = "musl"))]
        unsafe {
            __cxa_at_quick_exit(handler, core::ptr::null_mut())
        };
        // SAFETY: the handler's library is never unloaded.
        #[cfg(target_env = "musl")]
        unsafe {
            at_quick_exit(report)
        };
    }
}

/// Reports, then ends the process at once, without running handlers.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn _exit(status: c_int) -> ! {
    report();
    end(status)
}

/// `_exit`, for callers within the library.
#[cfg(heapwright_reads)]
pub(crate) fn end_at_once(status: c_int) -> ! {
    _exit(status)
}

/// C99's name for `_exit`.
#[unsafe(no_mangle)]
extern "C" fn _Exit(status: c_int) -> ! {
    report();
    end(status)
}

fn end(status: c_int) -> ! {
    loop {
        // SAFETY: the call ends every thread, and does not return.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

fn looks() -> bool {
    heap::debugging() || heap::guarding()
}

fn wanted() -> bool {
    options::stats_at_exit() || options::stats_file().is_some()
}

/// Writes the reports that the options request, once per process.
extern "C" fn report() {
    let anything = wanted() || profile::is_wanted() || heap::traces() || looks() || heap::hardens();
    if anything && process::is_original_process() {
        report_once(0);
        // If a signal ends the process, another thread is in the last check. This thread waits: the
        // process must end with the signal's status.
        while REPORTED.load(Ordering::Acquire) == process_id() | BY_SIGNAL {
            // SAFETY: the call takes no memory, and only waits for signals.
            unsafe { libc::syscall(libc::SYS_ppoll, 0usize, 0usize, 0usize, 0usize, 0usize) };
        }
    }
}

/// Reports before a signal ends the process, unless a report has begun. Returns the check's state.
pub(crate) fn report_at_signal(signal: c_int) -> Look {
    report_once(signal.unsigned_abs());
    look()
}

pub(crate) fn look() -> Look {
    let pid = process_id();
    if COMPLETE.load(Ordering::Acquire) == pid {
        return Look::Done;
    }
    let is_under_way = REPORTED.load(Ordering::Relaxed) & !BY_SIGNAL == pid;
    if is_under_way { Look::UnderWay } else { Look::Ahead }
}

fn process_id() -> u64 {
    u64::from(process::id())
}

#[cold]
#[inline(never)]
fn report_once(signal: u32) {
    let pid = process_id();
    let mine = if signal == 0 { pid } else { pid | BY_SIGNAL };
    let order = Ordering::AcqRel;
    let is_ahead = |was: u64| (was & !BY_SIGNAL != pid).then_some(mine);
    if REPORTED.fetch_update(order, Ordering::Relaxed, is_ahead).is_err() {
        return;
    }
    if looks() {
        heap::debug_at_exit(signal);
    }
    if heap::hardens() {
        heap::hardened_at_exit();
    }
    if wanted() {
        write_report(pid);
    }
    profile::write_at_exit();
    heap::trace_at_exit();
    COMPLETE.store(pid, Ordering::Release);
}

fn write_report(pid: u64) {
    let mut snapshot = Stats::zero();
    if !stats::snapshot(&mut snapshot) {
        process::write_stderr(
            b"heapwright: no statistics: the process ended in a signal handler that interrupted the heap\n",
        );
        return;
    }
    if let Some(prefix) = options::stats_file() {
        write_file(prefix, pid, &snapshot);
    }
    if options::stats_at_exit() {
        print(pid, &snapshot);
    }
}

/// Prints the statistics, unless this process has printed them.
fn print(pid: u64, snapshot: &Stats) {
    static PRINTED: AtomicU64 = AtomicU64::new(0);
    if PRINTED.swap(pid, Ordering::Relaxed) != pid {
        let mut text = crate::report::Report::new();
        crate::report::text(&mut text, snapshot);
        process::write_stderr(text.bytes());
    }
}

/// Prints the statistics now, because the program closes standard error: see `stderr`.
#[cfg(not(target_env = "musl"))]
pub(crate) fn stderr_closes() {
    if options::stats_at_exit() && process::is_original_process() {
        let mut snapshot = Stats::zero();
        if stats::snapshot(&mut snapshot) {
            print(process_id(), &snapshot);
        }
    }
}

/// Writes the stats file `PREFIX.<pid>`. Prints a line if that fails.
fn write_file(prefix: &CStr, pid: u64, snapshot: &Stats) {
    let mut path = crate::text::Text::<4096>::new();
    for &byte in prefix.to_bytes() {
        path.byte(byte);
    }
    path.byte(b'.').number(pid);
    let shown = path.bytes().len();
    path.byte(0);
    if !heapwright::process::save_file(path.bytes(), &snapshot.encode()) {
        let mut message = crate::text::Text::<4224>::new();
        message
            .str("heapwright: cannot write the stats file \"")
            .name(path.bytes().get(..shown).unwrap_or_default())
            .str("\": check the directory of option stats_file\n");
        process::write_stderr(message.bytes());
    }
}
