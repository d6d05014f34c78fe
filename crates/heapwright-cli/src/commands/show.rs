//! `heapwright show RECORD`: what the debug allocator found, from the file it
//! left.
//!
//! Functions and lines come from the program's files as they are now, where
//! they still are what was run; otherwise frames are offsets in them.

use crate::output::{self, Happened, Look, Mistake, Mistakes, json, text};
use crate::process::Exit;
use crate::record::{Found, Record};
use crate::symbols::Symbols;
use anyhow::{Context, ensure};
use heapwright_record::debug::{Call, Role};
use std::fs;
use std::path::{Path, PathBuf};

/// The exit code where the record does not say, or could not be read.
pub(crate) const CANNOT_TELL: u8 = 2;

/// Show the mistakes that a debug record tells of.
///
/// Exits with 0 if there are none, 1 if there are some, 2 if RECORD cannot be
/// read, or is damaged and what is left of it tells of none.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  heapwright show prog.4242.hwdebug
  heapwright show --json prog.4242.hwdebug | jq '.findings[].sentence'")]
pub(crate) struct Args {
    /// Show it as one JSON object
    #[arg(long)]
    json: bool,

    /// The file that the debug allocator left
    #[arg(value_name = "RECORD")]
    record: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let name = args.record.display();
    let bytes = read(&args.record).with_context(|| format!("cannot read {name}"))?;
    let record = Record::read(&bytes).with_context(|| format!("cannot read {name}"))?;
    let mut symbols = Symbols::new(record.process.map(|process| process.time));
    let findings: Vec<_> = record.findings.iter().map(|found| named(found, &mut symbols)).collect();
    let mistakes = Mistakes { record, findings };
    let told = if args.json {
        json::mistakes::report(&mistakes)
    } else {
        text::mistakes::report(&mistakes, Look::of(&std::io::stdout()))
    };
    output::to_stdout(|out| out.write_all(told.as_bytes()))?;
    Ok(Exit::Code(verdict(&mistakes)))
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    ensure!(!path.is_dir(), "it is a folder");
    Ok(fs::read(path)?)
}

/// What was found outweighs what is missing.
fn verdict(mistakes: &Mistakes<'_>) -> u8 {
    let record = &mistakes.record;
    let unwritten = record.end.is_some_and(|end| end.findings > 0);
    if !record.findings.is_empty() || unwritten {
        1
    } else if record.problem.is_some() {
        CANNOT_TELL
    } else {
        0
    }
}

/// A finding with the names of its frames.
fn named(found: &Found<'_>, symbols: &mut Symbols) -> Mistake {
    let finding = found.finding;
    let moments = finding.moments().map(|(role, moment)| {
        let frames = found.stacks.get(&moment.stack);
        let exact = role == Role::Here && finding.call == Call::Access;
        Happened {
            role,
            moment,
            frames: frames
                .map(|frames| symbols.stack(frames, exact, &found.modules))
                .unwrap_or_default(),
            cut: frames.is_some_and(|frames| frames.cut()),
        }
    });
    Mistake { finding, moments: moments.collect() }
}
