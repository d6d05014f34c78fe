//! `heapwright check -- CMD` runs a program in debug mode and reports the findings.
//!
//! ```text
//! a folder <- record.PID of each process, from its start on
//!   |          (children inherit the environment, so they are checked, too)
//!   +-- the program is a child; this process stands in for it, as `run --stats` does
//!   +-- this process waits for daemons (--follow) and passes signals to them
//!   +-- all records, one report, one exit code
//! ```
//!
//! The library prints nothing while the program runs. The report goes to stderr after the program's
//! output, or to a file.
//!
//! `check` preloads a library of its own, which also checks the reads and writes of the C library's
//! functions (docs/hardened-bounds.md).
//!
//! An unchecked run must not look clean. Without --anyway, the command refuses a program that
//! cannot be checked. If a process left no record, was killed, or still runs, the report says so
//! first. The exit code is then 125, unless there are findings or a signal ended the program.

use super::checked::{self, FRAMES, Follow, How, STEM, cannot_be_checked};
use super::report::{FailOn, OutputArgs};
use super::run::not_started;
use super::twice::{self, Asked};
use super::{ProgramArgs, after_writing};
use crate::inspect;
use crate::output::{self, Look};
use crate::preload::{self, Elsewhere, Options, Shared};
use crate::process::Exit;
use crate::report::model::{Report, Wanted};
use crate::report::sites::Sites;
use crate::report::{self, Made};
use crate::statistics::{Folder, fits_option, for_records};
use crate::wrong::{is_wrong, wrong};
use anyhow::{Context, bail};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The stack depth for Rust programs with an allocator of their own, and for cargo, which may start
/// one: a debug build has a dozen frames between a `Vec` and `malloc`.
const MORE_FRAMES: &str = "traces=32";

/// Run a program and all that it starts in debug mode, and report errors and leaks.
///
/// Finds errors while the program runs, and leaks when a process ends. Exits with 99 (see
/// --exit-code) if there is a finding that --fail-on names, else as the program did. Exits with 2
/// for a wrong command line, 125 if the program could not be checked, 126 or 127 if it could not be
/// run.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "heapwright check [OPTIONS] [--] CMD [ARGS]...")]
#[command(after_help = "\
Examples:
  heapwright check -- ./program --its-option
  heapwright check --fail-on errors --suppress known.supp -- make test
  heapwright check --guard all --frames 32 -- ./program
  heapwright check --sites found.sites -- ./program
  heapwright check --format json -o found.json -- cargo test
  heapwright check --twice -- ./program < input
  heapwright check --keep records -- ./server; heapwright report --show all records")]
pub(crate) struct Args {
    #[command(flatten)]
    output_args: OutputArgs,

    /// The findings that give the exit code of --exit-code: errors, leaks (definitely lost),
    /// possible (leaks), growth, or none; several are joined by commas
    #[arg(long, value_name = "WHAT", default_value = "errors,leaks")]
    fail_on: FailOn,

    /// The exit code if there is a finding that --fail-on names
    #[arg(long, value_name = "CODE", default_value_t = 99)]
    exit_code: u8,

    /// Whether to look for leaks when a process ends, and how to report them
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Leaks::Full)]
    leaks: Leaks,

    /// Count live blocks while the program runs, to find memory that keeps growing
    #[arg(long)]
    growth: bool,

    /// Keep N frames of each stack, at most 64 [default: 12; 32 for cargo, and for Rust programs
    /// with an allocator of their own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=64))]
    frames: Option<u8>,

    /// Which blocks to put beside guard pages
    #[arg(long, value_name = "WHICH", value_parser = ["never", "sample", "all"])]
    guard: Option<String>,

    /// If a function's size limit (of fgets, read, ...) exceeds the block, report that only if the
    /// function wrote behind the block
    #[arg(long)]
    exact: bool,

    /// Guard all blocks of the places in FILE from the start, so that an error there is seen as it
    /// happens. Add the places where this run finds something. FILE need not exist
    #[arg(long, value_name = "FILE")]
    sites: Option<PathBuf>,

    /// The processes to wait for without a limit after the program has ended: daemon (the program
    /// itself, gone to the background), all, or none. Other processes get one second
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Follow::Daemon)]
    follow: Follow,

    /// Look for uninitialised values, too. The program runs again with other bytes in memory that
    /// it has not written. Its end, its output and the findings are compared. If these differ,
    /// further runs find the bytes. Each run repeats the program's changes to files (see --setup)
    #[arg(long)]
    twice: bool,

    /// A shell command to run before each run
    #[arg(long, value_name = "COMMAND", requires = "twice")]
    setup: Option<String>,

    /// Compare the contents of FILE after each run, too; may be repeated
    #[arg(long, value_name = "FILE", requires = "twice")]
    compare: Vec<PathBuf>,

    /// After N runs, begin no search for a further byte
    #[arg(long, value_name = "N", default_value_t = 100, requires = "twice")]
    runs: u32,

    /// Keep the records in FOLDER, for heapwright report and diff
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,

    /// Run a program that cannot be checked itself, to check its child processes
    #[arg(long)]
    anyway: bool,

    #[command(flatten)]
    program: ProgramArgs,
}

/// The detail in which leaks are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Leaks {
    /// Do not look for leaks
    No,
    /// Report only the sums of leaks
    Summary,
    /// Report leaks one by one, too (see --show)
    Full,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let inspected = inspect::inspect(
        &args.program.command[0],
        preload::target(args.program.library.given().as_deref()),
    );
    if !args.anyway
        && let Some(reason) = cannot_be_checked(&inspected)
    {
        let name = args.program.command[0].display();
        bail!("{name} cannot be checked: {reason} (--anyway runs it to check its child processes)");
    }
    let library = preload::for_check(args.program.library.given().as_deref())?;
    let file = args.output_args.file()?;
    let how = how(args, &inspected);
    report::check(&how).map_err(|error| is_wrong(&error))?;
    let folder = Folder::for_records()?;
    let kept = args.keep.as_deref().map(kept).transpose().map_err(|error| is_wrong(&error))?;
    let records = kept.as_deref().unwrap_or(folder.path());
    let mut sites =
        args.sites.as_deref().map(sites).transpose().map_err(|error| is_wrong(&error))?;
    let mut options = options(args, records, frames(args, &inspected))?;
    if let Some(file) = sites.as_ref().and_then(Sites::file) {
        options.sites(file);
    }
    // A library that the user names may be too old for option `rules`.
    let is_named = args.program.library.given().is_some();
    let is_set = preload::sets(&args.program.options, "rules") || is_named;
    let shared = if is_set { None } else { Shared::new() };
    if let Some(shared) = &shared {
        options.add(&shared.option())?;
    }
    preload::refuse_bad(&library, &options, &args.program.options, "--option ")?;
    let words = &args.program.command;
    let how_checked = How {
        follow: args.follow,
        may_be_unchecked: args.anyway,
        kept: args.keep.as_deref(),
        has_python_malloc: args.program.python,
        limit: None,
        shared: shared.as_ref(),
    };
    let program = |options: &Options| args.program.program(&library, options);
    let (end, compared) = if args.twice {
        let asked = Asked {
            name: &words[0],
            command: &program,
            options: &|records| {
                let mut options = self::options(args, records, frames(args, &inspected))?;
                if let Some(shared) = &shared {
                    options.add(&shared.option())?;
                }
                Ok(options)
            },
            records,
            how: &how_checked,
            report: &how,
            setup: args.setup.as_deref(),
            files: &args.compare,
            most_runs: args.runs,
        };
        match twice::run(&asked)? {
            Ok((end, compared)) => (end, Some(compared)),
            Err(error) => return Ok(not_started(&words[0], &error)),
        }
    } else {
        match checked::to_end(program(&options)?, &words[0], records, &how_checked) {
            Ok(end) => (end, None),
            Err(error) => return Ok(not_started(&words[0], &error)),
        }
    };
    let _ = fs::metadata(records).map(|about| output::stays(&about));
    let mut made = if report::any_in(records) {
        report::make(&[records.to_owned()], &how)?
    } else {
        let report = Report { wanted: how.wanted.clone(), ..Report::default() };
        Made { report, damaged: 0 }
    };
    end.note_in(&mut made.report, &how_checked);
    if let Some(compared) = compared {
        compared.note_in(&mut made.report);
    }
    let learned = sites.as_mut().map_or(Ok(()), |sites| sites.learn(records));
    let (is_file, written) = (file.is_some(), write(args, &made.report, file));
    let fail_on = if args.leaks == Leaks::No { args.fail_on.but_leaks() } else { args.fail_on };
    let exit = if fail_on.is_in(&made.report) {
        Exit::Code(args.exit_code)
    } else {
        end.exit(&made.report)
    };
    let exit = after_writing(exit, "the list of sites", true, learned);
    let elsewhere = end.elsewhere.as_ref().filter(|_| args.keep.is_some());
    let brought = elsewhere.map_or(Ok(()), Elsewhere::bring_back);
    let exit = after_writing(exit, "all records of --keep", true, brought);
    Ok(after_writing(exit, "the report", is_file, written))
}

const SHELLS: [&str; 4] = ["bash", "sh", "dash", "env"];

/// Returns whether the program is a shim: a version manager's script (pyenv, rbenv, asdf), whose
/// shell the user does not mean.
fn is_shim(inspected: &inspect::Report) -> bool {
    let folder = inspected.steps.first().and_then(|step| step.path.parent());
    folder.is_some_and(|folder| folder.ends_with("shims")) && inspected.steps.len() > 1
}

fn how(args: &Args, inspected: &inspect::Report) -> report::Options {
    let mut how = args.output_args.options();
    how.is_of_run = true;
    if is_shim(inspected) {
        how.skip.extend(SHELLS.map(str::to_owned));
    }
    if args.leaks != Leaks::Full {
        how.wanted = Wanted { details: Vec::new(), ..how.wanted };
    }
    how
}

/// Prepares the folder for kept records. Refuses old records, which would count as this run's.
fn kept(path: &Path) -> anyhow::Result<PathBuf> {
    output::make_folder(path)
        .and_then(|is_new| if is_new { for_records(path) } else { Ok(()) })
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

/// Reads the file of `--sites`, if it exists. Refuses a path that the options cannot hold.
fn sites(file: &Path) -> anyhow::Result<Sites> {
    let name = file.file_name().with_context(|| format!("{} is no file", file.display()))?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = fs::canonicalize(folder.unwrap_or(Path::new(".")))
        .with_context(|| format!("cannot keep sites in {}", file.display()))?;
    let path = folder.join(name);
    if !fits_option(&path) {
        let path = path.display();
        bail!("sites cannot be kept in {path}: its name is too long, or has , or ; in it");
    }
    Sites::of(&path)
}

fn frames(args: &Args, inspected: &inspect::Report) -> &'static str {
    let has_own = inspected.findings.iter().any(|finding| finding.code == "global-allocator");
    let name = Path::new(&args.program.command[0]).file_name();
    let is_cargo = name.is_some_and(|name| name.as_encoded_bytes().starts_with(b"cargo"));
    if has_own || is_cargo { MORE_FRAMES } else { FRAMES }
}

fn options(args: &Args, records: &Path, frames: &str) -> anyhow::Result<Options> {
    if args.program.options.iter().any(|option| option.contains("record=")) {
        return Err(wrong("check sets option record itself; use --keep".to_owned()));
    }
    if args.twice && preload::sets(&args.program.options, "fill") {
        return Err(wrong("--twice sets option fill itself; leave one of them out".to_owned()));
    }
    let inherited = std::env::var_os("HEAPWRIGHT");
    // Text that does not list reachable blocks needs only their sum, unless the records are kept
    // for later.
    let is_brief = args.output_args.sums_reachable() && args.keep.is_none();
    let default = if is_brief { format!("{frames},reachable=none") } else { frames.to_owned() };
    let mut options = Options::inherited_over(&default, inherited.as_deref());
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
    if args.exact {
        options.add("detect=-limit")?;
    }
    for option in &args.program.options {
        options.add(option)?;
    }
    options.record(&records.join(STEM));
    Ok(options)
}

fn write(args: &Args, report: &Report, file: Option<fs::File>) -> io::Result<()> {
    let output_args = &args.output_args;
    // In a report on standard error, only the reasons for exit code 125 may stand before it.
    let is_said = |line: &&String| file.is_some() || report.unseen.contains(line);
    for line in output_args.format.left_out(report).filter(is_said) {
        eprintln!("heapwright: {line}");
    }
    if let Some(file) = file {
        return output_args.write_to(report, file);
    }
    let mut stderr = io::stderr().lock();
    let look = Look::of(&stderr);
    if output_args.is_text() {
        stderr.write_all(b"\n")?;
    }
    output_args.write(report, &mut stderr, look)
}
