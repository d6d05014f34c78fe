//! The workloads of the thread-cache models: which cache a thread uses, against
//! each other and against other allocators. `ci/caches.sh` builds the programs
//! (programs/*.c) and finds the libraries; this program runs them and reports.
//!
//! ```text
//!   programs, libraries, --threads, --shared
//!        |
//!      plan ---- run: in turns, a process each ----> results.json
//!                                                        |
//!                                                  report: tables.md, figures, *.svg
//! ```
//!
//! [`options`] is the command line, [`setting`] an allocator as it is set up (a row of
//! every table), [`plan`] what is run, [`line`] what a program prints, [`run`] the
//! running, [`results`] what came of it and the file that keeps it, [`metric`] the
//! numbers that follow from a line, [`tables`] and [`figures`] what a person reads,
//! [`plot`] the pictures. Verdicts, tables and runs of processes are `figures`' (bench/figures).

mod figures;
mod line;
mod metric;
mod options;
mod plan;
mod plot;
mod results;
mod run;
mod setting;
mod tables;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use options::{Asked, Report, Run};
use results::Results;

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

/// Runs the plan and keeps what came of it; then as [`report`].
fn run(asked: &Run) -> Result<bool, String> {
    let plan = plan::of(&asked.scope);
    // Before an hour's work, not after it.
    std::fs::create_dir_all(&asked.out)
        .map_err(|e| format!("cannot make {}: {e}", asked.out.display()))?;
    let results = run::all(asked, &plan)?;
    let file = asked.out.join("results.json");
    write(&file, &results.to_json()?)?;
    report(&results, &asked.out, &asked.bounds, asked.quick)
}

/// Prints the tables and the figures, and writes the plots beside the results.
fn report(
    results: &Results,
    out: &Path,
    bounds: &figures::Bounds,
    quick: bool,
) -> Result<bool, String> {
    for workload in plan::WORKLOADS {
        if let Some(svg) = plot::of(results, workload) {
            write(&out.join(format!("{}.svg", workload.name)), &svg)?;
        }
    }
    let figures = figures::all(results, bounds);
    let mut text = ::figures::verdict::figures(&figures);
    text.push_str(&tables::all(results));
    text.push_str(&tables::feet(results));
    write(&out.join("tables.md"), &text)?;
    std::io::stdout().write_all(text.as_bytes()).map_err(|e| format!("cannot print: {e}"))?;
    Ok(results.is_sound() && (quick || ::figures::verdict::hold(&figures)))
}

fn report_file(asked: &Report) -> Result<bool, String> {
    let text = std::fs::read_to_string(&asked.results)
        .map_err(|e| format!("cannot read {}: {e}", asked.results.display()))?;
    let results =
        Results::from_json(&text).map_err(|e| format!("{}: {e}", asked.results.display()))?;
    let out = asked.results.parent().unwrap_or(Path::new(""));
    report(&results, out, &asked.bounds, false)
}

fn main() -> ExitCode {
    ::figures::options::main(|asked: Asked| match &asked {
        Asked::Run(asked) => run(asked),
        Asked::Report(asked) => report_file(asked),
    })
}
