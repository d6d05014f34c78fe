//! `figures run` runs a plan (`figures::run`). `figures report` judges the results by a file of
//! figures (`figures::asked`). `figures smallest` finds the smallest heap of a program.
//!
//! `figures race` reads the file of `heapwright bench --format json -o FILE` ([`race`]), and judges
//! it by bench/programs/figures.txt.
//!
//! `figures store` puts the output of a command into docs/figures.json, `figures render` renders
//! the pages from it, and `figures check` refuses old figures ([`store`]).

mod limits;
mod race;
mod store;

use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use ::figures::asked::Report;
use ::figures::run::Runner;

/// Runs the plans of benches, and judges their results and races
#[derive(clap::Parser)]
enum Asked {
    /// Prints the figures of a race: the bounds, the measured values, the verdicts
    Race {
        /// The file of `heapwright bench --format json -o FILE`; - reads it from stdin
        file: String,
    },
    /// Runs each line of PLAN in each of ROUNDS rounds, in turns, through heapwright-launcher, and
    /// adds the numbers to RESULTS
    Run {
        plan: PathBuf,
        #[arg(value_parser = ::figures::options::number(1..=999_usize))]
        rounds: usize,
        launcher: PathBuf,
        results: PathBuf,
    },
    /// Prints the figures that ASKED defines, and tables, from RESULTS; ends with 1 if a figure is
    /// missed
    Report {
        /// Only failures and `must` figures count
        #[arg(long)]
        quick: bool,
        asked: PathBuf,
        results: PathBuf,
    },
    /// Prints the least KIB for which `COMMAND limit=KIB` ends well; - if there is none
    Smallest {
        /// Few steps, for short runs
        #[arg(long)]
        quick: bool,
        launcher: PathBuf,
        #[arg(trailing_var_arg = true, required = true)]
        command: Vec<String>,
    },
    /// Replaces SECTION of docs/figures.json by the Markdown on stdin, and renders the pages
    Store {
        section: String,
        #[command(flatten)]
        origin: store::Origin,
    },
    /// Renders the pages from docs/figures.json
    Render,
    /// Fails if a figure is older than DAYS, or of a commit that is no ancestor of HEAD
    Check {
        #[arg(long)]
        days: u64,
    },
}

const RACE: &str = include_str!("../../programs/figures.txt");

/// The longest time for a planned run: valgrind on a long program.
const SECONDS: u64 = 1200;

fn text_of(file: &str) -> Result<String, String> {
    let text = if file == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    text.map_err(|e| format!("cannot read {file}: {e}"))
}

fn run(asked: Asked) -> Result<bool, String> {
    match asked {
        Asked::Race { file } => show_race(&file),
        Asked::Run { plan, rounds, launcher, results } => {
            let plan = ::figures::plan::read(&plan)?;
            Runner::new(&launcher, SECONDS, &results)?.all(&plan, rounds)?;
            Ok(true)
        }
        Asked::Report { quick, asked, results } => {
            let report = Report::read(&asked, &results)?;
            print(&report.text())?;
            Ok(report.holds(quick))
        }
        Asked::Smallest { quick, launcher, command } => {
            let found = limits::smallest(&launcher, SECONDS, quick, &command)?;
            print(&found.map_or("-\n".to_owned(), |kib| format!("{kib}\n")))?;
            Ok(true)
        }
        Asked::Store { section, origin } => store::store(&section, origin, &text_of("-")?),
        Asked::Render => store::render(),
        Asked::Check { days } => store::check(days),
    }
}

fn show_race(file: &str) -> Result<bool, String> {
    let (cells, complete) = race::cells(&text_of(file)?).map_err(|e| format!("{file}: {e}"))?;
    let report = Report::of(RACE, cells)?;
    let part = if complete { "" } else { "The race was interrupted: this is a part of it.\n\n" };
    print(&(part.to_owned() + &report.text()))?;
    Ok(true)
}

fn print(text: &str) -> Result<(), String> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(format!("cannot write: {e}")),
        _ => Ok(()),
    }
}

fn main() -> ExitCode {
    ::figures::options::main(run)
}
