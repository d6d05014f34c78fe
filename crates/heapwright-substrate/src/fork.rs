//! Fork: every lock held by the thread that forks, and given back on both sides.
//!
//! ```text
//!   before    collected -> FORKING -> streams -> pools -> heap -> arenas -> debug -> substrate -> trace -> samples
//!   fork
//!   unlock    samples -> trace -> substrate -> debug -> arenas -> heap -> pools -> collected -> FORKING -> streams   on both sides
//!   child     samples -> trace -> substrate -> debug -> arenas -> heap -> pools -> collected     forget what other threads were doing
//! ```
//!
//! So no lock is held by a thread that the child does not have, and what the
//! locks protect (runs, metadata, registries, shared pools) is whole. What is
//! not under a lock is argued for in each part: see `heap::start`.
//!
//! Handlers of others that were registered before ours run while the locks are held, in the same
//! thread, and may allocate: see `sync::hold_all`. They come in by every lock, so a *signal
//! handler* that interrupted them would meet them in the midst of something; and in the child it
//! would meet what is yet to be put right. Therefore signals wait, but those of faults, from when
//! the last lock was taken. (Not before: a collector may stop all threads by a signal, and one that
//! stands still so may have the lock that is waited for. Until then a handler that interrupts a
//! fork waits for no lock.) A handler of others that forks itself finds all locks held, and takes
//! none.
//!
//! **Collected heaps first of all.** Their mutators must stop while the forking thread holds no
//! lock. A mutator on its way to a safepoint may wait for `FORKING`, because it forks, or uses a
//! part of heapwright for the first time.
//!
//! **Streams before malloc.** A thread that reads a line allocates with the stream locked,
//! `fflush(NULL)` waits for streams with the lock of their list, and the C library takes that lock
//! in every fork, *after* this file's handler. So the handler takes it before any lock that malloc
//! takes: see `os::lock_streams`. Mutators of collected heaps stop before that, because one of them
//! may wait for that lock on its way to a safepoint. What other prefork handlers lock is in order
//! too where they were registered after ours, since the last one registered runs first. A preloaded
//! library registers before the program's first instruction.
//!
//! **Slots first.** The slots of what threads share (caches, magazines of pools) are not counted as
//! locks (`sync::is_interrupted`): a signal handler in another thread may have interrupted the
//! holder of one that is waited for here, and wait for any other lock. So as long as slots are
//! waited for no lock is held that a handler may need.
//!
//! A child of `vfork` runs none of this and shares the parent's memory until
//! it execs, as with any allocator.
//!
//! Called by the parts, which join when they start.

use core::cell::UnsafeCell;
use core::ptr;

use crate::os::{self, SignalMask};
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicUsize, Ordering};
use crate::sync::{self, Lock};

/// What has locks, in the order in which they are taken.
#[derive(Clone, Copy)]
pub enum Part {
    /// Collected heaps, whose mutators stop first: they may need any lock to come that far.
    Collected,
    /// Pools that threads share, and their names: some are slots, see above.
    Pools,
    /// Caches, those that are slots first, and first-class heaps.
    Heap,
    /// Arenas that threads share.
    Arenas,
    /// Debug heaps.
    #[allow(dead_code, reason = "a part of the feature `debug`")]
    Debug,
    /// The window and what is carved from it.
    Substrate,
    /// What writes calls down. Its holder waits for no lock, and a thread that writes may hold any.
    Trace,
    /// The samples of a heap profile. Their holder waits for no lock, and a thread that adds one
    /// may hold any.
    #[allow(dead_code, reason = "a part of the feature `debug`")]
    Samples,
}

const PARTS: usize = 8;

/// What a part does around a fork.
pub struct Handlers {
    /// Takes the locks.
    pub before: fn(),
    /// Gives them back. Follows `before` in the same thread or its copy.
    pub unlock: unsafe fn(),
    /// Then, in the child: puts right what other threads were doing. Is told
    /// whether the forking thread was the only one.
    pub in_child: fn(bool),
}

static JOINED: [AtomicPtr<Handlers>; PARTS] = [const { AtomicPtr::new(ptr::null_mut()) }; PARTS];
/// The thread whose fork took the locks; 0: none did.
static HOLDER: AtomicUsize = AtomicUsize::new(0);
/// The process had one thread when it forked.
static ALONE: AtomicBool = AtomicBool::new(false);
/// The parts, as bits, whose locks the fork under way took.
static HELD: AtomicU8 = AtomicU8::new(0);

/// Forks under way that handlers of others made while all locks were held.
static WITHIN: AtomicUsize = AtomicUsize::new(0);

/// The signals that the thread which forks had blocked. Its alone.
struct Blocked(UnsafeCell<SignalMask>);

// SAFETY: touched by the thread that holds `FORKING`, or is its copy in the child.
unsafe impl Sync for Blocked {}

static BLOCKED: Blocked = Blocked(UnsafeCell::new(SignalMask::NONE));

/// Taken by a thread that forks: two threads may do so at once, and the C library does not
/// hold its own lock while handlers run.
static FORKING: Lock<()> = Lock::new(());

/// Adds a part, before its locks are used for the first time. Waits for a fork that is
/// under way, which does not know of it. Again does no harm.
pub fn join(part: Part, handlers: &'static Handlers) {
    let _none_forks = FORKING.lock();
    JOINED[part as usize].store(ptr::from_ref(handlers).cast_mut(), Ordering::Release);
}

fn joined(part: usize) -> Option<&'static Handlers> {
    // SAFETY: null, or handlers that live as long as the process.
    unsafe { JOINED[part].load(Ordering::Acquire).as_ref() }
}

/// Registers the handlers. Once.
pub fn register() {
    os::around_fork(before, in_parent, in_child);
}

unsafe extern "C" fn before() {
    if sync::holds_all() {
        WITHIN.fetch_add(1, Ordering::Relaxed);
        return;
    }
    // One thread: nobody else can hold a lock, and if this is a signal handler
    // that interrupted the heap, this thread does. The child goes on where the
    // handler returns, and gives the lock back itself.
    let alone = os::is_single_threaded();
    ALONE.store(alone, Ordering::Relaxed);
    if alone {
        return;
    }
    let collected = loop {
        let collected = joined(Part::Collected as usize);
        if let Some(handlers) = collected {
            (handlers.before)();
        }
        FORKING.acquire();
        // The first collected heap may have been made meanwhile.
        if collected.is_some() || joined(Part::Collected as usize).is_none() {
            break collected;
        }
        // SAFETY: taken above.
        unsafe { FORKING.release() };
    };
    HOLDER.store(os::thread_token(), Ordering::Relaxed);
    HELD.store(u8::from(collected.is_some()) << Part::Collected as u8, Ordering::Relaxed);
    for part in Part::Pools as usize..PARTS {
        if part == Part::Pools as usize {
            // Mutators have stopped: one may have waited for this lock on its way. What malloc
            // needs comes behind it.
            os::lock_streams();
        }
        if let Some(handlers) = joined(part) {
            (handlers.before)();
            HELD.fetch_or(1 << part, Ordering::Relaxed);
        }
    }
    let blocked = os::block_signals();
    // SAFETY: `FORKING` is held.
    unsafe { BLOCKED.0.get().write(blocked) };
    sync::hold_all();
}

/// Whether this is the end of a fork within another one.
fn ends_within() -> bool {
    let is_within = WITHIN.load(Ordering::Relaxed) > 0;
    if is_within {
        WITHIN.fetch_sub(1, Ordering::Relaxed);
    }
    is_within
}

/// Gives the locks back. Returns the signals to be blocked from now on; none where there were no
/// locks: the process had one thread, or (with musl, which runs the handlers that it has at the
/// end) another thread has registered them since the fork began.
///
/// # Safety
///
/// Runs after the fork, in the forking thread or its copy in the child.
unsafe fn unlock() -> Option<SignalMask> {
    if HOLDER.load(Ordering::Relaxed) != os::thread_token() {
        return None;
    }
    HOLDER.store(0, Ordering::Relaxed);
    sync::hold_all_no_more();
    let held = HELD.load(Ordering::Relaxed);
    for part in (0..PARTS).rev().filter(|part| held >> part & 1 != 0) {
        if let Some(handlers) = joined(part) {
            // SAFETY: the part's locks were taken before the fork by this thread, or by the one
            // that it is a copy of.
            unsafe { (handlers.unlock)() };
        }
    }
    // SAFETY: `FORKING` is held.
    let blocked = unsafe { BLOCKED.0.get().read() };
    // SAFETY: taken by `before`.
    unsafe { FORKING.release() };
    Some(blocked)
}

unsafe extern "C" fn in_parent() {
    if ends_within() {
        return;
    }
    // SAFETY: the C library runs this after `before`, in the same thread.
    if let Some(blocked) = unsafe { unlock() } {
        os::unlock_streams();
        os::restore_signals(blocked);
    }
}

unsafe extern "C" fn in_child() {
    if ends_within() {
        // The C library has reset the lock that the fork around this one still holds.
        os::reset_streams();
        os::lock_streams();
        return;
    }
    // SAFETY: the C library runs this after `before`, in the copy of the thread.
    let blocked = unsafe { unlock() };
    for handlers in (0..PARTS).rev().filter_map(joined) {
        (handlers.in_child)(ALONE.load(Ordering::Relaxed));
    }
    if let Some(blocked) = blocked {
        os::reset_streams();
        os::restore_signals(blocked);
    }
}
