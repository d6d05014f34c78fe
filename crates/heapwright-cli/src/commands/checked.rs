//! Runs a program in debug mode, and waits for it and the processes that outlive it. Used by
//! `check`, its `twice`, `valgrind` and `cargo`; `profile` uses only [`note_python`].
//!
//! ```text
//!   to_end        runs the program; then waits until its daemons end, and a second for others
//!   End::note_in  adds to the report which processes left no record, were killed, or still run
//!   End::exit     returns the program's end; 125 replaces its exit code if the report lists any
//! ```
//!
//! [`checked`] does all this for a command without options. Dropping [`Checked`] removes records.

use super::run::{command, not_started, why_none};
use super::{OWN_OBJECTS, has_own_objects};
use crate::inspect::{self, Verdict};
use crate::preload::{self, Elsewhere, Options, Shared};
use crate::process::orphans::Running;
use crate::process::{self, Exit, Orphans, Outcome};
use crate::report;
use crate::report::model::{Fate, Process, Report};
use crate::statistics::Folder;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The part of a record's name before the pid.
pub(super) const STEM: &str = "record";

/// Valgrind's stack depth. More frames cost time and are seldom useful.
pub(super) const FRAMES: &str = "traces=12";

/// The time to wait for processes that --follow does not name.
const PATIENCE: Duration = Duration::from_secs(1);

/// The times between two looks at these processes: in the first second, and later.
const STEP: Duration = Duration::from_millis(20);
const LONG_STEP: Duration = Duration::from_millis(200);

/// The exit code if a process was not checked.
pub(crate) const COULD_NOT: u8 = 125;

/// The processes that outlive the program and that the command waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Follow {
    /// Processes that run a file which the program ran
    Daemon,
    /// All processes
    All,
    /// No process
    None,
}

#[derive(Clone, Copy)]
pub(super) struct How<'a> {
    pub(super) follow: Follow,
    /// The program may leave no record if a child process leaves one.
    pub(super) may_be_unchecked: bool,
    pub(super) kept: Option<&'a Path>,
    /// Whether Python allocates all its objects with malloc.
    pub(super) has_python_malloc: bool,
    /// The longest time that the program may run, and that its processes may outlive it.
    pub(super) limit: Option<Duration>,
    pub(super) shared: Option<&'a Shared>,
}

impl How<'_> {
    pub(super) const PLAIN: How<'static> = How {
        follow: Follow::Daemon,
        may_be_unchecked: true,
        kept: None,
        has_python_malloc: false,
        limit: None,
        shared: None,
    };
}

pub(super) struct End {
    name: OsString,
    pub(super) outcome: Outcome,
    running: Vec<Running>,
    /// The processes that --follow names.
    followed: Vec<u32>,
    orphans: Orphans,
    /// The records that did not fit on their folder's disk.
    pub(super) elsewhere: Option<Elsewhere>,
}

/// Runs a program whose records go to `records`. Waits for it and the processes that outlive it.
pub(super) fn to_end(
    program: Command,
    name: &OsStr,
    records: &Path,
    how: &How<'_>,
) -> io::Result<End> {
    let mut orphans = Orphans::adopt();
    let outcome = process::watch_all(program, &mut orphans, how.limit)?;
    let (running, followed) = outlive(name, how, records, &outcome, &mut orphans);
    let elsewhere = how.shared.and_then(|shared| shared.collect(records, STEM));
    Ok(End { name: name.to_owned(), outcome, running, followed, orphans, elsewhere })
}

impl End {
    /// Adds to a report how each process ended, and which processes were not checked.
    pub(super) fn note_in(&self, report: &mut Report, how: &How<'_>) {
        report::set_fates(report, |pid| match self.orphans.end(pid) {
            _ if pid == self.outcome.pid => Fate::Ended(self.outcome.end),
            Some(end) => Fate::Ended(end),
            None if self.running.iter().any(|running| running.pid == pid) => Fate::Running,
            None => Fate::Unknown,
        });
        let has_record =
            |report: &Report, pid: u32| report.processes.iter().any(|process| process.pid == pid);
        if !has_record(report, self.outcome.pid) {
            report.program = self.outcome.pid;
            let name = self.name.display();
            let reason = why_none(&self.name, &self.outcome);
            let text = format!("{name} itself was not checked: {reason}");
            // The user may have run the program only for the processes that it starts.
            if how.may_be_unchecked && !report.processes.is_empty() {
                report.notes.push(text);
            } else {
                report.unseen.push(text);
            }
        }
        note_python(report, how.has_python_malloc);
        for Running { pid, exe } in &self.running {
            if !has_record(report, *pid) {
                let (exe, text) = (exe.display(), "is still running, and has written nothing yet");
                report.unseen.push(format!("process {pid} ({exe}) {text}"));
            }
        }
        if !self.running.is_empty() {
            report.unseen.push(match how.kept {
                Some(folder) => {
                    let records = folder.join(format!("{STEM}.PID"));
                    format!("what runs still goes on writing to {}: see heapwright report", records.display())
                }
                None => String::from(
                    "what runs still writes nothing from now on (--follow all waits for it; --keep FOLDER keeps what it writes)",
                ),
            });
        }
        for pid in &self.followed {
            if let Some(process::End::Signal { number, .. }) = self.orphans.end(*pid)
                && !has_record(report, *pid)
                && !report.unseen.iter().any(|line| line.starts_with(&format!("process {pid} ")))
            {
                let signal = process::signal_name(number);
                report
                    .unseen
                    .push(format!("process {pid} was killed by {signal} before it wrote anything"));
            }
        }
    }

    /// Returns whether a process still ran when the wait ended.
    pub(super) fn is_still_running(&self) -> bool {
        !self.running.is_empty()
    }

    pub(super) fn exit(&self, report: &Report) -> Exit {
        match self.outcome.end {
            process::End::Code(_) if !report.unseen.is_empty() => Exit::Code(COULD_NOT),
            end => Exit::from(end),
        }
    }
}

/// Waits up to a second for the processes that outlive the program. For those that --follow names
/// the wait lasts until they end, the user interrupts twice, or the limit passes. Returns the
/// processes that still run, and those that --follow named.
fn outlive(
    name: &OsStr,
    how: &How<'_>,
    records: &Path,
    outcome: &Outcome,
    orphans: &mut Orphans,
) -> (Vec<Running>, Vec<u32>) {
    let began = Instant::now();
    let record = records.join(format!("{STEM}.{}", outcome.pid));
    let programs = report::programs(&record);
    let is_followed = |running: &Running| match how.follow {
        Follow::Daemon => programs.contains(&running.exe),
        Follow::All => true,
        Follow::None => false,
    };
    let (mut followed, mut is_said) = (Vec::new(), false);
    loop {
        let running = orphans.reap();
        let waited: Vec<u32> = running
            .iter()
            .filter(|running| is_followed(running))
            .map(|running| running.pid)
            .collect();
        process::orphans::pass_signals_to(&waited);
        for pid in &waited {
            if !followed.contains(pid) {
                followed.push(*pid);
            }
        }
        let is_late = how.limit.is_some_and(|limit| began.elapsed() >= limit);
        let waits = !waited.is_empty() && process::orphans::asked_to_end() < 2 && !is_late;
        let is_patient = began.elapsed() < PATIENCE;
        if running.is_empty() || !waits && !is_patient {
            return (running, followed);
        }
        if !is_patient && !is_said {
            is_said = true;
            let name = name.display();
            let own = std::process::id();
            eprintln!(
                "heapwright: {name} goes on in the background as {}; the report comes when it ends \
                 (kill {own} or Ctrl-C ends it, a second one reports now)",
                processes(&waited)
            );
        }
        std::thread::sleep(if is_patient { STEP } else { LONG_STEP });
    }
}

fn processes(pids: &[u32]) -> String {
    let words: Vec<String> = pids.iter().map(u32::to_string).collect();
    match words.split_last() {
        Some((last, [])) => format!("process {last}"),
        Some((last, words)) => format!("processes {} and {last}", words.join(", ")),
        None => String::from("no process"),
    }
}

pub(super) fn note_python(report: &mut Report, has_python_malloc: bool) {
    if has_own_objects(has_python_malloc) && has_python(report) {
        report.notes.push(OWN_OBJECTS.to_owned());
    }
}

/// Returns whether a process ran Python, or has libpython in a stack.
fn has_python(report: &Report) -> bool {
    let is = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.starts_with("python") || name.starts_with("libpython")
    };
    let mut places = report.stacks.frames.iter().filter_map(|frame| frame.place.as_ref());
    report.processes.iter().any(|process| !process.is_skipped && is(&process.exe))
        || places.any(|place| is(&String::from_utf8_lossy(&place.path)))
}

/// Removes the findings of unwanted processes. Returns whether any wanted process is left.
pub(super) fn keep(report: &mut Report, is_wanted: impl Fn(&Process) -> bool) -> bool {
    let is_wanted: Vec<bool> = report.processes.iter().map(is_wanted).collect();
    if is_wanted.iter().all(|is| *is) {
        return !is_wanted.is_empty();
    }
    let of = |process: usize| is_wanted.get(process).copied().unwrap_or_default();
    report.errors.retain(|error| of(error.process));
    report.leaks.retain(|leak| of(leak.process));
    report.growths.retain(|growth| of(growth.process));
    // Findings index this list: only unwanted processes behind the last wanted one may go.
    let kept = is_wanted.iter().rposition(|is| *is).map_or(0, |last| last + 1);
    report.processes.truncate(kept);
    kept != 0
}

/// Returns why the library cannot be loaded into a program. `None` if the program cannot be run:
/// the attempt to start it reports the reason.
pub(super) fn cannot_be_checked(report: &inspect::Report) -> Option<String> {
    let cannot_run = ["not-found", "not-executable", "noexec", "not-a-program", "not-elf", "loop"];
    let reason = report.reason().filter(|finding| !cannot_run.contains(&finding.code))?;
    (report.verdict() == Verdict::No).then(|| reason.text.clone())
}

/// The part of a program's output to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prints {
    Everything,
    /// For a second run, whose output the user has already seen.
    Nothing,
}

pub(super) struct Checked {
    folder: Folder,
    pub(super) end: End,
}

impl Checked {
    pub(super) fn records(&self) -> &Path {
        self.folder.path()
    }
}

/// Runs a program. The inner error is the exit code if it cannot be run.
pub(super) fn checked(
    program: &[OsString],
    asked: &[String],
    prints: Prints,
) -> anyhow::Result<Result<Checked, Exit>> {
    let library = preload::for_check(preload::named().as_deref())?;
    let folder = Folder::for_records()?;
    let inherited = std::env::var_os("HEAPWRIGHT");
    let mut options = Options::inherited_over(FRAMES, inherited.as_deref());
    options.add("mode=debug,quiet=yes")?;
    for option in asked {
        options.add(option)?;
    }
    options.record(&folder.path().join(STEM));
    let shared = if preload::named().is_none() { Shared::new() } else { None };
    if let Some(shared) = &shared {
        options.add(&shared.option())?;
    }
    preload::refuse_bad(&library, &options, &[], "--option ")?;
    let mut command = command(program, &library, &options)?;
    if prints == Prints::Nothing {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    let how = How { shared: shared.as_ref(), ..How::PLAIN };
    Ok(match to_end(command, &program[0], folder.path(), &how) {
        Ok(end) => Ok(Checked { folder, end }),
        Err(error) => Err(not_started(&program[0], &error)),
    })
}
