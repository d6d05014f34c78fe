//! Numbers in digits and back, without `core::fmt`, which pulls in code that can panic.
//!
//! Called by `os` and `memory_limit` (files under `/proc` and `/sys`), `files`, `text` (lines), the
//! debug heap's reports and heap profiles.

/// The number at the start of a text, in decimal digits. `None`: there are no digits, or too many.
pub fn number(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let mut any = false;
    let number = digits.into_iter().try_fold(0usize, |number, &digit| {
        any = true;
        number.checked_mul(10)?.checked_add(usize::from(digit - b'0'))
    });
    number.filter(|_| any)
}

/// A number in digits.
pub struct Digits {
    /// The digits are at the end.
    bytes: [u8; 20],
    start: usize,
}

impl Digits {
    /// The number to base ten.
    pub fn decimal(number: u64) -> Self {
        Self::new::<10>(number)
    }

    /// The number to base sixteen, without a prefix.
    pub fn hexadecimal(number: u64) -> Self {
        Self::new::<16>(number)
    }

    /// The base is a constant, so that the compiler sees that each digit exists.
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
