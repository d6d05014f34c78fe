//! The surroundings of marking and moving: stopped threads, as the parts below see them.
//!
//! ```text
//!   mark    their stacks are roots, their tracers have notes, and they may help
//!   move    their stacks pin objects; objects move into pages that one thread has claimed
//! ```
//!
//! `cycle` passes the threads of a heap. Tests of one part pass none.

use super::event::Span;
use super::page::Page;
use super::tracer::Tracer;

/// Stopped threads. By default there are none.
pub(super) trait Around {
    fn each_tracer(&self, _with: &mut dyn FnMut(&Tracer)) {}

    fn scan_stacks(&self, _tracer: &Tracer) {}

    /// Returns how many stopped threads help when they are called.
    fn parked(&self) -> usize {
        0
    }

    fn call(&self) {}

    /// Returns how many bytes are probably still to be marked.
    fn left(&self) -> usize {
        0
    }

    /// Runs `work`, the work of a span. The span may be reported as an event.
    fn during(&self, _span: Span, work: &mut dyn FnMut() -> bool) -> bool {
        work()
    }

    /// For each page that a thread allocates from, writes the thread's position into the page.
    fn settle(&self) {}

    /// Calls `with` for each page that a thread allocates from.
    fn each_open_page(&self, _with: &mut dyn FnMut(&Page)) {}

    /// Takes a slot of a page list for an object of `size` bytes that moves. Returns the slot, its
    /// page, and its offset in the page.
    fn place(&self, _page_list: usize, _size: usize) -> Option<(*mut u8, &'static Page, usize)> {
        None
    }
}
