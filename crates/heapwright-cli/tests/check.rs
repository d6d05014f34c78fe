//! `heapwright check`: programs with and without a bug, their child processes, programs that cannot
//! be checked, and the command line.

mod common;

use common::{Folder, done, heapwright, run, stderr, stdout, text};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Output;

/// Frees twice if its arguments say so, and ends as they say.
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
        "    to suppress it: double-free:main@prog\n",
        "== ERROR SUMMARY: 1 errors from 1 contexts (suppressed: 0 from 0)",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let output = check(&["--exit-code", "3"], &[text(&program), "twice", "7"]);
    assert_eq!(output.status.code(), Some(3));
}

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
    assert!(printed.contains(" start the program\n"), "{printed}");
    assert!(!printed.contains("__libc_start"), "{printed}");
}

/// The name of a file may have any bytes. Each output escapes those that would change it.
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
    // The command's own questions to the library are no processes of the program.
    let flags = ["--option", "purge=250", "--format", "json", "-o", text(&report)];
    assert_eq!(check(&flags, &[text(&program)]).status.code(), Some(0));
    let printed = std::fs::read_to_string(&report).expect("was written");
    let object: Value = serde_json::from_str(&printed).expect("is JSON");
    assert_eq!(object["processes"].as_array().map(Vec::len), Some(1), "{printed}");
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
    // A mistake in a suppression file is found before the program starts.
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
    let output = check(&["--keep", text(&kept)], &[text(&program)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("there are records in "), "{}", stderr(&output));
    let output = check(&["--keep", text(&folder.path("a,b"))], &[text(&program)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("has , or ; in it"), "{}", stderr(&output));
    let output = check(&["--keep", text(&folder.path("new/inner"))], &["/nonexistent"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(!folder.path("a,b").exists() && !folder.path("new").exists());
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
    let printed = stderr(&output);
    assert!(printed.contains("itself was not checked") && !printed.contains('?'), "{printed}");
    // The program that cannot be checked becomes one that can be.
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
        (&["--option", "purge=5,mode=fast"], "--option mode=fast: this command sets option "),
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

/// Writes beyond one of thirty thousand blocks from the same place.
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
    // The block is not due for a guard, and hardly gets one by chance: see `sample` in the library.
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
    // A file that has no sites is not overwritten.
    std::fs::write(&sites, "mine").expect("written");
    let refused = check(&arguments, &[text(&program)]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert_eq!(std::fs::read(&sites).expect("read"), b"mine");
}

/// Loses 123 bytes, and ends or goes on, as its argument says.
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
    if (strncmp(how, \"raise\", 5) == 0)
        raise(atoi(how + 5));
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
    use std::os::unix::process::ExitStatusExt;
    let ending = [libc::SIGHUP, libc::SIGUSR1, libc::SIGALRM, libc::SIGPROF, libc::SIGSTKFLT];
    for signal in
        ending.into_iter().chain([libc::SIGRTMIN(), libc::SIGRTMIN() + 3, libc::SIGRTMAX()])
    {
        let output = check(&[], &[text(&program), &format!("raise{signal}")]);
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(99), "{printed}");
        assert!(printed.contains(LOST) && printed.contains("== it was ended by SIG"), "{printed}");
        assert!(!printed.contains("INCOMPLETE"), "{printed}");
    }
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
    let output = check(&["--format", "json"], &[text(&program), "kill"]);
    let object: Value = serde_json::from_str(&stderr(&output)).expect("is JSON");
    assert_eq!(object["unseen"].as_array().map(Vec::len), Some(1), "{object}");
    let output = check(&["--format", "junit"], &[text(&program), "kill"]);
    assert!(stderr(&output).contains("type=\"unseen\""), "{}", stderr(&output));
}

#[test]
fn what_prevents_a_last_look_is_named() {
    let folder = Folder::new();
    let source = "
#include <stdlib.h>
#include <sys/resource.h>
int main(int count, char **words) {
    struct rlimit three = {3, 3};
    void *volatile lost = malloc(10);
    lost = 0;
    if (count > 1)
        __asm__ volatile(\"syscall\" : : \"a\"(231), \"D\"(0));
    return setrlimit(RLIMIT_NOFILE, &three);
}
";
    let program = folder.compile("unseen", &["-O0"], source);
    let mut cases = vec![(&[][..], "for leaks: the process has too many open files")];
    if cfg!(target_arch = "x86_64") {
        cases.push((&["raw"], "by a system call of its own (let it call exit or _exit)"));
    }
    for (words, part) in cases {
        let output = check(&[], &[&[text(&program)], words].concat());
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(125), "{printed}");
        assert!(printed.contains(part), "{part}: {printed}");
    }
}

#[test]
fn the_command_needs_no_more_stack_than_the_user_allows() {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    let folder = Folder::new();
    let program = loses(&folder);
    let command = env!("CARGO_BIN_EXE_heapwright");
    let script = "ulimit -s 64; exec \"$0\" check -- \"$1\"";
    let output = done(Command::new("sh").args(["-c", script, command, text(&program)]));
    assert_eq!(output.status.code(), Some(99), "{}", stderr(&output));
    // With little stack, the command still ends as the program did.
    let script = "ulimit -s 64; exec \"$0\" run --stats -- sh -c 'kill -TERM $$'";
    let output = done(Command::new("sh").args(["-c", script, command]));
    assert_eq!(output.status.signal(), Some(15), "{}", stderr(&output));
}

/// The program leaves its folder. The loader knows the libraries by paths relative to that folder,
/// and the program by no path.
#[test]
fn modules_have_names_whatever_the_folder() {
    let folder = Folder::new();
    let library = "
#include <stdlib.h>
void *volatile kept;
__attribute__((noinline)) void fill(int size) { kept = malloc(size); kept = 0; }
";
    let flags = ["-g", "-O0", "-shared", "-fPIC"];
    folder.compile("libfill.so", &flags, library);
    folder.compile("plugin.so", &flags, &library.replace("fill", "plug"));
    let source = "
#include <dlfcn.h>
#include <unistd.h>
void fill(int);
int main(void) {
    void *plugin = dlopen(\"./plugin.so\", RTLD_NOW);
    if (chdir(\"/\"))
        return 1;
    fill(10);
    ((void (*)(int))dlsym(plugin, \"plug\"))(20);
    return 0;
}
";
    let found = format!("-L{}", text(&folder.path("")));
    let tail = [&*found, "-Wl,--no-as-needed", "-lfill", "-ldl"];
    let program = |name: &str, more: &[&str]| {
        folder.compile(name, &[&["-g", "-O0"], &tail[..], more].concat(), source)
    };
    program("linked", &["-Wl,-rpath,."]);
    let bytes = std::fs::read(program("plain", &[])).expect("there");
    let interpreter = bytes
        .split(|&byte| byte == 0)
        .find(|part| part.starts_with(b"/lib") && part.windows(3).any(|three| three == b"ld-"));
    let loader = std::str::from_utf8(interpreter.expect("has one")).expect("is text");
    for words in [
        &["./linked"][..],
        &["env", "LD_LIBRARY_PATH=.", "./plain"],
        &[loader, "--library-path", ".", "./plain"],
    ] {
        let mut command = heapwright();
        command.args(["check", "--"]).args(words).current_dir(folder.path(""));
        let printed = stderr(&done(&mut command));
        for part in ["libfill.so <- main@", "plug@plugin.so <- main@", "in fill ", "in plug "] {
            assert!(printed.contains(part), "{words:?}: {part}: {printed}");
        }
    }
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
    assert!(line.contains("goes on in the background as process "), "{line}");
    // SAFETY: no pointers are involved, and the child was not waited for.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGTERM) };
    said.read_to_string(&mut line).expect("is text");
    assert_eq!(child.wait().expect("ends").code(), Some(99), "{line}");
    assert!(line.contains(LOST), "{line}");
}

/// Only root can become another user, and so play the stranger that attacks a run.
fn is_root(test: &str) -> bool {
    // SAFETY: the call has no precondition.
    let is = unsafe { libc::geteuid() } == 0;
    if !is {
        eprintln!("{test} skipped: only root can become another user");
    }
    is
}

/// The id of a user that no process has before it becomes this user.
const STRANGER: u32 = 54_321;

/// A server that becomes another user is still checked. Its own record goes on, and its later
/// children have records.
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
            // A process that became another user may be unable to read its own memory.
            for line in printed.lines().filter(|line| line.contains("INCOMPLETE: ")) {
                assert!(line.contains(" could not be looked at for leaks: "), "{how}: {printed}");
            }
        }
        let output = done(heapwright().arg("report").arg(&kept));
        assert!(stdout(&output).contains("of a 40-byte"), "{}", stdout(&output));
    }
}

/// A stranger can put no file into a run's folder. In an open folder no stranger's file is read.
#[test]
fn other_users_neither_hide_nor_forge_findings() {
    if !is_root("other_users_neither_hide_nor_forge_findings") {
        return;
    }
    let folder = Folder::new_in(Path::new("/tmp"));
    let program = program(&folder);
    let fine = folder.path("fine");
    check(&["--keep", text(&fine)], &[text(&program)]);
    // The stranger tries to make a file, a pipe and a folder, and to list others' files.
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

/// A report shows only lines of sources that the record's owner can read.
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

/// A run that lost its file is no success, whatever the command and the format.
#[test]
fn no_run_without_its_file_ends_with_0() {
    let folder = Folder::new();
    let program = program(&folder);
    let (program, full) = (text(&program), "/dev/full");
    let run = |words: &[&str]| done(heapwright().args(words));
    let mut lines = vec![
        vec!["valgrind", "--log-file=/dev/full", program, "none"],
        vec!["valgrind", "--xml=yes", "--xml-file=/dev/full", program, "none"],
        vec!["profile", "-o", full, "--", program, "none"],
        vec!["record", "-o", full, "--", program, "none"],
        vec!["run", "--timeline", full, "--", program, "none"],
    ];
    for format in ["text", "json", "html", "sarif", "junit", "memcheck", "memcheck-xml", "pprof"] {
        lines.push(vec!["check", "--format", format, "-o", full, "--", program, "none"]);
    }
    for words in lines {
        let output = run(&words);
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {printed}");
        assert!(printed.contains(" could not be written: "), "{words:?}: {printed}");
    }
    // The exit code of the program, or of a finding, stays if it is not 0.
    for (how, code) in [("once", 7), ("twice", 99)] {
        let output = run(&["check", "-o", full, "--", program, how, "7"]);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
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
    // A pattern that hides much is used, with a warning.
    let file = folder.file("wide", "leak:^xmalloc$\n");
    let output = check(&["--suppress", text(&file)], &[text(&program), "two"]);
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(printed.contains("WARNING: it hides 2 different causes"), "{printed}");
}

/// Makes accesses that guards catch, in C and in assembly. Has handlers for traps and faults.
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
    /* One instruction reads a guarded block and writes to PROT_NONE memory. Heapwright handles */
    /* the first fault. The program's handler gets the second. */
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
    // The shell's own command kills it.
    let shim = folder
        .script("shims/tool", &format!("#!/bin/sh\n{} &\nwait\nkill -9 $$\n", text(&program)));
    let output = check(&["--fail-on", "none"], &[text(&shim)]);
    assert!(!stderr(&output).contains("INCOMPLETE"), "{}", stderr(&output));
    assert!(stderr(&output).contains(LOST), "{}", stderr(&output));
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

/// Keeps 200 blocks of 200 sizes. With an argument, loses one more.
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
            // Only modules of printed stacks have their build-ids printed.
            let has_stack = is_listed || words.len() > 1;
            assert_eq!(printed.contains("BuildId "), has_stack, "{flags:?}: {printed}");
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

/// The leak check at a process's end does not need the first thread.
#[test]
fn leaks_are_looked_for_whichever_thread_ends_the_program() {
    let folder = Folder::new();
    let source = "
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static const char *how;
static char *volatile lost;
static __attribute__((noinline)) void lose(void) {
    lost = malloc(123);
    lost = 0;
}
static __attribute__((noinline)) void forget(void) {
    volatile char stack[4000];
    for (unsigned i = 0; i < sizeof stack; i++)
        stack[i] = 0;
}
static void *work(void *nothing) {
    usleep(30000);
    lose();
    forget();
    if (strcmp(how, \"exits\") == 0)
        exit(0);
    if (strcmp(how, \"quits\") == 0)
        quick_exit(0);
    if (strcmp(how, \"stops\") == 0)
        _exit(0);
    return nothing;
}
int main(int count, char **words) {
    pthread_t thread;
    how = words[1];
    pthread_create(&thread, 0, work, 0);
    if (strcmp(how, \"joined\") != 0 && count == 2)
        pthread_exit(0);
    pthread_join(thread, 0);
    return 0;
}
";
    let program = folder.compile("threads", &["-g", "-O0", "-pthread"], source);
    for how in ["joined", "last", "exits", "quits", "stops"] {
        for words in [&[text(&program), how][..], &[text(&program), how, "main waits"]] {
            let output = check(&[], words);
            let printed = stderr(&output);
            assert_eq!(output.status.code(), Some(99), "{words:?}: {printed}");
            assert!(printed.contains("definitely lost: 123 bytes in 1 blocks"), "{printed}");
            assert!(!printed.contains("INCOMPLETE"), "{words:?}: {printed}");
        }
    }
}

/// Writes beyond a block, and frees one twice after steps that take its record's file away: a
/// `chroot`, another user, a user namespace, a limit of file sizes, or removal.
const CUT_OFF: &str = "
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) static void before(void) {
    char *volatile block = malloc(20);
    block[20] = 1;
    free(block);
}
__attribute__((noinline)) static void after(void) {
    char *volatile block = malloc(40);
    free(block);
    free(block);
}
int main(int count, char **words) {
    before();
    for (int at = 2; at < count; at++) {
        const char *how = words[at];
        struct rlimit none = {0, 0};
        int failed = 0;
        if (strcmp(how, \"chroot\") == 0)
            failed = chroot(words[1]) || chdir(\"/\");
        else if (strcmp(how, \"setuid\") == 0)
            failed = setgid(54321) || setuid(54321);
        else if (strcmp(how, \"setresuid\") == 0)
            failed = setresuid(54321, 54321, 54321);
        else if (strcmp(how, \"syscall\") == 0)
            failed = syscall(SYS_setuid, 54321);
        else if (strcmp(how, \"unshare\") == 0)
            unshare(CLONE_NEWUSER);
        else if (strcmp(how, \"limit\") == 0)
            failed = setrlimit(RLIMIT_FSIZE, &none);
        else if (strcmp(how, \"remove\") == 0)
            failed = system(\"rm -rf $TMPDIR/heapwright-*\");
        if (failed) {
            perror(how);
            return 1;
        }
    }
    after();
    return 0;
}
";

/// Checks that findings before and after the step are reported once, with their functions.
fn both_are_reported(output: &Output, how: &[&str]) {
    let printed = stderr(output);
    assert_eq!(output.status.code(), Some(99), "{how:?}: {printed}");
    for part in [": buffer-overflow: ", "in before ", ": double-free: ", "in after "] {
        assert!(printed.contains(part), "{how:?}: {part}: {printed}");
    }
    assert!(printed.contains("ERROR SUMMARY: 2 errors from 2 contexts"), "{how:?}: {printed}");
    // Without /proc a process cannot look for leaks.
    for line in printed.lines().filter(|line| line.contains("INCOMPLETE: ")) {
        assert!(how.contains(&"chroot") && line.contains("cannot see /proc"), "{how:?}: {printed}");
    }
}

#[test]
fn findings_survive_a_record_whose_file_is_out_of_reach() {
    let folder = Folder::new_in(Path::new("/tmp"));
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(""), all).expect("changed");
    let program = folder.compile("cutoff", &["-g", "-O0"], CUT_OFF);
    let (empty, records) = (folder.path("empty"), folder.path("records"));
    std::fs::create_dir(&empty).expect("made");
    std::fs::create_dir(&records).expect("made");
    let mut ways = vec![&["limit"][..], &["remove"], &["unshare"], &["limit", "remove"]];
    if is_root("what only root can do") {
        ways.extend([&["setuid"][..], &["setresuid"], &["syscall"], &["chroot"]]);
        ways.extend([&["chroot", "setuid"][..], &["limit", "chroot"]]);
    }
    for how in ways {
        let words = [&[text(&program), text(&empty)], how].concat();
        let mut command = heapwright();
        let output = done(command.args(["check", "--"]).args(&words).env("TMPDIR", &records));
        both_are_reported(&output, how);
        let says = stderr(&output).contains("the disk of its record is full");
        assert_eq!(says, how == ["limit"], "{how:?}: {}", stderr(&output));
        assert_eq!(std::fs::read_dir(&records).expect("there").count(), 0, "{how:?}");
    }
}

/// The entries beyond the disk's room lie in memory, and the report says so.
#[test]
fn findings_survive_a_full_disk() {
    if !is_root("findings_survive_a_full_disk") {
        return;
    }
    let folder = Folder::new();
    let program = folder.compile("cutoff", &["-g", "-O0"], CUT_OFF);
    let small = folder.path("small");
    std::fs::create_dir(&small).expect("made");
    let mount = |words: &[&str]| {
        std::process::Command::new(words[0]).args(&words[1..]).status().is_ok_and(|is| is.success())
    };
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=16k", "none", text(&small)]) {
        return eprintln!("findings_survive_a_full_disk skipped: nothing can be mounted");
    }
    let fill = format!("head -c 12k /dev/zero >{0}/x; head -c 4k /dev/zero >>{0}/x", text(&small));
    let script = format!("{fill} 2>/dev/null; exec {} -", text(&program));
    let mut command = heapwright();
    command.args(["check", "--", "sh", "-c", &script]).env("TMPDIR", &small);
    let output = done(&mut command);
    std::fs::remove_file(small.join("x")).expect("there");
    let kept = small.join("kept");
    let script = format!("{fill} 2>/dev/null; exec {} -", text(&program));
    let flags = ["--fail-on", "none", "--keep", text(&kept)];
    let keeping = check(&flags, &["sh", "-c", &script]);
    let is_link = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.expect("there").file_type().expect("has one").is_symlink()
    };
    let links = std::fs::read_dir(&kept).expect("there").any(is_link);
    mount(&["umount", text(&small)]);
    both_are_reported(&output, &["full"]);
    assert!(stderr(&output).contains("the disk of its record is full"), "{}", stderr(&output));
    let printed = stderr(&keeping);
    assert_eq!((keeping.status.code(), links), (Some(2), false), "{printed}");
    let line = "heapwright: all records of --keep could not be written: No space left";
    assert!(printed.contains(line), "{printed}");
}

/// Some programs start without the variables that load the library.
#[test]
fn what_starts_without_the_library_is_named_and_is_not_clean() {
    let folder = Folder::new();
    let source = "
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : \"\";
    char *child[] = {words[0], 0}, *none[] = {0}, *some[] = {\"HOME=/\", 0};
    pid_t pid;
    if (count == 1)
        return 0;
    if (strcmp(how, \"spawn\") == 0)
        posix_spawn(&pid, words[0], 0, 0, child, none);
    else if (strcmp(how, \"spawnp\") == 0)
        posix_spawnp(&pid, words[0], 0, 0, child, some);
    else if (strcmp(how, \"whole\") == 0)
        posix_spawn(&pid, words[0], 0, 0, child, environ);
    else if (strcmp(how, \"cleared\") == 0) {
        clearenv();
        return system(words[2]) != 0;
    } else if (strcmp(how, \"piped\") == 0) {
        clearenv();
        return pclose(popen(words[2], \"r\")) != 0;
    } else if ((pid = how[0] == 'v' ? vfork() : fork()) == 0) {
        if (strstr(how, \"missing\"))
            execve(\"/nonexistent/x\", child, none);
        else if (strstr(how, \"null\"))
            execve(words[0], child, 0);
        else if (strstr(how, \"le\"))
            execle(words[0], words[0], (char *)0, some);
        else if (strstr(how, \"pe\"))
            execvpe(words[0], child, none);
        else if (strstr(how, \"given\"))
            execve(words[0], child, environ);
        _exit(0);
    }
    waitpid(pid, &count, 0);
    return 0;
}
";
    let program = folder.compile("starts", &["-g", "-O0"], source);
    let program = text(&program);
    let line = format!("({program}) was not checked: process ");
    for how in ["spawn", "spawnp", "vfork null", "fork null", "vfork le", "fork le", "fork pe"] {
        let output = check(&[], &[program, how]);
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(125), "{how}: {printed}");
        let named = printed.lines().filter(|named| named.contains(&line)).count();
        assert_eq!(named, 1, "{how}: {printed}");
    }
    for how in ["cleared", "piped"] {
        let output = check(&[], &[program, how, program]);
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(125), "{how}: {printed}");
        let line = format!("a process (sh -c {program}) was not checked: process ");
        assert!(printed.contains(&line), "{how}: {printed}");
    }
    for how in ["whole", "vfork given", "vfork missing", "fork missing"] {
        let output = check(&[], &[program, how]);
        assert_eq!(output.status.code(), Some(0), "{how}: {}", stderr(&output));
    }
    // A program that starts often has one line, and one that starts in another mode has none.
    let starts = |words: &str| {
        check(&[], &["sh", "-c", &format!("for n in 1 2 3; do {words} {program}; done; exit 0")])
    };
    let output = starts("env -u LD_PRELOAD");
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(125), "{printed}");
    assert!(printed.contains(" were not checked: process "), "{printed}");
    assert_eq!(printed.matches("INCOMPLETE").count(), 1, "{printed}");
    assert!(!printed.contains("it wrote nothing at its end"), "{printed}");
    let output = starts("HEAPWRIGHT=mode=fast");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // The user of `valgrind` did not ask for the program's children.
    let output = done(heapwright().args(["valgrind", program, "spawn"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// Starts a child in the way of its first argument, and waits for its end. The second argument is
/// the way in which the child ends, or the program that it executes.
const CHILDREN: &str = "
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char stack[1 << 16];
static int child(void *end) {
    char *words[] = {end, 0};
    if (strcmp(end, \"kill\") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(end, \"stop\") == 0)
        syscall(SYS_exit_group, 0);
    if (strcmp(end, \"fine\") == 0)
        exit(0);
    execv(end, words);
    _exit(9);
}
int main(int count, char **words) {
    char *how = words[1], *end = words[2];
    uint64_t clone3[8] = {[4] = SIGCHLD};
    pid_t pid = 0;
    int status;
    if (count == 1)
        return 0;
    if (strcmp(how, \"clone\") == 0)
        pid = clone(child, stack + sizeof stack, SIGCHLD, end);
    else if (strcmp(how, \"spawn\") == 0)
        posix_spawnp(&pid, end, 0, 0, (char *[]){end, 0}, environ);
    else {
        if (strcmp(how, \"fork\") == 0)
            pid = fork();
        else if (strcmp(how, \"vfork\") == 0)
            pid = vfork();
        else if (strcmp(how, \"syscall\") == 0)
            pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        else if (strcmp(how, \"clone3\") == 0)
            pid = syscall(SYS_clone3, clone3, sizeof clone3);
        else
            child(end);
        if (pid == 0)
            child(end);
    }
    waitpid(pid, &status, 0);
    return 0;
}
";

#[test]
fn no_child_ends_unheard() {
    let folder = Folder::new();
    let program = folder.compile("children", &["-g", "-O0"], CHILDREN);
    let program = text(&program);
    for how in ["fork", "clone", "syscall", "clone3"] {
        for end in ["kill", "stop"] {
            let output = check(&[], &[program, how, end]);
            let printed = stderr(&output);
            assert_eq!(output.status.code(), Some(125), "{how} {end}: {printed}");
            let line = format!(" ({program}), a child of process ");
            assert_eq!(printed.matches(&line).count(), 1, "{how} {end}: {printed}");
        }
    }
    for (how, end) in [("fork", "fine"), ("fork", "/none"), ("vfork", "/none"), ("spawn", "/none")]
    {
        let output = check(&[], &[program, how, end]);
        assert_eq!(output.status.code(), Some(0), "{how} {end}: {}", stderr(&output));
    }
    // A child that becomes another program has that program's record.
    for how in ["fork", "vfork", "clone", "syscall", "clone3", "spawn", "self"] {
        let output = check(&[], &[program, how, program]);
        assert_eq!(output.status.code(), Some(0), "{how}: {}", stderr(&output));
    }
}

/// These programs get the library's variables, but cannot load it.
#[test]
fn a_program_that_cannot_be_checked_is_named_by_its_starter() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let program = folder.compile("children", &["-g", "-O0"], CHILDREN);
    let program = text(&program);
    let mut programs = Vec::new();
    let code = folder.file("fixed.c", "int main(void) { return 0; }");
    let fixed = folder.path("fixed");
    let mut made = std::process::Command::new("cc");
    made.arg("-static").arg(&code).arg("-o").arg(&fixed);
    if made.status().is_ok_and(|status| status.success()) {
        let script = folder.script("script", &format!("#! {}\n", text(&fixed)));
        programs.extend([(fixed, "a static program"), (script, "a static program")]);
    }
    if is_root("programs of another user") {
        let other = folder.path("other");
        std::fs::copy(program, &other).expect("copied");
        std::os::unix::fs::chown(&other, Some(STRANGER), None).expect("changed");
        let mode = PermissionsExt::from_mode(0o4755);
        std::fs::set_permissions(&other, mode).expect("changed");
        programs.push((other, "with other rights"));
    }
    for (other, why) in &programs {
        let other = text(other);
        for how in ["fork", "vfork", "spawn", "self"] {
            let output = check(&[], &[program, how, other]);
            let printed = stderr(&output);
            assert_eq!(output.status.code(), Some(125), "{how} {other}: {printed}");
            assert_eq!(printed.matches("INCOMPLETE").count(), 1, "{how} {other}: {printed}");
            let line = format!(" ({other}) was not checked: process ");
            assert!(printed.contains(&line) && printed.contains(why), "{how} {other}: {printed}");
        }
        let output = check(&[], &["sh", "-c", &format!("{other}; exit 0")]);
        assert_eq!(output.status.code(), Some(125), "{other}: {}", stderr(&output));
    }
}

/// A signal handler that calls malloc or `exit` may interrupt malloc. Each run ends all the same.
#[test]
fn a_signal_within_malloc_ends_in_time() {
    let folder = Folder::new();
    let source = "
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static int count, last;
static void *kept[64];
static void come(int signal) {
    if (++count == last)
        exit(3);
    free(kept[count % 64]);
    kept[count % 64] = malloc(count % 9000);
}
static void leave(int signal) { exit(3); }
int main(int words, char **word) {
    struct itimerval often = {{0, 1000}, {0, 1000}}, once = {{0, 0}, {0, 20000 + clock() % 7 * 1000}};
    signal(SIGALRM, words > 1 ? leave : come);
    last = 500;
    setitimer(ITIMER_REAL, words > 1 ? &once : &often, 0);
    for (;;) {
        char *volatile blocks[300];
        for (int i = 0; i < 300; i++)
            blocks[i] = malloc(i * 37);
        for (int i = 0; i < 300; i++)
            free(realloc(blocks[i], i * 91 + 1));
    }
}
";
    let program = folder.compile("interrupts", &["-g", "-O0"], source);
    for words in [&[text(&program)][..], &[text(&program), "leaves"]] {
        for _ in 0..8 {
            let mut command = std::process::Command::new("timeout");
            command.args(["-s", "KILL", "100", env!("CARGO_BIN_EXE_heapwright"), "check", "--"]);
            let output = done(command.args(words));
            let printed = stderr(&output);
            let is_told = printed.contains("heapwright: a signal handler called malloc, free or")
                && printed.contains("INCOMPLETE: process ");
            let is_leaving = output.status.code() == Some(3) && !printed.contains("INCOMPLETE")
                || output.status.code() == Some(125)
                    && printed.contains("code that a signal interrupted holds a lock of the heap")
                || output.status.code() == Some(99);
            assert!(is_leaving || words.len() == 1 && is_told, "{:?}: {printed}", output.status);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn what_a_misuse_makes_the_program_lose_is_marked() {
    let folder = Folder::new();
    let source = "
#include <stdlib.h>
struct node { struct node *next; int value; };
int main(void) {
    struct node *list = 0, *next;
    for (int i = 0; i < 5; i++) {
        struct node *node = malloc(sizeof *node);
        node->next = list;
        list = node;
    }
    for (struct node *node = list; node; node = node->next)
        free(node);
    next = malloc(100);
    next = 0;
    return 0;
}
";
    let program = folder.compile("list", &["-g", "-O0"], source);
    let printed = stderr(&check(&[], &[text(&program)]));
    assert_eq!(printed.matches("the program read zeros there and went on").count(), 1, "{printed}");
    let parts: Vec<&str> = printed.split("==LEAK: ").collect();
    let [_, parts @ ..] = &parts[..] else { panic!("{printed}") };
    assert_eq!(parts.len(), 2, "{printed}");
    for part in parts {
        let is_list = part.contains("definitely-lost: 16 bytes");
        assert_eq!(part.contains("    may be a consequence: "), is_list, "{printed}");
    }
}

/// Functions get a limit beyond the block's end. They write less or more than the block holds.
#[test]
fn a_limit_beyond_a_block_is_a_finding_of_its_own() {
    let folder = Folder::new();
    let source = "
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
    const char *line = count > 1 ? \"far too long for it\\n\" : \"ab\\n\";
    char *block;
    int ends[2];
    FILE *file = tmpfile();
    fputs(line, file);
    rewind(file);
    block = malloc(10);
    fgets(block, 1000, file);
    free(block);
    rewind(file);
    block = malloc(10);
    fread(block, 1, 1000, file);
    free(block);
    pipe(ends);
    write(ends[1], line, strlen(line));
    block = malloc(10);
    read(ends[0], block, 1000);
    free(block);
    puts(\"went on\");
    return 0;
}
";
    let program = folder.compile("limits", &["-g", "-O0"], source);
    for guard in ["all", "never"] {
        let few = check(&["--guard", guard], &[text(&program)]);
        let printed = stderr(&few);
        assert_eq!((stdout(&few), few.status.code()), ("went on\n".into(), Some(99)), "{printed}");
        for function in ["fgets", "fread", "read"] {
            let line = format!(
                "may-overflow: {function} may write up to 1000 bytes, 990 bytes beyond the end of \
                 a 10-byte block"
            );
            assert!(printed.contains(&line), "{line}: {printed}");
        }
        assert!(!printed.contains("buffer-overflow"), "{printed}");
        let exact = check(&["--guard", guard, "--exact"], &[text(&program)]);
        assert_eq!(exact.status.code(), Some(0), "{}", stderr(&exact));
        for flags in [&["--guard", guard][..], &["--guard", guard, "--exact"]] {
            let many = check(flags, &[text(&program), "many"]);
            let printed = stderr(&many);
            assert_eq!((stdout(&many), many.status.code()), ("went on\n".into(), Some(99)));
            for function in ["fgets of 21 bytes", "fread of 20 bytes", "read of 20 bytes"] {
                let line = format!(
                    "buffer-overflow: write at offset 10 of a 10-byte block, by {function}"
                );
                assert!(printed.contains(&line), "{line}: {printed}");
            }
            assert!(!printed.contains("may-overflow"), "{printed}");
        }
    }
}

/// Objects of pools, first-class heaps and arenas are checked as blocks of malloc are.
#[test]
fn misuse_of_pools_heaps_and_arenas_is_found() {
    let folder = Folder::new();
    let source = "
#include <heapwright.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *volatile kept;
static bool visit(void *object, void *context) { (void)object; ++*(int *)context; return true; }
int main(int count, char **words) {
    const char *how = words[count - 1];
    hw_pool *pool = hw_pool_create(32, 8, 0, \"node\"), *other = hw_pool_create(32, 8, 0, \"edge\");
    hw_heap *heap = hw_heap_new(), *second = hw_heap_new();
    hw_arena *arena = hw_arena_create(0);
    int local[8], objects = 0;
    char *object = hw_pool_alloc(pool), *block = hw_heap_alloc(heap, 24);
    char *piece = hw_arena_alloc(arena, 40);
    if (strcmp(how, \"pool twice\") == 0)
        hw_pool_free(pool, object), hw_pool_free(pool, object);
    else if (strcmp(how, \"heap twice\") == 0)
        hw_heap_free(heap, block), hw_heap_free(heap, block);
    else if (strcmp(how, \"arena twice\") == 0)
        hw_arena_free(arena, piece, 40), hw_arena_free(arena, piece, 40);
    else if (strcmp(how, \"heap's to pool\") == 0)
        hw_pool_free(pool, block);
    else if (strcmp(how, \"other pool's\") == 0)
        hw_pool_free(other, object);
    else if (strcmp(how, \"other heap's\") == 0)
        hw_heap_free(second, block);
    else if (strcmp(how, \"malloc's to pool\") == 0)
        hw_pool_free(pool, kept = malloc(8));
    else if (strcmp(how, \"pool's to free\") == 0)
        free(object);
    else if (strcmp(how, \"stack to pool\") == 0)
        hw_pool_free(pool, local);
    else if (strcmp(how, \"stack to heap\") == 0)
        hw_heap_free(heap, local);
    else if (strcmp(how, \"pool overflow\") == 0)
        memset(object, 1, 40), hw_pool_free(pool, object);
    else if (strcmp(how, \"heap overflow\") == 0)
        memset(block, 1, 64), hw_heap_free(heap, block);
    else if (strcmp(how, \"arena overflow\") == 0)
        memset(piece, 1, 64);
    else if (strcmp(how, \"pool late\") == 0)
        hw_pool_free(pool, object), object[3] = 1;
    else if (strcmp(how, \"heap late\") == 0)
        hw_heap_free(heap, block), block[3] = 1;
    else if (strcmp(how, \"arena reset\") == 0)
        hw_arena_reset(arena), piece[3] = 1;
    else if (strcmp(how, \"arena rewound\") == 0) {
        hw_arena_mark_t mark = hw_arena_mark(arena);
        char *late = hw_arena_alloc(arena, 100);
        hw_arena_rewind(arena, mark);
        late[0] = 1;
        piece[0] = 1;
    } else if (strcmp(how, \"destroyed\") == 0) {
        hw_pool_destroy(pool);
        object[0] = 1;
        pool = hw_pool_create(32, 8, 0, 0);
    } else if (strcmp(how, \"pool leak\") == 0) {
        object = 0;
        kept = pool;
        return 0;
    } else if (strcmp(how, \"heap leak\") == 0) {
        block = 0;
        kept = heap;
        return 0;
    } else if (strcmp(how, \"walked\") == 0) {
        object = 0;
        kept = pool;
        hw_pool_walk(pool, visit, &objects);
        hw_heap_destroy(heap), hw_heap_destroy(second);
        hw_arena_destroy(arena), hw_pool_destroy(other);
        return objects != 1;
    } else {
        free(hw_heap_alloc(heap, 8));
        for (int i = 0; i < 3000; i++) {
            void *own = hw_pool_alloc(pool), *zeroed = hw_heap_alloc_zeroed(heap, 3, 5);
            void *aligned = hw_arena_alloc_aligned(arena, 9, 64);
            piece = hw_arena_resize(arena, piece, 40, 40 + i % 7);
            piece = hw_arena_resize(arena, piece, 40 + i % 7, 40);
            if (i % 3) {
                hw_pool_free(pool, own), hw_heap_free(heap, zeroed);
                hw_arena_free(arena, aligned, 9);
            }
        }
        hw_pool_statistics stats;
        hw_pool_stats(pool, &stats, sizeof stats);
        if (stats.live != 1001 || !hw_pool_contains(pool, object) || hw_pool_contains(pool, block))
            return 1;
    }
    hw_pool_destroy(pool), hw_pool_destroy(other), hw_arena_destroy(arena);
    hw_heap_destroy(heap), hw_heap_destroy(second);
    return 0;
}
";
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    // Linked with this library; at run time the preloaded library precedes it.
    let names = "pool_create pool_alloc pool_free pool_walk pool_stats pool_contains pool_destroy \
                 heap_new heap_alloc heap_alloc_zeroed heap_free heap_destroy arena_create \
                 arena_alloc arena_alloc_aligned arena_resize arena_free arena_mark arena_rewind \
                 arena_reset arena_destroy";
    let names = names.split_whitespace().map(|name| format!("void hw_{name}(void) {{}}\n"));
    let none = folder.compile("libnone.so", &["-shared", "-fPIC"], &names.collect::<String>());
    let include = format!("-I{}", include.display());
    let rpath = format!("-Wl,-rpath,{}", text(&folder.path("")));
    let flags = ["-g", "-O0", "-w", &include, "-Wl,--no-as-needed", text(&none), &rpath];
    let program = folder.compile("pools", &flags, source);
    for (how, sentence) in [
        ("pool twice", "double-free: hw_pool_free of a 32-byte block that was freed before"),
        ("heap twice", "double-free: hw_heap_free of a 24-byte block that was freed before"),
        ("arena twice", "double-free: hw_arena_free of a 40-byte block that was freed before"),
        ("heap's to pool", "24-byte block of a first-class heap given to hw_pool_free"),
        ("other pool's", "32-byte object of another pool given to hw_pool_free"),
        ("other heap's", "24-byte block of another first-class heap given to hw_heap_free"),
        ("malloc's to pool", "8-byte block of malloc given to hw_pool_free"),
        ("pool's to free", "32-byte object of a pool given to free"),
        ("stack to pool", "invalid-free: hw_pool_free of a pointer to the stack"),
        ("stack to heap", "invalid-free: hw_heap_free of a pointer to the stack"),
        ("pool overflow", "buffer-overflow: write at offset 32 of a 32-byte block, by memset"),
        ("heap overflow", "buffer-overflow: write at offset 24 of a 24-byte block, by memset"),
        ("arena overflow", "buffer-overflow: write at offset 40 of a 40-byte block, by memset"),
        ("pool late", "use-after-free: write at offset 3 of a 32-byte block"),
        ("heap late", "use-after-free: write at offset 3 of a 24-byte block"),
        ("arena reset", "use-after-free: write at offset 3 of a 40-byte block"),
        ("arena rewound", "use-after-free: write at offset 0 of a 100-byte block"),
        ("destroyed", "use-after-free: write at offset 0 of a 32-byte block"),
        ("pool leak", "definitely-lost: 32 bytes in 1 block"),
        ("heap leak", "definitely-lost: 24 bytes in 1 block"),
    ] {
        let output = check(&["--guard", "all"], &[text(&program), how]);
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(99), "{how}: {printed}");
        assert!(printed.contains(sentence), "{how}: {sentence}: {printed}");
        if !how.contains("leak") && !how.contains("malloc") {
            assert!(printed.contains("SUMMARY: 1 errors from 1 contexts"), "{how}: {printed}");
        }
    }
    for how in ["right", "walked"] {
        let output = check(&[], &[text(&program), how]);
        assert_eq!(output.status.code(), Some(0), "{how}: {}", stderr(&output));
    }
}
