//! The differences between two points in time, or two runs, as one JSON object.
//!
//! ```text
//! format      1
//! live        {before, after: {blocks, bytes}}
//! stacks      [{bytes, blocks: the growth, before, after: {blocks, bytes},
//!               new, gone: bool, frames: [string]}]     the largest growth first
//! new, gone   {errors: [{kind, sentence, times, frames: [string]}],
//!              leaks: [{blocks, bytes, frames: [string]}]}
//! frames      innermost first, as `function file:line`, or `module+offset`
//! ```

use super::{list, object};
use crate::output::words;
use crate::report::diff::Diff;
use crate::report::model::{Error, Leak, Report, StackId};
use serde::Serialize;

/// Returns the object, as text.
pub(crate) fn report(diff: &Diff<'_>) -> String {
    super::formatted(object! {
        live: object! { before: diff.live.0, after: diff.live.1 },
        stacks: list(diff.changes.iter().map(|change| object! {
            bytes: change.bytes(),
            blocks: change.blocks(),
            before: change.held.0,
            after: change.held.1,
            new: change.before.is_none(),
            gone: change.after.is_none(),
            frames: match (change.after, change.before) {
                (Some(stack), _) => frames(diff.after, stack),
                (None, Some(stack)) => frames(diff.before, stack),
                (None, None) => Vec::new(),
            },
        })),
        new: found(diff.after, &diff.new_errors, &diff.new_leaks),
        gone: found(diff.before, &diff.gone_errors, &diff.gone_leaks),
    })
}

fn frames(report: &Report, stack: StackId) -> Vec<String> {
    report.stacks.frames(stack).flat_map(words::frame).collect()
}

fn found(report: &Report, errors: &[&Error], leaks: &[&Leak]) -> impl Serialize {
    object! {
        errors: list(errors.iter().map(|error| object! {
            kind: error.finding.kind.heading(),
            sentence: words::happened(error),
            times: error.times,
            frames: frames(report, words::fault_stack(error)),
        })),
        leaks: list(leaks.iter().map(|leak| object! {
            blocks: leak.lost.blocks,
            bytes: leak.lost.bytes,
            frames: frames(report, leak.stack),
        })),
    }
}
