//! The heap dump: the objects of a collected heap, and the references between them.
//!
//! A collector writes the dump while the world is stopped, from a buffer of fixed size.
//! `heapwright heap` summarises the dump. It is a stream: the writer never goes back, and the
//! reader needs no later entry.
//!
//! ```text
//! a dump (little endian)
//! +-----------+-----------+---------+-------+---------+---------+- - -+-----+
//! | magic 8   | version 4 | flags 4 | start | entries | entries |     | end |
//! | HWHEAP\0\0| 2         | 0       |       |         |         |     |     |
//! +-----------+-----------+---------+-------+---------+---------+- - -+-----+
//!
//! a frame (not padded: it may begin at any byte)
//! +-------+----------+----------------+------------+
//! | tag 4 | length 4 | length bytes   | checksum 4 |   CRC-32C of all before it
//! +-------+----------+----------------+------------+
//!
//! tag                           n: LEB128; text: n, then so many bytes
//!   1  Start    n: page size | pid | unix ns | live, in_use, empty, large, external,
//!               goal: bytes | cycles | flags | text: layout | n: pools | n: a slot's
//!               bytes, for each pool | minor cycles | old: bytes | compactions |
//!               moved: objects, bytes | evacuated, kept: pages
//!   2  Entries  n: entries before these | n: the object whose references go on here
//!               (its place), or 0 | entries
//!   3  End      n: types | pages | objects | references | roots
//!
//! an entry                      place: an address, turned right by 3 bits
//!   1mrrrrrr    Reference       the low 6 bits of +-n: step from the last reference of
//!                               the object, or from the object; if m is set, n: the
//!                               other bits of the step
//!   01unstkk    Object          kk: its kind; s: the size is the last object's, else n: size;
//!                               t: the type is the last object's, else n: type;
//!                               u: n: bytes in use; n: it begins where the last object
//!                               ended, else +-n: step from the last object's place
//!   00000001    Type            n: number | text: name
//!   00000010    Page            n: number | place | n: bytes | n: pool | byte: kind,
//!                               state * 4, aside * 16 | n: a slot's bytes | n: slots |
//!                               n: pins | n: moved in | n: old | a bit a slot
//!   00000011    Root            byte: kind | n: mutator | place
//!   00000100    Age             then an Object: old if the last object was young, young
//!                               if that was old; a frame begins young
//! ```
//!
//! **Order.** A type's name comes before the first object of the type. An object's references come
//! behind it and before the next object. All other entries may come in any order. References name
//! the start of objects, which may be written before or later. If a frame ends among an object's
//! references, the next frame names the object, so no frame depends on another.
//!
//! **Growing.** A newer writer may add tags, which an older reader skips, and fields at the end of
//! Start and End. A reader may ignore unknown flags among the low 16, but not among the high 16.
//! Other changes need another version. In version 1 the start ends behind the pools, pages have no
//! `aside`, `pins`, `moved in` and `old`, and there is no Age.
//!
//! **Damage.** A reader stops at the first wrong frame, and says where that is. Each frame of
//! entries tells the number of entries before it, and the end tells the number of each sort. So
//! missing and double entries are noticed. A dump without its end is cut.

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
