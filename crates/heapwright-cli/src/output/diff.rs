//! The differences between two points in time, or two runs.
//!
//! ```text
//! heapwright: 40 bytes in 1 block -> 4,040 bytes in 101 blocks
//!
//! +4,000 bytes, +100 blocks: 40 bytes in 1 block -> 4,040 bytes in 101 blocks, allocated from:
//!     #0 ...
//!
//! new: ==4242==ERROR: heapwright: double-free: ...
//!     here, thread 1:
//!     ...
//! ```

use super::document::Document;
use super::json::{list, object};
use super::text::report::{amount, stack, write_error, write_leak};
use super::{Look, units, words};
use crate::report::diff::{Change, Diff};
use crate::report::model::{Error, Leak, Report, StackId};
use serde::Serialize;

/// Makes the document of the differences, with at most `most` stacks in its text.
pub(crate) fn document<'a>(diff: &'a Diff<'_>, most: usize, look: Look) -> Document<'a> {
    let mut text = format!("heapwright: {} -> {}", amount(diff.live.0), amount(diff.live.1));
    text = look.strong(&text) + "\n\n";
    for change in diff.changes.iter().take(most) {
        write_change(&mut text, diff, change, look);
    }
    if diff.changes.len() > most {
        let more = units::count((diff.changes.len() - most) as u64);
        text += &format!("and {more} more stacks (--top 0 shows all)\n\n");
    }
    for (word, report, errors, leaks) in [
        ("new: ", diff.after, &diff.new_errors, &diff.new_leaks),
        ("gone: ", diff.before, &diff.gone_errors, &diff.gone_leaks),
    ] {
        for error in errors {
            text.push_str(word);
            write_error(&mut text, report, error, look);
            text.push('\n');
        }
        for leak in leaks {
            text.push_str(word);
            write_leak(&mut text, report, leak, look);
            text.push('\n');
        }
    }
    if diff.is_empty() {
        text.push_str("no difference\n");
    }
    Document::written(text, || data(diff))
}

fn write_change(out: &mut String, diff: &Diff<'_>, change: &Change, look: Look) {
    let word = match (change.before, change.after) {
        (None, _) => "new: ",
        (_, None) => "gone: ",
        _ => "",
    };
    let heading = format!(
        "{word}{} bytes, {} blocks: {} -> {}, allocated from:",
        signed(change.bytes()),
        signed(change.blocks()),
        amount(change.held.0),
        amount(change.held.1)
    );
    *out += &(look.strong(&heading) + "\n");
    if let Some((report, id)) = place(diff, change) {
        stack(out, report, id);
    }
    out.push('\n');
}

/// Returns the stack of a change, and the report that has it.
fn place<'a>(diff: &Diff<'a>, change: &Change) -> Option<(&'a Report, StackId)> {
    let after = change.after.map(|stack| (diff.after, stack));
    after.or_else(|| Some((diff.before, change.before?)))
}

fn signed(number: i64) -> String {
    let sign = if number < 0 { '-' } else { '+' };
    format!("{sign}{}", units::count(number.unsigned_abs()))
}

fn data(diff: &Diff<'_>) -> impl Serialize {
    let frames = |(report, stack)| frames(report, stack);
    object! {
        live: object! { before: diff.live.0, after: diff.live.1 },
        stacks: list(diff.changes.iter().map(|change| object! {
            bytes: change.bytes(),
            blocks: change.blocks(),
            before: change.held.0,
            after: change.held.1,
            new: change.before.is_none(),
            gone: change.after.is_none(),
            frames: place(diff, change).map(frames).unwrap_or_default(),
        })),
        new: found(diff.after, &diff.new_errors, &diff.new_leaks),
        gone: found(diff.before, &diff.gone_errors, &diff.gone_leaks),
    }
}

fn frames(report: &Report, stack: StackId) -> Vec<String> {
    report.stacks.frames(stack).flat_map(words::frame).collect()
}

fn found(report: &Report, errors: &[&Error], leaks: &[&Leak]) -> impl Serialize + use<> {
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
