//! `heapwright check -- CMD`: a program in debug mode, and what was found.
//!
//! ```text
//! a folder <- record.PID of each process, from its start on
//!   |          (the environment is inherited: children are checked, too)
//!   +-- the program is a child; this process stands in for it, as `run --stats` does
//!   +-- all records, one report, one exit code
//! ```
//!
//! The program's streams stay its own: the library prints nothing while it runs, and
//! the report goes to stderr behind all of it, or to a file.
//!
//! An unchecked run must not look clean: a program that cannot be checked is refused (but for
//! --anyway), and one that left no record gives 125.

use super::ProgramArgs;
use super::report::{FailOn, OutputArgs};
use super::run::{command, not_started, why_none};
use crate::inspect::{self, Verdict};
use crate::output::Look;
use crate::preload::{self, Options};
use crate::process::{self, End, Exit, Outcome};
use crate::report::model::{Report, Wanted};
use crate::report::{self, Made};
use crate::statistics::{Folder, fits_option};
use crate::wrong::{is_wrong, wrong};
use anyhow::{Context, bail};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The records' name before the pid.
pub(super) const STEM: &str = "record";

/// As many frames as valgrind keeps: those beyond cost time and are seldom looked at.
pub(super) const FRAMES: &str = "traces=12";

/// How long processes that outlive the program are waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// The exit code where nothing was checked.
pub(crate) const COULD_NOT: u8 = 125;

/// Run a program in debug mode, with all that it starts, and report what was found.
///
/// Mistakes with memory are found as they happen, and leaks when a process ends.
/// Exits with 99 (see --exit-code) if something was found that --fail-on names,
/// else as the program did; 2 for a wrong command line, 125 if it could not be
/// checked, 126 or 127 if it could not be run.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "heapwright check [OPTIONS] [--] CMD [ARGS]...")]
#[command(after_help = "\
Examples:
  heapwright check -- ./program --its-option
  heapwright check --fail-on errors --suppress known.supp -- make test
  heapwright check --guard all --frames 32 -- ./program
  heapwright check --format json -o found.json -- cargo test
  heapwright check --keep records -- ./server; heapwright report --show all records")]
pub(crate) struct Args {
    #[command(flatten)]
    output_args: OutputArgs,

    /// Which findings give the exit code of --exit-code: errors, leaks (definitely lost),
    /// possible (leaks), growth, or none; several are joined by commas
    #[arg(long, value_name = "WHAT", default_value = "errors,leaks")]
    fail_on: FailOn,

    /// The exit code where something was found that --fail-on names
    #[arg(long, value_name = "CODE", default_value_t = 99)]
    exit_code: u8,

    /// Whether to look for leaks when a process ends, and how to report them
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Leaks::Full)]
    leaks: Leaks,

    /// Count live blocks while the program runs, to find what keeps growing
    #[arg(long)]
    growth: bool,

    /// Keep N frames of each stack, at most 64 [default: 12]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=64))]
    frames: Option<u8>,

    /// Which blocks to put beside guard pages
    #[arg(long, value_name = "WHICH", value_parser = ["never", "sample", "all"])]
    guard: Option<String>,

    /// Keep the records in FOLDER, for heapwright report and diff
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,

    /// Run a program that cannot be checked itself, to check its child processes
    #[arg(long)]
    anyway: bool,

    #[command(flatten)]
    program: ProgramArgs,
}

/// What to do about leaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Leaks {
    /// Do not look for them
    No,
    /// Report their sums
    Summary,
    /// Report them one by one, too (see --show)
    Full,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    if !args.anyway
        && let Some(reason) = cannot_be_checked(&args.program.command[0])
    {
        let name = args.program.command[0].display();
        bail!("{name} cannot be checked: {reason} (--anyway runs it to check its child processes)");
    }
    let library = preload::library(args.program.library.given().as_deref())?;
    // Before the program runs, so that a bad FILE does not cost a run.
    let file = args.output_args.file()?;
    let how = how(args);
    report::check(&how).map_err(|error| is_wrong(&error))?;
    let folder = Folder::new()?;
    let kept = args.keep.as_deref().map(kept).transpose().map_err(|error| is_wrong(&error))?;
    let records = kept.as_deref().unwrap_or(folder.path());
    let options = options(args, records)?;
    preload::refuse_bad(&library, &options, &args.program.options)?;
    let outcome = match process::watch(command(&args.program.command, &library, &options)?) {
        Ok(outcome) => outcome,
        Err(error) => return Ok(not_started(&args.program.command[0], &error)),
    };
    let running = stragglers(records);
    let mut made = if report::any_in(records) {
        report::make(&[records.to_owned()], &how)?
    } else {
        let report = Report { wanted: how.wanted.clone(), ..Report::default() };
        Made { report, damaged: 0 }
    };
    let is_checked = notes(&mut made.report, &args.program.command[0], &outcome, &running);
    // Whatever becomes of the report, the program's end is handed on.
    if let Err(error) = write(args, &made.report, file) {
        eprintln!("heapwright: the report could not be written: {error:#}");
    }
    let fail_on = if args.leaks == Leaks::No { args.fail_on.but_leaks() } else { args.fail_on };
    Ok(if fail_on.is_in(&made.report) {
        Exit::Code(args.exit_code)
    } else if !is_checked && matches!(outcome.end, End::Code(_)) {
        Exit::Code(COULD_NOT)
    } else {
        Exit::from(outcome.end)
    })
}

/// Why the library would not get into a program. That it cannot be run at all is reported
/// when that is tried.
pub(super) fn cannot_be_checked(name: &std::ffi::OsStr) -> Option<String> {
    let report = inspect::inspect(name, preload::machine());
    let cannot_run = ["not-found", "not-executable", "noexec", "not-a-program", "not-elf", "loop"];
    let reason = report.reason().filter(|finding| !cannot_run.contains(&finding.code))?;
    (report.verdict() == Verdict::No).then(|| reason.text.clone())
}

fn how(args: &Args) -> report::Options {
    let mut how = args.output_args.options();
    if args.leaks != Leaks::Full {
        how.wanted = Wanted { details: Vec::new(), ..how.wanted };
    }
    how
}

/// The folder to keep records in: a new one, or one without records, which would be
/// reported as this run's.
fn kept(path: &Path) -> anyhow::Result<PathBuf> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .and_then(|()| fs::canonicalize(path))
        .with_context(|| format!("cannot keep records in {}", path.display()))
        .and_then(|path| {
            if !fits_option(&path) {
                let path = path.display();
                bail!(
                    "records cannot be kept in {path}: its name is too long, or has , or ; in it"
                );
            }
            if report::any_in(&path) {
                bail!("there are records in {} already; keep these elsewhere", path.display());
            }
            Ok(path)
        })
}

/// The options for the library.
fn options(args: &Args, records: &Path) -> anyhow::Result<Options> {
    if args.program.options.iter().any(|option| option.contains("record=")) {
        return Err(wrong("check sets option record itself; use --keep".to_owned()));
    }
    let inherited = std::env::var_os("HEAPWRIGHT");
    let mut options = Options::inherited_over(FRAMES, inherited.as_deref());
    options.add("mode=debug,quiet=yes")?;
    if args.leaks != Leaks::No {
        options.add("leaks=exit")?;
        if args.output_args.shows_reachable() {
            options.add("reachable=all")?;
        }
    }
    if args.growth || args.fail_on.looks_for_growth() {
        options.add("growth=on")?;
    }
    if let Some(frames) = args.frames {
        options.add(&format!("traces={frames}"))?;
    }
    if let Some(guard) = &args.guard {
        options.add(&format!("guard={guard}"))?;
    }
    for option in &args.program.options {
        options.add(option)?;
    }
    options.record(&records.join(STEM));
    Ok(options)
}

/// Waits shortly for processes that outlive the program, and says which still run.
pub(super) fn stragglers(records: &Path) -> Vec<u32> {
    let began = Instant::now();
    loop {
        let entries = fs::read_dir(records).into_iter().flatten().flatten();
        let running: Vec<u32> = entries
            .filter_map(|entry| entry.path().extension()?.to_str()?.parse().ok())
            .filter(|&pid| is_running(pid))
            .collect();
        if running.is_empty() || began.elapsed() >= PATIENCE {
            return running;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process has not ended; one that nobody has waited for has.
fn is_running(pid: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    let state = state.as_deref().and_then(|line| line.rsplit_once(") ")?.1.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// Says what was not seen; whether the program was checked at all.
pub(super) fn notes(
    report: &mut Report,
    program: &std::ffi::OsStr,
    outcome: &Outcome,
    running: &[u32],
) -> bool {
    for pid in running {
        let text = "is still running: what it has not written yet is not in this report";
        report.notes.push(format!("process {pid} {text}"));
    }
    if report.processes.iter().any(|process| process.pid == outcome.pid) {
        return true;
    }
    let name = program.display();
    let reason = why_none(program, outcome);
    report.notes.push(format!("{name} itself was not checked: {reason}"));
    !report.processes.is_empty()
}

fn write(args: &Args, report: &Report, file: Option<fs::File>) -> io::Result<()> {
    let output_args = &args.output_args;
    if let Some(file) = file {
        return output_args.write_to(report, file);
    }
    let mut stderr = io::stderr().lock();
    let look = Look::of(&stderr);
    if output_args.is_text() {
        // A line between what the program wrote and the report.
        stderr.write_all(b"\n")?;
    }
    output_args.write(report, &mut stderr, look)
}
