//! A text under construction, in a buffer on the stack.
//!
//! Code that writes a report must not allocate: the process may be ending, or memory may have run
//! out. So `core::fmt` with its dynamic dispatch and panics stays out. Text that does not fit is
//! cut off. A report's buffer has room for the whole report; otherwise a test would miss the last
//! line.
//!
//! The functions stay out of line: inlined, they would make a report's code much larger.

pub(crate) struct Text<const N: usize> {
    buffer: [u8; N],
    length: usize,
}

impl<const N: usize> Text<N> {
    pub(crate) const fn new() -> Self {
        Self { buffer: [0; N], length: 0 }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }

    #[inline(never)]
    pub(crate) fn byte(&mut self, byte: u8) -> &mut Self {
        if let Some(slot) = self.buffer.get_mut(self.length) {
            *slot = byte;
            self.length += 1;
        }
        self
    }

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

    /// Appends a string, filled with spaces on its right to `width`.
    #[inline(never)]
    pub(crate) fn left(&mut self, text: &str, width: usize) -> &mut Self {
        self.str(text);
        self.repeat(b' ', width.saturating_sub(text.len()))
    }

    #[inline(never)]
    pub(crate) fn repeat(&mut self, byte: u8, count: usize) -> &mut Self {
        for _ in 0..count {
            self.byte(byte);
        }
        self
    }

    pub(crate) fn number(&mut self, value: u64) -> &mut Self {
        self.number_right(value, 0)
    }

    /// Appends a number in decimal, filled with spaces on its left to `width`.
    #[inline(never)]
    pub(crate) fn number_right(&mut self, value: u64, width: usize) -> &mut Self {
        let (mut digits, mut rest) = (1, value / 10);
        while rest != 0 {
            digits += 1;
            rest /= 10;
        }
        self.repeat(b' ', width.saturating_sub(digits)).digits(value)
    }

    /// Appends the digits of a number: first the digits of its tenth, then the last digit. (At most
    /// 20 calls deep. The compiler would unroll a loop over a buffer into 20 divisions.)
    #[inline(never)]
    fn digits(&mut self, value: u64) -> &mut Self {
        if value >= 10 {
            self.digits(value / 10);
        }
        self.byte(b'0' + (value % 10) as u8)
    }

    pub(crate) fn address(&mut self, value: usize) -> &mut Self {
        self.str("0x");
        let digits = (usize::BITS - value.leading_zeros()).div_ceil(4).max(1);
        for digit in (0..digits).rev() {
            self.byte(b"0123456789abcdef"[value >> (digit * 4) & 15]);
        }
        self
    }

    /// Appends a number of bytes in KiB, rounded up, filled to `width`.
    #[inline(never)]
    pub(crate) fn kib(&mut self, bytes: u64, width: usize) -> &mut Self {
        self.number_right(bytes.div_ceil(1024), width).str(" KiB")
    }
}
