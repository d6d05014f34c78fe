//! `heapwright check`: programs with a bug and without, what they start, what cannot be
//! checked, and what the command line is.

mod common;

use common::{Folder, done, heapwright, run, stderr, stdout, text};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Output;

/// Frees twice if asked to, and ends as it is asked to.
const SOURCE: &str = "
#include <stdlib.h>
#include <string.h>
int main(int count, char **words) {
    char *block = malloc(40);
    free(block);
    if (count > 1 && strcmp(words[1], \"twice\") == 0)
        free(block);
    if (count > 2 && strcmp(words[2], \"abort\") == 0)
        abort();
    return count > 2 ? atoi(words[2]) : 0;
}
";

fn program(folder: &Folder) -> PathBuf {
    folder.compile("prog", &["-g", "-O0"], SOURCE)
}

fn check(flags: &[&str], words: &[&str]) -> Output {
    done(heapwright().arg("check").args(flags).arg("--").args(words))
}

#[test]
fn a_bug_has_an_exit_code_of_its_own() {
    let folder = Folder::new();
    let program = program(&folder);
    let output = check(&[], &[text(&program), "twice"]);
    assert_eq!(output.status.code(), Some(99), "{}", stderr(&output));
    let printed = stderr(&output);
    for part in [
        "==ERROR: heapwright: double-free: free of a 40-byte block that was freed before",
        "in main ",
        "prog.c:8:9",
        "    >     8 |         free(block);",
        "    to suppress it: double-free:^main$",
        "== ERROR SUMMARY: 1 errors from 1 contexts (suppressed: 0 from 0)",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let output = check(&["--exit-code", "3"], &[text(&program), "twice", "7"]);
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn without_one_the_programs_end_is_handed_on() {
    let folder = Folder::new();
    let program = program(&folder);
    assert_eq!(check(&[], &[text(&program)]).status.code(), Some(0));
    assert_eq!(check(&[], &[text(&program), "once", "7"]).status.code(), Some(7));
    let output = check(&["--fail-on", "leaks"], &[text(&program), "twice", "7"]);
    assert_eq!(output.status.code(), Some(7));
    assert!(stderr(&output).contains("double-free"), "{}", stderr(&output));
    use std::os::unix::process::ExitStatusExt;
    let output = check(&["--fail-on=none"], &[text(&program), "once", "abort"]);
    assert_eq!(output.status.signal(), Some(6), "{}", stderr(&output));
}

#[test]
fn what_it_starts_is_shown_with_it() {
    let folder = Folder::new();
    let program = program(&folder);
    let report = folder.path("report.json");
    let script = format!("{0} twice; {0} once; {0} twice 5", text(&program));
    let output = check(&["--format", "json", "-o", text(&report)], &["sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(99), "{}", stderr(&output));
    let printed = std::fs::read_to_string(&report).expect("was written");
    let object: Value = serde_json::from_str(&printed).expect("is JSON");
    let errors = object["errors"].as_array().expect("a list");
    assert_eq!(errors.len(), 1, "{printed}");
    assert_eq!((&errors[0]["times"], &errors[0]["processes"]), (&json!(2), &json!(2)));
}

#[test]
fn suppressed_is_clean() {
    let folder = Folder::new();
    let program = program(&folder);
    for (name, suppression) in [
        ("line", "double-free:prog.c\n"),
        ("block", "{\n  twice is right\n  Memcheck:Free\n  fun:free\n  fun:main\n}\n"),
    ] {
        let file = folder.file(name, suppression);
        let output = check(&["--suppress", text(&file)], &[text(&program), "twice", "4"]);
        assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
        let printed = stderr(&output);
        assert!(printed.contains("== Suppressions used:\n"), "{printed}");
        assert!(printed.contains("(suppressed: 1 from 1)"), "{printed}");
    }
    // Its mistakes cost no run.
    let file = folder.file("wrong", "leek:x\n");
    let mark = folder.path("mark");
    let output = check(&["--suppress", text(&file)], &["touch", text(&mark)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("heapwright: "), "{}", stderr(&output));
    assert_eq!(stderr(&output).lines().count(), 1);
    assert!(!mark.exists());
}

#[test]
fn records_can_be_kept() {
    let folder = Folder::new();
    let program = program(&folder);
    let kept = folder.path("kept");
    let output = check(&["--keep", text(&kept)], &[text(&program), "twice"]);
    assert_eq!(output.status.code(), Some(99), "{}", stderr(&output));
    let output = done(heapwright().arg("report").arg(&kept));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).contains("double-free"));
    // They are not mixed with others.
    let output = check(&["--keep", text(&kept)], &[text(&program)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("there are records in "), "{}", stderr(&output));
    let output = check(&["--keep", text(&folder.path("a,b"))], &[text(&program)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("has , or ; in it"), "{}", stderr(&output));
}

#[test]
fn what_cannot_be_checked_is_not_clean() {
    let folder = Folder::new();
    let fixed = folder.compile("fixed", &["-static"], "int main(void) { return 0; }");
    let output = check(&[], &[text(&fixed)]);
    assert_eq!(output.status.code(), Some(125));
    let line = stderr(&output);
    assert!(line.contains("cannot be checked: ") && line.lines().count() == 1, "{line}");
    let output = check(&["--anyway"], &[text(&fixed)]);
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("itself was not checked"), "{}", stderr(&output));
    // It starts something that can be.
    let program = program(&folder);
    let source = format!(
        "#include <unistd.h>\nint main(void) {{ return execl(\"{0}\", \"{0}\", \"once\", \"9\", 0); }}",
        text(&program)
    );
    let starter = folder.compile("starter", &["-static"], &source);
    assert_eq!(check(&["--anyway"], &[text(&starter)]).status.code(), Some(9));
}

#[test]
fn what_cannot_be_run_is_as_with_run() {
    for words in [&["/nonexistent/x"][..], &["/etc/passwd"], &["/"]] {
        let same = done(&mut run(&["--stats"], words));
        let output = check(&[], words);
        assert_eq!(output.status.code(), same.status.code());
        assert_eq!(stderr(&output), stderr(&same));
    }
}

#[test]
fn mistakes_in_the_command_line_are_one_line() {
    for (flags, part) in [
        (&["--fail-on", "everything"][..], "unknown value 'everything'; use errors, leaks"),
        (&["--frames", "65"], "65 is not in 0..=64"),
        (&["--guard", "most"], "possible values: never, sample, all"),
        (&["--show", "lost"], "unknown value 'lost'"),
        (&["--format", "xml"], "invalid value 'xml' for '--format <FORMAT>'"),
        (&["--exit-code", "256"], "256 is not in 0..=255"),
    ] {
        let output = check(flags, &["true"]);
        let line = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(line.contains(part) && line.lines().count() == 1, "{part}: {line}");
    }
    for (flags, part) in [
        (&["--option", "record=/x"][..], "check sets option record itself"),
        (&["-o", "/nonexistent/x"], "cannot write /nonexistent/x"),
        (&["--suppress", "/nonexistent/x"], "cannot read suppressions from /nonexistent/x"),
        (&["--library", "/nonexistent/x"], "/nonexistent/x"),
    ] {
        let output = check(flags, &["true"]);
        let line = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(line.contains(part) && line.lines().count() == 1, "{part}: {line}");
    }
    let help = stdout(&done(heapwright().args(["check", "--help"])));
    for part in ["heapwright check [OPTIONS] [--] CMD", "Exits with 99", "-- make test"] {
        assert!(help.contains(part), "{part}: {help}");
    }
}
