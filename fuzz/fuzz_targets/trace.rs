//! Reads any bytes as a trace, also as chunks with the right checksum (`framed`). Reading never
//! panics and always ends. The chunks are written again, and read back unchanged.
#![no_main]

mod framed;

use heapwright_record::trace::{
    BEFORE, BEHIND, Chunk, Coder, HEADER, Reader, begin_operations, seal,
};
use libfuzzer_sys::fuzz_target;

fn read(file: &[u8]) {
    let Ok(mut reader) = Reader::new(file) else { return };
    let mut again = HEADER.to_vec();
    let mut read = Vec::new();
    for chunk in reader.by_ref() {
        // In the file, numbers may take more bytes than needed.
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
        read.push(described(chunk));
    }
    assert!(reader.position() as usize <= file.len());
    assert!(reader.problem().is_some() || reader.position() as usize == file.len());
    assert!(Reader::new(&again).unwrap().map(described).eq(read));
}

/// Returns a chunk's text without the bytes that the chunk is read from, because these may differ.
fn described(chunk: Chunk<'_>) -> String {
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
    read(&framed::frames(&HEADER, 5, bytes));
});
