//! The debug record: the debug allocator writes it while a program runs, and the command reads it
//! afterwards. [`Entry`] lists the entries, in the order of their tags from 1.
//!
//! The process may die at any moment. So the writer only appends, each entry by one `write`.
//! The record is complete in itself: the modules, threads and stacks of a finding are entries
//! before it.
//!
//! ```text
//! a record   magic HWDEBUG\0 8 | version 4 | flags 4 | entry | entry | ...       (little endian)
//! an entry   tag 4 | length 4 | length bytes | checksum 4: CRC-32C of all before it (not padded)
//! fields, in the order of the struct, with nothing between them
//!   u8 u16 u32 u64 i64   as they are
//!   an enum              its number; one that the reader does not know is Unknown
//!   Text                 u32: length, top bit: it was cut | that many bytes
//!   Frames               u32: count, top bit: it was cut | that many u64
//! ```
//!
//! **Growing.** A newer writer may add tags, which an older reader skips, and fields at the end of
//! an entry, which an older reader ignores. Fields that an older writer did not have read as zero.
//! A reader may ignore unknown flags among the low 16, but not among the high 16. Other changes
//! need another version. Numbers of tags and enums are never used again.
//!
//! **Damage.** A reader stops at the first wrong entry. It looks for no later entry, because bytes
//! that look like an entry may be text inside one. For the same reason a writer must not write
//! again after a short write.
//!
//! **Stacks.** Frames are return addresses, innermost first. The byte before each belongs to the
//! call. Only the first frame of `here` in a finding with [`Call::Access`] is the instruction.

mod encoder;
mod entry;
mod finding;
mod numbers;
mod reader;
mod sentence;
mod text;
mod wire;

use crate::frame;
use crate::problem::Format;

pub use encoder::Encoder;
pub use entry::{
    Check, Checked, Class, End, Entry, Leak, Map, Module, Note, Process, Profile, Sample, Sampled,
    SampledMore, SampledPoint, SampledThread, Site, Stack, Step, Thread, Times, Usage,
};
pub use finding::{Finding, Moment, Role};
pub use numbers::{
    Access, Call, Ending, FindingKind, Function, Memory, Occasion, Origin, Reach, Region, Root,
};
pub use reader::Reader;
pub use sentence::{Formatted, Words};
pub use text::{Frames, MOST_FRAMES, Text};

/// The start of a note that the library could not look for leaks at the end. The reason follows.
pub const NO_LEAK_CHECK: &str = "no leak check: ";

/// The start of a note that a program starts without the library. The program's process (0 if it is
/// not known), a space and the program's name follow.
pub const NOT_CHECKED: &str = "not checked: ";

/// The start of a note that takes the last [`NOT_CHECKED`] of a process back. The process follows.
pub const NOT_STARTED: &str = "not started: ";

/// The start of a note that a program starts into which the library cannot be loaded. The program's
/// process, one of [`UNLOADABLE`] and the program's name follow, after spaces.
pub const NOT_LOADED: &str = "not loaded: ";

/// The reasons of [`NOT_LOADED`].
pub const UNLOADABLE: [&str; 3] = ["static", "set-uid", "machine"];

/// The start of a note that a program starts with the library, but without a record: the user wants
/// no report about it. Its process follows.
pub const LEFT_OUT: &str = "left out: ";

/// The start of a note about a child process, which should have a record. Its number follows. If it
/// executes a program, a space and the program's name follow. Other children are forks.
pub const CHILD: &str = "child: ";

/// The first bytes of a debug record.
pub const MAGIC: [u8; 8] = *b"HWDEBUG\0";

/// The written version, and the only one that is read.
pub const VERSION: u32 = 2;

pub(crate) static FORMAT: Format = Format {
    magic: MAGIC,
    versions: (VERSION, VERSION),
    name: "debug record",
    a_frame: "an entry",
    frame: "entry",
    parts: "entries",
};

/// Bytes before the first entry.
pub const HEADER_BYTES: usize = frame::HEADER_BYTES;

/// The first bytes of a debug record, to be written before any entry.
///
/// ```
/// use heapwright_record::debug::{HEADER, Reader};
/// assert_eq!(Reader::new(&HEADER).unwrap().count(), 0);
/// ```
pub const HEADER: [u8; HEADER_BYTES] = frame::header(MAGIC, VERSION);

#[cfg(test)]
mod tests;
