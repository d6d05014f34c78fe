//! Fork: the thread that forks takes every lock, and both sides give them back.
//!
//! ```text
//!   before    collected -> FORKING -> streams -> pools -> heap -> arenas -> debug -> substrate
//!             -> trace -> samples
//!   fork
//!   unlock    both sides: the parts in reverse order, then FORKING, then the streams
//!   child     the parts in reverse order: repair what other threads left half done
//! ```
//!
//! So no thread that the child lacks holds a lock. For state without a lock see `heap::start`.
//! Earlier registered fork handlers of other libraries run in the same thread while the locks are
//! held, and may allocate or fork: see `sync::hold_all`.
//!
//! **Collected heaps first.** Their mutators must stop while the forking thread holds no lock. On
//! its way to a safepoint a mutator may wait for `FORKING`.
//!
//! **Streams before malloc.** A thread that reads a line allocates with the stream locked.
//!
//! **Slots first.** The slots of shared objects (caches, magazines of pools) do not count as locks
//! (`sync::is_interrupted`). A signal handler may have interrupted the holder of a slot, and wait
//! for any other lock. So the forking thread waits for slots before it takes such a lock.
//!
//! A child of `vfork` runs no handler. Called by the parts, which join when they start.

use core::cell::UnsafeCell;
use core::ptr;

use crate::os::{self, SignalMask};
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicUsize, Ordering};
use crate::sync::{self, Lock};

/// A part with locks, in the order in which the parts are locked.
#[derive(Clone, Copy)]
pub enum Part {
    /// Collected heaps: see above.
    Collected,
    /// Pools that threads share, and their names. Some of these locks are slots: see above.
    Pools,
    /// Caches (slots first) and first-class heaps.
    Heap,
    /// Arenas that threads share.
    Arenas,
    /// Debug heaps.
    #[allow(dead_code, reason = "a part of the feature `debug`")]
    Debug,
    /// The window and the units carved from it.
    Substrate,
    /// The trace of calls. Its holder waits for no lock, and a writing thread may hold any lock.
    Trace,
    /// The samples of a heap profile. Their holder waits for no lock, and a sampling thread may
    /// hold any lock.
    #[allow(dead_code, reason = "a part of the feature `debug`")]
    Samples,
}

const PARTS: usize = 8;

/// The actions of a part around a fork.
pub struct Handlers {
    /// Takes the locks.
    pub before: fn(),
    /// Gives the locks back. Follows `before` in the same thread or its copy.
    pub unlock: unsafe fn(),
    /// Runs in the child after `unlock`: repairs the state that other threads left half done. The
    /// argument tells whether the forking thread was the only one.
    pub in_child: fn(bool),
}

static JOINED: [AtomicPtr<Handlers>; PARTS] = [const { AtomicPtr::new(ptr::null_mut()) }; PARTS];
/// The thread whose fork holds the locks; 0: none.
static HOLDER: AtomicUsize = AtomicUsize::new(0);
static ALONE: AtomicBool = AtomicBool::new(false);
static HELD: AtomicU8 = AtomicU8::new(0);

static WITHIN: AtomicUsize = AtomicUsize::new(0);

struct Blocked(UnsafeCell<SignalMask>);

// SAFETY: only the holder of `FORKING`, or its copy in the child, accesses it.
unsafe impl Sync for Blocked {}

static BLOCKED: Blocked = Blocked(UnsafeCell::new(SignalMask::NONE));

/// Two threads may fork at once: the C library does not hold its own lock while handlers run.
static FORKING: Lock<()> = Lock::new(());

/// Adds a part before its locks are used for the first time. Waits for a fork in progress. A second
/// call has no effect.
pub fn join(part: Part, handlers: &'static Handlers) {
    let _none_forks = FORKING.lock();
    JOINED[part as usize].store(ptr::from_ref(handlers).cast_mut(), Ordering::Release);
}

fn joined(part: usize) -> Option<&'static Handlers> {
    // SAFETY: null, or handlers that live as long as the process.
    unsafe { JOINED[part].load(Ordering::Acquire).as_ref() }
}

/// Registers the handlers. Called once.
pub fn register() {
    os::around_fork(before, in_parent, in_child);
}

unsafe extern "C" fn before() {
    if sync::holds_all() {
        WITHIN.fetch_add(1, Ordering::Relaxed);
        return;
    }
    // A single thread takes no locks: if it forks in a signal handler, it may hold a lock itself.
    // In the child the handler returns, and releases the lock.
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
        // The first collected heap may have been made in the meantime.
        if collected.is_some() || joined(Part::Collected as usize).is_none() {
            break collected;
        }
        // SAFETY: this thread took it above.
        unsafe { FORKING.release() };
    };
    HOLDER.store(os::thread_token(), Ordering::Relaxed);
    HELD.store(u8::from(collected.is_some()) << Part::Collected as u8, Ordering::Relaxed);
    for part in Part::Pools as usize..PARTS {
        if part == Part::Pools as usize {
            // `fflush(NULL)` waits for streams with the lock of their list. The C library takes
            // that lock in every fork, after this handler. So this handler takes it before any lock
            // of malloc (see `os::lock_streams`), and after mutators have stopped: a mutator may
            // wait for it on its way to a safepoint.
            //
            // The last registered handler runs first, so other libraries' handlers that were
            // registered after ours take their locks in order. A preloaded library registers before
            // the program's first instruction.
            os::lock_streams();
        }
        if let Some(handlers) = joined(part) {
            (handlers.before)();
            HELD.fetch_or(1 << part, Ordering::Relaxed);
        }
    }
    // A signal handler could find half-done work of another library's fork handler, or state in the
    // child that is not yet repaired. So all signals but faults are blocked. Not earlier: a
    // collector may stop all threads by a signal, and a stopped thread may hold a lock that this
    // thread waits for.
    let blocked = os::block_signals();
    // SAFETY: `FORKING` is held.
    unsafe { BLOCKED.0.get().write(blocked) };
    sync::hold_all();
}

fn ends_within() -> bool {
    let is_within = WITHIN.load(Ordering::Relaxed) > 0;
    if is_within {
        WITHIN.fetch_sub(1, Ordering::Relaxed);
    }
    is_within
}

/// Gives the locks back. Returns the signals to block from now on. `None`: no locks were taken,
/// because the process had one thread, or the handlers were registered during the fork (musl runs
/// the handlers that exist when the fork ends).
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
            // SAFETY: this thread (in a child: its original) took the part's locks before the fork.
            unsafe { (handlers.unlock)() };
        }
    }
    // SAFETY: `FORKING` is held.
    let blocked = unsafe { BLOCKED.0.get().read() };
    // SAFETY: `before` took the lock in this thread (in a child: in its original).
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
        // The C library has reset the lock that the outer fork still holds.
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
