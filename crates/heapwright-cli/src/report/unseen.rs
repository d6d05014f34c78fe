//! Lines about processes that ended without a last look, and about programs that started without
//! the library.
//!
//! The last look finds leaks, and damage to blocks that were never freed. A process has none if it
//! is killed, bypasses the library's functions at its end, or becomes a program that does not load
//! the library. Such a process never counts as clean: the report begins with a line about it, and
//! `check` does not end with 0.

use super::model::{Fate, Process, Report};
use crate::process::{End, signal_name};

/// The end of a line: the findings that may be missing.
const MISSED: &str = "its leaks, and damage that only the end shows, are not in this report";

/// Returns a line for each checked process without a last look, and for each file among the records
/// that is no record.
pub(super) fn lines(report: &Report) -> Vec<String> {
    let of_processes = report
        .processes
        .iter()
        .flat_map(|process| unchecked(process).into_iter().chain(line(process)));
    of_processes.chain(report.foreign.iter().cloned()).collect()
}

/// Returns a line for each program that a process started without the library.
fn unchecked(process: &Process) -> Vec<String> {
    if process.is_skipped {
        return Vec::new();
    }
    let parent = process.command.first().unwrap_or(&process.exe);
    let lines = process.unchecked.iter().map(|(pid, name)| {
        let who = match *pid {
            0 => format!("a process ({name})"),
            pid => format!("process {pid} ({name})"),
        };
        format!(
            "{who} was not checked: process {} ({parent}) started it without heapwright's \
             environment variables (LD_PRELOAD, HEAPWRIGHT)",
            process.pid
        )
    });
    lines.collect()
}

fn line(process: &Process) -> Option<String> {
    // The lines about programs without the library report this already.
    let became_unchecked = process.unchecked.iter().any(|(pid, _)| *pid == process.pid);
    if process.is_skipped
        || became_unchecked
        || !process.options.split([',', ';']).any(|word| word == "mode=debug")
    {
        return None;
    }
    let program = process.command.first().unwrap_or(&process.exe);
    if process.end.is_some() {
        let why = process.no_leak_check.as_ref()?;
        return Some(format!(
            "process {} ({program}) could not be looked at for leaks: {why}",
            process.pid
        ));
    }
    let how = match process.fate {
        Fate::Running => {
            return Some(format!(
                "process {} ({program}) is still running: what it has not written yet, and what its end shows, are not in this report",
                process.pid
            ));
        }
        Fate::Ended(End::Signal { number, .. }) => format!("was killed by {}", signal_name(number)),
        Fate::Ended(End::Code(code)) => {
            format!(
                "ended with code {code} past heapwright's functions, as a program into which \
                 heapwright cannot be loaded, or it could not write its record"
            )
        }
        Fate::Unknown => String::from(
            "ended without a last look (it was killed, became a program into which heapwright cannot be loaded, or still runs)",
        ),
    };
    Some(format!("process {} ({program}) {how}: {MISSED}", process.pid))
}
