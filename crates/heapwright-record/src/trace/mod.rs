//! The trace: every call for memory that a program made, in the order in which blocks changed their
//! owner.
//!
//! The preload library writes the trace (`trace=PREFIX`), `heapwright record` puts it in order, and
//! `heapwright replay` repeats the calls. The library only appends, each chunk by one `write`.
//!
//! ```text
//! a trace   magic HWTRACE\0 8 | version 4 | flags 4 | chunk | chunk | ...        (little endian)
//! a chunk   tag 4 | length 4 | length bytes | checksum 4: CRC-32C of all before it (not padded)
//!   1  Process      a program begins: pid 4 | parent 4 | unix ns 8 | forked 4 |
//!                   length 4, its file | length 4, its command line
//!   2  Operations   LEB128: operations before these, ms since the beginning |
//!                   operations (see `Operation`)
//!   3  End          the program ended normally: operations 8
//! ```
//!
//! **Order.** One stream for all threads shows the order in which blocks are freed and other
//! threads get them. An allocation is written after the heap has made the block, a free before the
//! heap frees the block. So a realloc has two halves: other operations may come between them, and
//! may use the old block's name.
//!
//! **Growing.** A newer writer may add tags, which an older reader skips, and fields at the end of
//! Process and End. A reader may ignore unknown flags among the low 16, but not among the high 16.
//! Other changes take another version. After `exec` the new program continues the file with another
//! Process chunk: no block lives on.
//!
//! **Damage.** A reader stops at the first wrong chunk. The numbers of operations in Operations and
//! End show missing and double operations. After a short write the writer must not write again.

mod chunk;
mod coder;
mod operation;
mod reader;

use crate::frame;
use crate::problem::Format;

pub use chunk::{Chunk, End, Operations, Process, begin_operations, seal};
pub use coder::Coder;
pub use frame::{BEFORE, BEHIND};
pub use operation::Operation;
pub use reader::Reader;

/// The first bytes of a trace.
pub const MAGIC: [u8; 8] = *b"HWTRACE\0";

/// The version that is written, and the only one that is read.
pub const VERSION: u32 = 1;

pub(crate) static FORMAT: Format = Format {
    magic: MAGIC,
    versions: (VERSION, VERSION),
    name: "trace",
    a_frame: "a chunk",
    frame: "chunk",
    parts: "operations",
};

/// Bytes before the first chunk.
pub const HEADER_BYTES: usize = frame::HEADER_BYTES;

/// The first bytes of a trace, to be written before any chunk.
///
/// ```
/// use heapwright_record::trace::{HEADER, Reader};
/// assert_eq!(Reader::new(&HEADER).unwrap().count(), 0);
/// ```
pub const HEADER: [u8; HEADER_BYTES] = frame::header(MAGIC, VERSION);

#[cfg(test)]
mod tests;
