//! Tells the runtime that finalizers are due, or that guardians have objects to retrieve.
//!
//! ```text
//!   marking ends --note--> the world goes on --tell--> the runtime's function:
//!                                                      sets a flag, wakes a thread
//! ```
//!
//! The collecting thread calls the function, at most once for a collection, after the other threads
//! have resumed. So the function may take a lock that a mutator holds. It may not allocate or
//! collect. Noted by `settling`, told by `cycle`.

use core::ffi::c_void;

use heapwright_substrate::sync::Lock;

use super::cell::Num;
use super::locks::With;

/// The runtime's function, called when finalizers are due, or objects can be retrieved.
pub type SomeAreDue = unsafe extern "C" fn(context: *mut c_void);

pub(super) struct Due {
    noted: Num,
    whom: Lock<Whom>,
}

#[derive(Clone, Copy)]
struct Whom(Option<SomeAreDue>, *mut c_void);

// SAFETY: a context is the runtime's. The runtime promises that any thread may call its function.
unsafe impl Send for Whom {}

impl Due {
    /// Notes that finalizers are due, or that guardians have objects.
    pub(super) fn note(&self) {
        self.noted.set(1);
    }

    pub(super) fn choose(&self, whom: Option<SomeAreDue>, context: *mut c_void) {
        *self.whom.lock() = Whom(whom, context);
    }

    /// The thread that noted something calls this, after the world has resumed.
    pub(super) fn tell(&self) {
        if self.noted.take() == 0 {
            return;
        }
        // Locked during the call, so the old function no longer runs when `choose` returns.
        let asked = self.whom.lock();
        if let Whom(Some(whom), context) = *asked {
            // SAFETY: the runtime promised a valid function and context (`Heap::tell_when_due`).
            unsafe { whom(context) };
        }
    }

    pub(super) fn end(&self) {
        self.noted.set(0);
        self.choose(None, core::ptr::null_mut());
    }

    pub(super) fn each_lock(&self, with: With<'_>) {
        with(&self.whom);
    }
}
