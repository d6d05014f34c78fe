//! The reader's side: reads chunks one after another, to the end or to the damage.

use super::chunk::Chunk;
use super::{FORMAT, HEADER_BYTES};
use crate::checksum::of_much;
use crate::frame::{self, Frame};
use crate::problem::{Fault, Problem};

/// Reads a trace: an iterator of the chunks. After the last chunk, [`Reader::problem`] tells
/// whether the file ended there.
///
/// ```
/// use heapwright_record::trace::{End, HEADER, Reader};
///
/// let mut file = HEADER.to_vec();
/// file.extend_from_slice(End { operations: 0 }.encode(&mut [0; 20]));
/// let mut reader = Reader::new(&file[..file.len() - 1]).unwrap();
/// assert_eq!(reader.next(), None);
/// assert!(reader.problem().unwrap().is_cut());
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
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// These bytes are no trace, or a trace that this version cannot read.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Problem> {
        let (_, rest) = frame::behind_header(bytes, &FORMAT)?;
        Ok(Self { rest, at: HEADER_BYTES as u64, seen: 0, skipped: 0, problem: None })
    }

    /// Returns the reason why no more chunks come, or `None` if the file ended.
    #[must_use]
    pub const fn problem(&self) -> Option<Problem> {
        self.problem
    }

    /// Returns the number of skipped chunks. Only a newer version knows these chunks.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns the number of bytes that were read without fault.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.at
    }

    /// Returns the next chunk. An inner `None` is a chunk that only a newer version knows.
    fn read(&mut self) -> Result<Option<Chunk<'a>>, Fault> {
        let frame = Frame::take(self.rest, self.at, of_much)?;
        let chunk = Chunk::take(&frame).ok_or(Fault::Malformed(self.at))?;
        match chunk {
            Some(Chunk::Process(_)) => self.seen = 0,
            Some(Chunk::Operations(operations)) => {
                if operations.before != self.seen {
                    return Err(Fault::Gap(self.at));
                }
                // All operations are checked now, so that a later iteration may trust each.
                let mut all = operations;
                self.seen += all.by_ref().count() as u64;
                if all.is_broken() {
                    return Err(Fault::Malformed(self.at));
                }
            }
            Some(Chunk::End(end)) if end.operations != self.seen => {
                return Err(Fault::Gap(self.at));
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
                Err(fault) => self.problem = Some(FORMAT.problem(fault)),
            }
        }
        None
    }
}
