//! Which test a finding is of.
//!
//! All tests of a binary run in one process, so that passing ones cost no start each. Where
//! something was found, its stacks mostly say in which test: one of their functions has the
//! test's name. Where one finding does not (another thread's, or a stack that ends before),
//! every test runs once more by itself, and those that fail then are named.

use crate::output::{finding_sentences, printable_text};
use crate::report::model::{Report, StackId};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

/// Whether a program is one of libtest's: it reads this variable.
pub(super) fn has_tests(program: &Path) -> bool {
    const MARK: &[u8] = b"RUST_TEST_THREADS";
    std::fs::read(program).is_ok_and(|bytes| bytes.windows(MARK.len()).any(|window| window == MARK))
}

/// Says on standard error which tests the findings are of. `alone` runs a test by itself, and
/// says whether something was found.
pub(super) fn name(
    report: &Report,
    program: &OsStr,
    words: &[OsString],
    alone: &dyn Fn(&str) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let tests = listed(program, words)?;
    let mut failed: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut strays = Vec::new();
    for (sentence, stacks) in finding_sentences(report) {
        match tests.iter().find(|test| stacks.iter().any(|stack| is_in(report, *stack, test))) {
            Some(test) => failed.entry(test).or_default().push(sentence),
            None => strays.push(sentence),
        }
    }
    if !strays.is_empty() {
        let mut found = false;
        for test in &tests {
            if alone(test)? {
                found = true;
                failed.entry(test).or_default();
            }
        }
        if !found || tests.is_empty() {
            failed.entry("(of no test alone)").or_default().extend(strays);
        }
    }
    eprintln!("\nfailures, found by heapwright:");
    for (test, sentences) in failed {
        let sentences = match &*sentences {
            [] => String::new(),
            [one] => format!(": {one}"),
            [one, more @ ..] => format!(": {one}; and {} more", more.len()),
        };
        eprintln!("    {}{}", printable_text(test), printable_text(&sentences));
    }
    eprintln!();
    Ok(())
}

/// The names of the tests that these words choose.
fn listed(program: &OsStr, words: &[OsString]) -> anyhow::Result<Vec<String>> {
    let output =
        Command::new(program).args(words).args(["--list", "--format", "terse"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().filter_map(|line| {
        line.strip_suffix(": test").or_else(|| line.strip_suffix(": benchmark"))
    });
    Ok(names.map(str::to_owned).collect())
}

/// Whether a test's function, or a closure in it, is in a stack.
fn is_in(report: &Report, stack: StackId, test: &str) -> bool {
    let functions = report.stacks.frames(stack).flat_map(|frame| &frame.functions);
    functions.filter_map(|function| function.name.as_deref()).any(|name| is_of(name, test))
}

/// Whether a function's name is that of a test in some crate, or of something within it.
fn is_of(name: &str, test: &str) -> bool {
    name.match_indices(test).any(|(at, _)| {
        let (before, after) = (&name[..at], &name[at + test.len()..]);
        (before.is_empty() || before.ends_with("::"))
            && (after.is_empty() || after.starts_with("::"))
    })
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn functions_are_of_tests_by_whole_names() {
        for (name, test, is) in [
            ("shop::tests::adds", "tests::adds", true),
            ("shop::tests::adds::{closure#0}", "tests::adds", true),
            ("adds", "adds", true),
            ("shop::tests::adds_two", "tests::adds", false),
            ("shop::my_tests::adds", "tests::adds", false),
        ] {
            assert_eq!(is_of(name, test), is, "{name} {test}");
        }
    }
}
