//! `heapwright valgrind [OPTIONS] PROGRAM [ARGS]` is `check` for callers of valgrind.
//!
//! Build systems, test runners and editors know valgrind by its options, its files and its exit
//! code. This command takes memcheck's options ([`options`]) and prints in memcheck's words
//! (`output::memcheck`). `--install DIR` puts a program called `valgrind` into a folder for PATH.
//!
//! ```text
//! valgrind                         here
//! a report during the run          all reports after the program's end
//! a log for each process (%p)      likewise: a report for each record
//! one log for all                  text: one report after another; XML: one document
//! children by fork                 reported
//! children by exec                 reported with --trace-children=yes; in debug mode in any case
//! --error-exitcode                 also if a reported child had errors
//! ```
//! The command returns the program's exit code, as valgrind does. An unchecked run must not look
//! clean: then the command returns 125, as `check` does.

mod freeres;
mod install;
mod options;
mod target;

use super::after_writing;
use super::checked::{How, Prints, cannot_be_checked, checked, keep};
use crate::inspect;
use crate::output::memcheck::{self, Style};
use crate::preload;
use crate::process::Exit;
use crate::report::model::{Process, Report, Wanted};
use crate::report::point::Point;
use crate::report::{self, MOST_ERRORS};
use crate::wrong::{is_wrong, wrong};
use anyhow::bail;
use heapwright_record::debug::FindingKind;
use options::{Asked, Children, Leaks, Line};
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use target::{Target, To};

/// Check a program with valgrind's options, output and exit code.
///
/// Takes the options of memcheck that build systems and editors use, and refuses others. --help
/// without other words lists the options. Does not look for uninitialised values.
#[derive(clap::Args)]
#[command(verbatim_doc_comment, disable_help_flag = true)]
#[command(override_usage = "heapwright valgrind [VALGRIND'S OPTIONS] PROGRAM [ARGS]...
       heapwright valgrind --install DIR")]
pub(crate) struct Args {
    /// Valgrind's options, the program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    words: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let asked = match options::parse(&args.words)? {
        Line::Help => return said(&options::help()),
        // Scripts compare the first word with the version of valgrind that they need.
        Line::Version => {
            return said(&format!("valgrind-3.24.0 (heapwright {})\n", env!("CARGO_PKG_VERSION")));
        }
        Line::Install(folder) => return install::install(&folder),
        Line::Run(asked) => *asked,
    };
    let name = &asked.program[0];
    if asked.children != Children::Executed
        && let Some(reason) =
            cannot_be_checked(&inspect::inspect(name, preload::target(preload::named().as_deref())))
    {
        bail!("{} cannot be checked: {reason}", name.display());
    }
    let target = Target::open(&asked.to)?;
    let _messages = asked.messages.as_ref().map(Target::open).transpose()?;
    for line in &asked.not_done {
        eprintln!("heapwright: {line}");
    }
    let how = how(&asked);
    report::check(&how).map_err(|error| is_wrong(&error))?;
    let checked = match checked(&asked.program, &library_options(&asked), Prints::Everything)? {
        Ok(checked) => checked,
        Err(exit) => return Ok(exit),
    };
    let outcome = &checked.end.outcome;
    let style = style(&asked, &args.words);
    let mut reports = reports(checked.records(), outcome.pid, &asked, &how)?;
    checked.end.note_in(&mut reports[0], &How::PLAIN);
    let has_errors =
        reports.iter().any(|report| style.counted(report).1 != 0 || report.unwritten != 0);
    let is_file = asked.to != To::Descriptor(2);
    let written = write(target, &asked, &style, &reports, outcome.pid);
    let exit = match asked.error_exitcode {
        Some(code) if has_errors => Exit::Code(code),
        _ => checked.end.exit(&reports[0]),
    };
    Ok(after_writing(exit, "the report", is_file, written))
}

fn said(text: &str) -> anyhow::Result<Exit> {
    crate::output::to_stdout(|out| out.write_all(text.as_bytes()))?;
    Ok(Exit::Code(0))
}

fn how(asked: &Asked) -> report::Options {
    // `freeres` decides by the leaks' functions which leaks count.
    let details =
        if asked.leaks == Leaks::No { Vec::new() } else { crate::report::model::LEAKS.to_vec() };
    report::Options {
        skip: Vec::new(),
        suppress: asked.suppressions.clone(),
        limit: Some(MOST_ERRORS).filter(|_| asked.limit),
        everything: false,
        wanted: Wanted { details, suppressions: asked.ready, ..Wanted::default() },
        quiet: true,
        at: Point::End,
        is_of_run: false,
    }
}

fn library_options(asked: &Asked) -> Vec<String> {
    let mut options = Vec::new();
    if asked.leaks != Leaks::No {
        options.push("leaks=exit,reachable=all".to_owned());
    }
    options.extend(asked.frames.map(|frames| format!("traces={frames}")));
    options.extend(asked.heuristics.iter().map(|names| format!("heuristics={names}")));
    options
}

fn style(asked: &Asked, words: &[OsString]) -> Style {
    let counts = asked.leaks == Leaks::Full;
    let own = words.len() - asked.program.len();
    let own = words[..own].iter().map(|word| word.to_string_lossy().into_owned());
    Style {
        quiet: asked.quiet,
        lists: asked.lists,
        errors_for: if counts { asked.errors_for.clone() } else { Vec::new() },
        has_more: asked.leaks == Leaks::Summary,
        below_main: asked.below_main,
        paths: asked.paths.clone(),
        command: std::iter::once("heapwright valgrind".to_owned()).chain(own).collect(),
        qualifiers: asked.to.qualifiers(),
        comment: asked.comment.clone(),
    }
}

/// Returns one report for each process, the started one's first, or a single report if all go into
/// one XML document. The list is never empty.
fn reports(
    folder: &Path,
    started: u32,
    asked: &Asked,
    how: &report::Options,
) -> anyhow::Result<Vec<Report>> {
    let records = report::of_run(folder).unwrap_or_default();
    let mut made = Vec::new();
    for record in &records {
        let report = report::make(std::slice::from_ref(record), how)?.report;
        made.push((record, report));
    }
    let first = |report: &Report| report.first().map(|process| (process.began, process.pid));
    made.sort_by_key(|(_, report)| {
        (report.first().is_none_or(|process| process.pid != started), first(report))
    });
    let processes = made.iter().flat_map(|(_, report)| &report.processes);
    let wanted = followed(processes, started, asked);
    let is_wanted = |process: &Process| wanted.contains(&(process.pid, process.began));
    made.retain_mut(|(_, report)| keep(report, is_wanted));
    let mut reports: Vec<Report> = if asked.xml && !asked.to.is_for_each() && made.len() > 1 {
        let all: Vec<PathBuf> = made.into_iter().map(|(record, _)| record.clone()).collect();
        vec![report::make(&all, how)?.report]
    } else {
        made.into_iter().map(|(_, report)| report).collect()
    };
    if reports.is_empty() {
        reports.push(Report { wanted: how.wanted.clone(), ..Report::default() });
    }
    for report in &mut reports {
        if asked.children != Children::Executed {
            report.processes.iter_mut().for_each(|process| process.started.clear());
        }
        if asked.children == Children::None {
            report.processes.iter_mut().for_each(|process| process.copies.clear());
        }
        freeres::leave_out(report, asked.c_library_frees, asked.cxx_library_frees);
        let shown = if asked.leaks == Leaks::Full { asked.show.clone() } else { Vec::new() };
        report.wanted.details = shown;
        if !asked.mismatched {
            report.errors.retain(|error| {
                let kind = error.finding.kind;
                kind != FindingKind::AllocatorMismatch && kind != FindingKind::SizeMismatch
            });
        }
    }
    Ok(reports)
}

/// A program in a process: its pid, and its start time.
type Ran = (u32, u64);

/// Returns the programs to report: the started one; its forks (the same program in a child), unless
/// these are silent; and executed programs if the user asked for them.
fn followed<'a>(
    processes: impl Iterator<Item = &'a Process>,
    started: u32,
    asked: &Asked,
) -> HashSet<Ran> {
    let mut wanted: Vec<&Process> = Vec::new();
    let mut all: Vec<&Process> = processes.collect();
    all.sort_by_key(|process| process.began);
    for process in all {
        let is_first = process.pid == started && wanted.is_empty();
        let is_same = |other: &&Process| {
            other.pid == process.parent
                && (&other.exe, &other.command) == (&process.exe, &process.command)
        };
        let is_fork =
            wanted.iter().any(is_same) && !wanted.iter().any(|other| other.pid == process.pid);
        let is_skipped = || asked.skip.iter().any(|pattern| report::glob(pattern, &process.exe));
        let is_wanted = match asked.children {
            _ if is_first => true,
            Children::None => false,
            Children::Forked => is_fork,
            Children::Executed => is_fork || !is_skipped(),
        };
        if is_wanted {
            wanted.push(process);
        }
    }
    wanted.iter().map(|process| (process.pid, process.began)).collect()
}

fn write(
    target: Target,
    asked: &Asked,
    style: &Style,
    reports: &[Report],
    started: u32,
) -> anyhow::Result<()> {
    let mut target = target;
    for report in reports {
        let pid = report.first().map_or(started, |process| process.pid);
        let mut text = Vec::new();
        if asked.xml {
            memcheck::xml::write(report, style, &mut text)?;
        } else {
            memcheck::text::write(report, style, &mut text)?;
        }
        target.write(pid, &text)?;
    }
    Ok(())
}

fn refused(what: &str) -> anyhow::Error {
    wrong(format!("valgrind: {what}; see 'heapwright valgrind --help'"))
}
