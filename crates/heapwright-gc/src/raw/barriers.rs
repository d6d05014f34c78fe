//! The write barrier: what is reported of a store into an object.
//!
//! ```text
//!   barrier & MARKING   a black parent: the child is shaded
//!           & STORES    an old parent: it is remembered
//!           & MOVING    the slot is noted with the child's page
//!
//!   write   stores, and reports            wrote, shade   report what was stored
//!   touch   reports that something is, or will be: the object, or the slot, is traced afterwards (see `dirty_slots`)
//! ```

use core::ptr;

use heapwright_substrate::sync::atomic::Ordering;

use super::super::dirty_slots;
use super::super::phase::{MARKING, MOVING, STORES};
use super::super::tracer::TraceSlot;
use super::Mutator;

impl Mutator {
    /// Stores a reference into an object.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super). `slot` is a place for a reference in `parent`.
    #[inline]
    pub unsafe fn write(&self, parent: *mut u8, slot: *mut *mut u8, child: *mut u8) {
        // SAFETY: by the contract.
        unsafe { slot.write(child) };
        if self.inner().barrier.load(Ordering::Relaxed) != 0 {
            // SAFETY: by the contract the child lies in a slot of the parent's, since just now.
            unsafe { self.wrote(parent, slot, child) };
        }
    }

    /// Reports that a reference to `child` was stored into `parent`.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super). Both are objects of this heap, or no addresses in it.
    pub unsafe fn shade(&self, parent: *mut u8, child: *mut u8) {
        // SAFETY: as the caller promises; no slot is given.
        unsafe { self.wrote(parent, ptr::null_mut(), child) };
    }

    /// As [`Mutator::shade`], with the slot that was stored to: cheaper while objects are moved.
    ///
    /// # Safety
    ///
    /// As [`Mutator::shade`]; `slot` is null or the place in `parent`.
    #[cold]
    pub unsafe fn wrote(&self, parent: *mut u8, slot: *mut *mut u8, child: *mut u8) {
        let (heap, inner) = (self.heap(), self.inner());
        let barrier = inner.barrier.load(Ordering::Relaxed);
        if barrier == 0 || child.is_null() || child.addr() & 7 != 0 {
            return;
        }
        if heap.space.is_verified() {
            heap.verify_store(parent, child);
        }
        if barrier & MOVING != 0 {
            inner.tracer.note_store(parent, slot, child);
        }
        if !parent.is_null() && !heap.space.is_marked(parent) {
            return;
        }
        if barrier & MARKING != 0 {
            if heap.runtime().hears_of_outside() && !heap.space.is_object(child) {
                // The runtime is not to be called here, while others are at work: the parent
                // reports it once more.
                inner.tracer.note_dirty_slot(parent, parent, dirty_slots::whole);
            } else {
                inner.tracer.shade(child);
            }
        }
        if barrier & STORES != 0 && !parent.is_null() {
            inner.tracer.remember(parent, child);
        }
    }

    /// Reports that something was stored into `parent`, or will be before the next safepoint: for
    /// a caller that cannot say what.
    #[inline]
    pub fn touch(&self, parent: *mut u8) {
        self.touch_at(parent, parent, dirty_slots::whole);
    }

    /// As [`Mutator::touch`], of one slot: cheaper for an object of many references. (A minor
    /// collection looks at the whole object.)
    ///
    /// # Safety
    ///
    /// `slot` is a place for a reference in `parent`.
    #[inline]
    pub unsafe fn touch_slot(&self, parent: *mut u8, slot: *mut *mut u8) {
        self.touch_at(parent, slot.cast(), dirty_slots::one);
    }

    /// As [`Mutator::touch`], for a caller that knows where in `parent`, and how that place is
    /// traced.
    #[inline]
    pub fn touch_at(&self, parent: *mut u8, place: *mut u8, trace: TraceSlot) {
        if self.inner().barrier.load(Ordering::Relaxed) != 0 {
            self.note_touched(parent, place, trace);
        }
    }

    #[cold]
    fn note_touched(&self, parent: *mut u8, place: *mut u8, trace: TraceSlot) {
        let barrier = self.inner().barrier.load(Ordering::Relaxed);
        if barrier & MARKING != 0 || self.heap().moving.is_on() {
            self.inner().tracer.note_dirty_slot(parent, place, trace);
        }
        if barrier & STORES != 0 {
            self.inner().tracer.touch(parent);
        }
    }
}
