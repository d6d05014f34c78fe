//! The surroundings of marking and moving: stopped threads, as the parts below see them.
//!
//! ```text
//!   mark    their stacks are roots, their tracers have notes, and they may help
//!   move    their stacks pin; objects move into pages that one of them has claimed
//! ```
//!
//! `cycle` passes the threads of a heap. Tests of one part pass none.

use super::event::Span;
use super::page::Page;
use super::tracer::Tracer;

/// Stopped threads. By default none.
pub(super) trait Around {
    /// Calls `with` for the tracer of each thread.
    fn each_tracer(&self, _with: &mut dyn FnMut(&Tracer)) {}

    /// Reports what the threads' stacks lead to.
    fn scan_stacks(&self, _tracer: &Tracer) {}

    /// How many stopped threads help when they are called.
    fn parked(&self) -> usize {
        0
    }

    /// Calls them for help.
    fn call(&self) {}

    /// Bytes that are probably still to be marked.
    fn left(&self) -> usize {
        0
    }

    /// Does the work of a span, which may be reported as an event.
    fn during(&self, _span: Span, work: &mut dyn FnMut() -> bool) -> bool {
        work()
    }

    /// Writes to pages how far the threads have allocated from them.
    fn settle(&self) {}

    /// Calls `with` for each page that a thread allocates from.
    fn each_open_page(&self, _with: &mut dyn FnMut(&Page)) {}

    /// Returns a slot for an object of `size` bytes that moves to a page list, its page, and its
    /// offset there.
    fn place(&self, _page_list: usize, _size: usize) -> Option<(*mut u8, &'static Page, usize)> {
        None
    }
}
