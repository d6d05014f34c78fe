//! The substrate: the common base of all heaps, opened once.
//!
//! ```text
//!   NEW --the first front end--> the window opens --> READY
//!                                               \--> FAILED (no memory)
//! ```
//!
//! Opening allocates nothing through `malloc` and registers nothing. So it is possible before
//! `main`, and while the caller holds locks. [`begun`] registers the fork handlers. For these the C
//! library may allocate, so the caller must hold no lock. Called by all front ends.

use crate::chunk;
use crate::fork::{self, Part};
use crate::options::{self, Hardening, Options};
use crate::os;
use crate::purge_delay;
use crate::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{self, Lock};
use crate::ticks;

const NEW: u8 = 0;
const READY: u8 = 1;
const FAILED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(NEW);
static OPENING: Lock<()> = Lock::new(());
static STARTED_AT: AtomicU64 = AtomicU64::new(0);
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Opens the window with the given options, unless it is open. False: there is no memory.
pub fn open(options: impl FnOnce() -> &'static Options) -> bool {
    match STATE.load(Ordering::Acquire) {
        READY => true,
        FAILED => false,
        _ => open_first(options()),
    }
}

#[cold]
fn open_first(chosen: &Options) -> bool {
    let _one = OPENING.lock();
    match STATE.load(Ordering::Acquire) {
        READY => return true,
        FAILED => return false,
        _ => {}
    }
    os::begin();
    os::pretend_page_size(chosen.page);
    purge_delay::set_bounds(chosen.purge_ms, chosen.purge_max_ms);
    chunk::allow_huge_pages(chosen.huge_pages);
    let opened = chunk::open(chosen.window, chosen.hardening != Hardening::Off);
    STARTED_AT.store(os::now_ns(), Ordering::Relaxed);
    PROCESS.store(os::process_id(), Ordering::Relaxed);
    STATE.store(if opened { READY } else { FAILED }, Ordering::Release);
    opened
}

/// Something that one thread registers once, while other threads wait. They must wait, because a
/// fork before all handlers are registered would copy locks that another thread holds.
pub struct Registration {
    /// The process whose thread registers now. 0: none yet. [`Self::DONE`]: all is registered.
    process: AtomicU32,
    thread: AtomicUsize,
}

impl Registration {
    /// Nothing is registered.
    pub const fn new() -> Self {
        Self { process: AtomicU32::new(0), thread: AtomicUsize::new(0) }
    }

    /// Calls `register` in the first thread that calls this function. Other threads wait. A nested
    /// call (if the C library allocates) returns at once. In a child that was forked meanwhile, the
    /// first caller registers again. A wait ends after a second, because the other thread may wait
    /// for a lock of the caller. The caller must hold none of our locks; across a fork it holds all
    /// of them, and does not wait.
    #[inline]
    pub fn once(&self, register: impl FnOnce()) {
        if self.process.load(Ordering::Acquire) != Self::DONE {
            self.first(register);
        }
    }

    const DONE: u32 = u32::MAX;

    #[cold]
    fn first(&self, register: impl FnOnce()) {
        const PATIENCE_NS: u64 = 1_000_000_000;
        let (here, me) = (os::process_id(), os::thread_token());
        let mut until = 0;
        loop {
            match self.process.load(Ordering::Acquire) {
                Self::DONE => return,
                process if process == here => {
                    if self.thread.load(Ordering::Relaxed) == me
                        || sync::holds_all()
                        || sync::is_interrupted()
                    {
                        return;
                    }
                }
                before => {
                    let (set, fetch) = (Ordering::Acquire, Ordering::Relaxed);
                    if self.process.compare_exchange(before, here, set, fetch).is_ok() {
                        self.thread.store(me, Ordering::Relaxed);
                        register();
                        return self.process.store(Self::DONE, Ordering::Release);
                    }
                    continue;
                }
            }
            let now = os::now_ns();
            if until == 0 {
                until = now + PATIENCE_NS;
            } else if now > until {
                return;
            }
            os::yield_now();
        }
    }
}

/// Registers the fork handlers once: see [`Registration::once`].
pub fn begun() {
    static REGISTRATION: Registration = Registration::new();
    REGISTRATION.once(|| {
        fork::register();
        fork::join(Part::Substrate, &HANDLERS);
    });
}

/// [`open`] and [`begun`]. The caller must hold no lock, unless this has returned true before.
pub fn open_and_begin() -> bool {
    let opened = open(options::get);
    if opened {
        begun();
    }
    opened
}

/// The clock in nanoseconds when the window opened; 0 before.
pub fn started_at() -> u64 {
    STARTED_AT.load(Ordering::Relaxed)
}

/// The number of the process; of the parent, in a child of `vfork`; 0 before the start.
#[inline]
pub fn process() -> u32 {
    PROCESS.load(Ordering::Relaxed)
}

/// Whether the caller runs in the noted process, or before the start. False in a child of `vfork`,
/// which uses its parent's memory and must not act for the parent.
pub fn is_original_process() -> bool {
    let process = PROCESS.load(Ordering::Relaxed);
    process == 0 || process == os::process_id()
}

static HANDLERS: fork::Handlers = fork::Handlers { before, unlock, in_child };

fn before() {
    OPENING.acquire();
    chunk::metadata::before_fork();
    chunk::before_fork();
}

/// # Safety
///
/// Follows [`before`] in the forking thread or its copy in the child.
unsafe fn unlock() {
    // SAFETY: this thread (in a child: its original) took the locks before the fork.
    unsafe { chunk::after_fork() };
    // SAFETY: this thread (in a child: its original) took the locks before the fork.
    unsafe { chunk::metadata::after_fork() };
    // SAFETY: this thread (in a child: its original) took the lock before the fork.
    unsafe { OPENING.release() };
}

fn in_child(_alone: bool) {
    PROCESS.store(os::new_process_id(), Ordering::Relaxed);
    ticks::forget_after_fork();
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;
    extern crate std;
    use std::sync::mpsc;
    use std::thread;

    fn forked(child: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child calls only functions that need no lock of another thread, and ends.
        match unsafe { libc::fork() } {
            // SAFETY: ends the child with no other effect.
            0 => unsafe { libc::_exit(child().into()) },
            child => {
                let mut status = 0;
                // SAFETY: the status is ours to write.
                assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
                libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 1
            }
        }
    }

    #[test]
    fn a_child_registers_where_the_thread_that_did_is_missing() {
        static REGISTRATION: Registration = Registration::new();
        let registers = || {
            let mut registered = false;
            REGISTRATION.once(|| registered = true);
            registered
        };
        let (begun, is_begun) = mpsc::channel();
        let (end, is_to_end) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                REGISTRATION.once(|| {
                    assert!(!registers());
                    begun.send(()).unwrap();
                    is_to_end.recv().unwrap();
                });
            });
            is_begun.recv().unwrap();
            // The child registers once: it does not wait for the missing thread.
            let is_right = forked(|| registers() && !registers() && !forked(registers));
            // This precedes everything that can fail, because the scope waits for the thread.
            end.send(()).unwrap();
            assert!(is_right);
        });
        assert!(!registers());
    }
}
