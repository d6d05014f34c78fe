//! The constants and structs of collected heaps' events in `include/heapwright.h`, and of threads' states.
//!
//! Written out here as those of `hw_gc_types` are, and tied to the library's own by `const` assertions.

use core::ffi::c_void;

use crate::hw_gc_types::{GcHeap, GcMutator};
use crate::mirror::mirror;
use heapwright::gc::raw::ThreadState;
use heapwright::gc::{self, Event, Span};

/// A span begins.
pub const GC_EVENT_BEGINS: u32 = 0;
/// A span ends.
pub const GC_EVENT_ENDS: u32 = 1;
/// Of an event's flags: the collection is a minor one.
pub const GC_EVENT_MINOR: u32 = 1;
/// Of an event's flags: the world stands still during the call.
pub const GC_EVENT_STOPPED: u32 = 2;
/// Of an event's flags: the collection moves objects.
pub const GC_EVENT_COMPACTS: u32 = 4;

/// What begins and ends: see hw_gc_event.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum GcSpan {
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
    /// An object wider than the widest slot, of at least large_bytes of hw_gc_runtime: its allocation, and its
    /// death, which the sweep finds; with its address and bytes. One that moves ends, and begins elsewhere.
    Large = 9,
}

/// One end of a span of a heap's collections. Later versions add fields at the end.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct GcEvent {
    /// Bytes of this struct.
    pub size: usize,
    /// What begins or ends: a hw_gc_span.
    pub span: u32,
    /// HW_GC_EVENT_BEGINS or HW_GC_EVENT_ENDS.
    pub edge: u32,
    /// HW_GC_EVENT_MINOR, HW_GC_EVENT_STOPPED, HW_GC_EVENT_COMPACTS.
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
    /// The heap.
    pub heap: *mut GcHeap,
    /// The mutator of the thread that calls; NULL where that is not known: a sweep's end, a large object's death.
    pub mutator: *mut GcMutator,
    /// The large object. When it has died this is only an address.
    pub object: *mut c_void,
}

mirror! {
    GcEvent, Event;
    size span edge flags thread time_ns collection bytes ns heap mutator object
}

/// What a mutator's thread is at, for its heap.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum GcThreadState {
    /// It has left, or was not there yet: it touches no object.
    Away = 0,
    /// It may touch objects, and is waited for.
    AtWork = 1,
    /// It waits until the world goes on.
    Stopped = 2,
}

/// What hw_gc_attached calls for each mutator: state is a hw_gc_thread_state.
pub type GcMutatorVisitor =
    Option<unsafe extern "C" fn(mutator: *mut GcMutator, state: u32, context: *mut c_void)>;

const _: () = {
    assert!(GC_EVENT_BEGINS == gc::BEGINS && GC_EVENT_ENDS == gc::ENDS);
    assert!(GC_EVENT_MINOR == gc::MINOR && GC_EVENT_STOPPED == gc::STOPPED);
    assert!(GC_EVENT_COMPACTS == gc::COMPACTS);
    assert!(GcSpan::Collection as u32 == Span::Collection as u32);
    assert!(GcSpan::Trace as u32 == Span::Trace as u32);
    assert!(GcSpan::Pause as u32 == Span::Pause as u32);
    assert!(GcSpan::Mark as u32 == Span::Mark as u32);
    assert!(GcSpan::Roots as u32 == Span::Roots as u32);
    assert!(GcSpan::Weak as u32 == Span::Weak as u32);
    assert!(GcSpan::Move as u32 == Span::Move as u32);
    assert!(GcSpan::Sweep as u32 == Span::Sweep as u32);
    assert!(GcSpan::Large as u32 == Span::Large as u32);
    assert!(GcThreadState::Away as u32 == ThreadState::Away as u32);
    assert!(GcThreadState::AtWork as u32 == ThreadState::AtWork as u32);
    assert!(GcThreadState::Stopped as u32 == ThreadState::Stopped as u32);
};
