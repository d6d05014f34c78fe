//! A collected heap: its parts, joined.
//!
//! ```text
//!   raw                     the interface for runtimes
//!    |
//!   allocation, payment     a mutator allocates, and pays with sweeping, marking, moving
//!    |
//!   cycle                   when a collection begins, its steps, its end   sweep, spans, verify
//!    |
//!   safepoints, mutators    threads come, stop, go                         attach, fork, lifecycle
//!    |
//!   mutator, regions        a thread's access to one heap
//!    |
//!   heap                    joins the parts
//!    |------------+---------------+------------+
//!    |         moving             |          world       handshakes: knows no other part
//!    |            |               |
//!    |          trace <-----------+   mark, settling; tracer, generations, weak, finalizers, ...
//!    |            |
//!   space <-------+                      pages, lists, accounts; find, marks, placement, large
//! ```
//!
//! Each part owns its fields, and all arrows point down. Marking knows no mutator, and moving knows
//! no marking: the caller passes their [surroundings](super::around::Around).
//!
//! Heaps are recycled and never freed, so an id from the address map always leads to a heap. Locks
//! are taken in this order: members, the plan, finalizers, guardians, weak passes, objects without
//! barriers, page lists. Those of the gang, the handles and the time line come last: a thread that
//! holds one of these takes no other lock of the heap.

use core::ptr;

use heapwright_substrate::ids::Recycled;

use super::cell::Num;
use super::events::Events;
use super::forks::ForkPart;
use super::locks::With;
use super::moving::Moving;
use super::page::Page;
use super::pauses::Pauses;
use super::runtime::Runtime;
use super::space::Space;
use super::trace::Trace;
use super::world::World;

/// A heap. All-zero bytes: a heap that is not in use.
pub(super) struct Heap {
    pub(super) space: Space,
    pub(super) trace: Trace,
    pub(super) world: World,
    pub(super) moving: Moving,

    pub(super) fork: ForkPart,
    pub(super) open: Num,
    pub(super) pauses: Pauses,
    pub(super) events: Events,
}

// SAFETY: all threads may use each part. The other fields are atomics and locks.
unsafe impl Sync for Heap {}

pub(super) static HEAPS: Recycled<Heap> = Recycled::new();

pub(super) fn of(id: u32) -> Option<&'static Heap> {
    HEAPS.get(id)
}

pub(super) fn all() -> impl Iterator<Item = &'static Heap> {
    HEAPS.all()
}

/// Takes the registry's lock, which this thread holds across a fork.
pub(super) fn before_fork() {
    HEAPS.before_fork();
}

/// Releases the registry's lock, in the parent and in the child of a fork.
///
/// # Safety
///
/// The forking thread called [`before_fork`]. This thread is the forking thread or its copy.
pub(super) unsafe fn after_fork() {
    // SAFETY: this thread, or its original in the parent, took the locks before the fork.
    unsafe { HEAPS.after_fork() };
}

impl Heap {
    #[inline]
    pub(super) fn runtime(&self) -> &Runtime {
        self.trace.runtime()
    }

    pub(super) fn page_limit(&self) -> usize {
        self.space.target().most.saturating_sub(self.trace.marking.chunks.beyond_a_few())
    }

    pub(super) fn new_page(&self, page_list: usize, most: usize) -> Option<&'static Page> {
        let wanted = self.space.wanted(page_list, self.space.slot(page_list), self.page_limit());
        self.whole().space.new_page(wanted, most)
    }

    pub(super) fn take_empty(&self, page_list: usize) -> Option<&'static Page> {
        self.whole().space.take_empty(self.space.wanted(
            page_list,
            self.space.slot(page_list),
            self.page_limit(),
        ))
    }

    pub(super) fn new_large(&self, size: usize, page_list: usize) -> Option<&'static Page> {
        let wanted = self.space.wanted(page_list, size, self.page_limit());
        let page = self.whole().space.new_large(wanted)?;
        self.space.pacing.add_allocated(page.footprint());
        self.moving.note_used(&self.space, page);
        Some(page)
    }

    pub(super) fn whole(&self) -> &'static Self {
        // SAFETY: heaps are made in memory that lives as long as the process.
        unsafe { &*ptr::from_ref(self) }
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.get() != 0
    }

    pub(super) fn each_lock(&self, with: With<'_>) {
        self.moving.each_lock(with);
        self.trace.each_lock(with);
        self.space.each_lock(with);
        self.trace.each_later_lock(with);
        self.events.timeline.each_lock(with);
    }
}
