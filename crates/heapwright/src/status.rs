//! The status of this process: figures for other processes, and orders of the command.
//!
//! ```text
//!   publish()    from now on, at ticks:
//!   the first    the heap has started: makes the status memory, takes a slot in it
//!   others       at a slow path:        an order?  -> samples, stops, writes a profile, trims
//!                                       it is time -> writes the use of memory into the slot
//!   withdraw()   gives the slot back
//! ```
//!
//! `heapwright top` shows the slot; `profile PID` and `trim PID` of the command give orders. See
//! `heapwright_record::status` for the memory. No thread, signal or ptrace is needed.
//!
//! After the start, ticks make no system call, because the program may be in a sandbox by then.
//! Only a tracer or an order of the command leads to system calls. A forked child takes a slot of
//! its own at its first tick. A process whose slot was taken by another process takes a new slot. A
//! hardened process shows no address, and follows no order, because other processes can write into
//! a slot.
//!
//! A process that no command watches reports rarely: at once, then whenever its slot is an eighth
//! older, and finally once a second. Reports take at most a thousandth of the time. While a command
//! watches, or while the heap changes by eighths, they take at most a two-hundredth. The idea of a
//! page shared between a process and its observers comes from the JVM's `hsperfdata`.
//!
//! Invariant: `SLOT` is the slot of the process `OWNER`. Only a tick, or [`withdraw`] at the end,
//! changes them.

use heapwright_record::status::{
    Answer, BYTES, Facts, MOST, Order, Owner, PROFILE_FOLDER, Report, Slot, Status,
};

use crate::chunk;
use crate::files::{PATH, Path};
use crate::heap;
use crate::options::{self, Hardening};
use crate::os;
use crate::purge_delay;
use crate::stats;
use crate::substrate;
use crate::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::ticks::{self, Kept, Whose};
use core::cell::UnsafeCell;
use core::ptr;

const LOOK_MS: u32 = 4;
/// The most nanoseconds between two reports, and the part of the time that reports may take.
const SELDOM_NS: u64 = 1_000_000_000;
const SELDOM_SHARE: u64 = 1000;
/// The same while a command watches.
const OFTEN_NS: u64 = 100_000_000;
const OFTEN_SHARE: u64 = 200;
/// A report counts as at most this long, because a longer one was interrupted, or was the first.
const LONGEST_NS: u64 = 20_000;
const LONGEST_OF_UNIT_NS: u64 = 50;
/// A report is due after this share of the slot's age, or a change of this share of bytes in use.
const AGE_SHARE: u64 = 8;
const CHANGED_SHARE: usize = 8;

static STATUS: AtomicPtr<Status> = AtomicPtr::new(ptr::null_mut());
static NAMESPACE: AtomicU32 = AtomicU32::new(0);
static OWNER: AtomicU32 = AtomicU32::new(0);
static SLOT: AtomicUsize = AtomicUsize::new(0);
/// The times when the slot was taken and when the last report was made, and its duration.
static BEGAN_NS: AtomicU64 = AtomicU64::new(0);
static REPORTED_NS: AtomicU64 = AtomicU64::new(0);
static TOOK_NS: AtomicU64 = AtomicU64::new(0);
static REPORTED_BYTES: AtomicUsize = AtomicUsize::new(0);
/// The folder for ordered profiles, from the environment or `PROFILE_FOLDER`.
struct Folder(UnsafeCell<Path>);

// SAFETY: written before `STATUS` is stored, and only read after that.
unsafe impl Sync for Folder {}

static FOLDER: Folder = Folder(UnsafeCell::new(Path::none()));

const NAME: usize = 64;

/// The time when ordered samples end, also in a forked child; 0 without ordered samples.
static SAMPLES_UNTIL_NS: AtomicU64 = AtomicU64::new(0);

/// Shows this process to the same user's `heapwright top` and `heapwright profile PID`, in System V
/// shared memory, as soon as the heap has started. A preloaded library calls this by itself. A
/// program that links heapwright may call it. The caller must hold no lock.
///
/// Takes some microseconds, for six system calls. A process is not shown if it is set-uid, or if it
/// has the option `publish=no`. Nor is it shown if the kernel gives no shared memory, or the system
/// has a thousand segments.
///
/// ```
/// heapwright::status::publish();
/// let block = heapwright::heap::malloc(1);
/// // SAFETY: a block of our own.
/// unsafe { heapwright::heap::free(block) };
/// // True, unless the build or the system has no System V shared memory.
/// let _ = heapwright::status::is_published();
/// ```
#[inline]
pub fn publish() {
    ticks::begin(Whose::Status, begin);
    if heap::has_started() {
        ticks::pass(os::coarse_ms());
    }
}

/// The first tick: makes the status memory. Returns the milliseconds to the next tick.
fn begin(now: u32) -> u32 {
    if !substrate::is_original_process() {
        return LOOK_MS;
    }
    if STATUS.load(Ordering::Relaxed).is_null() {
        let is_wanted = options::get().publish && !os::is_privileged();
        if !is_wanted || os::keeping_errno(open).is_none() {
            ticks::end(Whose::Status);
            return LOOK_MS;
        }
    }
    ticks::go_on_with(Whose::Status, tick);
    // Some programs start within a tick, and then allocate nothing for a long time.
    tick(now)
}

/// Makes the memory, and takes a slot in it. Returns `None` if the kernel gives no memory.
#[inline(never)] // Its paths are off the stack before the first tick reports.
fn open() -> Option<()> {
    let at: *mut Status = os::shared_memory(BYTES)?.cast();
    // SAFETY: the memory is mapped for the life of the process, page-aligned, and as long as a
    // `Status`; any bytes are valid.
    let status = unsafe { &*at };
    status.begin();
    let mut given = [0; PATH];
    let length = os::environment(b"XDG_RUNTIME_DIR", &mut given).unwrap_or(0);
    let is_fit = given[0] == b'/' && length < PATH - NAME;
    let folder = if is_fit { &given[..length] } else { PROFILE_FOLDER.as_bytes() };
    // SAFETY: no thread reads it before `STATUS` is stored.
    unsafe { *FOLDER.0.get() = Path::none().with(folder) };
    NAMESPACE.store(os::process_namespace(), Ordering::Relaxed);
    take_slot(status);
    STATUS.store(at, Ordering::Release);
    Some(())
}

/// Returns whether other processes can see this process.
///
/// ```
/// let _ = heapwright::status::is_published();
/// ```
#[must_use]
pub fn is_published() -> bool {
    status().is_some() && OWNER.load(Ordering::Relaxed) == substrate::process()
}

/// Gives the slot back before the process ends, without a system call. A child of `vfork` must not
/// call this.
///
/// ```
/// heapwright::status::withdraw();
/// assert!(!heapwright::status::is_published());
/// ```
#[inline]
pub fn withdraw() {
    if !STATUS.load(Ordering::Relaxed).is_null() {
        give_back();
    }
}

#[cold]
fn give_back() {
    let Some(status) = status() else { return };
    let owner = Owner { process: OWNER.load(Ordering::Relaxed), namespace: namespace() };
    if owner.process != 0 && owner.process == substrate::process() {
        ticks::end(Whose::Status);
        end_samples();
        STATUS.store(ptr::null_mut(), Ordering::Relaxed);
        OWNER.store(0, Ordering::Relaxed);
        status.give_back(SLOT.load(Ordering::Relaxed), owner);
    }
}

fn namespace() -> u32 {
    NAMESPACE.load(Ordering::Relaxed)
}

fn status() -> Option<&'static Status> {
    // SAFETY: the pointer is null or memory that is mapped for the life of the process.
    unsafe { STATUS.load(Ordering::Acquire).as_ref() }
}

fn is_hardened() -> bool {
    options::get().hardening != Hardening::Off
}

#[inline(never)]
fn take_slot(status: &Status) -> bool {
    let process = substrate::process();
    let taken = status.take(Owner { process, namespace: namespace() });
    SLOT.store(taken.unwrap_or(0), Ordering::Relaxed);
    OWNER.store(if taken.is_some() { process } else { 0 }, Ordering::Relaxed);
    BEGAN_NS.store(os::now_ns(), Ordering::Relaxed);
    REPORTED_NS.store(0, Ordering::Relaxed);
    taken.is_some()
}

/// Returns the milliseconds to the next tick.
fn tick(_now: u32) -> u32 {
    let Some(status) = status() else { return LOOK_MS };
    let me = Owner { process: substrate::process(), namespace: namespace() };
    let index = SLOT.load(Ordering::Relaxed);
    let now = os::now_ns();
    let until = SAMPLES_UNTIL_NS.load(Ordering::Relaxed);
    if until != 0 && now > until {
        // The command that ordered samples has disappeared.
        follow(Order::Stop, now);
    }
    follow_tracer();
    let has_slot = OWNER.load(Ordering::Relaxed) == me.process && status.owner(index) == Some(me);
    if !has_slot && !take_slot(status) {
        return SELDOM_NS as u32 / 1_000_000;
    }
    let Some(slot) = status.slot(SLOT.load(Ordering::Relaxed)) else { return LOOK_MS };
    if let Some((number, order, until)) = slot.order() {
        let answer = match order {
            _ if is_hardened() => Answer::Refused,
            Some(_) if until <= os::now_ns() => Answer::Failed,
            Some(Order::Trim) => {
                ticks::ask_to_trim();
                Answer::Done
            }
            Some(order) => follow(order, until),
            None => Answer::Unknown,
        };
        slot.answer(number, answer);
        // The change is reported at once.
        REPORTED_NS.store(0, Ordering::Relaxed);
    }
    let Some(usage) = chunk::usage_now() else { return LOOK_MS };
    let (now, reported) = (os::now_ns(), REPORTED_BYTES.load(Ordering::Relaxed));
    let (most, share) = if in_use(&usage).abs_diff(reported) > reported / CHANGED_SHARE {
        (0, OFTEN_SHARE)
    } else if slot.is_watched(now) {
        (OFTEN_NS, OFTEN_SHARE)
    } else {
        let age = now.saturating_sub(BEGAN_NS.load(Ordering::Relaxed));
        ((age / AGE_SHARE).clamp(u64::from(LOOK_MS) * 1_000_000, SELDOM_NS), SELDOM_SHARE)
    };
    let took = TOOK_NS.load(Ordering::Relaxed);
    if now.saturating_sub(REPORTED_NS.load(Ordering::Relaxed)) >= most.max(took * share) {
        report(slot, &usage, now);
    }
    LOOK_MS
}

fn in_use(usage: &chunk::Usage) -> usize {
    usage.resident_bytes.saturating_sub(usage.dirty_bytes)
}

/// Filled by one thread at a time. Not on the stack, which may be a coroutine's.
static REPORT: Kept<Report> = Kept::new(Report::ZERO);

#[inline(never)]
fn report(slot: &Slot, usage: &chunk::Usage, now: u64) {
    REPORT.with(|report| {
        stats::reckon(&mut report.stats, &mut report.classes, usage);
        report.stats.pid = u64::from(OWNER.load(Ordering::Relaxed));
        let took_ns = os::now_ns().saturating_sub(now);
        REPORTED_NS.store(now, Ordering::Relaxed);
        REPORTED_BYTES.store(in_use(usage), Ordering::Relaxed);
        let longest = LONGEST_NS + LONGEST_OF_UNIT_NS * usage.frontier as u64;
        TOOK_NS.store(took_ns.min(longest), Ordering::Relaxed);
        let shown = |at: usize| if is_hardened() { 0 } else { at as u64 };
        let [table, records, bitmaps] =
            usage.side_ranges.map(|(at, size)| (shown(at.addr()), size as u64));
        report.facts = Facts {
            written_ns: now,
            took_ns,
            window_at: shown(usage.window_at),
            window_bytes: usage.reserved_bytes as u64,
            window_used: (usage.frontier * crate::size_class::UNIT) as u64,
            table_at: table.0,
            table_bytes: table.1,
            records_at: records.0,
            records_bytes: records.1,
            bitmaps_at: bitmaps.0,
            bitmaps_bytes: bitmaps.1,
            sampling: crate::cache::draw::period() as u64,
            purge_delay_ms: purge_delay::purge_delay().map_or(MOST, |ms| ms as u64),
            version: version(),
        };
        slot.write(report);
    });
}

const fn version() -> u64 {
    const fn number(text: &str) -> u64 {
        let (bytes, mut value, mut at) = (text.as_bytes(), 0, 0);
        while at < bytes.len() {
            value = value * 10 + (bytes[at] - b'0') as u64;
            at += 1;
        }
        value
    }
    number(env!("CARGO_PKG_VERSION_MAJOR")) << 32
        | number(env!("CARGO_PKG_VERSION_MINOR")) << 16
        | number(env!("CARGO_PKG_VERSION_PATCH"))
}

#[cfg(feature = "debug")]
#[inline(never)]
fn follow(order: Order, until: u64) -> Answer {
    use crate::cache::draw::period;
    use crate::drawn::{self, By};
    use crate::heap;
    use crate::options::{LEAST_SAMPLE, MOST_SAMPLE};

    let is_done = match order {
        Order::Sample(_) | Order::Stop if drawn::samples_by(By::Program) => return Answer::Busy,
        Order::Sample(wanted) => {
            SAMPLES_UNTIL_NS.store(until, Ordering::Relaxed);
            let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
            let wanted = wanted.clamp(LEAST_SAMPLE, MOST_SAMPLE);
            // A repeated order continues the samples.
            drawn::samples_by(By::Order) && period() == wanted
                || heap::begin_sampling(wanted, By::Order)
        }
        Order::Stop => {
            SAMPLES_UNTIL_NS.store(0, Ordering::Relaxed);
            drawn::end_sampling_by(By::Order);
            true
        }
        Order::Write => {
            // SAFETY: the folder was written before `STATUS` was stored, which this thread read.
            let folder = unsafe { *FOLDER.0.get() };
            let common = Path::none().with(PROFILE_FOLDER.as_bytes());
            let write = |folder| crate::samples::write_to(profile_in(folder).as_bytes());
            write(folder) || write(common)
        }
        // `tick` handles this order.
        Order::Trim => false,
    };
    if is_done { Answer::Done } else { Answer::Failed }
}

/// Samples while a tracer is attached to the probes, unless another user of samples is active. Does
/// not sample in a sandbox, because a sample makes system calls.
#[cfg(feature = "debug")]
fn follow_tracer() {
    use crate::cache::draw::period;
    use crate::drawn::{self, By};
    use crate::heap;
    use crate::memory_limit;
    use crate::options::DEFAULT_SAMPLE;

    if !crate::samples::probes::is_traced() || memory_limit::is_in_sandbox() {
        drawn::end_sampling_by(By::Tracer);
    } else if period() == 0 {
        _ = heap::begin_sampling(DEFAULT_SAMPLE, By::Tracer);
    }
}

#[cfg(not(feature = "debug"))]
fn follow_tracer() {}

/// Ends samples that no later tick will end.
#[cfg(feature = "debug")]
fn end_samples() {
    use crate::drawn::{self, By};

    SAMPLES_UNTIL_NS.store(0, Ordering::Relaxed);
    drawn::end_sampling_by(By::Order);
    drawn::end_sampling_by(By::Tracer);
}

#[cfg(not(feature = "debug"))]
fn end_samples() {}

#[cfg(feature = "debug")]
fn profile_in(folder: Path) -> Path {
    let [before, between, behind] = heapwright_record::status::PROFILE_NAME.map(str::as_bytes);
    let path = folder.with(b"/").with(before).with_number(os::user_id()).with(between);
    path.with_number(substrate::process()).with(behind)
}

#[cfg(not(feature = "debug"))]
fn follow(_order: Order, _until: u64) -> Answer {
    Answer::Unknown
}
