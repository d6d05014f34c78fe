//! Tells the runtime that finalizers are due, or that guardians have objects to retrieve.
//!
//! ```text
//!   marking ends: some are due --note--> the world goes on --tell--> runtime's function: sets a flag, wakes a thread
//! ```
//!
//! Once a collection, by the thread that collected, after the other threads have resumed. So the
//! function may take a lock that a mutator holds, though it may not allocate or collect.
//!
//! Noted by `settling`, told by `cycle`.

use core::ffi::c_void;

use heapwright_substrate::sync::Lock;

use super::cell::Num;
use super::locks::With;

/// The function that is called with the context when some are due.
pub type SomeAreDue = unsafe extern "C" fn(context: *mut c_void);

/// The runtime's function. Zero has none.
pub(super) struct Due {
    noted: Num,
    whom: Lock<Whom>,
}

#[derive(Clone, Copy)]
struct Whom(Option<SomeAreDue>, *mut c_void);

// SAFETY: a context is the runtime's, which promises that its function may be called by any thread.
unsafe impl Send for Whom {}

impl Due {
    /// Some are due.
    pub(super) fn note(&self) {
        self.noted.set(1);
    }

    /// Sets or removes the function.
    pub(super) fn choose(&self, whom: Option<SomeAreDue>, context: *mut c_void) {
        *self.whom.lock() = Whom(whom, context);
    }

    /// Calls it, if something was noted. By the thread that noted it, after the world has resumed.
    pub(super) fn tell(&self) {
        if self.noted.take() == 0 {
            return;
        }
        // Under the lock: after a change of the function the old one is not running any more.
        let asked = self.whom.lock();
        if let Whom(Some(whom), context) = *asked {
            // SAFETY: the runtime's duty.
            unsafe { whom(context) };
        }
    }

    /// Forgets all.
    pub(super) fn end(&self) {
        self.noted.set(0);
        self.choose(None, core::ptr::null_mut());
    }

    /// Hands its lock to `with`.
    pub(super) fn each_lock(&self, with: With<'_>) {
        with(&self.whom);
    }
}
