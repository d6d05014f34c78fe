//! The figures of the debug mode and of `heapwright check`, from the numbers that `ci/debug.sh` and
//! `ci/check.sh` had measured (`figures run`) or counted themselves. [`report`] has the figures and
//! the tables.

mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use figures::cells::Cells;

/// Prints the tables; ends with 1 if a figure is missed or a run failed
#[derive(clap::Parser)]
#[command(name = "debug-figures")]
struct Asked {
    /// A missed figure does not matter
    #[arg(long)]
    quick: bool,
    /// Also writes the figures to this file
    #[arg(long)]
    tsv: Option<PathBuf>,
    /// The numbers
    results: PathBuf,
}

fn run(asked: Asked) -> Result<bool, String> {
    let results = Cells::read(&asked.results)?;
    let report = report::Report::of(&results);
    print!("{}", report.text());
    if let Some(path) = asked.tsv {
        figures::report::write(&path, &report.tsv())?;
    }
    Ok(report.holds(asked.quick))
}

fn main() -> ExitCode {
    figures::options::main(run)
}
