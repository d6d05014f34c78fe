//! `heapwright tune`: real programs, and a library that is faster or slower as told.
//!
//! Whether an option gains on this machine is not for a test to say. So where a test expects a
//! certain answer, it gives the command a library of its own (`--library`): glibc's malloc that loses time in
//! each call, more or less of it by the option string and by whether the replay or the program calls.

mod common;

use common::{Folder, done, heapwright, stderr, stdout, text};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

fn tune(flags: &[&str], words: &[&str]) -> Output {
    let mut command = heapwright();
    command.arg("tune").args(flags);
    if !words.is_empty() {
        command.arg("--").args(words);
    }
    done(&mut command)
}

/// The object that is printed, which must hold together.
#[track_caller]
fn tuned(flags: &[&str], words: &[&str]) -> Value {
    let output = tune(&[&["--format", "json"], flags].concat(), words);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let value: Value = serde_json::from_str(&stdout(&output)).expect("is JSON");
    assert_eq!(value["schema"], "heapwright-tune/1");
    assert_eq!(value["complete"], true);
    let first = &value["decision"]["eligible"][0]["options"];
    let has_program = !value["program"].is_null();
    assert_eq!(value["check"].is_null(), first.is_null() || !has_program, "{value:#}");
    let checked = value["check"]["checked"].as_array().map(Vec::as_slice).unwrap_or_default();
    let kept = checked.iter().find(|checked| checked["judgement"] == "kept");
    let expected = match kept {
        Some(kept) => kept["options"].as_str(),
        None => first.as_str().filter(|_| !has_program),
    };
    if value["nothing"].is_null() {
        assert_eq!(value["recommended"], expected.unwrap_or_default(), "{value:#}");
    }
    value
}

fn roles(set: &Value) -> Vec<(&str, &str)> {
    let rows = set["rows"].as_array().expect("has rows");
    fn word(value: &Value) -> &str {
        value.as_str().expect("is a word")
    }
    rows.iter().map(|row| (word(&row["role"]), word(&row["allocator"]["name"]))).collect()
}

/// A trace of enough operations, on one thread.
fn trace(folder: &Folder) -> PathBuf {
    let lines = (0..10_000).map(|at| {
        let address = 0x1000 + 64 * (at % 50);
        format!("1: malloc {address:#x} 40\n1: free {address:#x}\n")
    });
    folder.file("trace.txt", lines.collect::<String>())
}

/// A program that does about the same.
fn program(folder: &Folder) -> PathBuf {
    let source = "#include <stdio.h>\n#include <stdlib.h>\n\
        int main(void) { unsigned long sum = 0;\n\
        for (int i = 0; i < 20000; i++) { char *p = malloc(40); p[0] = i; sum += p[0]; free(p); }\n\
        return printf(\"%lu\\n\", sum) < 0; }\n";
    folder.compile("program", &["-O1", "-fno-builtin"], source)
}

/// How long each 2000th call waits without `cache=percpu`, in milliseconds.
const ELSE_MS: u32 = 10;

/// A library in which each 2000th call waits for so many milliseconds in the replay and in the
/// program under `cache=percpu`, and for [`ELSE_MS`] under anything else. It waits instead of
/// computing because other processes, which take the cores away for 10 ms now and then, lengthen
/// that by little.
fn library(folder: &Folder, in_replay: u32, in_program: u32) -> PathBuf {
    let source = format!(
        "#define _GNU_SOURCE\n#include <errno.h>\n#include <stdlib.h>\n#include <string.h>\n\
         #include <time.h>\n#include <unistd.h>\n\
         extern void *__libc_malloc(size_t);\nextern void __libc_free(void *);\n\
         static int wait = -1;\n\
         static void lose(void) {{\n\
           static int calls;\n\
           if (wait < 0) {{\n\
             if (!environ) return;\n\
             const char *options = getenv(\"HEAPWRIGHT\");\n\
             int replays = !strcmp(program_invocation_short_name, \"heapwright\");\n\
             int told = options && strstr(options, \"cache=percpu\");\n\
             wait = !told ? {ELSE_MS} : replays ? {in_replay} : {in_program};\n\
           }}\n\
           if (++calls % 2000 || !wait) return;\n\
           struct timespec time = {{ 0, wait * 1000000 }};\n\
           nanosleep(&time, NULL);\n\
         }}\n\
         void *malloc(size_t size) {{ lose(); return __libc_malloc(size); }}\n\
         void free(void *block) {{ __libc_free(block); }}\n"
    );
    folder.compile("libtold.so", &["-O1", "-shared", "-fPIC", "-fno-builtin"], &source)
}

/// Whether `cache=percpu` is among the options. Another may be beside it that seems to gain by
/// chance.
fn has_percpu(options: &Value) -> bool {
    options.as_str().is_some_and(|options| options.split(',').any(|one| one == "cache=percpu"))
}

/// Tunes the program above with such a library.
fn told(folder: &Folder, in_replay: u32, in_program: u32) -> Value {
    let (library, trace) = (library(folder, in_replay, in_program), trace(folder));
    let flags =
        ["--library", text(&library), "--trace", text(&trace), "--rounds", "9", "--time", "6"];
    tuned(&flags, &[text(&program(folder))])
}

#[test]
fn a_gain_is_recommended_if_the_program_confirms_it() {
    let value = told(&Folder::new(), 0, 0);
    let screened = roles(&value["screening"]);
    assert_eq!(screened[..2], [("defaults", "defaults"), ("control", "cache=auto")]);
    for name in ["cache=exclusive", "cache=percpu", "purge=0", "purge=never"] {
        assert!(screened.contains(&("candidate", name)), "{screened:?}");
    }
    assert!(screened.contains(&("peer", "glibc")), "{screened:?}");
    let fastest = &value["decision"]["fastest"];
    assert!(has_percpu(&fastest["options"]), "{value:#}");
    assert!(fastest["time"]["high"].as_f64() < Some(1.0), "{fastest:#}");
    let checked = &value["check"]["checked"][0];
    assert!(has_percpu(&checked["options"]), "{value:#}");
    assert_eq!(checked["judgement"], "kept", "{value:#}");
    assert_eq!(value["recommended"], checked["options"]);
}

#[test]
fn a_recommendation_that_the_program_contradicts_is_withdrawn() {
    let value = told(&Folder::new(), 0, 50);
    let checked = value["check"]["checked"].as_array().expect("is a list");
    let mut told = checked.iter().filter(|one| has_percpu(&one["options"])).peekable();
    assert!(told.peek().is_some(), "{value:#}");
    for one in told {
        assert_eq!(one["judgement"], "contradicted", "{value:#}");
    }
    assert_eq!(value["recommended"], "", "{value:#}");
}

#[test]
fn without_a_program_nothing_is_checked() {
    let folder = Folder::new();
    let (library, trace) = (library(&folder, 0, 0), trace(&folder));
    let flags = ["--library", text(&library), "--trace", text(&trace), "--rounds", "9"];
    let printed = stdout(&tune(&flags, &[]));
    assert!(
        printed.starts_with("heapwright tune: trace.txt\n1 thread, 20,000 operations"),
        "{printed}"
    );
    let chosen = |label: &str| {
        let line = printed.lines().find_map(|line| line.strip_prefix(label));
        let (options, _) = line.and_then(|line| line.split_once(": time/op 0.")).expect(label);
        options.to_owned()
    };
    let options = chosen("recommended:  ");
    assert!(has_percpu(&chosen("fastest:      ").into()), "{printed}");
    assert!(has_percpu(&options.as_str().into()), "{printed}");
    for line in [
        "\nchecked:      no: there is only a trace; name the program, too\n",
        &format!(
            "\nto use it: heapwright run --option {options} -- CMD, or HEAPWRIGHT={options}\n"
        ),
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
}

#[test]
fn a_real_program_is_recorded_and_tuned() {
    let folder = Folder::new();
    let lines: String =
        (0..200_000_u32).map(|n| format!("{}\n", n.wrapping_mul(2_654_435_761))).collect();
    let input = folder.file("lines", lines);
    let flags = ["--stdin", text(&input), "--rounds", "3", "--time", "2"];
    let value = tuned(&flags, &["sort", "-n"]);
    assert!(value["nothing"].is_null(), "{value:#}");
    assert_eq!(
        (&value["program"]["name"], &value["program"]["words"]),
        (&"sort".into(), &"sort -n".into())
    );
    assert_eq!(value["trace"]["program"], "sort");
    let rows = value["screening"]["rows"].as_array().expect("has rows");
    assert!(rows.len() >= 9, "{value:#}");
    for row in rows {
        assert_eq!(
            (&row["outcome"], row["runs"].as_array().map(Vec::len)),
            (&"ok".into(), Some(3))
        );
    }
}

#[test]
fn where_there_is_nothing_to_tune_it_says_so() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces");
    let handover = traces.join("handover.trace");
    let short = stdout(&tune(&[], &["true"]));
    assert!(
        short.starts_with("heapwright tune: true\nnothing to tune: true ends after "),
        "{short}"
    );
    assert!(short.contains("(see --stdin)"), "{short}");
    let small = stdout(&tune(&["--trace", text(&handover)], &[]));
    assert!(
        small.contains("\nnothing to tune: 1041 calls for memory and 281.8 KiB live"),
        "{small}"
    );
    let value = tuned(&["--trace", text(&handover)], &[]);
    assert!(value["screening"].is_null() && value["decision"].is_null(), "{value:#}");
}

#[test]
fn an_interrupted_tuning_prints_what_it_has() {
    let folder = Folder::new();
    let mut child = heapwright()
        .args(["tune", "--rounds", "1000", "--time", "1000", "--progress", "--trace"])
        .arg(trace(&folder))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let lines = BufReader::new(child.stderr.take().expect("is a pipe")).lines();
    lines.map_while(Result::ok).find(|line| line.contains("round 3 of ")).expect("printed");
    // SAFETY: no pointers are involved; the child is not reaped yet, so the number is its own.
    let sent = unsafe { libc::kill(child.id().cast_signed(), libc::SIGTERM) };
    assert_eq!(sent, 0);
    let output = child.wait_with_output().expect("ended");
    assert_eq!(output.status.signal(), Some(libc::SIGTERM));
    let printed = stdout(&output);
    assert!(printed.contains("\ncache=percpu ") && printed.contains(" tie "), "{printed}");
    assert!(printed.contains("\nnote: interrupted: these figures are partial\n"), "{printed}");
    assert!(!printed.contains("recommended:"), "{printed}");
}

/// One line on stderr, nothing on stdout.
#[track_caller]
fn refused(code: i32, flags: &[&str], words: &[&str]) -> String {
    let output = tune(flags, words);
    let printed = stderr(&output);
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(code), ""), "{printed}");
    assert_eq!(printed.lines().count(), 1, "{printed}");
    printed
}

#[test]
fn what_cannot_be_tuned_is_a_line() {
    let failing = refused(1, &[], &["sh", "-c", "echo oh >&2; exit 3"]);
    assert_eq!(failing, "heapwright: the program itself fails: sh: exit 3 under glibc: oh\n");
    assert!(refused(127, &[], &["no-such-command"]).contains("no-such-command"));
    let stdin = refused(2, &["--stdin", "/nonexistent"], &["sort"]);
    assert!(stdin.starts_with("heapwright: --stdin: cannot read /nonexistent: "), "{stdin}");
    assert!(refused(2, &["--trace", "/nonexistent"], &[]).contains("cannot be read"));
    let nothing = refused(2, &[], &[]);
    assert!(nothing.contains("name a program, or a trace with --trace"), "{nothing}");
    assert!(refused(2, &["--time", "0"], &["true"]).contains("0.1 to 1000000"));
}

#[test]
fn options_of_the_environment_are_left_out() {
    let folder = Folder::new();
    let mut command = heapwright();
    command.env("HEAPWRIGHT", "purge=0").args(["tune", "--rounds", "1", "--trace"]);
    let output = done(command.arg(trace(&folder)));
    let printed = stdout(&output);
    assert!(printed.contains("\nnote: the options in HEAPWRIGHT were left out: "), "{printed}");
    assert!(printed.contains("\nnote: with fewer than 6 rounds, "), "{printed}");
}
