//! Fork: unless it is alone, the thread that forks takes every lock. Both sides give them back.
//!
//! ```text
//!   before    collected -> FORKING -> streams -> pools -> heap -> arenas -> debug -> substrate
//!             -> trace -> samples
//!   fork
//!   unlock    both sides: the parts in reverse order, then FORKING; last of all, the streams
//!   child     before the streams: the parts, in reverse order, repair half-done work of others
//! ```
//!
//! So in the child, no lock is held by a thread that exists only in the parent. For state without a
//! lock see `heap::start`. Fork handlers that other libraries registered before ours run in the
//! same thread while it holds the locks. They may allocate or fork: see `sync::hold_all`.
//!
//! **Collected heaps first.** The forking thread stops their mutators before it takes any lock,
//! because a mutator may need `FORKING` to reach a safepoint.
//!
//! **Streams before malloc.** A thread that reads a line allocates with the stream locked.
//!
//! **Slots first.** The slots of shared objects (caches, magazines of pools) do not count as locks
//! (`sync::is_interrupted`). A signal handler that has interrupted a slot's holder may wait for any
//! other lock. So the forking thread takes the slots before it takes such a lock.
//!
//! A child of `vfork` runs no handler. Each part calls [`join`] when it starts.

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
    /// The trace of calls. A thread may hold any other lock when it takes this lock, and waits for
    /// no lock while it holds it.
    Trace,
    /// The samples of a heap profile. The rule is the same as for the trace.
    #[allow(dead_code, reason = "a part of the feature `debug`")]
    Samples,
}

const PARTS: usize = 8;

/// The actions of a part around a fork.
pub struct Handlers {
    /// Takes the locks.
    pub before: fn(),
    /// Gives the locks back, after `before` in the same thread or its copy.
    pub unlock: unsafe fn(),
    /// Runs in the child after `unlock`, and repairs state that other threads left half done. The
    /// argument tells whether the process had only one thread.
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

/// One thread forks at a time. (The C library does not hold its own lock while handlers run.)
static FORKING: Lock<()> = Lock::new(());

/// Adds a part. Call this before the part's locks are used for the first time. Waits for a fork in
/// progress. A second call has no effect.
pub fn join(part: Part, handlers: &'static Handlers) {
    let _none_forks = FORKING.lock();
    JOINED[part as usize].store(ptr::from_ref(handlers).cast_mut(), Ordering::Release);
}

fn joined(part: usize) -> Option<&'static Handlers> {
    // SAFETY: null, or handlers that live as long as the process.
    unsafe { JOINED[part].load(Ordering::Acquire).as_ref() }
}

/// Registers the handlers. Call this once.
pub fn register() {
    os::around_fork(before, in_parent, in_child);
}

unsafe extern "C" fn before() {
    if sync::holds_all() {
        WITHIN.fetch_add(1, Ordering::Relaxed);
        return;
    }
    // The only thread takes no locks here. If it forks in a signal handler, the interrupted code
    // may hold a lock. In the child, this code continues after the handler, and releases the lock.
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
        // If the first collected heap was made in the meantime, begin again.
        if collected.is_some() || joined(Part::Collected as usize).is_none() {
            break collected;
        }
        // SAFETY: this thread holds `FORKING`.
        unsafe { FORKING.release() };
    };
    HOLDER.store(os::thread_token(), Ordering::Relaxed);
    HELD.store(u8::from(collected.is_some()) << Part::Collected as u8, Ordering::Relaxed);
    for part in Part::Pools as usize..PARTS {
        if part == Part::Pools as usize {
            // In every fork, after this handler, the C library takes the lock of the list of
            // streams. `fflush(NULL)` holds that lock while it waits for streams. So this handler
            // takes the list's lock before any lock of malloc (see `os::lock_streams`). It does so
            // after mutators have stopped, because a mutator may need that lock before it stops.
            //
            // The last registered handler runs first. So handlers that other libraries registered
            // after ours take their locks before this. (A preloaded library registers its handlers
            // before the program's first instruction.)
            os::lock_streams();
        }
        if let Some(handlers) = joined(part) {
            (handlers.before)();
            HELD.fetch_or(1 << part, Ordering::Relaxed);
        }
    }
    // All signals but faults are blocked from here on. Otherwise a signal handler could find
    // half-done work of another library's fork handler, or state in the child that is not yet
    // repaired. They are not blocked earlier: a collector may stop all threads by a signal while
    // this thread waits for a lock of a stopped thread.
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
/// because the process had one thread, or because the handlers were registered during the fork.
/// (musl runs the handlers that exist when the fork ends.)
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
