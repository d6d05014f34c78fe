//! The writer's side: one whole entry at a time, in a buffer it is given.
//!
//! An entry is first measured with everything of variable length left out.
//! What the buffer has beyond that is given to texts and frames, the first
//! first. What does not fit is cut and marked as cut: a report without the end
//! of a command line is worth more than none.

use super::entry::Entry;
use super::wire::Sink;
use crate::frame::{self, BEFORE, BEHIND};

/// Makes entries.
///
/// ```
/// use heapwright_record::debug::{Encoder, Entry, HEADER, Note, Reader};
///
/// let mut file = HEADER.to_vec();
/// let mut buffer = [0; Encoder::SMALLEST];
/// let mut encoder = Encoder::new(&mut buffer);
/// let note = Entry::from(Note { bytes: "watching".into() });
/// file.extend_from_slice(encoder.entry(&note));
/// assert!(Reader::new(&file).unwrap().eq([note]));
/// ```
pub struct Encoder<'b> {
    buffer: &'b mut [u8],
}

impl<'b> Encoder<'b> {
    /// With a buffer of this size no stack is cut, and no number is lost.
    pub const SMALLEST: usize = 1024;

    /// Makes entries in this buffer, which should have at least
    /// [`Encoder::SMALLEST`] bytes. What does not fit is cut.
    #[must_use]
    pub fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer }
    }

    /// The bytes of an entry, to be written by one `write`. They are none if
    /// the buffer cannot hold even the entry's numbers, which does not happen
    /// with [`Encoder::SMALLEST`] bytes.
    #[must_use]
    pub fn entry(&mut self, entry: &Entry<'_>) -> &[u8] {
        self.make(entry).unwrap_or_default()
    }

    // Not inlined into each of the many callers: it is rare, and should be small.
    #[inline(never)]
    fn make(&mut self, entry: &Entry<'_>) -> Option<&[u8]> {
        let mut measure = Sink::new(&mut [], 0);
        entry.put(&mut measure);
        let room = self.buffer.len().checked_sub(BEFORE + measure.length() + BEHIND)?;

        let mut payload = Sink::new(self.buffer.get_mut(BEFORE..)?, room);
        entry.put(&mut payload);
        let length = payload.length();
        frame::seal(self.buffer, entry.tag(), length)
    }
}
