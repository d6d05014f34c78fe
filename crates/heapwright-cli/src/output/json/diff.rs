//! What is different between two points in time, or two runs, as one JSON object.
//!
//! ```text
//! format      1
//! live        {before, after: {blocks, bytes}}
//! stacks      [{bytes, blocks: how many more, before, after: {blocks, bytes},
//!               new, gone: bool, frames: [string]}]     those that grew most first
//! new, gone   {errors: [{kind, sentence, times, frames: [string]}],
//!              leaks: [{blocks, bytes, frames: [string]}]}
//! frames      innermost first, as `function file:line`, or `module+offset`
//! ```

use super::FORMAT;
use super::report::Held;
use crate::output::words;
use crate::report::diff::Diff;
use crate::report::model::{Error, Leak, Report, StackId};
use serde::Serialize;

/// The object, as text.
pub(crate) fn report(diff: &Diff<'_>) -> String {
    super::text(&Object {
        format: FORMAT,
        live: Both { before: diff.live.0.into(), after: diff.live.1.into() },
        stacks: diff
            .changes
            .iter()
            .map(|change| Stack {
                bytes: change.bytes(),
                blocks: change.blocks(),
                before: change.held.0.into(),
                after: change.held.1.into(),
                new: change.before.is_none(),
                gone: change.after.is_none(),
                frames: match (change.after, change.before) {
                    (Some(stack), _) => frames(diff.after, stack),
                    (None, Some(stack)) => frames(diff.before, stack),
                    (None, None) => Vec::new(),
                },
            })
            .collect(),
        new: found(diff.after, &diff.new_errors, &diff.new_leaks),
        gone: found(diff.before, &diff.gone_errors, &diff.gone_leaks),
    })
}

fn frames(report: &Report, stack: StackId) -> Vec<String> {
    report.stacks.frames(stack).flat_map(words::frame).collect()
}

fn found(report: &Report, errors: &[&Error], leaks: &[&Leak]) -> Found {
    Found {
        errors: errors
            .iter()
            .map(|error| Mistake {
                kind: error.finding.kind.heading(),
                sentence: words::sentence(&error.finding),
                times: error.times,
                frames: frames(report, words::fault_stack(error)),
            })
            .collect(),
        leaks: leaks
            .iter()
            .map(|leak| Lost {
                blocks: leak.lost.blocks,
                bytes: leak.lost.bytes,
                frames: frames(report, leak.stack),
            })
            .collect(),
    }
}

#[derive(Serialize)]
struct Object {
    format: u32,
    live: Both,
    stacks: Vec<Stack>,
    new: Found,
    gone: Found,
}

#[derive(Serialize)]
struct Both {
    before: Held,
    after: Held,
}

#[derive(Serialize)]
struct Stack {
    bytes: i64,
    blocks: i64,
    before: Held,
    after: Held,
    new: bool,
    gone: bool,
    frames: Vec<String>,
}

#[derive(Serialize)]
struct Found {
    errors: Vec<Mistake>,
    leaks: Vec<Lost>,
}

#[derive(Serialize)]
struct Mistake {
    kind: &'static str,
    sentence: String,
    times: u64,
    frames: Vec<String>,
}

#[derive(Serialize)]
struct Lost {
    blocks: u64,
    bytes: u64,
    frames: Vec<String>,
}
