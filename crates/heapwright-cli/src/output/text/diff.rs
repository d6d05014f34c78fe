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

use super::report::{amount, stack, write_error, write_leak};
use crate::output::{Look, units};
use crate::report::diff::{Change, Diff};
use std::fmt::Write;

/// Returns the differences, with at most `most` stacks.
pub(crate) fn report(diff: &Diff<'_>, most: usize, look: Look) -> String {
    let mut out = String::new();
    let line = format!("heapwright: {} -> {}", amount(diff.live.0), amount(diff.live.1));
    let _ = writeln!(out, "{}\n", look.strong(&line));
    for change in diff.changes.iter().take(most) {
        write_change(&mut out, diff, change, look);
    }
    if diff.changes.len() > most {
        let more = units::count((diff.changes.len() - most) as u64);
        let _ = writeln!(out, "and {more} more stacks (--top 0 shows all)\n");
    }
    for (word, report, errors, leaks) in [
        ("new: ", diff.after, &diff.new_errors, &diff.new_leaks),
        ("gone: ", diff.before, &diff.gone_errors, &diff.gone_leaks),
    ] {
        for error in errors {
            out.push_str(word);
            write_error(&mut out, report, error, look);
            out.push('\n');
        }
        for leak in leaks {
            out.push_str(word);
            write_leak(&mut out, report, leak, look);
            out.push('\n');
        }
    }
    if diff.is_empty() {
        out.push_str("no difference\n");
    }
    out
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
    let _ = writeln!(out, "{}", look.strong(&heading));
    match (change.after, change.before) {
        (Some(after), _) => stack(out, diff.after, after),
        (None, Some(before)) => stack(out, diff.before, before),
        (None, None) => {}
    }
    out.push('\n');
}

fn signed(number: i64) -> String {
    let sign = if number < 0 { '-' } else { '+' };
    format!("{sign}{}", units::count(number.unsigned_abs()))
}
