//! A time line: the events of a process's collected heaps, as threads noted them.
//!
//! ```text
//! header, 16 bytes    "HWGCTIME" | version 4 | bytes of an event 4            (little endian)
//! event, 64 bytes     span 2 | 1 if it ends 2 | flags 4 | thread 4 | heap 4 |
//!                     time 8 | collection 8 | bytes 8 | ns 8 | object 8 | zeros 8
//! ```
//!
//! `heapwright::gc::Event` explains the words. A newer writer may make events longer; an older
//! reader skips the rest. Events of several threads are nearly in order: a reader sorts by time.

use crate::problem::{Fault, Format, Problem};

pub(crate) static FORMAT: Format = Format {
    magic: MAGIC,
    versions: (VERSION, VERSION),
    name: "time line",
    a_frame: "an event",
    frame: "event",
    parts: "events",
};

/// The first bytes of a file.
pub const MAGIC: [u8; 8] = *b"HWGCTIME";
/// The version of the format.
pub const VERSION: u32 = 1;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 16;
/// Bytes of an event.
pub const EVENT_BYTES: usize = 64;

/// The header of a file.
pub const HEADER: [u8; HEADER_BYTES] = {
    let mut header = [0; HEADER_BYTES];
    let (magic, rest) = header.split_at_mut(8);
    magic.copy_from_slice(&MAGIC);
    let (version, length) = rest.split_at_mut(4);
    version.copy_from_slice(&VERSION.to_le_bytes());
    length.copy_from_slice(&(EVENT_BYTES as u32).to_le_bytes());
    header
};

/// The collection is a minor one: a bit of [`Event::flags`].
pub const MINOR: u32 = 1;
/// The collection moves objects.
pub const COMPACTS: u32 = 4;

/// The kinds of spans, as a number and a word.
pub mod span {
    /// A collection.
    pub const COLLECTION: u16 = 1;
    /// The whole marking of a collection.
    pub const TRACE: u16 = 2;
    /// A pause.
    pub const PAUSE: u16 = 3;
    /// A step of marking.
    pub const MARK: u16 = 4;
    /// A report of roots.
    pub const ROOTS: u16 = 5;
    /// Weak references, ephemerons, finalizers.
    pub const WEAK: u16 = 6;
    /// A step of moving objects.
    pub const MOVE: u16 = 7;
    /// The sweep.
    pub const SWEEP: u16 = 8;
    /// A large object's life.
    pub const LARGE: u16 = 9;

    /// Returns the name of a span.
    #[must_use]
    pub fn word(span: u16) -> &'static str {
        match span {
            COLLECTION => "collection",
            TRACE => "trace",
            PAUSE => "pause",
            MARK => "mark",
            ROOTS => "roots",
            WEAK => "weak",
            MOVE => "move",
            SWEEP => "sweep",
            LARGE => "large object",
            _ => "unknown",
        }
    }
}

/// An event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The kind of span that begins or ends: one of [`span`].
    pub span: u16,
    /// Whether the span ends.
    pub ends: bool,
    /// [`MINOR`], [`COMPACTS`], and others.
    pub flags: u32,
    /// The system's number of the thread.
    pub thread: u32,
    /// The heap's number in its process.
    pub heap: u32,
    /// Nanoseconds of the monotonic clock.
    pub time: u64,
    /// The collection's number.
    pub collection: u64,
    /// Bytes; their meaning depends on the span.
    pub bytes: u64,
    /// Nanoseconds; their meaning depends on the span.
    pub ns: u64,
    /// A large object's address.
    pub object: u64,
}

impl Event {
    /// Returns the event as a file has it.
    #[must_use]
    pub fn encode(&self) -> [u8; EVENT_BYTES] {
        let mut bytes = [0; EVENT_BYTES];
        let words = [
            u64::from(self.span) | u64::from(self.ends) << 16 | u64::from(self.flags) << 32,
            u64::from(self.thread) | u64::from(self.heap) << 32,
            self.time,
            self.collection,
            self.bytes,
            self.ns,
            self.object,
        ];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Self {
        let word = |n: usize| {
            let word = bytes.get(8 * n..8 * n + 8).and_then(|word| word.try_into().ok());
            word.map_or(0, u64::from_le_bytes)
        };
        let (first, second) = (word(0), word(1));
        Self {
            span: first as u16,
            ends: first >> 16 & 1 != 0,
            flags: (first >> 32) as u32,
            thread: second as u32,
            heap: (second >> 32) as u32,
            time: word(2),
            collection: word(3),
            bytes: word(4),
            ns: word(5),
            object: word(6),
        }
    }
}

/// The events of a whole file in memory.
#[derive(Clone, Copy, Debug)]
pub struct Events<'a> {
    rest: &'a [u8],
    length: usize,
    /// The position in the file at which `rest` begins.
    at: u64,
}

impl<'a> Events<'a> {
    /// Checks a file's header.
    ///
    /// # Errors
    ///
    /// The file is no time line, or only a newer version can read it.
    pub fn of(file: &'a [u8]) -> Result<Self, Problem> {
        let Some((header, rest)) = file.split_at_checked(HEADER_BYTES) else {
            return Err(FORMAT.problem(if HEADER.starts_with(file) || file.starts_with(&MAGIC) {
                Fault::Short
            } else {
                Fault::Other
            }));
        };
        if !header.starts_with(&MAGIC) {
            return Err(FORMAT.problem(Fault::Other));
        }
        let number = |at: usize| {
            let word = header.get(at..at + 4).and_then(|word| word.try_into().ok());
            word.map_or(0, u32::from_le_bytes)
        };
        let (version, length) = (number(8), number(12) as usize);
        if version != VERSION || length < EVENT_BYTES {
            return Err(FORMAT.problem(Fault::Version(version)));
        }
        Ok(Self { rest, length, at: HEADER_BYTES as u64 })
    }

    /// Returns the fault of a file that ends within an event. Valid after the iterator's end.
    #[must_use]
    pub fn problem(&self) -> Option<Problem> {
        (!self.rest.is_empty()).then(|| FORMAT.problem(Fault::EndsWithin(self.at)))
    }
}

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let (event, rest) = self.rest.split_at_checked(self.length)?;
        self.rest = rest;
        self.at += event.len() as u64;
        Some(Event::decode(event))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::ToString;
    use std::vec::Vec;

    fn sample(number: u64) -> Event {
        Event {
            span: span::PAUSE,
            ends: number % 2 == 1,
            flags: MINOR | COMPACTS,
            thread: u32::MAX,
            heap: 7,
            time: u64::MAX - number,
            collection: number,
            bytes: 1 << 40,
            ns: 3,
            object: 0x7f12_3456_0000,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut file = HEADER.to_vec();
        (0..100).for_each(|number| file.extend_from_slice(&sample(number).encode()));
        let mut events = Events::of(&file).unwrap();
        assert!(events.by_ref().eq((0..100).map(sample)));
        assert_eq!(events.problem(), None);
    }

    #[test]
    fn events_of_a_newer_writer_may_be_longer() {
        let mut file = HEADER.to_vec();
        file[12] = 72;
        for number in 0..3 {
            file.extend_from_slice(&sample(number).encode());
            file.extend_from_slice(&[0xff; 8]);
        }
        assert!(Events::of(&file).unwrap().eq((0..3).map(sample)));
    }

    #[test]
    fn other_files_and_cut_ones_are_known() {
        let mut file = HEADER.to_vec();
        file.extend_from_slice(&sample(1).encode());
        let fault = |bytes: &[u8]| Events::of(bytes).err().unwrap().fault();
        assert_eq!(fault(&file[..10]), Fault::Short);
        assert_eq!(fault(b"HWG"), Fault::Short);
        assert_eq!(fault(b"HWSTATS\0rubbish of some length"), Fault::Other);
        let newer: Vec<u8> =
            file.iter().enumerate().map(|(n, &b)| if n == 8 { 9 } else { b }).collect();
        assert_eq!(fault(&newer), Fault::Version(9));
        for cut in HEADER_BYTES + 1..file.len() {
            let mut events = Events::of(&file[..cut]).unwrap();
            assert_eq!(events.by_ref().count(), 0);
            let problem = events.problem().unwrap();
            assert!(problem.is_cut() && problem.to_string().contains("at byte 16"));
        }
    }
}
