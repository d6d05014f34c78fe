//! The findings of a report in one form, for the formats that list findings.

use super::rules::Rule;
use super::sentences;
use super::words::fault_stack;
use crate::report::model::{Error, Report, StackId};

pub(crate) struct Found<'r> {
    pub(super) rule: Rule,
    /// A sentence without its full stop; for growth, without its subject.
    pub(crate) text: String,
    pub(super) stack: StackId,
    /// The number of times that an error occurred, or the number of blocks.
    pub(super) times: u64,
    /// All stacks, each with a title.
    pub(crate) stacks: Vec<(String, StackId)>,
    pub(super) error: Option<&'r Error>,
    /// The root from which a block is reached.
    pub(super) root: Option<String>,
}

impl<'r> Found<'r> {
    fn error(error: &'r Error) -> Self {
        let titled = error
            .moments
            .iter()
            .map(|happened| (sentences::moment(&error.finding, happened), happened.stack));
        Self {
            rule: Rule::of(error.finding.kind),
            text: sentences::error(error),
            stack: fault_stack(error),
            times: error.times,
            stacks: titled.collect(),
            error: Some(error),
            root: None,
        }
    }

    fn allocated(rule: Rule, text: String, stack: StackId, times: u64) -> Self {
        let stacks = vec![("allocated".to_owned(), stack)];
        Self { rule, text, stack, times, stacks, error: None, root: None }
    }
}

/// Returns all findings, in the report's order: errors, groups of blocks, growth.
pub(crate) fn all(report: &Report) -> impl Iterator<Item = Found<'_>> {
    let leaks = report.leaks.iter().map(|leak| {
        let (rule, text) = (Rule::Leak(leak.reach), sentences::leak(leak));
        let found = Found::allocated(rule, text, leak.stack, leak.lost.blocks);
        Found { root: leak.path.as_ref().map(sentences::root), ..found }
    });
    let growths = report
        .growths
        .iter()
        .map(|growth| Found::allocated(Rule::Growth, sentences::growth(growth), growth.stack, 1));
    report.errors.iter().map(Found::error).chain(leaks).chain(growths)
}

/// Returns all faults: errors, and blocks that are definitely lost.
pub(crate) fn faults(report: &Report) -> impl Iterator<Item = Found<'_>> {
    all(report).filter(|found| found.rule.level() == "error")
}
