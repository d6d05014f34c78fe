//! `heapwright report`: debug records as text and as JSON, with names from compiled programs; and
//! files that are no records.

mod common;

use common::{Folder, bytes, done, heapwright, run, stderr, stdout, text};
use heapwright_record::debug::{
    Access, Call, Check, Checked, End, Ending, Entry, Finding, FindingKind, Frames, HEADER, Leak,
    Memory, Module, Moment, Note, Occasion, Origin, Process, Profile, Reach, Region, Root, Sampled,
    Site, Stack, Step, Thread, Times, Usage,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A time in 2100: programs compiled by the tests are older.
const LATER: u64 = 4_102_444_800_000_000_000;

/// A program that prints a return address into `outer`, which is inlined into `main`.
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

/// Returns the program's path, and the address, which is also the address in the file.
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
    End { findings, allocations: 17, frees: 3, peak_live_bytes: 1536, ending, signal: 0 }.into()
}

/// Writes the record of a double free, with the same stack twice. Returns its path.
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

/// Returns the first stack of a report.
fn frames(record: &Path) -> Vec<String> {
    let output = report(&[], record);
    assert_eq!((output.status.code(), stderr(&output)), (Some(1), String::new()));
    let text = stdout(&output);
    let is_frame = |line: &&str| line.starts_with("    #");
    let stack = text.lines().skip_while(|line| !is_frame(line)).take_while(is_frame);
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
        let place = format!("({}+{address:#x})", text(&program));
        let module = text(&program);
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
    to suppress it: double-free:outer@prog <- main@prog

==4242== BuildId abcdef01: {module}
==4242== prog -x: 17 blocks allocated, 3 freed, at most 1.5 KiB at once
==4242== it exited
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
    let place = format!("({}+{address:#x})", text(&program));
    assert_eq!(frames(&record)[0], format!("    #0 {address:#x} in main {place}"));

    let (program, address) = compiled(&folder, "stripped", &["-g0", "-s", WITH_BUILD_ID]);
    let record = in_program(&folder, &program, address, BUILD_ID, 1);
    let place = format!("({}+{address:#x})", text(&program));
    assert_eq!(frames(&record)[0], format!("    #0 {address:#x} {place}"));
}

/// Marks a section as compressed. It claims to expand to 3 GiB.
fn make_a_bomb_of(program: &Path, section: &str) {
    let mut file = std::fs::read(program).expect("there");
    let word = |file: &[u8], at: usize, bytes: usize| {
        let mut value = [0; 8];
        value[..bytes].copy_from_slice(&file[at..at + bytes]);
        u64::from_le_bytes(value) as usize
    };
    let (headers, count) = (word(&file, 40, 8), word(&file, 60, 2));
    let header = |number: usize| headers + 64 * number;
    let names = word(&file, header(word(&file, 62, 2)) + 24, 8);
    let is_it = |at: &usize| file[names + word(&file, *at, 4)..].starts_with(section.as_bytes());
    let at = (0..count).map(header).find(is_it).expect("has it");
    let compressed = [1, 3 << 30, 1].map(u64::to_le_bytes).concat();
    for (place, value) in [(8, word(&file, at + 8, 8) | 0x800), (24, file.len()), (32, 24)] {
        file[at + place..at + place + 8].copy_from_slice(&(value as u64).to_le_bytes());
    }
    file.extend(compressed);
    std::fs::write(program, file).expect("written");
}

#[test]
fn debug_information_that_expands_beyond_measure_is_left_out() {
    let folder = Folder::new();
    for section in [".debug_info", ".debug_str", ".debug_line"] {
        let (program, address) = compiled(&folder, "bomb", &["-g", WITH_BUILD_ID]);
        make_a_bomb_of(&program, section);
        let record = in_program(&folder, &program, address, BUILD_ID, 1);
        let output = report(&[], &record);
        assert_eq!(output.status.code(), Some(1), "{section}");
        let said = stderr(&output);
        let why = "bomb: its debug information gives more than 16 MiB";
        assert!(said.contains(why) && said.lines().count() == 1, "{section}: {said}");
        let place = format!("({}+{address:#x})", text(&program));
        let first = format!("    #0 {address:#x} in main {place}");
        assert!(stdout(&output).contains(&first), "{section}: {}", stdout(&output));
    }
}

/// A C++ program that prints an address in a function with a mangled name.
const CXX: &str = r"#include <cstdio>
namespace shop { struct Cart { __attribute__((noinline)) void *add(const char *, int) {
    return __builtin_return_address(0);
} }; template <typename T> __attribute__((noinline)) void fill(T *cart) {
    printf('%p', cart->add(nullptr, 1));
    asm volatile('');
} }
int main() { shop::Cart cart; shop::fill(&cart); }
";

#[test]
fn names_are_demangled_and_suppressions_know_both() {
    let folder = Folder::new();
    let fixed = ["-x", "c++", "-g", "-O1", "-no-pie", "-fno-pie", WITH_BUILD_ID];
    let source = CXX.replace('\'', "\"");
    let program = folder.compile("shop", &fixed, &source);
    let printed = stdout(&done(&mut Command::new(&program)));
    let address = u64::from_str_radix(&printed[2..], 16).expect("is an address");
    let record = in_program(&folder, &program, address, BUILD_ID, 1);
    let first = &frames(&record)[0];
    assert!(first.contains(" in void shop::fill<shop::Cart>(shop::Cart*) "), "{first}");
    let printed = stdout(&report(&["--gen-suppressions", "valgrind"], &record));
    let block = "{\n   double-free in prog -x\n   Heapwright:double-free\n   fun:free\n   \
                 fun:_ZN4shop4fillINS_4CartEEEvPT_\n   obj:*\n}\n";
    assert!(printed.contains(block), "{printed}");
    for (name, text) in [
        ("block", block),
        ("mangled", "double-free:_ZN4shop4fill"),
        ("line", "double-free:^void shop::fill<shop::Cart>(shop::Cart*)$"),
    ] {
        let file = folder.file(name, text);
        let output = report(&["--suppress", file.to_str().expect("is text")], &record);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stdout(&output));
    }
    let printed = stdout(&report(&["--gen-suppressions", "no"], &record));
    assert!(!printed.contains("suppress it"), "{printed}");
}

#[test]
fn debug_information_is_found_where_it_was_put() {
    let folder = Folder::new();
    let objcopy = |words: &[&str]| {
        let output = done(Command::new("objcopy").args(words));
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    };
    for build_id in [WITH_BUILD_ID, "-Wl,--build-id=none"] {
        let id = if build_id == WITH_BUILD_ID { BUILD_ID } else { b"" };
        for place in ["prog.debug", ".debug/prog.debug"] {
            let (program, address) = compiled(&folder, "prog", &["-g", build_id]);
            std::fs::create_dir_all(folder.path(".debug")).expect("made");
            let separate = folder.path("prog.debug");
            objcopy(&["--only-keep-debug", text(&program), text(&separate)]);
            objcopy(&["--strip-all", text(&program)]);
            let link = format!("--add-gnu-debuglink={}", text(&separate));
            objcopy(&[&link, text(&program)]);
            std::fs::rename(&separate, folder.path(place)).expect("moved");
            let record = in_program(&folder, &program, address, id, LATER);
            let first = frames(&record).remove(0);
            assert!(
                first.contains(" in outer ") && first.contains("prog.c:6:"),
                "{place}: {first}"
            );
            // Another file of that name is not used.
            std::fs::write(folder.path(place), "something else").expect("written");
            let first = frames(&record).remove(0);
            assert!(!first.contains(" in "), "{place}: {first}");
            std::fs::remove_file(folder.path(place)).expect("removed");
        }
    }
}

#[test]
fn units_in_files_of_their_own_are_found() {
    let folder = Folder::new();
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let (program, address) =
            compiled(&folder, "split", &["-g", "-gsplit-dwarf", version, WITH_BUILD_ID]);
        let record = in_program(&folder, &program, address, BUILD_ID, LATER);
        let first = frames(&record).remove(0);
        assert!(first.contains(" in outer ") && first.contains("split.c:6:"), "{version}: {first}");
        // All units are in one package, beside the program.
        let package = format!("{}.dwp", text(&program));
        let units: Vec<PathBuf> = std::fs::read_dir(folder.path(""))
            .expect("there")
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "dwo"))
            .collect();
        assert!(!units.is_empty());
        let tool = ["llvm-dwp", "dwp"].into_iter().find(|tool| {
            let made = Command::new(tool).args(["-e", text(&program), "-o", &package]).output();
            made.is_ok_and(|output| output.status.success())
        });
        for unit in units {
            std::fs::remove_file(unit).expect("removed");
        }
        let first = frames(&record).remove(0);
        // Without a tool that makes the package, names come from symbols.
        let expected = if tool.is_some() { " in outer " } else { " in main " };
        assert!(first.contains(expected), "{version}, {tool:?}: {first}");
        let _ = std::fs::remove_file(package);
    }
}

#[test]
fn what_would_move_the_cursor_is_spelt_out() {
    let folder = Folder::new();
    let thread = Thread { number: 1, tid: 7, name: "worker\n\x1b[31m".into() };
    let addresses = [0x10_u64; 70];
    let cut = Stack { id: 1, frames: Frames::new(&addresses) };
    let record = bytes(&[process(1), thread.into(), cut.into(), double_free().into()]);
    let output = report(&[], &folder.file("record", record));
    let printed = stdout(&output);
    assert!(printed.contains("\n    here, thread 1 (worker\\n\\u{1b}[31m):\n"), "{printed}");
    assert!(
        printed.contains("\n    #63 0x10\n    (more frames were not kept: see --frames)\n"),
        "{printed}"
    );
}

#[test]
fn another_file_of_the_same_name_is_not_asked() {
    let folder = Folder::new();
    let (program, address) = compiled(&folder, "prog", &["-g", WITH_BUILD_ID]);
    let place = format!("({}+{address:#x})", text(&program));
    let record = in_program(&folder, &program, address, &[9, 9], LATER);
    assert_eq!(frames(&record)[0], format!("    #0 {address:#x} {place}"));
    let record = in_program(&folder, &program, address, b"", LATER);
    assert_eq!(frames(&record)[0], format!("    #0 {address:#x} {place}"));
    // At these paths there is nothing, or no file, or no program.
    for path in ["/nonexistent/x", "[vdso]", "/", "/etc/passwd", "/dev/zero"] {
        let record = in_program(&folder, Path::new(path), address, BUILD_ID, LATER);
        let line = format!("    #0 {address:#x} ({path}+{address:#x})");
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
        // More bytes of the headers are damaged than of the rest; the build-id stays.
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
    // The module has one byte: the return address is behind it, and the access in it.
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
    let printed = stdout(&output);
    let heading = "==4242==ERROR: heapwright: use-after-free: read at offset 8 of a 40-byte block \
                   after it was freed";
    assert!(printed.lines().any(|line| line == heading), "{printed}");
    assert_eq!(
        frames(&record),
        [format!("    #0 {address:#x} ({path}+{address:#x})"), format!("    #1 {address:#x}"),]
    );
    assert!(printed.contains("it wrote nothing at its end"), "{printed}");
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
    let output = report(&["--format", "json"], &record);
    assert_eq!((output.status.code(), stderr(&output)), (Some(1), String::new()));
    let object: Value = serde_json::from_str(&stdout(&output)).expect("is JSON");
    assert_eq!(object["format"], json!(1));
    assert_eq!(object["processes"][0]["pid"], json!(4242));
    assert_eq!(object["processes"][0]["command"], json!(["prog", "-x"]));
    assert_eq!(object["processes"][0]["began"], json!("2023-11-14T22:13:20Z"));
    assert_eq!(object["processes"][0]["end"]["peak_live_bytes"], json!(1536));
    let error = &object["errors"][0];
    assert_eq!((&error["kind"], &error["times"]), (&json!("double-free"), &json!(1)));
    assert_eq!(error["suppression"], json!("double-free:outer@prog <- main@prog"));
    let here = &error["here"];
    assert_eq!(here["thread_name"], json!("worker"));
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

/// Returns a record of three leak checks. The second, the last finished, has a group of each fate.
fn leaking(pid: u32, time: u64, scale: u64) -> Vec<u8> {
    let first = Process { pid, parent: 1, time, command: "prog\0".into(), ..Process::default() };
    let module = Module {
        id: 1,
        start: u64::from(pid) << 20,
        end: (u64::from(pid) + 1) << 20,
        bias: u64::from(pid) << 20,
        build_id: (&[0xab_u8][..]).into(),
        path: "/nonexistent/prog".into(),
    };
    let mut entries = vec![first.into(), module.into()];
    let frames: Vec<[u64; 2]> =
        (0..4).map(|at| [module.bias + 0x100 * (at + 1), module.bias + 0x10]).collect();
    for (id, frames) in (1..).zip(&frames) {
        entries.push(Stack { id, frames: Frames::new(frames) }.into());
    }
    let thread = Thread { number: 1, tid: pid, name: "main".into() };
    let occasion = Occasion::Exit;
    let check =
        |number| Check { number, occasion, ns: 5_000_000_000, threads: 1, ..Check::default() };
    let leak = |check, reach, stack, blocks| Leak {
        check,
        reach,
        origin: Origin::Malloc,
        stack,
        thread: 1,
        blocks: blocks * scale,
        bytes: 40 * blocks * scale,
        block: 0x7000_0000,
        size: 40,
        oldest_ns: 1_000_000_000,
        youngest_ns: 2_000_000_000,
        ..Leak::default()
    };
    let definite = Leak {
        indirect_blocks: 20 * scale,
        indirect_bytes: 4000 * scale,
        ..leak(2, Reach::Definite, 1, 1)
    };
    let reachable = Leak {
        root: Root::Globals,
        root_address: module.bias + 0x4010,
        ..leak(2, Reach::Reachable, 4, 3)
    };
    let possible = Leak {
        root: Root::Stack,
        root_address: 0x7fff_0000,
        root_thread: 1,
        ..leak(2, Reach::Possible, 3, 2)
    };
    let step = |stack| Step { block: 0x7000_1000, size: 64, offset: 16, stack };
    entries.extend([
        Entry::from(thread),
        check(1).into(),
        // Of an earlier check: the leak was freed, or the next check finds it again.
        leak(1, Reach::Definite, 4, 1000).into(),
        Checked { check: 1, took_ns: 1, ..Checked::default() }.into(),
        check(2).into(),
        definite.into(),
        leak(2, Reach::Indirect, 2, 20).into(),
        possible.into(),
        reachable.into(),
        step(1).into(),
        step(2).into(),
        Checked { check: 2, took_ns: 1, ..Checked::default() }.into(),
        check(3).into(),
        leak(3, Reach::Definite, 4, 1000).into(),
    ]);
    bytes(&entries)
}

#[test]
fn leaks_are_those_of_the_last_check_that_was_finished() {
    let folder = Folder::new();
    let record = folder.file("leaks", leaking(7, 5, 1));
    let output = report(&[], &record);
    assert_eq!((output.status.code(), stderr(&output)), (Some(1), String::new()));
    assert_eq!(
        stdout(&output),
        "\
==7==LEAK: heapwright: definitely-lost: 40 bytes in 1 block (and 4,000 bytes in 20 blocks that \
         only they led to), allocated 3.00 to 4.00 s before the check
Direct leak of 40 bytes in 1 object allocated from:
    #0 0x700100 (/nonexistent/prog+0x100)
    #1 0x700010 (/nonexistent/prog+0x10)
    to suppress it: no function has a name here; for a block of its files: --gen-suppressions valgrind

==7== note: process 7: a leak check did not finish
==7== BuildId ab: /nonexistent/prog
==7== prog
==7== it wrote nothing at its end: it was killed, or is still running
==7== LEAK SUMMARY:
==7==    definitely lost: 40 bytes in 1 blocks
==7==    indirectly lost: 800 bytes in 20 blocks
==7==      possibly lost: 80 bytes in 2 blocks (listed by --show possible)
==7==    still reachable: 120 bytes in 3 blocks
==7==         suppressed: 0 bytes in 0 blocks
==7== ERROR SUMMARY: 1 errors from 1 contexts (suppressed: 0 from 0)
"
    );
    let all = stdout(&report(&["--show", "all"], &record));
    for part in [
        "\nIndirect leak of 800 bytes in 20 objects allocated from:\n    #0 0x700200 ",
        "\n    only reachable from the stack of thread 1 (main) at 0x7fff0000\n",
        "\n    reachable from data at 0x704010 of /nonexistent/prog, via a 64-byte block (offset \
         16),\n        then a 64-byte block (offset 16)\n",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    let few = stdout(&report(&["--show", "all", "--limit", "1"], &record));
    assert_eq!(few.matches("==LEAK").count(), 1, "{few}");
    assert!(few.contains("\n3 smaller groups of leaks are only in the sums (see --limit)\n"));
    let output = report(&["--fail-on", "errors,growth", "--show", "none"], &record);
    assert_eq!(output.status.code(), Some(0));
    assert!(!stdout(&output).contains("==LEAK"), "{}", stdout(&output));
    let output = report(&["--at", "1"], &record);
    assert!(
        stdout(&output).contains("definitely lost: 40,000 bytes in 1,000"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn what_has_one_cause_is_reported_once() {
    let folder = Folder::new();
    // In another process the program is loaded elsewhere.
    folder.file("record.7", leaking(7, 5, 1));
    folder.file("record.8", leaking(8, 6, 10));
    folder.file("notes", "not a record");
    let output = report(&[], &folder.path(""));
    let printed = stdout(&output);
    for part in [
        "==7==LEAK: heapwright: definitely-lost: 440 bytes in 11 blocks (and 44,000 bytes in 220 ",
        "\n    found in 2 processes\n",
        "==7==    still reachable: 1,320 bytes in 33 blocks\n",
        "\n==8== prog\n",
        "\n==7== 2 processes in all: 0 blocks allocated, 0 freed\n",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert_eq!(printed.matches("==LEAK: ").count(), 1, "{printed}");

    // Two programs of one process have the same finding, one with counts.
    let address = [0x10_0100_u64, 0x10_0010];
    let module = |start| Module {
        id: 1,
        start,
        end: start + 0x10_0000,
        bias: start,
        path: "/nonexistent/prog".into(),
        ..Module::default()
    };
    let moved = address.map(|address| address + 0x50_0000);
    let stack = |frames| Entry::from(Stack { id: 1, frames: Frames::new(frames) });
    let finding = Finding { freed: Moment::default(), ..double_free() };
    let times = |times| Entry::from(Times { finding: 0, times });
    let entries = [
        process(1),
        module(0x10_0000).into(),
        stack(&address),
        finding.into(),
        times(5),
        times(70),
        process(2),
        module(0x60_0000).into(),
        stack(&moved),
        finding.into(),
        end(1),
    ];
    let record = folder.file("twice", bytes(&entries));
    let printed = stdout(&report(&[], &record));
    assert!(printed.contains("\n    found 71 times in 2 processes\n"), "{printed}");
    assert!(printed.ends_with("ERROR SUMMARY: 71 errors from 1 contexts (suppressed: 0 from 0)\n"));
}

#[test]
fn roots_are_named_by_the_programs_variables() {
    let folder = Folder::new();
    let source = "long cache[8] = {1}; static long hidden[4]; int main(void) { return hidden[1]; }";
    let fixed = ["-O0", "-no-pie", "-fno-pie", "-g", WITH_BUILD_ID];
    let program = folder.compile("roots", &fixed, source);
    let symbols = stdout(&done(Command::new("nm").arg(&program)));
    for (name, at, expected) in
        [("cache", 0x10, "cache+0x10"), ("hidden", 0, "hidden"), ("hidden", 8, "hidden+0x8")]
    {
        let line = symbols.lines().find(|line| line.ends_with(&format!(" {name}"))).expect("there");
        let address = u64::from_str_radix(&line[..16], 16).expect("is an address") + at;
        let path = text(&program);
        let (start, end) = (address & !0xffff, (address | 0xffff) + 1);
        let module =
            Module { id: 1, start, end, bias: 0, build_id: BUILD_ID.into(), path: path.into() };
        let leak = Leak {
            check: 1,
            reach: Reach::Reachable,
            blocks: 1,
            bytes: 40,
            root: Root::Globals,
            root_address: address,
            ..Leak::default()
        };
        let entries = [
            process(LATER),
            module.into(),
            Check { number: 1, occasion: Occasion::Exit, ..Check::default() }.into(),
            leak.into(),
            Checked { check: 1, ..Checked::default() }.into(),
        ];
        let record = folder.file("record", bytes(&entries));
        let printed = stdout(&report(&["--show", "reachable"], &record));
        let line = format!("\n    reachable from global `{expected}` of {path}\n");
        assert!(printed.contains(&line), "{line}: {printed}");
    }
}

#[test]
fn what_grows_and_grows_is_reported() {
    let folder = Folder::new();
    let frames = [[0x100_u64], [0x200]];
    let stack =
        |at: usize| Entry::from(Stack { id: at as u32 + 1, frames: Frames::new(&frames[at]) });
    let mut entries = vec![process(1), stack(0), stack(1)];
    for number in 1..=30_u32 {
        let ns = u64::from(number) * 1_000_000_000;
        let usage = |stack, bytes| Entry::from(Usage { check: number, stack, blocks: 1, bytes });
        entries.extend([
            Check { number, occasion: Occasion::Time, ns, ..Check::default() }.into(),
            usage(1, u64::from(number) << 20),
            usage(2, 50 << 20),
            Checked { check: number, ..Checked::default() }.into(),
        ]);
    }
    let record = folder.file("grows", bytes(&entries));
    let output = report(&[], &record);
    assert_eq!(output.status.code(), Some(0));
    let printed = stdout(&output);
    let line = "==4242==GROWTH: heapwright: live blocks grow by 1.0 MiB a second, from 1.0 MiB to 30.0 MiB in 29.00 s (100 % of later counts are higher)\n\
                Live blocks allocated from:\n    #0 0x100\n";
    assert!(printed.contains(line), "{printed}");
    assert_eq!(printed.matches("==GROWTH").count(), 1);
    assert!(!printed.contains("LEAK SUMMARY"), "{printed}");
    assert_eq!(report(&["--fail-on", "growth"], &record).status.code(), Some(1));
    let object: Value =
        serde_json::from_str(&stdout(&report(&["--format", "json"], &record))).expect("is JSON");
    assert_eq!(object["growths"][0]["slope"], json!(1_048_576.0));
    assert_eq!(object["processes"][0]["checks"][29]["usage"][0]["bytes"], json!(50 << 20));
}

#[test]
fn a_profile_says_what_its_blocks_are() {
    let folder = Folder::new();
    let mut entries = vec![
        process(1),
        Stack { id: 1, frames: Frames::new(&[0x100]) }.into(),
        Check { number: 1, occasion: Occasion::Profile, ..Check::default() }.into(),
        Profile { check: 1, period: 512 << 10, ..Profile::default() }.into(),
    ];
    // An older library recorded no kind.
    let kinds = [Memory::Block, Memory::Pool, Memory::Arena, Memory::Collected, Memory::Unknown];
    for memory in kinds {
        let amount = u64::from(memory as u8) + 2;
        entries.push(
            Sampled {
                check: 1,
                stack: 1,
                live_samples: 1,
                live_blocks: amount,
                live_bytes: amount << 20,
                memory,
                ..Sampled::default()
            }
            .into(),
        );
    }
    entries.push(Checked { check: 1, ..Checked::default() }.into());
    let record = folder.file("profile", bytes(&entries));
    let printed = stdout(&report(&["--figure", "live"], &record));
    let nouns =
        ["3 blocks", "4 pool segments", "5 arena chunks", "6 collected heap pages", "2 blocks"];
    for noun in nouns {
        assert!(printed.contains(&format!(" in {noun} (")), "{noun}: {printed}");
    }
    let object: Value =
        serde_json::from_str(&stdout(&report(&["--format", "json"], &record))).expect("is JSON");
    let sites = &object["processes"][0]["checks"][0]["profile"]["sites"];
    let said: Vec<_> = (0..5).map(|site| sites[site]["memory"].clone()).collect();
    assert_eq!(said, ["block", "pool", "arena", "collected", "unknown"]);
}

#[test]
fn a_limit_is_said() {
    let folder = Folder::new();
    let mut entries = vec![process(1)];
    for size in 1..=10 {
        let here = Moment::default();
        entries.push(Finding { size, here, freed: here, allocated: here, ..double_free() }.into());
    }
    let record = folder.file("many", bytes(&entries));
    let printed = stdout(&report(&["--limit", "3"], &record));
    assert_eq!(printed.matches("==ERROR").count(), 3, "{printed}");
    // A record that is named twice counts once.
    let again =
        done(heapwright().args(["report", "--limit", "3"]).args([&folder.path(""), &record]));
    assert_eq!(stdout(&again), printed);
    let line = "== the report shows the first 3 of 10 different errors (see --limit)\n";
    assert!(printed.contains(line), "{printed}");
    assert!(printed.contains("ERROR SUMMARY: 10 errors from 10 contexts"), "{printed}");
    let printed = stdout(&report(&["--limit", "0"], &record));
    assert_eq!(printed.matches("==ERROR").count(), 10, "{printed}");
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
         ==4242== it exited\n\
         ==4242== ERROR SUMMARY: 0 errors from 0 contexts (suppressed: 0 from 0)\n"
    );
    // The record's end counts findings that were not written.
    let record = folder.file("record", bytes(&[process(1), end(3)]));
    let output = report(&[], &record);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout(&output).contains("3 more findings were repetitions, or not written to the record"),
        "{}",
        stdout(&output)
    );
    let output = report(&["--at", "0"], &record);
    assert_eq!(output.status.code(), Some(2));
    let line = ": there is no leak check at or before that point\n";
    assert!(stderr(&output).ends_with(line), "{}", stderr(&output));
    let record = folder.file("record", bytes(&[process(1), end(1)]));
    let printed = stdout(&report(&[], &record));
    let line = "== 1 more finding was a repetition, or not written to the record\n";
    assert!(printed.contains(line), "{printed}");
    assert_eq!(report(&["--skip", "prog"], &record).status.code(), Some(0));
    let record = folder.file("record", bytes(&[]));
    assert_eq!(report(&[], &record).status.code(), Some(0));
}

#[test]
fn a_damaged_record_is_read_as_far_as_it_goes() {
    let folder = Folder::new();
    let whole = bytes(&[process(1), double_free().into(), end(1)]);
    let before_end = bytes(&[process(1), double_free().into()]).len();
    let cut = folder.file("cut", &whole[..whole.len() - 3]);
    let output = report(&[], &cut);
    assert_eq!((output.status.code(), stderr(&output)), (Some(1), String::new()));
    let printed = stdout(&output);
    // The record has no end.
    let first = "==4242== INCOMPLETE: process 4242 (prog) ended without a last look";
    assert!(printed.starts_with(first), "{printed}");
    assert!(printed.contains("\n==4242==ERROR: heapwright: double-free: "), "{printed}");
    let problem = format!(
        "the file ends in the middle of an entry at byte {before_end}: the process died while \
         writing, or the copy is incomplete"
    );
    let note = format!("{}: the record is damaged: {problem}", text(&cut));
    assert!(printed.contains(&format!("\n==4242== note: {note}\n")), "{printed}");
    let object: Value =
        serde_json::from_str(&stdout(&report(&["--format", "json"], &cut))).expect("is JSON");
    assert_eq!(object["notes"], json!([note]));
    for format in ["junit", "memcheck-xml", "flamegraph", "folded", "pprof", "dhat"] {
        let said = stderr(&report(&["--format", format], &cut));
        assert!(said.contains(&format!("heapwright: {note}\n")), "{format}: {said}");
        assert_eq!(said.contains("ended without a last look"), format != "junit", "{said}");
    }
    assert_eq!(object["errors"].as_array().map(Vec::len), Some(1));

    // The readable part has no finding, but there may have been one.
    let mut changed = whole;
    changed[HEADER.len() + 9] ^= 1;
    let output = report(&[], &folder.file("changed", changed));
    assert_eq!(output.status.code(), Some(2));
    let printed = stdout(&output);
    assert!(printed.contains(": the record is damaged: checksum at byte 16 does not"), "{printed}");
}

const WHAT_IS_ONE: &str = "; records are what 'heapwright check --keep FOLDER' and the library's options record= and profile= leave";

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
        (header(8, 3), "debug record of version 3; this command reads 2"),
        (header(15, 1), "debug record with flags 0x1000000, which this command does not know"),
    ] {
        let record = folder.file("record", content);
        let output = report(&[], &record);
        assert_eq!(output.status.code(), Some(2));
        let hint = if reason.starts_with("not a") { WHAT_IS_ONE } else { "" };
        let line = format!("heapwright: cannot read {}: {reason}{hint}\n", record.display());
        assert_eq!((stdout(&output), stderr(&output)), (String::new(), line));
    }
    let output = report(&[], &folder.path(""));
    assert_eq!(output.status.code(), Some(2));
    let line = format!(": there is no debug record in this folder{WHAT_IS_ONE}\n");
    let output = report(&[], &Folder::new().path(""));
    assert!(stderr(&output).ends_with(&line), "{}", stderr(&output));
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
    for part in [
        "heapwright report [OPTIONS] <RECORD>...",
        "--format",
        "json",
        "Exits with 0 if nothing was",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
    assert!(stdout(&done(heapwright().arg("--help"))).contains("\n  report "));
    let output = done(heapwright().arg("report"));
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        stderr(&output),
        "heapwright: the following required arguments were not provided: <RECORD>...; see \
         'heapwright report --help'\n"
    );
}

/// A read of a freed block.
const LATE_READ: &str = "
#include <stdlib.h>
int main(void) {
    volatile char *block = malloc(40);
    free((void *)block);
    return block[7];
}
";

#[test]
fn a_guarded_block_of_fast_mode_is_reported_from_its_record() {
    let folder = Folder::new();
    let program = folder.compile("prog", &["-g", "-O0", "-Wno-use-after-free"], LATE_READ);
    let prefix = folder.path("record");
    let record = format!("record={}", prefix.display());
    let flags = ["--option", "guard=sample:1", "--option", &record];
    let output = done(&mut run(&flags, &[text(&program)]));
    assert!(stderr(&output).contains("use-after-free"), "{}", stderr(&output));
    let records = std::fs::read_dir(folder.path("")).expect("there").flatten();
    let mut records = records.filter(|f| f.file_name().to_string_lossy().starts_with("record."));
    let output = report(&[], &records.next().expect("a record").path());
    let printed = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{printed}{}", stderr(&output));
    for part in [
        "use-after-free: read at offset 7 of a 40-byte block after it was freed",
        "prog.c:6:",
        "    >     6 |     return block[7];",
        "    freed by thread 1",
        "    >     5 |     free((void *)block);",
        "    allocated by thread 1",
        "    >     4 |     volatile char *block = malloc(40);",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
}

#[test]
fn a_findings_page_is_printed() {
    let list = stdout(&done(heapwright().arg("findings")));
    assert!(list.lines().any(|line| line.starts_with("double-free ")), "{list}");
    let page = stdout(&done(heapwright().args(["findings", "double-free"])));
    assert!(page.starts_with("double-free\n\n") && page.contains("Fix\n"), "{page}");
    let output = done(heapwright().args(["findings", "nonsense"]));
    assert_eq!((output.status.code(), stderr(&output).lines().count()), (Some(2), 1));
}
