//! A text under construction, in a buffer on the stack.
//!
//! Reports are written where nothing may be allocated (inside malloc's own
//! library, at exit, with memory exhausted), so `core::fmt` with its dynamic
//! dispatch and panics stays out. What does not fit is cut off: a report is
//! sized so that everything does, and a test would miss the last line.
//!
//! The functions stay out of line: inlined into a report they made 20 KiB of
//! code that runs once.

/// A buffer of `N` bytes and how many of them are text.
pub(crate) struct Text<const N: usize> {
    buffer: [u8; N],
    length: usize,
}

impl<const N: usize> Text<N> {
    /// An empty text.
    pub(crate) const fn new() -> Self {
        Self { buffer: [0; N], length: 0 }
    }

    /// The text so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }

    /// One byte more.
    #[inline(never)]
    pub(crate) fn byte(&mut self, byte: u8) -> &mut Self {
        if let Some(slot) = self.buffer.get_mut(self.length) {
            *slot = byte;
            self.length += 1;
        }
        self
    }

    /// A string more.
    #[inline(never)]
    pub(crate) fn str(&mut self, text: &str) -> &mut Self {
        for &byte in text.as_bytes() {
            self.byte(byte);
        }
        self
    }

    /// Appends a name from outside, escaped.
    #[inline(never)]
    pub(crate) fn name(&mut self, name: &[u8]) -> &mut Self {
        heapwright_record::escaped(name, |piece| {
            self.str(piece);
        });
        self
    }

    /// A string more, filled with spaces on its right to `width`.
    #[inline(never)]
    pub(crate) fn left(&mut self, text: &str, width: usize) -> &mut Self {
        self.str(text);
        self.repeat(b' ', width.saturating_sub(text.len()))
    }

    /// One byte `count` times.
    #[inline(never)]
    pub(crate) fn repeat(&mut self, byte: u8, count: usize) -> &mut Self {
        for _ in 0..count {
            self.byte(byte);
        }
        self
    }

    /// A number in decimal.
    pub(crate) fn number(&mut self, value: u64) -> &mut Self {
        self.number_right(value, 0)
    }

    /// A number in decimal, filled with spaces on its left to `width`.
    #[inline(never)]
    pub(crate) fn number_right(&mut self, value: u64, width: usize) -> &mut Self {
        let (mut digits, mut rest) = (1, value / 10);
        while rest != 0 {
            digits += 1;
            rest /= 10;
        }
        self.repeat(b' ', width.saturating_sub(digits)).digits(value)
    }

    /// The digits of a number: those of its tenth, and the last. (20 calls deep
    /// at most; a loop over a buffer is unrolled into 20 divisions.)
    #[inline(never)]
    fn digits(&mut self, value: u64) -> &mut Self {
        if value >= 10 {
            self.digits(value / 10);
        }
        self.byte(b'0' + (value % 10) as u8)
    }

    /// An address, in hexadecimal.
    #[cfg(heapwright_reads)]
    pub(crate) fn address(&mut self, value: usize) -> &mut Self {
        self.str("0x");
        let digits = (usize::BITS - value.leading_zeros()).div_ceil(4).max(1);
        for digit in (0..digits).rev() {
            self.byte(b"0123456789abcdef"[value >> (digit * 4) & 15]);
        }
        self
    }

    /// A number of bytes in KiB, rounded to the next, filled to `width`.
    #[inline(never)]
    pub(crate) fn kib(&mut self, bytes: u64, width: usize) -> &mut Self {
        self.number_right(bytes.div_ceil(1024), width).str(" KiB")
    }
}
