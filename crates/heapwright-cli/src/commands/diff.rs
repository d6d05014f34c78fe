//! `heapwright diff A B` compares two runs, or two points in time of one run.

use super::OutputArgs;
use crate::output::{Look, Plain, diff::document};
use crate::process::Exit;
use crate::report::diff::diff;
use crate::report::{self, Made, Options, point};
use anyhow::anyhow;
use std::io;
use std::path::{Path, PathBuf};

/// The exit code if a record could not be read.
pub(crate) const COULD_NOT: u8 = 2;

/// Show the differences between two records, or between two points in time of one record.
///
/// A and B are records or folders of records, each with an optional point:
/// RECORD@3 (the leak check of that number), RECORD@10s (the last leak check in the
/// first 10 seconds of the process), RECORD@end. Exits with 0 if nothing is
/// different, 1 if something is, 2 if a record cannot be read.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  heapwright diff server.4242@1 server.4242        what it holds and did not at first
  heapwright diff server.4242@10s server.4242@60s
  heapwright diff --format json before/ after/ | jq '.new.errors[].sentence'")]
pub(crate) struct Args {
    #[command(flatten)]
    output_args: OutputArgs<Plain>,

    /// Show at most N stacks; 0: all
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,

    /// The earlier RECORD, or RECORD@POINT
    #[arg(value_name = "A")]
    before: PathBuf,

    /// The later RECORD, or RECORD@POINT
    #[arg(value_name = "B")]
    after: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let file = args.output_args.file()?;
    let (before, after) = (read(&args.before)?, read(&args.after)?);
    for note in before.report.notes.iter().chain(&after.report.notes) {
        eprintln!("heapwright: {note}");
    }
    let diff = diff(&before.report, &after.report);
    let most = if args.top == 0 { usize::MAX } else { args.top };
    let look = file.as_ref().map_or_else(|| Look::of(&io::stdout()), Look::of);
    document(&diff, most, look).write(args.output_args.format(), file)?;
    Ok(Exit::Code(u8::from(!diff.is_empty())))
}

fn read(argument: &Path) -> anyhow::Result<Made> {
    let (path, at) = point::split(argument).map_err(|error| anyhow!(error))?;
    let options = Options { everything: true, at, ..Options::default() };
    report::make(&[path], &options)
}
