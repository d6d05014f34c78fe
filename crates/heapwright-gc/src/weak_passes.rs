//! Weak passes: the runtime's own tables of objects, which keep none of them, looked through by the runtime.
//!
//! ```text
//!   marking ends --> values of ephemerons, guardians --> weak passes, weak slots --> finalizers
//!                                          |
//!              runtime's function: for each entry  tracer.where_is(object)   null: it is dead, drop the entry
//!                                                                            else: where it is (now)
//!   a step of moving ends --> weak passes again: objects have moved
//! ```
//!
//! A table of strings, of shapes, of identities by address: where each entry as a weak handle would cost too much, or the table is to be
//! hashed anew when addresses change. The function is called while the world stands still, and calls nothing of the heap but
//! [`Tracer::where_is`](super::raw::Tracer::where_is).
//!
//! An object whose finalizer becomes due counts as dead, as for weak slots; one that a guardian retrieves does not.
//!
//! Called by `marking` and `moving`.

use core::ffi::c_void;

use heapwright_substrate::sync::Lock;

use super::array::Array;
use super::heap::Heap;
use super::tracer::Tracer;

/// What looks through a table.
pub type WeakPass = unsafe extern "C" fn(tracer: &Tracer, context: *mut c_void);

#[derive(Clone, Copy)]
struct Pass {
    run: WeakPass,
    context: *mut c_void,
}

struct Passes(Array<Pass>);

// SAFETY: a context is the runtime's, which promises that its function may be called by any thread.
unsafe impl Send for Passes {}

/// A heap's weak passes. Zero has none.
pub(super) struct WeakPasses {
    passes: Lock<Passes>,
}

impl WeakPasses {
    /// Adds one. False: there is no memory.
    pub(super) fn add(&self, run: WeakPass, context: *mut c_void) -> bool {
        self.passes.lock().0.push(Pass { run, context })
    }

    /// Takes one away. Whether there was one.
    pub(super) fn remove(&self, run: WeakPass, context: *mut c_void) -> bool {
        let is_another = |pass: Pass| pass.context != context || pass.run as usize != run as usize;
        self.passes.lock().0.retain(is_another) > 0
    }

    /// Forgets all.
    pub(super) fn end(&self) {
        self.passes.lock().0.end();
    }

    /// Holds the lock across a fork.
    pub(super) fn before_fork(&self) {
        self.passes.acquire();
    }

    /// Gives it back on either side of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`WeakPasses::before_fork`] in the forking thread or its copy.
    pub(super) unsafe fn after_fork(&self) {
        // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
        unsafe { self.passes.release() };
    }
}

impl Heap {
    /// Has all tables looked through. While the world stands still.
    pub(super) fn run_weak_passes(&self, tracer: &Tracer) {
        for pass in self.weak_passes.passes.lock().0.iter() {
            // SAFETY: the runtime's duty.
            unsafe { (pass.run)(tracer, pass.context) };
        }
    }
}
