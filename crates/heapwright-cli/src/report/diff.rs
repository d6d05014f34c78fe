//! Compares two points in time, or two runs.
//!
//! Each side is a whole report. Live blocks are those of each process's last count, by stack. If no
//! process counted, they are the groups of the leak checks. Stacks match by the places of their
//! frames in files of both runs, and by functions and lines in rebuilt files.

use super::model::{Amount, Error, Leak, Report, StackId};
use crate::symbols::{Frame, Place};
use heapwright_record::debug::FindingKind;
use std::collections::{BTreeMap, BTreeSet, HashSet};

pub(crate) struct Diff<'r> {
    pub(crate) before: &'r Report,
    pub(crate) after: &'r Report,
    pub(crate) live: (Amount, Amount),
    /// Stacks whose bytes or blocks changed, those that grew most first.
    pub(crate) changes: Vec<Change>,
    /// Mistakes that only one of the reports has.
    pub(crate) new_errors: Vec<&'r Error>,
    pub(crate) gone_errors: Vec<&'r Error>,
    /// Groups of lost blocks that only one of the reports has.
    pub(crate) new_leaks: Vec<&'r Leak>,
    pub(crate) gone_leaks: Vec<&'r Leak>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The stack's number in each report that has it.
    pub(crate) before: Option<StackId>,
    pub(crate) after: Option<StackId>,
    pub(crate) held: (Amount, Amount),
}

impl Change {
    pub(crate) fn bytes(&self) -> i64 {
        less(self.held.1.bytes, self.held.0.bytes)
    }

    pub(crate) fn blocks(&self) -> i64 {
        less(self.held.1.blocks, self.held.0.blocks)
    }
}

impl Diff<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
            && self.new_errors.is_empty()
            && self.gone_errors.is_empty()
            && self.new_leaks.is_empty()
            && self.gone_leaks.is_empty()
    }
}

fn less(one: u64, other: u64) -> i64 {
    (i128::from(one) - i128::from(other)).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

pub(crate) fn diff<'r>(before: &'r Report, after: &'r Report) -> Diff<'r> {
    let same = Same::of(before, after);
    let mut stacks: BTreeMap<Key, Change> = BTreeMap::new();
    let nothing = Change { before: None, after: None, held: Default::default() };
    let mut live = (Amount::default(), Amount::default());
    for (stack, amount) in held(before) {
        let change = stacks.entry(same.key(before, stack)).or_insert(nothing);
        change.before = Some(stack);
        change.held.0 += amount;
        live.0 += amount;
    }
    for (stack, amount) in held(after) {
        let change = stacks.entry(same.key(after, stack)).or_insert(nothing);
        change.after = Some(stack);
        change.held.1 += amount;
        live.1 += amount;
    }
    let mut changes: Vec<Change> =
        stacks.into_values().filter(|change| change.held.0 != change.held.1).collect();
    changes.sort_by_key(|change| std::cmp::Reverse((change.bytes(), change.blocks())));
    let errors = |report: &Report| -> HashSet<(FindingKind, Vec<Key>)> {
        report.errors.iter().map(|error| same.error(report, error)).collect()
    };
    let leaks = |report: &Report| -> HashSet<Key> {
        lost(report).map(|leak| same.key(report, leak.stack)).collect()
    };
    let (errors_before, errors_after) = (errors(before), errors(after));
    let (leaks_before, leaks_after) = (leaks(before), leaks(after));
    let missing = |report: &'r Report, there: &HashSet<(FindingKind, Vec<Key>)>| {
        let is_missing = |error: &&Error| !there.contains(&same.error(report, error));
        report.errors.iter().filter(is_missing).collect()
    };
    let not_lost = |report: &'r Report, there: &HashSet<Key>| {
        lost(report).filter(|leak| !there.contains(&same.key(report, leak.stack))).collect()
    };
    Diff {
        new_errors: missing(after, &errors_before),
        gone_errors: missing(before, &errors_after),
        new_leaks: not_lost(after, &leaks_before),
        gone_leaks: not_lost(before, &leaks_after),
        before,
        after,
        live,
        changes,
    }
}

fn lost(report: &Report) -> impl Iterator<Item = &Leak> {
    report.leaks.iter().filter(|leak| leak.is_definite())
}

/// Returns live blocks: of each process's last count or, if no process counted, of leak checks.
fn held(report: &Report) -> Vec<(StackId, Amount)> {
    let counts = report
        .processes
        .iter()
        .filter_map(|process| process.checks.iter().rev().find(|check| !check.usage.is_empty()));
    let counted: Vec<_> = counts.flat_map(|check| check.usage.iter().copied()).collect();
    if counted.is_empty() {
        report.leaks.iter().map(|leak| (leak.stack, leak.lost)).collect()
    } else {
        counted
    }
}

type Key = Vec<String>;

/// The files that both reports have unchanged.
struct Same(BTreeSet<(Vec<u8>, Vec<u8>)>);

impl Same {
    fn of(before: &Report, after: &Report) -> Self {
        let files = |report: &Report| -> BTreeSet<_> {
            let places = report.stacks.frames.iter().filter_map(|frame| frame.place.as_ref());
            places.map(identity).collect()
        };
        Self(files(before).intersection(&files(after)).cloned().collect())
    }

    fn key(&self, report: &Report, stack: StackId) -> Key {
        report.stacks.frames(stack).map(|frame| self.word(frame)).collect()
    }

    fn error(&self, report: &Report, error: &Error) -> (FindingKind, Vec<Key>) {
        let keys = error.moments.iter().map(|happened| self.key(report, happened.stack));
        (error.finding.kind, keys.collect())
    }

    fn word(&self, frame: &Frame) -> String {
        let Some(place) = &frame.place else { return format!("{:#x}", frame.address) };
        let (path, build_id) = identity(place);
        let by_place = format!("{}+{:#x}", String::from_utf8_lossy(&path), place.offset);
        if frame.functions.is_empty() || self.0.contains(&(path, build_id)) {
            return by_place;
        }
        let functions = frame.functions.iter().map(|function| {
            let part = |text: &Option<String>| text.clone().unwrap_or_default();
            let line = function.line.map(|line| line.to_string()).unwrap_or_default();
            format!("{} {}:{line}", part(&function.name), part(&function.source))
        });
        functions.collect::<Vec<_>>().join("; ")
    }
}

fn identity(place: &Place) -> (Vec<u8>, Vec<u8>) {
    let path = if place.build_id.is_empty() { place.path.clone() } else { Vec::new() };
    (path, place.build_id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::{Check, Process};
    use crate::symbols::Function;

    /// Makes a report of one process's last check: build-id, offset, line, bytes.
    fn report(held: &[(u8, u64, u32, u64)]) -> Report {
        let mut report = Report::default();
        let mut check = Check::default();
        for &(build, offset, line, bytes) in held {
            let function = Function {
                name: Some(String::from("f")),
                source: Some(String::from("f.c")),
                line: Some(line),
                ..Function::default()
            };
            let place = Place { path: b"/prog".to_vec(), offset, build_id: vec![build] };
            let at = report.stacks.frames.len() as u32;
            let place = Some(place);
            report.stacks.frames.push(Frame { address: 1, place, functions: vec![function] });
            report.stacks.stacks.push(Box::new([at]));
            check.usage.push((StackId(at + 1), Amount { blocks: 1, bytes }));
        }
        report.processes.push(Process { checks: vec![check], ..Process::default() });
        report
    }

    fn bytes(before: &Report, after: &Report) -> Vec<i64> {
        diff(before, after).changes.iter().map(Change::bytes).collect()
    }

    #[test]
    fn stacks_meet_by_place_in_one_build_and_by_line_in_two() {
        let before = report(&[(1, 0x10, 5, 100), (1, 0x20, 6, 50), (1, 0x30, 7, 70)]);
        let again = report(&[(1, 0x10, 5, 300), (1, 0x20, 6, 40), (1, 0x40, 5, 1)]);
        assert_eq!(bytes(&before, &again), [200, 1, -10, -70]);
        let rebuilt = report(&[(2, 0x99, 5, 300), (2, 0x98, 8, 40)]);
        assert_eq!(bytes(&before, &rebuilt), [200, 40, -50, -70]);
        assert!(diff(&before, &before).is_empty());
        let all = diff(&before, &rebuilt);
        assert_eq!((all.live.0.bytes, all.live.1.bytes), (220, 340));
        assert_eq!((all.changes[1].before, all.changes[1].after), (None, Some(StackId(2))));
    }
}
