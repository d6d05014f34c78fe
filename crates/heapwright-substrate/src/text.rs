//! One line of text in a fixed buffer. A line that reports misuse of the heap must not allocate,
//! as `format!` does, or panic, as code of `core::fmt` can.

use crate::digits::Digits;
use crate::os;
use heapwright_record::escaped;

/// A line under construction. Text that does not fit is cut.
pub struct Line {
    bytes: [u8; 480],
    length: usize,
}

impl Line {
    /// A line that begins with heapwright's name.
    pub fn new() -> Self {
        Self { bytes: [0; 480], length: 0 }.text("heapwright: ")
    }

    /// Appends heapwright's own text.
    pub fn text(mut self, text: &str) -> Self {
        self.put(text.as_bytes());
        self
    }

    /// Appends text from outside, escaped.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        escaped(bytes, |piece| self.put(piece.as_bytes()));
        self
    }

    /// Appends a number.
    pub fn number(mut self, number: usize) -> Self {
        self.put(Digits::decimal(number as u64).as_bytes());
        self
    }

    /// Appends an address.
    pub fn address(mut self, address: usize) -> Self {
        self.put(b"0x");
        self.put(Digits::hexadecimal(address as u64).as_bytes());
        self
    }

    fn put(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.length < self.bytes.len() - 1 {
                self.bytes[self.length] = byte;
                self.length += 1;
            }
        }
    }

    /// Ends the line and writes it to standard error in one piece.
    pub fn write(mut self) {
        self.bytes[self.length] = b'\n';
        os::write_stderr(&self.bytes[..=self.length]);
    }

    #[cfg(test)]
    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_addresses_are_spelled_right() {
        let line = Line::new().number(0).text(" ").number(usize::MAX).text(" ").address(0xfee1);
        assert_eq!(line.as_bytes(), b"heapwright: 0 18446744073709551615 0xfee1");
        assert_eq!(Line::new().address(0).as_bytes(), b"heapwright: 0x0");
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        let mut line = Line::new();
        for _ in 0..1000 {
            line = line.bytes(b"more\n");
        }
        assert_eq!(line.length, 479);
        assert!(!line.as_bytes().contains(&b'\n'));
    }
}
