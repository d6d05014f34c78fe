//! `heapwright profile -- CMD`: which calls a program's memory comes from, at next to no cost.
//!
//! ```text
//! a folder <- profile.PID of each process, now and then and when it ends   (options sample, profile)
//!   +-- the program is a child; this process stands in for it, as `check` does
//!   +-- all records, one report
//! ```
//!
//! The exit code is the program's own: a profile finds no mistakes.

use super::ProgramArgs;
use super::run::{command, not_started};
use crate::inspect::{self, Verdict};
use crate::output::Format;
use crate::output::{self, Look};
use crate::preload::{self, Options};
use crate::process::{self, End, Exit, Outcome};
use crate::report;
use crate::report::model::{Figure, SITES, Wanted};
use crate::statistics::Folder;
use crate::wrong::wrong;
use std::ffi::OsStr;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

/// The records' name before the pid.
const STEM: &str = "profile";

/// Sample a program's allocations, and report which call stacks its memory comes from.
///
/// heapwright keeps the stack of a small random sample of blocks, and sees when each is
/// freed. The program runs a few per cent slower at most, and ends as without; each of
/// its processes is profiled by itself. Exits as the program did; 2 for a wrong
/// command line, 125 if the command failed itself, 126 or 127 if the program could not
/// be run.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "heapwright profile [OPTIONS] [--] CMD [ARGS]...")]
#[command(after_help = "\
Examples:
  heapwright profile -- ./program --its-option
  heapwright profile --figure allocated -- python3 script.py
  heapwright profile --sample 64k --format pprof -o heap.pb.gz -- ./server")]
pub(crate) struct Args {
    /// The format of the output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    format: Format,

    /// Write to FILE [default: stderr, behind what the program writes]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Which blocks to report
    #[arg(long, value_enum, value_name = "FIGURE", default_value_t = Figure::Peak)]
    figure: Figure,

    /// Average number of allocated bytes from one sample to the next, from 1k to 1g: smaller
    /// is more exact, and slower
    #[arg(long, value_name = "BYTES", default_value = "512k", value_parser = distance)]
    sample: String,

    /// List at most N stacks of each process in text; 0: all
    #[arg(long, value_name = "N", default_value_t = SITES)]
    limit: usize,

    #[command(flatten)]
    program: ProgramArgs,
}

/// A distance of samples, as the library reads it.
fn distance(text: &str) -> Result<String, String> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches(['k', 'm', 'g']);
    let shift = match &lower[digits.len()..] {
        "" => Some(0),
        "k" => Some(10),
        "m" => Some(20),
        "g" => Some(30),
        _ => None,
    };
    let bytes =
        digits.parse::<u64>().ok().zip(shift).and_then(|(n, shift)| n.checked_mul(1 << shift));
    match bytes {
        Some(bytes) if (1 << 10..=1 << 30).contains(&bytes) => Ok(lower),
        _ => Err("use a number of bytes from 1k to 1g, such as 512k".to_owned()),
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    if matches!(args.format, Format::Sarif | Format::Junit) {
        let why = "a heap profile finds no mistakes: use text, json, html, flamegraph, folded, pprof or dhat";
        return Err(wrong(why.to_owned()));
    }
    let library = preload::library(args.program.library.given().as_deref())?;
    // Before the program runs, so that a bad FILE does not cost a run.
    let file = args.output.as_deref().map(super::open).transpose()?;
    let folder = Folder::new()?;
    let mut options = Options::inherited(std::env::var_os("HEAPWRIGHT").as_deref());
    let mut asked = args.program.options.clone();
    asked.push(format!("sample={}", args.sample));
    for option in &asked {
        if option.contains("profile=") {
            let why = "profile sets option profile itself; use --output";
            return Err(wrong(why.to_owned()));
        }
        if option.contains("mode=debug") {
            let why =
                "profile needs mode=fast; in mode=debug every block is known: use heapwright check";
            return Err(wrong(why.to_owned()));
        }
        options.add(option)?;
    }
    preload::refuse_bad(&library, &options, &asked)?;
    options.profile(&folder.path().join(STEM));
    let outcome = match process::watch(command(&args.program.command, &library, &options)?) {
        Ok(outcome) => outcome,
        Err(error) => return Ok(not_started(&args.program.command[0], &error)),
    };
    if !report::any_in(folder.path()) {
        let name = args.program.command[0].display();
        eprintln!(
            "heapwright: {name} left no heap profile: {}",
            why_none(&args.program.command[0], &outcome)
        );
        return Ok(Exit::from(outcome.end));
    }
    let how = report::Options {
        everything: true,
        wanted: Wanted {
            figure: args.figure,
            sites: if args.limit == 0 { usize::MAX } else { args.limit },
            ..Wanted::default()
        },
        ..report::Options::default()
    };
    let made = report::make(&[folder.path().to_owned()], &how)?;
    // Whatever becomes of the profile, the program's end is handed on.
    let written = match file {
        Some(file) => {
            let look = Look::of(&file);
            output::emptied(file).and_then(|file| {
                let mut out = BufWriter::new(file);
                output::render(&made.report, args.format, &mut out, look)?;
                out.flush()
            })
        }
        None => {
            let stderr = io::stderr();
            let look = Look::of(&stderr);
            let mut out = BufWriter::new(stderr.lock());
            // A line between what the program wrote and the profile.
            let gap = if args.format == Format::Text { "\n" } else { "" };
            let _ = out.write_all(gap.as_bytes());
            output::render(&made.report, args.format, &mut out, look).and_then(|()| out.flush())
        }
    };
    if let Err(error) = written {
        eprintln!("heapwright: the profile could not be written: {error}");
    }
    Ok(Exit::from(outcome.end))
}

/// Why a program left no profile.
fn why_none(name: &OsStr, outcome: &Outcome) -> String {
    let report = inspect::inspect(name, preload::machine());
    match (report.verdict(), report.reason()) {
        (Verdict::No, Some(finding)) => finding.text.clone(),
        _ => match outcome.end {
            End::Signal { .. } => "a signal ended it within its first second".to_owned(),
            End::Code(_) => {
                "it allocated nothing, became a program that heapwright does not get into, or may \
                             not write to the temporary folder (see heapwright doctor)"
                    .to_owned()
            }
        },
    }
}
