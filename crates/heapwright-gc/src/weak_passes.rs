//! Weak passes: the runtime's functions over its own tables of objects, which keep no object alive.
//!
//! ```text
//!   marking ends --> values of ephemerons, guardians --> weak passes, weak slots --> finalizers
//!                                          |
//!     runtime's function, for each entry: tracer.where_is(object)   null: dead, drop the entry
//!                                                                   else: its place (now)
//!   a step of moving ends --> weak passes again: objects have moved
//! ```
//!
//! For tables of strings, of shapes, of identities by address. The function is called while the
//! world is stopped, and calls nothing of the heap except
//! [`Tracer::where_is`](super::raw::Tracer::where_is).
//!
//! An object whose finalizer becomes due counts as dead, as for weak slots. One that a guardian
//! retrieves does not. Called by `settling`, `moving` and `raw`.

use core::ffi::c_void;

use heapwright_substrate::sync::Lock;

use super::array::Array;
use super::locks::With;

struct Passes<F>(Array<(F, *mut c_void)>);

// SAFETY: a context is the runtime's. The runtime promises that any thread may call its function.
unsafe impl<F> Send for Passes<F> {}

pub(super) struct WeakPasses<F> {
    passes: Lock<Passes<F>>,
}

impl<F: Copy + PartialEq> WeakPasses<F> {
    /// Adds a weak pass. Returns false without memory.
    pub(super) fn add(&self, run: F, context: *mut c_void) -> bool {
        self.passes.lock().0.push((run, context))
    }

    pub(super) fn remove(&self, run: F, context: *mut c_void) -> bool {
        self.passes.lock().0.retain(|pass| pass != (run, context)) > 0
    }

    pub(super) fn each(&self, mut with: impl FnMut(F, *mut c_void)) {
        self.passes.lock().0.iter().for_each(|&(run, context)| with(run, context));
    }

    pub(super) fn end(&self) {
        self.passes.lock().0.end();
    }

    pub(super) fn each_lock(&self, with: With<'_>) {
        with(&self.passes);
    }
}
