//! A line for each place of a finding, as compilers print them, for editors to jump to.
//!
//! ```text
//! src/a.c:12:5: error: free of a 40-byte block that was freed before [double-free]
//! src/a.c:11:5: note: freed by thread 1, 1 operation earlier
//! src/a.c:9:15: note: allocated by thread 1, 2 operations earlier
//! src/a.c:20:13: error: 8 B in 1 block are definitely lost [definitely-lost]
//! src/b.c:7:13: warning: 24 B in 1 block are possibly lost [possibly-lost]
//! ```
//!
//! The place is the innermost call with a line of source under the current folder, else the call of
//! [`first_look`]. Notes are the other moments of an error. Without such a call, the line names the
//! file of code, and editors skip it. Levels are those of SARIF.

use super::found;
use super::rules::Rule;
use super::words::{printable, printable_text};
use crate::report::calls::{Call, calls, first_look};
use crate::report::model::{Report, StackId};
use std::io;
use std::path::Path;

pub(crate) fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    let mut leaks = 0;
    for found in found::all(report) {
        if let Rule::Leak(reach) = found.rule
            && found.error.is_none()
        {
            leaks += usize::from(report.wanted.details.contains(&reach));
            if leaks > report.wanted.most || !report.wanted.details.contains(&reach) {
                continue;
            }
        }
        let (place, rule) = (place(report, found.stack), found.rule);
        writeln!(out, "{place}: {}: {} [{}]", rule.level(), found.text, rule.id())?;
        for (title, stack) in found.stacks.iter().filter(|_| found.error.is_some()) {
            if *stack != StackId::NONE && *stack != found.stack {
                writeln!(out, "{}: note: {title}", self::place(report, *stack))?;
            }
        }
    }
    for note in report.lines() {
        writeln!(out, "heapwright: note: {note}")?;
    }
    Ok(())
}

/// Returns `src/a.c:12:5`, or the best known place.
fn place(report: &Report, stack: StackId) -> String {
    let folder = &report.wanted.folder;
    let is_inside = |call: &Call<'_>| {
        call.line().is_some_and(|(source, _)| {
            let path = Path::new(source);
            !folder.as_os_str().is_empty() && path.starts_with(folder)
        })
    };
    let own = calls(&report.stacks, stack).find(is_inside);
    if let Some(call) = own.or_else(|| first_look(&report.stacks, stack))
        && let Some((source, line)) = call.line()
    {
        let short = Path::new(source).strip_prefix(folder).ok().and_then(Path::to_str);
        let column = call.column().map(|column| format!(":{column}")).unwrap_or_default();
        return format!("{}:{line}{column}", printable_text(short.unwrap_or(source)));
    }
    let code = calls(&report.stacks, stack).find_map(|call| call.frame.place.as_ref());
    match (code, report.first()) {
        (Some(code), _) => printable((&*code.path).into()),
        (None, Some(process)) => printable_text(&process.exe),
        (None, None) => "heapwright".to_owned(),
    }
}
