//! Lines about processes without a last look, and about programs started without the library.
//!
//! The last look finds leaks, and damage to blocks that were never freed. A process has none if it
//! is killed, bypasses the library's functions at its end, or becomes a program that does not load
//! the library. Such a process never counts as clean: the report begins with a line about it, and
//! `check` does not end with 0.

use super::model::{Fate, Process, Report};
use crate::process::{End, signal_name};

/// The end of a line: the findings that may be missing.
const MISSED: &str = "its leaks, and damage that only the end shows, are not in this report";

/// Returns a line for each checked process without a last look, and for each foreign file.
pub(super) fn lines(report: &Report) -> Vec<String> {
    let of_processes = report.processes.iter().filter_map(line);
    unchecked(report)
        .into_iter()
        .chain(of_processes)
        .chain(report.foreign.iter().cloned())
        .collect()
}

/// Returns a line for each program that processes started without the library, however often.
fn unchecked(report: &Report) -> Vec<String> {
    let mut programs: Vec<(&str, u32, &Process, usize)> = Vec::new();
    for process in report.processes.iter().filter(|process| !process.is_skipped) {
        for (pid, name) in &process.unchecked {
            match programs.iter_mut().find(|(known, ..)| known == name) {
                Some((.., times)) => *times += 1,
                None => programs.push((name, *pid, process, 1)),
            }
        }
    }
    let lines = programs.into_iter().map(|(name, pid, process, times)| {
        let (who, it) = match (times, pid) {
            (1, 0) => (format!("a process ({name}) was"), "it"),
            (1, pid) => (format!("process {pid} ({name}) was"), "it"),
            (times, 0) => (format!("{times} processes ({name}) were"), "the first"),
            (times, pid) => (format!("{times} processes ({name}, first {pid}) were"), "the first"),
        };
        let parent = process.command.first().unwrap_or(&process.exe);
        format!(
            "{who} not checked: process {} ({parent}) started {it} without heapwright's \
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
                "ended with code {code} without heapwright's functions: by a system call of its own \
                 (let it call exit or _exit), as a program into which heapwright cannot be loaded \
                 (see heapwright doctor), or without room for its record"
            )
        }
        Fate::Unknown => String::from(
            "ended without a last look (it was killed, became a program into which heapwright cannot be loaded, or still runs)",
        ),
    };
    Some(format!("process {} ({program}) {how}: {MISSED}", process.pid))
}
