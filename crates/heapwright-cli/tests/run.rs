//! `heapwright run` passes exit codes, signals, streams and the environment through, with and
//! without `--stats`. Other tests are of mistakes and of hardened mode.

mod common;

use common::{Folder, WAYS, done, heapwright, run, shell_status, stderr, stdout, text};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

#[test]
fn every_exit_code_is_handed_on() {
    for way in WAYS {
        for code in 0..=255 {
            let output = done(&mut run(way, &["sh", "-c", &format!("exit {code}")]));
            assert_eq!(output.status.code(), Some(code), "{way:?}");
        }
    }
}

#[test]
fn a_fatal_signal_is_handed_on() {
    let fatal = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGABRT,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGKILL,
        libc::SIGUSR1,
        libc::SIGSEGV,
        libc::SIGPIPE,
        libc::SIGALRM,
        libc::SIGTERM,
        libc::SIGXCPU,
        libc::SIGSYS,
        libc::SIGRTMIN() + 3,
    ];
    let folder = Folder::new();
    for way in WAYS {
        for signal in fatal {
            let kill = format!("ulimit -c 0; kill -{signal} $$");
            let mut command = run(way, &["sh", "-c", &kill]);
            let output = done(command.current_dir(folder.path("")));
            assert_eq!(output.status.signal(), Some(signal), "{way:?}");
            assert!(!output.status.core_dumped());
        }
    }
}

#[test]
fn standing_in_leaves_no_core_of_its_own() {
    // The program cannot dump core, but its stand-in could.
    let folder = Folder::new();
    let mut command = Command::new("sh");
    let script = "ulimit -c unlimited; exec \"$@\"";
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_heapwright"), "run", "--stats", "--"]);
    command.args(["sh", "-c", "ulimit -c 0; kill -SEGV $$"]);
    let output = done(command.current_dir(folder.path("")));
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV));
    assert!(!output.status.core_dumped());
    assert!(stderr(&output).contains("was killed by SIGSEGV\n"), "{}", stderr(&output));
    assert_eq!(std::fs::read_dir(folder.path("")).expect("there").count(), 0);
}

#[test]
fn the_streams_are_the_programs() {
    let megabyte: Vec<u8> = (0..1 << 20).map(|byte: u32| (byte % 251) as u8).collect();
    for way in WAYS {
        let mut child = run(way, &["cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        let mut stdin = child.stdin.take().expect("piped");
        let input = megabyte.clone();
        let writer = std::thread::spawn(move || stdin.write_all(&input).expect("written"));
        let mut output = Vec::new();
        child.stdout.take().expect("piped").read_to_end(&mut output).expect("read");
        writer.join().expect("wrote");
        assert!(child.wait().expect("ended").success());
        assert!(output == megabyte, "{way:?}: {} bytes", output.len());
    }
}

#[test]
fn arguments_and_folder_are_the_programs() {
    let folder = Folder::new();
    for way in WAYS {
        let words =
            ["sh", "-c", "pwd; printf '<%s>' \"$@\"", "sh", "-x", "--stats", "", "a b", "--"];
        let output = done(run(way, &words).current_dir(folder.path("")));
        let pwd = folder.path("").canonicalize().expect("there");
        assert_eq!(stdout(&output), format!("{}\n<-x><--stats><><a b><-->", pwd.display()));
    }
}

#[test]
fn without_statistics_nothing_is_printed_and_no_parent_is_left() {
    let child = run(&[], &["sh", "-c", "echo $$; echo $PPID"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let pid = child.id();
    let output = child.wait_with_output().expect("ended");
    assert_eq!(stdout(&output), format!("{pid}\n{}\n", std::process::id()));
    assert_eq!(stderr(&output), "");
}

#[test]
fn the_environment_is_added_to() {
    let folder = Folder::new();
    let other = folder.compile("other.so", &["-shared", "-fPIC"], "int heapwright_other;");
    let print = ["sh", "-c", "echo \"$LD_PRELOAD\"; echo \"$HEAPWRIGHT\""];
    let library = stdout(&done(heapwright().arg("library")));
    let library = library.trim_end();

    let output = done(&mut run(&[], &print));
    assert_eq!(stdout(&output), format!("{library}\n\n"));

    let mut command = run(&["--option", "purge=250", "--option", "cache=exclusive"], &print);
    command.env("LD_PRELOAD", &other).env("HEAPWRIGHT", "purge=10");
    let output = done(&mut command);
    assert_eq!(
        stdout(&output),
        format!("{library}:{}\npurge=10,purge=250,cache=exclusive\n", other.display())
    );

    let mut command = run(&["--stats"], &print);
    let output = done(command.env("HEAPWRIGHT", "purge=10"));
    let options = stdout(&output).lines().nth(1).expect("two lines").to_owned();
    let prefix = options.strip_prefix("purge=10,stats_file=").expect("is asked for");
    let folder = std::path::Path::new(prefix).parent().expect("has one");
    assert!(!folder.exists(), "{} is left behind", folder.display());
}

/// Ignores the signals that its first argument names, blocks SIGUSR2, and runs the other arguments.
const IGNORING: &str = r#"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
    for (char *name = strtok(words[1], ","); name; name = strtok(0, ","))
        signal(atoi(name), SIG_IGN);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, 0);
    execvp(words[2], words + 2);
    return 99;
}
"#;

#[test]
fn signal_settings_are_inherited() {
    let folder = Folder::new();
    let ignoring = folder.compile("ignoring", &[], IGNORING);
    let settings = ["grep", "-E", "^Sig(Blk|Ign):", "/proc/self/status"];
    let mut seen = Vec::new();
    for ignored in ["0", "13", "17", "1,2,13,17,20,40"] {
        let under = |words: &[&str]| {
            let output = done(Command::new(&ignoring).arg(ignored).args(words));
            assert!(output.status.success(), "{}", stderr(&output));
            stdout(&output)
        };
        let expected = under(&settings);
        for way in WAYS {
            let ours = [&[env!("CARGO_BIN_EXE_heapwright"), "run"], way, &["--"]].concat();
            let got = under(&[&ours[..], &settings].concat());
            assert_eq!(got, expected, "ignored: {ignored}, {way:?}");
        }
        seen.push(expected);
    }
    seen.dedup();
    assert_eq!(seen.len(), 4, "the settings do not differ: {seen:?}");
}

#[test]
fn closed_streams_stay_closed() {
    let folder = Folder::new();
    let trace = folder.path("trace");
    let script = "exec \"$0\" \"$@\" <&- >&- 2>&-";
    let closed = "for fd in 0 1 2; do [ ! -e /proc/self/fd/$fd ] || exit 1; done; exit 7";
    for words in [
        &["run"][..],
        &["run", "--stats"],
        &["check"],
        &["profile"],
        &["record", "-o", text(&trace)],
    ] {
        let mut command = Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_heapwright")]).args(words);
        let output = done(command.args(["--", "sh", "-c", closed]));
        assert_eq!(output.status.code(), Some(7), "{words:?}");
    }
}

/// Says "ready", then names each signal that it gets. At SIGTERM it returns 7.
const COUNTER: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile sig_atomic_t done;
static void got(int signal) {
    char line[32];
    int n = snprintf(line, sizeof line, "got %d\n", signal);
    if (write(1, line, n) != n) _exit(99);
    if (signal == SIGTERM) done = 1;
}
int main(void) {
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    for (int i = 1; i < 65; i++) {
        struct sigaction action = {.sa_handler = got};
        sigfillset(&action.sa_mask);
        if (i != SIGCHLD) sigaction(i, &action, 0);
    }
    puts("ready");
    fflush(stdout);
    while (!done) sigsuspend(&old);
    return 7;
}
"#;

/// Starts a child, and waits until it says "ready".
fn ready(command: &mut Command) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    let mut lines = BufReader::new(child.stdout.take().expect("piped"));
    assert_eq!(next(&mut lines), "ready\n");
    (child, lines)
}

fn next(lines: &mut impl BufRead) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).expect("read");
    line
}

fn send(pid: u32, signal: i32) {
    // SAFETY: no pointers are involved; the child is ours and not reaped.
    let result = unsafe { libc::kill(pid.cast_signed(), signal) };
    assert_eq!(result, 0, "signal {signal}");
}

#[test]
fn signals_reach_the_program_once() {
    let folder = Folder::new();
    let counter = folder.compile("counter", &[], COUNTER);
    for way in WAYS {
        let (mut child, mut lines) = ready(&mut run(way, &[text(&counter)]));
        for signal in [
            libc::SIGHUP,
            libc::SIGINT,
            libc::SIGQUIT,
            libc::SIGABRT,
            libc::SIGUSR1,
            libc::SIGUSR2,
            libc::SIGALRM,
            libc::SIGCONT,
            libc::SIGWINCH,
            libc::SIGPWR,
            libc::SIGRTMIN(),
            libc::SIGRTMAX(),
            libc::SIGTERM,
        ] {
            send(child.id(), signal);
            assert_eq!(next(&mut lines), format!("got {signal}\n"), "{way:?}");
        }
        let mut rest = String::new();
        lines.read_to_string(&mut rest).expect("read");
        assert_eq!(rest, "", "{way:?}");
        assert_eq!(child.wait().expect("ended").code(), Some(7), "{way:?}");
    }
}

#[test]
fn a_signal_the_program_does_not_handle_ends_both() {
    for way in WAYS {
        let (mut child, _lines) = ready(&mut run(way, &["sh", "-c", "echo ready; exec sleep 60"]));
        send(child.id(), libc::SIGTERM);
        assert_eq!(child.wait().expect("ended").signal(), Some(libc::SIGTERM), "{way:?}");
    }
}

#[test]
fn stopped_and_continued_together_with_the_program() {
    let folder = Folder::new();
    let counter = folder.compile("counter", &[], COUNTER);
    for way in WAYS {
        let mut command = run(way, &[text(&counter)]);
        let (mut child, mut lines) = ready(command.process_group(0));
        let group = child.id().cast_signed();
        for signal in [libc::SIGSTOP, libc::SIGCONT] {
            // SAFETY: no pointers are involved; the group is the child's own.
            assert_eq!(unsafe { libc::kill(-group, signal) }, 0);
        }
        assert_eq!(next(&mut lines), format!("got {}\n", libc::SIGCONT));
        send(child.id(), libc::SIGTERM);
        assert_eq!(child.wait().expect("ended").code(), Some(7), "{way:?}");
    }
}

/// Opens a terminal. Returns the master's side, and the side for a program.
fn terminal() -> (File, OwnedFd) {
    let (mut master, mut slave) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: both places are writable; name, settings and size are left out.
    let result =
        unsafe { libc::openpty(&raw mut master, &raw mut slave, null, null.cast(), null.cast()) };
    assert_eq!(result, 0, "no terminal");
    // A program with the master's side would keep its own terminal alive.
    // SAFETY: the descriptor is ours, and the call takes only numbers.
    unsafe { libc::fcntl(master, libc::F_SETFD, libc::FD_CLOEXEC) };
    // SAFETY: the descriptors are new, and only this call knows them.
    let master = unsafe { File::from_raw_fd(master) };
    // SAFETY: openpty has made this descriptor, and only this call knows it.
    (master, unsafe { OwnedFd::from_raw_fd(slave) })
}

/// Starts a command as the foreground of a terminal of its own.
fn on_terminal(mut command: Command) -> (Child, BufReader<File>, File) {
    let (master, slave) = terminal();
    let side = || Stdio::from(slave.try_clone().expect("duplicated"));
    command.stdin(side()).stdout(side()).stderr(side());
    let lead = || {
        // SAFETY: takes no arguments; it cannot fail in a new child.
        unsafe { libc::setsid() };
        // SAFETY: descriptor 0 is the terminal, and 0 the argument it expects.
        match unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes only async-signal-safe calls.
    unsafe { command.pre_exec(lead) };
    let child = command.spawn().expect("started");
    let keys = master.try_clone().expect("duplicated");
    (child, BufReader::new(master), keys)
}

fn ended(child: &mut Child, what: &str) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("waited") {
            return status;
        }
        if began.elapsed() > Duration::from_secs(20) {
            let _ = child.kill();
            panic!("{what}: it is still there");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn every_long_command_ends_when_it_is_asked_to() {
    let folder = Folder::new();
    let trace = folder.path("trace");
    let (sleeper, _lines) = ready(&mut run(&[], &["sh", "-c", "echo ready; exec sleep 600"]));
    let pid = sleeper.id().to_string();
    let program = ["--", "sh", "-c", "echo ready; exec sleep 600"];
    let with = |words: &[&'static str]| {
        [words, &program].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    // Each command, and whether it soon prints a line on a terminal.
    let table = [
        (with(&["run"]), true),
        (with(&["run", "--stats"]), true),
        (with(&["check"]), true),
        (with(&["profile"]), true),
        ([words(&["record", "-o", text(&trace)]), with(&[])].concat(), true),
        (words(&["bench", "--", "sleep", "600"]), false),
        (words(&["profile", "--seconds", "600", &pid]), false),
        (words(&["top", "--interval", "600"]), false),
        (words(&["top", "--interval", "600", &pid]), false),
    ];
    for (words, speaks) in &table {
        for signal in [Some(libc::SIGTERM), Some(libc::SIGHUP), None] {
            let what = format!("{words:?}, {signal:?}");
            let mut command = heapwright();
            command.args(words).env("TERM", "xterm");
            let (mut child, mut lines, keys) = on_terminal(command);
            if *speaks {
                assert_eq!(next(&mut lines), "ready\r\n", "{what}");
            } else {
                std::thread::sleep(Duration::from_millis(500));
            }
            match signal {
                Some(signal) => send(child.id(), signal),
                None => drop((lines, keys)),
            }
            let status = ended(&mut child, &what);
            // A command that measures until it is asked to end has a result; after a hang-up nobody
            // reads it.
            let is_right =
                signal.is_none_or(|signal| [Some(signal), None].contains(&status.signal()));
            assert!(is_right, "{what}: {status:?}");
        }
    }
    send(sleeper.id(), libc::SIGKILL);
}

#[test]
fn top_draws_no_screen_on_a_dumb_terminal() {
    let mut command = heapwright();
    command.arg("top").env("TERM", "dumb");
    let (mut child, mut lines, _keys) = on_terminal(command);
    let status = ended(&mut child, "top").code();
    let line = next(&mut lines);
    assert!(!line.is_empty() && !line.contains('\x1b'), "{line:?}");
    assert!(matches!(status, Some(0 | 1)), "{status:?}");
}

#[test]
fn top_ends_whatever_its_terminal_does() {
    // First the terminal takes no more output. Then it hangs up, and the command ignores that.
    for ignores in [false, true] {
        let mut command = heapwright();
        command.args(["top", "--interval", "0.1"]).env("TERM", "xterm");
        if ignores {
            let ignore = || {
                // SAFETY: SIG_IGN is a valid disposition of SIGHUP.
                unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
                Ok(())
            };
            // SAFETY: the closure makes only async-signal-safe calls.
            unsafe { command.pre_exec(ignore) };
        }
        let (mut child, lines, keys) = on_terminal(command);
        std::thread::sleep(Duration::from_secs(1));
        let signal = if ignores { libc::SIGHUP } else { libc::SIGTERM };
        if ignores {
            drop((lines, keys));
        } else {
            // The terminal is stopped, as by Ctrl-S: a write to it waits.
            // SAFETY: the descriptor is ours, and the call takes only numbers.
            unsafe { libc::tcflow(keys.as_raw_fd(), libc::TCOOFF) };
            send(child.id(), signal);
        }
        assert_eq!(ended(&mut child, "top").signal(), Some(signal));
    }
}

#[test]
fn ctrl_c_reaches_the_program_once() {
    let folder = Folder::new();
    let counter = folder.compile("counter", &[], COUNTER);
    for way in WAYS {
        let (mut child, mut lines, mut keys) = on_terminal(run(way, &[text(&counter)]));
        assert_eq!(next(&mut lines), "ready\r\n");
        let stands_in = !way.is_empty();
        if stands_in {
            // The stand-in sees the key only after the program has. A signal passed on would be a
            // second one.
            send(child.id(), libc::SIGSTOP);
        }
        for (key, signal) in [(b"\x03", libc::SIGINT), (b"\x1c", libc::SIGQUIT)] {
            keys.write_all(key).expect("pressed");
            let line = next(&mut lines);
            assert!(line.ends_with(&format!("got {signal}\r\n")), "{way:?}: {line:?}");
        }
        send(child.id(), libc::SIGCONT);
        assert_eq!(next(&mut lines), format!("got {}\r\n", libc::SIGCONT), "{way:?}");
        send(child.id(), libc::SIGTERM);
        assert_eq!(next(&mut lines), format!("got {}\r\n", libc::SIGTERM), "{way:?}");
        assert_eq!(child.wait().expect("ended").code(), Some(7), "{way:?}");
    }
}

#[test]
fn ctrl_c_still_gives_the_report() {
    let command = run(&["--stats"], &["sh", "-c", "echo ready; exec sleep 60"]);
    let (mut child, mut lines, mut keys) = on_terminal(command);
    assert_eq!(next(&mut lines), "ready\r\n");
    keys.write_all(b"\x03").expect("pressed");
    assert_eq!(child.wait().expect("ended").signal(), Some(libc::SIGINT));
    let mut seen = String::new();
    while !seen.contains("was killed by SIGINT") {
        let line = next(&mut lines);
        assert!(!line.is_empty(), "no report in {seen:?}");
        seen.push_str(&line);
    }
    assert!(seen.contains("\x1b[1mheapwright: sh"), "no colour on a terminal: {seen:?}");
}

#[test]
fn what_cannot_be_started_is_reported_in_one_line() {
    let folder = Folder::new();
    let lost = folder.script("lost", "#!/nonexistent/interpreter\n");
    let plain = folder.file("plain", "echo hello\n");
    let cases = [
        ("heapwright-no-such-command", 127, "command not found"),
        ("/nonexistent/x", 127, "command not found"),
        (text(&plain), 126, "permission denied (not executable)"),
        ("/", 126, "is a folder"),
        (text(&lost), 126, "the interpreter or loader that"),
    ];
    for way in WAYS {
        for (name, code, words) in cases {
            let output = done(&mut run(way, &[name]));
            assert_eq!(output.status.code(), Some(code), "{way:?} {name}");
            assert_eq!(stdout(&output), "");
            let line = stderr(&output);
            assert!(line.starts_with(&format!("heapwright: {name}: ")), "{line}");
            assert!(line.contains(words), "{line}");
            assert_eq!(line.lines().count(), 1, "{line}");
        }
    }
}

#[test]
fn our_own_failures_are_reported_in_one_line() {
    let folder = Folder::new();
    let text_file = folder.file("library.so", "not a library");
    let cases: [(&[&str], i32, &str); 8] = [
        (&["run"], 2, "required"),
        (&["run", "--nonsense", "true"], 2, "--nonsense"),
        (&["run", "--library", "/nonexistent.so", "true"], 2, "cannot read library"),
        (&["run", "--library", text(&text_file), "true"], 2, "is not an ELF library"),
        (&["run", "--option", "purge", "true"], 2, "KEY=VALUE"),
        (&["run", "--stats", "--option", "stats_file=/x", "true"], 2, "stats_file"),
        (&["run", "-o", "/nonexistent/file", "true"], 2, "cannot write /nonexistent/file"),
        (&["nonsense"], 2, "nonsense"),
    ];
    for (arguments, code, words) in cases {
        let output = done(heapwright().args(arguments));
        let line = stderr(&output);
        assert_eq!(shell_status(output.status), code, "{arguments:?}: {line}");
        assert!(line.starts_with("heapwright: ") && line.contains(words), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}

/// In the environment, such a mistake costs a line on stderr, and no more.
#[test]
fn a_report_to_a_standard_stream_keeps_what_is_in_its_file() {
    let folder = Folder::new();
    for (number, stream) in [(1, "stdout"), (2, "stderr")] {
        let script = format!(
            "\"$0\" run --stats -o /dev/{stream} -- sh -c 'echo first >&{number}' {number}>\"$1\""
        );
        let file = folder.path(stream);
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_heapwright"), text(&file)]);
        assert!(done(&mut shell).status.success());
        let written = std::fs::read_to_string(&file).expect("is there");
        assert!(written.starts_with("first\n") && written.contains("sh"), "{written}");
    }
}

#[test]
fn a_bad_option_on_the_command_line_stops_the_run() {
    let folder = Folder::new();
    let mark = folder.path("mark");
    for command in [&["run"][..], &["run", "--stats"], &["check"], &["record", "-o", "/dev/null"]] {
        for (option, words) in [
            (
                "purge=soon",
                "--option purge=soon: the value needs milliseconds, such as 250 or 250..5500",
            ),
            ("frobnicate=1", "--option frobnicate=1: unknown; the options are mode, "),
            ("purge=7, window=1k", "--option window=1k: the value needs at least 4m"),
        ] {
            let mut line = heapwright();
            line.args(command).args(["--option", option, "--", "touch"]).arg(&mark);
            let output = done(&mut line);
            let line = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{line}");
            assert!(line.starts_with(&format!("heapwright: {words}")), "{line}");
            assert_eq!(line.lines().count(), 1, "{line}");
            assert!(!mark.exists());
        }
    }
    // Such an option is accepted if the environment chose the debug mode.
    let mut command = run(&["--option", "guard=all"], &["true"]);
    let output = done(&mut command);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        stderr(&output),
        "heapwright: --option guard=all: has no effect without mode=debug\n"
    );
    assert_eq!(done(command.env("HEAPWRIGHT", "mode=debug")).status.code(), Some(0));
    // The question to the library writes no file, and does not report mistakes in the environment.
    let record = folder.path("record");
    let option = format!("record={}", record.display());
    let output = done(&mut run(&["--option", &option], &["true"]));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let output = done(run(&["--option", "purge=7"], &["true"]).env("HEAPWRIGHT", "nonsense=1"));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    let trace = format!("trace={}", folder.path("trace").display());
    assert_eq!(done(&mut run(&["--option", &trace], &["true"])).status.code(), Some(0));
    let left: Vec<_> = std::fs::read_dir(folder.path("")).expect("there").flatten().collect();
    assert!(left.len() <= 1, "{left:?}");
}

#[test]
fn the_help_names_what_there_is() {
    let output = done(heapwright().arg("--help"));
    assert_eq!(output.status.code(), Some(0));
    let help = stdout(&output);
    for name in ["run", "doctor", "library", "HEAPWRIGHT_LIBRARY"] {
        assert!(help.contains(name), "{help}");
    }
    let version = stdout(&done(heapwright().arg("--version")));
    assert_eq!(version, format!("heapwright {}\n", env!("CARGO_PKG_VERSION")));
    assert!(stdout(&done(heapwright().args(["man", "run"]))).contains("heapwright\\-run"));
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&done(heapwright().args(["completions", shell])));
        assert!(script.contains("doctor") && script.contains("trim"), "{shell}");
        for hidden in ["cargo-runner", "probe", "completions"] {
            assert!(!script.contains(hidden), "{shell}: {hidden}");
        }
    }
}

/// Writes behind a block's end, frees the block, and says that it went on.
const OVERFLOW: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    volatile char *block = malloc(24);
    block[24] = 'x';
    free((void *)block);
    puts("went on");
    return 7;
}
"#;

#[test]
fn hardened_is_an_option_of_the_library_in_one_word() {
    let print = ["sh", "-c", "echo \"$HEAPWRIGHT\""];
    for (flags, before, expected) in [
        (&["--hardened"][..], "", "mode=hardened:light"),
        (&["--hardened=light"], "", "mode=hardened:light"),
        (&["--hardened=full"], "purge=10,mode=debug", "purge=10,mode=debug,mode=hardened:full"),
        (
            &["--option", "purge=20", "--hardened", "--on-misuse", "report"],
            "purge=10",
            "purge=10,mode=hardened:light,on_misuse=report,purge=20",
        ),
        (
            &["--hardened=full", "--on-misuse=abort"],
            "on_misuse=report",
            "on_misuse=report,mode=hardened:full,on_misuse=abort",
        ),
    ] {
        let output = done(run(flags, &print).env("HEAPWRIGHT", before));
        assert_eq!(stdout(&output), format!("{expected}\n"), "{flags:?}: {}", stderr(&output));
        assert_eq!(stderr(&output), "", "{flags:?}");
    }
    // The word behind `--hardened` is the program, not the option's value.
    let mut command = heapwright();
    let output = done(command.args(["run", "--hardened", "sh", "-c", "echo \"$HEAPWRIGHT\""]));
    assert_eq!(stdout(&output), "mode=hardened:light\n", "{}", stderr(&output));
}

#[test]
fn hardened_ends_a_program_at_its_misuse_or_reports_it() {
    let folder = Folder::new();
    let overflow = folder.compile("overflow", &[], OVERFLOW);
    let line = "this 24-byte block was written past its end";
    for way in WAYS {
        for how in ["--hardened", "--hardened=full"] {
            let with = |more: &[&str]| {
                let flags = [way, &[how], more].concat();
                done(run(&flags, &[text(&overflow)]).current_dir(folder.path("")))
            };
            let ended = with(&["--option", "guard=never"]);
            assert_eq!(ended.status.signal(), Some(libc::SIGABRT), "{}", stderr(&ended));
            assert_eq!(stdout(&ended), "");
            assert!(stderr(&ended).contains(line), "{}", stderr(&ended));
            let reported = with(&["--on-misuse", "report"]);
            assert_eq!(reported.status.code(), Some(7), "{}", stderr(&reported));
            assert_eq!(stdout(&reported), "went on\n");
            assert!(stderr(&reported).contains(line), "{}", stderr(&reported));
            let silenced = with(&["--option", "detect=-canary"]);
            assert_eq!(silenced.status.code(), Some(7), "{}", stderr(&silenced));
            assert!(!stderr(&silenced).contains(line), "{}", stderr(&silenced));
        }
    }
    let output = done(&mut run(&[], &[text(&overflow)]));
    assert_eq!((output.status.code(), stderr(&output)), (Some(7), String::new()));
}

#[test]
fn flags_of_hardened_mode_that_make_no_sense_are_refused() {
    let folder = Folder::new();
    let mark = folder.path("mark");
    let touch = ["touch", text(&mark)];
    for (flags, words) in [
        (&["--hardened=medium"][..], "light"),
        (&["--on-misuse", "report"], "--hardened"),
        (&["--hardened", "--on-misuse", "shout"], "abort"),
        (&["--hardened", "--option", "mode=debug"], "--hardened sets option mode itself"),
        (&["--hardened", "--option", "purge=1,mode=fast"], "--hardened sets option mode itself"),
        (
            &["--hardened", "--on-misuse=abort", "--option", "on_misuse=report"],
            "--on-misuse sets option on_misuse itself",
        ),
        (&["--hardened", "--option", "cache=shared:2"], "has no effect with mode=hardened"),
        (&["--option", "on_misuse=report"], "has no effect without mode=hardened"),
        (&["--option", "detect=-fill"], "has no effect without mode=debug or mode=hardened"),
        (&["--option", "mode=hardened:medium"], "hardened:full"),
    ] {
        let output = done(&mut run(flags, &touch));
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{flags:?}: {}", stderr(&output));
        assert!(!mark.exists(), "{flags:?}: the program ran");
    }
}
