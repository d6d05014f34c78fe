//! Converts operations to bytes and back. [`Operation`] shows the bytes.
//!
//! Nothing here panics or indexes: the writer works inside a program's `malloc`, and the reader may
//! get any bytes.

use super::operation::Operation;
use crate::leb::{Out, byte, fold, number, unfold};

const MOST_LOG2: u64 = 63;

/// The state that both sides keep about earlier operations of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coder {
    block: u64,
}

impl Coder {
    /// The longest operation: a code, two numbers, a logarithm.
    pub const MOST: usize = 1 + 10 + 10 + 1;

    /// Returns the state at the start of a chunk.
    #[must_use]
    pub const fn new() -> Self {
        Self { block: 0 }
    }

    /// Writes an operation to the start of `place`. Returns the number of bytes written, or 0 if
    /// the operation does not fit. [`Coder::MOST`] bytes are always enough.
    #[inline]
    pub fn put(&mut self, operation: Operation, place: &mut [u8]) -> usize {
        let mut out = Out { place, at: 0 };
        let mut now = *self;
        match operation {
            Operation::Thread(name) => {
                out.byte(1);
                out.number(name);
            }
            Operation::Time(ms) => {
                out.byte(2);
                out.number(ms);
            }
            Operation::Malloc { block, size } => now.sized(3, block, size, &mut out),
            Operation::Calloc { block, size } => now.sized(4, block, size, &mut out),
            Operation::Aligned { block, size, log2, zero } => {
                now.sized(5 + u8::from(zero), block, size, &mut out);
                out.number(u64::from(log2));
            }
            Operation::Free { block } => now.named(7, block, &mut out),
            Operation::ReallocBegin { block } => now.named(8, block, &mut out),
            Operation::ReallocEnd { block, size } => now.sized(9, block, size, &mut out),
            Operation::ReallocFailed => out.byte(10),
            Operation::Resize { block, size } => now.sized(11, block, size, &mut out),
            Operation::ThreadEnd => out.byte(12),
            Operation::Fork => out.byte(13),
        }
        if out.at > out.place.len() {
            return 0;
        }
        *self = now;
        out.at
    }

    fn named(&mut self, code: u8, block: u64, out: &mut Out<'_>) {
        out.byte(code);
        let step = block.wrapping_sub(self.block).cast_signed();
        out.number(fold(step));
        self.block = block;
    }

    fn sized(&mut self, code: u8, block: u64, size: u64, out: &mut Out<'_>) {
        self.named(code, block, out);
        out.number(size);
    }

    /// Returns the operation at the start of `bytes`, if it is whole and known, and the rest.
    #[inline]
    pub fn take<'a>(&mut self, bytes: &'a [u8]) -> Option<(Operation, &'a [u8])> {
        let mut rest = bytes;
        let operation = match byte(&mut rest)? {
            1 => Operation::Thread(number(&mut rest)?),
            2 => Operation::Time(number(&mut rest)?),
            3 => Operation::Malloc { block: self.name(&mut rest)?, size: number(&mut rest)? },
            4 => Operation::Calloc { block: self.name(&mut rest)?, size: number(&mut rest)? },
            code @ (5 | 6) => {
                let (block, size) = (self.name(&mut rest)?, number(&mut rest)?);
                let log2 = number(&mut rest).filter(|&log2| log2 <= MOST_LOG2)? as u8;
                Operation::Aligned { block, size, log2, zero: code == 6 }
            }
            7 => Operation::Free { block: self.name(&mut rest)? },
            8 => Operation::ReallocBegin { block: self.name(&mut rest)? },
            9 => Operation::ReallocEnd { block: self.name(&mut rest)?, size: number(&mut rest)? },
            10 => Operation::ReallocFailed,
            11 => Operation::Resize { block: self.name(&mut rest)?, size: number(&mut rest)? },
            12 => Operation::ThreadEnd,
            13 => Operation::Fork,
            _ => return None,
        };
        Some((operation, rest))
    }

    fn name(&mut self, rest: &mut &[u8]) -> Option<u64> {
        self.block = self.block.wrapping_add(unfold(number(rest)?).cast_unsigned());
        Some(self.block)
    }
}
