//! `heapwright bench [-- CMD]` compares allocators' speed and memory on the user's own program.
//!
//! The command plans a race (allocators, programs, rounds) and runs it. It opens files before the
//! race, so a typing error does not waste an hour.

use super::{LibraryArg, OutputsArgs};
use crate::bench::results::{self, Head, Kind, Results, SCHEMA, Summary};
use crate::bench::{
    Comparing, Launcher, Program, Progress, Showing, allocators, comparison, machine, probe_all,
    race, refusal, suite, workloads,
};
use crate::inspect;
use crate::output::{self, WithPage};
use crate::preload;
use crate::process::{self, Exit, interrupt};
use crate::wrong::wrong;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

const PROGRAM_FAILS: u8 = 1;

/// The exit code if the command itself failed.
pub(crate) const OWN_FAILURE: u8 = 125;

/// Race allocators on a program, or on built-in workloads.
///
/// Runs CMD (or the workloads) in turns under glibc's malloc, heapwright, every other allocator
/// found on this machine, and the allocators named. Prints medians, ratios with their 95 %
/// intervals, peak memory and page faults. If an interval contains 1, the result is a tie. If an
/// allocator crashes or hangs the program, a row says so.
///
/// CMD's stdin is empty. CMD's output is compared, and not shown.
///
/// Exits with 0 if the race was run, 1 if a program fails by itself (under the baseline), 2 for a
/// wrong command line. Exits with 127 or 126 if CMD cannot be run, 125 if something else went
/// wrong. Ctrl-C prints what was measured so far.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "heapwright bench [OPTIONS] [-- CMD [ARGS]...]")]
// A script may pass its own defaults before its user's options.
#[command(args_override_self = true)]
#[command(after_help = "\
Examples:
  heapwright bench -- python3 script.py
  heapwright bench --rounds 5 --format html -o race.html -- ./program --option
  heapwright bench --with mine=/opt/lib/libmine.so -- ./program
  heapwright bench --with heapwright:purge=0 --with heapwright:purge=never --workloads cfrac
  heapwright bench --suite programs.toml --format json -o race.json --format html -o race.html")]
pub(crate) struct Args {
    /// Race this allocator, too. Give a name from --list, NAME=PATH of a library, 'NAME=VAR=VALUE
    /// PATH' to set the program's environment, or heapwright:OPTIONS. An allocator found under the
    /// same NAME is replaced. May be repeated
    #[arg(long, value_name = "NAME,...")]
    with: Vec<OsString>,

    /// Race only these allocators, and the baseline
    #[arg(long, value_name = "NAME,...")]
    only: Vec<String>,

    /// Run only these built-in workloads; 'none' for none of them
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    workloads: Vec<String>,

    /// Run the programs of this TOML file as well
    #[arg(long, value_name = "FILE")]
    suite: Option<PathBuf>,

    /// Run only these programs of the suite
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', requires = "suite")]
    programs: Vec<String>,

    /// Number of measured rounds
    #[arg(long, value_name = "N", default_value = "15", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Rounds of the suite's programs marked as long
    #[arg(long, value_name = "N", default_value = "7", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds_long: u32,

    /// Kill a run after this time [default: ten times the baseline's first run, at least 60]
    #[arg(long, value_name = "SECONDS", value_parser = time_limit)]
    timeout: Option<Duration>,

    /// The allocator to compare with
    #[arg(long, value_name = "NAME", default_value = allocators::GLIBC)]
    baseline: String,

    #[command(flatten)]
    output_args: OutputsArgs<WithPage>,

    /// Print a line of progress for each round, even if stderr is not a terminal
    #[arg(long, conflicts_with = "quiet")]
    progress: bool,

    /// List the allocators and the workloads, and run nothing
    #[arg(long)]
    list: bool,

    /// For tests: multiply the work of each workload by this number; 0 does a miniature
    #[cfg_attr(debug_assertions, arg(long, hide = true, default_value_t = 1))]
    #[cfg_attr(not(debug_assertions), arg(skip = 1_u32))]
    scale: u32,

    #[command(flatten)]
    library: LibraryArg,

    /// The program to race on, and its arguments
    #[arg(trailing_var_arg = true, value_name = "CMD", conflicts_with_all = ["suite", "workloads"])]
    pub(crate) command: Vec<OsString>,
}

pub(super) fn time_limit(text: &str) -> Result<Duration, String> {
    const LONGEST: f64 = 1e6;
    let seconds: f64 = text.parse().map_err(|_| "is not a number of seconds".to_owned())?;
    if (0.001..=LONGEST).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("must be from 0.001 to 1000000 seconds".to_owned())
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let heapwright = preload::library(args.library.given().as_deref())?;
    let allocators = allocators::all(heapwright, &args.with, &args.only, &args.baseline)?;
    if args.list {
        let text = output::bench::list(&allocators, heapwright_workloads::ALL);
        output::to_stdout(|out| out.write_all(text.as_bytes()))?;
        return Ok(Exit::Code(0));
    }
    let programs = match programs(args)? {
        Ok(programs) => programs,
        Err(exit) => return Ok(exit),
    };
    let output_args = args.output_args.all()?;

    let (results, raced) = race(args, &allocators, &programs)?;
    let measured = results.programs.iter().flat_map(|p| &p.results).any(|e| !e.runs.is_empty());
    let document = output::bench::document(&results);
    for (format, file) in output_args {
        if measured || format != WithPage::Text {
            document.write(format, file)?;
        }
    }
    for (name, why) in &raced.broken {
        eprintln!("heapwright: the program itself fails: {name}: {why}");
    }
    Ok(match interrupt::came() {
        Some(signal) => {
            if !measured {
                eprintln!("heapwright: interrupted before a round was measured");
            }
            Exit::Signal(signal)
        }
        None if raced.interrupted => {
            eprintln!("heapwright: the launcher was asked to stop");
            Exit::Code(OWN_FAILURE)
        }
        None if raced.broken.is_empty() => Exit::Code(0),
        None => Exit::Code(PROGRAM_FAILS),
    })
}

/// Returns the programs to race on. The inner error is the exit code if `CMD` cannot be run.
fn programs(args: &Args) -> anyhow::Result<Result<Vec<Program>, Exit>> {
    if !args.command.is_empty() {
        return Ok(command(&args.command)?.map(|program| vec![program]));
    }
    let mut programs = workloads::chosen(&args.workloads, args.scale)?;
    if let Some(path) = &args.suite {
        for program in suite::read(path, &args.programs)? {
            if programs.iter().any(|other| other.name == program.name) {
                return Err(wrong(format!(
                    "{}: '{}' is the name of a built-in workload",
                    path.display(),
                    program.name
                )));
            }
            programs.push(program);
        }
    }
    if programs.is_empty() {
        return Err(wrong(
            "there is nothing to race on: --workloads none needs --suite".to_owned(),
        ));
    }
    Ok(Ok(programs))
}

/// The inner error is the exit code if `CMD` cannot be run.
fn command(words: &[OsString]) -> anyhow::Result<Result<Program, Exit>> {
    let file = match inspect::path::find(&words[0]) {
        Ok(file) => std::path::absolute(file)?,
        Err(problem) => {
            eprintln!("heapwright: {}", problem.text(&words[0]));
            let missing = problem == inspect::path::Problem::Missing;
            return Ok(Err(Exit::Code(if missing {
                process::NOT_FOUND
            } else {
                process::CANNOT_RUN
            })));
        }
    };
    let shown: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Ok(Program {
        stands_for: shown.join(" "),
        refuses: refusal(file.as_os_str()),
        arguments: words[1..].to_vec(),
        ..Program::bare(name, Kind::Command, file, Comparing::IfSteady)
    }))
}

fn race(
    args: &Args,
    allocators: &[allocators::Allocator],
    programs: &[Program],
) -> anyhow::Result<(Results, race::Raced)> {
    interrupt::notice();
    let started = SystemTime::now();
    let mut notes = machine::noise();
    notes.extend(inherited());
    let launcher = Launcher::new(preload::launcher()?);
    let known = probe_all(allocators, &launcher, args.timeout)?;
    let baseline = allocators.iter().position(|one| one.name == args.baseline).unwrap_or_default();
    if let Some((_, why)) = &known[baseline].unfit {
        return Err(wrong(format!("the baseline {} cannot race: {why}", args.baseline)));
    }
    let race = race::Race {
        programs,
        allocators,
        baseline,
        known: &known,
        launcher: &launcher,
        rounds: args.rounds as usize,
        rounds_long: args.rounds_long as usize,
        limit: args.timeout,
    };
    let progress = Progress::new(Showing::of(args.output_args.quiet, args.progress), race.runs());
    let mut raced = race.run(&progress)?;
    notes.append(&mut raced.notes);
    let entries = std::mem::take(&mut raced.entries);
    let mut results = Results {
        head: Head::of(SCHEMA, started),
        rounds: race.rounds,
        rounds_long: race.rounds_long,
        baseline: args.baseline.clone(),
        complete: !raced.interrupted,
        notes,
        allocators: allocators
            .iter()
            .zip(&known)
            .map(|(allocator, known)| allocator.described(known.version.clone()))
            .collect(),
        programs: programs
            .iter()
            .zip(entries)
            .map(|(program, results)| results::Program {
                name: program.name.clone(),
                stands_for: program.stands_for.clone(),
                kind: program.kind,
                threads: program.threads,
                long: program.long,
                live_bytes: program.live_bytes,
                operations: program.operations,
                results,
            })
            .collect(),
        summary: Summary::default(),
    };
    results.summary = comparison::summary(&results, allocators::HEAPWRIGHT);
    Ok((results, raced))
}

/// Returns a note for each variable that may change the programs' allocators.
fn inherited() -> Vec<String> {
    const PREFIXES: [&str; 8] = [
        "GLIBC_TUNABLES",
        "MALLOC_",
        "MIMALLOC_",
        "SCUDO_OPTIONS",
        "SNMALLOC_",
        "TBB_MALLOC_",
        "TCMALLOC_",
        "_RJEM_MALLOC_CONF",
    ];
    let mut notes: Vec<String> = std::env::vars_os()
        .filter_map(|(name, value)| {
            let name = name.to_str()?;
            let known = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
            known.then(|| format!("{name}={} was set for every program", value.to_string_lossy()))
        })
        .collect();
    notes.sort();
    if std::env::var_os("LD_PRELOAD").is_some_and(|value| !value.is_empty()) {
        notes.push("LD_PRELOAD was taken out of the programs' environment".to_owned());
    }
    notes
}
