//! Spans: a heap reports its collections to its runtime, and writes them into a time line.
//!
//! ```text
//!   collection  |=========================================|   from the first root to the last page
//!   trace       |====================|                        from the first step to the last
//!   pause       |=====|   |====|  |=======|                   all mutators are stopped
//!     mark       |===|     |==|    |=|                        one step
//!       roots     |=|                                         roots are reported
//!       weak                        ||                        ephemerons, weak references, ...
//!     move                            |==|                    one step
//!   sweep                             |===================|   mostly by threads that allocate
//!   large object    |======================= - - -            from its allocation to its death
//! ```
//!
//! Each line of the picture is a span. An event is one end of a span. Without a listener, it costs
//! a load and a test. Allocations from a region, reports of references and stores have no events.
//!
//! A listener is called while the thread holds no lock of the heap's, and outside of the runtime's
//! other callbacks. It may call nothing that could collect: see
//! [`Runtime::event`](super::raw::Runtime#structfield.event). The listeners are the runtime and
//! `timeline`. Called by `cycle`, `sweep` and `allocation`.

use core::ptr;

use heapwright_substrate::os;

use super::event::{BEGINS, COMPACTS, ENDS, EVENT_SIZE, Event, MINOR, STOPPED, Span};
use super::heap::Heap;
use super::mutator::Mutator;
use super::page::Page;
use super::pauses::Began;

#[derive(Clone, Copy)]
struct Said {
    time: u64,
    bytes: usize,
    ns: u64,
    object: *mut u8,
}

impl Said {
    fn now() -> Self {
        Self { time: os::now_ns(), bytes: 0, ns: 0, object: ptr::null_mut() }
    }
}

impl Heap {
    pub(super) fn begin_events(&self) {
        let heard = self.events.timeline.begin() || self.runtime().event.is_some();
        self.events.heard.set(usize::from(heard));
    }

    #[inline]
    fn is_heard(&self) -> bool {
        self.events.heard.get() != 0
    }

    /// Runs `work`, the work of a span. The world must be stopped.
    #[inline]
    pub(super) fn during<T>(&self, span: Span, me: &Mutator, work: impl FnOnce() -> T) -> T {
        if !self.is_heard() {
            return work();
        }
        let moved = self.moving.bytes.get();
        self.tell(span, BEGINS, STOPPED, Some(me), Said::now());
        let result = work();
        let bytes = self.moving.bytes.get().wrapping_sub(moved);
        self.tell(span, ENDS, STOPPED, Some(me), Said { bytes, ..Said::now() });
        result
    }

    pub(super) fn collection_begins(&self, me: &Mutator) {
        if self.is_heard() {
            let minor = if self.trace.generations.is_minor() { MINOR } else { 0 };
            let compacts = if self.moving.is_on() { COMPACTS } else { 0 };
            self.events.collection.set(self.space.cycle.number() + 1);
            self.events.flags.set((minor | compacts) as usize);
            let bytes = self.space.pacing.used();
            self.tell(Span::Collection, BEGINS, STOPPED, Some(me), Said { bytes, ..Said::now() });
            self.tell(Span::Trace, BEGINS, STOPPED, Some(me), Said::now());
        }
    }

    pub(super) fn trace_ends(&self, me: &Mutator) {
        if self.is_heard() {
            let bytes = self.marked_so_far();
            self.tell(Span::Trace, ENDS, STOPPED, Some(me), Said { bytes, ..Said::now() });
        }
    }

    pub(super) fn pause_begins(&self, me: &Mutator, began: &Began) {
        if self.is_heard() {
            let said = Said { time: began.stood(), ns: began.waited(), ..Said::now() };
            self.tell(Span::Pause, BEGINS, STOPPED, Some(me), said);
        }
    }

    pub(super) fn pause_ends(&self, me: &Mutator, began: &Began, ns: u64) {
        if self.is_heard() {
            let said = Said { time: began.stood() + ns, ns, ..Said::now() };
            self.tell(Span::Pause, ENDS, 0, Some(me), said);
            self.events.timeline.flush();
        }
    }

    /// Reports that the sweep begins. The world must be stopped.
    pub(super) fn sweep_begins(&self) {
        if self.is_heard() {
            self.tell(Span::Sweep, BEGINS, STOPPED, None, Said::now());
        }
    }

    /// Reports that the sweep and the collection end. Every page was claimed for the sweep before.
    pub(super) fn sweep_ends(&self) {
        if self.is_heard() {
            self.tell(Span::Sweep, ENDS, 0, None, Said::now());
            let bytes = self.space.pacing.live();
            self.tell(Span::Collection, ENDS, 0, None, Said { bytes, ..Said::now() });
            self.events.timeline.flush();
        }
    }

    pub(super) fn large_begins(&self, me: &Mutator, page: &Page) {
        self.large(BEGINS, 0, Some(me), page);
    }

    /// As [`Heap::large_begins`], for an object that moved to `page`. The world must be stopped.
    pub(super) fn large_was_moved(&self, me: &Mutator, page: &Page) {
        self.large(BEGINS, STOPPED, Some(me), page);
    }

    pub(super) fn large_ends(&self, page: &Page) {
        self.large(ENDS, 0, None, page);
    }

    #[inline]
    fn large(&self, edge: u32, flags: u32, me: Option<&Mutator>, page: &Page) {
        let (least, bytes) = (self.runtime().large_bytes, page.slot.get());
        if self.is_heard() && least != 0 && bytes >= least {
            self.tell(
                Span::Large,
                edge,
                flags,
                me,
                Said { bytes, object: page.base(), ..Said::now() },
            );
        }
    }

    #[cold]
    #[inline(never)]
    fn tell(&self, span: Span, edge: u32, flags: u32, me: Option<&Mutator>, said: Said) {
        let event = Event {
            size: EVENT_SIZE,
            span: span as u32,
            edge,
            flags: flags | self.events.flags.get() as u32,
            thread: me.map_or_else(os::thread_id, Mutator::system_thread),
            time_ns: said.time,
            collection: self.events.collection.get() as u64,
            bytes: said.bytes as u64,
            ns: said.ns,
            heap: ptr::from_ref(self).cast_mut().cast(),
            mutator: me.map_or(ptr::null_mut(), |me| ptr::from_ref(me).cast_mut().cast()),
            object: said.object.cast(),
        };
        self.events.timeline.note(self.space.id(), &event);
        self.runtime().event(&event);
    }
}
