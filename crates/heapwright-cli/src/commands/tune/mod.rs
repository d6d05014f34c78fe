//! `heapwright tune -- CMD`: which options for the library are best for this program?
//!
//! Here are its arguments and what is printed; [`session`] runs the program and its trace, and `tune`
//! decides what is tried and what is chosen.

mod session;

use super::bench::{inherited, time_limit};
use super::{LibraryArg, OutputsArgs, bench, seconds};
use crate::bench::allocators::{self, Allocator, GLIBC, HEAPWRIGHT, With};
use crate::bench::results::Head;
use crate::bench::{Launcher, Program, machine};
use crate::output::{self, Plain, json, text};
use crate::preload;
use crate::process::{Exit, interrupt};
use crate::tune::decision::RULE;
use crate::tune::results::{Results, SCHEMA};
use crate::wrong::wrong;
use session::{Stop, Tuning, read};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

/// The exit code where the program fails, by itself or with our library.
const PROGRAM_FAILS: u8 = 1;

/// The exit code of a failure of ours.
pub(crate) const OWN_FAILURE: u8 = 125;

/// Find the options that make a program faster or leaner.
///
/// Records CMD once, replays its calls for memory under each cache model, purge
/// bound and setting of huge pages, and under two other allocators, and prints the
/// option string that is fastest, the one that is leanest, and the one recommended,
/// each with its gain and interval. What the intervals do not decide is called a
/// tie. Then it runs CMD itself with the defaults and with what is to be recommended,
/// in turns, and withdraws the recommendation unless CMD gains as well.
///
/// CMD is run some thirty times or more; it reads nothing from stdin (see --stdin),
/// and what it prints is only compared. With --trace and no CMD there is nothing to
/// check a recommendation by.
///
/// Exits with 0 if it has an answer, also where that is the defaults or that there is
/// nothing to tune; 1 if CMD fails, by itself or on heapwright; 2 for a wrong command
/// line or trace; 127 or 126 if CMD cannot be run; 125 if something else went wrong.
/// Ctrl-C prints what was measured so far.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "heapwright tune [OPTIONS] [--trace TRACE] [-- CMD [ARGS]...]")]
#[command(after_help = "\
Examples:
  heapwright tune -- python3 script.py
  heapwright tune --stdin words.txt -- sort
  heapwright tune --time 600 --with mimalloc,tcmalloc -- ./program --option
  heapwright tune --trace server.trace
  heapwright tune --format json -o tune.json -- ./program")]
pub(crate) struct Args {
    /// Replay this file of heapwright record instead of recording CMD
    #[arg(long, value_name = "TRACE")]
    trace: Option<PathBuf>,

    /// The process to replay, where the trace has several [default: the busiest]
    #[arg(long, value_name = "PID", requires = "trace")]
    process: Option<u32>,

    /// What CMD reads from stdin [default: nothing]
    #[arg(long, value_name = "FILE", requires = "command")]
    stdin: Option<PathBuf>,

    /// About how long it may take; fewer rounds than decide something are never measured
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = budget)]
    time: Duration,

    /// The most measured rounds of the replay; CMD itself gets up to ten times as many
    #[arg(long, value_name = "N", default_value = "15", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Show these beside heapwright instead of the first other allocator found: names (see
    /// heapwright bench --list), NAME=PATH of a library, or 'NAME=VAR=VALUE PATH'; may be repeated
    #[arg(long, value_name = "NAME,...")]
    with: Vec<OsString>,

    /// Kill a run after this time [default: 60, or ten times the first one's]
    #[arg(long, value_name = "SECONDS", value_parser = time_limit)]
    timeout: Option<Duration>,

    #[command(flatten)]
    output_args: OutputsArgs<Plain>,

    /// Print progress, a line a round, even if stderr is not a terminal
    #[arg(long, conflicts_with = "quiet")]
    progress: bool,

    #[command(flatten)]
    library: LibraryArg,

    /// The program and its arguments
    #[arg(trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

fn budget(text: &str) -> Result<Duration, String> {
    seconds(text, 1_000_000)
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let library = preload::library(args.library.given().as_deref())?;
    let (defaults, peers) = allocators(library, &args.with)?;
    let program = match program(args)? {
        Ok(program) => program,
        Err(exit) => return Ok(exit),
    };
    let tape = match &args.trace {
        Some(path) => Some(read(path, args.process)?),
        None => None,
    };
    let output_args = args.output_args.all()?;

    interrupt::notice();
    let began = Instant::now();
    let launcher = Launcher::new(preload::launcher()?);
    let mut tuning = Tuning {
        args,
        launcher: &launcher,
        defaults: &defaults,
        results: Results {
            head: Head::of(SCHEMA, SystemTime::now()),
            program: None,
            trace: None,
            nothing: None,
            rule: RULE,
            complete: true,
            notes: machine::noise().into_iter().chain(inherited()).collect(),
            screening: None,
            deciding: None,
            decision: None,
            check: None,
            recommended: None,
        },
    };
    if std::env::var_os("HEAPWRIGHT").is_some_and(|value| !value.is_empty()) {
        let note = "the options in HEAPWRIGHT were left out: tune starts from the defaults";
        tuning.results.notes.push(note.to_owned());
    }
    if let Err(stop) = tuning.all(program.as_ref(), tape, &peers)? {
        match stop {
            Stop::Exit(code) => return Ok(Exit::Code(code)),
            Stop::Interrupted => tuning.results.complete = false,
        }
    }
    let took = began.elapsed();
    if took > args.time && tuning.results.complete {
        tuning.results.notes.push(format!(
            "it took {:.0} s, more than --time: fewer rounds would have decided nothing",
            took.as_secs_f64()
        ));
    }
    let results = tuning.results;
    let is_nothing = !results.complete && results.screening.is_none();
    output::write_all(output_args, |format, look| {
        Ok(match format {
            Plain::Text if is_nothing => None,
            Plain::Text => Some(text::tune::report(&results, look)),
            Plain::Json => Some(json::text(&results)),
        })
    })?;
    if is_nothing {
        eprintln!("heapwright: interrupted before a set of rounds was measured");
    }
    Ok(match interrupt::came() {
        Some(signal) => Exit::Signal(signal),
        None if !results.complete => Exit::Code(OWN_FAILURE),
        None => Exit::Code(0),
    })
}

/// Our library with no options, and the others that are shown.
fn allocators(library: PathBuf, with: &[OsString]) -> anyhow::Result<(Allocator, Vec<Allocator>)> {
    let named = With::read(with).names;
    let all = allocators::all(library, with, &[], GLIBC)?;
    let (ours, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.name == HEAPWRIGHT);
    let Some(mut defaults) = ours.into_iter().next() else {
        return Err(anyhow::anyhow!("our own library is not among the allocators"));
    };
    defaults.environment.clear();
    let (glibc, found): (Vec<_>, Vec<_>) = others.into_iter().partition(|one| one.name == GLIBC);
    let shown = found
        .into_iter()
        .enumerate()
        .filter(|(at, one)| if named.is_empty() { *at == 0 } else { named.contains(&one.name) })
        .map(|(_, one)| one);
    Ok((defaults, glibc.into_iter().chain(shown).collect()))
}

/// The program, if there is one, or how to end if it cannot be run.
fn program(args: &Args) -> anyhow::Result<Result<Option<Program>, Exit>> {
    if args.command.is_empty() {
        return Ok(Ok(None));
    }
    if let Some(path) = &args.stdin {
        std::fs::File::open(path)
            .map_err(|error| wrong(format!("--stdin: cannot read {}: {error}", path.display())))?;
    }
    let mut program = match bench::command(&args.command)? {
        Ok(program) => program,
        Err(exit) => return Ok(Err(exit)),
    };
    program.stdin = args.stdin.clone();
    if let Some(why) = &program.refuses {
        eprintln!("heapwright: {} cannot run on heapwright: {why}", program.name);
        return Ok(Err(Exit::Code(PROGRAM_FAILS)));
    }
    Ok(Ok(Some(program)))
}
