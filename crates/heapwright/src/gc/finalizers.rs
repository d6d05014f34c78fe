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
//! Two arrays in side memory that double, under a lock of their own.

use core::ffi::c_void;
use core::ptr;

use crate::chunk::Side;

/// What is called with the object and the context.
pub type Finalizer = unsafe extern "C" fn(object: *mut c_void, context: *mut c_void);

/// One of them.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) object: *mut u8,
    pub(super) run: Finalizer,
    pub(super) context: *mut c_void,
}

/// An array that grows.
struct Array {
    side: Side,
    length: usize,
    room: usize,
}

impl Array {
    const fn new() -> Self {
        Self { side: Side::NONE, length: 0, room: 0 }
    }

    fn at(&self, index: usize) -> *mut Entry {
        self.side.at().cast::<Entry>().wrapping_add(index)
    }

    fn get(&self, index: usize) -> Entry {
        debug_assert!(index < self.length);
        // SAFETY: written by `push`.
        unsafe { self.at(index).read() }
    }

    /// Makes room for `more` entries. False: there is no memory.
    fn reserve(&mut self, more: usize) -> bool {
        let needed = self.length + more;
        if needed <= self.room {
            return true;
        }
        let room = needed.max(self.room * 2).max(1024);
        let Some(mut side) = Side::take(room * size_of::<Entry>()) else { return false };
        // SAFETY: both have room for so many, and are not the same.
        unsafe { ptr::copy_nonoverlapping(self.at(0), side.at().cast(), self.length) };
        core::mem::swap(&mut self.side, &mut side);
        side.give();
        self.room = room;
        true
    }

    /// Adds an entry, for which there is room.
    fn push(&mut self, entry: Entry) {
        debug_assert!(self.length < self.room);
        // SAFETY: within the room.
        unsafe { self.at(self.length).write(entry) };
        self.length += 1;
    }
}

/// A heap's finalizers.
pub(super) struct Finalizers {
    waiting: Array,
    due: Array,
    /// Of those due, how many were taken.
    taken: usize,
}

// SAFETY: objects are whoever's whose heap it is; the lock around this orders all else.
unsafe impl Send for Finalizers {}

impl Finalizers {
    /// None.
    pub(super) const fn new() -> Self {
        Self { waiting: Array::new(), due: Array::new(), taken: 0 }
    }

    /// Adds one. False: there is no memory. Room is made for it among those due as well, so
    /// that a collection never fails.
    pub(super) fn add(&mut self, entry: Entry) -> bool {
        let all = self.waiting.length + 1;
        let fits = self.waiting.reserve(1) && self.due.reserve(all);
        if fits {
            self.waiting.push(entry);
        }
        fits
    }

    /// Makes those due whose object `is_dead`. Calls `due` with these objects. Returns how many.
    pub(super) fn judge(
        &mut self,
        is_dead: impl Fn(*mut u8) -> bool,
        mut due: impl FnMut(*mut u8),
    ) -> usize {
        let mut kept = 0;
        let mut found = 0;
        for index in 0..self.waiting.length {
            let entry = self.waiting.get(index);
            if is_dead(entry.object) {
                self.due.push(entry);
                due(entry.object);
                found += 1;
            } else {
                // SAFETY: an earlier place of the same array.
                unsafe { self.waiting.at(kept).write(entry) };
                kept += 1;
            }
        }
        self.waiting.length = kept;
        found
    }

    /// Calls `with` for the objects of all that are due: roots.
    pub(super) fn each_due(&self, mut with: impl FnMut(*mut u8)) {
        (self.taken..self.due.length).for_each(|index| with(self.due.get(index).object));
    }

    /// The next that is due.
    pub(super) fn next(&mut self) -> Option<Entry> {
        if self.taken == self.due.length {
            return None;
        }
        let entry = self.due.get(self.taken);
        self.taken += 1;
        if self.taken == self.due.length {
            self.due.length = 0;
            self.taken = 0;
        }
        Some(entry)
    }

    /// How many are due.
    pub(super) fn pending(&self) -> usize {
        self.due.length - self.taken
    }

    /// Forgets all.
    pub(super) fn end(&mut self) {
        self.waiting.side.give();
        self.due.side.give();
        *self = Self::new();
    }
}
