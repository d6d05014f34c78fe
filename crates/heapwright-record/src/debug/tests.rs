//! The format as a whole: version 2's bytes, and cut, changed, older or newer files.

extern crate std;

use super::*;
use crate::damage::{self, Seen, frame_of};
use crate::problem::{Fault, Problem};
use std::vec;
use std::vec::Vec;

pub(super) fn samples() -> Vec<Entry<'static>> {
    let moment = |stack: u32| Moment {
        stack,
        thread: stack + 1,
        sequence: 0x0102_0304_0506_0700 + u64::from(stack),
        ns: 1_000_000_000 * u64::from(stack),
    };
    let process = Process {
        pid: 4242,
        parent: 4241,
        time: 1_700_000_000_123_456_789,
        page_size: 4096,
        version: "0.1.0".into(),
        exe: "/usr/bin/prog".into(),
        options: "mode=debug".into(),
        command: "prog\0-x\0".into(),
    };
    let module = Module {
        id: 1,
        start: 0x5500_0000_0000,
        end: 0x5500_0000_2000,
        bias: 0x5500_0000_0000,
        build_id: Text::from(&[0xab, 0xcd, 0xef, 0x00][..]),
        path: "/usr/bin/prog".into(),
    };
    let finding = Finding {
        kind: FindingKind::Overflow,
        call: Call::DeleteArray,
        origin: Origin::NewArray,
        region: Region::Block,
        access: Access::Write,
        value: 0x41,
        function: Function::Unknown,
        pointer: 0x7f00_0000_1000,
        block: 0x7f00_0000_1000,
        size: 40,
        align: 16,
        offset: -4,
        length: 3,
        given_size: 24,
        given_align: 64,
        here: moment(3),
        freed: moment(2),
        allocated: moment(1),
    };
    vec![
        process.into(),
        module.into(),
        Map { bytes: "00400000-00401000 r-xp\n".into() }.into(),
        Thread { number: 2, tid: 4243, name: "worker".into() }.into(),
        Stack { id: 1, frames: Frames::new(&[0x5500_0000_10de, 0x5500_0000_1100]).and_more() }
            .into(),
        finding.into(),
        Site { key: 0x1122_3344_5566_7788, odds: 100, last: FindingKind::WriteAfterFree, hits: 5 }
            .into(),
        Note { bytes: Text { bytes: b"a lin", cut: true } }.into(),
        End {
            findings: 1,
            allocations: 17,
            frees: 3,
            peak_live_bytes: 1536,
            ending: Ending::Abort,
            signal: 15,
        }
        .into(),
        Times { finding: 2, times: 1 << 40 }.into(),
        Check {
            number: 3,
            occasion: Occasion::Signal,
            ns: 5_000_000_000,
            sequence: 1 << 33,
            stopped_ns: 1_234_567,
            threads: 9,
            silent: 1,
            thread: 2,
        }
        .into(),
        Leak {
            check: 3,
            reach: Reach::Possible,
            origin: Origin::New,
            stack: 1,
            thread: 2,
            blocks: 10,
            bytes: 1000,
            indirect_blocks: 20,
            indirect_bytes: 4000,
            block: 0x7f00_0000_1000,
            size: 100,
            oldest_ns: 1_000_000_000,
            youngest_ns: 4_000_000_000,
            root: Root::ThreadLocal,
            root_address: 0x7f00_1234_5678,
            root_thread: 2,
        }
        .into(),
        Step { block: 0x7f00_0000_2000, size: 64, offset: 16, stack: 1 }.into(),
        Usage { check: 3, stack: 1, blocks: 30, bytes: 5000 }.into(),
        Class {
            check: 3,
            slot: 112,
            buckets: 4,
            memory: 16384,
            live: 30,
            bytes: 3000,
            freed: 70,
            unused: 12,
        }
        .into(),
        Checked {
            check: 3,
            took_ns: 7_000_000,
            blocks: 31,
            bytes: 5100,
            omitted_groups: 2,
            omitted_blocks: 5,
            omitted_bytes: 80,
            read_bytes: 1 << 30,
        }
        .into(),
        Sample { ns: 6_000_000_000, sequence: 1 << 34, blocks: 30, bytes: 5000 }.into(),
        Profile {
            check: 4,
            period: 512 << 10,
            since_ns: 1,
            peak_bytes: 1 << 33,
            peak_ns: 5_000_000_000,
            lost: 0,
        }
        .into(),
        Sampled {
            check: 4,
            stack: 7,
            live_samples: 3,
            live_blocks: 3000,
            live_bytes: 1 << 20,
            live_error: 1 << 19,
            allocated_samples: 9,
            allocated_blocks: 9000,
            allocated_bytes: 3 << 20,
            allocated_error: 1 << 20,
            temporary_blocks: 10,
            temporary_bytes: 4000,
            peak_blocks: 3500,
            peak_bytes: 2 << 20,
            oldest_ns: 17,
            youngest_ns: 4_000_000_000,
            memory: Memory::Arena,
        }
        .into(),
        SampledThread {
            check: 4,
            thread: 4243,
            live_blocks: 30,
            live_bytes: 5000,
            allocated_blocks: 60,
            allocated_bytes: 10_000,
        }
        .into(),
        SampledPoint { check: 4, ns: 2_000_000_000, live_bytes: 1 << 20, resident_bytes: 9 << 20 }
            .into(),
        SampledMore {
            check: 4,
            stack: 7,
            temporary_error: 1000,
            peak_error: 1 << 18,
            earlier_ns: 1_000_000_000,
            earlier_blocks: 2000,
            earlier_bytes: 700_000,
            growth_error: 1 << 17,
        }
        .into(),
    ]
}

fn encode(entry: &Entry<'_>) -> Vec<u8> {
    let mut buffer = [0xa5; Encoder::SMALLEST];
    Encoder::new(&mut buffer).entry(entry).to_vec()
}

fn file(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut file = HEADER.to_vec();
    entries.iter().for_each(|entry| file.extend(encode(entry)));
    file
}

fn encoded() -> Vec<Vec<u8>> {
    samples().iter().map(encode).collect()
}

fn after_header(entries: &[&[u8]]) -> Vec<u8> {
    [&HEADER[..], &entries.concat()].concat()
}

#[test]
fn version_2_is_these_bytes() {
    let entries = encoded();
    let hex = damage::hex([&HEADER[..]].into_iter().chain(entries.iter().map(Vec::as_slice)));
    assert_eq!(hex, include_str!("version_2.hex"), "the format of version 2 must not change");
}

#[test]
fn every_entry_comes_back() {
    let samples = samples();
    let bytes = file(&samples);
    let mut reader = Reader::new(&bytes).unwrap();
    assert_eq!(reader.by_ref().collect::<Vec<_>>(), samples);
    assert_eq!((reader.problem(), reader.skipped()), (None, 0));
    assert_eq!(reader.position(), bytes.len() as u64);
    let tags: Vec<u32> = samples.iter().map(Entry::tag).collect();
    assert!(tags.into_iter().eq(1..=22));
}

fn problem(fault: Fault) -> Problem {
    FORMAT.problem(fault)
}

/// Reads a file of some of the [`samples`], from the first on.
fn seen(bytes: &[u8]) -> Result<Seen<Problem>, Problem> {
    let mut reader = Reader::new(bytes)?;
    let read: Vec<_> = reader.by_ref().collect();
    assert!(samples().starts_with(&read));
    Ok(Seen { frames: read.len(), problem: reader.problem(), position: reader.position() })
}

#[test]
fn a_file_cut_anywhere_is_read_as_far_as_it_goes() {
    damage::cut(&HEADER, &encoded(), seen, &problem(Fault::Short), |at| {
        problem(Fault::EndsWithin(at))
    });
}

#[test]
fn a_changed_byte_is_found_or_harmless() {
    damage::change(&HEADER, &encoded(), seen);
}

#[test]
fn what_is_no_record_is_refused() {
    assert_eq!(Reader::new(b"").err(), Some(problem(Fault::Short)));
    assert_eq!(Reader::new(b"HWST").err(), Some(problem(Fault::Other)));
    assert_eq!(Reader::new(b"HWSTATS\0\x02\0\0\0\0\0\0\0").err(), Some(problem(Fault::Other)));
    damage::newer(
        HEADER,
        |header| Reader::new(header).err(),
        |flags| problem(Fault::Flags(flags)),
        |version| problem(Fault::Version(version)),
    );
}

#[test]
fn newer_entries_are_skipped_and_newer_fields_ignored() {
    let thread = Thread { number: 7, tid: 8, name: "x".into() };
    let mut longer = encode(&thread.into());
    longer.truncate(longer.len() - 4);
    let longer = frame_of(4, &[&longer[8..], &[9; 11]].concat());
    let bytes = after_header(&[&frame_of(1000, b"news"), &longer, &frame_of(u32::MAX, b"")]);
    let mut reader = Reader::new(&bytes).unwrap();
    assert_eq!(reader.by_ref().collect::<Vec<_>>(), [Entry::Thread(thread)]);
    assert_eq!((reader.skipped(), reader.problem()), (2, None));
}

#[test]
fn older_entries_are_filled_with_zeros() {
    let bytes = after_header(&[&frame_of(4, &7u32.to_le_bytes()), &frame_of(9, b"")]);
    let read: Vec<_> = Reader::new(&bytes).unwrap().collect();
    let thread = Thread { number: 7, ..Thread::default() };
    assert_eq!(read, [Entry::Thread(thread), Entry::End(End::default())]);
}

#[test]
fn entries_that_contradict_themselves_are_damage() {
    for payload in [&b"\x07\0"[..], b"\x07\0\0\0\x08\0\0\0\x05\0\0\0word"] {
        let bytes = after_header(&[&frame_of(4, payload), &frame_of(9, b"")]);
        let mut reader = Reader::new(&bytes).unwrap();
        assert_eq!(reader.next(), None);
        assert_eq!(reader.problem(), Some(problem(Fault::Malformed(16))));
        assert_eq!(reader.next(), None);
    }
    // A count of frames that is larger than any memory.
    let frames = [&1u32.to_le_bytes()[..], &0x7fff_ffffu32.to_le_bytes()].concat();
    let bytes = after_header(&[&frame_of(5, &frames)]);
    let mut reader = Reader::new(&bytes).unwrap();
    assert_eq!((reader.next(), reader.problem()), (None, Some(problem(Fault::Malformed(16)))));
}

#[test]
fn a_tail_of_zeros_is_damage() {
    let bytes = after_header(&[&encode(&samples()[3]), &[0; 64]]);
    let mut reader = Reader::new(&bytes).unwrap();
    assert_eq!(reader.by_ref().count(), 1);
    assert!(matches!(reader.problem().map(|problem| problem.fault()), Some(Fault::Checksum(_))));
}

#[test]
fn unknown_numbers_are_unknown() {
    let mut payload = encode(&Finding::default().into());
    payload.truncate(payload.len() - 4);
    payload[8..14].copy_from_slice(&[0xff; 6]);
    payload[15..17].fill(0xff);
    payload[17..25].fill(1);
    let bytes = after_header(&[&frame_of(6, &payload[8..])]);
    let expected = Finding { pointer: 0x0101_0101_0101_0101, ..Finding::default() };
    assert!(Reader::new(&bytes).unwrap().eq([Entry::Finding(expected)]));
    assert_eq!(expected.kind.heading(), "unknown");
    for (index, &kind) in FindingKind::ALL.iter().enumerate() {
        assert_eq!((kind as usize, FindingKind::from_u16(index as u16)), (index, kind));
    }
}

#[test]
fn what_does_not_fit_is_cut_and_marked() {
    let long = [b'x'; 2000];
    let process = Process {
        version: "0.1.0".into(),
        exe: (&long[..]).into(),
        command: "prog".into(),
        ..Process::default()
    };
    let mut buffer = [0; 256];
    let bytes = after_header(&[Encoder::new(&mut buffer).entry(&process.into())]);
    assert_eq!(bytes.len(), HEADER_BYTES + 256);
    let Some(Entry::Process(read)) = Reader::new(&bytes).unwrap().next() else { panic!() };
    assert_eq!(read.version, "0.1.0".into());
    assert!(read.exe.cut && !read.exe.bytes.is_empty() && long.starts_with(read.exe.bytes));
    // The first text takes all bytes; an empty one was not cut.
    assert_eq!(read.command, Text { bytes: b"", cut: true });
    assert_eq!(read.options, Text::default());

    let frames: Vec<u64> = (1..=100).collect();
    let stack = Stack { id: 1, frames: Frames::new(&frames) };
    assert_eq!((stack.frames.len(), stack.frames.cut()), (MOST_FRAMES, true));
    assert_eq!(encode(&stack.into()).len(), 8 + 4 + 4 + 8 * MOST_FRAMES + 4);
    let bytes = after_header(&[Encoder::new(&mut [0; 41]).entry(&stack.into())]);
    let Some(Entry::Stack(read)) = Reader::new(&bytes).unwrap().next() else { panic!() };
    assert!(read.frames.cut() && read.frames.iter().eq([1, 2]), "{:?}", read.frames);
}

#[test]
fn the_smallest_buffer_holds_every_kind_of_entry() {
    for entry in samples() {
        let mut smaller = 0;
        while Encoder::new(&mut vec![0; smaller]).entry(&entry).is_empty() {
            smaller += 1;
        }
        assert!(smaller <= Encoder::SMALLEST / 4, "{entry:?}");
        for size in [smaller, smaller + 1, smaller + 7] {
            let mut buffer = vec![0; size];
            let bytes = after_header(&[Encoder::new(&mut buffer).entry(&entry)]);
            let mut reader = Reader::new(&bytes).unwrap();
            assert_eq!(reader.by_ref().count(), 1);
            assert_eq!(reader.problem(), None);
        }
    }
    let finding = encode(&Finding::default().into());
    assert_eq!(finding.len(), 8 + 145 + 4);
}
