//! Names the test that a finding belongs to.
//!
//! All tests of a binary run in one process, to save time. A finding's stacks usually have the
//! test's function. Other findings are another thread's, or have stacks that end early. For these
//! the tests run again in halves (`halves`), down to tests that have such findings when run alone.

use super::halves::culprits;
use crate::output::{found, printable_text};
use crate::report::model::{Report, StackId};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

/// Returns whether a program contains libtest, which reads the variable `MARK`.
pub(super) fn has_tests(program: &Path) -> bool {
    const MARK: &[u8] = b"RUST_TEST_THREADS";
    std::fs::read(program).is_ok_and(|bytes| bytes.windows(MARK.len()).any(|window| window == MARK))
}

/// Prints the failed tests' names. `again` runs the program for some tests, and returns a report.
pub(super) fn name(
    report: &Report,
    program: &OsStr,
    words: &[OsString],
    again: &dyn Fn(&[OsString]) -> anyhow::Result<Report>,
) -> anyhow::Result<()> {
    let tests = listed(program, words)?;
    let (mut failed, strays) = by_test(report, &tests);
    if !strays.is_empty() {
        let found = match &tests[..] {
            // The only test must have the findings.
            [only] => vec![(only, strays.clone())],
            tests => culprits(tests, &mut |some| {
                let report = again(&command(program, words, some))?;
                Ok::<_, anyhow::Error>(by_test(&report, tests).1)
            })?,
        };
        if found.is_empty() {
            failed.entry("(of no test alone)").or_default().extend(strays);
        }
        for (test, sentences) in found {
            failed.entry(test).or_default().extend(sentences);
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
    eprintln!("");
    Ok(())
}

/// Groups findings by the test whose function is in their stacks. The second list has the others.
fn by_test<'t>(
    report: &Report,
    tests: &'t [String],
) -> (BTreeMap<&'t str, Vec<String>>, Vec<String>) {
    let mut failed: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut strays = Vec::new();
    for found in found::faults(report) {
        let is_its = |test: &&String| found.stacks.iter().any(|(_, at)| is_in(report, *at, test));
        match tests.iter().find(is_its) {
            Some(test) => failed.entry(test).or_default().push(found.text),
            None => strays.push(found.text),
        }
    }
    (failed, strays)
}

fn command(program: &OsStr, words: &[OsString], tests: &[String]) -> Vec<OsString> {
    let kept = words.iter().filter(|word| *word == "--ignored" || *word == "--include-ignored");
    let mut command = vec![program.to_owned(), "--exact".into()];
    command.extend(kept.cloned());
    command.extend(tests.iter().map(OsString::from));
    command
}

/// Returns the names of the tests that these words select.
fn listed(program: &OsStr, words: &[OsString]) -> anyhow::Result<Vec<String>> {
    let output =
        Command::new(program).args(words).args(["--list", "--format", "terse"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().filter_map(|line| {
        line.strip_suffix(": test").or_else(|| line.strip_suffix(": benchmark"))
    });
    Ok(names.map(str::to_owned).collect())
}

fn is_in(report: &Report, stack: StackId, test: &str) -> bool {
    let functions = report.stacks.frames(stack).flat_map(|frame| &frame.functions);
    functions.filter_map(|function| function.name.as_deref()).any(|name| is_of(name, test))
}

/// Returns whether `name` is the test's function in some crate, or an item in this function.
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
    fn some_tests_are_run_as_all_were() {
        let words = ["adds", "--include-ignored", "--skip", "x"].map(OsString::from);
        let tests = ["a::adds", "b::adds"].map(str::to_owned);
        let command = command(OsStr::new("prog"), &words, &tests);
        assert_eq!(command, ["prog", "--exact", "--include-ignored", "a::adds", "b::adds"]);
    }

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
