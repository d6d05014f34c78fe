//! `heapwright heap DUMP` summarises a dump of a collected heap: its objects, and the objects that
//! retain them. With `--timeline` it writes the heap's collections as a Chrome trace.

use super::OutputsArgs;
use crate::heap::{self, Wanted, timeline};
use crate::output::{self, WithPage};
use crate::process::Exit;
use crate::wrong::wrong;
use anyhow::Context;
use std::io::Write;
use std::path::PathBuf;

/// The exit code if the dump cannot be read, or lacks the requested type or object.
pub(crate) const COULD_NOT: u8 = 2;

/// The exit code if the dump is cut or damaged.
const NOT_WHOLE: u8 = 1;

/// Summarise a dump of a collected heap: its types, their sizes, and the objects that retain most.
///
/// Prints how many bytes the objects of each type take, and how many they retain (would be freed
/// with them). Also prints how full the pages of each size are. Then prints the objects that retain
/// the most, each with the shortest path from a root. For a heap with generations, or a compacted
/// heap, also prints how much is old, pinned, and moved. --format html draws all pages: how full
/// and how old they are, which are pinned, and which received moved objects.
///
/// The function hw_gc_dump writes a DUMP; the file may be compressed (gzip). Of a cut or damaged
/// file the readable part is summarised. Exits with 0, with 1 if the dump is not whole, with 2 if
/// it cannot be read, or lacks the requested type or object.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  heapwright heap app.heap
  heapwright heap --format html -o heap.html app.heap    with a picture of the pages
  heapwright heap --type Table --top 5 app.heap          of one type, and what refers to it
  heapwright heap --path 0x7f1200340120 app.heap         what keeps this object
  heapwright heap --format json app.heap | jq '.types[:3]'
  heapwright heap --timeline -o trace.json app.4242      of option timeline=app, for ui.perfetto.dev")]
pub(crate) struct Args {
    #[command(flatten)]
    output_args: OutputsArgs<WithPage>,

    /// Show at most N types and N objects; 0: all types, and 1000 objects
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,

    /// Show the objects of this type, and the types that refer to them
    #[arg(long = "type", value_name = "NAME")]
    type_: Option<String>,

    /// Show the path to the object at or around ADDRESS, and its dominators; may be repeated
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    path: Vec<u64>,

    /// DUMP is a record of option timeline=PREFIX: write its collections as a Chrome trace, which
    /// ui.perfetto.dev draws, to stdout or the FILE of -o
    #[arg(long, conflicts_with_all = ["type_", "path", "formats", "top"])]
    timeline: bool,

    /// The file to summarise
    #[arg(value_name = "DUMP")]
    dump: PathBuf,
}

const MOST: usize = 1000;

fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| "is no address such as 0x7f1200340120".to_owned())
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    if args.timeline {
        return draw(args);
    }
    let output_args = args.output_args.all()?;
    let wanted = Wanted {
        top: if args.top == 0 { MOST } else { args.top },
        type_: args.type_.clone(),
        paths: args.path.clone(),
    };
    let summary = heap::make(&args.dump, &wanted)?;
    for note in &summary.notes {
        eprintln!("heapwright: {}: {note}", args.dump.display());
    }
    let name = args.dump.file_name().unwrap_or_default().to_string_lossy();
    let types = if args.top == 0 { usize::MAX } else { args.top };
    let document = output::heap::document(&summary, &name, types);
    for (format, file) in output_args {
        document.write(format, file).context("the summary could not be written")?;
    }
    Ok(Exit::Code(if summary.whole { 0 } else { NOT_WHOLE }))
}

fn draw(args: &Args) -> anyhow::Result<Exit> {
    let [(_, file)] = &mut args.output_args.all()?[..] else {
        return Err(wrong("a time line goes to one file".to_owned()));
    };
    let (timeline, problem) = timeline::read(&args.dump)
        .map_err(|error| anyhow::anyhow!("{}: {error}", args.dump.display()))?;
    if let Some(problem) = &problem {
        eprintln!("heapwright: {}: {problem}", args.dump.display());
    }
    let all = [timeline];
    match file.take() {
        Some(file) => {
            output::save_chrome(&all, file).context("the time line could not be written")?;
        }
        None => output::to_stdout(|out: &mut dyn Write| output::chrome(&all, out))?,
    }
    Ok(Exit::Code(if problem.is_some() { NOT_WHOLE } else { 0 }))
}
