//! A region: stretches of a page's free slots that one mutator hands out, one by one.
//!
//! ```text
//!   page  | object | object | object | free ...... | taken | end, hole, free .. | taken | end, 0 | taken | free
//!                                    ^ next        ^ end   ^ hole                       ^                ^
//!                                                          the next stretch             the last of the region
//! ```
//!
//! Its mutator allocates by moving `next`, and writes nothing else: so of what was allocated a
//! moment ago the region alone records. Where `next` meets `end`, the next stretch begins at
//! `hole`, whose first two words say where it ends and where the one after it begins: on pages
//! whose free slots lie one by one among objects, an allocation that needs the next stretch is some
//! instructions more, and no call. Stretches are linked when the region is opened, as far as they
//! have so many bytes together that they are in the nearest cache; they are handed out in the order
//! of their addresses, so all slots of the page below `next` are taken. Before a region goes, how
//! far it came is written to its page (see `held`), in an order that any other thread can follow.
//! (Free lists through the holes of a block are as old as Lisp; holes of several slots that are
//! bumped through, with what is known of them in the holes: Immix, Blackburn and McKinley, PLDI
//! 2008, and Whippet's Nofl, Wingo, 2025.)
//!
//! Part of `mutator` and of the C interface; loom-checked with `held`.

use core::ptr;

use heapwright_substrate::sync::atomic::{Ordering, fence};

use super::cell::{Ptr, Small};

/// Stretches of free slots. Part of the C interface. Zero is none, of no page.
#[repr(C)]
pub(super) struct Region {
    pub(super) next: Ptr<u8>,
    pub(super) end: Ptr<u8>,
    /// The next stretch; null: there is none.
    pub(super) hole: Ptr<Hole>,
    pub(super) slot: Small,
    /// The page it is in, by number; 0: none.
    pub(super) page: Small,
}

/// The first words of a free stretch that is not the first of its region: two, as in the smallest
/// slot.
#[repr(C)]
pub(super) struct Hole {
    pub(super) end: *mut u8,
    pub(super) next: *mut Hole,
}

impl Region {
    /// Begins to hand out slots of its page, from `next` to `end`. By its mutator, as all but
    /// [`Region::has_handed_out`].
    pub(super) fn open(&self, next: *mut u8, end: *mut u8) {
        // A thread that sees where it is sees of which page.
        fence(Ordering::Release);
        self.next.set(next);
        self.end.set(end);
    }

    /// Its next slot. Null: it is used up.
    #[inline(always)]
    pub(super) fn take(&self) -> *mut u8 {
        let object = self.next.get();
        let next = object.wrapping_add(self.slot.get());
        if next.addr() <= self.end.get().addr() {
            self.next.set(next);
            return object;
        }
        self.take_of_next_hole()
    }

    /// The first slot of the next stretch, which is the one at hand from now on. Null: there is
    /// none.
    #[inline]
    fn take_of_next_hole(&self) -> *mut u8 {
        let at = self.hole.get();
        if at.is_null() {
            return ptr::null_mut();
        }
        // SAFETY: a hole that was linked when the region was opened: free slots, which nobody else
        // uses, of a page that this mutator has claimed. From now on it is an object's memory,
        // which must be zero.
        let hole = unsafe { at.replace(Hole { end: ptr::null_mut(), next: ptr::null_mut() }) };
        let object = at.cast::<u8>();
        self.end.set(hole.end);
        self.hole.set(hole.next);
        self.next.set(object.wrapping_add(self.slot.get()));
        object
    }

    /// Hands out no more than it has: the next allocation comes by.
    pub(super) fn cut_off(&self) {
        self.end.set(self.next.get());
        self.hole.set(ptr::null_mut());
    }

    /// Hands out no more. Its page knows how far it came.
    pub(super) fn close(&self) {
        // A thread that sees that it is closed, or what it is next, sees what it wrote to its page.
        fence(Ordering::Release);
        self.next.set(ptr::null_mut());
        self.end.set(ptr::null_mut());
        self.hole.set(ptr::null_mut());
        self.page.set(0);
    }

    /// Returns whether the slot at `start` was handed out, of the page of that number, which ends
    /// at `end`, as far as it was not yet written to the page. By any thread.
    pub(super) fn has_handed_out(&self, page: usize, start: usize, end: usize) -> bool {
        if self.page.get() != page {
            return false;
        }
        let next = self.next.get().addr();
        // Of that page, and not of another that it is at by now.
        fence(Ordering::Acquire);
        start < next && next <= end && self.page.get() == page
    }
}
