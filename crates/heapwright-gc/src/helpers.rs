//! Helpers: threads that only mark, on idle processors.
//!
//! ```text
//!   collector   drain: is there much to mark, and another processor? --call--> calls + 1, wake
//!                                                                                 |
//!   helper      asleep at `calls` --> come, mark with the gang, go, asleep again  <
//!                    |
//!                    +-- no call for a second, or the heap ends: the thread ends
//! ```
//!
//! Stopped mutators mark with their collector. A heap that has much to mark also calls helpers, up
//! to the number of threads in its options. Helpers are started at their first call, and end when
//! they have slept for a second. Steps with a budget call none: a helper would wake too late.
//!
//! A helper is no mutator. It has a tracer, and joins the gang while the gang is open: only while
//! the world is stopped. All signals except faults are blocked in a helper. A runtime's fault
//! handlers run on helpers too. A helper's work is in `help`.

use core::ffi::c_void;

use heapwright_substrate::os;
use heapwright_substrate::sync::atomic::{AtomicU32, Ordering};

use super::waiting::{Then, WaitLimit, wait, wake};

const UNTIL_ONE_ENDS: WaitLimit = WaitLimit { looks: 100, then: Then::SleepFor(1_000_000) };

pub(super) type Life = extern "C" fn(*mut c_void) -> *mut c_void;

pub(super) struct Helpers {
    pub(super) count: AtomicU32,
    /// Incremented when helpers are called, or are to end. Helpers sleep on this.
    pub(super) calls: AtomicU32,
    pub(super) ending: AtomicU32,
    /// The process of the helpers. A child that was made without `fork`'s handlers has no helpers.
    process: AtomicU32,
}

impl Helpers {
    /// Calls helpers. Starts missing helpers, up to `wanted`, as threads that run `run` with `of`.
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

    /// Ends all helpers, and waits until they have gone.
    pub(super) fn end(&self) {
        self.ending.store(1, Ordering::Relaxed);
        self.calls.fetch_add(1, Ordering::Release);
        wake(&self.calls);
        loop {
            // Acquired: helpers that have gone touch nothing of the heap any more.
            let count = self.count.load(Ordering::Acquire);
            if count == 0 || self.process.load(Ordering::Relaxed) != os::process_id() {
                break;
            }
            wait(&self.count, count, UNTIL_ONE_ENDS);
        }
        self.ending.store(0, Ordering::Relaxed);
        self.forget();
    }

    /// Forgets the helpers, in a forked child, which has no other threads.
    pub(super) fn forget(&self) {
        self.count.store(0, Ordering::Relaxed);
    }
}
