//! `heapwright report`: debug records made here, told as text and as JSON, with
//! names from programs compiled for it; and files that are no records.

mod common;

use common::{Folder, done, heapwright, stderr, stdout, text};
use heapwright_record::debug::{
    Access, Call, Encoder, End, Ending, Entry, Finding, FindingKind, Frames, HEADER, Module,
    Moment, Note, Process, Region, Site, Stack, Thread,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// In 2100: programs compiled by the tests are older.
const LATER: u64 = 4_102_444_800_000_000_000;

/// A program that prints a return address into `outer`, which is in `main`.
const SOURCE: &str = r"#include <stdio.h>
__attribute__((noinline)) void *inner(void) {
    return __builtin_return_address(0);
}
static inline __attribute__((always_inline)) void *outer(void) {
    return inner();
}
int main(void) {
    printf('%p', outer());
    return 0;
}
";

/// The address in the program, which is loaded where its file says.
fn compiled(folder: &Folder, name: &str, flags: &[&str]) -> (PathBuf, u64) {
    let source = SOURCE.replace('\'', "\"");
    let fixed = ["-O1", "-no-pie", "-fno-pie", "-fno-optimize-sibling-calls"];
    let program = folder.compile(name, &[&fixed, flags].concat(), &source);
    let printed = stdout(&done(&mut Command::new(&program)));
    let digits = printed.strip_prefix("0x").expect("is an address");
    (program, u64::from_str_radix(digits, 16).expect("is an address"))
}

fn process(time: u64) -> Entry<'static> {
    Process {
        pid: 4242,
        parent: 1,
        time,
        page_size: 4096,
        version: "0.1.0".into(),
        exe: "/path/prog".into(),
        options: "mode=debug".into(),
        command: "prog\0-x\0".into(),
    }
    .into()
}

fn moment(stack: u32, sequence: u64) -> Moment {
    Moment { stack, thread: 1, sequence, ns: 1 }
}

fn double_free() -> Finding {
    Finding {
        kind: FindingKind::DoubleFree,
        call: Call::Free,
        region: Region::Block,
        pointer: 0x7000_1000,
        block: 0x7000_1000,
        size: 40,
        here: moment(1, 20),
        freed: moment(2, 17),
        allocated: moment(0, 3),
        ..Finding::default()
    }
}

fn end(findings: u32) -> Entry<'static> {
    let ending = Ending::Exit;
    End { findings, allocations: 17, frees: 3, peak_live_bytes: 1536, ending }.into()
}

fn bytes(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut buffer = [0; 4096];
    let mut bytes = HEADER.to_vec();
    for entry in entries {
        bytes.extend_from_slice(Encoder::new(&mut buffer).entry(entry));
    }
    bytes
}

/// A double free in a program, with the same stack twice.
fn in_program(
    folder: &Folder,
    program: &Path,
    address: u64,
    build_id: &[u8],
    time: u64,
) -> PathBuf {
    let module = Module {
        id: 1,
        start: address & !0xfff,
        end: (address & !0xfff) + 0x2000,
        bias: 0,
        build_id: build_id.into(),
        path: text(program).into(),
    };
    let frames = [address, 0x10];
    let stack = |id| Entry::from(Stack { id, frames: Frames::new(&frames) });
    let entries = [process(time), module.into(), stack(1), stack(2), double_free().into(), end(1)];
    folder.file("record", bytes(&entries))
}

fn report(flags: &[&str], record: &Path) -> Output {
    done(heapwright().arg("report").args(flags).arg(record))
}

/// The first stack of the text.
fn frames(record: &Path) -> Vec<String> {
    let output = report(&[], record);
    assert_eq!((output.status.code(), stderr(&output)), (Some(1), String::new()));
    let text = stdout(&output);
    let stack = text.lines().skip(2).take_while(|line| line.starts_with("    #"));
    stack.map(str::to_owned).collect()
}

const BUILD_ID: &[u8] = &[0xab, 0xcd, 0xef, 0x01];
const WITH_BUILD_ID: &str = "-Wl,--build-id=0xabcdef01";

#[test]
fn frames_have_functions_and_lines() {
    let folder = Folder::new();
    for flags in [&["-g", WITH_BUILD_ID][..], &["-g", "-gz=zlib", WITH_BUILD_ID]] {
        let (program, address) = compiled(&folder, "prog", flags);
        let record = in_program(&folder, &program, address, BUILD_ID, 1);
        let source = format!("{}.c", text(&program));
        let place = format!("({}+{address:#x}) (BuildId: abcdef01)", text(&program));
        let output = report(&[], &record);
        assert_eq!(
            stdout(&output),
            format!(
                "\
==4242==ERROR: heapwright: double-free: free of a 40-byte block that was freed before
    here, thread 1:
    #0 {address:#x} in outer {source}:6:12 {place}
          5 | static inline __attribute__((always_inline)) void *outer(void) {{
    >     6 |     return inner();
          7 | }}
    #1 {address:#x} in main {source}:9:5 {place}
    #2 0x10
    freed by thread 1, 3 operations earlier:
    #0 {address:#x} in outer {source}:6:12 {place}
          5 | static inline __attribute__((always_inline)) void *outer(void) {{
    >     6 |     return inner();
          7 | }}
    #1 {address:#x} in main {source}:9:5 {place}
    #2 0x10
    allocated by thread 1, 17 operations earlier (no stack was kept)
    to suppress it: double-free:^outer$

==4242== prog -x: 17 blocks allocated, 3 freed, at most 1.5 KiB at once
==4242== it ended by exit
==4242== ERROR SUMMARY: 1 errors from 1 contexts (suppressed: 0 from 0)
"
            )
        );
        assert_eq!((output.status.code(), stderr(&output)), (Some(1), String::new()));
    }
}

#[test]
fn without_debug_information_symbols_must_do() {
    let folder = Folder::new();
    let (program, address) = compiled(&folder, "plain", &["-g0", WITH_BUILD_ID]);
    let record = in_program(&folder, &program, address, BUILD_ID, 1);
    let place = format!("({}+{address:#x}) (BuildId: abcdef01)", text(&program));
    assert_eq!(frames(&record)[0], format!("    #0 {address:#x} in main {place}"));

    let (program, address) = compiled(&folder, "stripped", &["-g0", "-s", WITH_BUILD_ID]);
    let record = in_program(&folder, &program, address, BUILD_ID, 1);
    let place = format!("({}+{address:#x}) (BuildId: abcdef01)", text(&program));
    assert_eq!(frames(&record)[0], format!("    #0 {address:#x} {place}"));
}

#[test]
fn another_file_of_the_same_name_is_not_asked() {
    let folder = Folder::new();
    let (program, address) = compiled(&folder, "prog", &["-g", WITH_BUILD_ID]);
    let place = format!("({}+{address:#x})", text(&program));
    let record = in_program(&folder, &program, address, &[9, 9], LATER);
    assert_eq!(frames(&record)[0], format!("    #0 {address:#x} {place} (BuildId: 0909)"));
    let record = in_program(&folder, &program, address, b"", LATER);
    assert_eq!(frames(&record)[0], format!("    #0 {address:#x} {place}"));
    // Files that are gone, that are no files, or no programs.
    for path in ["/nonexistent/x", "[vdso]", "/", "/etc/passwd", "/dev/zero"] {
        let record = in_program(&folder, Path::new(path), address, BUILD_ID, LATER);
        let line = format!("    #0 {address:#x} ({path}+{address:#x}) (BuildId: abcdef01)");
        assert_eq!(frames(&record)[0], line);
    }
}

#[test]
fn without_build_ids_the_time_decides() {
    let folder = Folder::new();
    let (program, address) = compiled(&folder, "prog", &["-g", "-Wl,--build-id=none"]);
    let record = in_program(&folder, &program, address, b"", LATER);
    assert!(frames(&record)[0].contains(" in outer "), "{:?}", frames(&record));
    let record = in_program(&folder, &program, address, b"", 1);
    assert!(!frames(&record)[0].contains(" in "), "{:?}", frames(&record));
}

#[test]
fn damaged_programs_cost_names_at_most() {
    let folder = Folder::new();
    let (program, address) = compiled(&folder, "prog", &["-g", WITH_BUILD_ID]);
    let good = std::fs::read(&program).expect("there");
    for round in 0..200 {
        let mut bad = good.clone();
        // Headers more densely than the rest; the build-id stays, as it may.
        let at = if round < 100 { round * 7 } else { round * good.len() / 200 };
        bad[at] ^= 0xff;
        bad[good.len() - 1 - at] ^= 0x80;
        std::fs::write(&program, bad).expect("written");
        let record = in_program(&folder, &program, address, BUILD_ID, 1);
        let first = &frames(&record)[0];
        assert!(first.starts_with(&format!("    #0 {address:#x} ")), "{round}: {first}");
    }
}

#[test]
fn an_access_is_at_its_first_frame() {
    let folder = Folder::new();
    let (program, address) = compiled(&folder, "prog", &["-g", WITH_BUILD_ID]);
    let path = text(&program);
    // One byte of a module: the return address is behind it, the access in it.
    let module =
        Module { id: 1, start: address, end: address + 1, path: path.into(), ..Module::default() };
    let addresses = [address; 2];
    let stack = Stack { id: 1, frames: Frames::new(&addresses) };
    let finding = Finding {
        kind: FindingKind::UseAfterFree,
        call: Call::Access,
        access: Access::Read,
        offset: 8,
        freed: Moment::default(),
        ..double_free()
    };
    let entries = [process(1), module.into(), stack.into(), finding.into()];
    let record = folder.file("record", bytes(&entries));
    let output = report(&[], &record);
    let told = stdout(&output);
    let heading = "==4242==ERROR: heapwright: use-after-free: read at offset 8 of a 40-byte block \
                   after it was freed";
    assert_eq!(told.lines().next(), Some(heading), "{told}");
    assert_eq!(
        frames(&record),
        [format!("    #0 {address:#x} ({path}+{address:#x})"), format!("    #1 {address:#x}"),]
    );
    assert!(told.contains("it did not say how it ended"), "{told}");
}

#[test]
fn json_has_it_all() {
    let folder = Folder::new();
    let (program, address) = compiled(&folder, "prog", &["-g", WITH_BUILD_ID]);
    let record = in_program(&folder, &program, address, BUILD_ID, 1_700_000_000_000_000_000);
    let mut all = std::fs::read(&record).expect("there");
    let thread = Thread { number: 1, tid: 4242, name: "worker".into() };
    let site = Site { key: 0x1234, odds: 100, last: FindingKind::Overflow, hits: 2 };
    let note = Note { bytes: "a line".into() };
    all.extend(&bytes(&[thread.into(), site.into(), note.into()])[HEADER.len()..]);
    let record = folder.file("all", all);
    let output = report(&["--json"], &record);
    assert_eq!((output.status.code(), stderr(&output)), (Some(1), String::new()));
    let object: Value = serde_json::from_str(&stdout(&output)).expect("is JSON");
    assert_eq!(object["format"], json!(1));
    assert_eq!(object["processes"][0]["pid"], json!(4242));
    assert_eq!(object["processes"][0]["command"], json!(["prog", "-x"]));
    assert_eq!(object["processes"][0]["began"], json!("2023-11-14T22:13:20Z"));
    assert_eq!(object["processes"][0]["end"]["peak_live_bytes"], json!(1536));
    let error = &object["errors"][0];
    assert_eq!((&error["kind"], &error["times"]), (&json!("double-free"), &json!(1)));
    assert_eq!(error["suppression"], json!("double-free:^outer$"));
    let here = &error["here"];
    assert_eq!(here["thread_name"], json!("worker"));
    // The same frames: the same stack.
    assert_eq!((&here["stack"], &error["freed"]["stack"]), (&json!(1), &json!(1)));
    assert_eq!(error["allocated"]["stack"], json!(0));
    assert_eq!(object["stacks"][1], json!({"cut": false, "frames": [0, 1]}));
    let frame = &object["frames"][0];
    assert_eq!(frame["module"], json!(text(&program)));
    assert_eq!(frame["build_id"], json!("abcdef01"));
    assert_eq!(frame["functions"][1]["name"], json!("main"));
    assert_eq!(frame["functions"][1]["line"], json!(9));
    assert_eq!(object["frames"][1]["functions"], json!([]));
    assert_eq!(object["notes"], json!(["process 4242: a line"]));
    let summary = &object["summary"];
    assert_eq!((&summary["errors"], &summary["contexts"]), (&json!(1), &json!(1)));
}

#[test]
fn a_record_without_findings_is_a_success() {
    let folder = Folder::new();
    let record = folder.file("record", bytes(&[process(1), end(0)]));
    let output = report(&[], &record);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    assert_eq!(
        stdout(&output),
        "==4242== prog -x: 17 blocks allocated, 3 freed, at most 1.5 KiB at once\n\
         ==4242== it ended by exit\n\
         ==4242== ERROR SUMMARY: 0 errors from 0 contexts (suppressed: 0 from 0)\n"
    );
    // Found, but not written down.
    let record = folder.file("record", bytes(&[process(1), end(3)]));
    let output = report(&[], &record);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout(&output).contains("3 more findings were made again, or not written down"),
        "{}",
        stdout(&output)
    );
    // A process that was killed before anything was found.
    let record = folder.file("record", bytes(&[]));
    assert_eq!(report(&[], &record).status.code(), Some(0));
}

#[test]
fn a_damaged_record_is_told_as_far_as_it_goes() {
    let folder = Folder::new();
    let whole = bytes(&[process(1), double_free().into(), end(1)]);
    let before_end = bytes(&[process(1), double_free().into()]).len();
    let cut = folder.file("cut", &whole[..whole.len() - 3]);
    let output = report(&[], &cut);
    assert_eq!((output.status.code(), stderr(&output)), (Some(1), String::new()));
    let told = stdout(&output);
    assert!(told.starts_with("==4242==ERROR: heapwright: double-free: "), "{told}");
    let problem = format!(
        "the file ends in the middle of an entry at byte {before_end}: the process died while \
         writing, or the copy is incomplete"
    );
    let note = format!("{}: the record is damaged: {problem}", text(&cut));
    assert!(told.contains(&format!("\n==4242== note: {note}\n")), "{told}");
    let object: Value = serde_json::from_str(&stdout(&report(&["--json"], &cut))).expect("is JSON");
    assert_eq!(object["notes"], json!([note]));
    assert_eq!(object["errors"].as_array().map(Vec::len), Some(1));

    // What is left tells of nothing: there may have been something.
    let mut changed = whole;
    changed[HEADER.len() + 9] ^= 1;
    let output = report(&[], &folder.file("changed", changed));
    assert_eq!(output.status.code(), Some(2));
    let told = stdout(&output);
    assert!(told.contains(": the record is damaged: checksum at byte 16 does not"), "{told}");
}

#[test]
fn what_is_no_record_is_one_line() {
    let folder = Folder::new();
    let header = |at: usize, value: u8| {
        let mut header = HEADER;
        header[at] = value;
        header.to_vec()
    };
    for (content, reason) in [
        (b"hello, world, this is text".to_vec(), "not a debug record of heapwright"),
        (heapwright_record::Stats::zero().encode().to_vec(), "not a debug record of heapwright"),
        (Vec::new(), "the debug record ends within its header"),
        (HEADER[..10].to_vec(), "the debug record ends within its header"),
        (header(8, 2), "debug record of version 2; this command reads 1"),
        (header(15, 1), "debug record with flags 0x1000000, which this command does not know"),
    ] {
        let record = folder.file("record", content);
        let output = report(&[], &record);
        assert_eq!(output.status.code(), Some(2));
        let line = format!("heapwright: cannot read {}: {reason}\n", record.display());
        assert_eq!((stdout(&output), stderr(&output)), (String::new(), line));
    }
    let output = report(&[], &folder.path(""));
    assert_eq!(output.status.code(), Some(2));
    let line = ": there is no debug record in this folder\n";
    let output = report(&[], &Folder::new().path(""));
    assert!(stderr(&output).ends_with(line), "{}", stderr(&output));
    let output = report(&[], Path::new("/nonexistent/record"));
    assert_eq!(output.status.code(), Some(2));
    let line =
        "heapwright: cannot read /nonexistent/record: No such file or directory (os error 2)\n";
    assert_eq!(stderr(&output), line);
}

#[test]
fn the_command_line_is_documented() {
    let output = done(heapwright().args(["report", "--help"]));
    assert_eq!(output.status.code(), Some(0));
    let help = stdout(&output);
    for part in ["heapwright report [OPTIONS] <RECORD>...", "--json", "Exits with 0 if nothing was"]
    {
        assert!(help.contains(part), "{part}: {help}");
    }
    assert!(stdout(&done(heapwright().arg("--help"))).contains("\n  report "));
    let output = done(heapwright().arg("report"));
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        stderr(&output),
        "heapwright: the following required arguments were not provided: <RECORD>...; see \
         'heapwright --help'\n"
    );
}
