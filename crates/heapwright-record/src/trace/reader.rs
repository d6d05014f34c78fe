//! The reader's side: chunks one after another, to the end or to the damage.

use super::chunk::Chunk;
use super::{HEADER_BYTES, MAGIC, VERSION};
use crate::checksum::of_much;
use crate::frame::{self, Frame, Refused, Wrong};
use core::fmt;

/// What is wrong with a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// Shorter than the header.
    Short,
    /// It does not begin as one.
    NotATrace,
    /// Written by a version that cannot be read.
    Version(u32),
    /// It has flags that must be known to read it, and are not.
    Flags(u32),
    /// The file ends within the chunk that begins at this byte.
    EndsWithin(u64),
    /// The chunk that begins at this byte is not what was written.
    Checksum(u64),
    /// The chunk that begins at this byte was written wrongly.
    Malformed(u64),
    /// Before the chunk that begins at this byte, another is missing or double.
    Gap(u64),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("the trace ends within its header"),
            Self::NotATrace => f.write_str("not a trace of heapwright"),
            Self::Version(version) => {
                write!(f, "trace of version {version}; this command reads {VERSION}")
            }
            Self::Flags(flags) => {
                write!(f, "trace with flags {flags:#x}, which this command does not know")
            }
            Self::EndsWithin(at) => write!(
                f,
                "the file ends in the middle of a chunk at byte {at}: the process died while \
                 writing, or the copy is incomplete"
            ),
            Self::Checksum(at) => write!(f, "checksum at byte {at} does not match"),
            Self::Malformed(at) => write!(f, "the chunk at byte {at} is not what it says"),
            Self::Gap(at) => {
                write!(f, "operations are missing, or there twice, before the chunk at byte {at}")
            }
        }
    }
}

impl core::error::Error for Problem {}

/// Reads a trace.
///
/// It is an iterator of the chunks. Where it ends, [`Reader::problem`] says whether that
/// was the end of the file.
///
/// ```
/// use heapwright_record::trace::{End, HEADER, Problem, Reader};
///
/// let mut file = HEADER.to_vec();
/// file.extend_from_slice(End { operations: 0 }.encode(&mut [0; 20]));
/// let mut reader = Reader::new(&file[..file.len() - 1]).unwrap();
/// assert_eq!(reader.next(), None);
/// assert_eq!(reader.problem(), Some(Problem::EndsWithin(16)));
/// ```
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    at: u64,
    /// Operations since the program began.
    seen: u64,
    skipped: u64,
    problem: Option<Problem>,
}

impl<'a> Reader<'a> {
    /// Begins to read.
    ///
    /// # Errors
    ///
    /// These bytes are no trace, or not one this version can read.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Problem> {
        let (_, rest) = frame::behind_header(bytes, MAGIC, VERSION..=VERSION).map_err(
            |refused| match refused {
                Refused::Short => Problem::Short,
                Refused::Other => Problem::NotATrace,
                Refused::Version(version) => Problem::Version(version),
                Refused::Flags(flags) => Problem::Flags(flags),
            },
        )?;
        Ok(Self { rest, at: HEADER_BYTES as u64, seen: 0, skipped: 0, problem: None })
    }

    /// Why no more chunks come, unless it is the end of the file.
    #[must_use]
    pub const fn problem(&self) -> Option<Problem> {
        self.problem
    }

    /// How many chunks were skipped that only a newer version knows.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// How many bytes were read; all of them are good.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.at
    }

    /// The next chunk; inside, there is none if only a newer version knows it.
    fn read(&mut self) -> Result<Option<Chunk<'a>>, Problem> {
        let frame = Frame::take(self.rest, of_much).map_err(|wrong| match wrong {
            Wrong::Cut => Problem::EndsWithin(self.at),
            Wrong::Checksum => Problem::Checksum(self.at),
        })?;
        let chunk = Chunk::take(&frame).ok_or(Problem::Malformed(self.at))?;
        match chunk {
            Some(Chunk::Process(_)) => self.seen = 0,
            Some(Chunk::Operations(operations)) => {
                if operations.before != self.seen {
                    return Err(Problem::Gap(self.at));
                }
                // All of them now: an iteration may then trust each.
                let mut all = operations;
                self.seen += all.by_ref().count() as u64;
                if all.is_broken() {
                    return Err(Problem::Malformed(self.at));
                }
            }
            Some(Chunk::End(end)) if end.operations != self.seen => {
                return Err(Problem::Gap(self.at));
            }
            Some(Chunk::End(_)) | None => {}
        }
        self.at += (self.rest.len() - frame.rest.len()) as u64;
        self.rest = frame.rest;
        Ok(chunk)
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Chunk<'a>;

    fn next(&mut self) -> Option<Chunk<'a>> {
        while self.problem.is_none() && !self.rest.is_empty() {
            match self.read() {
                Ok(Some(chunk)) => return Some(chunk),
                Ok(None) => self.skipped += 1,
                Err(problem) => self.problem = Some(problem),
            }
        }
        None
    }
}
