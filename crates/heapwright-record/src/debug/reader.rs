//! The reader's side: reads entries one after another, to the end or to the damage.
//!
//! A file need not be in memory as a whole. If a piece of it ends within an entry, the next piece
//! begins with this entry's first byte ([`Reader::resume`]).

use super::entry::Entry;
use super::wire::Cursor;
use super::{FORMAT, HEADER_BYTES};
use crate::checksum::{checksum, of_much};
use crate::frame::{self, Frame};
use crate::problem::{Fault, Problem};

/// Reads a debug record: an iterator of the entries. After the last entry, [`Reader::problem`]
/// tells whether the file ended there.
///
/// ```
/// use heapwright_record::debug::{Encoder, Note, HEADER, Reader};
///
/// let mut file = HEADER.to_vec();
/// let mut buffer = [0; Encoder::SMALLEST];
/// file.extend_from_slice(Encoder::new(&mut buffer).entry(&Note { bytes: "x".into() }.into()));
/// let mut reader = Reader::new(&file[..file.len() - 1]).unwrap();
/// assert_eq!(reader.next(), None);
/// assert!(reader.problem().unwrap().is_cut());
/// ```
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    at: u64,
    began: u64,
    sum: fn(&[u8]) -> u32,
    skipped: u64,
    problem: Option<Problem>,
}

impl<'a> Reader<'a> {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// These bytes are no debug record, or a record that this version cannot read.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Problem> {
        let (_, rest) = frame::behind_header(bytes, &FORMAT)?;
        let at = HEADER_BYTES as u64;
        Ok(Self { rest, at, began: at, sum: checksum, skipped: 0, problem: None })
    }

    /// Continues with a later piece of a record. The piece begins with an entry, at byte `at` of
    /// the file. This reader is for large files: it uses more memory to be faster.
    ///
    /// ```
    /// use heapwright_record::debug::{Encoder, HEADER, HEADER_BYTES, Note, Reader};
    ///
    /// let mut file = HEADER.to_vec();
    /// let mut buffer = [0; Encoder::SMALLEST];
    /// file.extend_from_slice(Encoder::new(&mut buffer).entry(&Note { bytes: "x".into() }.into()));
    /// let mut reader = Reader::resume(&file[HEADER_BYTES..], HEADER_BYTES as u64);
    /// assert!(reader.next().is_some());
    /// assert_eq!(reader.position(), file.len() as u64);
    /// ```
    #[must_use]
    pub const fn resume(bytes: &'a [u8], at: u64) -> Self {
        Self { rest: bytes, at, began: at, sum: of_much, skipped: 0, problem: None }
    }

    /// Returns the byte of the file at which the last entry began.
    #[must_use]
    pub const fn began(&self) -> u64 {
        self.began
    }

    /// Returns the reason why no more entries come, or `None` if the file ended.
    #[must_use]
    pub const fn problem(&self) -> Option<Problem> {
        self.problem
    }

    /// Returns the number of skipped entries. Only a newer version knows these entries.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns the number of bytes that were read without fault.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.at
    }

    /// Returns the next entry. An inner `None` is an entry that only a newer version knows.
    fn read(&mut self) -> Result<Option<Entry<'a>>, Fault> {
        let frame = Frame::take(self.rest, self.at, self.sum)?;
        let mut payload = Cursor::new(frame.payload);
        let entry = Entry::take(frame.tag, &mut payload);
        if payload.is_broken() {
            return Err(Fault::Malformed(self.at));
        }
        self.began = self.at;
        self.at += (self.rest.len() - frame.rest.len()) as u64;
        self.rest = frame.rest;
        Ok(entry)
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        while self.problem.is_none() && !self.rest.is_empty() {
            match self.read() {
                Ok(Some(entry)) => return Some(entry),
                Ok(None) => self.skipped += 1,
                Err(fault) => self.problem = Some(FORMAT.problem(fault)),
            }
        }
        None
    }
}

impl core::iter::FusedIterator for Reader<'_> {}
