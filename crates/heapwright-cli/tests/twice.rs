//! `heapwright check --twice` finds uninitialised values that have effects, and no others.

mod common;

use common::{Folder, done, heapwright, stderr, stdout, text};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/uninitialised")
}

/// Compiles a program of the corpus: the bad one, or its twin.
fn compile(folder: &Folder, source: &Path, is_bad: bool) -> PathBuf {
    let name = source.file_stem().expect("has one").to_str().expect("is text");
    let program = folder.path(format!("{name}{}", if is_bad { "" } else { "-twin" }));
    let is_cxx = source.extension().is_some_and(|extension| extension == "cc");
    let mut command = Command::new(if is_cxx { "c++" } else { "cc" });
    command.args(["-g", "-O0", "-o"]).arg(&program).arg(source);
    if is_bad {
        command.arg("-DBAD");
    }
    let output = done(&mut command);
    assert!(output.status.success(), "{}: {}", source.display(), stderr(&output));
    program
}

fn twice(flags: &[&str], words: &[&str]) -> Output {
    let mut command = heapwright();
    command.args(["check", "--twice", "--leaks", "no"]).args(flags).arg("--").args(words);
    done(command.stdin(Stdio::null()))
}

fn program(folder: &Folder, name: &str, body: &str) -> PathBuf {
    let head =
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n";
    folder.compile(name, &["-g", "-O0"], &format!("{head}{body}"))
}

/// Each fault is found by the effect that the program's first line names. Its twin is clean.
fn check_corpus(is_mine: impl Fn(usize) -> bool) {
    let folder = Folder::new();
    let data = folder.path("data");
    let mut sources: Vec<PathBuf> = fs::read_dir(corpus())
        .expect("is there")
        .map(|entry| entry.expect("read").path())
        .collect();
    sources.retain(|source| source.extension().is_some_and(|extension| extension != "md"));
    sources.sort();
    assert!(sources.len() >= 17, "{sources:?}");
    for (_, source) in sources.iter().enumerate().filter(|(number, _)| is_mine(*number)) {
        let code = fs::read_to_string(source).expect("is text");
        let finds = code.lines().next().and_then(|line| line.strip_prefix("// finds: "));
        let finds = finds.expect("says what is found");
        let flags = if finds == "file" { vec!["--compare", text(&data)] } else { Vec::new() };
        for is_bad in [true, false] {
            let program = compile(&folder, source, is_bad);
            let output = twice(&flags, &[text(&program), text(&data)]);
            let printed = stderr(&output);
            let is_found = is_bad && finds != "nothing";
            let expected = if is_found { 99 } else { 0 };
            assert_eq!(output.status.code(), Some(expected), "{}: {printed}", program.display());
            if is_found {
                let effect = match finds {
                    "stdout" => "which nobody has written: stdout differs in line ",
                    "end" => "which nobody has written: it exits with code 0 or ",
                    "file" => "/data differs in line 1, byte 6: ",
                    "finding" => {
                        "which nobody has written: one of the two has buffer-overflow (read at "
                    }
                    other => panic!("{}: {other}", source.display()),
                };
                assert!(printed.contains(effect), "{}: {printed}", program.display());
                assert!(
                    printed.contains("==ERROR: heapwright: uninitialised-value: "),
                    "{printed}"
                );
            } else {
                assert!(printed.contains(" runs with other bytes "), "{printed}");
            }
        }
    }
}

#[test]
fn the_first_half_of_the_corpus_is_found_and_its_twins_are_not() {
    check_corpus(|number| number % 2 == 0);
}

#[test]
fn the_second_half_of_the_corpus_is_found_and_its_twins_are_not() {
    check_corpus(|number| number % 2 == 1);
}

#[test]
fn the_byte_of_the_block_of_the_site_is_named_in_each_format() {
    let folder = Folder::new();
    let program = compile(&folder, &corpus().join("third-block.c"), true);
    let (kept, file) = (folder.path("kept"), folder.path("report"));
    let flags = ["--keep", text(&kept), "--format", "json", "-o", text(&file)];
    let output = twice(&flags, &[text(&program)]);
    assert_eq!(output.status.code(), Some(99), "{}", stderr(&output));
    let json = fs::read(&file).expect("has a report");
    let report: Value = serde_json::from_slice(&json).expect("is JSON");
    assert_eq!(report["errors"].as_array().map(Vec::len), Some(1), "{report}");
    let error = &report["errors"][0];
    assert_eq!(error["kind"], "uninitialised-value");
    assert_eq!((&error["size"], &error["offset"]), (&100.into(), &42.into()));
    assert_eq!(
        error["sentence"],
        "what the program does depends on byte 42 of a 100-byte block, which nobody has written: \
         it exits with code 0 or exits with code 8"
    );
    assert!(error["allocated"]["stack"].as_u64().is_some_and(|stack| stack != 0));
    assert_eq!(fs::read_dir(&kept).expect("is there").count(), 1);
    for (format, words) in [
        ("text", "    #0 "),
        ("gcc", "error: what the program does depends on byte 42"),
        ("sarif", r#""ruleId":"uninitialised-value""#),
        ("junit", r#"type="uninitialised-value""#),
        ("memcheck", "Uninitialised value was created by a heap allocation"),
    ] {
        let output =
            done(heapwright().args(["report", "--format", format]).arg(&kept).stdin(Stdio::null()));
        assert!(stdout(&output).contains(words), "{format}: {}", stdout(&output));
        assert!(stdout(&output).contains("third-block.c"), "{format}: {}", stdout(&output));
    }
    let hides = folder.file("known.supp", "uninitialised-value:^make$\n");
    let output = twice(&["--suppress", text(&hides)], &[text(&program)]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("(suppressed: 1 from 1)"), "{}", stderr(&output));
}

#[test]
fn several_bytes_are_found_and_other_findings_are_reported_once() {
    let folder = Folder::new();
    let program = program(
        &folder,
        "several",
        "int *make(void) { return malloc(3 * sizeof(int)); }
         int main(void) {
             int *one = make(), *other = malloc(8);
             one[0] = 1; one[1] = 2; other[0] = 3;
             if (one[2]) puts(\"one\");
             if (other[1]) puts(\"other\");
             free(one); free(other); free(other);
             return 0;
         }",
    );
    let output = twice(&[], &[text(&program)]);
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(99), "{printed}");
    assert_eq!(printed.matches("uninitialised-value: what").count(), 2, "{printed}");
    for words in [
        "byte 8 of a 12-byte block",
        "byte 4 of an 8-byte block",
        "ERROR SUMMARY: 3 errors from 3 contexts",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    assert_eq!(printed.matches("double-free: ").count(), 1, "{printed}");
    // After this many runs no further search begins: the other value is only mentioned.
    let output = twice(&["--runs", "5"], &[text(&program)]);
    let printed = stderr(&output);
    assert_eq!(printed.matches("uninitialised-value: what").count(), 1, "{printed}");
    assert!(printed.contains("other undefined bytes make a difference, too (stdout"), "{printed}");
}

#[test]
fn output_is_passed_on_once_and_input_is_the_same_in_each_run() {
    let folder = Folder::new();
    let program = program(
        &folder,
        "upper",
        "int main(void) {
             int letter;
             fputs(\"working\\n\", stderr);
             while ((letter = getchar()) != EOF) putchar(letter - (letter >= 'a' ? 32 : 0));
             return 5;
         }",
    );
    let mut command = heapwright();
    command.args(["check", "--twice", "--"]).arg(&program);
    let input = folder.file("input", "skipped\nread\n");
    let file = fs::File::open(&input).expect("is there");
    std::io::Seek::seek(&mut &file, std::io::SeekFrom::Start(8)).expect("can be sought");
    let output = done(command.stdin(file));
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("READ\n", Some(5)));
    assert_eq!(stderr(&output).matches("working\n").count(), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("4 runs with other bytes"), "{}", stderr(&output));
    // The same input comes from a pipe, which can be read once.
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    child.stdin.take().expect("is piped").write_all(b"read\n").expect("written");
    let output = child.wait_with_output().expect("ends");
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("READ\n", Some(5)));
}

#[test]
fn what_differs_from_itself_is_not_compared_and_does_not_look_clean() {
    let folder = Folder::new();
    let program =
        program(&folder, "pid", "int main(void) { printf(\"one\\n%d\\n\", getpid()); return 0; }");
    let output = twice(&[], &[text(&program)]);
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(125), "{printed}");
    let words = "INCOMPLETE: not compared with itself (--twice): two runs alike differ: stdout differs in line 2, byte ";
    assert!(printed.contains(words), "{printed}");
}

#[test]
fn addresses_and_side_effects_can_be_the_same() {
    let folder = Folder::new();
    let program = program(
        &folder,
        "grows",
        "char global;
         int main(int count, char **words) {
             char local, *block = malloc(10);
             printf(\"%p %p %p %p\\n\", (void *)&local, (void *)&global, (void *)block, (void *)puts);
             FILE *file = fopen(words[1], \"a\");
             printf(\"%ld\\n\", ftell(file));
             fputs(\"a line\\n\", file);
             fclose(file);
             free(block);
             return count - 2;
         }",
    );
    let data = folder.path("log");
    let output = twice(&[], &[text(&program), text(&data)]);
    assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
    assert!(stderr(&output).contains("stdout differs in line 2, "), "{}", stderr(&output));
    let setup = format!("rm -f '{}'", text(&data));
    let output = twice(&["--setup", &setup], &[text(&program), text(&data)]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = twice(&["--setup", "exit 3"], &[text(&program), text(&data)]);
    assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
    assert!(stderr(&output).contains("--setup 'exit 3' failed"), "{}", stderr(&output));
}

#[test]
fn the_command_line_is_told_what_is_wrong_with_it() {
    let output = twice(&["--option", "fill=1"], &["true"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--twice sets option fill itself"), "{}", stderr(&output));
    let output = done(heapwright().args(["check", "--setup", "true", "--", "true"]));
    assert_eq!(output.status.code(), Some(2));
    let output = twice(&["--compare", "/tmp"], &["echo", "runs"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
    assert!(stderr(&output).contains("--compare /tmp: this is not"), "{}", stderr(&output));
    let output = twice(&[], &["./no-such-program"]);
    assert_eq!(output.status.code(), Some(127));
}
