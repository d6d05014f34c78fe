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
//! object whole, with the ephemerons of which it is a key. The rule holds for weak slots in objects
//! that finalizers keep, too. Once finalizers are due, every reported weak slot is noted, and in 2
//! the finalizers' objects count as dead, although they are marked. Incremental marking may end
//! later than finalizers become due: they run only after its end (see `finalizers`).
//!
//! **Ephemerons** are looked through once when nothing else is left to mark. If a value is found
//! that is to be marked, those that still wait are put into a table by their keys, and each object
//! that is marked from then on is looked up there (see `ephemerons`).
//!
//! With generations nothing changes: an object with a weak reference to something young is traced like
//! any other.
//!
//! Called by `cycle`; filled by `tracer`.

use heapwright_substrate::sync::Lock;

use super::bag::{self, Bag};
use super::cell::Num;
use super::ephemerons::{Noted, Waiting};
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
    /// Whether finalizers became due in the marking under way.
    resurrects: Num,
    /// References that were made null, ever.
    pub(super) cleared: Num,
}

impl Weak {
    /// Where weak slots are put down.
    pub(super) fn slots(&self) -> &Bag {
        &self.slots
    }

    /// Where ephemerons are put down, as [`Noted`].
    pub(super) fn ephemerons(&self) -> &Bag {
        &self.ephemerons
    }

    /// Whether each object that is marked is to be looked up.
    pub(super) fn is_watching(&self) -> bool {
        self.watching.get() != 0
    }

    /// Whether finalizers became due in the marking under way, which marks what they keep.
    pub(super) fn resurrects(&self) -> bool {
        self.resurrects.get() != 0
    }

    /// Notes that finalizers became due, or that the marking has ended.
    pub(super) fn set_resurrects(&self, resurrects: bool) {
        self.resurrects.set(usize::from(resurrects));
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
        self.resurrects.set(0);
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
        let mut mark = |object: *mut u8| {
            if self.space.is_unmarked(object) {
                found = true;
                me.tracer.edge(object);
            }
        };
        while let Some(chunk) = self.weak.ephemerons.take() {
            // Those for which there is no memory live this time: nobody would empty them.
            let refused = |ephemeron: Noted| {
                mark(ephemeron.key());
                mark(ephemeron.value());
            };
            if !waiting.add(chunk, refused) {
                self.give_back(chunk);
            }
        }
        waiting.retain(
            |ephemeron| {
                let waits = self.space.is_unmarked(ephemeron.key());
                if !waits && !ephemeron.key().is_null() {
                    mark(ephemeron.value());
                }
                waits
            },
            |chunk| self.give_back(chunk),
        );
        let watch = found && waiting.count() > 0 && waiting.index();
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
            number = entry.next();
        }
    }

    /// Weak references to what is dead become null. When everything is marked that is to be, but
    /// for what finalizers want.
    pub(super) fn clear_weak(&self) {
        let mut cleared = 0;
        self.finalizers.lock().each_fresh(|object| _ = self.space.take_mark(object));
        self.weak.handles.each_cell(|cell| {
            if self
                .space
                .is_unmarked(cell.load(heapwright_substrate::sync::atomic::Ordering::Relaxed))
            {
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
                if self.space.is_unmarked(unsafe { slot.read() }) {
                    // SAFETY: reported by `trace` of an object that is marked; nobody reads it, for
                    // the world stands still.
                    unsafe { slot.write(core::ptr::null_mut()) };
                    cleared += 1;
                }
            });
            self.give_back(chunk);
        }
        self.finalizers.lock().each_fresh(|object| self.space.give_mark(object));
        self.weak.cleared.add(cleared);
    }

    /// Ephemerons whose keys are dead become null. When everything is marked.
    pub(super) fn clear_ephemerons(&self) {
        let mut waiting = self.weak.waiting.lock();
        self.weak.cleared.add(waiting.count());
        waiting.retain(
            |ephemeron| {
                ephemeron.clear();
                false
            },
            |chunk| self.give_back(chunk),
        );
        waiting.end();
    }
}
