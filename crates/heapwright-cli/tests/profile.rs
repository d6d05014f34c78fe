//! `heapwright profile`: a program's own end is handed on, and what is written says where its memory comes from.

mod common;

use std::os::unix::process::ExitStatusExt;

use common::{Folder, done, heapwright, stderr, stdout};

/// A program that allocates some hundred MB in a fraction of a second: this command's own.
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
    // What the program prints is its own.
    assert!(!stdout(&output).contains("heap profile"));
}

#[test]
fn every_format_has_it() {
    let folder = Folder::new();
    let file = folder.path("out");
    let name = file.to_str().expect("is text");
    for (format, word) in [("json", "\"profile\": {"), ("folded", ";"), ("flamegraph", "<svg")] {
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

#[test]
fn the_programs_end_is_handed_on() {
    let end = |words: &[&str]| {
        let output = done(heapwright().args(["profile", "--"]).args(words));
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
        (&["--format", "junit"], "a heap profile finds no mistakes"),
        (&["--option", "profile=/tmp/x"], "profile sets option profile itself; use --output"),
        (&["--output", "/no/such/folder/x"], "cannot write /no/such/folder/x"),
    ] {
        let output = done(&mut profiled(options));
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(line), "{}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    }
}
