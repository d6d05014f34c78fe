//! CRC-32C (Castagnoli), four bits at a time.
//!
//! It finds every change of up to 32 neighbouring bits. (A changed length moves the checksum
//! itself; one such change in four billion is missed.) A table of 16 words is small enough for a
//! library in every program.
//!
//! A reader of a gigabyte takes eight bytes at a time ([`of_much`]), with tables of 8 KiB that are
//! not in the library.

const POLYNOMIAL: u32 = 0x82f6_3b78;

const TABLE: [u32; 16] = {
    let mut table = [0; 16];
    let mut index = 0;
    while index < 16 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 4 {
            value = (value >> 1) ^ (POLYNOMIAL * (value & 1));
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
};

pub(super) fn checksum(bytes: &[u8]) -> u32 {
    let step = |sum: u32| (sum >> 4) ^ TABLE[(sum & 15) as usize];
    !bytes.iter().fold(!0, |sum, &byte| step(step(sum ^ u32::from(byte))))
}

/// `TABLES[n][byte]`: the effect of a byte on the checksum `n` bytes later.
static TABLES: [[u32; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let first = (byte as u32 >> 4) ^ TABLE[byte & 15];
        let mut value = (first >> 4) ^ TABLE[(first & 15) as usize];
        let mut table = 0;
        while table < 8 {
            tables[table][byte] = value;
            let once = (value >> 4) ^ TABLE[(value & 15) as usize];
            value = (once >> 4) ^ TABLE[(once & 15) as usize];
            table += 1;
        }
        byte += 1;
    }
    tables
};

/// Returns the checksum. This function is for callers with many bytes and room for tables.
pub(super) fn of_much(bytes: &[u8]) -> u32 {
    let [zero, one, two, three, four, five, six, seven] = &TABLES;
    let at = |table: &[u32; 256], word: u32, byte: u32| table[(word >> (8 * byte) & 0xff) as usize];
    let mut sum = !0_u32;
    let mut pieces = bytes.chunks_exact(8);
    for piece in pieces.by_ref() {
        let Some((low, high)) = piece.split_first_chunk::<4>() else { break };
        let low = u32::from_le_bytes(*low) ^ sum;
        let high = high.first_chunk::<4>().map_or(0, |high| u32::from_le_bytes(*high));
        sum = at(seven, low, 0)
            ^ at(six, low, 1)
            ^ at(five, low, 2)
            ^ at(four, low, 3)
            ^ at(three, high, 0)
            ^ at(two, high, 1)
            ^ at(one, high, 2)
            ^ at(zero, high, 3);
    }
    let step = |sum: u32, byte: &u8| (sum >> 8) ^ at(zero, sum ^ u32::from(*byte), 0);
    !pieces.remainder().iter().fold(sum, step)
}

#[cfg(test)]
mod tests {
    use super::{checksum, of_much};

    #[test]
    fn eight_at_a_time_is_the_same_sum() {
        let mut bytes = [0_u8; 300];
        let mut state = 1_u32;
        for byte in &mut bytes {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (state >> 24) as u8;
        }
        for end in 0..bytes.len() {
            for start in 0..end.min(9) {
                assert_eq!(of_much(&bytes[start..end]), checksum(&bytes[start..end]));
            }
        }
    }

    #[test]
    fn the_published_values_come_out() {
        // RFC 3720, B.4, and the usual check value.
        assert_eq!(checksum(b""), 0);
        assert_eq!(checksum(b"123456789"), 0xe306_9283);
        assert_eq!(checksum(&[0; 32]), 0x8a91_36aa);
        assert_eq!(checksum(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn zeros_are_no_entry() {
        assert_ne!(checksum(&[0; 8]), 0);
    }
}
