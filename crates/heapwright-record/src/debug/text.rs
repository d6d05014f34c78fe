//! Fields without a fixed length: bytes, and the frames of a stack.
//!
//! Both say whether they were cut. The bytes may not be UTF-8.

use super::wire::{Cursor, Field, Sink};
use core::fmt;

/// The most frames a stack has.
pub const MOST_FRAMES: usize = 64;

/// The bit of a length that says that the content was cut.
const CUT: u32 = 1 << 31;

fn length(cursor: &mut Cursor<'_>) -> (usize, bool) {
    let word = u32::take(cursor);
    ((word & !CUT) as usize, word & CUT != 0)
}

fn put_length(sink: &mut Sink<'_>, length: usize, cut: bool) {
    (length as u32 & !CUT | if cut { CUT } else { 0 }).put(sink);
}

/// Some bytes, possibly cut.
///
/// ```
/// use heapwright_record::debug::Text;
/// let text = Text::from("main");
/// assert_eq!((text.bytes, text.cut), (&b"main"[..], false));
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Text<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Whether there were more bytes.
    pub cut: bool,
}

impl<'a> From<&'a [u8]> for Text<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self { bytes, cut: false }
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self::from(text.as_bytes())
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"{}", self.bytes.escape_ascii(), if self.cut { "..." } else { "" })
    }
}

impl<'a> Field<'a> for Text<'a> {
    fn put(&self, sink: &mut Sink<'_>) {
        let granted = sink.grant(self.bytes.len(), 1);
        put_length(sink, granted, self.cut || granted < self.bytes.len());
        sink.put(self.bytes.get(..granted).unwrap_or_default());
    }

    fn take(cursor: &mut Cursor<'a>) -> Self {
        let (length, cut) = length(cursor);
        Self { bytes: cursor.take(length).unwrap_or_default(), cut }
    }
}

/// The frames of a stack: return addresses, innermost first.
///
/// ```
/// use heapwright_record::debug::Frames;
/// let frames = Frames::new(&[0x1000, 0x2000]);
/// assert_eq!((frames.len(), frames.cut()), (2, false));
/// assert!(frames.iter().eq([0x1000, 0x2000]));
/// ```
#[derive(Clone, Copy, Default)]
pub struct Frames<'a> {
    source: Source<'a>,
    cut: bool,
}

#[derive(Clone, Copy)]
enum Source<'a> {
    Words(&'a [u64]),
    /// Frames as they are in a file, not aligned.
    Bytes(&'a [u8]),
}

impl Default for Source<'_> {
    fn default() -> Self {
        Self::Words(&[])
    }
}

impl<'a> Frames<'a> {
    /// Creates frames to be written; frames beyond [`MOST_FRAMES`] are cut off.
    #[must_use]
    pub fn new(frames: &'a [u64]) -> Self {
        let kept = frames.get(..MOST_FRAMES);
        Self { source: Source::Words(kept.unwrap_or(frames)), cut: frames.len() > MOST_FRAMES }
    }

    /// Marks the frames as cut, because the unwinder stopped before the end of the stack.
    #[must_use]
    pub const fn and_more(self) -> Self {
        Self { cut: true, ..self }
    }

    /// Returns whether there were more frames.
    #[must_use]
    pub const fn cut(&self) -> bool {
        self.cut
    }

    /// Returns the number of frames.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self.source {
            Source::Words(words) => words.len(),
            Source::Bytes(bytes) => bytes.len() / 8,
        }
    }

    /// Returns whether there are no frames.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the addresses.
    pub fn iter(&self) -> impl Iterator<Item = u64> + 'a {
        let (words, bytes): (&[u64], &[u8]) = match self.source {
            Source::Words(words) => (words, &[]),
            Source::Bytes(bytes) => (&[], bytes),
        };
        let word = |chunk: &[u8]| u64::take(&mut Cursor::new(chunk));
        words.iter().copied().chain(bytes.chunks_exact(8).map(word))
    }
}

impl PartialEq for Frames<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cut == other.cut && self.iter().eq(other.iter())
    }
}

impl Eq for Frames<'_> {}

impl fmt::Debug for Frames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(Hex)).finish()?;
        f.write_str(if self.cut { "..." } else { "" })
    }
}

struct Hex(u64);

impl fmt::Debug for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl<'a> Field<'a> for Frames<'a> {
    fn put(&self, sink: &mut Sink<'_>) {
        let granted = sink.grant(self.len(), 8);
        put_length(sink, granted, self.cut || granted < self.len());
        self.iter().take(granted).for_each(|frame| frame.put(sink));
    }

    fn take(cursor: &mut Cursor<'a>) -> Self {
        let (count, cut) = length(cursor);
        let bytes = cursor.take(count.saturating_mul(8)).unwrap_or_default();
        Self { source: Source::Bytes(bytes), cut }
    }
}
