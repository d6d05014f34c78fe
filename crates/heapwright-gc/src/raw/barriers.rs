//! The write barrier: how stores into objects are reported.
//!
//! ```text
//!   barrier & MARKING   a black parent: the child is shaded
//!           & STORES    an old parent: it is remembered
//!           & MOVING    the slot is noted with the child's page
//!
//!   write   stores, and reports            wrote, shade   report a store that was done
//!   touch   reports a store, done or to come: the object or slot is traced later (`dirty_slots`)
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
            // SAFETY: by the contract the slot is the parent's, and it now holds the child.
            unsafe { self.wrote(parent, slot, child) };
        }
    }

    /// Reports that a reference to `child` was stored into `parent`.
    ///
    /// # Safety
    ///
    /// The duties of the [module](super). `parent` and `child` are objects of this heap, or no
    /// addresses in it.
    pub unsafe fn shade(&self, parent: *mut u8, child: *mut u8) {
        // SAFETY: as the caller promises; no slot is given.
        unsafe { self.wrote(parent, ptr::null_mut(), child) };
    }

    /// As [`Mutator::shade`], with the slot that was stored to. This report is cheaper while
    /// objects are moved. For a large object, the next minor collection looks only at the slot.
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
                // The runtime must not be called while other threads may use objects. So the parent
                // is traced again instead.
                inner.tracer.note_dirty_slot(parent, parent, dirty_slots::whole);
            } else {
                inner.tracer.shade(child);
            }
        }
        if barrier & STORES != 0 && !parent.is_null() {
            inner.tracer.remember(parent, slot, child);
        }
    }

    /// Reports that the caller has stored something into `parent`, or will before the next
    /// safepoint. The caller need not name the child.
    #[inline]
    pub fn touch(&self, parent: *mut u8) {
        self.touch_at(parent, parent, dirty_slots::whole);
    }

    /// As [`Mutator::touch`], for one slot. This is cheaper for an object of many references.
    ///
    /// # Safety
    ///
    /// `slot` is a place for a reference in `parent`.
    #[inline]
    pub unsafe fn touch_slot(&self, parent: *mut u8, slot: *mut *mut u8) {
        self.touch_at(parent, slot.cast(), dirty_slots::one);
    }

    /// As [`Mutator::touch`], with the place in `parent`, and how that place is traced.
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
            self.inner().tracer.touch(parent, place, trace);
        }
    }
}
