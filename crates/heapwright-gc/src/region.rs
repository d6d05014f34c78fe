//! A region: stretches of a page's free slots that one mutator hands out, one by one.
//!
//! ```text
//!   page  | object | object | free ... | taken | end, hole, free . | taken | end, 0 | taken | free
//!                           ^ next     ^ end   ^ hole                      ^                ^
//!                                              the next stretch           the last         no part
//! ```
//!
//! The mutator allocates by moving `next`, and writes nothing else, so only the region records
//! recent objects. When `next` meets `end`, the mutator continues with the stretch at `hole`. The
//! hole's first two words are the end of its stretch and the next hole. So the step to the next
//! stretch takes some instructions and no call. Stretches are linked when the region is opened, up
//! to a number of bytes that fits the nearest cache. They are handed out in address order, so all
//! slots of the page below `next` are taken. Before a region closes, `next` is written to its page
//! (see `held`). (Links in holes are as in Immix, Blackburn, McKinley, PLDI 2008, and Whippet's
//! Nofl, Wingo, 2025.) Part of `mutator` and of the C interface; loom-checked with `held`.

use core::ptr;

use heapwright_substrate::sync::atomic::{Ordering, fence};

use super::cell::{Ptr, Small};

/// Stretches of free slots. Part of the C interface. All-zero bytes: a region without a page.
#[repr(C)]
pub(super) struct Region {
    pub(super) next: Ptr<u8>,
    pub(super) end: Ptr<u8>,
    /// The next stretch, or null.
    pub(super) hole: Ptr<Hole>,
    pub(super) slot: Small,
    /// The number of the region's page, or 0.
    pub(super) page: Small,
}

/// The first two words of a free stretch. A region's first stretch does not have them.
#[repr(C)]
pub(super) struct Hole {
    pub(super) end: *mut u8,
    pub(super) next: *mut Hole,
}

impl Region {
    /// Begins to hand out slots of its page, from `next` to `end`. Only the region's mutator, or a
    /// collector that has stopped it, calls the functions other than [`Region::has_handed_out`].
    pub(super) fn open(&self, next: *mut u8, end: *mut u8) {
        // A thread that sees `next` sees the page.
        fence(Ordering::Release);
        self.next.set(next);
        self.end.set(end);
    }

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

    /// Makes the next stretch the current one, and returns its first slot. Null if there is none.
    #[inline]
    fn take_of_next_hole(&self) -> *mut u8 {
        let at = self.hole.get();
        if at.is_null() {
            return ptr::null_mut();
        }
        // SAFETY: the hole was linked when the region was opened. It is free slots of a page that
        // this mutator has claimed, which nobody else uses. The hole becomes an object's memory, so
        // its words must be zero.
        let hole = unsafe { at.replace(Hole { end: ptr::null_mut(), next: ptr::null_mut() }) };
        let object = at.cast::<u8>();
        self.end.set(hole.end);
        self.hole.set(hole.next);
        self.next.set(object.wrapping_add(self.slot.get()));
        object
    }

    pub(super) fn cut_off(&self) {
        self.end.set(self.next.get());
        self.hole.set(ptr::null_mut());
    }

    /// Closes the region. The caller wrote `next` to the page before.
    pub(super) fn close(&self) {
        // A thread that sees the region closed, or reused, sees its last writes to its page.
        fence(Ordering::Release);
        self.next.set(ptr::null_mut());
        self.end.set(ptr::null_mut());
        self.hole.set(ptr::null_mut());
        self.page.set(0);
    }

    /// Returns whether the region has handed out the slot at `start`, but may not have written that
    /// to the page. The page has the number `page`, and ends at `end`. Any thread may call this.
    pub(super) fn has_handed_out(&self, page: usize, start: usize, end: usize) -> bool {
        if self.page.get() != page {
            return false;
        }
        let next = self.next.get().addr();
        // `next` must be of that page, and not of a later one.
        fence(Ordering::Acquire);
        start < next && next <= end && self.page.get() == page
    }
}
