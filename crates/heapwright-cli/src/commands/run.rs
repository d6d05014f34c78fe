//! `heapwright run [--stats] [--timeline FILE] -- CMD` runs a program on heapwright.
//!
//! Without --stats (or --format, or -o) and --timeline, this process becomes the program. With any
//! of them, the program is a child that leaves its statistics and time line in a private folder.
//!
//! `--hardened` and `--on-misuse` stand for options of the library. They win over the options in
//! HEAPWRIGHT. `--option` may not set the same options again.

use super::{OutputArgs, ProgramArgs, after_writing};
use crate::heap::timeline;
use crate::inspect::{self, Verdict};
use crate::output::run::{Run, document};
use crate::output::{self, Look, Plain};
use crate::preload::{self, Options};
use crate::process::{self, End, Exit, Outcome};
use crate::statistics::{Collected, Folder};
use crate::wrong::wrong;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The part of a time line's name before the pid.
const TIMELINE: &str = "timeline";

/// Run a program on heapwright and, on request, report its use of memory.
///
/// Signals go to the program. This command ends with the program's exit code or
/// fatal signal. Failures before the program starts give 127 (no such command),
/// 126 (it cannot be run), 2 (a wrong command line) or 125 (anything else).
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "heapwright run [OPTIONS] [--] CMD [ARGS]...")]
#[command(after_help = "\
Examples:
  heapwright run -- ./server --port 80
  heapwright run --stats -- python3 -c 'print(1)'
  heapwright run --format json -o memory.json -- make -j4
  heapwright run --option purge=0 -- ./program
  heapwright run --timeline trace.json -- ./interpreter      for ui.perfetto.dev
  heapwright run --hardened -- ./server
  heapwright run --hardened=full --on-misuse report -- ./server")]
pub(crate) struct Args {
    /// Report the program's use of memory on stderr when it has ended. --format and --output have
    /// this effect, too
    #[arg(long)]
    pub(crate) stats: bool,

    /// Find and stop misuse of memory, cheaply enough for production (option mode=hardened): exact
    /// sizes, canaries, quarantine, guards, random places. full does more of each
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "light"
    )]
    hardened: Option<Hardened>,

    /// The reaction when --hardened finds misuse: end the program, or print a line and go on
    /// [default: abort]
    #[arg(long, value_enum, value_name = "WHAT", requires = "hardened")]
    on_misuse: Option<OnMisuse>,

    /// Write the collections of the program's collected heaps to FILE, as a Chrome trace, which
    /// ui.perfetto.dev and chrome://tracing draw
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,

    #[command(flatten)]
    output_args: OutputArgs<Plain>,

    #[command(flatten)]
    pub(crate) program: ProgramArgs,
}

/// The strength of the hardened heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Hardened {
    /// Cheap enough for production
    Light,
    /// More guards, a longer quarantine, freed blocks verified to the last byte
    Full,
}

/// The hardened heap's reaction to misuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum OnMisuse {
    /// Print one line, and end the program
    Abort,
    /// Print one line, and go on
    Report,
}

impl Args {
    fn wants_stats(&self) -> bool {
        self.stats || self.output_args.format.is_some() || self.output_args.output.is_some()
    }

    fn flags(&self) -> anyhow::Result<Vec<String>> {
        let mode = self.hardened.map(|how| match how {
            Hardened::Light => "mode=hardened:light",
            Hardened::Full => "mode=hardened:full",
        });
        let on_misuse = self.on_misuse.map(|what| match what {
            OnMisuse::Abort => "on_misuse=abort",
            OnMisuse::Report => "on_misuse=report",
        });
        let flags = [("--hardened", "mode", mode), ("--on-misuse", "on_misuse", on_misuse)];
        let mut options = Vec::new();
        for (flag, key, option) in flags {
            let Some(option) = option else { continue };
            if preload::sets(&self.program.options, key) {
                return Err(wrong(format!(
                    "{flag} sets option {key} itself; leave one of them out"
                )));
            }
            options.push(option.to_owned());
        }
        Ok(options)
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<Exit> {
    let library = preload::library(args.program.library.given().as_deref())?;
    let mut options = Options::inherited(std::env::var_os("HEAPWRIGHT").as_deref());
    let given = [args.flags()?, args.program.options.clone()].concat();
    for option in &given {
        options.add(option)?;
    }
    preload::refuse_bad(&library, &options, &given, "--option ")?;
    if args.wants_stats() || args.timeline.is_some() {
        return report(&args, &library, options);
    }
    let program = args.program.program(&library, &options)?;
    let error = process::replace(program);
    Ok(not_started(&args.program.command[0], &error))
}

pub(crate) fn command(
    words: &[OsString],
    library: &Path,
    options: &Options,
) -> anyhow::Result<Command> {
    let mut command = Command::new(&words[0]);
    let before = std::env::var_os("LD_PRELOAD");
    command
        .args(&words[1..])
        .env("LD_PRELOAD", preload::preload_variable(library, before.as_deref()));
    if let Some(value) = options.value()? {
        command.env("HEAPWRIGHT", value);
    }
    Ok(command)
}

/// Prints why the program did not start. Returns the exit code.
pub(crate) fn not_started(name: &OsStr, error: &io::Error) -> Exit {
    let file = inspect::path::find(name).ok();
    let (text, code) = process::explain(name, error, file.as_deref());
    eprintln!("heapwright: {text}");
    Exit::Code(code)
}

fn report(args: &Args, library: &Path, mut options: Options) -> anyhow::Result<Exit> {
    let set = |key: &str| args.program.options.iter().any(|option| option.contains(key));
    if args.wants_stats() && set("stats_file=") {
        let why = "--stats sets option stats_file itself; leave one of them out";
        return Err(wrong(why.to_owned()));
    }
    if args.timeline.is_some() && set("timeline=") {
        let why = "--timeline sets option timeline itself; leave one of them out";
        return Err(wrong(why.to_owned()));
    }
    let file = args.output_args.file()?;
    let drawing = args.timeline.as_deref().map(super::open).transpose()?;
    super::refuse_same(file.iter().chain(&drawing))?;
    let folder = Folder::new()?;
    if args.wants_stats() {
        options.stats_file(&folder.prefix());
    }
    if drawing.is_some() {
        options.timeline(&folder.path().join(TIMELINE));
    }
    let outcome = match process::watch(args.program.program(library, &options)?) {
        Ok(outcome) => outcome,
        Err(error) => return Ok(not_started(&args.program.command[0], &error)),
    };
    let mut exit = Exit::from(outcome.end);
    if let Some(drawing) = drawing {
        let drawn = draw(&args.program.command[0], &outcome, &folder, drawing);
        exit = after_writing(exit, "the time line", true, drawn);
    }
    if !args.wants_stats() {
        return Ok(exit);
    }
    if args.output_args.format() == Plain::Text {
        args.program.note_python();
    }
    let Collected { main, others, unreadable } = folder.collect(outcome.pid);
    drop(folder);
    let stats = match main {
        Some(Ok(stats)) => Ok(stats),
        Some(Err(problem)) => Err(format!("its statistics are unreadable: {problem}")),
        None => Err(why_none(&args.program.command[0], &outcome)),
    };
    let run = Run { command: args.program.command.clone(), outcome, stats, others, unreadable };
    let (is_file, written) = (file.is_some(), write(&run, args.output_args.format(), file));
    Ok(after_writing(exit, "the report", is_file, written))
}

/// Writes the collections of all processes as a Chrome trace.
fn draw(name: &OsStr, outcome: &Outcome, folder: &Folder, file: File) -> io::Result<()> {
    let name = name.to_string_lossy();
    let (all, notes) = timeline::collect(folder.path(), TIMELINE, outcome.pid, &name);
    for note in notes {
        eprintln!("heapwright: {note}");
    }
    if all.iter().all(|timeline| timeline.events.is_empty()) {
        eprintln!(
            "heapwright: the time line is empty: {name} ran no collection in a collected heap of heapwright"
        );
    }
    output::save_chrome(&all, file)
}

fn write(run: &Run, format: Plain, file: Option<File>) -> anyhow::Result<()> {
    let document = document(run);
    if file.is_some() {
        return document.write(format, file);
    }
    let mut stderr = io::stderr().lock();
    let text = document.rendered(format, Look::of(&stderr))?;
    let gap = if format == Plain::Text { "\n" } else { "" };
    Ok(stderr.write_all(format!("{gap}{text}").as_bytes())?)
}

pub(crate) fn why_none(name: &OsStr, outcome: &Outcome) -> String {
    let (killed, ended) =
        ("it was killed before it could write them", "it ended without its exit handlers");
    why_nothing(name, outcome, killed, ended)
}

/// Returns why a program left no file: a reason that the program itself shows. Without one it is
/// `killed` if a signal ended the program, else `ended` with other possible reasons.
pub(crate) fn why_nothing(name: &OsStr, outcome: &Outcome, killed: &str, ended: &str) -> String {
    let report = inspect::inspect(name, preload::target(preload::named().as_deref()));
    match (report.verdict(), report.reason(), outcome.end) {
        (Verdict::No, Some(finding), _) => finding.text.clone(),
        (_, _, End::Signal { .. }) => killed.to_owned(),
        _ => format!(
            "{ended}, became a program into which heapwright cannot be loaded, or may not write to the temporary folder \
             (see heapwright doctor)"
        ),
    }
}
