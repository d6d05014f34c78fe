//! `heapwright record -- CMD` records every allocation and free of a program in a file.
//!
//! The library writes a trace of each process into a private folder (`trace=PREFIX`). Then the
//! command reads these traces, replaces addresses by numbers, and writes one file for `replay`.

use super::run::{not_started, why_none};
use super::{ProgramArgs, after_writing, open, open_own};
use crate::bench;
use crate::output;
use crate::preload::{self, Options};
use crate::process::{self, Exit};
use crate::statistics::Folder;
use crate::trace::{self, Story, binary};
use crate::wrong::wrong;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The part of a trace's name before the pid.
const STEM: &str = "trace";

/// The output file if the user names none.
const DEFAULT: &str = "heapwright.trace";

/// Record all allocations and frees of a program, for heapwright replay.
///
/// The program runs slower, but its output, its signals and its exit code stay the
/// same. One file holds the calls of all its processes: threads, sizes, alignments,
/// and which thread freed each block.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "heapwright record [OPTIONS] [--] CMD [ARGS]...")]
#[command(after_help = "\
Examples:
  heapwright record -- python3 script.py
  heapwright record -o server.trace -- ./server --port 80
  heapwright replay server.trace --with mimalloc,jemalloc")]
pub(crate) struct Args {
    /// Write to FILE
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT)]
    output: PathBuf,

    /// Print no summary of the recording
    #[arg(long)]
    quiet: bool,

    #[command(flatten)]
    program: ProgramArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let library = preload::library(args.program.library.given().as_deref())?;
    let mut options = Options::inherited(std::env::var_os("HEAPWRIGHT").as_deref());
    for option in &args.program.options {
        if option.contains("trace=") {
            let why = "record sets option trace itself; use --output";
            return Err(wrong(why.to_owned()));
        }
        options.add(option)?;
    }
    preload::refuse_bad(&library, &options, &args.program.options, "--option ")?;
    let is_default = args.output == Path::new(DEFAULT);
    let file = if is_default { open_own(&args.output)? } else { open(&args.output)? };
    let folder = Folder::new()?;
    options.trace(&folder.path().join(STEM));
    let outcome = match process::watch(args.program.program(&library, &options)?) {
        Ok(outcome) => outcome,
        Err(error) => return Ok(not_started(&args.program.command[0], &error)),
    };
    let mut exit = Exit::from(outcome.end);
    let (mut stories, notes) = collect(folder.path());
    let (was_seen, is_whole) = (!stories.is_empty(), stories.iter().all(|story| story.whole));
    stories.retain(|story| story.operations() > 0);
    for note in notes {
        eprintln!("heapwright: {note}");
    }
    let name = args.program.command[0].display();
    if !args.quiet {
        args.program.note_python();
    }
    if stories.is_empty() {
        let why = why_none(&args.program.command[0], &outcome);
        // A program that never allocates leaves no trace, like a program without the library.
        let refused = bench::refusal(&args.program.command[0]).is_some();
        let or = if refused { "" } else { ", or it never asked for memory" };
        let why = match (was_seen, is_whole) {
            (true, true) => "it never asked for memory",
            (true, false) => "it ended before it could write its calls",
            _ => &format!("{why}{or}"),
        };
        eprintln!("heapwright: nothing was recorded of {name}: {why}");
    } else {
        let what = args.output.display().to_string();
        exit = after_writing(exit, &what, true, write(args, file, &stories));
    }
    Ok(exit)
}

/// Returns the traces of all processes in order of their start, and a note for each problem.
fn collect(folder: &Path) -> (Vec<Story>, Vec<String>) {
    let mut stories = Vec::new();
    let mut notes = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Some(pid) = path.extension().and_then(|pid| pid.to_str()).map(str::to_owned) else {
            continue;
        };
        // The process could write nothing, and the library prints why.
        if entry.metadata().is_ok_and(|about| about.len() == 0) {
            continue;
        }
        match trace::read(&path) {
            Ok(input) => {
                stories.extend(input.stories);
                notes.extend(input.notes.iter().map(|note| format!("process {pid}: {note}")));
            }
            Err(error) => {
                // The note omits the path: the folder is about to be removed.
                let text = error.to_string();
                let why = text.split_once(": ").map_or(text.as_str(), |(_, why)| why);
                notes.push(format!("process {pid}: {why}"));
            }
        }
    }
    for story in &mut stories {
        // Users pass traces on, so a trace has neither paths nor words of a command line.
        story.exe = story.name().into_bytes();
        story.command.clear();
    }
    stories.sort_by_key(|story| (story.began, story.pid));
    notes.sort();
    (stories, notes)
}

fn write(args: &Args, file: fs::File, stories: &[Story]) -> std::io::Result<()> {
    let mut out = BufWriter::new(output::emptied(file)?);
    binary::write(stories, &mut out)?;
    out.flush()?;
    let bytes = out.get_ref().metadata()?.len();
    drop(out);
    let busiest = stories.iter().max_by_key(|story| story.operations());
    let Some(story) = busiest.filter(|_| !args.quiet) else { return Ok(()) };
    let others = match stories.len() - 1 {
        0 => String::new(),
        1 => "; and 1 other process".to_owned(),
        more => format!("; and {more} other processes (heapwright replay --list)"),
    };
    let cut = if story.whole { "" } else { ", without its end" };
    eprintln!(
        "heapwright: wrote {} ({}): {}{cut}: {}{others}",
        args.output.display(),
        output::size(bytes),
        story.name(),
        output::recorded(&story.facts()),
    );
    Ok(())
}
