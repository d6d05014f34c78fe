//! The writer's side: makes one whole entry at a time, in a given buffer.
//!
//! The encoder first measures an entry without its fields of variable length. Texts and frames
//! share the remaining bytes of the buffer, the first field first. A field that does not fit is cut
//! and marked as cut: a report with a cut command line is better than no report.

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
    /// A buffer of this size cuts no stack and loses no number.
    pub const SMALLEST: usize = 1024;

    /// Makes entries in this buffer, which should have at least [`Encoder::SMALLEST`] bytes.
    #[must_use]
    pub fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer }
    }

    /// Returns the bytes of an entry, to be written by one `write`. There are none if the buffer is
    /// too small for the entry's numbers. [`Encoder::SMALLEST`] bytes are always enough.
    #[must_use]
    pub fn entry(&mut self, entry: &Entry<'_>) -> &[u8] {
        self.make(entry).unwrap_or_default()
    }

    // Not inlined into its many callers: calls are rare, and the code should be small.
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
