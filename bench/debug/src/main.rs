//! The figures of the debug mode and of `heapwright check`. `ci/debug.sh` and
//! `ci/check.sh` build the programs and write down what is to be run (a plan);
//! this program runs it and reports.
//!
//! ```text
//! plan: what to run ---- run: in turns, each under the launcher ----> results
//! what the script counts itself (instructions, captures) -----------> results
//!                                         results ---- report ----> the tables
//! ```
//!
//! [`plan`] is the file of runs, [`run`] one run, [`reported`] what a checker says at
//! its end, [`results`] the file of numbers, [`report`] the figures and tables.

mod plan;
mod report;
mod reported;
mod results;
mod run;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: debug-figures run PLAN ROUNDS LAUNCHER RESULTS
       debug-figures report [--quick] [--tsv FILE] RESULTS

  run     runs each line of PLAN in each of ROUNDS rounds, in turns, through
          heapwright-launcher, and adds the numbers to RESULTS
  report  prints the tables; ends with 1 if a figure is missed or a run failed,
          with --quick only in the latter case; --tsv also writes the figures
          to a file
";

fn run(arguments: &[String]) -> Result<bool, String> {
    let [plan, rounds, launcher, results] = arguments else { return Err(USAGE.to_owned()) };
    let rounds = rounds.parse().map_err(|_| format!("'{rounds}' is no number of rounds"))?;
    let runs = plan::read(Path::new(plan))?;
    let runner = run::Runner::new(PathBuf::from(launcher), results::Writer::append(results)?)?;
    runner.all(&runs, rounds)?;
    Ok(true)
}

fn report(arguments: &[String]) -> Result<bool, String> {
    let (mut quick, mut tsv, mut file) = (false, None, None);
    let mut left = arguments.iter();
    while let Some(argument) = left.next() {
        match argument.as_str() {
            "--quick" => quick = true,
            "--tsv" => tsv = Some(left.next().ok_or(USAGE)?),
            _ => file = Some(argument),
        }
    }
    let results = results::Results::read(file.ok_or(USAGE)?)?;
    let report = report::Report::of(&results);
    let mut out = std::io::stdout();
    out.write_all(report.text().as_bytes()).map_err(|e| format!("cannot write: {e}"))?;
    if let Some(path) = tsv {
        std::fs::write(path, report.tsv()).map_err(|e| format!("cannot write {path}: {e}"))?;
    }
    Ok(report.holds(quick))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((word, rest)) if word == "run" => run(rest),
        Some((word, rest)) if word == "report" => report(rest),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("debug-figures: {message}");
            ExitCode::from(2)
        }
    }
}
