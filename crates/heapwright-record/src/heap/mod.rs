//! The heap dump: the objects of a collected heap, and the references between them.
//!
//! A collector writes the dump while the world is stopped, from a buffer of fixed size, and never
//! goes back. `heapwright heap` summarises the dump. The reader decodes each entry without the
//! entries behind it.
//!
//! ```text
//! a dump    magic HWHEAP\0\0 8 | version 4 | flags 4 | start | entries | entries | ... | end
//! a frame   tag 4 | length 4 | length bytes | checksum 4: CRC-32C of all before it  (not padded)
//! tag       (little endian; n: LEB128; text: n, then so many bytes)
//!   1  Start    n: page size | pid | unix ns | live, in_use, empty, large, external, goal: bytes |
//!               cycles | flags | text: layout | n: pools | n: a slot's bytes, for each pool |
//!               minor cycles | old: bytes | compactions | moved: objects, bytes |
//!               evacuated, kept: pages
//!   2  Entries  n: entries before these | n: the object whose references go on here (its address,
//!               rotated right by 3 bits), or 0 | entries (see `Entry`)
//!   3  End      n: types | pages | objects | references | roots
//! ```
//!
//! **Order.** A type's name comes before its first object. An object's references come before the
//! next object. All other entries may come in any order. A reference may lead to an earlier or a
//! later object. If a frame ends among an object's references, the next frame names the object.
//!
//! **Growing.** A newer writer may add tags, which an older reader skips, and fields at the end of
//! Start and End. A reader may ignore unknown flags among the low 16, but not among the high 16.
//! Other changes need another version. In version 1, Start ends behind the pools.
//!
//! **Damage.** A reader stops at the first wrong frame. The numbers of entries in Entries and End
//! show missing and double entries. A dump without its end is cut.

mod coder;
mod facts;
mod reader;
mod writer;

use crate::frame;
use crate::problem::Format;

pub use facts::{
    Aside, Counts, Heap, Object, Occupancy, Page, PageState, Pools, Root, RootKind, kind,
};
pub use reader::{Entry, Reader};
pub use writer::Writer;

/// The first bytes of a heap dump.
pub const MAGIC: [u8; 8] = *b"HWHEAP\0\0";

/// The version that is written, and the newest one that is read.
pub const VERSION: u32 = 2;

/// The oldest version that is read.
pub const OLDEST: u32 = 1;

pub(crate) static FORMAT: Format = Format {
    magic: MAGIC,
    versions: (OLDEST, VERSION),
    name: "heap dump",
    a_frame: "a frame",
    frame: "frame",
    parts: "entries",
};

/// Bytes before the first frame.
pub const HEADER_BYTES: usize = frame::HEADER_BYTES;

/// The first bytes of a heap dump. [`Writer::start`] writes them.
///
/// ```
/// use heapwright_record::heap::{HEADER, Reader};
/// assert_eq!(Reader::new(&HEADER).unwrap().count(), 0);
/// ```
pub const HEADER: [u8; HEADER_BYTES] = frame::header(MAGIC, VERSION);

const START: u32 = 1;
const ENTRIES: u32 = 2;
const END: u32 = 3;

#[cfg(test)]
mod tests;
