//! The workloads of the thread-cache models: which cache a thread uses, against
//! each other and against other allocators. `ci/caches.sh` builds the programs
//! (programs/*.c) and finds the libraries; this program has them run and reports.
//!
//! ```text
//!   programs, libraries, --threads, --shared
//!        |
//!      plan ---- figures::run: in turns, a process each ----> results.tsv
//!                                                        |
//!                                                  report: tables.md, figures, *.svg
//! ```
//!
//! [`options`] is the command line, [`setting`] an allocator as it is set up (a row of
//! every table), [`plan`] what is run, [`results`] what came of it, [`metric`] the
//! numbers that follow from what a program prints, [`tables`] and [`figures`] what a person reads,
//! [`plot`] the pictures. Runs, cells, verdicts and tables are `figures`' (bench/figures).

mod figures;
mod metric;
mod options;
mod plan;
mod plot;
mod results;
mod setting;
mod tables;

use std::path::Path;
use std::process::ExitCode;

use ::figures::cells::Cells;
use ::figures::plan::Planned;
use ::figures::report::{Report, folder, write};
use ::figures::run::Runner;

use options::{Asked, Run};
use plan::{EMPTY, UNTIMED, WORKLOADS};
use results::Results;
use setting::{Allocator, PER_CPU, is_ours};

/// Why a setting cannot be had, if it cannot: it is tried with the empty program. One that
/// complains (a library that does not know the option, or that the loader ignores) must not be
/// taken for one that works.
fn why_not(runner: &Runner, asked: &Run, setting: &Allocator) -> Result<Option<String>, String> {
    let program = asked.programs.join(EMPTY).display().to_string();
    let planned = Planned::new((EMPTY, EMPTY, &setting.name), &setting.environment, vec![program]);
    let ended = runner.once(&planned)?;
    let complaint = ended.stderr.lines().next().map(|line| format!("it says: {line}"));
    Ok(ended.end.err().or(complaint))
}

/// The number behind a label that ends in `word`, in what `stats=exit` prints:
///
/// ```text
/// heapwright:   rseq commits     123456
/// ```
fn printed(stderr: &str, word: &str) -> Option<f64> {
    stderr.lines().find_map(|line| {
        let (_, rest) = line.strip_prefix("heapwright:")?.split_once(word)?;
        rest.trim_start_matches(':').split_whitespace().next()?.parse().ok()
    })
}

/// Adds, of what per-CPU caches did in rpc, what was a restartable sequence that committed.
fn commits(runner: &mut Runner, plan: &[Planned]) -> Result<(), String> {
    let is_counted = |run: &&Planned| {
        run.cell.0 == "rpc" && run.cell.2 == PER_CPU && run.cell.1.ends_with(UNTIMED)
    };
    for planned in plan.iter().filter(is_counted) {
        let mut counting = planned.clone();
        for variable in &mut counting.environment {
            if variable.starts_with("HEAPWRIGHT=") {
                variable.push_str(",stats=exit");
            }
        }
        let said = runner.once(&counting)?.stderr;
        let (done, fell_back) = (printed(&said, "rseq commits"), printed(&said, "rseq fallbacks"));
        if let (Some(done), Some(fell_back)) = (done, fell_back)
            && done + fell_back > 0.0
        {
            let percent = done / (done + fell_back) * 100.0;
            runner.note(&planned.cell, 1, "commits_percent", percent)?;
        }
    }
    Ok(())
}

/// Runs the plan and keeps what came of it; then as [`show`].
fn run(asked: &Run) -> Result<bool, String> {
    // Before an hour's work, not after it.
    folder(&asked.libraries.out)?;
    let file = asked.libraries.out.join("results.tsv");
    write(&file, "")?;
    let mut runner = Runner::new(&asked.libraries.launcher, asked.seconds, &file)?;
    let mut report = Report::default();
    let mut settings = Vec::new();
    for setting in asked.settings()? {
        match why_not(&runner, asked, &setting)? {
            None => settings.push(setting),
            Some(why) if is_ours(&setting.name) => {
                report.failed(format!("{} is left out: {why}", setting.name));
            }
            Some(why) => report.missed_round(format!("{} is left out: {why}", setting.name)),
        }
    }
    if settings.is_empty() {
        return Err("none of the settings can be had".to_owned());
    }
    let plan = plan::of(&asked.scope, &asked.programs, &settings);
    runner.all(&plan, asked.rounds)?;
    commits(&mut runner, &plan)?;
    show(report, &file, &asked.bounds, asked.quick)
}

/// Prints the tables and the figures, and writes the plots beside the results.
fn show(
    mut report: Report,
    file: &Path,
    bounds: &figures::Bounds,
    quick: bool,
) -> Result<bool, String> {
    let results = Results::of(Cells::read(file)?);
    let out = file.parent().unwrap_or(Path::new(""));
    for workload in WORKLOADS {
        if let Some(svg) = plot::of(&results, workload) {
            write(&out.join(format!("{}.svg", workload.name)), &svg)?;
        }
    }
    figures::all(&results, bounds, &mut report);
    for (title, tables) in tables::all(&results) {
        report.table(&title, &tables);
    }
    if !results.is_sound() {
        report.failed("runs of ours failed or complained, see above".to_owned());
    }
    report.write(out)?;
    report.print()?;
    Ok(report.is_sound() && (quick || report.holds()))
}

fn main() -> ExitCode {
    ::figures::options::main(|asked: Asked| match &asked {
        Asked::Run(asked) => run(asked),
        Asked::Report(asked) => show(Report::default(), &asked.results, &asked.bounds, false),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_by_their_labels() {
        let said = "heapwright: memory of process 7 (rpc) after 12 ms\n\
                    heapwright:   rseq commits            123456\n\
                    heapwright:   rseq fallbacks               3 of them at the start\n";
        assert_eq!(printed(said, "rseq commits"), Some(123_456.0));
        assert_eq!(printed(said, "rseq fallbacks"), Some(3.0));
        assert_eq!(printed(said, "rseq aborts"), None);
        assert_eq!(printed("rpc: rseq commits 5", "rseq commits"), None);
    }
}
