//! Any bytes as a debug record: reading never panics and always ends, what is
//! read is written as what reads the same, and every finding has words.
//!
//! Random bytes hardly ever have the right checksum, so the same bytes are also
//! taken as payloads of entries whose checksum is put right.
#![no_main]

use heapwright_record::debug::{Encoder, Entry, HEADER, HEADER_BYTES, Reader, Words};
use libfuzzer_sys::fuzz_target;

/// Counts letters.
struct Counted(usize);

impl Words for Counted {
    fn text(&mut self, text: &str) {
        self.0 += text.len();
    }
    fn number(&mut self, _: u64) {
        self.0 += 1;
    }
    fn address(&mut self, _: u64) {
        self.0 += 1;
    }
}

/// CRC-32C, bit by bit: another way than the one under test.
fn checksum(bytes: &[u8]) -> u32 {
    let bit = |sum: u32, _| (sum >> 1) ^ (0x82f6_3b78 * (sum & 1));
    !bytes.iter().fold(!0, |sum, &byte| (0..8).fold(sum ^ u32::from(byte), bit))
}

/// The bytes, cut into entries: a byte of tag, one of length, the payload.
fn entries(mut bytes: &[u8]) -> Vec<u8> {
    let mut file = HEADER.to_vec();
    while let [tag, length, rest @ ..] = bytes {
        let (payload, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        let begin = file.len();
        file.extend_from_slice(&u32::from(tag % 20).to_le_bytes());
        file.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        file.extend_from_slice(payload);
        let sum = checksum(&file[begin..]);
        file.extend_from_slice(&sum.to_le_bytes());
        bytes = rest;
    }
    file
}

fn read(file: &[u8]) {
    let Ok(mut reader) = Reader::new(file) else { return };
    let mut buffer = vec![0; file.len() + Encoder::SMALLEST];
    let mut encoder = Encoder::new(&mut buffer);
    let mut again = HEADER.to_vec();
    let mut read = Vec::new();
    for entry in reader.by_ref() {
        if let Entry::Finding(finding) = entry {
            let mut words = Counted(0);
            finding.sentence(&mut words);
            finding.moments().for_each(|(role, _)| finding.title(role, "", &mut words));
            assert!(words.0 > 0);
        }
        again.extend_from_slice(encoder.entry(&entry));
        read.push(entry);
    }
    assert!(reader.position() as usize <= file.len());
    assert!(reader.problem().is_some() || reader.position() as usize == file.len());
    // Read as a piece of a file, with the other checksum: the same.
    let mut piece = Reader::resume(&file[HEADER_BYTES..], HEADER_BYTES as u64);
    assert!(piece.by_ref().eq(read.iter().copied()));
    assert_eq!((piece.problem(), piece.position()), (reader.problem(), reader.position()));
    assert!(Reader::new(&again).unwrap().eq(read));
}

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    read(&entries(bytes));
});
