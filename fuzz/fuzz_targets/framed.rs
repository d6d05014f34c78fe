//! Makes files of frames from any bytes: random bytes hardly ever have the right checksum.

/// Returns the CRC-32C, bit by bit: not by the method under test.
fn checksum(bytes: &[u8]) -> u32 {
    let bit = |sum: u32, _| (sum >> 1) ^ (0x82f6_3b78 * (sum & 1));
    !bytes.iter().fold(!0, |sum, &byte| (0..8).fold(sum ^ u32::from(byte), bit))
}

/// Returns the header and the bytes, cut into frames. A frame has a byte of tag (modulo `tags`), a
/// byte of length, and the payload. Length 255 makes a *bomb*, whose payload is all bytes that are
/// left, 256 times over.
pub fn frames(header: &[u8], tags: u8, mut bytes: &[u8]) -> Vec<u8> {
    let mut file = header.to_vec();
    while let [tag, length, rest @ ..] = bytes {
        let is_bomb = *length == u8::MAX;
        let (payload, rest) = match is_bomb {
            true => (rest, &[][..]),
            false => rest.split_at(usize::from(*length).min(rest.len())),
        };
        let bomb = if is_bomb { payload.repeat(256) } else { Vec::new() };
        let payload = if is_bomb { &bomb[..] } else { payload };
        let begin = file.len();
        file.extend_from_slice(&u32::from(tag % tags).to_le_bytes());
        file.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        file.extend_from_slice(payload);
        let sum = checksum(&file[begin..]);
        file.extend_from_slice(&sum.to_le_bytes());
        bytes = rest;
    }
    file
}
