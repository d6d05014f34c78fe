//! `heapwright check -- CMD`: a program in debug mode, and what was found.
//!
//! ```text
//! a folder <- record.PID of each process, from its start on
//!   |          (the environment is inherited: children are checked, too)
//!   +-- the program is a child; this process stands in for it, as `run --stats` does
//!   +-- what outlives it: a daemon is waited for (--follow), signals go to it
//!   +-- all records, one report, one exit code
//! ```
//!
//! The program's streams stay its own: the library prints nothing while it runs, and
//! the report goes to stderr behind all of it, or to a file.
//!
//! An unchecked run must not look clean: a program that cannot be checked is refused (but for
//! --anyway), and a run of which something was not seen to its end (a process that left no record, was killed, or
//! still runs) gives 125, and its report begins with that.

use super::ProgramArgs;
use super::report::{FailOn, OutputArgs};
use super::run::{command, not_started, why_none};
use crate::inspect::{self, Verdict};
use crate::output::Look;
use crate::preload::{self, Options};
use crate::process::orphans::Running;
use crate::process::{self, End, Exit, Orphans, Outcome};
use crate::report::model::{Fate, Report, Wanted};
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
const STEM: &str = "record";

/// As many frames as valgrind keeps: those beyond cost time and are seldom looked at.
const FRAMES: &str = "traces=12";

/// Of a Rust program with an allocator of its own: a debug build has a dozen frames between a `Vec` and `malloc`, and what
/// cargo starts may be one.
const MORE_FRAMES: &str = "traces=32";

/// How long processes that outlive the program, and are not followed, are waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often they are looked at.
const STEP: Duration = Duration::from_millis(20);
const LONG_STEP: Duration = Duration::from_millis(200);

/// What Python allocates with.
const PYTHON_MALLOC: &str = "PYTHONMALLOC";

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

    /// Have Python allocate all objects with malloc (PYTHONMALLOC=malloc), where they are checked: small
    /// ones are else in an allocator of its own
    #[arg(long)]
    python: bool,

    /// Which processes that outlive the program to wait for, however long it takes: daemon (the program
    /// itself, gone to the background), all, or none; others are waited for for a second
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Follow::Daemon)]
    follow: Follow,

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

/// Which processes that outlive the program are waited for until they end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Follow {
    /// Those that run a file which the program ran
    Daemon,
    /// All
    All,
    /// None
    None,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let inspected = inspect::inspect(&args.program.command[0], preload::machine());
    if !args.anyway
        && let Some(reason) = cannot_be_checked(&inspected)
    {
        let name = args.program.command[0].display();
        bail!("{name} cannot be checked: {reason} (--anyway runs it to check its child processes)");
    }
    let library = preload::library(args.program.library.given().as_deref())?;
    // Before the program runs, so that a bad FILE does not cost a run.
    let file = args.output_args.file()?;
    let how = how(args, &inspected);
    report::check(&how).map_err(|error| is_wrong(&error))?;
    let folder = Folder::new()?;
    let kept = args.keep.as_deref().map(kept).transpose().map_err(|error| is_wrong(&error))?;
    let records = kept.as_deref().unwrap_or(folder.path());
    let options = options(args, records, frames(args, &inspected))?;
    preload::refuse_bad(&library, &options, &args.program.options)?;
    let mut orphans = Orphans::adopt();
    let mut program = command(&args.program.command, &library, &options)?;
    if args.python {
        program.env(PYTHON_MALLOC, "malloc");
    }
    let outcome = match process::watch_all(program, &mut orphans) {
        Ok(outcome) => outcome,
        Err(error) => return Ok(not_started(&args.program.command[0], &error)),
    };
    let Outlived { running, followed } = outlive(args, records, &outcome, &mut orphans);
    let mut made = if report::any_in(records) {
        report::make(&[records.to_owned()], &how)?
    } else {
        let report = Report { wanted: how.wanted.clone(), ..Report::default() };
        Made { report, damaged: 0 }
    };
    report::set_fates(&mut made.report, |pid| match orphans.end(pid) {
        _ if pid == outcome.pid => Fate::Ended(outcome.end),
        Some(end) => Fate::Ended(end),
        None if running.iter().any(|running| running.pid == pid) => Fate::Running,
        None => Fate::Unknown,
    });
    notes(&mut made.report, args, &outcome, &running, &followed, &orphans);
    let is_checked = made.report.unseen.is_empty();
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
fn cannot_be_checked(report: &inspect::Report) -> Option<String> {
    let cannot_run = ["not-found", "not-executable", "noexec", "not-a-program", "not-elf", "loop"];
    let reason = report.reason().filter(|finding| !cannot_run.contains(&finding.code))?;
    (report.verdict() == Verdict::No).then(|| reason.text.clone())
}

/// Who runs a shim.
const SHELLS: [&str; 4] = ["bash", "sh", "dash", "env"];

/// Whether the program is a script that a version manager (pyenv, rbenv, asdf) leads commands through: its shell is not the
/// program that was meant.
fn is_shim(inspected: &inspect::Report) -> bool {
    let folder = inspected.steps.first().and_then(|step| step.path.parent());
    folder.is_some_and(|folder| folder.ends_with("shims")) && inspected.steps.len() > 1
}

fn how(args: &Args, inspected: &inspect::Report) -> report::Options {
    let mut how = args.output_args.options();
    if is_shim(inspected) {
        how.skip.extend(SHELLS.map(str::to_owned));
    }
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

/// How many frames are kept where nothing is said.
fn frames(args: &Args, inspected: &inspect::Report) -> &'static str {
    let has_own = inspected.findings.iter().any(|finding| finding.code == "global-allocator");
    let name = Path::new(&args.program.command[0]).file_name();
    let is_cargo = name.is_some_and(|name| name.as_encoded_bytes().starts_with(b"cargo"));
    if has_own || is_cargo { MORE_FRAMES } else { FRAMES }
}

/// The options for the library.
fn options(args: &Args, records: &Path, frames: &str) -> anyhow::Result<Options> {
    if args.program.options.iter().any(|option| option.contains("record=")) {
        return Err(wrong("check sets option record itself; use --keep".to_owned()));
    }
    let inherited = std::env::var_os("HEAPWRIGHT");
    let mut options = Options::inherited_over(frames, inherited.as_deref());
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

/// What outlived the program.
struct Outlived {
    /// What runs still.
    running: Vec<Running>,
    /// Processes that were waited for until they ended.
    followed: Vec<u32>,
}

/// Waits for processes that outlive the program, shortly, or (--follow) until they end, or somebody asks twice that
/// this ends.
fn outlive(args: &Args, records: &Path, outcome: &Outcome, orphans: &mut Orphans) -> Outlived {
    let began = Instant::now();
    let record = records.join(format!("{STEM}.{}", outcome.pid));
    let programs = report::programs(&record);
    let is_followed = |running: &Running| match args.follow {
        Follow::Daemon => programs.contains(&running.exe),
        Follow::All => true,
        Follow::None => false,
    };
    let (mut followed, mut is_said) = (Vec::new(), false);
    loop {
        orphans.reap();
        let running = process::orphans::running();
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
        let waits = !waited.is_empty() && process::orphans::asked_to_end() < 2;
        let is_patient = began.elapsed() < PATIENCE;
        if running.is_empty() || !waits && !is_patient {
            return Outlived { running, followed };
        }
        if !is_patient && !is_said {
            is_said = true;
            let name = args.program.command[0].display();
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

/// Says what was not seen.
fn notes(
    report: &mut Report,
    args: &Args,
    outcome: &Outcome,
    running: &[Running],
    followed: &[u32],
    orphans: &Orphans,
) {
    let has_record =
        |report: &Report, pid: u32| report.processes.iter().any(|process| process.pid == pid);
    if !has_record(report, outcome.pid) {
        let name = args.program.command[0].display();
        let reason = why_none(&args.program.command[0], outcome);
        let text = format!("{name} itself was not checked: {reason}");
        // It may have been run for what it starts.
        if args.anyway && !report.processes.is_empty() {
            report.notes.push(text);
        } else {
            report.unseen.push(text);
        }
    }
    if !args.python && std::env::var_os(PYTHON_MALLOC).is_none() && has_python(report) {
        let text =
            "Python's small objects are in an allocator of its own, where nothing is checked";
        report.notes.push(format!("{text} (--python has them in malloc)"));
    }
    for Running { pid, exe } in running {
        if !has_record(report, *pid) {
            let (exe, text) = (exe.display(), "is still running, and has written nothing yet");
            report.unseen.push(format!("process {pid} ({exe}) {text}"));
        }
    }
    if !running.is_empty() {
        report.unseen.push(match &args.keep {
            Some(folder) => {
                let records = folder.join(format!("{STEM}.PID"));
                format!("what runs still goes on writing to {}: see heapwright report", records.display())
            }
            None => String::from(
                "what runs still writes nothing from now on (--follow all waits for it; --keep FOLDER keeps what it writes)",
            ),
        });
    }
    for pid in followed {
        if let Some(End::Signal { number, .. }) = orphans.end(*pid)
            && !has_record(report, *pid)
        {
            let signal = process::signal_name(number);
            report
                .unseen
                .push(format!("process {pid} was killed by {signal} before it wrote anything"));
        }
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
