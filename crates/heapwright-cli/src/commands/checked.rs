//! A program in debug mode, up to its end and that of what it starts: what `check`, `valgrind` and
//! `cargo` have in common.
//!
//! ```text
//!   to_end        the program ended; what outlives it is waited for: a daemon until it ends, others for a second
//!   End::note_in  what was not seen goes into the report: no record, killed, still running
//!   End::exit     the program's own exit code, or 125 where something was not seen
//! ```
//!
//! [`checked`] is all of it for a command without options of its own: the records are in a folder
//! that goes with [`Checked`].

use super::run::{command, not_started, why_none};
use super::{OWN_OBJECTS, has_own_objects};
use crate::inspect::{self, Verdict};
use crate::preload::{self, Options, SharedRules};
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

/// The records' name before the pid.
pub(super) const STEM: &str = "record";

/// As many frames as valgrind keeps: those beyond cost time and are seldom looked at.
pub(super) const FRAMES: &str = "traces=12";

/// How long processes that outlive the program, and are not followed, are waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often they are looked at.
const STEP: Duration = Duration::from_millis(20);
const LONG_STEP: Duration = Duration::from_millis(200);

/// The exit code where nothing was checked.
pub(crate) const COULD_NOT: u8 = 125;

/// Which processes that outlive the program are waited for until they end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Follow {
    /// Those that run a file which the program ran
    Daemon,
    /// All
    All,
    /// None
    None,
}

/// What to do about processes that are not seen to their end.
#[derive(Clone, Copy)]
pub(super) struct How<'a> {
    pub(super) follow: Follow,
    /// The program may leave no record, if what it starts does.
    pub(super) may_be_unchecked: bool,
    /// Where records are kept.
    pub(super) kept: Option<&'a Path>,
    /// Python allocates all of its objects with malloc.
    pub(super) has_python_malloc: bool,
    /// How long the program may run, and then be waited for where it goes on in the background.
    pub(super) limit: Option<Duration>,
}

impl How<'_> {
    /// Where nothing is asked.
    pub(super) const PLAIN: How<'static> = How {
        follow: Follow::Daemon,
        may_be_unchecked: true,
        kept: None,
        has_python_malloc: false,
        limit: None,
    };
}

/// How a program, and what outlived it, ended.
pub(super) struct End {
    name: OsString,
    pub(super) outcome: Outcome,
    /// What runs still.
    running: Vec<Running>,
    /// Processes that were waited for until they ended.
    followed: Vec<u32>,
    orphans: Orphans,
}

/// Runs a program whose records go to a folder, and waits for it and what outlives it.
pub(super) fn to_end(
    program: Command,
    name: &OsStr,
    records: &Path,
    how: &How<'_>,
) -> io::Result<End> {
    let mut orphans = Orphans::adopt();
    let outcome = process::watch_all(program, &mut orphans, how.limit)?;
    let (running, followed) = outlive(name, how, records, &outcome, &mut orphans);
    Ok(End { name: name.to_owned(), outcome, running, followed, orphans })
}

impl End {
    /// How each process of a report ended, and what was not seen.
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
            let name = self.name.display();
            let reason = why_none(&self.name, &self.outcome);
            let text = format!("{name} itself was not checked: {reason}");
            // It may have been run for what it starts.
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
            {
                let signal = process::signal_name(number);
                report
                    .unseen
                    .push(format!("process {pid} was killed by {signal} before it wrote anything"));
            }
        }
    }

    /// Whether something of it had not ended when it was no longer waited for.
    pub(super) fn is_still_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// How to end where the report decides nothing else.
    pub(super) fn exit(&self, report: &Report) -> Exit {
        match self.outcome.end {
            process::End::Code(_) if !report.unseen.is_empty() => Exit::Code(COULD_NOT),
            end => Exit::from(end),
        }
    }
}

/// Waits for processes that outlive the program, shortly, or (--follow) until they end, or somebody
/// asks twice that this ends. Returns what runs still, and what was waited for.
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
                "heapwright: {name} has ended and goes on as {}; the report comes when that ends \
                 (kill {own} or Ctrl-C ends it, twice: report now)",
                processes(&waited)
            );
        }
        std::thread::sleep(if is_patient { STEP } else { LONG_STEP });
    }
}

/// `process 12`, `processes 12 and 13`.
fn processes(pids: &[u32]) -> String {
    let words: Vec<String> = pids.iter().map(u32::to_string).collect();
    match words.split_last() {
        Some((last, [])) => format!("process {last}"),
        Some((last, words)) => format!("processes {} and {last}", words.join(", ")),
        None => String::from("no process"),
    }
}

/// Notes in a report with a process of Python's that small objects are not seen.
pub(super) fn note_python(report: &mut Report, has_python_malloc: bool) {
    if has_own_objects(has_python_malloc) && has_python(report) {
        report.notes.push(OWN_OBJECTS.to_owned());
    }
}

/// Whether a process was Python's, or had it as a library.
fn has_python(report: &Report) -> bool {
    let is = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.starts_with("python") || name.starts_with("libpython")
    };
    let mut places = report.stacks.frames.iter().filter_map(|frame| frame.place.as_ref());
    report.processes.iter().any(|process| !process.is_skipped && is(&process.exe))
        || places.any(|place| is(&String::from_utf8_lossy(&place.path)))
}

/// Leaves out of a report what other programs did than those that are wanted; whether anything is
/// left.
pub(super) fn keep(report: &mut Report, is_wanted: impl Fn(&Process) -> bool) -> bool {
    let is_wanted: Vec<bool> = report.processes.iter().map(is_wanted).collect();
    if is_wanted.iter().all(|is| *is) {
        return !is_wanted.is_empty();
    }
    let of = |process: usize| is_wanted.get(process).copied().unwrap_or_default();
    report.errors.retain(|error| of(error.process));
    report.leaks.retain(|leak| of(leak.process));
    report.growths.retain(|growth| of(growth.process));
    // Indexes stay what they are: a program that goes only lies behind those that stay.
    let kept = is_wanted.iter().rposition(|is| *is).map_or(0, |last| last + 1);
    report.processes.truncate(kept);
    kept != 0
}

/// Why the library would not get into a program. That it cannot be run at all is reported
/// when that is tried.
pub(super) fn cannot_be_checked(report: &inspect::Report) -> Option<String> {
    let cannot_run = ["not-found", "not-executable", "noexec", "not-a-program", "not-elf", "loop"];
    let reason = report.reason().filter(|finding| !cannot_run.contains(&finding.code))?;
    (report.verdict() == Verdict::No).then(|| reason.text.clone())
}

/// What a program may print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prints {
    Everything,
    /// It has printed it once.
    Nothing,
}

/// What a program left.
pub(super) struct Checked {
    folder: Folder,
    pub(super) end: End,
}

impl Checked {
    pub(super) fn records(&self) -> &Path {
        self.folder.path()
    }
}

/// Runs a program with these options of the library; or how to end where it cannot be run.
pub(super) fn checked(
    program: &[OsString],
    asked: &[String],
    prints: Prints,
) -> anyhow::Result<Result<Checked, Exit>> {
    let library = preload::for_check(preload::named().as_deref())?;
    let folder = Folder::for_records()?;
    // What the user set in HEAPWRIGHT comes first.
    let inherited = std::env::var_os("HEAPWRIGHT");
    let mut options = Options::inherited_over(FRAMES, inherited.as_deref());
    options.add("mode=debug,quiet=yes")?;
    for option in asked {
        options.add(option)?;
    }
    options.record(&folder.path().join(STEM));
    let rules = if preload::named().is_none() { SharedRules::new() } else { None };
    if let Some(rules) = &rules {
        options.add(&rules.option())?;
    }
    preload::refuse_bad(&library, &options, &[], "--option ")?;
    let mut command = command(program, &library, &options)?;
    if prints == Prints::Nothing {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    Ok(match to_end(command, &program[0], folder.path(), &How::PLAIN) {
        Ok(end) => Ok(Checked { folder, end }),
        Err(error) => Err(not_started(&program[0], &error)),
    })
}
