//! An event: one end of a span of a collection, as the runtime is handed it. The C interface's struct.
//!
//! Made by `events`, which has the picture of the spans.

use core::ffi::c_void;

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
