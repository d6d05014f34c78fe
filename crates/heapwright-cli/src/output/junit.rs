//! JUnit's XML for CI systems: a test for each kind of finding.
//!
//! ```text
//! testsuites
//!   testsuite heapwright.errors    a test for each kind of mistake
//!   testsuite heapwright.leaks     definitely lost, possibly lost, growth
//!     testcase                     passes if nothing of its kind was found
//!     testcase > failure           fails for each finding, with its stacks
//!   testsuite heapwright.processes a test that fails if a process had no last check
//! ```
//!
//! Errors and definitely lost blocks fail. Possibly lost blocks and growth are in the output of a
//! passing test: JUnit has no warnings, and a guess must not break a build. The order is the
//! report's; nothing depends on the clock.

use super::found::{self, Found};
use super::rules::Rule;
use super::sentences;
use super::xml::escaped;
use crate::report::calls::{calls, first_look};
use crate::report::model::{Report, StackId, Stacks};
use std::fmt::Write as _;
use std::io;

/// Writes the report as JUnit's XML.
pub(crate) fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    let suites = [
        ("heapwright.errors", Rule::faults().filter(is_error).collect::<Vec<_>>()),
        ("heapwright.leaks", Rule::faults().filter(|rule| !is_error(rule)).collect()),
    ];
    let mut all = (0, 0);
    let mut body = String::new();
    for (suite, rules) in suites {
        let mut tests = String::new();
        let mut sums = (0, 0);
        for rule in rules {
            let found: Vec<_> = found::all(report).filter(|found| found.rule == rule).collect();
            sums.0 += found.len().max(1);
            if fails(rule) {
                sums.1 += found.len();
            }
            write_cases(&mut tests, &report.stacks, suite, rule, &found);
        }
        let (count, failures) = sums;
        // Writing to a string cannot fail.
        let _ = writeln!(
            body,
            "  <testsuite name=\"{suite}\" tests=\"{count}\" failures=\"{failures}\" errors=\"0\" \
             skipped=\"0\" time=\"0\">\n{tests}  </testsuite>"
        );
        all = (all.0 + count, all.1 + failures);
    }
    let unseen = usize::from(!report.unseen.is_empty());
    let _ = writeln!(
        body,
        "  <testsuite name=\"heapwright.processes\" tests=\"1\" failures=\"{unseen}\" errors=\"0\" \
         skipped=\"0\" time=\"0\">\n    <testcase classname=\"heapwright.processes\" name=\"last-look\" \
         time=\"0\">"
    );
    if let Some(first) = report.unseen.first() {
        let (message, text) = (escaped(first), escaped(&report.unseen.join("\n")));
        let _ =
            writeln!(body, "      <failure message=\"{message}\" type=\"unseen\">{text}</failure>");
    }
    body.push_str("    </testcase>\n  </testsuite>\n");
    all = (all.0 + 1, all.1 + unseen);
    let name = escaped(&report.first().map(sentences::command).unwrap_or_default());
    write!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"heapwright: {name}\" tests=\"{}\" failures=\"{}\" errors=\"0\" \
         time=\"0\">\n{body}</testsuites>\n",
        all.0, all.1
    )
}

fn is_error(rule: &Rule) -> bool {
    matches!(rule, Rule::Error(_))
}

/// Returns whether findings of a rule break a build.
fn fails(rule: Rule) -> bool {
    rule.level() == "error"
}

fn write_cases(out: &mut String, stacks: &Stacks, suite: &str, rule: Rule, all: &[Found<'_>]) {
    let open = |out: &mut String, name: &str, end: &str| {
        let name = escaped(name);
        let class = format!("classname=\"{suite}\"");
        let _ = writeln!(out, "    <testcase {class} name=\"{name}\" time=\"0\"{end}>");
    };
    if all.is_empty() {
        open(out, rule.id(), "/");
    }
    for (number, found) in (1..).zip(all) {
        let look = first_look(stacks, found.stack).map(|call| format!(" at {}", call.place()));
        open(out, &format!("{} {number}{}", rule.id(), look.unwrap_or_default()), "");
        let mut text = String::new();
        for (title, id) in &found.stacks {
            stack(&mut text, stacks, title, *id);
        }
        if let Some(root) = &found.root {
            let _ = writeln!(text, "what leads to one begins in {root}");
        }
        let subject = if rule == Rule::Growth { "what is allocated here " } else { "" };
        let message = escaped(&format!("{subject}{}", found.text));
        let (text, kind) = (escaped(&text), rule.id());
        let _ = if fails(rule) {
            writeln!(out, "      <failure message=\"{message}\" type=\"{kind}\">{text}</failure>")
        } else {
            writeln!(out, "      <system-out>{message}\n{text}</system-out>")
        };
        out.push_str("    </testcase>\n");
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
