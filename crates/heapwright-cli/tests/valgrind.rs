//! `heapwright valgrind`, and the formats of `check` for editors and valgrind's readers.

mod common;
#[path = "common/protocol.rs"]
mod protocol;

use common::{Folder, done, heapwright, stderr, stdout, text};
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Each letter is an action: frees twice (`f`), loses blocks (`l`), prints (`p`), opens a file
/// (`o`), forks a child that does `l` (`k`) or executes `f` (`x`), ends with a code (a digit).
const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
void **kept;
__attribute__((noinline)) static void lose(void) {
    void **volatile outer = malloc(24);
    *outer = malloc(100);
    outer = 0;
}
__attribute__((noinline)) static void twice(void) {
    char *volatile block = malloc(40);
    free(block);
    free(block);
}
int main(int count, char **words) {
    for (char *letter = count > 1 ? words[1] : ""; *letter; letter++)
        switch (*letter) {
        case 'f': twice(); break;
        case 'l': lose(); break;
        case 'p': puts("hello"); break;
        case 'o': if (!fopen("/dev/null", "r")) return 1; break;
        case 'k': if (fork() == 0) { lose(); exit(0); } wait(0); break;
        case 'x': if (fork() == 0) { execl(words[0], words[0], "f", (char *)0); _exit(1); } wait(0); break;
        default: return *letter - '0';
        }
    return 0;
}
"#;

fn program(folder: &Folder) -> PathBuf {
    folder.compile("prog", &["-g", "-O0"], SOURCE)
}

fn valgrind(folder: &Folder) -> Command {
    let mut command = heapwright();
    // No file of the user changes the options.
    command.current_dir(folder.path("")).env("HOME", folder.path("")).env_remove("VALGRIND_OPTS");
    command.arg("valgrind");
    command
}

fn run(folder: &Folder, flags: &[&str], program: &Path, letters: &str) -> Output {
    done(valgrind(folder).args(flags).arg(program).arg(letters))
}

#[test]
fn text_is_memchecks_and_the_exit_code_the_programs() {
    let folder = Folder::new();
    let program = program(&folder);
    let output = run(&folder, &["--leak-check=full"], &program, "fl3");
    assert_eq!(output.status.code(), Some(3));
    let printed = stderr(&output);
    for part in [
        "== Command: ",
        "== Invalid free() / delete / delete[] / realloc()\n",
        ": twice (prog.c:15)\n",
        "is 0 bytes inside a block of size 40 free'd\n",
        "==  Block was alloc'd at\n",
        "==     in use at exit: 124 bytes in 2 blocks\n",
        "== 124 (24 direct, 100 indirect) bytes in 1 blocks are definitely lost in loss record 2 of 2\n",
        "==    indirectly lost: 100 bytes in 1 blocks\n",
        "== ERROR SUMMARY: 2 errors from 2 contexts (suppressed: 0 from 0)\n",
    ] {
        assert!(printed.contains(part), "{part}\n{printed}");
    }
    assert!(printed.lines().all(|line| line.starts_with("==")), "{printed}");
    for (flags, letters, code) in [
        (&["--error-exitcode=9", "--leak-check=full"][..], "l3", 9),
        (&["--error-exitcode=9"], "f3", 9),
        // Leaks without details are no errors, and neither are kinds of leaks that are not named.
        (&["--error-exitcode=9"], "l3", 3),
        (&["--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=none"], "l3", 3),
        (&["--error-exitcode=9", "--leak-check=full"], "p3", 3),
    ] {
        let output = run(&folder, flags, &program, letters);
        assert_eq!(output.status.code(), Some(code), "{flags:?} {letters}: {}", stderr(&output));
    }
}

#[test]
fn a_clean_program_is_silent_where_that_is_asked_for() {
    let folder = Folder::new();
    let program = program(&folder);
    let flags = ["-q", "--leak-check=full", "--show-leak-kinds=all"];
    // The C library's own buffers are not the program's.
    let output = run(&folder, &flags, &program, "p");
    assert_eq!((&*stdout(&output), &*stderr(&output)), ("hello\n", ""));
    let output = run(&folder, &[&flags[..], &["--run-libc-freeres=no"]].concat(), &program, "p");
    assert!(stderr(&output).contains("are still reachable in loss record"), "{}", stderr(&output));
    let output = run(&folder, &flags, &program, "o");
    assert!(stderr(&output).contains("are still reachable in loss record"), "{}", stderr(&output));
    let output = run(&folder, &[], &program, "p");
    assert!(
        stderr(&output).contains("All heap blocks were freed -- no leaks are possible"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn each_process_has_its_log() {
    let folder = Folder::new();
    let program = program(&folder);
    let logs = |flags: &[&str], letters: &str| {
        let logs = folder.path("logs");
        let _ = fs::remove_dir_all(&logs);
        fs::create_dir(&logs).expect("made");
        let flags = [flags, &["-q", "--leak-check=full", "--log-file=logs/%q{LC_ALL}.%p"]].concat();
        let output = run(&folder, &flags, &program, letters);
        assert_eq!((output.status.code(), &*stderr(&output)), (Some(0), ""));
        let mut found = Vec::new();
        for log in fs::read_dir(logs).expect("there").flatten() {
            let name = log.file_name().into_string().expect("is text");
            let pid = name.strip_prefix("C.").expect("is expanded").to_owned();
            let printed = fs::read_to_string(log.path()).expect("is text");
            assert!(
                printed.lines().all(|line| line.starts_with(&format!("=={pid}=="))),
                "{printed}"
            );
            found.push((printed.contains("Invalid free"), printed.contains("definitely lost")));
        }
        found.sort_unstable();
        found
    };
    let (clean, fault, lost) = ((false, false), (true, false), (false, true));
    assert_eq!(logs(&[], "kx"), [clean, lost]);
    assert_eq!(logs(&["--trace-children=yes"], "kx"), [clean, lost, fault]);
    assert_eq!(logs(&["--child-silent-after-fork=yes"], "kx"), [clean]);
    let skip = ["--trace-children=yes", "--trace-children-skip=*/prog"];
    assert_eq!(logs(&skip, "kx"), [clean, lost]);
}

#[test]
fn xml_goes_to_a_socket() {
    let folder = Folder::new();
    let program = program(&folder);
    let listener = TcpListener::bind("127.0.0.1:0").expect("is free");
    let port = listener.local_addr().expect("has one").port();
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("is called");
        let mut read = String::new();
        stream.read_to_string(&mut read).expect("is text");
        read
    });
    let socket = format!("--xml-socket=127.0.0.1:{port}");
    let flags = ["--xml=yes", &socket, "--leak-check=full", "--gen-suppressions=all"];
    let output = run(&folder, &flags, &program, "fl");
    assert_eq!((output.status.code(), &*stderr(&output)), (Some(0), ""));
    let xml = reader.join().expect("has read");
    assert_eq!(protocol::check(&xml), Ok(()), "{xml}");
    let kinds = xml.lines().filter_map(|line| line.trim().strip_prefix("<kind>"));
    let kinds: Vec<&str> = kinds.filter_map(|line| line.strip_suffix("</kind>")).collect();
    assert_eq!(kinds, ["InvalidFree", "Leak_DefinitelyLost"]);
    assert!(xml.contains("<sframe>"), "{xml}");
}

#[test]
fn each_document_is_one_of_the_protocols() {
    let folder = Folder::new();
    let program = program(&folder);
    for (more, letters) in [
        (&["--leak-check=full", "--show-leak-kinds=all", "--gen-suppressions=all"][..], "fflok2"),
        (&["--leak-check=summary"], "fl"),
        (&["--leak-check=no"], "l"),
        (&["-q", "--trace-children=yes", "--xml-user-comment=<run number=\"1\">a</run>"], "kxf"),
    ] {
        let flags = [more, &["--xml=yes", "--xml-file=%q{LC_ALL}.xml"]].concat();
        let output = run(&folder, &flags, &program, letters);
        assert_eq!(&*stderr(&output), "", "{flags:?}");
        let xml = fs::read_to_string(folder.path("C.xml")).expect("is written");
        let plain = xml.replace("<run number=\"1\">", "<run>");
        assert_eq!(protocol::check(&plain), Ok(()), "{flags:?}\n{xml}");
        assert!(xml.contains("<var>LC_ALL</var>\n  <value>C</value>"), "{xml}");
    }
}

#[test]
fn suppressions_that_it_prints_hide_what_they_were_printed_for() {
    let folder = Folder::new();
    let program = program(&folder);
    let flags = ["-q", "--leak-check=full", "--gen-suppressions=all"];
    let printed = stderr(&run(&folder, &flags, &program, "fl"));
    let blocks: String = printed
        .lines()
        .filter(|line| !line.starts_with("=="))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(blocks.matches("   Memcheck:").count(), 2, "{printed}");
    let file = format!("--suppressions={}", text(&folder.file("known.supp", &blocks)));
    let flags = ["--leak-check=full", "--error-exitcode=9", "-s", &file];
    let output = run(&folder, &flags, &program, "fl");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("== used_suppression: "), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("ERROR SUMMARY: 0 errors from 0 contexts (suppressed: 2 from 2)"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn options_come_from_the_environment_too() {
    let folder = Folder::new();
    let program = program(&folder);
    let output = done(
        valgrind(&folder)
            .env("VALGRIND_OPTS", "-q --memcheck:leak-check=full --massif:depth=3")
            .arg(&program)
            .arg("l"),
    );
    let printed = stderr(&output);
    assert!(printed.contains("definitely lost") && !printed.contains("SUMMARY"), "{printed}");
}

#[test]
fn what_cannot_be_done_is_one_line() {
    let folder = Folder::new();
    for (words, code) in [
        (&["--tool=helgrind", "true"][..], 2),
        (&["--suppressions=/nonexistent/x", "true"], 2),
        (&["--log-file=/nonexistent/x", "true"], 2),
        (&["--log-file=/nonexistent/%p", "echo"], 2),
        (&["--log-fd=77", "true"], 2),
        (&["/nonexistent/x"], 127),
        (&[], 2),
    ] {
        let output = done(valgrind(&folder).args(words));
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{words:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{words:?}: the program runs");
    }
    let version = stdout(&done(valgrind(&folder).arg("--version")));
    assert!(version.starts_with("valgrind-3."), "{version}");
    let help = stdout(&done(valgrind(&folder).arg("--help")));
    assert!(help.contains("--xml-socket") && help.contains("--track-origins"), "{help}");
}

#[test]
fn it_is_installed_under_valgrinds_name() {
    let folder = Folder::new();
    let program = program(&folder);
    let bin = folder.path("a folder");
    let install = || done(valgrind(&folder).arg("--install").arg(&bin));
    assert_eq!(install().status.code(), Some(0));
    assert_eq!(install().status.code(), Some(0));
    let output = done(
        Command::new(bin.join("valgrind"))
            .env("HOME", folder.path(""))
            .args(["-q", "--error-exitcode=4"])
            .arg(&program)
            .arg("f"),
    );
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    fs::write(bin.join("valgrind"), "another").expect("written");
    let output = install();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("there is another "), "{}", stderr(&output));
}

#[test]
fn check_speaks_as_compilers_and_memcheck_do() {
    let folder = Folder::new();
    let program = program(&folder);
    let check = |format: &str| {
        let mut command = heapwright();
        command.current_dir(folder.path("")).args(["check", "--format", format, "--"]);
        let output = done(command.arg(&program).arg("fl"));
        assert_eq!(output.status.code(), Some(99));
        stderr(&output)
    };
    let lines = check("gcc");
    for line in [
        "prog.c:15:5: error: free of a 40-byte block that was freed before [double-free]",
        "prog.c:14:5: note: freed by thread 1 (prog), 1 operation earlier",
        "prog.c:8:29: error: 24 B in 1 block is definitely lost, and 100 B in 1 block with it [definitely-lost]",
    ] {
        assert!(lines.lines().any(|found| found == line), "{line}\n{lines}");
    }
    assert!(check("memcheck").contains("== Invalid free() / delete / delete[] / realloc()\n"));
    assert!(check("memcheck-xml").starts_with("<?xml"));
}
