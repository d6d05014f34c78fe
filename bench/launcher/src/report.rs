//! One line of numbers, composed on the stack and written by one call.

use crate::system;

/// More than nine numbers of twenty digits, with blanks between them.
const LONGEST: usize = 256;

pub(crate) struct Report {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; LONGEST], length: 0 }
    }

    pub(crate) fn text(&mut self, word: &[u8]) {
        self.gap();
        for &byte in word {
            self.push(byte);
        }
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.gap();
        self.digits(number);
    }

    /// Adds the digits in order. There are at most twenty.
    fn digits(&mut self, number: u64) {
        if number >= 10 {
            self.digits(number / 10);
        }
        self.push(digit(number % 10));
    }

    pub(crate) fn send(mut self, descriptor: i32) {
        self.push(b'\n');
        system::write(descriptor, self.bytes.as_ptr(), self.length);
    }

    fn gap(&mut self) {
        if self.length > 0 {
            self.push(b' ');
        }
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }
}

fn digit(number: u64) -> u8 {
    b'0' + number as u8
}
