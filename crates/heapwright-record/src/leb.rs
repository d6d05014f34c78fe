//! Numbers of variable length: LEB128, and zigzag for numbers with a sign.
//!
//! A byte has seven bits of the number, the lowest first. Nothing here panics or indexes.

const BITS: u32 = 7;

/// Folds a signed number into an unsigned one; numbers near zero stay small.
pub(crate) const fn fold(step: i64) -> u64 {
    ((step << 1) ^ (step >> 63)).cast_unsigned()
}

pub(crate) const fn unfold(folded: u64) -> i64 {
    (folded >> 1).cast_signed() ^ -((folded & 1).cast_signed())
}

/// The target of bytes. It also counts bytes that do not fit.
pub(crate) struct Out<'b> {
    pub(crate) place: &'b mut [u8],
    pub(crate) at: usize,
}

impl Out<'_> {
    pub(crate) fn byte(&mut self, byte: u8) {
        if let Some(place) = self.place.get_mut(self.at) {
            *place = byte;
        }
        self.at += 1;
    }

    pub(crate) fn number(&mut self, mut number: u64) {
        while number >> BITS != 0 {
            self.byte(number as u8 | 0x80);
            number >>= BITS;
        }
        self.byte(number as u8);
    }

    /// Puts bytes with their length before them.
    pub(crate) fn text(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        bytes.iter().for_each(|&byte| self.byte(byte));
    }
}

pub(crate) fn byte(rest: &mut &[u8]) -> Option<u8> {
    let (first, behind) = rest.split_first()?;
    *rest = behind;
    Some(*first)
}

/// Returns a number, if it is whole and has 64 bits at most.
pub(crate) fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..u64::BITS).step_by(BITS as usize) {
        let byte = byte(rest)?;
        let bits = u64::from(byte & 0x7f);
        let shifted = bits << shift;
        if shifted >> shift != bits {
            return None;
        }
        number |= shifted;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
