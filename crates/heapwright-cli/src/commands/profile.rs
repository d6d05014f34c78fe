//! `heapwright profile -- CMD`: which calls a program's memory comes from, at next to no cost.
//!
//! ```text
//! a folder <- record.PID of each process, when it ends   (options sample, profile)
//!   +-- the program is a child; this process stands in for it, as `check` does
//!   +-- all records, one report
//! ```
//!
//! The exit code is the program's own: a profile finds no mistakes.

use super::LibraryArg;
use super::run::{command, not_started, why_none};
use crate::output::Format;
use crate::output::{self, Look};
use crate::preload::{self, Options};
use crate::process::{self, Exit};
use crate::report;
use crate::report::model::{Figure, Wanted};
use crate::statistics::Folder;
use crate::wrong::wrong;
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

/// The records' name before the pid.
const STEM: &str = "profile";

/// Profile a program's memory: which calls allocate what is live, and what was.
///
/// A small sample of all blocks is followed, with stacks; the program runs as fast as
/// without, and ends as without. Figures are estimates, with their errors. Exits as the
/// program did; 2 for a wrong command line, 125 if it could not be profiled, 126 or 127
/// if it could not be run.
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

    /// One block in BYTES is a sample: less is more exact, and slower
    #[arg(long, value_name = "BYTES", default_value = "512k")]
    sample: String,

    /// List at most N sites
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,

    /// Set an option of the library, e.g. purge=250; may be repeated
    #[arg(long = "option", value_name = "KEY=VALUE")]
    options: Vec<String>,

    #[command(flatten)]
    library: LibraryArg,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let library = preload::library(args.library.given().as_deref())?;
    // Before the program runs, so that a bad FILE does not cost a run.
    let file = args.output.as_deref().map(super::open).transpose()?;
    let folder = Folder::new()?;
    let mut options = Options::inherited(std::env::var_os("HEAPWRIGHT").as_deref());
    let mut asked = args.options.clone();
    asked.push(format!("sample={}", args.sample));
    for option in &asked {
        if option.contains("profile=") {
            let why = "profile sets option profile itself; use --output";
            return Err(wrong(why.to_owned()));
        }
        options.add(option)?;
    }
    preload::refuse_bad(&library, &options, &asked)?;
    options.profile(&folder.path().join(STEM));
    let outcome = match process::watch(command(&args.command, &library, &options)?) {
        Ok(outcome) => outcome,
        Err(error) => return Ok(not_started(&args.command[0], &error)),
    };
    if !report::any_in(folder.path()) {
        let reason = why_none(&args.command[0], &outcome);
        eprintln!("heapwright: {} was not profiled: {reason}", args.command[0].display());
        return Ok(match Exit::from(outcome.end) {
            Exit::Code(0) => Exit::Code(super::check::COULD_NOT),
            other => other,
        });
    }
    let how = report::Options {
        everything: true,
        wanted: Wanted { figure: args.figure, most: args.limit, ..Wanted::default() },
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
            output::render(&made.report, args.format, &mut out, look).and_then(|()| out.flush())
        }
    };
    if let Err(error) = written {
        eprintln!("heapwright: the profile could not be written: {error}");
    }
    Ok(Exit::from(outcome.end))
}
