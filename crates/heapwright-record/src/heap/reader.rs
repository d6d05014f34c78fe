//! The command's side: reads entries one after another, to the end or to the damage.

use super::coder::{Coder, text};
use super::facts::{Counts, Heap, Object, Occupancy, Page, Pools, Root};
use super::{END, ENTRIES, FORMAT, HEADER_BYTES, OLDEST, START};
use crate::checksum::of_much;
use crate::frame::{self, Frame};
use crate::problem::{Fault, Problem};

/// A part of a dump. In the file:
///
/// ```text
/// 1mrrrrrr    Reference   the low 6 bits of +-n: step from the last reference of the object, or
///                         from the object; if m is set, n: the other bits of the step
/// 01unstkk    Object      kk: its kind; s: the size is the last object's, else n: size;
///                         t: the type is the last object's, else n: type; u: n: bytes in use;
///                         n: it begins where the last object ended, else +-n: step from the last
///                         object's place
/// 00000001    Type        n: number | text: name
/// 00000010    Page        n: number | place | n: bytes | n: pool | byte: kind, state * 4,
///                         aside * 16 | n: a slot's bytes | n: slots | n: pins | n: moved in |
///                         n: old | a bit a slot
/// 00000011    Root        byte: kind | n: mutator | place
/// 00000100    Age         then an Object: old if the last object was young, young if that was
///                         old; a frame begins young
/// ```
///
/// n: LEB128; +-n: zigzag, then LEB128. A place is an address, turned right by 3 bits. In version
/// 1, pages have no `aside`, `pins`, `moved in` and `old`, and there is no Age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entry<'a> {
    /// The heap's figures, the name of its layout, and the slot size of each pool.
    Start(Heap, &'a [u8], Pools<'a>),
    /// The name of a type.
    Type {
        /// The type's number.
        id: u32,
        /// The type's name.
        name: &'a [u8],
    },
    /// A page, and its taken slots.
    Page(Page, Occupancy<'a>),
    /// An object.
    Object(Object),
    /// A reference of the preceding object.
    Reference(u64),
    /// A root.
    Root(Root),
    /// The end of the dump.
    End(Counts),
}

/// Reads a heap dump: an iterator of the entries. After the last entry, [`Reader::problem`] tells
/// why no more come, and [`Reader::is_whole`] whether the dump is complete.
///
/// ```
/// use heapwright_record::heap::{Heap, Reader, Writer};
///
/// let (mut buffer, mut file) = ([0; Writer::LEAST], Vec::new());
/// let mut writer = Writer::new(&mut buffer, |piece: &[u8]| {
///     file.extend_from_slice(piece);
///     true
/// });
/// writer.start(&Heap::default(), "fine", &[]);
/// assert!(writer.end());
///
/// let mut reader = Reader::new(&file[..file.len() - 1]).unwrap();
/// assert_eq!(reader.by_ref().count(), 1);
/// assert!(reader.problem().unwrap().is_cut() && !reader.is_whole());
/// ```
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    at: u64,
    entries: Entries<'a>,
    state: State,
    skipped: u64,
    problem: Option<Problem>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    version: u32,
    seen: Counts,
    owner: Option<u64>,
    started: bool,
    ended: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entries<'a> {
    coder: Coder,
    rest: &'a [u8],
    /// An entry that is a separate frame.
    alone: Option<Entry<'a>>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        if self.rest.is_empty() {
            return self.alone.take();
        }
        let mut rest = self.rest;
        let entry = self.coder.take(&mut rest)?;
        self.rest = rest;
        Some(entry)
    }
}

impl<'a> Reader<'a> {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// These bytes are no heap dump, or a dump that this version cannot read.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Problem> {
        let (version, rest) = frame::behind_header(bytes, &FORMAT)?;
        Ok(Self {
            rest,
            at: HEADER_BYTES as u64,
            entries: Entries::default(),
            state: State { version, ..State::default() },
            skipped: 0,
            problem: None,
        })
    }

    /// Continues where this piece of a file ended: `bytes` are the file's bytes from
    /// [`Reader::position`] on.
    ///
    /// ```
    /// use heapwright_record::heap::{HEADER, Reader};
    /// let reader = Reader::new(&HEADER).unwrap();
    /// assert_eq!(reader.go_on(b"").position(), 16);
    /// ```
    #[must_use]
    pub fn go_on<'b>(&self, bytes: &'b [u8]) -> Reader<'b> {
        let problem = self.problem.filter(|problem| !problem.is_cut());
        Reader {
            rest: bytes,
            at: self.at,
            entries: Entries::default(),
            state: self.state,
            skipped: self.skipped,
            problem,
        }
    }

    /// Returns the reason why no more entries come, or `None` if the bytes ended.
    #[must_use]
    pub const fn problem(&self) -> Option<Problem> {
        self.problem
    }

    /// Returns whether the end was read, and nothing is missing.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.state.ended && self.problem.is_none()
    }

    /// Returns the number of skipped frames. Only a newer version knows these frames.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns the number of bytes that were read without fault.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.at
    }

    fn read(&mut self) -> Result<(), Fault> {
        let frame = Frame::take(self.rest, self.at, of_much)?;
        match frame.tag {
            START | ENTRIES | END => {
                (self.entries, self.state) = self.state.take(&frame, self.at)?;
            }
            _ => self.skipped += 1,
        }
        self.at += (self.rest.len() - frame.rest.len()) as u64;
        self.rest = frame.rest;
        Ok(())
    }
}

impl State {
    fn take<'a>(mut self, frame: &Frame<'a>, at: u64) -> Result<(Entries<'a>, Self), Fault> {
        let malformed = || Fault::Malformed(at);
        if self.ended || self.started == (frame.tag == START) {
            return Err(malformed());
        }
        let mut rest = frame.payload;
        if frame.tag == ENTRIES {
            let (before, owner) = Coder::take_begin(&mut rest).ok_or_else(malformed)?;
            if before != self.seen.sum() || owner != self.owner {
                return Err(Fault::Gap(at));
            }
            let entries = Entries { coder: Coder::after(owner, self.version), rest, alone: None };
            // All entries are checked now, so that a later iteration may trust each.
            let mut all = entries;
            all.by_ref().for_each(|entry| self.count(&entry));
            if !all.rest.is_empty() {
                return Err(malformed());
            }
            self.owner = all.coder.owner();
            return Ok((entries, self));
        }
        let alone = if frame.tag == START {
            self.started = true;
            self.start(&mut rest)
        } else {
            self.ended = true;
            Counts::default().with_numbers(&mut rest).map(Entry::End)
        };
        let alone = alone.ok_or_else(malformed)?;
        if matches!(alone, Entry::End(counts) if counts != self.seen) {
            return Err(Fault::Gap(at));
        }
        Ok((Entries { alone: Some(alone), ..Entries::default() }, self))
    }

    fn start<'a>(&self, rest: &mut &'a [u8]) -> Option<Entry<'a>> {
        let (heap, layout, pools) =
            (Heap::default().with_numbers(rest)?, text(rest)?, Pools::take(rest)?);
        let heap = if self.version == OLDEST { heap } else { heap.with_ages_and_moves(rest)? };
        Some(Entry::Start(heap, layout, pools))
    }

    #[inline]
    fn count(&mut self, entry: &Entry<'_>) {
        let seen = &mut self.seen;
        match entry {
            Entry::Type { .. } => seen.types += 1,
            Entry::Page(..) => seen.pages += 1,
            Entry::Object(_) => seen.objects += 1,
            Entry::Reference(_) => seen.references += 1,
            Entry::Root(_) => seen.roots += 1,
            Entry::Start(..) | Entry::End(_) => {}
        }
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Some(entry);
            }
            if self.problem.is_some() || self.rest.is_empty() {
                return None;
            }
            if let Err(fault) = self.read() {
                self.problem = Some(FORMAT.problem(fault));
            }
        }
    }
}
