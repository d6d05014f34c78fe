//! An event: one end of a span of a collection, as the runtime gets it. C has the same struct.
//!
//! Made by `spans`, which has a picture of all spans.

use core::ffi::c_void;

pub use super::abi::{
    GC_EVENT_BEGINS as BEGINS, GC_EVENT_COMPACTS as COMPACTS, GC_EVENT_ENDS as ENDS,
    GC_EVENT_MINOR as MINOR, GC_EVENT_STOPPED as STOPPED, GcSpan as Span,
};

/// Bytes of an [`Event`].
///
/// ```
/// use heapwright::gc::{EVENT_SIZE, Span};
/// assert_eq!((Span::Pause as u32, EVENT_SIZE), (3, 80));
/// ```
pub const EVENT_SIZE: usize = size_of::<Event>();

/// One end of a span. Later versions add fields at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Event {
    /// Bytes of this struct.
    pub size: usize,
    /// The [`Span`] that begins or ends.
    pub span: u32,
    /// [`BEGINS`] or [`ENDS`].
    pub edge: u32,
    /// [`MINOR`], [`STOPPED`], [`COMPACTS`].
    pub flags: u32,
    /// The calling thread, as the system numbers it.
    pub thread: u32,
    /// The time, in nanoseconds of the system's monotonic clock.
    pub time_ns: u64,
    /// The number of the collection that began last, from 1.
    pub collection: u64,
    /// Bytes; the span says of what.
    pub bytes: u64,
    /// Nanoseconds; the span says of what.
    pub ns: u64,
    /// The heap, as [`raw::Heap::into_ptr`](super::raw::Heap::into_ptr) gives it.
    pub heap: *mut c_void,
    /// The mutator of the calling thread. Null at both ends of a sweep, at a collection's end and
    /// at a large object's death, because there the collector does not know the mutator.
    pub mutator: *mut c_void,
    /// The large object. If it has died, this is only an address.
    pub object: *mut c_void,
}
