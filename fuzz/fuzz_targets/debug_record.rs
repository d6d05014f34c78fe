//! Reads any bytes as a debug record, also as entries with the right checksum (`framed`). Reading
//! never panics and always ends. The entries are written again, and read back unchanged.
#![no_main]

mod framed;

use heapwright_record::debug::{Encoder, Entry, HEADER, HEADER_BYTES, Reader, Words};
use libfuzzer_sys::fuzz_target;

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
    // A piece of a file, whose checksum is computed in another way, reads the same.
    let mut piece = Reader::resume(&file[HEADER_BYTES..], HEADER_BYTES as u64);
    assert!(piece.by_ref().eq(read.iter().copied()));
    assert_eq!((piece.problem(), piece.position()), (reader.problem(), reader.position()));
    assert!(Reader::new(&again).unwrap().eq(read));
}

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    read(&framed::frames(&HEADER, 24, bytes));
});
