//! The collector's side: writes entries into a buffer, and each full buffer to a sink as one frame.
//!
//! ```text
//! | BEFORE 8 | begin | entry | entry | ...... | room | BEHIND 4 |
//!   ^ seal             ^ Coder::put_*                  ^ seal
//! ```

use super::coder::Coder;
use super::facts::{Counts, Heap, Object, Page, Root};
use super::{END, ENTRIES, HEADER, START, VERSION};
use crate::frame::{self, BEFORE, BEHIND};
use crate::leb::Out;

const LONGEST: usize = 1000;

/// Writes a heap dump, frame by frame, without allocating.
///
/// With a larger buffer the writer calls the sink less often. The sink returns whether it took the
/// piece. Each method returns whether the dump is still good. Once the sink has failed, or an entry
/// did not fit, nothing more is written.
///
/// ```
/// use heapwright_record::heap::{Entry, Heap, Object, Reader, Root, RootKind, Writer};
///
/// let (mut buffer, mut file) = ([0; Writer::LEAST], Vec::new());
/// let mut writer = Writer::new(&mut buffer, |piece: &[u8]| {
///     file.extend_from_slice(piece);
///     true
/// });
/// writer.start(&Heap { live: 64, ..Heap::default() }, "fine", &[16, 32, 48]);
/// writer.type_name(1, "Pair");
/// writer.object(&Object { address: 0x1000, size: 32, type_id: 1, ..Object::default() });
/// writer.reference(0x1020);
/// writer.object(&Object { address: 0x1020, size: 32, type_id: 1, ..Object::default() });
/// writer.root(&Root { kind: RootKind::Handle, mutator: 1, address: 0x1000 });
/// assert!(writer.end());
///
/// let mut reader = Reader::new(&file).unwrap();
/// let references = reader.by_ref().filter(|entry| matches!(entry, Entry::Reference(0x1020)));
/// assert_eq!(references.count(), 1);
/// assert!(reader.is_whole());
/// ```
pub struct Writer<'b, S> {
    buffer: &'b mut [u8],
    sink: S,
    coder: Coder,
    payload: usize,
    counts: Counts,
    started: bool,
    good: bool,
}

impl Writer<'_, ()> {
    /// The smallest buffer in bytes: a page with the most slots fits.
    pub const LEAST: usize = 2048;
}

const _: () = assert!(
    Writer::LEAST >= BEFORE + BEHIND + 20 + 80 + Page::MOST_SLOTS as usize / 8
        && Writer::LEAST >= BEFORE + BEHIND + 20 + 20 + LONGEST
);

impl<'b, S: FnMut(&[u8]) -> bool> Writer<'b, S> {
    /// Creates a writer. A buffer of less than [`Writer::LEAST`] bytes gives no dump.
    pub fn new(buffer: &'b mut [u8], sink: S) -> Self {
        let good = buffer.len() >= Writer::LEAST;
        Self {
            buffer,
            sink,
            coder: Coder::default(),
            payload: 0,
            counts: Counts::default(),
            started: false,
            good,
        }
    }

    /// Returns whether the dump is good so far.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.good
    }

    /// Writes the start, once: the heap's figures, its layout's name, and the slot size of each
    /// pool.
    pub fn start(&mut self, heap: &Heap, layout: &str, pools: &[u64]) -> bool {
        self.good = self.good && !self.started && (self.sink)(&HEADER);
        self.started = true;
        self.frame(START, |out| {
            heap.numbers().into_iter().for_each(|number| out.number(number));
            out.text(cut(layout));
            out.number(pools.len() as u64);
            pools.iter().for_each(|&slot| out.number(slot));
            heap.ages_and_moves().into_iter().for_each(|number| out.number(number));
        })
    }

    /// Writes the name of a type, cut after 1000 bytes.
    pub fn type_name(&mut self, id: u32, name: &str) -> bool {
        self.counts.types += 1;
        self.entry(|_, out| Coder::put_type(id, cut(name), out))
    }

    /// Writes a page and its taken slots: a bit for each slot, the lowest bit of a word first. Bits
    /// behind the last slot are ignored; missing words are zero.
    pub fn page(&mut self, page: &Page, occupancy: &[u64]) -> bool {
        // A page with more slots than the buffer has bits is refused at once.
        self.good = self.good && page.slots.div_ceil(u8::BITS) as usize <= self.buffer.len();
        self.counts.pages += 1;
        self.entry(|_, out| Coder::put_page(page, occupancy, out))
    }

    /// Writes an object, whose references follow. References in the order of their addresses take
    /// the fewest bytes. No object is at address 0.
    pub fn object(&mut self, object: &Object) -> bool {
        if object.address == 0 {
            return self.good;
        }
        self.counts.objects += 1;
        self.entry(|coder, out| coder.put_object(object, out))
    }

    /// Writes a reference of the last object: an object's address, once for each reference. A
    /// reference before the first object has no owner, and is not written.
    pub fn reference(&mut self, to: u64) -> bool {
        if self.coder.owner().is_none() {
            return self.good;
        }
        self.counts.references += 1;
        self.entry(|coder, out| coder.put_reference(to, out))
    }

    /// Writes a root.
    pub fn root(&mut self, root: &Root) -> bool {
        self.counts.roots += 1;
        self.entry(|_, out| Coder::put_root(root, out))
    }

    /// Writes the end. Returns whether the dump is whole.
    pub fn end(mut self) -> bool {
        self.good = self.good && self.started;
        self.flush();
        let counts = self.counts;
        self.frame(END, |out| counts.numbers().into_iter().for_each(|number| out.number(number)))
    }

    /// Adds an entry, to a new frame if it does not fit into the open one.
    fn entry(&mut self, put: impl Fn(&mut Coder, &mut Out<'_>)) -> bool {
        self.good = self.good && self.started;
        if !self.good {
            return false;
        }
        for _ in 0..2 {
            if self.payload == 0 {
                self.begin();
            }
            let end = self.buffer.len().saturating_sub(BEHIND);
            let room = self.buffer.get_mut(..end).and_then(|room| room.get_mut(BEFORE..));
            let place = room.and_then(|room| room.get_mut(self.payload..)).unwrap_or_default();
            let (mut coder, mut out) = (self.coder, Out { place, at: 0 });
            put(&mut coder, &mut out);
            if out.at <= out.place.len() {
                self.payload += out.at;
                self.coder = coder;
                return self.good;
            }
            if !self.flush() {
                return false;
            }
        }
        // The entry does not fit, even alone.
        self.good = false;
        false
    }

    fn begin(&mut self) {
        // The count includes the entry that is about to be written.
        let before = self.counts.sum() - 1;
        let owner = self.coder.owner();
        let mut out = Out { place: self.buffer.get_mut(BEFORE..).unwrap_or_default(), at: 0 };
        Coder::put_begin(before, owner, &mut out);
        self.payload = out.at;
        self.coder = Coder::after(owner, VERSION);
    }

    fn flush(&mut self) -> bool {
        let payload = core::mem::take(&mut self.payload);
        if payload != 0 {
            self.send(ENTRIES, payload);
        }
        self.good
    }

    fn frame(&mut self, tag: u32, put: impl Fn(&mut Out<'_>)) -> bool {
        let mut out = Out { place: self.buffer.get_mut(BEFORE..).unwrap_or_default(), at: 0 };
        put(&mut out);
        let payload = out.at;
        self.send(tag, payload);
        self.good
    }

    fn send(&mut self, tag: u32, payload: usize) {
        if self.good {
            let frame = frame::seal(self.buffer, tag, payload);
            self.good = frame.is_some_and(&mut self.sink);
        }
    }
}

fn cut(text: &str) -> &[u8] {
    let end = text.len().min(LONGEST);
    let end = (0..=end).rev().find(|&end| text.is_char_boundary(end)).unwrap_or_default();
    text.get(..end).unwrap_or_default().as_bytes()
}
