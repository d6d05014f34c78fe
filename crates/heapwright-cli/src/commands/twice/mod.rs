//! `check --twice` tests whether a program's result depends on uninitialised bytes.
//!
//! ```text
//! run     contents of uninitialised bytes in fresh blocks
//!  1      zeros                     the user sees this output
//!  2      zeros                     a difference: the program cannot be compared with itself
//!  3, 4   a pattern, its inverse    no difference: done
//!  5 ...  the pattern up to a point, zeros behind it: a binary search (`search`) finds a byte that
//!         makes a difference; the two runs beside that byte are repeated.
//!         Then the search for the next byte begins, with zeros in all blocks of that byte's site.
//!  last   zeros: the record lists the blocks that were found; this run is reported
//! ```
//!
//! Two runs that differ in a single byte prove a finding. `compare` compares the program's end, its
//! output (`streams`), the named files, and the findings.
//!
//! All runs have the same input and the same addresses: address space randomisation is off, and the
//! environment, whose length moves the stack, is the same. String hashes in Python and Perl get a
//! fixed seed.
//!
//! A run that takes far longer than the first is killed: uninitialised bytes may be lengths or loop
//! conditions.

mod compare;
mod search;
mod streams;

use super::checked::{End, How, to_end};
use crate::preload::Options;
use crate::process::{self, Outcome, orphans};
use crate::report;
use crate::report::model::{Report, Wanted};
use crate::statistics::Folder;
use crate::wrong::wrong;
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

/// The most sites that are searched for: as many as option `fill` can name.
const MOST_FOUND: usize = 8;

/// The seeds of the patterns. The second pattern is the inverse of the first.
const SEEDS: [u32; 2] = [1, 2];

/// The limits of a run: `TIMES` the time of the first run, and `MORE_WALL` or `MORE_CPU` on top.
const TIMES: u32 = 10;
const MORE_WALL: Duration = Duration::from_secs(20);
const MORE_CPU: Duration = Duration::from_secs(1);

/// Variables that fix the random string hashes of languages, if the user has not set them.
const HASH_SEEDS: [(&str, &str); 2] = [("PYTHONHASHSEED", "0"), ("PERL_HASH_SEED", "0")];

/// The reason given if a byte makes a difference once, but not again.
const VARIES: &str = "it does not do the same each time (it may depend on time, chance or threads)";

pub(super) struct Asked<'a> {
    pub(super) name: &'a std::ffi::OsStr,
    /// Builds the program's command from options for the library.
    pub(super) command: &'a dyn Fn(&Options) -> anyhow::Result<Command>,
    /// Returns the library's options for a run with its records in this folder.
    pub(super) options: &'a dyn Fn(&Path) -> anyhow::Result<Options>,
    pub(super) records: &'a Path,
    pub(super) how: &'a How<'a>,
    pub(super) report: &'a report::Options,
    /// A shell command to run before each run.
    pub(super) setup: Option<&'a str>,
    pub(super) files: &'a [PathBuf],
    /// The number of runs after which no search for a further byte begins.
    pub(super) most_runs: u32,
}

/// The result of comparing runs, which the report shows beside the records.
#[derive(Default)]
pub(super) struct Compared {
    /// The effect of each byte that was found, in the order of their numbers in the record.
    effects: Vec<String>,
    notes: Vec<String>,
    /// The reason why the program could not be compared with itself.
    unseen: Option<String>,
}

impl Compared {
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

/// Runs the program as often as necessary. The inner error says why the program cannot be run.
pub(super) fn run(asked: &Asked<'_>) -> anyhow::Result<io::Result<(End, Compared)>> {
    // A file that does not exist yet may be the program's.
    let is_other = |file: &&PathBuf| fs::metadata(file).is_ok_and(|about| !about.is_file());
    if let Some(file) = asked.files.iter().find(is_other) {
        return Err(wrong(format!("--compare {}: this is not a regular file", file.display())));
    }
    // Only this user may read the program's output. Processes of other users may write records.
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

/// Returns the reason not to run a program again.
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

/// The error of runs that differ for other reasons than the contents of uninitialised bytes.
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Reported,
    /// The run is only compared.
    Compared,
}

struct Twice<'a> {
    asked: &'a Asked<'a>,
    input: Input,
    folder: &'a Path,
    compared: &'a Path,
    /// The first run, with which the others are compared, and its times.
    first: Option<(Run, Outcome)>,
    runs: u32,
    without: Vec<u64>,
}

impl Twice<'_> {
    /// Finds the bytes that make a difference, and the effect of each.
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

    /// Makes the run that is reported, with the blocks of these bytes as findings. Returns its end,
    /// and whether it differs from the first.
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

    /// Returns the seed of a pattern that makes a run differ, and the differences.
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

    /// Returns option `fill` for a run with the pattern only in bytes before a point.
    fn fill(&self, seed: u32, point: Point) -> String {
        let without: String =
            self.without.iter().map(|site| format!(":without-{site:x}")).collect();
        format!("{seed}:before-{point}{without}")
    }

    /// Runs the program with option `fill`. Returns the differences from the first run.
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

    fn records(&self, kept: Kept) -> PathBuf {
        match kept {
            Kept::Reported => self.asked.records.to_owned(),
            Kept::Compared => self.compared.to_owned(),
        }
    }

    /// Returns the program's end, its results, and whether the user's own output was closed
    /// meanwhile. The inner error says why the program cannot be run.
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
                // A file that only one run leaves counts as empty in the other run.
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

fn runs_needed(sites: usize) -> u32 {
    sites.max(1).ilog2() + 12
}

/// Returns the limits of other runs: their wall time, and their processor time in seconds.
fn limits(first: &Outcome) -> (Option<Duration>, Option<u64>) {
    let cpu = first.usage.user + first.usage.system;
    let seconds = (MORE_CPU + TIMES * cpu).as_secs() + 1;
    (Some(MORE_WALL + TIMES * first.wall), Some(seconds))
}

/// Fixes addresses and limits processor time. The child calls it between fork and exec.
fn make_comparable(seconds: Option<u64>) -> io::Result<()> {
    // This argument only reads the personality. If a sandbox refuses to set it, programs whose
    // output depends on addresses differ from themselves.
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
    // SAFETY: the pointer is to a live struct.
    if unsafe { libc::getrlimit(libc::RLIMIT_CPU, &raw mut limit) } != 0 {
        return Ok(());
    }
    limit.rlim_cur = limit.rlim_cur.min(seconds);
    // SAFETY: the pointer is to a live struct. If the call fails, the limit of wall time remains.
    unsafe { libc::setrlimit(libc::RLIMIT_CPU, &raw const limit) };
    Ok(())
}

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
