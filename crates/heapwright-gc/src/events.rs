//! Events: what a heap tells its runtime of its collections, and writes into a time line.
//!
//! ```text
//!   collection  |=========================================|      from the first root to the last page swept
//!   trace       |====================|                           from the first step of marking to the last
//!   pause       |=====|   |====|  |=======|                      all mutators stand still
//!     mark       |===|     |==|    |=|                           one step
//!       roots     |=|                                            roots are reported
//!       weak                        ||                           ephemerons, weak references, finalizers
//!     move                            |==|                       one step
//!   sweep                             |===================|      by those that allocate, mostly
//!   large object    |======================= - - -               from its allocation to its death
//! ```
//!
//! Everything is a span, and an event is one of its two ends. Where nobody listens an event costs a load and a test,
//! a few in each step; none is on a path that allocates from a region, reports a reference or stores one. The
//! clock is read only for those that listen.
//!
//! A listener is called where the thread holds no lock of the heap's, nor is within one of the
//! runtime's callbacks. It may not call what could collect; see [`Runtime::event`](super::raw::Runtime#structfield.event).
//!
//! Called by `cycle`, `marking`, `moving`, `sweep` and `mutator`; `timeline` is the other listener.

use core::ffi::c_void;
use core::ptr;

use heapwright_substrate::os;

use super::cell::Num;
use super::heap::Heap;
use super::mutator::Mutator;
use super::page::Page;
use super::statistics::Began;
use super::timeline::Timeline;

/// What begins and ends: see [`Event`].
///
/// ```
/// use heapwright::gc::{EVENT_SIZE, Span};
/// assert_eq!((Span::Pause as u32, EVENT_SIZE), (3, 80));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Span {
    /// A collection. Begins with the bytes allocated since the last one, ends with those found live; the world
    /// stands still only as it begins.
    Collection = 1,
    /// All marking of a collection. Between its ends the runtime is asked what objects and roots lead to; when it ends,
    /// everything that they lead to was reported, so a runtime may sweep what is its own. Ends with the bytes
    /// marked.
    Trace = 2,
    /// A pause. Begins when all mutators stand still, with the nanoseconds that took; ends when they
    /// were let go, with those that it lasted.
    Pause = 3,
    /// A step of marking.
    Mark = 4,
    /// Roots are reported: handles, the runtime's, stacks.
    Roots = 5,
    /// Values of ephemerons are marked, weak references to what is dead are cleared, finalizers become due.
    Weak = 6,
    /// A step of moving objects. Ends with the bytes moved.
    Move = 7,
    /// Sweeping: by steps, and by those that take pages.
    Sweep = 8,
    /// An object wider than the widest slot, of at least [`Runtime::large_bytes`](super::raw::Runtime#structfield.large_bytes):
    /// its allocation, and its death, which the sweep finds; with its address and bytes. One that moves ends, and begins
    /// elsewhere.
    Large = 9,
}

/// It begins.
pub const BEGINS: u32 = 0;
/// It ends.
pub const ENDS: u32 = 1;

/// The collection is a minor one.
pub const MINOR: u32 = 1;
/// The world stands still during the call.
pub const STOPPED: u32 = 2;
/// The collection moves objects.
pub const COMPACTS: u32 = 4;

/// Bytes of an [`Event`].
pub const EVENT_SIZE: usize = size_of::<Event>();

/// One end of a span. Later versions add fields at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Event {
    /// Bytes of this struct.
    pub size: usize,
    /// What begins or ends: a [`Span`].
    pub span: u32,
    /// [`BEGINS`] or [`ENDS`].
    pub edge: u32,
    /// [`MINOR`], [`STOPPED`], [`COMPACTS`].
    pub flags: u32,
    /// The thread that calls, as the system numbers it.
    pub thread: u32,
    /// When, in nanoseconds of the system's monotonic clock.
    pub time_ns: u64,
    /// The number of the collection that began last, from 1.
    pub collection: u64,
    /// Bytes, of what the span says.
    pub bytes: u64,
    /// Nanoseconds, of what the span says.
    pub ns: u64,
    /// The heap, as [`raw::Heap::into_ptr`](super::raw::Heap::into_ptr) gives it.
    pub heap: *mut c_void,
    /// The mutator of the thread that calls; null where that is not known: a sweep's end, a large object's death.
    pub mutator: *mut c_void,
    /// The large object. When it has died this is only an address.
    pub object: *mut c_void,
}

/// Who listens, and to what collection. Zero has nobody.
pub(super) struct Events {
    /// Whether anybody does.
    heard: Num,
    /// The number of the collection that began last, and its flags.
    collection: Num,
    flags: Num,
    pub(super) timeline: Timeline,
}

impl Events {
    /// Forgets all.
    pub(super) fn end(&self) {
        self.timeline.end();
        for number in [&self.heard, &self.collection, &self.flags] {
            number.set(0);
        }
    }
}

/// What an event says beyond its span.
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
    /// The heap is made: finds out who listens.
    pub(super) fn begin_events(&self) {
        let heard = self.events.timeline.begin() || self.runtime().event.is_some();
        self.events.heard.set(usize::from(heard));
    }

    /// Whether anybody listens.
    #[inline]
    fn is_heard(&self) -> bool {
        self.events.heard.get() != 0
    }

    /// Does what a span is of. While the world stands still.
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

    /// A collection begins, and its trace.
    pub(super) fn collection_begins(&self, me: &Mutator) {
        if self.is_heard() {
            let minor = if self.generations.is_minor() { MINOR } else { 0 };
            let compacts = if self.moving.is_on() { COMPACTS } else { 0 };
            self.events.collection.set(self.cycle.number() + 1);
            self.events.flags.set((minor | compacts) as usize);
            let bytes = self.pacing.used();
            self.tell(Span::Collection, BEGINS, STOPPED, Some(me), Said { bytes, ..Said::now() });
            self.tell(Span::Trace, BEGINS, STOPPED, Some(me), Said::now());
        }
    }

    /// All is marked.
    pub(super) fn trace_ends(&self, me: &Mutator) {
        if self.is_heard() {
            let bytes = self.marked_so_far();
            self.tell(Span::Trace, ENDS, STOPPED, Some(me), Said { bytes, ..Said::now() });
        }
    }

    /// All mutators stand still.
    pub(super) fn pause_begins(&self, me: &Mutator, began: &Began) {
        if self.is_heard() {
            let said = Said { time: began.stood(), ns: began.waited(), ..Said::now() };
            self.tell(Span::Pause, BEGINS, STOPPED, Some(me), said);
        }
    }

    /// The world goes on, after a pause of `ns` nanoseconds.
    pub(super) fn pause_ends(&self, me: &Mutator, began: &Began, ns: u64) {
        if self.is_heard() {
            let said = Said { time: began.stood() + ns, ns, ..Said::now() };
            self.tell(Span::Pause, ENDS, 0, Some(me), said);
            self.events.timeline.flush();
        }
    }

    /// Pages are to be swept from now on. While the world stands still.
    pub(super) fn sweep_begins(&self) {
        if self.is_heard() {
            self.tell(Span::Sweep, BEGINS, STOPPED, None, Said::now());
        }
    }

    /// Every page was claimed for the sweep, and the collection is over.
    pub(super) fn sweep_ends(&self) {
        if self.is_heard() {
            self.tell(Span::Sweep, ENDS, 0, None, Said::now());
            let bytes = self.pacing.live();
            self.tell(Span::Collection, ENDS, 0, None, Said { bytes, ..Said::now() });
            self.events.timeline.flush();
        }
    }

    /// A page is one large object from now on.
    pub(super) fn large_begins(&self, me: &Mutator, page: &Page) {
        self.large(BEGINS, 0, Some(me), page);
    }

    /// The same, because an object was moved there: while the world stands still.
    pub(super) fn large_was_moved(&self, me: &Mutator, page: &Page) {
        self.large(BEGINS, STOPPED, Some(me), page);
    }

    /// It is none any more.
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

    /// Tells all that listen.
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
        self.events.timeline.note(self.id(), &event);
        self.runtime().event(&event);
    }
}
