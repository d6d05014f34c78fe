//! Lines about processes without a last look, and about programs started without the library.
//!
//! The last look finds leaks, and damage to blocks that were never freed. A process has none if it
//! is killed, bypasses the library's functions at its end, or becomes a program that does not load
//! the library. Such a process never counts as clean: the report begins with a line about it, and
//! `check` does not end with 0.

use super::model::{Fate, Process, Report, Started, StartedHow};
use crate::process::{End, signal_name};
use heapwright_record::debug::{Ending, UNLOADABLE};
use std::collections::HashSet;
use std::path::PathBuf;

/// The end of a line: the findings that may be missing.
const MISSED: &str = "its leaks, and damage that only the end shows, are not in this report";

/// The most programs and children to name for one process.
const MOST: usize = 100;

/// Returns the lines about programs, processes, children and foreign files, in this order. `fate`
/// knows the ends of processes without a record.
pub(super) fn lines(report: &Report, fate: &dyn Fn(u32) -> Fate) -> Vec<String> {
    let of_processes = report.processes.iter().filter_map(line);
    unchecked(report)
        .into_iter()
        .chain(of_processes)
        .chain(lost_children(report, fate))
        .chain(report.foreign.iter().cloned())
        .collect()
}

/// Returns a line for each program that processes started without the library, however often.
fn unchecked(report: &Report) -> Vec<String> {
    let pids: HashSet<u32> = report.processes.iter().map(|process| process.pid).collect();
    let mut programs: Vec<(&Started, &Process, usize)> = Vec::new();
    for process in report.processes.iter().filter(|process| !process.is_skipped) {
        let has_record = |started: &Started| match started.how {
            StartedHow::Without => false,
            _ if started.pid == process.pid => {
                process.end.is_some_and(|end| end.ending == Ending::Exec)
            }
            _ => pids.contains(&started.pid),
        };
        let unloaded = |started: &&Started| {
            matches!(started.how, StartedHow::Without | StartedHow::Unloadable(_))
                && !has_record(started)
        };
        for started in process.started.iter().filter(unloaded).take(MOST) {
            let is_it = |known: &Started| (&known.name, known.how) == (&started.name, started.how);
            match programs.iter_mut().find(|(known, ..)| is_it(known)) {
                Some((.., times)) => *times += 1,
                None => programs.push((started, process, 1)),
            }
        }
    }
    let lines = programs.into_iter().map(|(Started { pid, name, how }, process, times)| {
        let (who, it) = match (times, *pid) {
            (1, 0) => (format!("a process ({name}) was"), "it"),
            (1, pid) => (format!("process {pid} ({name}) was"), "it"),
            (times, 0) => (format!("{times} processes ({name}) were"), "the first"),
            (times, pid) => (format!("{times} processes ({name}, first {pid}) were"), "the first"),
        };
        let parent = process.command.first().unwrap_or(&process.exe);
        let started = format!("{who} not checked: process {} ({parent}) started {it}", process.pid);
        match how {
            StartedHow::Unloadable(why) => format!("{started}, {}", unloadable(why)),
            _ => format!(
                "{started} without heapwright's environment variables (LD_PRELOAD, HEAPWRIGHT)"
            ),
        }
    });
    lines.collect()
}

/// The end of a line about a program into which the library cannot be loaded.
fn unloadable(why: &str) -> &'static str {
    let [is_static, has_rights, _] = UNLOADABLE.map(|known| known == why);
    if is_static {
        "and heapwright cannot be loaded into a static program"
    } else if has_rights {
        "and the kernel runs it with other rights (set-uid, set-gid), without LD_PRELOAD"
    } else {
        "and it is a program for another machine, or a 32-bit one"
    }
}

/// Returns a line for each child without a record, which was killed before it wrote anything, or
/// bypassed the library's functions.
fn lost_children(report: &Report, fate: &dyn Fn(u32) -> Fate) -> Vec<String> {
    let (mut known, mut lines) = (HashSet::new(), Vec::new());
    for process in report.processes.iter().filter(|process| !process.is_skipped) {
        let program = process.command.first().unwrap_or(&process.exe);
        let started = process.started.iter().filter(|started| started.how == StartedHow::AsChild);
        let started = started.map(|started| (started.pid, &started.name));
        let children = started.chain(process.copies.iter().map(|pid| (*pid, program)));
        for (pid, name) in children.filter(|(pid, _)| known.insert(*pid)).take(MOST) {
            let how = match fate(pid) {
                // The caller has a line about it.
                Fate::Running => continue,
                Fate::Ended(End::Signal { number, .. }) => {
                    format!("was killed by {} before it wrote anything", signal_name(number))
                }
                _ => String::from(
                    "wrote nothing (it was killed, or bypassed heapwright's functions at its end)",
                ),
            };
            lines
                .push(format!("process {pid} ({name}), a child of process {}, {how}", process.pid));
        }
    }
    lines
}

/// Forgets children with a record, or whose program is known to make none. (A report on one record
/// finds the others beside it.)
pub(super) fn forget_known(processes: &mut [Process], records: &[PathBuf]) {
    let of = |process: &Process| {
        let explained = process.started.iter().filter(|it| it.how != StartedHow::AsChild);
        explained.map(|it| it.pid).chain([process.pid]).collect::<Vec<u32>>()
    };
    let known: HashSet<u32> = processes.iter().flat_map(of).collect();
    let stems: HashSet<PathBuf> = records.iter().map(|path| path.with_extension("")).collect();
    let has_file = |pid: &u32| stems.iter().any(|it| it.with_extension(pid.to_string()).exists());
    let is_lost = |pid: &u32| !known.contains(pid) && !has_file(pid);
    for process in processes {
        process.copies.retain(is_lost);
        process.started.retain(|it| it.how != StartedHow::AsChild || is_lost(&it.pid));
    }
}

fn line(process: &Process) -> Option<String> {
    // The lines about programs without the library report this already.
    if process.is_skipped
        || process.became_unchecked()
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
