//! A region: a stretch of a page's free slots that one mutator hands out.
//!
//! ```text
//!   page  | object | object | object | free ...... |  taken  | free | ...
//!                                    ^ next        ^ end      the next stretch
//! ```
//!
//! Its mutator allocates by moving `next`, and writes nothing else: so of what was allocated a
//! moment ago the region alone records. All slots of the page below `next` are taken. Before a
//! region goes, how far it came is written to its page (see `held`), in an order that any other thread
//! can follow.
//!
//! Part of `mutator` and of the C interface; loom-checked with `held`.
#![forbid(unsafe_code)]

use core::ptr;

use heapwright_substrate::sync::atomic::{Ordering, fence};

use super::cell::{Num, Ptr};

/// A stretch of free slots. Part of the C interface. Zero is none, of no page.
#[repr(C)]
pub(super) struct Region {
    pub(super) next: Ptr<u8>,
    pub(super) end: Ptr<u8>,
    pub(super) slot: Num,
    /// The page it is in, by number; 0: none.
    pub(super) page: Num,
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

    /// Hands out no more. Its page knows how far it came.
    pub(super) fn close(&self) {
        // A thread that sees that it is closed, or what it is next, sees what it wrote to its page.
        fence(Ordering::Release);
        self.next.set(ptr::null_mut());
        self.end.set(ptr::null_mut());
        self.page.set(0);
    }

    /// Whether the slot at `start` was handed out, of the page of that number, which ends at `end`, as
    /// far as it was not yet written to the page. By any thread.
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
