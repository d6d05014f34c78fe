//! One run of a program under an allocator, through the launcher.
//!
//! ```text
//! this command --- heapwright-launcher --- the program, leader of its own group
//!      ^  ^                |                   |
//!      |  +---- a pipe <---+                   |
//!      +------- files in memory <- its stdout -+ stderr
//! ```
//!
//! The launcher (bench/launcher) starts the program, waits for it, kills its group at the time
//! limit, and sends one line of numbers. If this command dies, the launcher and the program die,
//! too.
//!
//! The program prints to files in memory: pipes would have to be read during the timed run. A
//! program that prints more than [`MOST_OUTPUT`] to stdout or to stderr is stopped.

use super::allocators::Allocator;
use super::program::Program;
use super::results::Run;
use crate::output::printable_text;
use crate::process::interrupt;
use anyhow::{Context, bail, ensure};
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, PipeReader, Read, Seek, SeekFrom, pipe};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const MOST_OUTPUT: u64 = 256 << 20;

/// The interval between looks at signals and at the size of the output.
const LOOK_UP: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Code(u64),
    Signal(i32),
    Limit,
    TooMuchOutput,
}

pub(crate) struct Ran {
    pub(crate) cost: Run,
    pub(crate) end: End,
    /// The fingerprint of the whole stdout.
    pub(crate) output: Fingerprint,
    pub(crate) stdout: File,
    pub(crate) stderr: File,
}

/// Length and hash of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(u64, u64);

pub(crate) enum Attempt {
    Ran(Box<Ran>),
    /// The kernel refused to start the program.
    NotStarted(io::Error),
    /// A signal asked this command to stop.
    Interrupted,
}

pub(crate) struct Launcher {
    path: PathBuf,
}

impl Launcher {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Must be called on the main thread: the launcher dies with the thread that started it.
    pub(crate) fn run(
        &self,
        program: &Program,
        allocator: &Allocator,
        limit: Duration,
        tick: &dyn Fn(),
    ) -> anyhow::Result<Attempt> {
        let (mut stdout, stderr) = (in_memory()?, in_memory()?);
        let (reader, writer) = pipe().context("cannot make a pipe")?;
        // Only the launcher's copy stays open across exec.
        let writer = {
            // This process must close its own copy, or the reader would never see the end.
            let ours = writer;
            inheritable(ours.as_raw_fd())?
        };
        let mut command = Command::new(&self.path);
        command
            .arg0("heapwright-launcher")
            .arg(writer.as_raw_fd().to_string())
            .arg(limit.as_millis().to_string())
            .arg(std::process::id().to_string())
            .arg(&program.file)
            .args(&program.arguments)
            .env_remove("LD_PRELOAD")
            .env_remove("HEAPWRIGHT")
            .envs(&program.environment)
            .envs(&allocator.environment)
            .stdout(stdout.try_clone()?)
            .stderr(stderr.try_clone()?)
            .stdin(match &program.stdin {
                Some(path) => {
                    let file = File::open(path);
                    file.with_context(|| format!("cannot read {}", path.display()))?.into()
                }
                None => Stdio::null(),
            });
        if let Some(library) = &allocator.library {
            command.env("LD_PRELOAD", library);
        }
        if let Some(directory) = &program.directory {
            command.current_dir(directory);
        }
        let mut child = command.spawn().context("cannot start the launcher")?;
        drop(writer);
        let (report, stopped) = wait(reader, &child, [&stdout, &stderr], tick)?;
        reap(&mut child)?;
        if stopped == Some(Stop::Asked) {
            return Ok(Attempt::Interrupted);
        }
        let (cost, end) = match read_report(&report)? {
            Report::NotStarted(number) => {
                return Ok(Attempt::NotStarted(io::Error::from_raw_os_error(number)));
            }
            Report::Ended(cost, end) => (cost, end),
            Report::Stopped(cost) if stopped == Some(Stop::TooMuchOutput) => {
                (cost, End::TooMuchOutput)
            }
            // The terminal's signal reached the launcher before it reached this command.
            Report::Stopped(_) => return Ok(Attempt::Interrupted),
        };
        let output = fingerprint(&mut stdout)?;
        Ok(Attempt::Ran(Box::new(Ran { cost, end, output, stdout, stderr })))
    }
}

impl Ran {
    pub(crate) fn complaint(&mut self) -> Option<String> {
        const LONGEST: usize = 160;
        let text = tail(&mut self.stderr).ok()?;
        let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
        Some(printable_text(&line.chars().take(LONGEST).collect::<String>()))
    }

    pub(crate) fn preload_refused(&mut self) -> bool {
        // The loader prints before the program does.
        let mut text = Vec::new();
        let read = self
            .stderr
            .seek(SeekFrom::Start(0))
            .and_then(|_| (&self.stderr).take(4096).read_to_end(&mut text));
        read.is_ok()
            && String::from_utf8_lossy(&text).contains("from LD_PRELOAD cannot be preloaded")
    }

    pub(crate) fn text(&mut self) -> io::Result<String> {
        let mut text = String::new();
        self.stdout.seek(SeekFrom::Start(0))?;
        self.stdout.read_to_string(&mut text)?;
        Ok(text)
    }
}

/// The reason why this command stopped a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    Asked,
    TooMuchOutput,
}

/// Waits until the launcher has closed the pipe.
fn wait(
    mut reader: PipeReader,
    launcher: &Child,
    outputs: [&File; 2],
    tick: &dyn Fn(),
) -> anyhow::Result<(String, Option<Stop>)> {
    let mut stopped = None;
    loop {
        let mut place = libc::pollfd { fd: reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let patience = i32::try_from(LOOK_UP.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: `place` is one pollfd, which the kernel may write.
        let ready = unsafe { libc::poll(&raw mut place, 1, patience) };
        if ready > 0 {
            break;
        }
        tick();
        if stopped.is_none() {
            if interrupt::came().is_some() {
                stopped = Some(Stop::Asked);
            } else {
                for output in outputs {
                    if output.metadata()?.len() > MOST_OUTPUT {
                        stopped = Some(Stop::TooMuchOutput);
                    }
                }
            }
            if stopped.is_some() {
                // SAFETY: the call takes only numbers. The launcher is not reaped yet, so the
                // number is still the launcher's.
                unsafe { libc::kill(launcher.id().cast_signed(), libc::SIGTERM) };
            }
        }
    }
    let mut report = String::new();
    reader.read_to_string(&mut report).context("cannot read the launcher's report")?;
    // The terminal's Ctrl-C also reaches the launcher, which may end first.
    if interrupt::came().is_some() {
        stopped = Some(Stop::Asked);
    }
    Ok((report, stopped))
}

fn reap(child: &mut Child) -> anyhow::Result<()> {
    loop {
        match child.wait() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map(drop).context("the launcher cannot be waited for"),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Report {
    NotStarted(i32),
    /// The program ran to its end, or to the time limit.
    Ended(Run, End),
    Stopped(Run),
}

fn read_report(report: &str) -> anyhow::Result<Report> {
    if let Some(rest) = report.strip_prefix("not-started ") {
        let number = rest.split_whitespace().next().and_then(|number| number.parse().ok());
        return Ok(Report::NotStarted(number.context("the launcher's report is cut short")?));
    }
    let numbers: Vec<u64> =
        report.split_whitespace().map_while(|number| number.parse().ok()).collect();
    let &[wall, user, system, peak, minor, major, code, signal, ended] = &numbers[..] else {
        bail!("the launcher ended without a report ({report:?})");
    };
    let cost = Run {
        wall_ns: wall,
        user_ns: user * 1000,
        system_ns: system * 1000,
        peak_rss_bytes: peak * 1024,
        minor_faults: minor,
        major_faults: major,
    };
    Ok(match (ended, signal) {
        (2, _) => Report::Stopped(cost),
        (1, _) => Report::Ended(cost, End::Limit),
        (_, 0) => Report::Ended(cost, End::Code(code)),
        (_, signal) => Report::Ended(cost, End::Signal(i32::try_from(signal).unwrap_or_default())),
    })
}

fn in_memory() -> anyhow::Result<File> {
    // SAFETY: the name is a string that ends in NUL.
    let file = unsafe { libc::memfd_create(c"heapwright-output".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(io::Error::last_os_error()).context("cannot make a file in memory");
    }
    // SAFETY: the descriptor is new, and only this call knows it.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(file) }))
}

/// Copies a descriptor; the copy stays open across exec.
fn inheritable(descriptor: i32) -> anyhow::Result<OwnedFd> {
    const ABOVE_STANDARD: i32 = 3;
    // SAFETY: the call takes only numbers.
    let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD, ABOVE_STANDARD) };
    ensure!(copy >= 0, "cannot copy a descriptor: {}", io::Error::last_os_error());
    // SAFETY: the descriptor is new, and only this call knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

fn fingerprint(file: &mut File) -> anyhow::Result<Fingerprint> {
    let mut hasher = DefaultHasher::new();
    let mut buffer = vec![0; 1 << 16];
    let mut length = 0;
    file.seek(SeekFrom::Start(0))?;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Fingerprint(length, hasher.finish())),
            some => {
                hasher.write(&buffer[..some]);
                length += some as u64;
            }
        }
    }
}

fn tail(file: &mut File) -> io::Result<String> {
    const LONGEST: u64 = 8192;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LONGEST)))?;
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::program::Comparing;
    use crate::bench::results::Kind;
    use crate::preload;
    use std::collections::BTreeMap;

    fn shell(script: &str) -> Program {
        Program {
            name: "test".to_owned(),
            stands_for: String::new(),
            kind: Kind::Command,
            file: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: BTreeMap::from([("WORD".to_owned(), "hello".to_owned())]),
            directory: Some("/".into()),
            stdin: Some("/etc/passwd".into()),
            long: false,
            threads: 1,
            live_bytes: None,
            operations: None,
            comparing: Comparing::Always,
            refuses: None,
        }
    }

    fn attempt(program: &Program, limit: Duration) -> Attempt {
        let glibc =
            Allocator { name: "glibc".to_owned(), library: None, environment: BTreeMap::new() };
        let launcher = Launcher::new(preload::launcher().expect("is there"));
        launcher.run(program, &glibc, limit, &|| ()).expect("ran")
    }

    fn ran(script: &str, limit: Duration) -> Box<Ran> {
        match attempt(&shell(script), limit) {
            Attempt::Ran(ran) => ran,
            Attempt::NotStarted(error) => panic!("{error}"),
            Attempt::Interrupted => panic!("interrupted"),
        }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn streams_folder_and_environment_are_the_programs() {
        let mut run = ran("pwd; echo $WORD; head -c 4; echo oh >&2; echo >&2", LONG);
        assert_eq!(run.text().expect("is text"), "/\nhello\nroot");
        assert_eq!(run.complaint().as_deref(), Some("oh"));
        assert_eq!(run.end, End::Code(0));
        assert!(run.cost.wall_ns > 0 && run.cost.minor_faults > 0, "{:?}", run.cost);
    }

    #[test]
    fn ends_are_distinguished() {
        assert_eq!(ran("exit 7", LONG).end, End::Code(7));
        assert_eq!(ran("kill -KILL $$", LONG).end, End::Signal(9));
        let short = Duration::from_millis(200);
        assert_eq!(ran("sleep 60 & wait", short).end, End::Limit);
        let program = Program { file: "/nonexistent".into(), ..shell("") };
        let Attempt::NotStarted(error) = attempt(&program, LONG) else { panic!("started") };
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn a_program_that_prints_too_much_is_stopped() {
        for stream in [1, 2] {
            let script = format!("head -c 300000000 /dev/zero >&{stream}; sleep 60");
            assert_eq!(ran(&script, LONG).end, End::TooMuchOutput, "{stream}");
        }
    }

    #[test]
    fn children_do_not_outlive_the_run() {
        let mut run = ran("sleep 60 & echo $!", LONG);
        let pid: i32 = run.text().expect("is text").trim().parse().expect("is a number");
        let gone = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            // SAFETY: signal 0 is not sent; the kernel only looks up the process.
            let result = unsafe { libc::kill(pid, 0) };
            result != 0 || zombie(pid)
        });
        assert!(gone, "process {pid} is still there");
    }

    fn zombie(pid: i32) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        status.rsplit(')').next().is_some_and(|rest| rest.trim().starts_with('Z'))
    }

    #[test]
    fn a_peak_is_the_programs_own() {
        let large = vec![1_u8; 128 << 20];
        let peak = ran("true", LONG).cost.peak_rss_bytes;
        assert!(large.contains(&1));
        assert!(peak < 64 << 20, "{peak}");
    }

    #[test]
    fn outputs_are_distinguished() {
        let of = |script: &str| ran(script, LONG).output;
        assert_eq!(of("echo a"), of("echo a"));
        assert_ne!(of("echo a"), of("echo b"));
        assert_ne!(of("echo a"), of("echo a; echo"));
    }

    #[test]
    fn reports_are_read_and_nonsense_is_refused() {
        assert!(read_report("").is_err());
        assert!(read_report("1 2 3\n").is_err());
        assert!(read_report("not-started \n").is_err());
        let cost = Run {
            wall_ns: 1,
            user_ns: 2000,
            system_ns: 3000,
            peak_rss_bytes: 4096,
            minor_faults: 5,
            major_faults: 6,
        };
        for (rest, report) in [
            ("7 0 0", Report::Ended(cost, End::Code(7))),
            ("0 11 0", Report::Ended(cost, End::Signal(11))),
            ("0 9 1", Report::Ended(cost, End::Limit)),
            ("0 9 2", Report::Stopped(cost)),
        ] {
            let line = format!("1 2 3 4 5 6 {rest}\n");
            assert_eq!(read_report(&line).expect("is one"), report);
        }
        assert_eq!(read_report("not-started 2\n").expect("is one"), Report::NotStarted(2));
    }
}
