//! `heapwright record` and `replay`: real programs, traces of other tools, and other files.

mod common;

use common::{Folder, done, heapwright, stderr, stdout, text};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Output;

fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces")
}

fn handover(folder: &Folder) -> PathBuf {
    let source = fs::read_to_string(traces().join("handover.c")).expect("is there");
    folder.compile("handover", &["-O1", "-pthread", "-fno-builtin"], &source)
}

fn record(file: &Path, words: &[&str]) -> Output {
    done(heapwright().args(["record", "-o", text(file), "--"]).args(words))
}

fn replay(file: &Path, flags: &[&str]) -> Output {
    done(heapwright().args(["replay", text(file)]).args(flags))
}

/// Replays a trace. Returns the measurements, which must be right.
#[track_caller]
fn replayed(file: &Path, flags: &[&str]) -> Value {
    let output = replay(file, &[&["--rounds", "2", "--format", "json"], flags].concat());
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let value: Value = serde_json::from_str(&stdout(&output)).expect("is JSON");
    assert_eq!(value["schema"], "heapwright-replay/1");
    for row in rows(&value) {
        let runs = row["runs"].as_array().expect("has runs");
        assert_eq!(runs.len(), 2, "{row:#}");
        for run in runs {
            assert_eq!(run["operations"], value["trace"]["operations"], "{row:#}");
            assert!(run["wall_ns"].as_u64() > Some(0), "{row:#}");
            assert!(run["peak_bytes"].as_u64() >= run["left_bytes"].as_u64(), "{row:#}");
        }
    }
    value
}

fn rows(value: &Value) -> &Vec<Value> {
    value["rows"].as_array().expect("has rows")
}

fn names(value: &Value) -> Vec<&str> {
    rows(value).iter().map(|row| row["allocator"]["name"].as_str().expect("named")).collect()
}

fn number(value: &Value, name: &str) -> u64 {
    value["trace"][name].as_u64().unwrap_or_else(|| panic!("{name} is no number: {value:#}"))
}

/// Asserts one line on stderr, an exit code of 2, and nothing on stdout. Returns the line.
#[track_caller]
fn refused(output: &Output) -> String {
    let printed = stderr(output);
    assert_eq!((output.status.code(), &*stdout(output)), (Some(2), ""), "{printed}");
    assert_eq!(printed.lines().count(), 1, "{printed}");
    printed.trim_end().to_owned()
}

#[test]
fn the_trace_that_lies_here_is_replayed() {
    let file = traces().join("handover.trace");
    let value = replayed(&file, &[]);
    assert_eq!(names(&value), ["glibc", "heapwright"]);
    assert_eq!(value["trace"]["program"], "handover");
    assert_eq!((number(&value, "threads"), number(&value, "reallocs")), (13, 80));
    assert_eq!(number(&value, "frees"), 480);
    // In each round the last thread frees 60 blocks, and has made none of them.
    assert_eq!(number(&value, "cross_thread_frees"), 240);
    for flags in [&["--sequential"][..], &["--touch", "all"], &["--touch", "none"]] {
        replayed(&file, flags);
    }
    let output = replay(&file, &["--rounds", "1"]);
    let printed = stdout(&output);
    assert!(
        printed.starts_with("heapwright replay: handover.trace (handover)\n13 threads, "),
        "{printed}"
    );
    assert!(printed.contains("\nglibc ") && printed.contains("\nheapwright "), "{printed}");
}

#[test]
fn a_threaded_program_is_recorded_as_it_is() {
    let folder = Folder::new();
    let program = handover(&folder);
    let file = folder.path("out.trace");
    let output = record(&file, &[text(&program)]);
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = stderr(&output);
    assert!(printed.starts_with(&format!("heapwright: wrote {} (", file.display())), "{printed}");
    assert!(printed.contains(": handover: 13 threads, "), "{printed}");
    let (ours, theirs) = (replayed(&file, &[]), replayed(&traces().join("handover.trace"), &[]));
    for name in ["threads", "reallocs", "cross_thread_frees"] {
        assert_eq!(number(&ours, name), number(&theirs, name), "{name}");
    }
    // The trace contains no path of this machine.
    assert_eq!(ours["trace"]["program"], "handover");
}

#[test]
fn a_forked_child_has_a_story_of_its_own() {
    let folder = Folder::new();
    let program = handover(&folder);
    let file = folder.path("out.trace");
    let output = record(&file, &[text(&program), "fork"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("; and 1 other process"), "{}", stderr(&output));
    let list = stdout(&replay(&file, &["--list"]));
    let lines: Vec<&str> = list.lines().collect();
    let [parent, child] = &lines[..] else { panic!("{list}") };
    assert!(parent.contains("handover: 13 threads, "), "{list}");
    assert!(child.contains("handover: 1 thread, 98 operations, "), "{list}");

    let pid = child.split_whitespace().next().expect("has a number");
    let value = replayed(&file, &["--process", pid]);
    assert_eq!((number(&value, "operations"), number(&value, "left_blocks")), (98, 0));
    let notes = value["notes"].to_string();
    assert!(notes.contains("1 free of blocks whose allocation is not in the trace"), "{notes}");
    assert!(notes.contains("forked"), "{notes}");
    let printed = refused(&replay(&file, &["--process", "1"]));
    assert!(printed.contains(": no process 1; it has "), "{printed}");
}

#[test]
fn python_is_recorded_and_replayed() {
    let folder = Folder::new();
    let file = folder.path("python.trace");
    let script = "import json; print(len(json.dumps(list(range(2000)))))";
    let plain = done(std::process::Command::new("python3").args(["-c", script]));
    let output = done(heapwright().env("PYTHONMALLOC", "malloc").args([
        "record",
        "-o",
        text(&file),
        "--",
        "python3",
        "-c",
        script,
    ]));
    assert_eq!((stdout(&output), output.status), (stdout(&plain), plain.status));
    let value = replayed(&file, &[]);
    assert!(number(&value, "operations") > 20_000, "{value:#}");
    let live = number(&value, "peak_live_bytes");
    assert!((200 << 10..64 << 20).contains(&live), "{live}");
}

#[test]
fn the_programs_end_is_handed_on() {
    let folder = Folder::new();
    let file = folder.path("out.trace");
    let output = record(&file, &["sh", "-c", "exit 7"]);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    let output = record(&file, &["sh", "-c", "echo there; kill -KILL $$"]);
    assert_eq!(output.status.signal(), Some(9), "{}", stderr(&output));
    assert_eq!(stdout(&output), "there\n");
    let quiet = done(heapwright().args(["record", "--quiet", "-o", text(&file), "ls", "/"]));
    assert_eq!((quiet.status.code(), &*stderr(&quiet)), (Some(0), ""));
    let program = folder.compile("idle", &[], "int main(void) { return 0; }");
    let printed = stderr(&record(&folder.path("none"), &[text(&program)]));
    assert!(printed.ends_with("it never asked for memory\n"), "{printed}");
    // Few calls stay in the program's memory until its end.
    let program = folder.compile(
        "sudden",
        &["-O0"],
        "#include <signal.h>\n#include <stdlib.h>\n\
         int main(void) { free(malloc(9)); return raise(SIGKILL); }",
    );
    let printed = stderr(&record(&folder.path("none"), &[text(&program)]));
    assert!(printed.ends_with("it ended before it could write its calls\n"), "{printed}");
    assert!(!folder.path("none").exists());
}

/// A killed program loses only the part of its trace that it had not written yet.
#[test]
fn a_killed_program_leaves_what_it_had_written() {
    let folder = Folder::new();
    let program = folder.compile(
        "killed",
        &["-O1", "-fno-builtin"],
        "#include <signal.h>\n#include <stdlib.h>\n\
         int main(void) { for (int i = 0; i < 100000; i++) free(malloc(i % 500)); raise(SIGKILL); }",
    );
    let file = folder.path("out.trace");
    let output = record(&file, &[text(&program)]);
    assert_eq!(output.status.signal(), Some(9));
    assert!(stderr(&output).contains("killed, without its end: 1 thread, "), "{}", stderr(&output));
    let value = replayed(&file, &[]);
    let operations = number(&value, "operations");
    assert!((150_000..=200_000).contains(&operations), "{operations}");
    assert!(value["notes"].to_string().contains("its end is missing"), "{:#}", value["notes"]);
}

#[test]
fn what_cannot_be_recorded_is_reported_and_spoils_nothing() {
    let folder = Folder::new();
    let file = folder.file("precious.trace", "what was there");
    let output = record(&file, &["/nonexistent/program"]);
    assert_eq!(output.status.code(), Some(127));
    assert_eq!(stderr(&output), "heapwright: /nonexistent/program: command not found\n");
    assert_eq!(fs::read_to_string(&file).expect("is there"), "what was there");
    let new = folder.path("new.trace");
    record(&new, &["/nonexistent/program"]);
    assert!(!new.exists());

    let output = record(&folder.path("no/such/folder/x"), &["true"]);
    let printed = stderr(&output);
    assert_eq!((output.status.code(), printed.lines().count()), (Some(2), 1), "{printed}");
    assert!(printed.contains("cannot write ") && printed.contains("No such file"), "{printed}");

    let flags = ["record", "-o", text(&file), "--option", "trace=/tmp/x", "true"];
    let output = done(heapwright().args(flags));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("record sets option trace itself"));

    let program = folder.compile("static", &["-static"], "int main(void) { return 3; }");
    let output = record(&file, &[text(&program)]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("nothing was recorded of "), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&file).expect("is there"), "what was there");
}

#[test]
fn the_option_by_hand_says_where_it_cannot_write() {
    let output =
        done(heapwright().env("HEAPWRIGHT", "trace=/nonexistent/x").args(["run", "echo", "hi"]));
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(0), "hi\n"));
    let printed = stderr(&output);
    assert!(
        printed.starts_with("heapwright: cannot make the trace \"/nonexistent/x."),
        "{printed}"
    );
    assert_eq!(printed.lines().count(), 1, "{printed}");
}

#[test]
fn lines_of_text_are_replayed() {
    let folder = Folder::new();
    let mut lines = String::new();
    for at in 0..2000_u64 {
        let (thread, block) = (100 + at % 3, 0x7000 + 16 * (at % 50));
        lines += &match at % 4 {
            0 => format!("{thread}: malloc {block:#x} {}\n", 1 + at % 900),
            1 => format!("{thread}: calloc {block:#x} 3 {}\n", 1 + at % 90),
            2 => format!("{thread}: memalign {block:#x} 0x40 {}\n", 1 + at % 90),
            _ => format!("{thread}: realloc {:#x} {block:#x} 5000\n", 0x9000 + 16 * (at % 50)),
        };
        lines += &format!("{}: free {block:#x}\n", 100 + (at + 1) % 3);
        lines += &format!("{thread}: free {:#x}\n", 0x9000 + 16 * (at % 50));
    }
    lines += "100: thread_done 0x0\n";
    let file = folder.file("lines.txt", &lines);
    let value = replayed(&file, &["--only", "heapwright"]);
    assert_eq!(names(&value), ["heapwright"]);
    assert_eq!((number(&value, "threads"), number(&value, "reallocs")), (3, 0));
    // A realloc of an unknown block makes the block. Each free of an unknown block is left out.
    assert_eq!(number(&value, "allocations"), 2000);
    let notes = value["notes"].to_string();
    assert!(
        notes.contains("frees of blocks whose allocation is not in the trace left out"),
        "{notes}"
    );

    // A few bytes that expand too far are refused, and so is a file without end.
    let bomb = folder.path("bomb.gz");
    let script = format!("head -c 100M /dev/zero | gzip > {}", text(&bomb));
    assert!(done(std::process::Command::new("sh").args(["-c", &script])).status.success());
    for (file, most) in [(&*bomb, 16), (Path::new("/dev/zero"), 256)] {
        let output = replay(file, &[]);
        let line = format!(
            "heapwright: {}: {}gives more than {most} MiB; only a plain file may be longer\n",
            file.display(),
            if most == 16 { "" } else { "cannot be read: " }
        );
        assert_eq!((output.status.code(), stderr(&output)), (Some(2), line));
    }

    let gzip = done(std::process::Command::new("gzip").args(["-k", text(&file)]));
    assert!(gzip.status.success());
    let again = replayed(&folder.path("lines.txt.gz"), &["--only", "heapwright"]);
    assert_eq!(number(&again, "operations"), number(&value, "operations"));
}

#[test]
fn a_trace_that_is_cut_short_is_replayed_as_far_as_it_goes() {
    let folder = Folder::new();
    let output = done(
        heapwright()
            .env("HEAPWRIGHT", format!("trace={}", folder.path("raw").display()))
            .args(["run", "sh", "-c", "exit 0"]),
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let raw = fs::read_dir(folder.path("")).expect("is there").flatten();
    let raw = raw.map(|entry| entry.path()).find(|path| text(path).contains("raw."));
    let bytes = fs::read(raw.expect("was written")).expect("readable");
    let whole = replayed(&folder.file("whole", &bytes), &["--only", "heapwright"]);
    // The last chunk marks the end. Without it all operations are still there.
    let cut = replayed(&folder.file("cut", &bytes[..bytes.len() - 1]), &["--only", "heapwright"]);
    assert_eq!(number(&cut, "operations"), number(&whole, "operations"));
    let notes = cut["notes"].to_string();
    assert!(notes.contains("ends in the middle of a chunk"), "{notes}");

    let mut damaged = bytes.clone();
    damaged[60] ^= 1;
    let printed = refused(&replay(&folder.file("damaged", &damaged), &[]));
    assert!(
        printed.contains(": checksum at byte 16 does not match; the 0 operations"),
        "{printed}"
    );
}

#[test]
fn what_is_no_trace_is_refused_in_a_line() {
    let folder = Folder::new();
    for (content, why) in [
        (&b""[..], "is empty"),
        (b"\x7fELF\x02\x01", "is not a trace: neither one of heapwright record, nor lines such as"),
        (b"1: malloc 0x10 5\n1: mallok 0x20 5\n", "line 2 'mallok' is no action; there are malloc"),
        (b"1: free\n2: free 0x0\n", "line 1 free has no pointer"),
        (b"1: free 0x10\n", "no allocations are recorded in it"),
        (b"HWTRACE\0\x09\0\0\0\0\0\0\0", "trace of version 9; this command reads 1"),
        (b"HWTRACE\0", "the trace ends within its header"),
        (b"PK\x03\x04", "cannot be unpacked: "),
    ] {
        let file = folder.file("x.trace", content);
        let printed = refused(&replay(&file, &[]));
        let expected = format!("heapwright: {}: {why}", file.display());
        assert!(printed.starts_with(&expected), "{printed}");
    }
    let printed = refused(&replay(&folder.path("missing"), &[]));
    assert!(
        printed.ends_with("missing: cannot be read: No such file or directory (os error 2)"),
        "{printed}"
    );
    let printed = refused(&replay(&folder.path(""), &[]));
    assert!(printed.ends_with(": is a folder, not a trace"), "{printed}");
    let file = folder.file("secret", "1: malloc 0x10 1\n");
    fs::set_permissions(&file, PermissionsExt::from_mode(0o000)).expect("set");
    if fs::read(&file).is_err() {
        // This is not tested as root, who may read all files.
        let printed = refused(&replay(&file, &[]));
        assert!(
            printed.ends_with("secret: cannot be read: Permission denied (os error 13)"),
            "{printed}"
        );
    }
}

#[test]
fn wrong_command_lines_are_refused_in_a_line() {
    let file = traces().join("handover.trace");
    let printed = refused(&replay(&file, &["--with", "nosuchmalloc"]));
    assert!(
        printed.starts_with(
            "heapwright: --with nosuchmalloc: no such allocator here; there are glibc, heapwright"
        ),
        "{printed}"
    );
    let printed = refused(&replay(&file, &["--with", "mine=/nonexistent.so"]));
    assert!(printed.contains("--with mine: cannot be preloaded"), "{printed}");
    for (flags, why) in [
        (&["--cache", "shared:0"][..], "is none of auto, exclusive, shared, shared:K"),
        (&["--cache", "shared:1025"], "is none of auto, exclusive, shared, shared:K"),
        (&["--list", "--format", "json"], "cannot be used with"),
        (&["--list", "-o", "/nonexistent/x.json"], "cannot be used with"),
        (&["--rounds", "0"], "0 is not in 1..=1000"),
        (&["--touch", "some"], "invalid value 'some'"),
    ] {
        let printed = refused(&replay(&file, flags));
        assert!(printed.contains(why), "{printed}");
    }
    let printed = refused(&replay(&file, &["--format", "json", "-o", "/nonexistent/x.json"]));
    assert!(printed.contains("cannot write /nonexistent/x.json: "), "{printed}");
}

#[test]
fn each_cache_model_is_a_row() {
    let file = traces().join("handover.trace");
    let value = replayed(&file, &["--cache", "exclusive", "--only", "heapwright,glibc"]);
    assert_eq!(names(&value), ["heapwright exclusive", "glibc"]);
    assert_eq!(rows(&value)[0]["allocator"]["environment"]["HEAPWRIGHT"], "cache=exclusive");
    assert!(!value["notes"].to_string().contains("option"), "{:#}", value["notes"]);
}

/// An allocator that gives a block twice, or gives none, is found out. So is a crash or a hang.
#[test]
fn allocators_that_are_wrong_are_found_out() {
    let folder = Folder::new();
    let file = folder
        .file("two.txt", "1: malloc 0x10 7919\n1: malloc 0x20 7919\n1: free 0x10\n1: free 0x20\n");
    // The library serves blocks of one size, for which the command itself does not ask. Others are
    // the C library's.
    let library = |name: &str, code: &str| {
        let source = format!(
            "#include <stddef.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
             extern void *__libc_malloc(size_t);\nextern void __libc_free(void *);\n\
             static char place[7919] __attribute__((aligned(16)));\n\
             void free(void *p) {{ if (p != place) __libc_free(p); }}\n\
             void *malloc(size_t n) {{ if (n == 7919) {{ {code} }} return __libc_malloc(n); }}\n"
        );
        folder.compile(&format!("lib{name}.so"), &["-shared", "-fPIC"], &source)
    };
    for (name, code, outcome, why) in [
        ("twice", "return place;", "differs", "times a block was not as it was left"),
        ("crashes", "abort();", "crashed", "SIGABRT"),
        ("hangs", "for (;;) sleep(1);", "hung", "killed after 2 s"),
        ("nothing", "return NULL;", "failed", "2 blocks could not be allocated"),
    ] {
        let with = format!("{name}={}", library(name, code).display());
        let flags = ["--with", &with, "--only", &format!("glibc,{name}"), "--rounds", "1"];
        let output = replay(&file, &[&flags[..], &["--timeout", "2", "--format", "json"]].concat());
        assert_eq!(output.status.code(), Some(1), "{name}: {}", stderr(&output));
        let value: Value = serde_json::from_str(&stdout(&output)).expect("is JSON");
        let row = &rows(&value)[1];
        assert_eq!(row["outcome"], outcome, "{name}: {row:#}");
        assert!(row["detail"].as_str().is_some_and(|text| text.contains(why)), "{row:#}");
        assert_eq!(rows(&value)[0]["outcome"], "ok");
    }
}
