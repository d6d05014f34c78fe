//! `heapwright check`: programs with a bug and without, what they start, what cannot be
//! checked, and what the command line is.

mod common;

use common::{Folder, done, heapwright, run, stderr, stdout, text};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
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
        "    to suppress it: double-free:main@prog <-",
        "== ERROR SUMMARY: 1 errors from 1 contexts (suppressed: 0 from 0)",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let output = check(&["--exit-code", "3"], &[text(&program), "twice", "7"]);
    assert_eq!(output.status.code(), Some(3));
}

/// The exit code and the summary agree about blocks that are definitely lost.
#[test]
fn lost_blocks_are_errors_of_the_summary() {
    let folder = Folder::new();
    let source = "#include <stdlib.h>\nint main(void) { for (int i = 0; i < 3; i++) { volatile char \
                  *block = malloc(100); block[0] = 1; } return 0; }\n";
    let program = folder.compile("lost", &["-g", "-O0"], source);
    let output = check(&[], &[text(&program)]);
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(99), "{printed}");
    assert!(printed.contains("ERROR SUMMARY: 1 errors from 1 contexts"), "{printed}");
    // The frames that start a C program are one line.
    assert!(printed.contains(" start the program\n"), "{printed}");
    assert!(!printed.contains("__libc_start"), "{printed}");
}

/// The name of a file may have any bytes. Each output spells out those that would change the
/// output.
#[test]
fn a_programs_name_cannot_change_a_report() {
    let folder = Folder::new();
    let program = folder.compile("two\nlines\u{202e}\u{1b}[2J", &["-g", "-O0"], SOURCE);
    let words = &[text(&program), "twice"];
    let page = folder.path("page.html");
    let written = check(&["--format", "html", "-o", text(&page)], words);
    assert_eq!(written.status.code(), Some(99), "{}", stderr(&written));
    let library = done(&mut run(&["--option", "mode=debug"], words));
    for printed in [
        stderr(&check(&[], words)),
        stderr(&library),
        std::fs::read_to_string(&page).expect("is there"),
    ] {
        assert!(printed.contains("two\\nlines\\u{202e}\\u{1b}[2J"), "{printed}");
        assert!(!printed.contains(['\u{202e}', '\u{1b}']), "{printed}");
        assert!(!printed.lines().any(|line| line.starts_with("lines")), "{printed}");
    }
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

/// Writes beyond one block of thirty thousand, which are made at one place.
const ONE_OF_MANY: &str = "
#include <stdlib.h>
__attribute__((noinline)) static void strays(char *block) { *(volatile char *)(block + 64) = 1; }
int main(void) {
    for (int i = 0; i < 31000; i++) {
        char *volatile block = malloc(64);
        if (i == 30001)
            strays(block);
        free(block);
    }
    return 0;
}
";

#[test]
fn what_a_run_finds_late_the_next_one_sees_as_it_happens() {
    let folder = Folder::new();
    let program = folder.compile("many", &["-g", "-O1", "-fno-builtin"], ONE_OF_MANY);
    let sites = folder.path("found.sites");
    let arguments = ["--sites", text(&sites), "--fail-on", "errors"];
    // Neither due a guard, nor one that there may be time for: see `sample` in the library.
    let late = check(&arguments, &[text(&program)]);
    let printed = stderr(&late);
    assert_eq!(late.status.code(), Some(99), "{printed}");
    assert!(printed.contains("buffer-overflow") && !printed.contains("in strays "), "{printed}");
    for _ in 0..2 {
        let seen = check(&arguments, &[text(&program)]);
        let printed = stderr(&seen);
        assert_eq!(seen.status.code(), Some(99), "{printed}");
        assert!(printed.contains("buffer-overflow") && printed.contains("in strays "), "{printed}");
    }
    // What is no file of sites is not overwritten.
    std::fs::write(&sites, "mine").expect("written");
    let refused = check(&arguments, &[text(&program)]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert_eq!(std::fs::read(&sites).expect("read"), b"mine");
}

/// Loses 123 bytes, and ends, or goes on, as it is asked to.
const LOSES: &str = "
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char *volatile lost;
__attribute__((noinline)) static void *xmalloc(size_t size) { return malloc(size); }
__attribute__((noinline)) static void one(void) { lost = xmalloc(123); }
__attribute__((noinline)) static void other(void) { lost = xmalloc(77); }
int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : \"\";
    if (strstr(how, \"daemon\") && daemon(0, 1))
        return 1;
    one();
    if (strstr(how, \"two\"))
        other();
    lost = malloc(1);
    if (strstr(how, \"twice\")) {
        char *block = malloc(40);
        free(block);
        free(block);
    }
    if (strstr(how, \"term\"))
        raise(SIGTERM);
    if (strstr(how, \"kill\"))
        raise(SIGKILL);
    if (strstr(how, \"wait\"))
        for (;;)
            pause();
    return 0;
}
";

fn loses(folder: &Folder) -> PathBuf {
    folder.compile("loses", &["-g", "-O0"], LOSES)
}

const LOST: &str = "definitely lost: 123 bytes in 1 blocks";

#[test]
fn what_a_signal_ends_is_looked_at() {
    let folder = Folder::new();
    let program = loses(&folder);
    let output = check(&[], &[text(&program), "term"]);
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(99), "{printed}");
    assert!(
        printed.contains(LOST) && printed.contains("== it was ended by SIGTERM\n"),
        "{printed}"
    );
    assert!(!printed.contains("INCOMPLETE"), "{printed}");
    // As the program ends, where nothing was found.
    use std::os::unix::process::ExitStatusExt;
    let output = check(&["--fail-on", "errors"], &[text(&program), "term"]);
    assert_eq!(output.status.signal(), Some(15), "{}", stderr(&output));
}

#[test]
fn what_nobody_could_look_at_comes_first_and_is_not_clean() {
    let folder = Folder::new();
    let program = loses(&folder);
    let script = format!("{} kill; exit 0", text(&program));
    let output = check(&[], &["sh", "-c", &script]);
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(125), "{printed}");
    let first = printed.lines().find(|line| line.starts_with("==")).expect("a report");
    let begins = "INCOMPLETE: process ";
    assert!(first.contains(begins) && first.contains("ended without a last look"), "{printed}");
    use std::os::unix::process::ExitStatusExt;
    let output = check(&[], &[text(&program), "kill"]);
    let printed = stderr(&output);
    assert_eq!(output.status.signal(), Some(9), "{printed}");
    assert!(printed.contains("was killed by SIGKILL: its leaks"), "{printed}");
    // In machines' formats, too.
    let output = check(&["--format", "json"], &[text(&program), "kill"]);
    let object: Value = serde_json::from_str(&stderr(&output)).expect("is JSON");
    assert_eq!(object["unseen"].as_array().map(Vec::len), Some(1), "{object}");
    let output = check(&["--format", "junit"], &[text(&program), "kill"]);
    assert!(stderr(&output).contains("type=\"unseen\""), "{}", stderr(&output));
}

#[test]
fn a_daemon_is_followed() {
    let folder = Folder::new();
    let program = loses(&folder);
    let output = check(&[], &[text(&program), "daemon,twice"]);
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(99), "{printed}");
    assert!(
        printed.contains("ERROR: heapwright: double-free") && printed.contains(LOST),
        "{printed}"
    );
    assert!(!printed.contains("INCOMPLETE"), "{printed}");
}

#[test]
fn who_asks_the_command_to_end_asks_the_daemon() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;
    let folder = Folder::new();
    let program = loses(&folder);
    let mut command = heapwright();
    command.args(["check", "--", text(&program), "daemon,wait"]).stderr(Stdio::piped());
    let mut child = command.spawn().expect("runs");
    let mut said = BufReader::new(child.stderr.take().expect("is piped"));
    let mut line = String::new();
    said.read_line(&mut line).expect("is text");
    assert!(line.contains("has ended and goes on as process "), "{line}");
    // SAFETY: no pointers are involved, and the child was not waited for.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGTERM) };
    said.read_to_string(&mut line).expect("is text");
    assert_eq!(child.wait().expect("ends").code(), Some(99), "{line}");
    assert!(line.contains(LOST), "{line}");
}

/// Whether root runs the test: others cannot become another user, and have no stranger to attack
/// them.
fn is_root(test: &str) -> bool {
    // SAFETY: it has no precondition.
    let is = unsafe { libc::geteuid() } == 0;
    if !is {
        eprintln!("{test} skipped: only root can become another user");
    }
    is
}

/// A user that no process of the run has, except those that become this user.
const STRANGER: u32 = 54_321;

/// A server that root starts is reported after it has become another user: its own record goes on,
/// and its later children have records.
#[test]
fn what_gave_up_its_user_is_reported() {
    if !is_root("what_gave_up_its_user_is_reported") {
        return;
    }
    let folder = Folder::new();
    let source = "
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) static void serve(int size) {
    char *volatile block = malloc(size);
    free(block);
    free(block);
}
int main(int count, char **words) {
    int left = strcmp(words[1], \"back\") ? setuid(54321) : seteuid(54321);
    if (left != 0)
        return 1;
    serve(80);
    if (fork() == 0) {
        serve(40);
        exit(0);
    }
    wait(0);
    if (strcmp(words[1], \"back\") == 0 && seteuid(0) != 0)
        return 2;
    serve(120);
    return 0;
}
";
    let program = folder.compile("server", &["-g", "-O0"], source);
    for how in ["for good", "back"] {
        let kept = folder.path(how.replace(' ', "-"));
        for flags in [&[][..], &["--keep", text(&kept)]] {
            let output = check(flags, &[text(&program), how]);
            assert_eq!(output.status.code(), Some(99), "{}", stderr(&output));
            let printed = stderr(&output);
            for part in [" 40-byte block", " 80-byte block", " 120-byte block", "in serve "] {
                assert!(printed.contains(part), "{how}: {part}: {printed}");
            }
            // (A process that became another user may not read its own memory.)
            for line in printed.lines().filter(|line| line.contains("INCOMPLETE: ")) {
                assert!(line.contains(" could not be looked at for leaks: "), "{how}: {printed}");
            }
        }
        let output = done(heapwright().arg("report").arg(&kept));
        assert!(stdout(&output).contains("of a 40-byte"), "{}", stdout(&output));
    }
}

/// A stranger to the run can put no file into its folder, nor in the place of a record.
#[test]
fn other_users_neither_hide_nor_forge_findings() {
    if !is_root("other_users_neither_hide_nor_forge_findings") {
        return;
    }
    let folder = Folder::new_in(Path::new("/tmp"));
    let program = program(&folder);
    let fine = folder.path("fine");
    check(&["--keep", text(&fine)], &[text(&program)]);
    // As the stranger: a file, a pipe and a folder, and a look at the names of others' files.
    let tries = "umask 0; for d in $TMPDIR/heapwright-*; do echo x >$d/record.77 && echo made; \
                 mkfifo $d/record.78 && echo made; mkdir $d/record.users && echo made; ls $d; done";
    let script = format!(
        "setpriv --reuid {STRANGER} --clear-groups sh -c '{tries}'; {} twice",
        text(&program)
    );
    for flags in [&["check"][..], &["valgrind", "--trace-children=yes"]] {
        let mut command = heapwright();
        let output = done(
            command.args(flags).args(["--", "sh", "-c", &script]).env("TMPDIR", folder.path("")),
        );
        assert_eq!(stdout(&output), "", "{}", stderr(&output));
        let printed = stderr(&output);
        assert!(printed.contains("double-free") || printed.contains("Invalid free"), "{printed}");
    }
    // In a folder that is open to all, a stranger's files are not read, and the run is not clean.
    let open = folder.path("open");
    std::fs::create_dir(&open).expect("made");
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&open, all).expect("changed");
    let script = format!(
        "for r in {}/record.*; do cp $r {1}/record.99; done; chown {STRANGER} {1}/record.99; {2}",
        text(&fine),
        text(&open),
        text(&program)
    );
    let output = check(&["--keep", text(&open)], &["sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
    assert!(stderr(&output).contains("record.99 is no record of this run"), "{}", stderr(&output));
}

/// A record leads to the lines of a source that its owner can read, and to no others.
#[test]
fn a_record_leads_to_no_file_that_its_owner_cannot_read() {
    use std::os::unix::fs::{PermissionsExt, chown};
    if !is_root("a_record_leads_to_no_file_that_its_owner_cannot_read") {
        return;
    }
    let folder = Folder::new_in(Path::new("/tmp"));
    let program = program(&folder);
    let kept = folder.path("kept");
    check(&["--keep", text(&kept)], &[text(&program), "twice"]);
    let shown = |mode| {
        std::fs::set_permissions(folder.path("prog.c"), PermissionsExt::from_mode(mode))
            .expect("changed");
        let output = done(heapwright().arg("report").arg(&kept));
        assert!(stdout(&output).contains("double-free"), "{}", stderr(&output));
        stdout(&output).contains("free(block);")
    };
    assert!(shown(0o600), "root's own");
    for record in std::fs::read_dir(&kept).expect("there").flatten() {
        chown(record.path(), Some(STRANGER), None).expect("changed");
    }
    assert!(shown(0o644));
    assert!(!shown(0o600));
}

/// If standard error takes no text, the exit code is the same.
#[test]
fn no_exit_code_depends_on_standard_error() {
    let folder = Folder::new();
    let program = program(&folder);
    let (program, none) = (text(&program), text(&folder.path("none")).to_owned());
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").expect("opens");
    let closed = || std::io::pipe().expect("made").1;
    for words in [
        &["check", "--", program, "twice"][..],
        &["check", "--", program, "once", "7"],
        &["check", "--no-such-option"],
        &["check", "--", &none],
        &["check", "--keep", "/proc/none", "--", program],
        &["valgrind", "--error-exitcode=9", program, "twice"],
        &["cargo", "--no-such-option"],
        &["run", "--stats", "--", program, "once", "3"],
        &["run", "--", &none],
        &["profile", "--", program, "once", "3"],
        &["record", "-o", "/proc/none", "--", program],
        &["replay", &none],
        &["report", &none],
        &["diff", &none, &none],
        &["heap", &none],
        &["top", "--no-such-option"],
        &["explain", &none],
        &["doctor", "--", &none],
        &["bench", "--rounds", "1", "--", &none],
        &["library", "--no-such-option"],
    ] {
        let code = |stderr: std::process::Stdio| {
            let mut command = heapwright();
            command.args(words).stdout(std::process::Stdio::null()).stderr(stderr);
            command.status().expect("runs").code()
        };
        let wanted = code(std::process::Stdio::null());
        assert!(wanted.is_some(), "{words:?}");
        assert_eq!(code(full().into()), wanted, "{words:?} to a full device");
        assert_eq!(code(closed().into()), wanted, "{words:?} to a closed pipe");
    }
}

#[test]
fn what_runs_still_is_named_and_is_not_clean() {
    let folder = Folder::new();
    let program = loses(&folder);
    let kept = folder.path("kept");
    let script = format!("{} wait >/dev/null 2>&1 & echo $!", text(&program));
    let output = check(&["--keep", text(&kept)], &["sh", "-c", &script]);
    let printed = stderr(&output);
    let pid: i32 = stdout(&output).trim().parse().expect("a pid");
    // SAFETY: no pointers are involved; the process runs until it is killed.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    assert_eq!(output.status.code(), Some(125), "{printed}");
    assert!(printed.contains(&format!("process {pid} ")), "{printed}");
    assert!(
        printed.contains("is still running") && printed.contains("kept/record.PID"),
        "{printed}"
    );
}

#[test]
fn a_suggested_suppression_hides_its_finding_and_no_other() {
    let folder = Folder::new();
    let program = loses(&folder);
    let output = check(&[], &[text(&program), "two"]);
    let printed = stderr(&output);
    let suggested: Vec<&str> =
        printed.lines().filter_map(|line| line.trim().strip_prefix("to suppress it: ")).collect();
    let wanted = [
        "leak:xmalloc@loses <- one@loses <- main@loses",
        "leak:xmalloc@loses <- other@loses <- main@loses",
    ];
    assert_eq!(suggested, wanted, "{printed}");
    let file = folder.file("one", wanted[0]);
    let output = check(&["--suppress", text(&file)], &[text(&program), "two"]);
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(99), "{printed}");
    assert!(
        printed.contains("definitely lost: 77 bytes") && !printed.contains("WARNING"),
        "{printed}"
    );
    // A wide one is used, and what is wrong with it is said.
    let file = folder.file("wide", "leak:^xmalloc$\n");
    let output = check(&["--suppress", text(&file)], &[text(&program), "two"]);
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(printed.contains("WARNING: it hides 2 different causes"), "{printed}");
}

/// Accesses that guards catch, in C and in the C library; a handler of the program's for traps, and
/// one for faults.
#[cfg(target_arch = "x86_64")]
const CAUGHT: &str = "
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static volatile int sum, traps;
static sigjmp_buf away;
static void trap(int number) { (void)number; traps++; }
static void fault(int number) { (void)number; siglongjmp(away, 1); }
int main(void) {
    signal(SIGTRAP, trap);
    signal(SIGSEGV, fault);
    volatile char *block = malloc(40);
    free((void *)block);
    for (int i = 0; i < 40; i++)
        sum += block[i];
    block[3] = 7;
    volatile char *next = malloc(5000);
    for (int i = 5000; i < 5040; i++)
        next[i] = 1;
    /* One instruction that touches a guard and memory that is nobody's: the second is the program's. */
    char *nowhere = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sigsetjmp(away, 1) == 0) {
        __asm__ volatile(\"movsb\" : : \"S\"(block), \"D\"(nowhere) : \"memory\");
        return 3;
    }
    __asm__ volatile(\"int3\");
    if (traps != 1)
        return 4;
    char *zero = calloc(1, 40);
    for (int i = 0; i < 40; i++)
        if (zero[i])
            return 5;
    puts(\"went on\");
    return 0;
}
";

#[cfg(target_arch = "x86_64")]
#[test]
fn a_program_goes_on_after_an_access_that_was_caught() {
    let folder = Folder::new();
    let program = folder.compile("caught", &["-g", "-O0"], CAUGHT);
    let output = check(&["--guard", "all"], &[text(&program)]);
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(99), "{printed}");
    assert_eq!(stdout(&output), "went on\n", "{printed}");
    assert!(printed.contains("== it exited with code 0\n"), "{printed}");
    for part in [
        "use-after-free: read at offset 0 of a 40-byte block after it was freed",
        "    found 40 times",
        "use-after-free: write at offset 3 of a 40-byte block after it was freed",
        "buffer-overflow: write at offset 5",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
}

#[test]
fn a_write_that_is_found_later_says_so() {
    let folder = Folder::new();
    let source = "#include <stdlib.h>\nint main(void) { char *p = malloc(40); p[40] = 1; free(p); return 0; }";
    let program = folder.compile("late", &["-g", "-O0"], source);
    let output = check(&["--guard", "never"], &[text(&program)]);
    let printed = stderr(&output);
    let line = "    overwritten between its allocation and this free; noticed here, thread 1";
    assert!(printed.contains(line), "{printed}");
}

#[test]
fn a_shims_shell_is_not_the_program_and_python_is_told_of() {
    let folder = Folder::new();
    let program = loses(&folder);
    std::fs::create_dir(folder.path("shims")).expect("made");
    // A shell whose end nobody sees: it is killed by its own command.
    let shim = folder
        .script("shims/tool", &format!("#!/bin/sh\n{} &\nwait\nkill -9 $$\n", text(&program)));
    let output = check(&["--fail-on", "none"], &[text(&shim)]);
    assert!(!stderr(&output).contains("INCOMPLETE"), "{}", stderr(&output));
    assert!(stderr(&output).contains(LOST), "{}", stderr(&output));
    // A program of that name.
    let python = folder.path("python3.99");
    std::fs::copy(&program, &python).expect("copied");
    let hint = "(--python has them in malloc)";
    let output = check(&["--fail-on", "none"], &[text(&python)]);
    assert!(stderr(&output).contains(hint), "{}", stderr(&output));
    let script = format!("echo $PYTHONMALLOC; {}", text(&python));
    let output = check(&["--fail-on", "none", "--python"], &["sh", "-c", &script]);
    assert_eq!(stdout(&output), "malloc\n");
    assert!(!stderr(&output).contains(hint), "{}", stderr(&output));
}

/// Keeps 200 blocks, each of a line of its own by its size, and loses one.
const KEEPS: &str = "
#include <stdlib.h>
void *kept[200];
void *volatile lost;
int main(int count, char **words) {
    for (int i = 0; i < 200; i++)
        kept[i] = malloc(1 + i);
    if (count > 1)
        lost = malloc(77), lost = 0;
    return 0;
}
";

#[test]
fn what_is_reachable_is_summed_or_listed_and_the_sum_is_the_same() {
    let folder = Folder::new();
    let program = folder.compile("keeps", &["-g", "-O0"], KEEPS);
    let sum = "==    still reachable: 20,100 bytes in 200 blocks";
    let kept = folder.path("records");
    for words in [&[text(&program)][..], &[text(&program), "loses"]] {
        for flags in [&[][..], &["--show", "all"], &["--keep", text(&kept)]] {
            let printed = stderr(&check(flags, words));
            assert!(printed.contains(sum), "{flags:?}: {printed}");
            let is_listed =
                printed.contains("heapwright: still-reachable: 20,100 bytes in 200 blocks");
            assert_eq!(is_listed, flags.contains(&"all"), "{flags:?}: {printed}");
            let lost = if words.len() > 1 { "77 bytes in 1 blocks" } else { "0 bytes in 0 blocks" };
            assert!(printed.contains(&format!("definitely lost: {lost}")), "{flags:?}: {printed}");
            let _ = std::fs::remove_dir_all(&kept);
        }
    }
}

#[test]
fn processes_of_one_check_share_what_they_know_of_code() {
    let output = check(&[], &["sh", "-c", "exec grep -c memfd:heapwright-shared /proc/self/maps"]);
    assert_eq!(stdout(&output).trim(), "2", "{}", stderr(&output));
}
