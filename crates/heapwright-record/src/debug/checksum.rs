//! CRC-32C (Castagnoli), four bits at a time.
//!
//! It finds every change of up to 32 neighbouring bits, so every byte that was
//! changed. (But for the length's: that moves the checksum itself, and is found
//! all but one time in four billion.) A table of 16 words is small enough for a library that is loaded
//! into everything, and fast enough for entries of a few hundred bytes.

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

/// The checksum of some bytes.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    let step = |sum: u32| (sum >> 4) ^ TABLE[(sum & 15) as usize];
    !bytes.iter().fold(!0, |sum, &byte| step(step(sum ^ u32::from(byte))))
}

#[cfg(test)]
mod tests {
    use super::checksum;

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
