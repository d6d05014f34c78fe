//! `check --twice`: does the program's result depend on uninitialised bytes?
//!
//! ```text
//! run     what undefined bytes of fresh blocks hold
//!  1      zeros                                      the user sees its output
//!  2      zeros                                      differs: the program cannot be compared with itself
//!  3, 4   a pattern, and each bit of it the other way
//!         no difference: done
//!  5 ...  the pattern up to a point, zeros behind it: by halves to the first byte that makes a difference (`search`),
//!         then the two runs beside that byte once more
//!         again, with zeros in what comes from that byte's site: the next one
//!  last   zeros, and the blocks that were found are findings in the record: what is reported is this run
//! ```
//!
//! So two runs that differ in one byte alone prove a finding. `compare` compares the program's end,
//! its output (`streams`), the named files, and the findings.
//!
//! All runs have the same input and the same addresses: address space randomisation is off, and the
//! environment has the same length, on which the stack's addresses depend. Hashes of strings in
//! Python and Perl get a fixed seed.
//!
//! A run that takes far longer than the first is ended, because undefined bytes may be lengths and
//! loop conditions.

mod compare;
mod search;
mod streams;

use super::checked::{End, How, to_end};
use crate::preload::Options;
use crate::process::{self, Outcome, orphans};
use crate::report;
use crate::report::model::{Report, Wanted};
use crate::statistics::Folder;
use anyhow::{Context, bail};
use compare::{Run, differences, found};
use heapwright_record::debug::FindingKind;
use search::Point;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use streams::{Input, Outputs};

/// Sites that are looked for: as many as option `fill` can name.
const MOST_FOUND: usize = 8;

/// The patterns: of the second, each bit is the other way.
const SEEDS: [u32; 2] = [1, 2];

/// What a run may take beyond the first one's time, which is taken so many times.
const TIMES: u32 = 10;
const MORE_WALL: Duration = Duration::from_secs(20);
const MORE_CPU: Duration = Duration::from_secs(1);

/// Languages whose hashes of strings are random, and what makes them the same in each run.
const HASH_SEEDS: [(&str, &str); 2] = [("PYTHONHASHSEED", "0"), ("PERL_HASH_SEED", "0")];

/// Why nothing can be said where a byte makes a difference once and not again.
const VARIES: &str = "it does not do the same each time (it may depend on time, chance or threads)";

/// What is to be run, and how.
pub(super) struct Asked<'a> {
    /// The program's name, for messages.
    pub(super) name: &'a std::ffi::OsStr,
    /// Makes the program, with these options for the library.
    pub(super) command: &'a dyn Fn(&Options) -> anyhow::Result<Command>,
    /// The options for the run that is reported, whose records are in this folder.
    pub(super) options: &'a dyn Fn(&Path) -> anyhow::Result<Options>,
    pub(super) records: &'a Path,
    pub(super) how: &'a How<'a>,
    /// How to make reports.
    pub(super) report: &'a report::Options,
    /// A command of the shell that runs before each run.
    pub(super) setup: Option<&'a str>,
    /// Files that are compared.
    pub(super) files: &'a [PathBuf],
    /// No further byte is looked for after so many runs.
    pub(super) most_runs: u32,
}

/// What is to be said of the run that is reported, beyond its records.
#[derive(Default)]
pub(super) struct Compared {
    /// What each of the bytes that were found changes, in the order of their numbers in the record.
    effects: Vec<String>,
    notes: Vec<String>,
    /// Why it could not be compared.
    unseen: Option<String>,
}

impl Compared {
    /// Adds to a report what is known of it.
    pub(super) fn note_in(&self, report: &mut Report) {
        for error in &mut report.errors {
            if error.finding.kind == FindingKind::Uninitialised {
                let effect = self.effects.get(usize::from(error.finding.value));
                error.effect = effect.cloned().unwrap_or_default();
            }
        }
        report.notes.extend(self.notes.iter().cloned());
        report.unseen.extend(self.unseen.clone());
    }
}

/// Runs the program as often as it takes. Inside, the error of a program that cannot be run.
pub(super) fn run(asked: &Asked<'_>) -> anyhow::Result<io::Result<(End, Compared)>> {
    // The program's output is for this user alone; records may be other users', too.
    let (folder, compared) = (Folder::new()?, Folder::for_records()?);
    let mut twice = Twice {
        asked,
        input: Input::new(folder.path())?,
        folder: folder.path(),
        compared: compared.path(),
        first: None,
        runs: 0,
        without: Vec::new(),
    };
    let (end, first) = match twice.go("0", Kept::Reported)? {
        Ok((end, run, false)) => (end, run),
        Ok((end, _, true)) => {
            return Ok(Ok(not_compared(end, "its output was closed before its end".to_owned())));
        }
        Err(error) => return Ok(Err(error)),
    };
    if let Some(reason) = why_not(&end, asked.records) {
        return Ok(Ok(not_compared(end, reason)));
    }
    twice.first = Some((first, end.outcome));
    let mut bytes = Vec::new();
    let mut notes = Vec::new();
    if let Err(error) = twice.compare(&mut bytes, &mut notes) {
        let NotComparable(reason) = error.downcast::<NotComparable>()?;
        if bytes.is_empty() || interrupted().is_some() {
            return Ok(Ok(not_compared(end, reason)));
        }
        notes.push(format!("no more undefined bytes were looked for (--twice): {reason}"));
    }
    if bytes.is_empty() {
        let runs = twice.runs;
        notes.push(format!(
            "{runs} runs with other bytes in what it has not written: no difference (--twice)"
        ));
        return Ok(Ok((end, Compared { notes, ..Compared::default() })));
    }
    twice.last(&bytes).map(|last| {
        last.map(|(end, varies)| {
            if varies {
                return not_compared(end, VARIES.to_owned());
            }
            let effects = bytes.into_iter().map(|(_, effect)| effect).collect();
            (end, Compared { effects, notes, unseen: None })
        })
    })
}

fn not_compared(end: End, reason: String) -> (End, Compared) {
    let unseen = Some(format!("not compared with itself (--twice): {reason}"));
    (end, Compared { unseen, ..Compared::default() })
}

/// Why a program is not run again.
fn why_not(end: &End, records: &Path) -> Option<String> {
    if end.is_still_running() {
        return Some("a process of it is still running".to_owned());
    }
    if !report::any_in(records) {
        return Some("it left no record".to_owned());
    }
    interrupted()
}

fn interrupted() -> Option<String> {
    process::was_asked_to_end().then(|| "interrupted".to_owned())
}

/// Runs do not differ by what undefined bytes hold alone.
#[derive(Debug)]
struct NotComparable(String);

impl std::fmt::Display for NotComparable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotComparable {}

fn not_comparable<T>(reason: String) -> anyhow::Result<T> {
    Err(NotComparable(reason).into())
}

/// What becomes of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// It is the user's, and its records are reported.
    Reported,
    /// It is only compared.
    Compared,
}

struct Twice<'a> {
    asked: &'a Asked<'a>,
    input: Input,
    folder: &'a Path,
    /// The records of runs that are only compared.
    compared: &'a Path,
    /// What the others are compared with, and what it took.
    first: Option<(Run, Outcome)>,
    runs: u32,
    /// Sites that were found.
    without: Vec<u64>,
}

impl Twice<'_> {
    /// Compares runs, and finds the bytes that make the difference, with what each of them changes.
    fn compare(
        &mut self,
        bytes: &mut Vec<(Point, String)>,
        notes: &mut Vec<String>,
    ) -> anyhow::Result<()> {
        let again = self.differences("0:list")?;
        if !again.is_empty() {
            return not_comparable(format!(
                "two runs alike differ: {} (output that depends on time, chance or threads cannot be compared)",
                again.join("; ")
            ));
        }
        let sites = report::sites_of_undefined(&self.records(Kept::Compared))?;
        while let Some((seed, parts)) = self.seed_that_differs()? {
            let parts = parts.join("; ");
            let is_enough = bytes.len() == MOST_FOUND || self.runs >= self.asked.most_runs;
            if is_enough && !bytes.is_empty() {
                notes.push(format!(
                    "other undefined bytes make a difference, too ({parts}): mend these first, or see --runs"
                ));
                break;
            }
            if bytes.is_empty() {
                let runs = runs_needed(sites.len());
                eprintln!(
                    "heapwright: what the program does depends on undefined bytes ({parts}): looking for them, in some {runs} runs"
                );
            }
            let point = search::find(&sites, &mut |point| self.differs(seed, point))?;
            let Some(point) = point else { return not_comparable(VARIES.to_owned()) };
            let is_different_below = self.differs(seed, point)?;
            let effect = self.differences(&self.fill(seed, point.next()))?;
            if is_different_below || effect.is_empty() {
                return not_comparable(VARIES.to_owned());
            }
            bytes.push((point, effect.join("; ")));
            self.without.push(point.site);
        }
        Ok(())
    }

    /// The run that is reported, in which the blocks of these bytes are findings; and whether it
    /// was another than the first. Inside, the error of a program that cannot be run.
    fn last(&mut self, bytes: &[(Point, String)]) -> anyhow::Result<io::Result<(End, bool)>> {
        remove_records(self.asked.records)?;
        let at: String = bytes.iter().map(|(point, _)| format!(":at-{point}")).collect();
        let (end, run, _) = match self.go(&format!("0{at}"), Kept::Reported)? {
            Ok(last) => last,
            Err(error) => return Ok(Err(error)),
        };
        let first = self.first.as_ref().context("there was no first run")?;
        let has_all = report::uninitialised(self.asked.records)? >= bytes.len();
        let varies = !has_all || !differences(&first.0, &run)?.is_empty();
        Ok(Ok((end, varies)))
    }

    /// A pattern with which a run differs from the first, and how.
    fn seed_that_differs(&mut self) -> anyhow::Result<Option<(u32, Vec<String>)>> {
        for seed in SEEDS {
            let parts = self.differences(&self.fill(seed, Point::END))?;
            if !parts.is_empty() {
                return Ok(Some((seed, parts)));
            }
        }
        Ok(None)
    }

    fn differs(&mut self, seed: u32, point: Point) -> anyhow::Result<bool> {
        Ok(!self.differences(&self.fill(seed, point))?.is_empty())
    }

    /// Option `fill` where only bytes before a point have the pattern.
    fn fill(&self, seed: u32, point: Point) -> String {
        let without: String =
            self.without.iter().map(|site| format!(":without-{site:x}")).collect();
        format!("{seed}:before-{point}{without}")
    }

    /// How a run differs from the first.
    fn differences(&mut self, fill: &str) -> anyhow::Result<Vec<String>> {
        let (_, run, _) =
            self.go(fill, Kept::Compared)?.context("the program cannot be run again")?;
        if let Some(reason) = interrupted() {
            return not_comparable(reason);
        }
        match &self.first {
            Some((first, _)) => Ok(differences(first, &run)?),
            None => Ok(Vec::new()),
        }
    }

    /// Where a run's records are.
    fn records(&self, kept: Kept) -> PathBuf {
        match kept {
            Kept::Reported => self.asked.records.to_owned(),
            Kept::Compared => self.compared.to_owned(),
        }
    }

    /// Runs the program: how it ended, what it left, and whether the user's own output was closed
    /// meanwhile. Inside, the error of a program that cannot be run.
    fn go(&mut self, fill: &str, kept: Kept) -> anyhow::Result<io::Result<(End, Run, bool)>> {
        self.set_up()?;
        self.runs += 1;
        let is_first = self.first.is_none();
        let streams = self.folder.join(if is_first { "first" } else { "other" });
        fs::create_dir_all(&streams)?;
        let records = self.records(kept);
        if kept == Kept::Compared {
            remove_records(&records)?;
        }
        let mut options = (self.asked.options)(&records)?;
        if kept == Kept::Compared {
            options.add("leaks=off,growth=off")?;
        }
        options.add(&format!("fill={fill}"))?;
        options.fill_up();
        let mut command = (self.asked.command)(&options)?;
        for (name, seed) in HASH_SEEDS.iter().filter(|(name, _)| std::env::var_os(name).is_none()) {
            command.env(name, seed);
        }
        let length = |path: &Path| fs::metadata(path).map(|file| file.len()).unwrap_or_default();
        let first = self.first.as_ref();
        let lengths = first.map(|(run, _)| [0, 1].map(|number| length(&run.streams[number].1)));
        let outputs = Outputs::new(&mut command, &self.input, &streams, lengths)?;
        let (limit, seconds) = first.map_or((None, None), |(_, first)| limits(first));
        // SAFETY: the closure makes only system calls.
        unsafe { command.pre_exec(move || make_comparable(seconds)) };
        let how = How { limit, ..*self.asked.how };
        let paths = outputs.paths.clone();
        let ended = to_end(command, self.asked.name, &records, &how);
        let was_refused = outputs.end()?;
        let end = match ended {
            Ok(end) => end,
            Err(error) => return Ok(Err(error)),
        };
        if !is_first {
            orphans::kill_all();
        }
        let run = self.left_by(&end, &records, paths, &streams)?;
        Ok(Ok((end, run, was_refused)))
    }

    /// What a run left.
    fn left_by(
        &self,
        end: &End,
        records: &Path,
        paths: [PathBuf; 2],
        streams: &Path,
    ) -> anyhow::Result<Run> {
        let mut streams_left: Vec<(String, PathBuf)> =
            ["stdout", "stderr"].map(str::to_owned).into_iter().zip(paths).collect();
        for (number, file) in self.asked.files.iter().enumerate() {
            let copy = streams.join(format!("file-{number}"));
            match fs::copy(file, &copy) {
                Ok(_) => {}
                // Where it is missing in one run, that is a difference, too.
                Err(error) if error.kind() == io::ErrorKind::NotFound => fs::write(&copy, "")?,
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot read {}", file.display()));
                }
            }
            streams_left.push((file.display().to_string(), copy));
        }
        let found = if report::any_in(records) {
            let options = report::Options {
                quiet: true,
                skip: self.asked.report.skip.clone(),
                suppress: self.asked.report.suppress.clone(),
                wanted: Wanted { details: Vec::new(), ..Wanted::default() },
                is_of_run: true,
                ..report::Options::default()
            };
            let mut report = report::make(&[records.to_owned()], &options)?.report;
            report.errors.retain(|error| error.finding.kind != FindingKind::Uninitialised);
            found(&report)
        } else {
            Default::default()
        };
        let Outcome { end, was_late, .. } = end.outcome;
        Ok(Run { end, was_late, streams: streams_left, found })
    }

    /// Runs what the user wants to be run before each run.
    fn set_up(&self) -> anyhow::Result<()> {
        let Some(command) = self.asked.setup else { return Ok(()) };
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).stdin(Stdio::null()).stdout(io::stderr());
        let status = shell.status().context("cannot run the shell for --setup")?;
        if !status.success() {
            bail!("--setup '{command}' failed: {status}");
        }
        Ok(())
    }
}

/// Roughly how many runs a search takes.
fn runs_needed(sites: usize) -> u32 {
    sites.max(1).ilog2() + 12
}

/// How long a run may take, and how many seconds of processor time, where the first took so much.
fn limits(first: &Outcome) -> (Option<Duration>, Option<u64>) {
    let cpu = first.usage.user + first.usage.system;
    let seconds = (MORE_CPU + TIMES * cpu).as_secs() + 1;
    (Some(MORE_WALL + TIMES * first.wall), Some(seconds))
}

/// Of the child, between fork and exec: the same addresses in each run, and an end.
fn make_comparable(seconds: Option<u64>) -> io::Result<()> {
    // What reads the personality, and what it is with the flag. (A sandbox may refuse to set it:
    // then programs whose output depends on addresses are found to differ from themselves.)
    const ASK: libc::c_ulong = 0xffff_ffff;
    // SAFETY: no pointers are involved.
    let now = unsafe { libc::personality(ASK) };
    if now >= 0 {
        let wanted = now.unsigned_abs() | libc::ADDR_NO_RANDOMIZE.unsigned_abs();
        // SAFETY: no pointers are involved.
        unsafe { libc::personality(libc::c_ulong::from(wanted)) };
    }
    let Some(seconds) = seconds else { return Ok(()) };
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the place is a live struct.
    if unsafe { libc::getrlimit(libc::RLIMIT_CPU, &raw mut limit) } != 0 {
        return Ok(());
    }
    limit.rlim_cur = limit.rlim_cur.min(seconds);
    // SAFETY: the pointer is to a live struct. Where it is refused, the other limit is left.
    unsafe { libc::setrlimit(libc::RLIMIT_CPU, &raw const limit) };
    Ok(())
}

/// Removes the records of a run that another replaces.
fn remove_records(folder: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b"record.") {
            let is_folder = entry.file_type()?.is_dir();
            let remove = if is_folder { fs::remove_dir_all } else { fs::remove_file };
            remove(entry.path())?;
        }
    }
    Ok(())
}
