//! The trace against random operations and bytes.

use heapwright_record::trace::{
    BEFORE, BEHIND, Chunk, Coder, HEADER, HEADER_BYTES, Operation, Process, Reader,
    begin_operations, seal,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..200_u64, any::<u64>(), (0..64_u32).prop_map(|bit| 1 << bit)]
}

fn operation() -> impl Strategy<Value = Operation> {
    let pair = || (number(), number());
    prop_oneof![
        number().prop_map(Operation::Thread),
        number().prop_map(Operation::Time),
        pair().prop_map(|(block, size)| Operation::Malloc { block, size }),
        pair().prop_map(|(block, size)| Operation::Calloc { block, size }),
        (pair(), 0..64_u8, any::<bool>()).prop_map(|((block, size), log2, zero)| {
            Operation::Aligned { block, size, log2, zero }
        }),
        number().prop_map(|block| Operation::Free { block }),
        number().prop_map(|block| Operation::ReallocBegin { block }),
        pair().prop_map(|(block, size)| Operation::ReallocEnd { block, size }),
        Just(Operation::ReallocFailed),
        pair().prop_map(|(block, size)| Operation::Resize { block, size }),
        Just(Operation::ThreadEnd),
        Just(Operation::Fork),
    ]
}

/// Returns a file of these operations, with `each` operations in a chunk.
fn written(operations: &[Operation], each: usize) -> Vec<u8> {
    let mut file = HEADER.to_vec();
    let mut before = 0;
    for some in operations.chunks(each) {
        let mut buffer = vec![0; BEFORE + 20 + some.len() * Coder::MOST + BEHIND];
        let mut payload = begin_operations(&mut buffer, before, before);
        let mut coder = Coder::new();
        for operation in some {
            payload += coder.put(*operation, &mut buffer[BEFORE + payload..]);
        }
        file.extend_from_slice(seal(&mut buffer, payload));
        before += some.len() as u64;
    }
    file
}

fn read(file: &[u8]) -> Vec<Operation> {
    let mut reader = Reader::new(file).expect("is one");
    let mut all = Vec::new();
    for chunk in reader.by_ref() {
        if let Chunk::Operations(operations) = chunk {
            all.extend(operations);
        }
    }
    assert_eq!(reader.problem(), None);
    all
}

proptest! {
    #[test]
    fn operations_come_back(operations in vec(operation(), 0..200), each in 1..100_usize) {
        prop_assert_eq!(read(&written(&operations, each)), operations);
    }

    #[test]
    fn processes_come_back(
        pid: u32, parent: u32, time: u64, forked: bool,
        exe in vec(any::<u8>(), 0..50), command in vec(any::<u8>(), 0..50),
    ) {
        let process = Process { pid, parent, time, forked, exe: &exe, command: &command };
        let file = [&HEADER[..], process.encode(&mut [0; 200])].concat();
        prop_assert!(Reader::new(&file).expect("is one").eq([Chunk::Process(process)]));
    }

    #[test]
    fn a_cut_loses_whole_chunks_from_the_end(
        operations in vec(operation(), 1..60), each in 1..10_usize, share in 0.0..1.0_f64,
    ) {
        let file = written(&operations, each);
        let cut = HEADER_BYTES + ((file.len() - HEADER_BYTES) as f64 * share) as usize;
        let mut reader = Reader::new(&file[..cut]).expect("is one");
        let mut all = Vec::new();
        for chunk in reader.by_ref() {
            let Chunk::Operations(some) = chunk else { panic!("another") };
            all.extend(some);
        }
        prop_assert!(operations.starts_with(&all));
        prop_assert_eq!(reader.problem().is_some(), reader.position() < cut as u64);
    }

    #[test]
    fn any_bytes_are_read_to_an_end(bytes in vec(any::<u8>(), 0..300)) {
        let file = [&HEADER[..], &bytes].concat();
        let mut reader = Reader::new(&file).expect("has a header");
        reader.by_ref().for_each(drop);
        prop_assert!(reader.position() as usize <= file.len());
        prop_assert_eq!(reader.problem().is_none(), reader.position() as usize == file.len());
        let (mut coder, mut rest) = (Coder::new(), &bytes[..]);
        while let Some((operation, behind)) = coder.take(rest) {
            prop_assert!(behind.len() < rest.len());
            let mut place = [0; Coder::MOST];
            prop_assert!(Coder::new().put(operation, &mut place) > 0);
            rest = behind;
        }
    }
}
