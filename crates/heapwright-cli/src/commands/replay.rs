//! `heapwright replay TRACE` repeats a program's allocations and frees under several allocators.
//!
//! The command compiles the trace into a plan. A player executes the plan under each allocator in
//! turn. The results are text, and JSON on request.

use super::{LibraryArg, OutputsArgs};
use crate::bench::allocators::{self, Allocator, GLIBC, HEAPWRIGHT, With};
use crate::bench::results::{Head, Outcome};
use crate::bench::{Launcher, Progress, Showing, machine, probe_all};
use crate::output::{self, Plain};
use crate::preload;
use crate::process::{Exit, interrupt};
use crate::replay::results::{Results, SCHEMA, Trace};
use crate::replay::rounds::Rounds;
use crate::replay::{Touch, compile};
use crate::statistics::Folder;
use crate::trace::{self, Story};
use crate::wrong::wrong;
use anyhow::Context;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const FAILS: u8 = 1;

/// The exit code if the command itself failed.
pub(crate) const OWN_FAILURE: u8 = 125;

/// Replay a recorded trace under several allocators.
///
/// Repeats the calls in TRACE with as many threads as the program had, in turns under glibc's
/// malloc, heapwright and the allocators named. Prints time and CPU time per operation, peak
/// memory, and the ratio of peak memory to live bytes.
///
/// TRACE is a file of heapwright record, or text in the format of Android's memory_replay. Either
/// file may be compressed (gzip, or zip).
///
/// Exits with 0 if all was replayed, 1 if an allocator failed, 2 for a wrong command line or trace.
/// For any other failure, exits with 125. Ctrl-C prints what was measured so far.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "heapwright replay [OPTIONS] TRACE")]
#[command(after_help = "\
Examples:
  heapwright replay server.trace
  heapwright replay server.trace --with mimalloc,jemalloc --rounds 9
  heapwright replay server.trace --only heapwright --cache exclusive,shared:2,percpu
  heapwright replay dump.zip --with mine=/opt/lib/libmine.so --format json -o replay.json")]
pub(crate) struct Args {
    /// The file to replay
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// Replay under this allocator, too. Give a name from heapwright bench --list, NAME=PATH of a
    /// library, 'NAME=VAR=VALUE PATH' to set its environment, or heapwright:OPTIONS. May be
    /// repeated
    #[arg(long, value_name = "NAME,...")]
    with: Vec<OsString>,

    /// Replay only under these allocators; ratios are to the first
    #[arg(long, value_name = "NAME,...")]
    only: Vec<String>,

    /// Replay heapwright with each of these cache models: auto, exclusive, shared, shared:K, percpu
    #[arg(long, value_name = "MODEL,...", value_delimiter = ',', value_parser = cache_model)]
    cache: Vec<String>,

    /// Number of measured rounds
    #[arg(long, value_name = "N", default_value = "7", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// The bytes of blocks that the replay writes
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Touch::Pages)]
    touch: Touch,

    /// Replay with one thread, in the order of the trace
    #[arg(long)]
    sequential: bool,

    /// The process to replay, if the trace has several [default: the busiest]
    #[arg(long, value_name = "PID")]
    process: Option<u32>,

    /// List the trace's processes, and replay nothing
    #[arg(
        long,
        conflicts_with_all = [
            "with", "only", "cache", "rounds", "touch", "sequential", "process", "timeout",
            "formats", "outputs", "quiet", "progress", "path"
        ]
    )]
    list: bool,

    /// Kill a run after this time [default: thirty times the fastest run, at least 30]
    #[arg(long, value_name = "SECONDS", value_parser = super::bench::time_limit)]
    timeout: Option<Duration>,

    #[command(flatten)]
    output_args: OutputsArgs<Plain>,

    /// Print a line of progress for each round, even if stderr is not a terminal
    #[arg(long, conflicts_with = "quiet")]
    progress: bool,

    #[command(flatten)]
    library: LibraryArg,
}

fn cache_model(text: &str) -> Result<String, String> {
    let known = match text.split_once(':') {
        None => ["auto", "exclusive", "shared", "percpu"].contains(&text),
        Some((kind, count)) => {
            kind == "shared" && count.parse().is_ok_and(|k| (1..=1024).contains(&k))
        }
    };
    if known {
        Ok(text.to_owned())
    } else {
        Err("is none of auto, exclusive, shared, shared:K (K from 1 to 1024), percpu".to_owned())
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let input = trace::read(&args.trace)?;
    if args.list {
        for note in &input.notes {
            eprintln!("heapwright: {note}");
        }
        output::to_stdout(|out| list(&input.stories, out))?;
        return Ok(Exit::Code(0));
    }
    let mut notes = input.notes;
    let story = chosen(&args.trace, input.stories, args.process)?;
    notes.extend(about(&story));
    let allocators = players(args)?;
    let output_args = args.output_args.all()?;

    let (results, interrupted) = replay(args, &story, &allocators, notes)?;
    let is_something = results.rows.iter().any(|row| !row.runs.is_empty() || row.detail.is_some());
    let document = output::replay::document(&results);
    for (format, file) in output_args {
        if is_something || format != Plain::Text {
            document.write(format, file)?;
        }
    }
    Ok(match interrupt::came() {
        Some(signal) => Exit::Signal(signal),
        None if interrupted => Exit::Code(OWN_FAILURE),
        None if results.rows.iter().all(|row| row.outcome == Outcome::Ok) => Exit::Code(0),
        None => Exit::Code(FAILS),
    })
}

fn list(stories: &[Story], out: &mut dyn Write) -> io::Result<()> {
    stories.iter().filter(|story| story.operations() > 0).try_for_each(|story| {
        let name = story.name();
        writeln!(out, "{:>8}  {name}: {}", story.pid, output::recorded(&story.facts()))
    })
}

/// Chooses the story of the process that the user named, or of the busiest.
fn chosen(path: &Path, stories: Vec<Story>, process: Option<u32>) -> anyhow::Result<Story> {
    let path = path.display();
    let mut stories: Vec<Story> =
        stories.into_iter().filter(|story| story.operations() > 0).collect();
    if stories.is_empty() {
        return Err(wrong(format!("{path}: no allocations are recorded in it")));
    }
    if let Some(pid) = process {
        let pids: Vec<String> = stories.iter().map(|story| story.pid.to_string()).collect();
        stories.retain(|story| story.pid == pid);
        if stories.is_empty() {
            let pids = pids.join(", ");
            return Err(wrong(format!("{path}: no process {pid}; it has {pids}")));
        }
    }
    let busiest = stories.into_iter().max_by_key(Story::operations);
    busiest.context("the trace has no process to replay")
}

/// Returns what a reader of the results should know.
fn about(story: &Story) -> Vec<String> {
    let mut notes = Vec::new();
    if story.unknown > 0 {
        let why = if story.forked { " (the process was forked with them)" } else { "" };
        notes.push(format!(
            "{} of blocks whose allocation is not in the trace left out{why}",
            counted(story.unknown, "free", "frees")
        ));
    }
    if story.doubled > 0 {
        notes.push(format!(
            "{} allocated at the address of a live block: its missing free was added",
            counted(story.doubled, "block was", "blocks were")
        ));
    }
    if !story.whole {
        notes.push(
            "the process was killed, or became another program: its end is missing".to_owned(),
        );
    }
    notes
}

fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn players(args: &Args) -> anyhow::Result<Vec<Allocator>> {
    let heapwright = preload::library(args.library.given().as_deref())?;
    let with = With::read(&args.with);
    let mut names: Vec<String> = vec![GLIBC.to_owned(), HEAPWRIGHT.to_owned()];
    names.extend(with.names.iter().cloned());
    if !args.only.is_empty() {
        names = args.only.iter().flat_map(|word| allocators::names(word)).collect();
    }
    let chosen = allocators::chosen(heapwright, &args.with, &names)?;
    if args.cache.is_empty() {
        return Ok(chosen);
    }
    let mut all = Vec::new();
    for one in chosen {
        if one.name != HEAPWRIGHT {
            all.push(one);
            continue;
        }
        for model in &args.cache {
            let name = format!("{HEAPWRIGHT} {model}");
            all.push(one.with_options(name, &format!("cache={model}")));
        }
    }
    Ok(all)
}

/// Returns the results, and whether the replay was stopped.
fn replay(
    args: &Args,
    story: &Story,
    allocators: &[Allocator],
    mut notes: Vec<String>,
) -> anyhow::Result<(Results, bool)> {
    interrupt::notice();
    let started = SystemTime::now();
    notes.extend(machine::noise());
    let launcher = Launcher::new(preload::launcher()?);
    let known = probe_all(allocators, &launcher, None)?;
    let folder = Folder::new()?;
    let plan = folder.path().join("plan");
    write_plan(&plan, &compile(story, args.touch, args.sequential))?;
    let name = args.trace.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let rounds = Rounds {
        plan,
        name: &name,
        allocators,
        known: &known,
        launcher: &launcher,
        rounds: args.rounds as usize,
        limit: args.timeout,
    };
    let progress = Progress::new(Showing::of(args.output_args.quiet, args.progress), rounds.runs());
    let played = rounds.play(&progress)?;
    notes.extend(played.complaints);
    let results = Results {
        head: Head::of(SCHEMA, started),
        trace: Trace::of(story, name),
        rounds: args.rounds as usize,
        touch: args.touch,
        sequential: args.sequential,
        complete: !played.interrupted,
        notes,
        rows: played.rows,
    };
    Ok((results, played.interrupted))
}

fn write_plan(path: &Path, words: &[u64]) -> anyhow::Result<()> {
    let write = || {
        let mut out = BufWriter::new(File::create_new(path)?);
        words.iter().try_for_each(|word| out.write_all(&word.to_ne_bytes()))?;
        out.flush()
    };
    write().with_context(|| format!("cannot write the plan to {}", path.display()))
}
