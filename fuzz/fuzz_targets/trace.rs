//! Any bytes as a trace: reading never panics and always ends, and what is read is
//! written as what reads the same.
//!
//! Random bytes hardly ever have the right checksum, so the same bytes are also taken
//! as payloads of chunks whose checksum is put right.
#![no_main]

use heapwright_record::trace::{
    BEFORE, BEHIND, Chunk, Coder, HEADER, Reader, begin_operations, seal,
};
use libfuzzer_sys::fuzz_target;

/// CRC-32C, bit by bit: another way than the one under test.
fn checksum(bytes: &[u8]) -> u32 {
    let bit = |sum: u32, _| (sum >> 1) ^ (0x82f6_3b78 * (sum & 1));
    !bytes.iter().fold(!0, |sum, &byte| (0..8).fold(sum ^ u32::from(byte), bit))
}

/// The bytes, cut into chunks: a byte of tag, one of length, the payload.
fn chunks(mut bytes: &[u8]) -> Vec<u8> {
    let mut file = HEADER.to_vec();
    while let [tag, length, rest @ ..] = bytes {
        let (payload, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        let begin = file.len();
        file.extend_from_slice(&u32::from(tag % 5).to_le_bytes());
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
    let mut again = HEADER.to_vec();
    let mut read = Vec::new();
    for chunk in reader.by_ref() {
        // Room for numbers that were written longer than need be is not needed.
        let mut buffer = vec![0; file.len() + 64];
        match chunk {
            Chunk::Process(process) => again.extend_from_slice(process.encode(&mut buffer)),
            Chunk::End(end) => again.extend_from_slice(end.encode(&mut buffer)),
            Chunk::Operations(operations) => {
                let mut payload = begin_operations(&mut buffer, operations.before, operations.ms);
                let mut coder = Coder::new();
                for operation in operations {
                    let length = coder.put(operation, &mut buffer[BEFORE + payload..]);
                    assert!(length > 0);
                    payload += length;
                }
                assert!(payload <= file.len() - BEFORE - BEHIND);
                again.extend_from_slice(seal(&mut buffer, payload));
            }
            _ => unreachable!("no other"),
        }
        read.push(told(chunk));
    }
    assert!(reader.position() as usize <= file.len());
    assert!(reader.problem().is_some() || reader.position() as usize == file.len());
    assert!(Reader::new(&again).unwrap().map(told).eq(read));
}

/// A chunk without the bytes it is read from, which may be written in other ways.
fn told(chunk: Chunk<'_>) -> String {
    match chunk {
        Chunk::Operations(operations) => {
            let all: Vec<_> = operations.collect();
            format!("{} {} {all:?}", operations.before, operations.ms)
        }
        other => format!("{other:?}"),
    }
}

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    read(&chunks(bytes));
});
