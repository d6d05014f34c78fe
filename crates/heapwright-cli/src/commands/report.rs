//! `heapwright report RECORD...` reports the debug allocator's findings, or a heap profile.
//!
//! Functions and lines come from the program's files, if these have not changed since the run.
//! Otherwise frames are offsets in the files.

use crate::output::{self, Format, Look};
use crate::process::Exit;
use crate::report::model::{Figure, Leak, Ready, Report, SITES, Wanted, leak_kinds};
use crate::report::point::Point;
use crate::report::{self, MOST_ERRORS, Options};
use anyhow::{Context, bail};
use heapwright_record::debug::Reach;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

/// The exit code if a record is damaged or cannot be read.
pub(crate) const COULD_NOT: u8 = 2;

/// The exit code if the report has findings that --fail-on names.
const FOUND: u8 = 1;

/// Report the findings of the debug allocator, or a heap profile, from records.
///
/// A RECORD is a file, or a folder with records in it. Findings with one cause in several records
/// are reported once. Exits with 0 if nothing was found that --fail-on names, 1 if something was.
/// Exits with 2 if a RECORD cannot be read, or is damaged and has no such finding.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  heapwright report prog.4242
  heapwright report --format json prog.4242 | jq '.errors[].sentence'
  heapwright report --show all --gen-suppressions valgrind records/
  heapwright report --suppress known.supp prog.4242 prog.4243")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) output_args: OutputArgs,

    /// The findings that make the exit code 1: errors, leaks (definitely lost), possible (leaks),
    /// growth, or none; several are joined by commas
    #[arg(long, value_name = "WHAT", default_value = "errors,leaks")]
    fail_on: FailOn,

    /// Report leaks and live blocks as they were at POINT. POINT is the number of a leak check, or
    /// a time since the start of the process, such as 10s
    #[arg(long, value_name = "POINT", default_value = "end")]
    at: Point,

    /// A record of the debug allocator or of a heap profile, or a folder of records
    #[arg(required = true, value_name = "RECORD")]
    records: Vec<PathBuf>,
}

/// How a report is written, by `report` and by `check`.
#[derive(clap::Args)]
pub(crate) struct OutputArgs {
    /// The format of the output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Write to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Hide the findings that FILE lists, in LeakSanitizer's or valgrind's language; may be
    /// repeated
    #[arg(long, value_name = "FILE")]
    suppress: Vec<PathBuf>,

    /// Report nothing about processes of PROGRAM, a file name with wildcards (* and ?), such as a
    /// build's compiler; may be repeated
    #[arg(long, value_name = "PROGRAM")]
    skip: Vec<String>,

    /// How to print a suppression with each finding
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Ready::Line)]
    gen_suppressions: Ready,

    /// Which leaks to report one by one: definite, indirect, possible, reachable,
    /// all or none; several are joined by commas
    #[arg(long, value_name = "KINDS", default_value = "definite")]
    show: Shown,

    /// The blocks of a heap profile to report
    #[arg(long, value_enum, value_name = "FIGURE", default_value_t = Figure::Peak)]
    figure: Figure,

    /// Report at most N different errors, and details of N groups of leaks; 0: all
    #[arg(long, value_name = "N", default_value_t = MOST_ERRORS)]
    limit: usize,
}

#[derive(Clone, Debug)]
struct Shown(Vec<Reach>);

impl std::str::FromStr for Shown {
    type Err = String;

    fn from_str(words: &str) -> Result<Self, String> {
        let known = "definite, indirect, possible, reachable, all and none";
        leak_kinds(words).map(Self).map_err(|word| unknown(word, known))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FailOn {
    errors: bool,
    leaks: bool,
    possible: bool,
    growth: bool,
}

impl std::str::FromStr for FailOn {
    type Err = String;

    fn from_str(words: &str) -> Result<Self, String> {
        let mut fail_on = Self::default();
        for word in words.split(',').map(str::trim) {
            match word {
                "errors" => fail_on.errors = true,
                "leaks" => fail_on.leaks = true,
                "possible" => fail_on.possible = true,
                "growth" => fail_on.growth = true,
                "none" => {}
                _ => return Err(unknown(word, "errors, leaks, possible, growth and none")),
            }
        }
        Ok(fail_on)
    }
}

fn unknown(word: &str, known: &str) -> String {
    format!("unknown value '{word}'; use {known}")
}

impl FailOn {
    pub(crate) fn is_in(self, report: &Report) -> bool {
        let is_lost = |reach| report.leaks.iter().any(|leak| leak.reach == reach);
        self.errors
            && (!report.errors.is_empty() || report.unreported.errors != 0 || report.unwritten != 0)
            || self.leaks && report.leaks.iter().any(Leak::is_definite)
            || self.possible && is_lost(Reach::Possible)
            || self.growth && !report.growths.is_empty()
    }

    pub(crate) fn looks_for_growth(self) -> bool {
        self.growth
    }

    pub(crate) fn but_leaks(self) -> Self {
        Self { leaks: false, possible: false, ..self }
    }
}

impl OutputArgs {
    pub(crate) fn options(&self) -> Options {
        let limit = Some(self.limit).filter(|limit| *limit != 0);
        Options {
            skip: self.skip.clone(),
            suppress: self.suppress.clone(),
            limit,
            everything: self.format.shows_all_stacks(),
            wanted: Wanted {
                details: self.show.0.clone(),
                suppressions: self.gen_suppressions,
                folder: std::env::current_dir().unwrap_or_default(),
                most: limit.unwrap_or(usize::MAX),
                figure: self.figure,
                sites: SITES,
            },
            quiet: false,
            at: Point::End,
            is_of_run: false,
        }
    }

    /// Returns whether the report needs only the sum of reachable blocks.
    pub(crate) fn sums_reachable(&self) -> bool {
        !self.shows_reachable() && self.suppress.is_empty()
    }

    pub(crate) fn shows_reachable(&self) -> bool {
        self.format.shows_all_stacks() || self.show.0.contains(&Reach::Reachable)
    }

    pub(crate) fn is_text(&self) -> bool {
        self.format == Format::Text
    }

    /// Opens the output file, before the work, so that a mistake in the name costs nothing.
    pub(crate) fn file(&self) -> anyhow::Result<Option<File>> {
        self.output.as_deref().map(super::open).transpose()
    }

    pub(crate) fn write_to(&self, report: &Report, file: File) -> io::Result<()> {
        output::render_to(file, report, self.format)
    }

    pub(crate) fn write(&self, report: &Report, out: &mut dyn Write, look: Look) -> io::Result<()> {
        let mut out = BufWriter::new(out);
        output::render(report, self.format, &mut out, look)?;
        out.flush()
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let output_args = &args.output_args;
    let file = output_args.file()?;
    let made = report::make(&args.records, &Options { at: args.at, ..output_args.options() })?;
    let report = &made.report;
    for line in output_args.format.left_out(report) {
        eprintln!("heapwright: {line}");
    }
    match file {
        Some(file) => {
            output_args.write_to(report, file).context("the report could not be written")?
        }
        None => {
            let look = Look::of(&io::stdout());
            output::to_stdout(|out| output_args.write(report, out, look))?;
        }
    }
    if report.processes.is_empty()
        && made.damaged != 0
        && args.records.iter().all(|path| path.is_dir())
    {
        bail!("none of the records could be read");
    }
    // A finding outweighs a damaged record.
    Ok(Exit::Code(if args.fail_on.is_in(report) {
        FOUND
    } else if made.damaged != 0 {
        COULD_NOT
    } else {
        0
    }))
}
