//! `heapwright explain PID`: why more is resident than is live, and what can be done about it.

use super::OutputArgs;
use crate::live::{Files, Mappings, Seen};
use crate::output::{self, Plain, json, text};
use crate::process::Exit;
use crate::wrong::wrong;
use std::thread;
use std::time::Duration;

/// Explain why a running process has more memory than its live blocks need, and what can be done.
///
/// The largest parts come first, each with what it is, and with options that make it smaller and
/// what those cost. See docs/live.md. Exits with 0; 2 for a wrong command line or a process that
/// cannot be shown, 1 for one that has not shown anything yet.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  heapwright explain 4242
  heapwright explain --format json 4242")]
pub(crate) struct Args {
    /// The process
    #[arg(value_name = "PID")]
    pid: u32,

    #[command(flatten)]
    output_args: OutputArgs<Plain>,
}

/// A process that is looked at says anew where its memory is within this time, if it allocates.
const SOON: Duration = Duration::from_millis(250);

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let slot = Files::open().slot_of(args.pid)?;
    let _ = slot.read();
    thread::sleep(SOON);
    let seen = Seen::of(&slot).ok_or_else(|| wrong("the process has ended".to_owned()))?;
    let file = args.output_args.file()?;
    let Some(report) = &seen.report else {
        eprintln!("heapwright: process {} has not shown yet where its memory is", args.pid);
        return Ok(Exit::Code(1));
    };
    let mappings = Mappings::of(args.pid, report);
    let explained = |look| match args.output_args.format() {
        Plain::Text => text::explain::report(&seen.process, report, &mappings, look),
        Plain::Json => json::explain::report(&seen.process, report, &mappings),
    };
    output::write(file, explained)?;
    Ok(Exit::Code(0))
}
