//! A line for each place of a finding, as compilers print them: what editors jump by.
//!
//! ```text
//! src/a.c:12:5: error: free of a 40-byte block that was freed before [double-free]
//! src/a.c:11:5: note: freed by thread 1, 1 operation earlier
//! src/a.c:9:15: note: allocated by thread 1, 2 operations earlier
//! src/a.c:20:13: error: 8 B in 1 block are definitely lost [definitely-lost]
//! src/b.c:7:13: warning: 24 B in 1 block are possibly lost [possibly-lost]
//! ```
//!
//! The place is where a person would look first: the innermost call with a source under
//! the current folder, else one that is not a system's, else any with a source. Notes are
//! the other moments of an error, each at such a place. What has no source has the file of
//! code in its place: matchers pass over it, people do not. Levels are those of SARIF.

use super::calls::{Call, calls, first_look};
use super::rules::Rule;
use super::sentences;
use super::words::{fault_stack, printable, printable_text};
use crate::report::model::{Report, StackId};
use heapwright_record::debug::Reach;
use std::io;
use std::path::Path;

/// The lines.
pub(crate) fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    for error in &report.errors {
        let fault = fault_stack(error);
        let (place, rule) = (place(report, fault), Rule::of(error.finding.kind).id());
        writeln!(out, "{place}: error: {} [{rule}]", sentences::error(error))?;
        for happened in error.moments.iter().filter(|happened| happened.stack != StackId::NONE) {
            let title = sentences::moment(&error.finding, happened);
            if happened.stack != fault {
                writeln!(out, "{}: note: {title}", self::place(report, happened.stack))?;
            }
        }
    }
    let details = |reach: Reach| report.wanted.details.contains(&reach);
    let shown = report.leaks.iter().filter(|leak| details(leak.reach));
    for leak in shown.take(report.wanted.most) {
        let level = match leak.reach {
            Reach::Definite => "error",
            Reach::Possible => "warning",
            _ => "note",
        };
        let (place, rule) = (place(report, leak.stack), Rule::Leak(leak.reach).id());
        writeln!(out, "{place}: {level}: {} [{rule}]", sentences::leak(leak))?;
    }
    for growth in &report.growths {
        let (place, rule) = (place(report, growth.stack), Rule::Growth.id());
        writeln!(out, "{place}: warning: {} [{rule}]", sentences::growth(growth))?;
    }
    for note in report.lines() {
        writeln!(out, "heapwright: note: {note}")?;
    }
    Ok(())
}

/// `src/a.c:12:5`, or what else is known.
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
