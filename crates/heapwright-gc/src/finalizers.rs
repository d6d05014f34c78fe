//! Finalizers: what the runtime wants done with an object that nothing leads to any more.
//!
//! ```text
//!   waiting   | object, run, context | ...      not roots: looked at when marking ends
//!                 |  unmarked: nothing leads to it
//!                 v
//!   due       | object, run, context | ...      roots, until a mutator has run them
//! ```
//!
//! The object is whole when its finalizer runs, with all it leads to, because what is due is
//! marked. The mutator runs it, where it asks to ([`run`](super::raw::Mutator::run_finalizers)),
//! never in the midst of an allocation. Those that are due together run in the order in which
//! they were registered. Afterwards the object is like any other: if the finalizer put it
//! somewhere it lives on, without a finalizer.
//!
//! Two arrays, under a lock of their own.

use core::ffi::c_void;

use super::array::Array;

/// What is called with the object and the context.
pub type Finalizer = unsafe extern "C" fn(object: *mut c_void, context: *mut c_void);

/// One of them.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) object: *mut u8,
    pub(super) run: Finalizer,
    pub(super) context: *mut c_void,
}

/// A heap's finalizers.
pub(super) struct Finalizers {
    waiting: Array<Entry>,
    due: Array<Entry>,
    /// Of those due, how many were taken.
    taken: usize,
}

// SAFETY: objects are memory of the heap that this is part of; the lock around this orders all else.
unsafe impl Send for Finalizers {}

impl Finalizers {
    /// None.
    pub(super) const fn new() -> Self {
        Self { waiting: Array::new(), due: Array::new(), taken: 0 }
    }

    /// Adds one. False: there is no memory. Room is made for it among those due as well, so
    /// that a collection never fails.
    pub(super) fn add(&mut self, entry: Entry) -> bool {
        self.due.reserve(self.waiting.len() + 1) && self.waiting.push(entry)
    }

    /// Forgets those of an object that are not due. Returns how many.
    pub(super) fn cancel(&mut self, object: *mut u8) -> usize {
        self.waiting.retain(|entry| entry.object != object)
    }

    /// Makes those due whose object `is_dead`. Calls `due` with these objects. Returns how many.
    pub(super) fn judge(
        &mut self,
        is_dead: impl Fn(*mut u8) -> bool,
        mut due: impl FnMut(*mut u8),
    ) -> usize {
        let queue = &mut self.due;
        self.waiting.retain(|entry| {
            // There is room: `add` made it.
            let is_due = is_dead(entry.object) && queue.push(entry);
            if is_due {
                due(entry.object);
            }
            !is_due
        })
    }

    /// Calls `with` for the objects of all that are due: roots.
    pub(super) fn each_due(&self, mut with: impl FnMut(*mut u8)) {
        self.due[self.taken..].iter().for_each(|entry| with(entry.object));
    }

    /// Changes the address of each object, due or not, to what `with` says.
    pub(super) fn each_object(&mut self, with: impl Fn(*mut u8) -> *mut u8) {
        let due = self.due[self.taken..].iter_mut();
        self.waiting.iter_mut().chain(due).for_each(|entry| entry.object = with(entry.object));
    }

    /// The next that is due.
    pub(super) fn next(&mut self) -> Option<Entry> {
        let entry = *self.due.get(self.taken)?;
        self.taken += 1;
        if self.taken == self.due.len() {
            self.due.truncate(0);
            self.taken = 0;
        }
        Some(entry)
    }

    /// How many are due.
    pub(super) fn pending(&self) -> usize {
        self.due.len() - self.taken
    }

    /// Forgets all.
    pub(super) fn end(&mut self) {
        self.waiting.end();
        self.due.end();
        *self = Self::new();
    }
}
