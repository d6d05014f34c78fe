//! `heapwright diff`: points of one record, two records, and what cannot be compared.

mod common;

use common::{Folder, bytes, done, heapwright, stderr, stdout, text};
use heapwright_record::debug::{
    Call, Check, Checked, Entry, Finding, FindingKind, Frames, Module, Moment, Occasion, Process,
    Stack, Usage,
};
use serde_json::{Value, json};
use std::process::Output;

/// Returns the record of a process with two counts of two stacks. `counts` has their bytes.
fn record(base: u64, counts: [[u64; 2]; 2], double_free: bool) -> Vec<u8> {
    let frames = [[base + 0x100, base + 0x10], [base + 0x200, base + 0x10]];
    let module = Module {
        id: 1,
        start: base,
        end: base + 0x1000,
        bias: base,
        build_id: (&[0xab_u8][..]).into(),
        path: "/nonexistent/prog".into(),
    };
    let process = Process { pid: 7, command: "prog".into(), ..Process::default() };
    let mut entries: Vec<Entry<'_>> = vec![process.into(), module.into()];
    for (id, frames) in (1..).zip(&frames) {
        entries.push(Stack { id, frames: Frames::new(frames) }.into());
    }
    for (number, bytes) in (1..).zip(counts) {
        let ns = u64::from(number) * 10_000_000_000;
        entries.push(Check { number, occasion: Occasion::Time, ns, ..Check::default() }.into());
        for (stack, bytes) in (1..).zip(bytes) {
            if bytes != 0 {
                entries.push(Usage { check: number, stack, blocks: bytes / 40, bytes }.into());
            }
        }
        entries.push(Checked { check: number, ..Checked::default() }.into());
    }
    if double_free {
        let (kind, call) = (FindingKind::DoubleFree, Call::Free);
        let here = Moment { stack: 2, ..Moment::default() };
        entries.push(Finding { kind, call, here, ..Finding::default() }.into());
    }
    bytes(&entries)
}

fn diff(words: &[&str]) -> Output {
    done(heapwright().arg("diff").args(words))
}

#[test]
fn two_points_of_a_record_are_compared() {
    let folder = Folder::new();
    let file = folder.file("record", record(0x10_0000, [[40, 80], [4040, 0]], false));
    let at = |point: &str| format!("{}@{point}", text(&file));
    let expected = "\
heapwright: 120 bytes in 3 blocks -> 4,040 bytes in 101 blocks

+4,000 bytes, +100 blocks: 40 bytes in 1 block -> 4,040 bytes in 101 blocks, allocated from:
    #0 0x100100 (/nonexistent/prog+0x100)
    #1 0x100010 (/nonexistent/prog+0x10)

gone: -80 bytes, -2 blocks: 80 bytes in 2 blocks -> 0 bytes in 0 blocks, allocated from:
    #0 0x100200 (/nonexistent/prog+0x200)
    #1 0x100010 (/nonexistent/prog+0x10)

";
    for (before, after) in
        [(at("1"), at("2")), (at("10s"), at("end")), (at("15s"), text(&file).to_owned())]
    {
        let output = diff(&[&before, &after]);
        assert_eq!((output.status.code(), stderr(&output)), (Some(1), String::new()));
        assert_eq!(stdout(&output), expected);
    }
    let output = diff(&["--top", "1", &at("1"), &at("2")]);
    assert!(stdout(&output).contains("and 1 more stacks"), "{}", stdout(&output));
    let output = diff(&[&at("2"), &at("2")]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).ends_with("no difference\n"));
}

#[test]
fn two_runs_are_compared() {
    let folder = Folder::new();
    // The second process is loaded at another address, and has a bug.
    let before = folder.file("before", record(0x10_0000, [[40, 80], [40, 80]], false));
    let after = folder.file("after", record(0x70_0000, [[40, 80], [40, 120]], true));
    let output = diff(&[text(&before), text(&after)]);
    assert_eq!(output.status.code(), Some(1));
    let printed = stdout(&output);
    for part in ["+40 bytes, +1 blocks: 80 bytes", "\nnew: ==7==ERROR: heapwright: double-free: "] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert!(!printed.contains("prog+0x100)"), "{printed}");
    let object = folder.path("object");
    let output = diff(&["--format", "json", "-o", text(&object), text(&after), text(&before)]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), String::new()));
    let printed = std::fs::read(&object).expect("was written");
    let object: Value = serde_json::from_slice(&printed).expect("is JSON");
    assert_eq!(object["stacks"][0]["bytes"], json!(-40));
    assert_eq!(object["stacks"][0]["frames"][0], json!("/nonexistent/prog+0x200"));
    assert_eq!(object["gone"]["errors"][0]["kind"], json!("double-free"));
    assert_eq!(object["new"]["errors"], json!([]));
}

#[test]
fn what_cannot_be_compared_is_one_line() {
    let folder = Folder::new();
    let file = folder.file("record", record(0x10_0000, [[40, 80], [40, 80]], false));
    let at = |point: &str| format!("{}@{point}", text(&file));
    for (before, part) in [
        (at("noon"), "'noon' is no point: a check's number, a time such as 10s, or end"),
        (at("5s"), "there is no leak check at or before that point"),
        (String::from("/nonexistent/x"), "cannot read /nonexistent/x: "),
    ] {
        let output = diff(&[&before, text(&file)]);
        let line = stderr(&output);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()), "{line}");
        assert!(line.contains(part) && line.lines().count() == 1, "{part}: {line}");
    }
}
