//! `heapwright profile`: the program's own end is passed on, and its memory is reported.

mod common;

use std::os::unix::process::ExitStatusExt;

use common::{Folder, bytes, done, heapwright, stderr, stdout, text};
use heapwright_record::debug::{Check, Checked, Occasion, Process, Profile, Sampled};

/// Profiles one of the command's workloads. It allocates some hundred MB in a fraction of a second.
fn profiled(options: &[&str]) -> std::process::Command {
    let mut command = heapwright();
    command.arg("profile").args(options).arg("--");
    command.arg(env!("CARGO_BIN_EXE_heapwright")).args(["workload", "strings"]);
    command
}

#[test]
fn a_program_is_profiled() {
    let output = done(&mut profiled(&["--sample", "64k", "--figure", "allocated", "--limit", "3"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("heap profile of "), "{said}");
    assert!(said.contains(", one sample per 64 KiB allocated, on average"), "{said}");
    assert_eq!(said.matches("\nallocated: ").count(), 3, "{said}");
    assert!(said.contains(" smaller sites: "), "{said}");
    assert!(!stdout(&output).contains("heap profile"));
}

#[test]
fn every_format_has_it() {
    let folder = Folder::new();
    let file = folder.path("out");
    let name = file.to_str().expect("is text");
    for (format, word) in [
        ("json", "\"growth_error\": "),
        ("folded", ";"),
        ("flamegraph", "<svg"),
        ("html", "id=\"tab-growth\" aria-controls=\"growth\""),
    ] {
        let options = ["--sample", "64k", "--format", format, "-o", name];
        let output = done(&mut profiled(&options));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let written = std::fs::read_to_string(&file).expect("is written");
        assert!(written.contains(word), "{format}: {written:.300}");
    }
    let output = done(&mut profiled(&["--sample", "64k", "--format", "pprof", "-o", name]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(std::fs::read(&file).expect("is written")[..2], [0x1f, 0x8b], "gzip");
}

/// Python's small objects are in Python's own allocator. Each command that counts says so.
#[test]
fn pythons_own_allocator_is_named() {
    let folder = Folder::new();
    // This script has Python's name, and is not Python. The note depends on names.
    let python = folder.script("python3", "#!/bin/sh\necho \"$PYTHONMALLOC\"\n");
    let trace = folder.path("trace");
    for words in [&["run", "--stats"][..], &["record", "-o", text(&trace)]] {
        for (options, malloc) in [(&[][..], "\n"), (&["--python"], "malloc\n")] {
            let words = words.iter().chain(options).copied();
            let output = done(heapwright().args(words).arg("--").arg(&python));
            assert_eq!(stdout(&output), malloc);
            let is_said = stderr(&output).contains("Python's small objects are in an allocator");
            assert_eq!(is_said, options.is_empty(), "{}", stderr(&output));
        }
    }
    let system = std::path::Path::new("/usr/bin/python3");
    for (options, is_noted) in [(&[][..], true), (&["--python"], false)] {
        if system.exists() {
            let words = ["--", "/usr/bin/python3", "-c", "x = [str(i) * 40 for i in range(40000)]"];
            let sample = ["profile", "--sample", "16k"];
            let words = sample.iter().chain(options).chain(&words);
            let output = done(heapwright().args(words));
            let is_said = stderr(&output).contains("Python's small objects are in an allocator");
            assert_eq!(is_said, is_noted, "{}", stderr(&output));
        }
    }
}

#[test]
fn a_command_that_fails_leaves_no_empty_file() {
    let folder = Folder::new();
    let file = folder.path("out");
    let name = text(&file);
    let none = folder.path("none");
    let none = text(&none);
    for words in [
        &["profile", "-o", name, "--", none][..],
        &["check", "-o", name, "--", none],
        &["run", "-o", name, "--", none],
        &["report", "-o", name, none],
        &["profile", "-o", name, "--option", "purge=soon", "--", "true"],
    ] {
        let output = done(heapwright().args(words));
        assert!(!output.status.success() && !file.exists(), "{words:?}: {}", stderr(&output));
        folder.file("out", "old");
        done(heapwright().args(words));
        assert_eq!(std::fs::read_to_string(&file).expect("there"), "old", "{words:?}");
        std::fs::remove_file(&file).expect("removed");
    }
}

/// For half a second, keeps a block of 1000 bytes every 0.1 ms, and frees 200 of 100 bytes at once.
const GROWS: &str = "\
#include <stdlib.h>
#include <time.h>
__attribute__((noinline)) static void *kept(void) { return malloc(1000); }
__attribute__((noinline)) static void *gone(void) { return malloc(100); }
void *all[5000];
int main(void) {
    for (int i = 0; i < 5000; i++) {
        all[i] = kept();
        for (int j = 0; j < 200; j++) free(gone());
        nanosleep(&(struct timespec){0, 100000}, 0);
    }
    _Exit(all[9] == 0);
}
";

#[test]
fn growth_is_seen_and_a_record_is_explained() {
    let folder = Folder::new();
    let program = folder.compile("grows", &["-O1", "-g", "-fno-inline"], GROWS);
    let record = folder.path("record");
    let profile = format!("profile={}", text(&record));
    let options = ["run", "--option", "sample=16k", "--option", &profile, "--"];
    let output = done(heapwright().args(options).arg(&program));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = |options: &[&str]| {
        let output = done(heapwright().arg("report").args(options).arg(folder.path("")));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let grown = report(&["--figure", "growth"]);
    assert!(grown.contains("==    growth   +") && grown.contains(" MiB ± "), "{grown}");
    let first = grown.split_once("\ngrown by: ").expect("something has grown").1;
    assert!(first.lines().nth(1).is_some_and(|line| line.contains(" in kept ")), "{grown}");
    let page = report(&["--format", "html", "--figure", "temporary"]);
    assert!(page.contains("aria-controls=\"temporary\" aria-selected=\"true\""));
    assert!(page.contains("<path class=\"line resident\""), "the resident memory is known");

    let explain = |options: &[&str]| {
        let output = done(heapwright().arg("explain").args(options).arg(folder.path("")));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let why = explain(&[]);
    for part in [
        " resident\n",
        "\nlive blocks of the profile: ",
        "\ngrowth: ",
        "\nnot live: ",
        "\ntemporary blocks: ",
    ] {
        assert!(why.contains(part), "{part} in {why}");
    }
    let line = |behind: &str, name: &str| {
        let rest = why.split_once(behind).expect("is there").1;
        rest.lines().take(3).any(|line| line.contains(name))
    };
    assert!(line("\ngrowth: ", "   kept  ") && line("\ntemporary blocks: ", "   gone  "), "{why}");
    let json = explain(&["--format", "json"]);
    assert!(json.contains("\"function\": \"kept\"") && json.contains("\"growth_bytes\": "));
}

/// A record of the previous version has no points in time, and no earlier moment.
#[test]
fn records_of_older_versions_are_read() {
    let folder = Folder::new();
    let sampled = Sampled {
        check: 1,
        live_samples: 4,
        live_blocks: 2000,
        live_bytes: 2 << 20,
        live_error: 1 << 20,
        allocated_blocks: 3000,
        allocated_bytes: 3 << 20,
        peak_bytes: 2 << 20,
        ..Sampled::default()
    };
    let record = folder.file(
        "record.1",
        bytes(&[
            Process { pid: 1, command: "old\0".into(), ..Process::default() }.into(),
            Check { number: 1, occasion: Occasion::Profile, ns: 9_000_000_000, ..Check::default() }
                .into(),
            Profile { check: 1, period: 512 << 10, peak_bytes: 2 << 20, ..Profile::default() }
                .into(),
            sampled.into(),
            Checked { check: 1, ..Checked::default() }.into(),
        ]),
    );
    let said = |options: &[&str]| {
        let output = done(heapwright().args(options).arg(&record));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let grown = said(&["report", "--figure", "growth"]);
    assert!(grown.contains("the record does not say what was live earlier"), "{grown}");
    let page = said(&["report", "--format", "html"]);
    assert!(page.contains("id=\"tab-live\"") && !page.contains("id=\"tab-growth\""));
    let why = said(&["explain"]);
    assert!(
        why.contains("live after 9.00 s, the record does not say how much was resident"),
        "{why}"
    );
}

#[test]
fn what_is_no_profile_is_not_explained() {
    let folder = Folder::new();
    let other = folder.file("other", "no record");
    let empty = folder.file("empty.1", bytes(&[Process::default().into()]));
    for (what, line) in [
        (&other, "not a debug record of heapwright"),
        (&empty, "there is no heap profile in it"),
        (&folder.path("none"), "No such file"),
    ] {
        let output = done(heapwright().arg("explain").arg(what));
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(line), "{}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    }
}

#[test]
fn the_programs_end_is_handed_on() {
    // The default sample draws a block of the shell's 16 KiB in one run of 32.
    let end = |words: &[&str]| {
        let output = done(heapwright().args(["profile", "--sample", "1g", "--"]).args(words));
        (output.status.code(), stderr(&output))
    };
    let (code, said) = end(&["sh", "-c", "exit 7"]);
    assert_eq!(code, Some(7));
    assert!(said.contains("allocated too little for a sample"), "{said}");
    let (code, said) = end(&["/no/such/program"]);
    assert_eq!(code, Some(127), "{said}");
}

#[test]
fn a_program_that_is_killed_leaves_its_last_second() {
    let program = "my @a; my $end = time + 3; while (time < $end) { push @a, 'x' x 1000 for 1..1000; \
                   select undef, undef, undef, 0.01 } kill 'KILL', $$";
    let output = done(
        heapwright()
            .args(["profile", "--sample", "16k", "--limit", "1", "--"])
            .args(["perl", "-e", program]),
    );
    let said = stderr(&output);
    if output.status.code() == Some(127) {
        return eprintln!("skipped: there is no perl");
    }
    assert!(output.status.signal() == Some(9) || output.status.code() == Some(137), "{output:?}");
    assert!(said.contains("heap profile of perl "), "{said}");
    assert!(said.contains("\nlive at the peak: "), "{said}");
}

#[test]
fn what_cannot_be_done_is_one_line() {
    for (options, line) in [
        (&["--sample", "1"][..], "use a number of bytes from 1k to 1g, such as 512k"),
        (&["--option", "mode=debug"], "profile needs mode=fast"),
        (&["--format", "junit"], "invalid value 'junit'"),
        (&["--format", "gcc"], "invalid value 'gcc'"),
        (&["--format", "memcheck"], "invalid value 'memcheck'"),
        (&["--option", "profile=/tmp/x"], "profile sets option profile itself; use --output"),
        (&["--output", "/no/such/folder/x"], "cannot write /no/such/folder/x"),
    ] {
        let output = done(&mut profiled(options));
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(line), "{}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    }
    let output = done(profiled(&[]).env("HEAPWRIGHT", "purge=1,mode=debug"));
    let line = "heapwright: profile needs mode=fast, and HEAPWRIGHT sets mode=debug";
    assert!(stderr(&output).starts_with(line), "{}", stderr(&output));
}
