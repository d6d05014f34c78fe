//! The contents of chunks. The library fills its buffer, operation by operation, behind room for a
//! head, and then seals it:
//!
//! ```text
//! | BEFORE 8 | payload ...................... | BEHIND 4 | room |
//!   ^ seal     ^ begin_operations, Coder::put   ^ seal
//! ```

use super::coder::Coder;
use super::operation::Operation;
use crate::frame::{self, BEFORE, Frame};
use crate::leb::{Out, number};

const PROCESS: u32 = 1;
const OPERATIONS: u32 = 2;
const END: u32 = 3;

/// The start of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process<'a> {
    /// The number of the process.
    pub pid: u32,
    /// The number of its parent.
    pub parent: u32,
    /// The time of the start, in nanoseconds since 1970.
    pub time: u64,
    /// Whether the process is a forked copy: it has its parent's blocks, which are not recorded.
    pub forked: bool,
    /// The program's file.
    pub exe: &'a [u8],
    /// The words of the command line, each ended by a zero.
    pub command: &'a [u8],
}

impl<'a> Process<'a> {
    /// Returns the bytes of the chunk, in `place`; empty if it does not fit.
    ///
    /// ```
    /// use heapwright_record::trace::{Chunk, HEADER, Process, Reader};
    /// let process = Process { pid: 7, exe: b"/bin/true", ..Process::default() };
    /// let mut file = HEADER.to_vec();
    /// file.extend_from_slice(process.encode(&mut [0; 100]));
    /// assert!(Reader::new(&file).unwrap().eq([Chunk::Process(process)]));
    /// ```
    pub fn encode<'b>(&self, place: &'b mut [u8]) -> &'b [u8] {
        let mut out = Out { place: place.get_mut(BEFORE..).unwrap_or_default(), at: 0 };
        let forked = u32::from(self.forked);
        let lengths = [self.exe.len() as u32, self.command.len() as u32];
        let mut put = |bytes: &[u8]| bytes.iter().for_each(|&byte| out.byte(byte));
        put(&self.pid.to_le_bytes());
        put(&self.parent.to_le_bytes());
        put(&self.time.to_le_bytes());
        put(&forked.to_le_bytes());
        for (length, text) in lengths.into_iter().zip([self.exe, self.command]) {
            put(&length.to_le_bytes());
            put(text);
        }
        let payload = out.at;
        sealed(place, PROCESS, payload)
    }

    fn decode(mut payload: &'a [u8]) -> Option<Self> {
        let rest = &mut payload;
        let (pid, parent) = (word(rest)?, word(rest)?);
        let time = u64::from(word(rest)?) | u64::from(word(rest)?) << 32;
        let forked = word(rest)? != 0;
        Some(Self { pid, parent, time, forked, exe: text(rest)?, command: text(rest)? })
    }
}

/// The normal end of a program: all its operations are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// The number of written operations.
    pub operations: u64,
}

impl End {
    /// Returns the bytes of the chunk, in `place`; empty if it does not fit.
    ///
    /// ```
    /// use heapwright_record::trace::{Chunk, End, HEADER, Reader};
    /// let mut file = HEADER.to_vec();
    /// file.extend_from_slice(End { operations: 0 }.encode(&mut [0; 20]));
    /// assert!(Reader::new(&file).unwrap().eq([Chunk::End(End { operations: 0 })]));
    /// ```
    pub fn encode<'b>(&self, place: &'b mut [u8]) -> &'b [u8] {
        let bytes = self.operations.to_le_bytes();
        let room = place.get_mut(BEFORE..).and_then(|rest| rest.get_mut(..bytes.len()));
        if let Some(room) = room {
            room.copy_from_slice(&bytes);
        }
        sealed(place, END, bytes.len())
    }

    fn decode(mut payload: &[u8]) -> Option<Self> {
        let (low, high) = (word(&mut payload)?, word(&mut payload)?);
        Some(Self { operations: u64::from(low) | u64::from(high) << 32 })
    }
}

/// An iterator of operations that were written together. After the last operation,
/// [`Operations::is_broken`] says whether damaged bytes follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operations<'a> {
    /// Operations in chunks before this one, since the program began.
    pub before: u64,
    /// Milliseconds since the program began.
    pub ms: u64,
    coder: Coder,
    rest: &'a [u8],
}

impl<'a> Operations<'a> {
    fn decode(mut payload: &'a [u8]) -> Option<Self> {
        let (before, ms) = (number(&mut payload)?, number(&mut payload)?);
        Some(Self { before, ms, coder: Coder::new(), rest: payload })
    }

    /// Returns whether the bytes behind the last operation are damaged.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        !self.rest.is_empty()
    }
}

impl Iterator for Operations<'_> {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        let mut coder = self.coder;
        let (operation, rest) = coder.take(self.rest)?;
        (self.coder, self.rest) = (coder, rest);
        Some(operation)
    }
}

/// Begins the payload of a chunk of operations, in a buffer whose first [`BEFORE`] bytes are for
/// [`seal`]. Returns the bytes of payload; 0 if it does not fit.
pub fn begin_operations(buffer: &mut [u8], before: u64, ms: u64) -> usize {
    let mut out = Out { place: buffer.get_mut(BEFORE..).unwrap_or_default(), at: 0 };
    out.number(before);
    out.number(ms);
    if out.at > out.place.len() { 0 } else { out.at }
}

/// Makes a buffer a chunk of operations: `payload` bytes follow its first [`BEFORE`] bytes. Returns
/// the chunk, to be written by one `write`; empty if there is no room for the
/// [`BEHIND`](super::BEHIND) bytes behind the payload.
///
/// ```
/// use heapwright_record::trace::{BEFORE, Chunk, Coder, HEADER, Operation, Reader};
/// use heapwright_record::trace::{begin_operations, seal};
///
/// let mut buffer = [0; 64];
/// let mut payload = begin_operations(&mut buffer, 0, 5);
/// payload += Coder::new().put(Operation::Fork, &mut buffer[BEFORE + payload..]);
/// let file = [&HEADER[..], seal(&mut buffer, payload)].concat();
/// let Some(Chunk::Operations(chunk)) = Reader::new(&file).unwrap().next() else { panic!() };
/// assert_eq!((chunk.before, chunk.ms), (0, 5));
/// assert!(chunk.eq([Operation::Fork]));
/// ```
pub fn seal(buffer: &mut [u8], payload: usize) -> &[u8] {
    sealed(buffer, OPERATIONS, payload)
}

fn sealed(buffer: &mut [u8], tag: u32, payload: usize) -> &[u8] {
    frame::seal(buffer, tag, payload).unwrap_or_default()
}

/// A chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Chunk<'a> {
    /// The start of a program.
    Process(Process<'a>),
    /// Operations of the program.
    Operations(Operations<'a>),
    /// The end of the program.
    End(End),
}

impl<'a> Chunk<'a> {
    /// Returns the chunk of a frame. An inner `None` is a chunk that only a newer version knows.
    /// Returns `None` if the payload does not fit its tag.
    pub(super) fn take(frame: &Frame<'a>) -> Option<Option<Self>> {
        let payload = frame.payload;
        Some(Some(match frame.tag {
            PROCESS => Self::Process(Process::decode(payload)?),
            OPERATIONS => Self::Operations(Operations::decode(payload)?),
            END => Self::End(End::decode(payload)?),
            _ => return Some(None),
        }))
    }
}

fn word(rest: &mut &[u8]) -> Option<u32> {
    let (bytes, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(u32::from_le_bytes(*bytes))
}

fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = word(rest)? as usize;
    let (text, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(text)
}
