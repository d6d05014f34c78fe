//! A report for the tests of all formatters: two processes, every fate of a block, inlined
//! functions of C++ and Rust, and places without a name. Some names have characters that HTML, XML,
//! JSON or folded stacks must escape.

use super::model::{
    Amount, Check, Error, Figure, Growth, Happened, Leak, Path, Process, Profile, ProfilePoint,
    Report, Sample, Sampled, SampledMore, SampledThread, StackId, Stacks, Step, Suppressed,
    Unreported, Used, Wanted,
};
use crate::symbols::{Frame, Function, Place};
use heapwright_record::debug::{
    Access, Call, Class, End, Ending, Finding, FindingKind, Moment, Occasion, Origin, Reach, Role,
    Root,
};
use std::collections::BTreeMap;

#[path = "../../tests/common/golden.rs"]
mod golden;
pub(crate) use golden::golden;

pub(crate) const CACHE: StackId = StackId(1);
pub(crate) const RUST: StackId = StackId(2);
pub(crate) const HOSTILE: StackId = StackId(3);
pub(crate) const BARE: StackId = StackId(4);
pub(crate) const SESSION: StackId = StackId(5);
pub(crate) const CLOSE: StackId = StackId(6);
pub(crate) const REUSE: StackId = StackId(7);
pub(crate) const BUFFER: StackId = StackId(8);
pub(crate) const FILL: StackId = StackId(9);

pub(crate) const FOLDER: &str = "/home/ada/shop";

/// A name that every format must escape.
pub(crate) const NASTY: &str = "<script>alert(\"x;y\")</script> ]]> & 'z'\n\u{1b}[31m 12";

const PROGRAM: &str = "/home/ada/shop/bin/shop server";
const LIBC: &str = "/usr/lib/x86_64-linux-gnu/libc.so.6";
const SECOND: u64 = 1_000_000_000;

pub(crate) fn report() -> Report {
    Report {
        program: 0,
        foreign: Vec::new(),
        processes: vec![server(), worker()],
        stacks: stacks(),
        errors: errors(),
        leaks: leaks(),
        growths: growths(),
        used: vec![
            Used {
                name: "glib's quarks".into(),
                file: "shop.supp".into(),
                line: 3,
                times: 4,
                causes: ["one".to_owned(), "another".to_owned()].into(),
                amount: Amount { blocks: 12, bytes: 4096 },
            },
            Used {
                name: "leak:<unused>".into(),
                file: "shop.supp".into(),
                line: 9,
                times: 0,
                causes: std::collections::HashSet::new(),
                amount: Amount::default(),
            },
        ],
        unseen: vec!["process 7 (<worker>) was killed by SIGKILL".into()],
        notes: vec!["2 threads did not report their registers".into()],
        cut: [HOSTILE].into(),
        sources: sources(),
        unreported: Unreported { errors: 3, times: 9, leaks: 0 },
        suppressed: Suppressed {
            errors: 1,
            times: 2,
            leaks: 3,
            lost: Amount { blocks: 12, bytes: 4096 },
            growths: 0,
        },
        unwritten: 0,
        wanted: Wanted { folder: FOLDER.into(), ..Wanted::default() },
    }
}

const HEAPWRIGHT: &str = "/usr/lib/libheapwright.so";
const VEC: &str = "/usr/include/c++/12/bits/stl_vector.h";
const ALLOC: &str = "/rustc/01f6ddf/library/alloc/src/alloc.rs";
const CLONE: &str = "/rustc/01f6ddf/library/alloc/src/vec.rs";

/// A function: its name, its source (below the folder or absolute), and the line.
type Named = (&'static str, &'static str, u32);

/// The files of code, and the functions in them.
#[rustfmt::skip]
const FRAMES: [(&str, &[Named]); 15] = [
    (HEAPWRIGHT, &[("malloc", "", 0)]),
    (HEAPWRIGHT, &[("operator new(unsigned long)", "", 0)]),
    (HEAPWRIGHT, &[("free", "", 0)]),
    (PROGRAM, &[("main", "src/main.cc", 41)]),
    (LIBC, &[]),
    ("", &[]),
    (PROGRAM, &[("std::vector<Entry>::push_back", VEC, 1281),
                ("Cache::insert(Key<std::string>)", "src/cache.cc", 88)]),
    (PROGRAM, &[("alloc::alloc::alloc", ALLOC, 95),
                ("<alloc::vec::Vec<u8> as Clone>::clone", CLONE, 7),
                ("shop_index::Index::load::{closure#0}", "index/src/lib.rs", 7)]),
    (PROGRAM, &[(NASTY, "a b/<i>#1.c", 5)]),
    (PROGRAM, &[("Server::serve", "src/server.cc", 210)]),
    (PROGRAM, &[("Session::open", "src/session.cc", 33)]),
    (PROGRAM, &[("Session::close", "src/session.cc", 57)]),
    (PROGRAM, &[("Session::log", "src/session.cc", 71)]),
    (PROGRAM, &[("header_new", "src/header.c", 12)]),
    (PROGRAM, &[("header_fill", "src/header.c", 29)]),
];

/// The frames of each stack, innermost first: CACHE to FILL.
const STACKS: [&[u32]; 9] = [
    &[1, 6, 3, 4, 5],
    &[0, 7, 3, 4],
    &[0, 8, 3, 4],
    &[0, 5],
    &[0, 10, 9, 3, 4],
    &[2, 11, 9, 3, 4],
    &[12, 9, 3, 4],
    &[0, 13, 9, 3, 4],
    &[2, 14, 9, 3, 4],
];

fn stacks() -> Stacks {
    let function = |&(name, source, line): &Named| Function {
        name: Some(name.into()),
        source: (!source.is_empty()).then(|| match source.starts_with('/') {
            true => source.to_owned(),
            false => format!("{FOLDER}/{source}"),
        }),
        line: Some(line).filter(|line| *line != 0),
        column: Some(9).filter(|_| line == 71),
        symbol: None,
        is_private: false,
    };
    let mut stacks = Stacks::default();
    let mut address = 0;
    for (path, functions) in FRAMES {
        if path.is_empty() {
            stacks.frames.push(Frame { address: 0x99, ..Frame::default() });
            continue;
        }
        address += 0x1234;
        let (bias, build_id) = match path {
            LIBC => (0x7f00_0000_0000, vec![0xc1, 0xbc]),
            _ => (0x5500_0000_0000, vec![0xab, 0xcd, 0xef]),
        };
        let offset = if path == LIBC { 0x2724a } else { address };
        stacks.frames.push(Frame {
            address: bias + address,
            place: Some(Place { path: path.into(), offset, build_id }),
            functions: functions.iter().map(function).collect(),
        });
    }
    stacks.stacks.extend(STACKS.map(Box::from));
    stacks
}

/// Makes three lines of invented source around each line of the program.
fn sources() -> BTreeMap<(String, u32), Vec<(u32, String)>> {
    let text = ["    if (closed()) {", "        write(fd, buffer->data, buffer->size);", "    }"];
    let mut sources = BTreeMap::new();
    for function in stacks().frames.into_iter().flat_map(|frame| frame.functions) {
        if let (Some(source), Some(line)) = (function.source, function.line)
            && source.starts_with(FOLDER)
        {
            let lines = (line.saturating_sub(1)..).zip(text.map(str::to_owned)).collect();
            sources.insert((source, line), lines);
        }
    }
    sources
}

/// Makes samples at sixty moments: a sawtooth on a slope.
fn samples(every: u64, start: u64, slope: u64, tooth: u64) -> Vec<Sample> {
    let at = |step: u64| Sample {
        ns: step * every,
        blocks: 100 + step * 3,
        bytes: start + step * slope + step % 9 * tooth,
    };
    (0..60).map(at).collect()
}

fn server() -> Process {
    let class = |slot, buckets, memory, live, bytes, freed, unused| Class {
        check: 2,
        slot,
        buckets,
        memory,
        live,
        bytes,
        freed,
        unused,
    };
    Process {
        pid: 4242,
        parent: 4000,
        began: 1_700_000_000 * SECOND,
        exe: PROGRAM.into(),
        command: ["bin/shop server", "--listen=:8080", "--motd=<b>hi</b> & \"bye\""]
            .map(Into::into)
            .into(),
        options: "mode=debug,leaks=1".into(),
        version: "0.1.0".into(),
        end: Some(End {
            findings: 3,
            allocations: 1_204_511,
            frees: 1_198_002,
            peak_live_bytes: 13 << 20,
            ending: Ending::Exit,
            signal: 0,
        }),
        samples: samples(SECOND, 2 << 20, 96 << 10, 300 << 10),
        checks: vec![
            Check {
                number: 1,
                occasion: Occasion::Signal,
                ns: 21 * SECOND,
                stopped_ns: 2_100_000,
                took_ns: Some(48_000_000),
                threads: 5,
                silent: 2,
                live: Amount { blocks: 4211, bytes: 5 << 20 },
                ..Check::default()
            },
            Check {
                number: 2,
                occasion: Occasion::Exit,
                ns: 60 * SECOND,
                stopped_ns: 900_000,
                took_ns: Some(31_000_000),
                threads: 1,
                live: Amount { blocks: 6509, bytes: 7_900_000 },
                omitted: Amount { blocks: 14, bytes: 320 },
                ..Check::default()
            },
        ],
        classes: vec![
            class(32, 3, 192 << 10, 3100, 71_000, 700, 1400),
            class(64, 2, 128 << 10, 1500, 90_000, 96, 300),
            class(256, 4, 256 << 10, 610, 131_000, 200, 150),
            class(4096, 10, 2 << 20, 320, 1_100_000, 130, 30),
            class(0, 6, 6 << 20, 6, 5_700_000, 0, 0),
        ],
        ..Process::default()
    }
}

fn worker() -> Process {
    Process {
        pid: 4243,
        parent: 4242,
        began: 1_700_000_005 * SECOND,
        exe: "/usr/bin/convert".into(),
        command: ["convert", "in.png", "out.jpg"].map(Into::into).into(),
        options: "mode=debug,leaks=1".into(),
        version: "0.1.0".into(),
        end: None,
        samples: samples(SECOND / 5, 300 << 10, 0, 40 << 10),
        checks: vec![Check {
            number: 1,
            occasion: Occasion::Time,
            ns: 9 * SECOND,
            live: Amount { blocks: 80, bytes: 400_000 },
            usage: vec![
                (HOSTILE, Amount { blocks: 40, bytes: 250_000 }),
                (RUST, Amount { blocks: 2, bytes: 100_000 }),
            ],
            ..Check::default()
        }],
        classes: Vec::new(),
        ..Process::default()
    }
}

fn errors() -> Vec<Error> {
    let moment =
        |stack: StackId, thread, sequence, ns| Moment { stack: stack.0, thread, sequence, ns };
    let error = |finding: Finding, stacks: &[StackId], times, processes| Error {
        finding,
        process: 0,
        moments: finding
            .moments()
            .zip(stacks)
            .map(|((role, moment), &stack)| Happened {
                role,
                moment,
                thread: if moment.thread == 2 { "worker <2>".into() } else { String::new() },
                stack,
            })
            .collect(),
        times,
        processes,
        effect: String::new(),
    };
    let stale = Finding {
        kind: FindingKind::UseAfterFree,
        call: Call::Access,
        access: Access::Read,
        pointer: 0x7000_1010,
        block: 0x7000_1000,
        size: 96,
        offset: 16,
        here: moment(REUSE, 2, 70_021, 31 * SECOND),
        freed: moment(CLOSE, 1, 70_004, 30 * SECOND),
        allocated: moment(SESSION, 1, 61_800, 12 * SECOND),
        ..Finding::default()
    };
    let over = Finding {
        kind: FindingKind::Overflow,
        call: Call::Free,
        origin: Origin::Malloc,
        value: 0x41,
        pointer: 0x7000_2000,
        block: 0x7000_2000,
        size: 40,
        offset: 40,
        length: 3,
        here: moment(FILL, 1, 90_000, 40 * SECOND),
        allocated: moment(BUFFER, 1, 89_990, 40 * SECOND),
        ..Finding::default()
    };
    let mixed = Finding {
        kind: FindingKind::AllocatorMismatch,
        call: Call::Free,
        origin: Origin::NewArray,
        region: heapwright_record::debug::Region::Block,
        pointer: 0x7000_3000,
        block: 0x7000_3000,
        size: 512,
        here: moment(HOSTILE, 1, 95_000, 50 * SECOND),
        allocated: moment(StackId::NONE, 1, 94_000, 49 * SECOND),
        ..Finding::default()
    };
    vec![
        error(stale, &[REUSE, CLOSE, SESSION], 17, 1),
        error(over, &[FILL, BUFFER], 1, 1),
        error(mixed, &[HOSTILE, StackId::NONE], 2, 2),
    ]
}

fn leaks() -> Vec<Leak> {
    let leak = |reach, stack, blocks, bytes| Leak {
        reach,
        origin: Origin::Malloc,
        stack,
        lost: Amount { blocks, bytes },
        indirect: Amount::default(),
        size: bytes / blocks,
        block: 0x7000_4000,
        oldest_ns: 2 * SECOND,
        youngest_ns: 58 * SECOND,
        oldest_age_ns: 58 * SECOND,
        youngest_age_ns: 2 * SECOND,
        check: 1,
        process: 0,
        processes: 1,
        path: None,
    };
    let globals = Path {
        root: Root::Globals,
        address: 0x5500_0009_0010,
        name: Some("cache+0x10".into()),
        module: Some(PROGRAM.into()),
        thread: None,
        steps: vec![
            Step { size: 4096, offset: 0x20, stack: RUST },
            Step { size: 64, offset: 8, stack: CACHE },
        ],
    };
    let stack = Path {
        root: Root::Stack,
        address: 0x7ffc_0000_1000,
        name: None,
        module: None,
        thread: Some((2, "worker <2>".into())),
        steps: Vec::new(),
    };
    vec![
        Leak {
            indirect: Amount { blocks: 310, bytes: 91_000 },
            ..leak(Reach::Definite, SESSION, 155, 1_214_880)
        },
        Leak { processes: 2, ..leak(Reach::Definite, HOSTILE, 1, 24) },
        leak(Reach::Indirect, BUFFER, 310, 91_000),
        Leak { path: Some(stack), ..leak(Reach::Possible, RUST, 12, 480_000) },
        Leak {
            origin: Origin::New,
            path: Some(globals),
            ..leak(Reach::Reachable, CACHE, 4100, 4_600_000)
        },
        leak(Reach::Reachable, BARE, 1, 1 << 20),
        leak(Reach::Reachable, StackId::NONE, 3, 96),
    ]
}

fn growths() -> Vec<Growth> {
    vec![Growth {
        stack: CACHE,
        process: 0,
        points: samples(SECOND, 1 << 20, 61 << 10, 3 << 10),
        slope: 62_800.0,
        tau: 0.97,
    }]
}

/// The server after a minute: a growing cache, short-lived buffers, an early index, and a name that
/// HTML must escape.
pub(crate) fn profile() -> Report {
    const MIB: u64 = 1 << 20;
    let amount = |bytes: u64, size: u64| Amount { blocks: bytes / size, bytes };
    let site = |stack, size, [live, earlier, peak, allocated, temporary]: [u64; 5]| Sampled {
        stack,
        samples: live.div_ceil(MIB / 2),
        live: amount(live, size),
        live_error: (live * MIB / 2).isqrt(),
        allocated: amount(allocated, size),
        allocated_error: (allocated * MIB / 2).isqrt(),
        temporary: amount(temporary, size),
        peak: amount(peak, size),
        oldest_ns: 2 * SECOND,
        youngest_ns: 59 * SECOND,
        memory: heapwright_record::debug::Memory::Block,
        more: Some(SampledMore {
            temporary_error: (temporary * MIB / 2).isqrt(),
            peak_error: (peak * MIB / 2).isqrt(),
            earlier_ns: 17 * SECOND,
            earlier: amount(earlier, size),
            growth_error: (live.abs_diff(earlier) * MIB / 2).isqrt(),
        }),
    };
    let sites = vec![
        site(CACHE, 64, [24 * MIB, 8 * MIB, 22 * MIB, 30 * MIB, 0]),
        site(RUST, 4096, [16 * MIB, 16 * MIB, 16 * MIB, 16 * MIB, 0]),
        site(BUFFER, 1000, [MIB, 3 * MIB, 40 * MIB, 2000 * MIB, 1800 * MIB]),
        site(HOSTILE, 24, [0, MIB, MIB, 3 * MIB, MIB]),
        site(StackId::NONE, 100, [MIB / 2, 0, 0, MIB, 0]),
    ];
    let total = |figure: Figure| sites.iter().map(|site| figure.of(site).bytes).sum::<u64>();
    let (live, peak) = (total(Figure::Live), total(Figure::Peak));
    let point = |second: u64| ProfilePoint {
        ns: second * SECOND,
        live: if second < 2 { 0 } else { 16 * MIB + second * (live - 16 * MIB) / 60 },
        resident: Some(30 * MIB + second * MIB),
    };
    let thread = |number, name: &str, bytes| SampledThread {
        number,
        name: name.into(),
        live: amount(bytes, 64),
        allocated: amount(20 * bytes, 64),
    };
    let profile = Profile {
        period: MIB / 2,
        peak_bytes: peak,
        peak_ns: 40 * SECOND + SECOND / 2,
        lost: 0,
        threads: vec![thread(4242, "shop", live - MIB), thread(4250, "worker <2>", MIB)],
        points: (0..=60).map(point).collect(),
        sites,
    };
    let check = Check {
        number: 1,
        occasion: Occasion::Profile,
        ns: 60 * SECOND,
        took_ns: Some(1_000_000),
        threads: 2,
        live: Amount { blocks: 1000, bytes: live },
        profile: Some(profile),
        ..Check::default()
    };
    let process = Process {
        options: "sample=512k".into(),
        samples: Vec::new(),
        checks: vec![check],
        classes: Vec::new(),
        ..server()
    };
    Report {
        foreign: Vec::new(),
        processes: vec![process],
        stacks: stacks(),
        wanted: Wanted { figure: Figure::Live, ..Wanted::default() },
        ..Report::default()
    }
}

#[test]
fn the_indexes_are_valid() {
    let report = report();
    assert_eq!(report.stacks.stacks.len(), 10);
    let moments = report.errors.iter().flat_map(|error| &error.moments);
    let leaks = report.leaks.iter().map(|leak| leak.stack);
    for stack in moments.map(|moment| moment.stack).chain(leaks) {
        assert!(report.stacks.frames(stack).count() < 6);
    }
    assert!(report.errors.iter().all(|error| error.moments[0].role == Role::Here));
}
