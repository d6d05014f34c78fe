//! A space and a trace without a heap, for tests of marking without moving, or of moving without
//! marking.
//!
//! ```text
//!   Ground { space, trace }     pages by hand: a cursor that is settled behind a slot takes it
//! ```

extern crate std;

use core::sync::atomic::{AtomicU32, Ordering};
use std::boxed::Box;

use heapwright_substrate::address_map::MAX_OWNER;
use heapwright_substrate::{options, substrate};

use super::super::options::Options;
use super::super::page::Page;
use super::super::runtime::Runtime;
use super::super::space::Space;
use super::super::trace::Trace;

pub(crate) struct Ground {
    pub(crate) space: Space,
    pub(crate) trace: Trace,
}

impl Ground {
    /// Makes a ground, which is never freed: its pages stay.
    pub(crate) fn new(runtime: Runtime) -> &'static Self {
        /// Owners that no heap uses.
        static NEXT: AtomicU32 = AtomicU32::new(MAX_OWNER);
        assert!(substrate::open(options::get));
        // SAFETY: zero is an unused space and an unused trace.
        let ground: &'static Self = Box::leak(unsafe { Box::new(core::mem::zeroed()) });
        let id = NEXT.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: nobody else knows the ground.
        unsafe { ground.space.begin(id, Options::new()) };
        ground.space.sizing.set_target(200, 4 << 20, usize::MAX);
        // SAFETY: nobody else knows the ground.
        assert!(unsafe { ground.trace.begin(&ground.space, runtime) });
        ground
    }

    pub(crate) fn page(&self, page_list: usize) -> &Page {
        let wanted = self.space.wanted(page_list, self.space.slot(page_list), usize::MAX);
        self.space.new_page(wanted, usize::MAX).unwrap()
    }

    /// Takes the next slot of a page, as an object of zeroes.
    pub(crate) fn object(&self, page: &Page) -> *mut u8 {
        let at = page.held.cursor();
        let object = page.base().wrapping_add(at);
        // SAFETY: a free slot of a page that nobody else has.
        unsafe { object.write_bytes(0, page.slot.get()) };
        page.held.settle(at + page.slot.get());
        object
    }
}
