//! `figures run` runs a plan that a script wrote (`figures::run`), `figures report` judges what came
//! by a file of figures (`figures::asked`), `figures smallest` finds the smallest heap in which a
//! program runs. `figures race` says what was asked of the race, what was measured, and the verdict.
//!
//! `heapwright bench --format json -o FILE` keeps every single run. `race` reads
//! that file and answers the project's questions about it: a table of figures
//! (a bound, a ratio with its 95 % interval, whether the bound holds), and two
//! tables for the documentation, time and peak memory of each program under
//! each allocator. Nothing is measured here: the same file gives the same text.
//!
//! `figures store` puts what a command measured into docs/figures.json, `figures render` renders
//! the pages from it, and `figures check` refuses old figures ([`store`]).
//!
//! [`race`] is the file in memory, and two allocators on one program or on all; [`figures`] has the
//! bounds, [`tables`] the tables.

mod figures;
mod limits;
mod race;
mod store;
mod tables;

use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use ::figures::asked::Report;
use ::figures::run::Runner;
use race::Race;

/// Runs what the benches plan, and says what a race shows
#[derive(clap::Parser)]
enum Asked {
    /// Prints the figures of a race: what was asked, what was measured, the verdict
    Race {
        /// Fail if a bound is missed or could not be judged
        #[arg(long)]
        strict: bool,
        /// What `heapwright bench --format json -o FILE` wrote; - reads it from stdin
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
    /// Prints what ASKED asks of RESULTS, and tables; ends with 1 if a figure is missed
    Report {
        /// A missed figure does not matter
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
    /// Fails if a figure is older than DAYS, or of a commit that is no ancestor
    Check {
        #[arg(long)]
        days: u64,
    },
}

/// The longest that a planned run may take: valgrind on a long program.
const SECONDS: u64 = 1200;

fn text_of(file: &str) -> Result<String, String> {
    let text = if file == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    text.map_err(|e| format!("cannot read {file}: {e}"))
}

fn read(file: &str) -> Result<Race, String> {
    let text = text_of(file)?;
    Race::parse(&text).map_err(|e| format!("{file}: {e}"))
}

fn run(asked: Asked) -> Result<bool, String> {
    match asked {
        Asked::Race { strict, file } => show_race(strict, &file),
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

fn show_race(strict: bool, file: &str) -> Result<bool, String> {
    let race = read(file)?;
    let judged = figures::all(&race);
    let text = [
        figures::table(&judged),
        figures::by_kind(&race),
        tables::time(&race),
        tables::peak(&race),
        tables::feet(&race),
    ]
    .join("\n");
    print(&text)?;
    Ok(!strict || judged.iter().all(|figure| figure.verdict.holds()))
}

fn print(text: &str) -> Result<(), String> {
    match std::io::stdout().write_all(text.as_bytes()) {
        // A reader that has seen enough (head) is no failure.
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(format!("cannot write: {e}")),
        _ => Ok(()),
    }
}

fn main() -> ExitCode {
    ::figures::options::main(run)
}
