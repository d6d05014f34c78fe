//! `heapwright explain PID|RECORD` explains why more memory is resident than live, and how to
//! change that.
//!
//! ```text
//! PID       its status memory and the kernel's figures -> where its memory is     (live);
//!           a sampled process is ordered to write its heap profile, which is explained, too
//! RECORD    a heap profile -> which calls' blocks stay, go at once, or grow (report::explained)
//! ```

use super::OutputArgs;
use crate::live::{Mappings, Orders, Seen, Slot, Statuses};
use crate::output::{Plain, explain};
use crate::process::Exit;
use crate::report::explained::Explained;
use crate::report::model::{Figure, Report, Wanted};
use crate::report::{self, Options};
use crate::statistics::Folder;
use crate::wrong::{is_wrong, wrong};
use std::path::PathBuf;
use std::slice;
use std::thread;
use std::time::Duration;

/// Explain why a process has more memory than its live blocks need, and how to change that.
///
/// For a running process, lists the largest parts of its memory, each with an explanation, options
/// that make the part smaller, and their cost. If the process is sampled, its heap profile follows.
/// For the record of a heap profile, lists the calls whose blocks stay, are freed at once, or grow.
/// Also states the share of resident memory that was not live. For a folder of records, explains
/// the process with the most live bytes. See docs/live.md. Exits with 0, or with 1 for a process
/// that has not shown anything yet. Exits with 2 for a wrong command line, a process that cannot be
/// shown, or a file that is no heap profile.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  heapwright explain 4242
  heapwright explain --format json 4242
  heapwright explain server.4242")]
pub(crate) struct Args {
    /// A running process, by its number; or the record of a heap profile, or a folder of records
    #[arg(value_name = "PID|RECORD")]
    what: PathBuf,

    #[command(flatten)]
    output_args: OutputArgs<Plain>,
}

/// The time within which a process renews its figures after a read, if it allocates.
const SOON: Duration = Duration::from_millis(250);

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match args.what.to_str().and_then(|what| what.parse().ok()) {
        Some(pid) => running(args, pid),
        None => record(args),
    }
}

fn running(args: &Args, pid: u32) -> anyhow::Result<Exit> {
    let slot = Statuses::open().slot_of(pid)?;
    let _ = slot.read();
    thread::sleep(SOON);
    let seen = Seen::of(&slot).ok_or_else(|| wrong("the process has ended".to_owned()))?;
    let file = args.output_args.file()?;
    let Some(report) = &seen.report else {
        eprintln!("heapwright: process {pid} has not shown yet where its memory is");
        return Ok(Exit::Code(1));
    };
    let mappings = Mappings::of(pid, report);
    // If the process writes no profile now, its own figures are the whole explanation.
    let profile = (report.facts.sampling != 0).then(|| profile(slot, pid)).flatten();
    let (process, profile) = (&seen.process, profile.as_ref());
    let document = explain::running(process, report, &mappings, profile);
    document.write(args.output_args.format(), file)?;
    Ok(Exit::Code(0))
}

fn profile(slot: Slot, pid: u32) -> Option<Report> {
    let folder = Folder::quietly().ok()?;
    let record = folder.path().join(format!("profile.{pid}"));
    Orders::to(slot)?.write(&record, SOON).ok()?;
    Some(report::make(&[record], &options(true)).ok()?.report)
}

fn options(quiet: bool) -> Options {
    let wanted = Wanted { figure: Figure::Live, ..Wanted::default() };
    Options { everything: true, wanted, quiet, ..Options::default() }
}

fn record(args: &Args) -> anyhow::Result<Exit> {
    let file = args.output_args.file()?;
    let what = &args.what;
    let made =
        report::make(slice::from_ref(what), &options(false)).map_err(|error| is_wrong(&error))?;
    let explained = Explained::largest(&made.report).ok_or_else(|| {
        wrong(format!(
            "{}: there is no heap profile in it: heapwright profile makes one, and heapwright report reads other records",
            what.display()
        ))
    })?;
    for note in &made.report.notes {
        eprintln!("heapwright: {note}");
    }
    explain::recorded(&made.report, &explained).write(args.output_args.format(), file)?;
    Ok(Exit::Code(0))
}
