//! The format as a whole: version 1's bytes, and cut, changed, older or newer files.

extern crate std;

use super::*;
use crate::damage::{self, Seen, frame_of};
use crate::problem::{Fault, Problem};
use std::vec;
use std::vec::Vec;

/// Returns an operation of each kind, in both directions of names.
fn operations() -> Vec<Operation> {
    vec![
        Operation::Thread(1),
        Operation::Malloc { block: 0x7f12_3456_789a, size: 24 },
        Operation::Calloc { block: 0x7f12_3456_7890, size: 4096 },
        Operation::Time(300),
        Operation::Aligned { block: 5, size: 0, log2: 12, zero: false },
        Operation::Aligned { block: 6, size: 1 << 40, log2: 63, zero: true },
        Operation::Thread(u64::MAX),
        Operation::Free { block: 5 },
        Operation::ReallocBegin { block: 6 },
        Operation::Malloc { block: 6, size: 1 },
        Operation::ReallocEnd { block: 7, size: 100 },
        Operation::ReallocBegin { block: 7 },
        Operation::ReallocFailed,
        Operation::Resize { block: u64::MAX, size: u64::MAX },
        Operation::Fork,
        Operation::ThreadEnd,
    ]
}

fn process() -> Process<'static> {
    Process {
        pid: 4242,
        parent: 4241,
        time: 1_700_000_000_123_456_789,
        forked: true,
        exe: b"/usr/bin/prog",
        command: b"prog\0-x\0",
    }
}

fn chunk_of(before: u64, ms: u64, operations: &[Operation]) -> Vec<u8> {
    let mut buffer = vec![0xa5; 64 + operations.len() * Coder::MOST];
    let mut payload = begin_operations(&mut buffer, before, ms);
    let mut coder = Coder::new();
    for operation in operations {
        payload += coder.put(*operation, &mut buffer[BEFORE + payload..]);
    }
    seal(&mut buffer, payload).to_vec()
}

fn chunks() -> Vec<Vec<u8>> {
    let all = operations();
    vec![
        process().encode(&mut [0; 100]).to_vec(),
        chunk_of(0, 3, &all[..4]),
        chunk_of(4, 700, &all[4..]),
        End { operations: all.len() as u64 }.encode(&mut [0; 20]).to_vec(),
        // Another program in the same process.
        process().encode(&mut [0; 100]).to_vec(),
        chunk_of(0, 0, &all[..1]),
    ]
}

fn file(chunks: &[Vec<u8>]) -> Vec<u8> {
    [&HEADER[..], &chunks.concat()].concat()
}

#[test]
fn version_1_is_these_bytes() {
    let chunks = chunks();
    let hex = damage::hex([&HEADER[..]].into_iter().chain(chunks.iter().map(Vec::as_slice)));
    assert_eq!(hex, include_str!("version_1.hex"), "the format of version 1 must not change");
}

#[test]
fn everything_comes_back() {
    let bytes = file(&chunks());
    let mut reader = Reader::new(&bytes).unwrap();
    let read: Vec<_> = reader.by_ref().collect();
    assert_eq!((reader.problem(), reader.skipped()), (None, 0));
    assert_eq!(reader.position(), bytes.len() as u64);
    let [
        Chunk::Process(first),
        Chunk::Operations(one),
        Chunk::Operations(two),
        Chunk::End(end),
        Chunk::Process(_),
        Chunk::Operations(_),
    ] = read[..]
    else {
        panic!("{read:?}")
    };
    assert_eq!((first, end.operations), (process(), 16));
    assert_eq!((one.before, one.ms, two.before, two.ms), (0, 3, 4, 700));
    assert!(one.chain(two).eq(operations()));
    assert_eq!(operations().iter().filter(|one| one.is_call()).count(), 9);
}

fn problem(fault: Fault) -> Problem {
    FORMAT.problem(fault)
}

/// Reads a file of some of the [`chunks`], from the first on.
fn seen(bytes: &[u8]) -> Result<Seen<Problem>, Problem> {
    let mut reader = Reader::new(bytes)?;
    let read: Vec<_> = reader.by_ref().collect();
    let all = file(&chunks());
    assert!(Reader::new(&all).unwrap().take(read.len()).eq(read.iter().copied()));
    Ok(Seen { frames: read.len(), problem: reader.problem(), position: reader.position() })
}

#[test]
fn a_file_cut_anywhere_is_read_as_far_as_it_goes() {
    damage::cut(&HEADER, &chunks(), seen, &problem(Fault::Short), |at| {
        problem(Fault::EndsWithin(at))
    });
}

#[test]
fn a_changed_byte_is_found_or_harmless() {
    damage::change(&HEADER, &chunks(), seen);
}

#[test]
fn a_chunk_that_is_missing_or_double_is_noticed() {
    let chunks = chunks();
    let second = (HEADER_BYTES + chunks[0].len()) as u64;
    let third = second + chunks[1].len() as u64;
    for (order, problem, read) in [
        (&[0, 2][..], problem(Fault::Gap(second)), 1),
        (&[0, 1, 1], problem(Fault::Gap(third)), 2),
        (&[0, 1, 3], problem(Fault::Gap(third)), 2),
    ] {
        let some: Vec<_> = order.iter().map(|&at: &usize| chunks[at].clone()).collect();
        let bytes = file(&some);
        let mut reader = Reader::new(&bytes).unwrap();
        assert_eq!((reader.by_ref().count(), reader.problem()), (read, Some(problem)));
    }
}

#[test]
fn what_is_no_trace_is_refused() {
    assert_eq!(Reader::new(b"").err(), Some(problem(Fault::Short)));
    assert_eq!(Reader::new(b"HWTR").err(), Some(problem(Fault::Short)));
    assert_eq!(Reader::new(b"1: malloc 0x10 3\n").err(), Some(problem(Fault::Other)));
    damage::newer(
        HEADER,
        |header| Reader::new(header).err(),
        |flags| problem(Fault::Flags(flags)),
        |version| problem(Fault::Version(version)),
    );
}

#[test]
fn newer_chunks_are_skipped_and_newer_fields_ignored() {
    let end = [&0_u64.to_le_bytes()[..], b"more"].concat();
    let bytes = file(&[frame_of(1000, b"news"), frame_of(3, &end), frame_of(u32::MAX, b"")]);
    let mut reader = Reader::new(&bytes).unwrap();
    assert_eq!(reader.by_ref().collect::<Vec<_>>(), [Chunk::End(End { operations: 0 })]);
    assert_eq!((reader.skipped(), reader.problem()), (2, None));
}

#[test]
fn chunks_that_contradict_themselves_are_damage() {
    for (tag, payload) in [
        (1, &[0; 19][..]),
        // A text that is longer than the chunk.
        (1, &[[0; 20].as_slice(), &[9, 0, 0, 0, b'x']].concat()),
        (2, &[]),
        // No such operation; a cut operation; a number and an alignment of more than 64 bits.
        (2, &[0, 0, 0]),
        (2, &[0, 0, 14]),
        (2, &[0, 0, 3, 2]),
        (2, &[0, 0, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2]),
        (2, &[0, 0, 1, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0]),
        (2, &[0, 0, 5, 2, 2, 64]),
        (3, &[0; 7]),
    ] {
        let bytes = file(&[frame_of(tag, payload), frame_of(3, &[0; 8])]);
        let mut reader = Reader::new(&bytes).unwrap();
        assert_eq!(reader.next(), None, "{tag} {payload:?}");
        assert_eq!(reader.problem(), Some(problem(Fault::Malformed(16))), "{tag} {payload:?}");
        assert_eq!(reader.next(), None);
    }
}

#[test]
fn a_tail_of_zeros_is_damage() {
    let bytes = [file(&chunks()[..2]), vec![0; 64]].concat();
    let mut reader = Reader::new(&bytes).unwrap();
    assert_eq!(reader.by_ref().count(), 2);
    assert!(matches!(reader.problem().map(|problem| problem.fault()), Some(Fault::Checksum(_))));
}

#[test]
fn what_does_not_fit_is_not_written() {
    for operation in operations() {
        let mut coder = Coder::new();
        let length = coder.put(operation, &mut [0; Coder::MOST]);
        assert!((1..=Coder::MOST).contains(&length));
        let mut small = vec![0; length - 1];
        let mut fresh = Coder::new();
        assert_eq!((fresh.put(operation, &mut small), fresh), (0, Coder::new()), "{operation:?}");
    }
    assert_eq!(begin_operations(&mut [0; BEFORE + 1], 0, 0), 0);
    assert!(seal(&mut [0; 11], 0).is_empty());
    assert_eq!(seal(&mut [0; 12], 0).len(), 12);
    assert!(process().encode(&mut [0; 40]).is_empty());
    assert!(End::default().encode(&mut [0; 19]).is_empty());
}
