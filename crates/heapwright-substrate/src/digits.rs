//! Numbers in digits, without `core::fmt`, which pulls in code that can panic.
//!
//! Called by `os` (paths under `/proc`), `text` (lines) and the debug heap's reports.

/// A number in digits.
pub struct Digits {
    /// As many as the largest number has; the digits are at the end.
    bytes: [u8; 20],
    start: usize,
}

impl Digits {
    /// To the base of ten.
    pub fn decimal(number: u64) -> Self {
        Self::new::<10>(number)
    }

    /// To the base of sixteen, without a prefix.
    pub fn hexadecimal(number: u64) -> Self {
        Self::new::<16>(number)
    }

    /// The base is known when this is compiled, so that no digit is out of bounds.
    fn new<const BASE: u64>(mut number: u64) -> Self {
        let mut bytes = [0; 20];
        let mut start = bytes.len();
        loop {
            start -= 1;
            bytes[start] = b"0123456789abcdef"[(number % BASE) as usize];
            number /= BASE;
            if number == 0 {
                return Self { bytes, start };
            }
        }
    }

    /// The digits.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}
