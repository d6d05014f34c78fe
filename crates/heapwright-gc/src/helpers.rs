//! Helpers: threads that do nothing but mark, where a processor has nothing better to do.
//!
//! ```text
//!   collector   drain: is there much to mark, and a processor idle?  --call--> calls + 1, wake
//!                                                                                 |
//!   helper      asleep at `calls` --> come, mark with the gang, go, asleep again  <
//!                    |
//!                    +-- nobody called for a second, or the heap ends: the thread is over
//! ```
//!
//! Mutators that stand still mark with their collector; but a program with one mutator has none. So
//! a heap that has a whole marking before it, of some size, calls helpers: as many as there are
//! processors beyond those that mark already, up to the limit its options name. They are made when
//! they are first called and are gone when they have slept for a second: a program that collects
//! nothing has no thread of heapwright's, nor has the child of a fork. Steps with a deadline are
//! over before a thread is awake, and do without.
//!
//! A helper is no mutator: it has a tracer, and is in the gang while that is open, which is only
//! while the world stands still. All signals are blocked in it, but those of faults: what a runtime
//! does about them it does on a helper as well.
//!
//! What a helper does is in `help`.

use core::ffi::c_void;

use heapwright_substrate::os;
use heapwright_substrate::sync::atomic::{AtomicU32, Ordering};

use super::waiting::{Then, WaitLimit, wait, wake};

/// How long the heap waits for a helper to end.
const UNTIL_ONE_ENDS: WaitLimit = WaitLimit { looks: 100, then: Then::SleepFor(1_000_000) };

/// What a helper runs.
pub(super) type Life = extern "C" fn(*mut c_void) -> *mut c_void;

/// The helpers of one heap. Zero has none.
pub(super) struct Helpers {
    /// Threads there are.
    pub(super) count: AtomicU32,
    /// Moves when they are called, or are to end: where they sleep.
    pub(super) calls: AtomicU32,
    /// Whether they are to end.
    pub(super) ending: AtomicU32,
    /// The process they are of: a child made behind the back of `fork` has none of them.
    process: AtomicU32,
}

impl Helpers {
    /// Calls helpers, and makes those of `wanted` that there are not: threads that `run` with `of`.
    pub(super) fn call(&self, run: Life, of: *mut c_void, wanted: usize) {
        self.process.store(os::process_id(), Ordering::Relaxed);
        while (self.count.load(Ordering::Relaxed) as usize) < wanted {
            self.count.fetch_add(1, Ordering::Relaxed);
            if !os::spawn(run, of) {
                self.leave();
                break;
            }
        }
        self.calls.fetch_add(1, Ordering::Release);
        wake(&self.calls);
    }

    pub(super) fn leave(&self) {
        self.count.fetch_sub(1, Ordering::Release);
        wake(&self.count);
    }

    /// Ends all, and waits until they have gone.
    pub(super) fn end(&self) {
        self.ending.store(1, Ordering::Relaxed);
        self.calls.fetch_add(1, Ordering::Release);
        wake(&self.calls);
        loop {
            // Acquire: they touch nothing of the heap any more.
            let count = self.count.load(Ordering::Acquire);
            if count == 0 || self.process.load(Ordering::Relaxed) != os::process_id() {
                break;
            }
            wait(&self.count, count, UNTIL_ONE_ENDS);
        }
        self.ending.store(0, Ordering::Relaxed);
        self.forget();
    }

    /// In a forked child, which has no other threads.
    pub(super) fn forget(&self) {
        self.count.store(0, Ordering::Relaxed);
    }
}
