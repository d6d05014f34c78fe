//! A report's findings in the words of valgrind's memcheck, for programs that read its output.
//!
//! ```text
//! heapwright's                                 memcheck's
//! double, invalid, interior free; realloc      InvalidFree      Invalid free() / delete / ...
//! wrong function, size or alignment            MismatchedFree   Mismatched free() / delete / ...
//! read, seen in the act                        InvalidRead      Invalid read of size N
//! any other access, found later or caught      InvalidWrite     Invalid write of size N
//! uninitialised value (check --twice)          UninitValue      Use of uninitialised value of ...
//! blocks that are lost or reachable            Leak_*           N bytes in N blocks are ...
//! ```
//!
//! The sentences are memcheck's up to the place where parsers stop reading. Facts unknown to
//! memcheck follow: a write that was found later has the stack where it was found, and says so.
//! `size N` is the known part of the access, at least one byte: a guard page shows the place of an
//! access, not its width. A function of the C library that made the access is the innermost call.
//!
//! `text` and `xml` print [`Entry`]s. Growth is left out: memcheck has no such finding.

#[cfg(test)]
#[path = "../../../tests/common/protocol.rs"]
pub(crate) mod protocol;
pub(crate) mod text;
pub(crate) mod xml;

use super::units::count as grouped;
use super::words;
use crate::report::calls::{Call, calls};
use crate::report::innermost::Innermost;
use crate::report::model::{Amount, Error, Leak, Ready, Report, StackId};
use heapwright_record::debug::{Access, Call as Where, Finding, FindingKind, Reach, Region, Role};

pub(crate) struct Style {
    pub(crate) quiet: bool,
    pub(crate) lists: bool,
    pub(crate) errors_for: Vec<Reach>,
    /// Whether some leaks are not listed.
    pub(crate) has_more: bool,
    pub(crate) below_main: bool,
    pub(crate) paths: Paths,
    /// The command line of this command, for XML.
    pub(crate) command: Vec<String>,
    /// Variables in the name of the XML file, and their values.
    pub(crate) qualifiers: Vec<(String, String)>,
    /// A comment to copy verbatim into XML.
    pub(crate) comment: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Paths {
    Name,
    /// The part behind the first of these texts that a path contains; else the whole path.
    After(Vec<String>),
}

impl Default for Style {
    fn default() -> Self {
        Self {
            quiet: false,
            lists: false,
            errors_for: vec![Reach::Definite, Reach::Possible],
            has_more: false,
            below_main: false,
            paths: Paths::Name,
            command: vec!["heapwright".to_owned()],
            qualifiers: Vec::new(),
            comment: None,
        }
    }
}

impl Style {
    /// Returns the numbers of errors and of contexts, with leaks that count as errors, and
    /// unwritten findings.
    pub(crate) fn counted(&self, report: &Report) -> (u64, u64) {
        let (times, contexts) = report.counted(&self.errors_for);
        (times.saturating_add(report.unwritten), contexts)
    }
}

/// A finding, ready to be printed.
struct Entry {
    pid: u32,
    thread: u32,
    kind: &'static str,
    what: String,
    leaked: Option<Amount>,
    /// The function of the C library that made the access.
    function: Option<&'static str>,
    stack: StackId,
    /// Sentences about the block, each with a stack if one is known.
    more: Vec<(String, StackId)>,
    times: u64,
    suppression: Option<String>,
}

fn errors(report: &Report) -> Vec<Entry> {
    report.errors.iter().map(|error| of_error(report, error)).collect()
}

/// Returns the leaks that are listed, the smallest first, as in memcheck's reports.
fn leaks(report: &Report) -> Vec<Entry> {
    let size = |leak: &Leak| leak.lost.bytes.saturating_add(leak.indirect.bytes);
    let mut all: Vec<&Leak> = report.leaks.iter().collect();
    all.sort_by_key(|leak| size(leak));
    let details = |leak: &Leak| report.wanted.details.contains(&leak.reach);
    let records = all.len();
    let shown = (1..).zip(all).filter(|(_, leak)| details(leak));
    // The largest leaks are kept.
    let mut shown: Vec<_> = shown.collect();
    shown.drain(..shown.len().saturating_sub(report.wanted.most));
    shown.into_iter().map(|(number, leak)| of_leak(report, leak, number, records)).collect()
}

fn of_leak(report: &Report, leak: &Leak, number: usize, records: usize) -> Entry {
    let (kind, fate) = match leak.reach {
        Reach::Indirect => ("Leak_IndirectlyLost", "are indirectly lost"),
        Reach::Possible => ("Leak_PossiblyLost", "are possibly lost"),
        Reach::Reachable => ("Leak_StillReachable", "are still reachable"),
        _ => ("Leak_DefinitelyLost", "are definitely lost"),
    };
    let Amount { blocks, bytes } = leak.lost;
    let all = bytes.saturating_add(leak.indirect.bytes);
    let mut size = grouped(all);
    if leak.indirect.bytes != 0 {
        let (direct, indirect) = (grouped(bytes), grouped(leak.indirect.bytes));
        size = format!("{size} ({direct} direct, {indirect} indirect)");
    }
    let (number, records) = (grouped(number as u64), grouped(records as u64));
    let what = format!(
        "{size} bytes in {} blocks {fate} in loss record {number} of {records}",
        grouped(blocks)
    );
    let ready = |name: &str| {
        let innermost = Innermost::Allocated(leak.origin).shown();
        words::block_for(report, name, words::LEAK_BLOCK, Some(leak.reach), &innermost, leak.stack)
    };
    Entry {
        pid: report.processes.get(leak.process).map_or(0, |process| process.pid),
        thread: 1,
        kind,
        what,
        leaked: Some(Amount { blocks, bytes: all }),
        function: None,
        stack: leak.stack,
        more: Vec::new(),
        times: 1,
        suppression: wants(report).then(|| ready(UNNAMED)).flatten(),
    }
}

/// The library with the functions that precede the C library's.
const INTERPOSER: &str = "libheapwright-check.so";

/// valgrind's name of a suppression without a name.
const UNNAMED: &str = "<insert_a_suppression_name_here>";

fn wants(report: &Report) -> bool {
    report.wanted.suppressions == Ready::Block
}

fn of_error(report: &Report, error: &Error) -> Entry {
    let finding = &error.finding;
    let (kind, suppression, mut what) = named(finding);
    let stack_of = |role: Role| {
        let happened = error.moments.iter().find(|happened| happened.role == role);
        happened.map(|happened| happened.stack).unwrap_or(StackId::NONE)
    };
    let (here, freed, allocated) =
        (stack_of(Role::Here), stack_of(Role::Freed), stack_of(Role::Allocated));
    let found_later = finding.is_found_later();
    if found_later {
        what += match finding.call {
            Where::Exit => " (found when the process ended)",
            Where::Sweep | Where::Retire => " (found later, in a look at the heap)",
            _ => " (found later, here)",
        };
    }
    let is_freed = freed != StackId::NONE || !finding.freed.is_unknown();
    let mut more = vec![(address(finding, is_freed), if is_freed { freed } else { allocated })];
    if is_freed && allocated != StackId::NONE {
        more.push(("Block was alloc'd at".to_owned(), allocated));
    }
    let mut stack = here;
    if stack == StackId::NONE {
        // If the error has no stack, a known stack of the block replaces it.
        stack = more
            .iter()
            .map(|(_, stack)| *stack)
            .find(|stack| *stack != StackId::NONE)
            .unwrap_or(here);
    }
    if finding.kind == FindingKind::Leak {
        (stack, more) = (allocated, Vec::new());
    } else if finding.kind == FindingKind::Uninitialised {
        let created = "Uninitialised value was created by a heap allocation";
        (stack, more) = (allocated, vec![(created.to_owned(), allocated)]);
        what = format!("{what} ({})", words::happened(error));
    }
    let ready = || {
        words::block_for(report, UNNAMED, suppression, None, &words::innermost(error, stack), stack)
    };
    Entry {
        pid: report.processes.get(error.process).map_or(0, |process| process.pid),
        thread: finding.here.thread.max(1),
        kind,
        what,
        leaked: (finding.kind == FindingKind::Leak)
            .then_some(Amount { blocks: 1, bytes: finding.size }),
        function: words::asked(finding),
        stack,
        more,
        times: error.times,
        suppression: wants(report).then(ready).flatten(),
    }
}

/// Returns memcheck's name for a kind, its type in suppressions, and its sentence.
fn named(finding: &Finding) -> (&'static str, &'static str, String) {
    use FindingKind::{
        AlignmentMismatch, AllocatorMismatch, Leak, MayOverflow, Overflow, SizeMismatch, Underflow,
        Uninitialised, UseAfterFree, UseAfterPoison, WriteAfterFree,
    };
    let size = grouped(finding.length.max(1));
    match finding.kind {
        SizeMismatch | AlignmentMismatch | AllocatorMismatch => (
            "MismatchedFree",
            "Memcheck:Free",
            format!("Mismatched free() / delete / delete [] ({})", words::sentence(finding)),
        ),
        Overflow | Underflow | WriteAfterFree | UseAfterFree | UseAfterPoison
            if finding.is_access() && finding.access == Access::Read =>
        {
            ("InvalidRead", "Memcheck:Addr1", format!("Invalid read of size {size}"))
        }
        Overflow | Underflow | WriteAfterFree | UseAfterFree | UseAfterPoison => {
            ("InvalidWrite", "Memcheck:Addr1", format!("Invalid write of size {size}"))
        }
        MayOverflow => ("InvalidWrite", "Memcheck:Addr1", words::sentence(finding)),
        Uninitialised => {
            ("UninitValue", "Memcheck:Value1", format!("Use of uninitialised value of size {size}"))
        }
        Leak => {
            let size = grouped(finding.size);
            let what =
                format!("{size} bytes in 1 blocks are definitely lost in loss record 1 of 1");
            ("Leak_DefinitelyLost", words::LEAK_BLOCK, what)
        }
        _ => (
            "InvalidFree",
            "Memcheck:Free",
            "Invalid free() / delete / delete[] / realloc()".to_owned(),
        ),
    }
}

/// Describes the address: `Address 0x4a4104a is 0 bytes after a block of size 10 alloc'd`.
fn address(finding: &Finding, is_freed: bool) -> String {
    let is_written = finding.length != 0 && finding.block != 0;
    let at = if is_written {
        finding.block.wrapping_add_signed(finding.offset)
    } else {
        finding.pointer
    };
    let is = match finding.region {
        _ if finding.block != 0 => {
            let size = finding.size;
            let (distance, relation) = match u64::try_from(finding.offset) {
                Err(_) => (finding.offset.unsigned_abs(), "before"),
                Ok(offset) if offset < size || offset == 0 => (offset, "inside"),
                Ok(offset) => (offset - size, "after"),
            };
            let done = if is_freed { "free'd" } else { "alloc'd" };
            format!(
                "{} bytes {relation} a block of size {} {done}",
                grouped(distance),
                grouped(size)
            )
        }
        Region::Stack => "on a thread's stack".to_owned(),
        Region::Globals => "in the data of the program or of a library".to_owned(),
        Region::Code => "in code".to_owned(),
        Region::FirstClassHeap => "in a first-class heap".to_owned(),
        Region::Pool => "in a pool".to_owned(),
        Region::Collected => "in a collected heap".to_owned(),
        Region::Arena => "in an arena".to_owned(),
        _ => "not stack'd, malloc'd or (recently) free'd".to_owned(),
    };
    format!("Address {at:#x} is {is}")
}

fn shown<'a>(
    report: &'a Report,
    stack: StackId,
    style: &Style,
) -> impl Iterator<Item = Call<'a>> + use<'a> {
    let (below_main, mut is_over) = (style.below_main, false);
    calls(&report.stacks, stack).take_while(move |call| {
        let goes_on = !is_over;
        let name = call.function.and_then(|function| function.name.as_deref());
        is_over = !below_main && name == Some("main");
        goes_on
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_their_blocks() {
        let on = |offset, length| Finding {
            block: 0x1000,
            pointer: 0x1000,
            size: 10,
            offset,
            length,
            ..Finding::default()
        };
        for (finding, is_freed, said) in [
            (on(10, 1), false, "Address 0x100a is 0 bytes after a block of size 10 alloc'd"),
            (on(-2, 2), false, "Address 0xffe is 2 bytes before a block of size 10 alloc'd"),
            (on(0, 0), true, "Address 0x1000 is 0 bytes inside a block of size 10 free'd"),
            (
                Finding { region: Region::Stack, pointer: 0x7ff0, ..Finding::default() },
                false,
                "Address 0x7ff0 is on a thread's stack",
            ),
            (
                Finding { region: Region::Nothing, pointer: 0x10, ..Finding::default() },
                false,
                "Address 0x10 is not stack'd, malloc'd or (recently) free'd",
            ),
        ] {
            assert_eq!(address(&finding, is_freed), said);
        }
    }

    /// An access that was caught in advance has the kind and size of the intended access.
    #[test]
    fn what_functions_do_is_no_write_that_was_found_later() {
        let (call, length) = (Where::Function, 16);
        for kind in [FindingKind::Overflow, FindingKind::UseAfterFree, FindingKind::UseAfterPoison]
        {
            for (access, name) in [(Access::Read, "InvalidRead"), (Access::Write, "InvalidWrite")] {
                let finding = Finding { kind, call, access, length, ..Finding::default() };
                assert_eq!((named(&finding).0, finding.is_found_later()), (name, false));
            }
        }
    }
}
