//! JUnit's XML for CI systems: a test for each finding, and for each kind that was not found.
//!
//! ```text
//! testsuites
//!   testsuite heapwright.errors    mistakes
//!   testsuite heapwright.leaks     definitely lost, possibly lost, growth
//!     testcase                     passes if nothing of its kind was found
//!     testcase > failure           fails for each finding, with its stacks
//!   testsuite heapwright.processes a test that fails if a process had no last look, or no checks
//! ```
//!
//! Errors and definitely lost blocks fail. Possibly lost blocks and growth are in the output of a
//! passing test: JUnit has no warnings, and a guess must not break a build.

use super::found::{self, Found};
use super::rules::Rule;
use super::sentences;
use super::xml::escaped;
use crate::report::calls::{calls, first_look};
use crate::report::model::{Report, StackId, Stacks};
use askama::Template;
use std::fmt::Write as _;
use std::io;

#[derive(Template)]
#[template(path = "junit.xml", escape = "none")]
struct Suites {
    name: String,
    tests: usize,
    failures: usize,
    suites: [Suite; 3],
}

struct Suite {
    name: &'static str,
    cases: Vec<Case>,
}

#[derive(Default)]
struct Case {
    name: String,
    kind: &'static str,
    fails: bool,
    message: String,
    text: String,
}

impl Suite {
    fn failures(&self) -> usize {
        self.cases.iter().filter(|case| case.fails).count()
    }
}

pub(crate) fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    let all: Vec<Found<'_>> = found::all(report).collect();
    let suite = |name, errors: bool| {
        let rules = Rule::faults().filter(|rule| matches!(rule, Rule::Error(_)) == errors);
        Suite { name, cases: rules.flat_map(|rule| cases(&report.stacks, rule, &all)).collect() }
    };
    let last_look = Case {
        name: "last-look".to_owned(),
        kind: "unseen",
        fails: !report.unseen.is_empty(),
        message: report.unseen.first().cloned().unwrap_or_default(),
        text: report.unseen.join("\n"),
    };
    let suites = [
        suite("heapwright.errors", true),
        suite("heapwright.leaks", false),
        Suite { name: "heapwright.processes", cases: vec![last_look] },
    ];
    let suites = Suites {
        name: report.first().map(sentences::command).unwrap_or_default(),
        tests: suites.iter().map(|suite| suite.cases.len()).sum(),
        failures: suites.iter().map(Suite::failures).sum(),
        suites,
    };
    writeln!(out, "{}", suites.render().map_err(io::Error::other)?)
}

/// Returns a test for each finding of a rule. Without findings, returns one test that passes.
fn cases(stacks: &Stacks, rule: Rule, all: &[Found<'_>]) -> Vec<Case> {
    let of_rule = all.iter().filter(|found| found.rule == rule);
    let cases: Vec<Case> =
        (1..).zip(of_rule).map(|(number, found)| case(stacks, number, found)).collect();
    match cases.is_empty() {
        true => vec![Case { name: rule.id().to_owned(), ..Case::default() }],
        false => cases,
    }
}

fn case(stacks: &Stacks, number: usize, found: &Found<'_>) -> Case {
    let look = first_look(stacks, found.stack).map(|call| format!(" at {}", call.place()));
    let mut text = String::new();
    for (title, id) in &found.stacks {
        stack(&mut text, stacks, title, *id);
    }
    if let Some(root) = &found.root {
        let _ = writeln!(text, "a chain of pointers to one block begins in {root}");
    }
    let subject = if found.rule == Rule::Growth { "what is allocated here " } else { "" };
    Case {
        name: format!("{} {number}{}", found.rule.id(), look.unwrap_or_default()),
        kind: found.rule.id(),
        fails: found.rule.level() == "error",
        message: format!("{subject}{}", found.text),
        text,
    }
}

/// The most calls of a stack: CI systems keep all, and show the first ones.
const MOST_CALLS: usize = 24;

fn stack(out: &mut String, stacks: &Stacks, title: &str, id: StackId) {
    let _ = writeln!(out, "{title}:");
    for (number, call) in calls(stacks, id).take(MOST_CALLS).enumerate() {
        let place = match call.place() {
            place if place.is_empty() => call.module().map(|name| format!(" in {name}")),
            place => Some(format!(" at {place}")),
        };
        let _ = writeln!(out, "    #{number} {}{}", call.name(), place.unwrap_or_default());
    }
}
