//! Reports of records that no real program would write.

use super::*;
use crate::output::{Format, Look, render};
use crate::statistics::Folder;
use clap::ValueEnum;
use heapwright_record::debug::{
    Check, Checked, Class, Encoder, End, Entry, Finding, FindingKind, Frames, HEADER, Leak, Module,
    Moment, Note, Occasion, Origin, Process, Root, Sample, Stack, Step, Thread, Times, Usage,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::fs;

/// Makes numbers that often collide: small ones, the largest, and any.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..4, 0_u64..4, Just(u64::MAX), any::<u64>()]
}

fn put(file: &mut Vec<u8>, kind: u8, n: [u64; 8]) {
    let half = n.map(|number| number as u32);
    let moment = |at: usize| Moment { stack: half[at], thread: half[at + 1], ..Moment::default() };
    let frames = [n[1], n[2], n[3]];
    let entry: Entry<'_> = match kind {
        0 => Process { pid: half[0], time: n[1], command: "x\0y\0".into(), ..Process::default() }
            .into(),
        1 => {
            let [_, start, end, bias, ..] = n;
            Module { id: half[0], start, end, bias, path: "/x".into(), ..Module::default() }.into()
        }
        2 => Thread { number: half[0], tid: half[1], name: "\x1b".into() }.into(),
        3 => Stack { id: half[0], frames: Frames::new(&frames[..(n[4] % 4) as usize]) }.into(),
        4 => {
            let kind = FindingKind::ALL[n[0] as usize % FindingKind::ALL.len()];
            let (here, freed, allocated) = (moment(1), moment(3), moment(5));
            Finding { kind, size: n[7], here, freed, allocated, ..Finding::default() }.into()
        }
        5 => Times { finding: half[0], times: n[1] }.into(),
        6 => {
            let occasion = Occasion::ALL[(n[1] % 5) as usize];
            Check { number: half[0], occasion, ns: n[2], silent: half[3], ..Check::default() }
                .into()
        }
        7 => Leak {
            check: half[0],
            reach: Reach::ALL[(n[1] % 5) as usize],
            origin: Origin::ALL[(n[2] % 6) as usize],
            stack: half[3],
            blocks: n[4],
            bytes: n[5],
            indirect_bytes: n[5],
            oldest_ns: n[6],
            root: Root::ALL[(n[7] % 7) as usize],
            root_address: n[6],
            root_thread: half[0],
            ..Leak::default()
        }
        .into(),
        8 => Step { size: n[0], offset: n[1], stack: half[2], ..Step::default() }.into(),
        9 => Usage { check: half[0], stack: half[1], blocks: n[2], bytes: n[3] }.into(),
        10 => Class { check: half[0], slot: n[1], ..Class::default() }.into(),
        11 => Checked { check: half[0], blocks: n[1], bytes: n[2], ..Checked::default() }.into(),
        12 => Sample { ns: n[0], bytes: n[1], ..Sample::default() }.into(),
        13 => Note { bytes: "\n".into() }.into(),
        _ => End { findings: half[0], frees: n[1], peak_live_bytes: n[2], ..End::default() }.into(),
    };
    let mut buffer = [0; Encoder::SMALLEST];
    file.extend_from_slice(Encoder::new(&mut buffer).entry(&entry));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_entries_in_any_order_are_reported(
        entries in vec((0_u8..15, [number(), number(), number(), number(), number(), number(), number(), number()]), 0..60),
        cut in 0_usize..20,
        everything in any::<bool>(),
        limit in select(vec![None, Some(0), Some(2)]),
    ) {
        let mut bytes = HEADER.to_vec();
        entries.iter().for_each(|(kind, numbers)| put(&mut bytes, *kind, *numbers));
        let cut = if cut < 10 { bytes.len() - cut.min(bytes.len() - HEADER.len()) } else { bytes.len() };
        let folder = Folder::quietly().expect("made");
        let [record, suppress] = ["record", "suppressions"].map(|name| folder.path().join(name));
        fs::write(&record, &bytes[..cut]).expect("written");
        fs::write(&suppress, b"leak:/y\ndouble-free:*\n").expect("written");
        let details = vec![Reach::Definite, Reach::Possible, Reach::Reachable];
        let options = Options {
            everything,
            limit,
            suppress: vec![suppress],
            wanted: Wanted { details, suppressions: model::Ready::Block, most: 3, ..Wanted::default() },
            ..Options::default()
        };
        let made = make(&[record.clone(), record], &options).expect("is a record");
        let report = &made.report;
        let stacks = report.stacks.stacks.len() as u32;
        for leak in &report.leaks {
            prop_assert!(leak.stack.0 < stacks && leak.process < report.processes.len());
        }
        for error in &report.errors {
            prop_assert!(error.processes > 0 && error.times > 0);
            prop_assert!(error.moments.iter().all(|happened| happened.stack.0 < stacks));
        }
        let checks = report.processes.iter().flat_map(|process| &process.checks);
        prop_assert!(checks.flat_map(|check| &check.usage).all(|usage| usage.0.0 < stacks));
        prop_assert!(diff::diff(report, report).is_empty());
        for format in Format::value_variants() {
            let mut printed = Vec::new();
            render(report, *format, &mut printed, Look::PLAIN).expect("into memory");
            // Compressed output may contain any byte.
            prop_assert!(*format == Format::Pprof || !printed.contains(&0x1b), "{format:?}");
        }
    }
}
