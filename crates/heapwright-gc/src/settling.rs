//! Settling: weak references, ephemerons, guardians and finalizers, when nothing else is left to
//! mark.
//!
//! ```text
//!   ephemerons --> contexts of finalizers --> guardians --> weak passes and slots --> finalizers
//!        any of these marks something: marking goes on, and comes back here
//! ```
//!
//! `weak` describes the order and its reasons. Objects without barriers are also visited here.
//!
//! Called by `mark`.

use heapwright_substrate::sync::atomic::Ordering;

use super::around::Around;
use super::bag;
use super::ephemerons::Noted;
use super::trace::Trace;
use super::tracer::{Marks, Tracer};

impl Trace {
    /// Settles weak references, ephemerons, guardians and finalizers, when nothing else is left to
    /// mark. Returns whether still nothing is. The runtime's weak passes run once: `passed` says
    /// that they did.
    pub(super) fn settle(&self, tracer: &Tracer, around: &impl Around, passed: &mut bool) -> bool {
        around.each_tracer(&mut |tracer| tracer.give_notes());
        tracer.give_notes();
        if self.mark_values(tracer) || self.mark_contexts(tracer) || self.ask_guardians(tracer) {
            return false;
        }
        if !core::mem::replace(passed, true) {
            self.run_weak_passes(tracer);
        }
        self.clear_weak();
        if self.judge_finalizers(tracer) != 0 {
            return false;
        }
        self.clear_ephemerons();
        let is_unmarked = |object| self.space().is_unmarked(object);
        self.guardians.sweep(is_unmarked);
        self.unprotected.retain(|object| !is_unmarked(object));
        self.weak.set_resurrects(false);
        if self.finalizers.lock().end_marking() {
            self.due.note();
        }
        true
    }

    /// Marks the values of ephemerons whose keys are marked. Returns whether there were any.
    fn mark_values(&self, tracer: &Tracer) -> bool {
        let space = self.space();
        // Objects that are marked here are not looked up, because of the lock. The next call finds
        // them: it visits all waiting ephemerons.
        self.weak.stop_watching();
        tracer.mark_as(Marks::Alone);
        let mut waiting = self.weak.waiting.lock();
        let mut found = false;
        // Marked objects are not pushed: as the only items, they would never be popped.
        let mut mark = |object: *mut u8| {
            if space.is_unmarked(object) {
                found = true;
                tracer.edge(object);
            }
        };
        while let Some(chunk) = self.weak.ephemerons().take() {
            // Ephemerons without memory for the note live this time: nobody would empty them.
            let refused = |ephemeron: Noted| {
                mark(ephemeron.key());
                mark(ephemeron.value());
            };
            if !waiting.add(chunk, refused) {
                self.marking.give_back(chunk);
            }
        }
        waiting.retain(
            |ephemeron| {
                let waits = space.is_unmarked(ephemeron.key());
                if !waits && !ephemeron.key().is_null() {
                    mark(ephemeron.value());
                }
                waits
            },
            |chunk| self.marking.give_back(chunk),
        );
        let watch = found && waiting.count() > 0 && waiting.index();
        self.weak.watch(watch);
        found
    }

    /// Marks the contexts of finalizers whose objects are marked. Returns whether there were any.
    fn mark_contexts(&self, tracer: &Tracer) -> bool {
        let is_unmarked = |object| self.space().is_unmarked(object);
        self.finalizers.lock().mark_contexts(is_unmarked, |context| tracer.edge(context))
    }

    /// Marks the objects that guardians keep. If there were none, makes inaccessible objects
    /// retrievable, and marks them. Returns whether it marked any.
    fn ask_guardians(&self, tracer: &Tracer) -> bool {
        let is_unmarked = |object| self.space().is_unmarked(object);
        let (marked, retrieved) = self.guardians.ask(is_unmarked, |object| tracer.edge(object));
        if retrieved {
            self.due.note();
        }
        marked || retrieved
    }

    /// Runs the runtime's weak passes. While the world is stopped.
    pub(super) fn run_weak_passes(&self, tracer: &Tracer) {
        self.weak_passes.each(|pass, context| {
            // SAFETY: the runtime's duty.
            unsafe { pass(tracer, context) };
        });
    }

    /// Makes weak references to dead objects null. When everything is marked, except objects that
    /// only finalizers keep.
    fn clear_weak(&self) {
        let space = self.space();
        let mut cleared = 0;
        self.finalizers.lock().each_fresh(|object| _ = space.take_mark(object));
        self.weak.handles.each_cell(|cell| {
            if space.is_unmarked(cell.load(Ordering::Relaxed)) {
                cell.store(core::ptr::null_mut(), Ordering::Relaxed);
                cleared += 1;
            }
        });
        while let Some(chunk) = self.weak.slots().take() {
            bag::each(chunk, |slot: *mut *mut u8| {
                // SAFETY: reported by `trace` of an object that is marked, so it exists.
                if space.is_unmarked(unsafe { slot.read() }) {
                    // SAFETY: reported by `trace` of an object that is marked. Nobody reads it: the
                    // world is stopped.
                    unsafe { slot.write(core::ptr::null_mut()) };
                    cleared += 1;
                }
            });
            self.marking.give_back(chunk);
        }
        self.finalizers.lock().each_fresh(|object| space.give_mark(object));
        self.weak.cleared.add(cleared);
    }

    /// Makes finalizers due whose object is inaccessible. Returns how many.
    fn judge_finalizers(&self, tracer: &Tracer) -> usize {
        let is_dead = |object| !self.space().is_marked(object);
        let due = self.finalizers.lock().judge(is_dead, |object| tracer.edge(object));
        if due > 0 {
            self.weak.set_resurrects(true);
        }
        due
    }

    /// Makes ephemerons with dead keys null. When everything is marked.
    fn clear_ephemerons(&self) {
        let mut waiting = self.weak.waiting.lock();
        self.weak.cleared.add(waiting.count());
        waiting.retain(
            |ephemeron| {
                ephemeron.clear();
                false
            },
            |chunk| self.marking.give_back(chunk),
        );
        waiting.end();
    }

    /// Traces marked objects without barriers again: old ones, and those that an earlier step
    /// traced. With the roots. Returns their bytes.
    pub(super) fn trace_unprotected(&self, tracer: &Tracer) -> usize {
        let mut bytes = 0;
        self.unprotected.each(|object| {
            if self.space().is_marked(object) {
                bytes += self.space().size_of(object);
                tracer.look_once_more(object);
            }
        });
        bytes
    }
}
