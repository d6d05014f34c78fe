//! Memory limits: near a limit free memory goes back sooner, and heapwright warns the user before
//! the kernel acts.
//!
//! ```text
//!   a tick   ->  how near is the limit?  (`memory_limit`: the purge delay, free runs, huge pages
//!                                        and stashes depend on it)
//!                at the limit: readings give free memory back; the first one
//!                prints a line, and saves the heap profile if there is one
//! ```
//!
//! The kernel ends a process whose control group has used up its memory, even if some of that
//! memory is free. So a preloaded library reads the group's use, as soon as the heap has 16 MiB and
//! a sixteenth of the limit. It reads every 100 ms, every 20 ms from three quarters of the limit on,
//! every 8 ms from nine tenths on, and whenever the heap has grown by a quarter of the bytes left.
//!
//! The option `limit=BYTES`, or [`set`], sets a soft limit for the process alone.

use crate::chunk;
use crate::files::{self, PATH};
use crate::memory_limit::{self, LEAST_LIMIT, Look, Nearness, Watcher, nearness};
use crate::options::{self, MemoryLimit};
use crate::os::{self, SandboxEntry};
#[doc(hidden)]
pub use crate::os::{Sandbox, leave_sandbox};
use crate::substrate;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::text::Line;
use crate::ticks::{self, Kept, Whose};

/// At the limit, releases take at most one part in `SHARE` of the time.
const SHARE: u64 = 10;

#[derive(Clone, Copy)]
struct State {
    watcher: Watcher,
    /// The process that has reported a near limit.
    said: u32,
    /// The process that saved a profile because of a block larger than the limit.
    saved: u32,
    /// The earliest time of the next release, and the least time between two releases, in ns.
    give_back_ns: u64,
    distance_ns: u64,
}

/// Bounds of `distance_ns`, which doubles when little was released.
const SOONEST_NS: u64 = 8_000_000;
const LATEST_NS: u64 = 1_000_000_000;

static STATE: Kept<State> = Kept::new(State {
    watcher: Watcher::new(),
    said: 0,
    saved: 0,
    give_back_ns: 0,
    distance_ns: SOONEST_NS,
});

/// The limit set for the process alone, in bytes, or 0.
static SET: AtomicUsize = AtomicUsize::new(0);

/// Makes the heap respect the process's memory limit, as the option `limit` says (`auto`: the limit
/// of its control groups). A preloaded library calls this by itself.
///
/// ```
/// heapwright::limit::respect();
/// ```
#[inline]
pub fn respect() {
    ticks::begin(Whose::Limit, begin);
}

/// Sets a soft limit for this process's own resident memory, in bytes, at least 1 MiB. 0 restores
/// the limit of its control groups, or none with the option `limit=off`. Near the limit free memory
/// goes back to the kernel sooner, but no allocation fails. The limit takes effect at the heap's
/// next slow path, and not after [`enter_sandbox`].
///
/// ```
/// heapwright::limit::set(512 << 20);
/// assert_eq!(heapwright::limit::get(), None, "it was not looked at yet");
/// heapwright::limit::set(0);
/// ```
pub fn set(bytes: usize) {
    SET.store(if bytes == 0 { 0 } else { bytes.max(LEAST_LIMIT) }, Ordering::Relaxed);
    ticks::begin(Whose::Limit, tick);
}

/// Returns the limit in bytes, if the last reading found or used one.
///
/// ```
/// let _ = heapwright::limit::get();
/// ```
#[must_use]
pub fn get() -> Option<usize> {
    memory_limit::limit()
}

/// Prepares for a sandbox (`seccomp`), in which a forbidden system call may kill the process. From
/// now on heapwright calls only `mmap`, `munmap`, `mremap`, `mprotect`, `madvise`, `futex`, `write`
/// and `clock_gettime`. It opens no file, forgets the limit, and ends samples that a tracer began;
/// [`set`] has no effect. A preloaded library calls this by itself.
///
/// Waits at most some milliseconds for a thread that reads the limit.
///
/// ```
/// heapwright::limit::enter_sandbox();
/// ```
pub fn enter_sandbox() {
    let _ = begin_sandbox(Sandbox::Filter);
}

/// Does [`enter_sandbox`] for a sandbox of this kind, which the kernel may still refuse.
#[doc(hidden)]
pub fn begin_sandbox(sandbox: Sandbox) -> SandboxEntry {
    expect_sandbox();
    os::enter_sandbox(sandbox)
}

/// Returns whether the process is in a sandbox.
#[doc(hidden)]
#[must_use]
pub fn is_in_sandbox() -> bool {
    os::is_in_sandbox()
}

/// Notes that the process may soon enter a sandbox unseen. From now on no file is read.
#[doc(hidden)]
pub fn expect_sandbox() {
    const PATIENCE_NS: u64 = 5_000_000;
    let _ = os::enter_sandbox(Sandbox::Expected);
    #[cfg(feature = "debug")]
    crate::drawn::end_sampling_by(crate::drawn::By::Tracer);
    // A signal handler that interrupted the reading in its own thread waits in vain.
    let began = os::now_ns();
    while STATE.is_in_use() && os::now_ns() < began + PATIENCE_NS {
        core::hint::spin_loop();
    }
}

/// Runs the first tick, which can read the options.
fn begin(now: u32) -> u32 {
    match options::get().limit {
        MemoryLimit::Off => {
            ticks::end(Whose::Limit);
            return 0;
        }
        MemoryLimit::Auto => {}
        MemoryLimit::Bytes(bytes) => SET.store(bytes, Ordering::Relaxed),
    }
    ticks::go_on_with(Whose::Limit, tick);
    tick(now)
}

/// Reads how near the limit is. Returns the milliseconds to the next reading.
fn tick(now: u32) -> u32 {
    const SOON_MS: u32 = 8;
    let Some(usage) = chunk::usage_now() else { return SOON_MS };
    let (process, set) = (substrate::process(), SET.load(Ordering::Relaxed));
    if set == 0 && options::get().limit == MemoryLimit::Off {
        ticks::end(Whose::Limit);
        return SOON_MS;
    }
    let looked = STATE.with(|state| {
        // The sandbox is checked here, because `enter_sandbox` waits for this code.
        if memory_limit::is_in_sandbox() {
            return (None, false, SOON_MS);
        }
        state.watcher.ask((set != 0).then_some(set));
        let (look, next) = state.watcher.look(now, usage.resident_bytes);
        if let Some(look) = look.filter(|look| nearness() == Nearness::AtIt || look.is_at_limit()) {
            give_back(state, &look);
        }
        let first = look.filter(|look| look.is_at_limit() && state.said != process);
        if first.is_some() {
            state.said = process;
        }
        let is_beyond = look.is_some_and(|look| look.is_beyond_limit()) && state.saved != process;
        if is_beyond {
            state.saved = process;
        }
        (first, is_beyond, next)
    });
    let Some((first, is_beyond, next)) = looked else { return SOON_MS };
    // The reading may have noted a limit after the sandbox began.
    if memory_limit::is_in_sandbox() {
        memory_limit::forget();
        ticks::end(Whose::Limit);
    }
    if let Some(look) = first {
        say(&look);
    } else if is_beyond {
        _ = save_profile();
    }
    next
}

/// Releases all free memory that no thread owns, if there is time for it. If little is released,
/// because other processes use the group's memory, releases become less frequent.
fn give_back(state: &mut State, look: &Look) {
    let began = os::now_ns();
    if began < state.give_back_ns {
        return;
    }
    let given = chunk::purge_all(0);
    let is_much = given > look.limit / 256;
    let distance = if is_much { SOONEST_NS } else { (state.distance_ns * 2).min(LATEST_NS) };
    let took = os::now_ns().saturating_sub(began);
    state.distance_ns = distance;
    state.give_back_ns = began + (took * SHARE).max(distance);
}

#[cold]
fn say(look: &Look) {
    const MIB: usize = 1 << 20;
    let line = Line::new()
        .text("process ")
        .number(substrate::process() as usize)
        .text(" is at its memory limit: ")
        .number(look.used.saturating_add(look.fresh.min(look.limit)) / MIB)
        .text(" of ")
        .number(look.limit / MIB)
        .text(" MiB are in use or asked for; ");
    let saved = save_profile();
    // The write must not block, for example on a full pipe.
    if !os::can_write_stderr() {
        return;
    }
    match saved {
        Saved::In(path) => {
            line.text("the heap profile is saved in ").bytes(files::shown(&path)).write();
        }
        Saved::No => line.text("the heap profile could not be saved (option profile)").write(),
        Saved::None => {
            line.text("see `heapwright top`, and option sample for a heap profile").write();
        }
    }
}

#[cfg_attr(not(feature = "debug"), allow(dead_code, reason = "there is none then"))]
#[expect(
    clippy::large_enum_variant,
    reason = "it lives for one line, and there is no memory to box it"
)]
enum Saved {
    In([u8; PATH]),
    No,
    None,
}

#[cfg(feature = "debug")]
fn save_profile() -> Saved {
    if !crate::profile::is_on() {
        return Saved::None;
    }
    crate::samples::save_at_limit().map_or(Saved::No, Saved::In)
}

#[cfg(not(feature = "debug"))]
fn save_profile() -> Saved {
    Saved::None
}
