//! What leads to objects without keeping them: weak references and ephemerons.
//!
//! ```text
//!   weak slot     a reference in an object, of which `trace` says that it is weak
//!   weak handle   a cell of the runtime's own
//!   ephemeron     two references in an object, a key and a value: the key is weak, and the value
//!                 is led to for as long as the key lives
//!
//!   marking   roots, and all they lead to
//!       1     values whose keys are marked, and all they lead to, and again
//!       2     weak slots and handles that lead to what has no mark: null
//!       3     finalizers whose objects have no mark are due, and are marked; if there are any, from 1
//!       4     ephemerons whose keys have no mark: both null
//! ```
//!
//! So a weak reference never leads to an object whose finalizer is due, and a finalizer finds its
//! object whole, with the ephemerons of which it is a key. All this is in the pause in which marking
//! ends, so no mutator sees half of it; which slots there are was reported before, in steps.
//!
//! **Ephemerons** are looked through once when nothing else is left to mark. If a value is found
//! that is to be marked, those that still wait are put into a table by their keys, and each object
//! that is marked from then on is looked up there: chains of them cost no more than their length, in
//! whatever order they are reported (the idea is Hayes', "Ephemerons: a new finalization mechanism", 1997;
//! the table as in Racket CS and V8). Where there is no memory for the table they are
//! looked through again and again; where there is none to put one down its value is marked: a
//! collection that frees less, and the next one frees it.
//!
//! With generations nothing changes: an object with a weak reference to something young is traced like
//! any other.
//!
//! Called by `cycle`; filled by `tracer`.

use heapwright_substrate::chunk::Side;
use heapwright_substrate::sync::Lock;

use super::array::Array;
use super::bag::{self, Bag};
use super::cell::Num;
use super::handles::Handles;
use super::heap::Heap;
use super::mutator::Mutator;
use super::tracer::{Marks, Tracer};

/// A heap's weak references. Zero has none.
pub(super) struct Weak {
    pub(super) handles: Handles,
    /// Weak slots, and ephemerons, that were reported in this cycle.
    slots: Bag,
    ephemerons: Bag,
    waiting: Lock<Waiting>,
    /// Whether what is marked is looked up among the waiting.
    watching: Num,
    /// References that were made null, ever.
    pub(super) cleared: Num,
}

/// Ephemerons whose keys had no mark when they were looked at.
struct Waiting {
    entries: Array<Ephemeron>,
    /// By a hash of the key: the number of the first entry, from 1.
    heads: Side,
    mask: usize,
}

// SAFETY: slots are memory of the heap that this is part of; the lock orders all else.
unsafe impl Send for Waiting {}

#[derive(Clone, Copy)]
struct Ephemeron {
    key: *mut *mut u8,
    value: *mut *mut u8,
    /// The number of the next entry with the same hash, from 1.
    next: u32,
}

impl Ephemeron {
    fn key(self) -> *mut u8 {
        // SAFETY: reported by `trace` of an object that is marked, and so is there until the sweep.
        unsafe { self.key.read() }
    }

    fn value(self) -> *mut u8 {
        // SAFETY: reported by `trace` of an object that is marked, and so is there until the sweep.
        unsafe { self.value.read() }
    }

    /// The key is dead.
    fn clear(self) {
        // SAFETY: reported by `trace` of an object that is marked, and the world stands still.
        unsafe { self.key.write(core::ptr::null_mut()) };
        // SAFETY: reported by `trace` of an object that is marked, and the world stands still.
        unsafe { self.value.write(core::ptr::null_mut()) };
    }
}

impl Waiting {
    const NONE: Self = Self { entries: Array::new(), heads: Side::NONE, mask: 0 };

    fn place(&self, key: *mut u8) -> *mut u32 {
        let hash = (key.addr() >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.heads.at().cast::<u32>().wrapping_add(hash & self.mask)
    }

    /// Puts all entries into the table. False: there is no memory for one.
    fn index(&mut self) -> bool {
        let places = (2 * self.entries.len()).next_power_of_two();
        self.heads.give();
        let Some(heads) = Side::take(places * size_of::<u32>()) else {
            self.heads = Side::NONE;
            return false;
        };
        (self.heads, self.mask) = (heads, places - 1);
        for number in 0..self.entries.len() {
            let place = self.place(self.entries[number].key());
            // SAFETY: within the table, which is zeroed at first.
            self.entries[number].next = unsafe { place.read() };
            // SAFETY: a place of the table, which is the caller's alone.
            unsafe { place.write(number as u32 + 1) };
        }
        true
    }

    /// The number of the first entry with the hash of this key, from 1.
    fn first(&self, key: *mut u8) -> u32 {
        // SAFETY: within the table.
        unsafe { self.place(key).read() }
    }

    /// The entry of a number.
    fn entry(&self, number: u32) -> Option<Ephemeron> {
        self.entries.get(number.checked_sub(1)? as usize).copied()
    }

    fn end(&mut self) {
        self.entries.end();
        self.heads.give();
        *self = Self::NONE;
    }
}

impl Weak {
    /// Where weak slots are put down.
    pub(super) fn slots(&self) -> &Bag {
        &self.slots
    }

    /// Where ephemerons are put down: their keys' slots and their values'.
    pub(super) fn ephemerons(&self) -> &Bag {
        &self.ephemerons
    }

    /// Whether each object that is marked is to be looked up.
    pub(super) fn is_watching(&self) -> bool {
        self.watching.get() != 0
    }

    /// Nobody looks up what is marked.
    pub(super) fn stop_watching(&self) {
        self.watching.set(0);
    }

    /// Gives all memory back.
    pub(super) fn end(&self) {
        self.handles.end();
        self.slots.end();
        self.ephemerons.end();
        self.waiting.lock().end();
        self.watching.set(0);
        self.cleared.set(0);
    }

    /// Holds the locks across a fork.
    pub(super) fn before_fork(&self) {
        self.handles.before_fork();
        self.slots.before_fork();
        self.ephemerons.before_fork();
        self.waiting.acquire();
    }

    /// Gives them back on either side of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`Weak::before_fork`] in the forking thread or its copy.
    pub(super) unsafe fn after_fork(&self) {
        // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
        unsafe { self.waiting.release() };
        // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.ephemerons.after_fork() };
        // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.slots.after_fork() };
        // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.handles.after_fork() };
    }
}

impl Heap {
    /// Marks the values of ephemerons whose keys are marked. Whether there were any. While nothing
    /// else is left to mark.
    pub(super) fn mark_values(&self, me: &Mutator) -> bool {
        self.each_mutator(|mutator| mutator.tracer.give_notes());
        // What is marked here is looked up by nobody, under the lock, and again when it is called
        // next: all that wait are looked through each time.
        self.weak.stop_watching();
        me.tracer.mark_as(Marks::Alone);
        let mut waiting = self.weak.waiting.lock();
        let mut found = false;
        // What is marked already must not be left to be looked at: if that were all, nobody would.
        let mut mark = |ephemeron: Ephemeron| {
            if self.is_unmarked(ephemeron.value()) {
                found = true;
                me.tracer.edge(ephemeron.value());
            }
        };
        while let Some(chunk) = self.weak.ephemerons.take() {
            bag::each(chunk, |[key, value]: [*mut *mut u8; 2]| {
                let ephemeron = Ephemeron { key, value, next: 0 };
                if !waiting.entries.push(ephemeron) {
                    mark(ephemeron);
                }
            });
            self.give_back(chunk);
        }
        waiting.entries.retain(|ephemeron| {
            let waits = self.is_unmarked(ephemeron.key());
            if !waits && !ephemeron.key().is_null() {
                mark(ephemeron);
            }
            waits
        });
        let watch = found && !waiting.entries.is_empty() && waiting.index();
        self.weak.watching.set(usize::from(watch));
        found
    }

    /// An object was marked: so is what it is the key of.
    pub(super) fn mark_values_of(&self, key: *mut u8, tracer: &Tracer) {
        // Not marked under the lock: where there is no memory, that may lead here again.
        let mut number = self.weak.waiting.lock().first(key);
        loop {
            let Some(entry) = self.weak.waiting.lock().entry(number) else { return };
            if entry.key() == key {
                tracer.edge(entry.value());
            }
            number = entry.next;
        }
    }

    /// Weak references to what is dead become null. When everything is marked that is to be, but
    /// for what finalizers want.
    pub(super) fn clear_weak(&self) {
        let mut cleared = 0;
        self.weak.handles.each_cell(|cell| {
            if self.is_unmarked(cell.load(heapwright_substrate::sync::atomic::Ordering::Relaxed)) {
                cell.store(
                    core::ptr::null_mut(),
                    heapwright_substrate::sync::atomic::Ordering::Relaxed,
                );
                cleared += 1;
            }
        });
        while let Some(chunk) = self.weak.slots.take() {
            bag::each(chunk, |slot: *mut *mut u8| {
                // SAFETY: reported by `trace` of an object that is marked, and so is there.
                if self.is_unmarked(unsafe { slot.read() }) {
                    // SAFETY: reported by `trace` of an object that is marked; nobody reads it, for
                    // the world stands still.
                    unsafe { slot.write(core::ptr::null_mut()) };
                    cleared += 1;
                }
            });
            self.give_back(chunk);
        }
        self.weak.cleared.add(cleared);
    }

    /// Ephemerons whose keys are dead become null. When everything is marked.
    pub(super) fn clear_ephemerons(&self) {
        let mut waiting = self.weak.waiting.lock();
        for ephemeron in waiting.entries.iter() {
            ephemeron.clear();
        }
        self.weak.cleared.add(waiting.entries.len());
        waiting.end();
    }
}
