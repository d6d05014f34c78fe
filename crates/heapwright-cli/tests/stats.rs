//! `heapwright run --stats`: with real programs, and with libraries that misbehave.

mod common;

use common::{Folder, done, run, stderr, stdout, text};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

/// Returns the object of `--format json`, which must be all of stderr.
fn object(output: &Output) -> Value {
    let text = stderr(output);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("{name} is no number: {value:#}"))
}

/// Returns whether a program is installed. If not, prints that the test is skipped.
fn is_there(program: &str) -> bool {
    let there = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let there = there.is_ok_and(|output| output.status.success());
    if !there {
        eprintln!("not tested: there is no {program}");
    }
    there
}

/// Runs a program with and without the library; both must print the same.
#[track_caller]
fn measured(words: &[&str]) -> Value {
    let plain = done(Command::new(words[0]).args(&words[1..]));
    let output = done(&mut run(&["--format", "json"], words));
    assert_eq!(output.status, plain.status, "{}", stderr(&output));
    assert_eq!(stdout(&output), stdout(&plain));
    let object = object(&output);
    assert_eq!(object["no_stats_because"], Value::Null, "{object:#}");
    adds_up(&object["stats"]);
    assert!(number(&object["stats"], "allocations") > 0, "{object:#}");
    object
}

#[track_caller]
fn adds_up(stats: &Value) {
    let parts = [
        "rss_live",
        "rss_rounding",
        "rss_partial",
        "rss_caches",
        "rss_remote",
        "rss_lazy",
        "rss_metadata",
        "rss_pools",
        "rss_not_ours",
    ];
    let sum: u64 = parts.iter().map(|name| number(stats, name)).sum();
    let rss = number(stats, "rss");
    assert!(sum.abs_diff(rss) * 20 <= rss, "parts {sum}, resident {rss}: {stats:#}");
    assert!(number(stats, "peak_rss") >= rss, "{stats:#}");
    let allocations = number(stats, "allocations");
    let sizes = stats["sizes"].as_array().expect("is a list");
    let counted: u64 = sizes.iter().map(|size| number(size, "count")).sum();
    assert_eq!(counted, allocations, "{stats:#}");
    assert!(number(stats, "frees") <= allocations, "{stats:#}");
    assert!(number(stats, "live_bytes") <= number(stats, "peak_live_bytes"), "{stats:#}");
}

#[test]
fn allocations_are_counted_by_size() {
    let folder = Folder::new();
    let source = r#"
        #include <stdlib.h>
        #include <string.h>
        int main(void) {
            for (int i = 0; i < 1000; i++) free(memset(malloc(24), 1, 24));
            for (int i = 0; i < 100; i++) memset(malloc(3000), 1, 3000);
            memset(malloc(1 << 20), 1, 1 << 20);
            return 3;
        }
    "#;
    let program = folder.compile("counts", &["-O0"], source);
    let output = done(&mut run(&["--format", "json"], &[text(&program)]));
    assert_eq!(output.status.code(), Some(3));
    let object = object(&output);
    assert_eq!(object["exit"]["code"], json!(3));
    let stats = &object["stats"];
    adds_up(stats);
    let of_size = |up_to: u64| {
        let sizes = stats["sizes"].as_array().expect("is a list");
        let row = sizes.iter().find(|size| size["up_to"] == json!(up_to));
        row.map_or(0, |row| number(row, "count"))
    };
    assert!((1000..1010).contains(&of_size(32)), "{stats:#}");
    assert!((100..105).contains(&of_size(4096)), "{stats:#}");
    assert!((1..3).contains(&of_size(1 << 20)), "{stats:#}");
    assert!(number(stats, "large_bytes") >= 1 << 20, "{stats:#}");
    // Pages are divided among the blocks on them, so this is not exact to the byte.
    let held = 300_000 + (1 << 20);
    assert!(number(stats, "rss_live").abs_diff(held) < held / 20, "{stats:#}");
    assert!(number(stats, "requested_bytes") >= 24_000 + 300_000 + (1 << 20), "{stats:#}");
}

#[test]
fn the_text_is_printed_after_the_program() {
    let output = done(&mut run(&["--stats"], &["sh", "-c", "echo out; echo err >&2; exit 5"]));
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(stdout(&output), "out\n");
    let text = stderr(&output);
    assert!(text.starts_with("err\n\nheapwright: sh ended with exit code 5\n"), "{text}");
    for part in [
        "resident memory at exit",
        "live",
        "rounding",
        "partial slabs",
        "caches",
        "remote backlog",
        "lazily freed",
        "metadata",
        "not ours",
        "allocation sizes",
    ] {
        assert!(text.contains(part), "no {part}: {text}");
    }
    assert!(text.is_ascii(), "LC_ALL=C and no terminal: {text}");
    let mut command = run(&["--stats"], &["sh", "-c", "exit 5"]);
    let text = stderr(&done(command.env("LC_ALL", "C.UTF-8")));
    assert!(text.contains('█'), "{text}");
    assert!(!text.contains('\x1b'), "no terminal, no colour: {text}");
}

#[test]
fn a_program_that_allocates_nothing_is_measured() {
    let folder = Folder::new();
    let program = folder.compile("idle", &[], "int main(void) { return 0; }");
    let object = object(&done(&mut run(&["--format", "json"], &[text(&program)])));
    adds_up(&object["stats"]);
    assert_eq!(object["stats"]["allocations"], json!(0));
    assert!(number(&object["stats"], "rss") > 0);
}

#[test]
fn python_is_measured() {
    if is_there("/usr/bin/python3") {
        let script = "import json; print(len(json.dumps([{'a': i} for i in range(20000)])))";
        let object = measured(&["/usr/bin/python3", "-c", script]);
        assert!(number(&object["stats"], "rss") > 4 << 20);
        assert!(object["user_seconds"].as_f64() > Some(0.0));
        assert!(number(&object, "minor_faults") > 0);
        assert!(number(&object, "max_rss_bytes") >= number(&object["stats"], "rss") / 2);
    }
}

#[test]
fn sqlite_is_measured() {
    if is_there("sqlite3") {
        let script = "create table t(a, b); with recursive n(i) as (select 1 union all select \
                      i + 1 from n where i < 50000) insert into t select i, hex(i) from n; \
                      select count(*), sum(length(b)) from t;";
        measured(&["sqlite3", ":memory:", script]);
    }
}

#[test]
fn processes_it_starts_have_a_line_each() {
    let script = "ls / >/dev/null; sort /etc/passwd >/dev/null; exit 4";
    let output = done(&mut run(&["--format", "json"], &["sh", "-c", script]));
    assert_eq!(output.status.code(), Some(4));
    let object = object(&output);
    let others = object["other_processes"].as_array().expect("is a list");
    assert!(others.len() >= 2, "{object:#}");
    for stats in others {
        adds_up(stats);
        assert!(number(stats, "allocations") > 0, "{object:#}");
        assert_ne!(stats["pid"], object["pid"]);
    }
    let text = stderr(&done(&mut run(&["--stats"], &["sh", "-c", script])));
    assert!(text.contains("\nother processes ("), "{text}");
    assert!(text.contains(" resident at peak, "), "{text}");
}

#[test]
fn a_program_that_becomes_another_is_measured_as_that() {
    let output = done(&mut run(&["--format", "json"], &["sh", "-c", "exec sort /etc/passwd"]));
    let object = object(&output);
    adds_up(&object["stats"]);
    assert!(number(&object["stats"], "allocations") > 0, "{object:#}");
    assert_eq!(object["stats"]["pid"], object["pid"]);
}

#[test]
fn why_there_are_none_is_reported() {
    let folder = Folder::new();
    let fixed = folder.compile("static", &["-static"], "int main(void) { return 9; }");
    let raw = "#include <sys/syscall.h>\n#include <unistd.h>\n\
               int main(void) { syscall(SYS_exit_group, 6); }";
    let raw = folder.compile("raw", &[], raw);
    let becomes = format!("exec {}", text(&fixed));
    let cases: [(&[&str], i32, &str); 4] = [
        (&[text(&fixed)], 9, "it is statically linked"),
        (&[text(&raw)], 6, "it ended without its exit handlers"),
        (&["sh", "-c", &becomes], 9, "became a program into which heapwright cannot be loaded"),
        (&["sh", "-c", "kill -9 $$"], -9, "it was killed before it could write them"),
    ];
    for (words, status, reason) in cases {
        let output = done(&mut run(&["--stats"], words));
        let got = output.status.code().or(output.status.signal().map(|signal| -signal));
        assert_eq!(got, Some(status), "{words:?}");
        let printed = stderr(&output);
        let line = printed.lines().find(|line| line.starts_with("no statistics of its heap: "));
        assert!(line.is_some_and(|line| line.contains(reason)), "{words:?}: {printed}");
        assert!(printed.contains("page faults"), "the kernel's figures are missing: {printed}");
        let output = done(&mut run(&["--format", "json"], words));
        let object = object(&output);
        assert_eq!(object["stats"], Value::Null);
        assert!(object["no_stats_because"].as_str().expect("is text").contains(reason));
    }
}

/// Compiles a preload library that writes the test's bytes instead of statistics.
fn misbehaving(folder: &Folder, name: &str, bytes: &str) -> std::path::PathBuf {
    let source = format!(
        r#"
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        __attribute__((destructor)) static void leave(void) {{
            char *options = getenv("HEAPWRIGHT"), name[4096];
            char *prefix = options ? strstr(options, "stats_file=") : 0;
            if (!prefix) return;
            snprintf(name, sizeof name, "%s.%d", prefix + 11, (int)getpid());
            FILE *file = fopen(name, "w");
            static const char bytes[] = {bytes};
            fwrite(bytes, 1, sizeof bytes - 1, file);
            fclose(file);
        }}
        "#
    );
    folder.compile(name, &["-shared", "-fPIC"], &source)
}

#[test]
fn corrupt_statistics_cost_a_line_not_the_exit_code() {
    let folder = Folder::new();
    let program = folder.compile("program", &[], "int main(void) { return 42; }");
    let cases = [
        ("empty", "\"\"", "the stats file is cut short"),
        ("rubbish", "\"this is no stats file at all\"", "not a heapwright stats file"),
        ("version", "\"HWSTATS\\0\\7\\0\\0\\0\\0\\0\\0\\0\"", "stats file of version 7"),
        ("length", "\"HWSTATS\\0\\3\\0\\0\\0\\377\\377\\377\\377\"", "the stats file is cut short"),
    ];
    for (name, bytes, problem) in cases {
        let library = misbehaving(&folder, name, bytes);
        let flags = ["--stats", "--library", text(&library)];
        let output = done(&mut run(&flags, &[text(&program)]));
        assert_eq!(output.status.code(), Some(42));
        let printed = stderr(&output);
        let line = format!("no statistics of its heap: its statistics are unreadable: {problem}");
        assert_eq!(printed.lines().filter(|l| l.starts_with(&line)).count(), 1, "{printed}");
    }
}

#[test]
fn a_file_can_be_told_instead() {
    let folder = Folder::new();
    let file = folder.file("report", "x".repeat(100_000));
    let output =
        done(&mut run(&["--format", "json", "-o", text(&file)], &["sh", "-c", "echo out; exit 2"]));
    assert_eq!(output.status.code(), Some(2));
    assert_eq!((stdout(&output), stderr(&output)), ("out\n".to_owned(), String::new()));
    let written = fs::read_to_string(&file).expect("there");
    let object: Value = serde_json::from_str(&written).expect("nothing of what was there is left");
    assert_eq!(object["exit"]["code"], json!(2));

    let output = done(&mut run(&["-o", text(&file)], &["true"]));
    assert_eq!(stderr(&output), "");
    let written = fs::read_to_string(&file).expect("there");
    assert!(written.starts_with("heapwright: true ended with exit code 0\n"), "{written}");

    let two = ["-o", text(&file), "--timeline", text(&file)];
    let output = done(&mut run(&two, &["echo", "runs"]));
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
    assert!(stderr(&output).contains("two outputs have the same file"), "{}", stderr(&output));

    // The output goes to a pipe of the caller.
    let script = "\"$0\" run --format json -o /dev/fd/3 -- true 3>&1 >/dev/null";
    let output = done(Command::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_heapwright")]));
    let object: Value = serde_json::from_str(&stdout(&output)).expect("is JSON");
    assert_eq!(object["exit"]["code"], json!(0));
}

#[test]
fn a_report_that_cannot_be_written_costs_a_line_and_makes_2_of_0() {
    for (program, code) in [("exit 8", 8), ("exit 0", 2)] {
        let output = done(&mut run(&["--stats", "-o", "/dev/full"], &["sh", "-c", program]));
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{printed}");
        let line = "heapwright: the report could not be written: No space left";
        assert!(printed.starts_with(line), "{printed}");
    }
}

#[test]
fn a_run_leaves_nothing_behind() {
    let folder = Folder::new();
    for words in [&["true"][..], &["sh", "-c", "kill -9 $$"], &["heapwright-no-such-command"]] {
        let mut command = run(&["--stats"], words);
        done(command.env("TMPDIR", folder.path("")));
        let left: Vec<_> = fs::read_dir(folder.path("")).expect("there").collect();
        assert!(left.is_empty(), "{words:?}: {left:?}");
    }
    // A comma separates options, so an option cannot name such a folder.
    let odd = folder.path("a,b");
    fs::create_dir(&odd).expect("made");
    let output = done(run(&["--format", "json"], &["true"]).env("TMPDIR", &odd));
    let printed = stderr(&output);
    let (line, object) = printed.split_once('\n').expect("is a line");
    assert!(
        line.ends_with(
            "a,b cannot be used (its name is relative or too long, or has ',' or ';'); using /tmp"
        ),
        "{line}"
    );
    adds_up(&serde_json::from_str::<Value>(object).expect("is JSON")["stats"]);
}

#[test]
fn a_missing_temporary_folder_is_told_and_another_used() {
    let mut command = run(&["--format", "json"], &["sh", "-c", "exit 3"]);
    let output = done(command.env("TMPDIR", "/nonexistent/folder"));
    assert_eq!(output.status.code(), Some(3));
    let printed = stderr(&output);
    let (line, object) = printed.split_once('\n').expect("is a line");
    assert_eq!(
        line,
        "heapwright: TMPDIR=/nonexistent/folder cannot be used (No such file or directory (os error \
         2)); using /tmp"
    );
    let object: Value = serde_json::from_str(object).expect("is JSON");
    adds_up(&object["stats"]);
}
