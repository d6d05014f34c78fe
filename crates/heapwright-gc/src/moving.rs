//! Moving: objects of sparse pages go into the free slots of full ones, a few pages at a time.
//!
//! ```text
//!   IDLE --plan--> MARKING ----------------------> MOVING ---------------------> SWEEPING
//!     choose the     note each reported slot         for each page of the plan:    give back
//!     pages to       that leads to such a page       copy its objects, change      the evacuated
//!     evacuate       (`references`)                  the noted slots               pages
//!
//!   page that was evacuated   | to | ..... | to | ..... |    an object's first word: its new place
//! ```
//!
//! **No barrier for reads.** Mutators run between two steps. An object and all references to it
//! change in one step, so mutators never see an old address. Therefore all references to a page
//! must be known before the step that evacuates the page:
//!
//! - *slots in objects* were noted while marking. The write barrier (`stores`) reports slots that
//!   were stored to since. The next step scans newer objects, a page at a time
//!   ([`Page::each_unscanned`](super::page::Page)).
//! - *roots* are traced twice in each step. A root that is reported by value, or lies on a scanned
//!   stack, cannot be changed: the page it leads to *stays* (mostly-copying, Bartlett, 1988).
//!   Cells and slots are updated when the step's objects have moved.
//! - *pinned* objects stay, and so do objects that a slot outside the heap leads to.
//!
//! The callbacks that trace, move or update objects run while the world is stopped. They may take
//! no lock that a mutator may hold. [`raw`](super::raw) lists the runtime's duties.
//!
//! `candidates` chooses the pages, `evacuation` moves in steps, `placement` knows pinned objects,
//! and `tracer` notes slots. `cycle` plans and moves; `sweep` decides whether to compact.

use heapwright_substrate::chunk::Side;
use heapwright_substrate::sync::Lock;

use super::array::Array;
use super::cell::{Num, clear};
use super::layout::{self, PAGE_LISTS};
use super::locks::With;
use super::page::Page;
use super::phase::Phase;
use super::plan::{Census, Choice};
use super::space::Space;

mod candidates;
mod evacuation;

/// The next major collection compacts.
const DUE: usize = 1;
/// The next major collection compacts, and begins soon: a caller requested it.
const URGENT: usize = 2;
/// A caller requested a compaction. First a major collection must find where objects live. That
/// collection has not begun (`ASKED`), or it has (`COUNTED`).
const ASKED: usize = 3;
const COUNTED: usize = 4;
/// As `URGENT`, but all pages without pinned objects are evacuated.
const ALL: usize = 5;

const NO_PLAN: usize = 0;
const COUNTING: usize = 1;
const CHOOSING: usize = 2;
const READY: usize = 3;
/// All objects have moved. Pages of the plan that a sweep passed over are still to be swept.
const SETTLING: usize = 4;

/// The moving state of a heap. All-zero bytes: nothing moves. Moving uses `space` and `trace`, and
/// knows no mutator. A step gets its [surroundings](super::around::Around) from the caller.
///
/// A page that stays is swept like any other. Forwarding words stay until the last page is done,
/// because noted slots may lie in objects that have moved meanwhile. Then the sweep finds the
/// evacuated pages empty, and they go back to the window. [`plan`](super::plan) decides when the
/// heap moves objects by itself.
///
/// **Across pools.** The runtime may return a new size for an object
/// ([`wanted`](super::raw::Runtime#structfield.wanted)). The object then moves to the pool that
/// fits, and the heap tells the runtime ([`moved`](super::raw::Runtime#structfield.moved)). A page
/// with a resized object is always in the plan, unless an object of the page is pinned.
///
/// **With generations** only major collections move. All their live objects are old, and stay old.
///
/// **A runtime that changes references itself**
/// ([`update`](super::raw::Runtime#structfield.update)) may report them by value, from any place,
/// as [movable](super::raw::Tracer::mark_movable). Then no slot is noted, and all objects move in
/// one pause. The runtime then updates the references of all objects by the forwarding words.
pub(super) struct Moving {
    wanted: Num,
    /// The stage of the plan. Changed under the plan's lock.
    stage: Num,
    plan: Lock<Plan>,
    /// Pages that may hold unscanned objects.
    fresh: Lock<Fresh>,
    /// Pages of moved large objects. The collector tells the runtime when nothing is locked.
    larges: Lock<Fresh>,
    /// Bytes of pages after the last compaction. `swept`: whether its sweep has ended.
    left: Num,
    swept: Num,
    /// Ever: objects moved, their bytes, evacuated pages, and pages of plans that stayed.
    pub(super) objects: Num,
    pub(super) bytes: Num,
    pub(super) evacuated: Num,
    pub(super) stayed: Num,
    /// Compactions.
    pub(super) rounds: Num,
}

struct Plan {
    /// The next page to be counted, or chosen.
    next: usize,
    census: Side,
    pages: Array<u32>,
    /// How many pages of the plan are done.
    through: usize,
}

struct Fresh(Array<u32>);

// SAFETY: the census belongs to the plan, under its lock.
unsafe impl Send for Plan {}
// SAFETY: the memory belongs to the heap, under its lock.
unsafe impl Send for Fresh {}

/// The census of a page list, and then the choice of the pages that stay.
#[derive(Clone, Copy)]
struct Chosen {
    census: Census,
    choice: Choice,
}

impl Plan {
    const NONE: Self = Self { next: 0, census: Side::NONE, pages: Array::new(), through: 0 };

    fn page_lists(&mut self) -> &mut [Chosen] {
        // SAFETY: the side memory has `PAGE_LISTS` entries. Zeroed memory is an empty census.
        unsafe { core::slice::from_raw_parts_mut(self.census.at().cast(), PAGE_LISTS) }
    }

    fn end(&mut self) {
        self.census.give();
        self.pages.end();
        *self = Self::NONE;
    }
}

impl Moving {
    /// Returns whether references to pages of a plan are noted.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.stage.get() == READY
    }

    /// Returns whether there is a plan, or the beginning of one.
    pub(super) fn is_begun(&self) -> bool {
        self.stage.get() != NO_PLAN
    }

    /// Notes a page that a large object is being moved to. (Without memory for the note, no report
    /// of the move reaches the runtime.)
    pub(super) fn note_large(&self, page: &Page) {
        let _noted = self.larges.lock().0.push(page.number.get() as u32);
    }

    /// Takes the number of a noted page. The caller then tells the runtime.
    pub(super) fn next_large(&self) -> Option<u32> {
        self.larges.lock().0.pop()
    }

    pub(super) fn wants_major(&self) -> bool {
        self.wanted.get() != 0
    }

    /// Returns whether the next major collection compacts.
    fn is_wanted(&self) -> bool {
        matches!(self.wanted.get(), DUE | URGENT | ALL)
    }

    pub(super) fn is_asked(&self) -> bool {
        self.wanted.get() > DUE
    }

    /// Makes the next collection a major one that compacts. It evacuates all pages that may go if
    /// `all`, or only sparse pages.
    pub(super) fn ask_now(&self, all: bool) {
        self.wanted.set(if all { ALL } else { URGENT });
    }

    /// Notes a page with new objects: a mutator has finished with it, or has made a large object.
    pub(super) fn note_used(&self, space: &Space, page: &Page) {
        if space.cycle.phase() == Phase::Moving
            && layout::is_traced(page.page_list.get())
            && !self.fresh.lock().0.push(page.number.get() as u32)
        {
            space.abandon_plan();
        }
    }

    pub(super) fn ask(&self) {
        self.wanted.set(ASKED);
    }

    pub(super) fn note_begin(&self) {
        if self.wanted.get() == ASKED {
            self.wanted.set(COUNTED);
        }
    }

    pub(super) fn end(&self) {
        self.plan.lock().end();
        self.fresh.lock().0.end();
        self.larges.lock().0.end();
        clear!(self: wanted stage left swept objects bytes evacuated stayed rounds);
    }

    pub(super) fn each_lock(&self, with: With<'_>) {
        with(&self.plan);
        with(&self.fresh);
        with(&self.larges);
    }
}
