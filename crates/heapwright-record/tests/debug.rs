//! The debug record against random entries and bytes.

use heapwright_record::debug::{
    Access, Call, Check, Checked, Class, Encoder, End, Ending, Entry, Finding, FindingKind,
    Formatted, Frames, Function, HEADER, Leak, Map, Module, Moment, Note, Occasion, Origin,
    Process, Reach, Reader, Region, Root, Sample, SampledMore, SampledPoint, Site, Stack, Step,
    Text, Thread, Times, Usage,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

#[derive(Clone, Debug)]
struct Matter {
    kind: u8,
    numbers: [u64; 16],
    bytes: [Vec<u8>; 4],
    cut: bool,
    frames: Vec<u64>,
    enums: (FindingKind, Call, Origin, Region, Access, Ending),
    leaks: (Occasion, Reach, Root),
}

fn matter() -> impl Strategy<Value = Matter> {
    let text = || vec(any::<u8>(), 0..100);
    (
        0u8..19,
        any::<[u64; 16]>(),
        [text(), text(), text(), text()],
        any::<bool>(),
        vec(any::<u64>(), 0..70),
        (
            select(FindingKind::ALL),
            select(Call::ALL),
            select(Origin::ALL),
            select(Region::ALL),
            select(Access::ALL),
            select(Ending::ALL),
        ),
        (select(Occasion::ALL), select(Reach::ALL), select(Root::ALL)),
    )
        .prop_map(|(kind, numbers, bytes, cut, frames, enums, leaks)| Matter {
            kind,
            numbers,
            bytes,
            cut,
            frames,
            enums,
            leaks,
        })
}

impl Matter {
    fn entry(&self) -> Entry<'_> {
        let n = self.numbers;
        let half = |index: usize| n[index] as u32;
        let text = |index: usize| Text { bytes: &self.bytes[index], cut: self.cut };
        match self.kind {
            0 => Entry::Process(Process {
                pid: half(0),
                parent: half(1),
                time: n[2],
                page_size: half(3),
                version: text(0),
                exe: text(1),
                options: text(2),
                command: text(3),
            }),
            1 => Entry::Module(Module {
                id: half(0),
                start: n[1],
                end: n[2],
                bias: n[3],
                build_id: text(0),
                path: text(1),
            }),
            2 => Entry::Map(Map { bytes: text(0) }),
            3 => Entry::Thread(Thread { number: half(0), tid: half(1), name: text(0) }),
            4 => {
                let frames = Frames::new(&self.frames);
                let frames = if self.cut { frames.and_more() } else { frames };
                Entry::Stack(Stack { id: half(0), frames })
            }
            5 => Entry::Finding(self.finding()),
            6 => Entry::Site(Site { key: n[0], odds: half(1), last: self.enums.0, hits: half(2) }),
            7 => Entry::Note(Note { bytes: text(0) }),
            8 => Entry::End(End {
                findings: half(0),
                allocations: n[1],
                frees: n[2],
                peak_live_bytes: n[3],
                ending: self.enums.5,
                signal: half(1),
            }),
            9 => Entry::Times(Times { finding: half(0), times: n[1] }),
            10 => Entry::Check(Check {
                number: half(0),
                occasion: self.leaks.0,
                ns: n[1],
                sequence: n[2],
                stopped_ns: n[3],
                threads: half(4),
                silent: half(5),
                thread: half(6),
            }),
            11 => Entry::Leak(self.leak()),
            12 => Entry::Step(Step { block: n[0], size: n[1], offset: n[2], stack: half(3) }),
            13 => Entry::Usage(Usage { check: half(0), stack: half(1), blocks: n[2], bytes: n[3] }),
            14 => Entry::Class(Class {
                check: half(0),
                slot: n[1],
                buckets: n[2],
                memory: n[3],
                live: n[4],
                bytes: n[5],
                freed: n[6],
                unused: n[7],
            }),
            15 => Entry::Checked(Checked {
                check: half(0),
                took_ns: n[1],
                blocks: n[2],
                bytes: n[3],
                omitted_groups: n[4],
                omitted_blocks: n[5],
                omitted_bytes: n[6],
                read_bytes: n[7],
            }),
            16 => Entry::Sample(Sample { ns: n[0], sequence: n[1], blocks: n[2], bytes: n[3] }),
            17 => Entry::SampledPoint(SampledPoint {
                check: half(0),
                ns: n[1],
                live_bytes: n[2],
                resident_bytes: n[3],
            }),
            _ => Entry::SampledMore(SampledMore {
                check: half(0),
                stack: half(1),
                temporary_error: n[2],
                peak_error: n[3],
                earlier_ns: n[4],
                earlier_blocks: n[5],
                earlier_bytes: n[6],
                growth_error: n[7],
            }),
        }
    }

    fn leak(&self) -> Leak {
        let n = self.numbers;
        let half = |index: usize| n[index] as u32;
        Leak {
            check: half(0),
            reach: self.leaks.1,
            origin: self.enums.2,
            stack: half(1),
            thread: half(2),
            blocks: n[3],
            bytes: n[4],
            indirect_blocks: n[5],
            indirect_bytes: n[6],
            block: n[7],
            size: n[8],
            oldest_ns: n[9],
            youngest_ns: n[10],
            root: self.leaks.2,
            root_address: n[11],
            root_thread: half(12),
        }
    }

    fn finding(&self) -> Finding {
        let n = self.numbers;
        let moment = |at: usize| Moment {
            stack: n[at] as u32,
            thread: n[at + 1] as u32,
            sequence: n[at] ^ n[at + 1],
            ns: n[at].rotate_left(9),
        };
        let (kind, call, origin, region, access, _) = self.enums;
        Finding {
            kind,
            call,
            origin,
            region,
            access,
            value: n[0] as u8,
            function: Function::Memchr,
            pointer: n[1],
            block: n[2],
            size: n[3],
            align: n[4],
            offset: n[5] as i64,
            length: n[6],
            given_size: n[7],
            given_align: n[8],
            here: moment(9),
            freed: moment(11),
            allocated: moment(13),
        }
    }
}

proptest! {
    #[test]
    fn any_entries_come_back(matters in vec(matter(), 0..20)) {
        let mut buffer = [0; 2048];
        let mut file = HEADER.to_vec();
        for matter in &matters {
            file.extend_from_slice(Encoder::new(&mut buffer).entry(&matter.entry()));
        }
        let mut reader = Reader::new(&file).unwrap();
        let read: Vec<_> = reader.by_ref().collect();
        let written: Vec<_> = matters.iter().map(Matter::entry).collect();
        prop_assert_eq!(read, written);
        prop_assert_eq!(reader.problem(), None);
    }

    #[test]
    fn any_buffer_gives_one_good_entry_or_none(matter in matter(), size in 0usize..600) {
        let entry = matter.entry();
        let mut buffer = vec![0; size];
        let bytes = Encoder::new(&mut buffer).entry(&entry).to_vec();
        prop_assert!(bytes.len() <= size);
        let file = [&HEADER[..], &bytes].concat();
        let mut reader = Reader::new(&file).unwrap();
        let read = reader.next();
        prop_assert_eq!(reader.problem(), None);
        prop_assert_eq!(read.is_some(), !bytes.is_empty());
        if let Some(read) = read {
            prop_assert_eq!(read.tag(), entry.tag());
            prop_assert_eq!(reader.next(), None);
        }
    }

    #[test]
    fn any_change_is_found(
        matters in vec(matter(), 1..6),
        at in any::<prop::sample::Index>(),
        change in 1u8..,
    ) {
        let mut buffer = [0; 2048];
        let mut file = HEADER.to_vec();
        for matter in &matters {
            file.extend_from_slice(Encoder::new(&mut buffer).entry(&matter.entry()));
        }
        let at = HEADER.len() + at.index(file.len() - HEADER.len());
        file[at] ^= change;
        let mut reader = Reader::new(&file).unwrap();
        let read: Vec<_> = reader.by_ref().collect();
        let written: Vec<_> = matters.iter().map(Matter::entry).collect();
        prop_assert!(written.starts_with(&read) && read.len() < written.len());
        prop_assert!(reader.problem().is_some());
    }

    #[test]
    fn any_bytes_are_read(bytes in vec(any::<u8>(), 0..400)) {
        let file = [&HEADER[..], &bytes].concat();
        for entry in Reader::new(&file).unwrap() {
            if let Entry::Stack(stack) = entry {
                prop_assert_eq!(stack.frames.iter().count(), stack.frames.len());
            }
        }
        let _ = Reader::new(&bytes);
    }

    #[test]
    fn any_finding_has_words(matter in matter()) {
        let finding = matter.finding();
        let mut line = Formatted(String::new());
        finding.sentence(&mut line);
        prop_assert!(!line.0.is_empty() && !line.0.contains("  "), "{}", line.0);
        for (role, _) in finding.moments() {
            finding.title(role, "x", &mut line);
        }
    }
}
