//! Functions and lines of a check's findings, resolved in the process (feature `symbols`).
//!
//! ```text
//!   a finding            printed at once, with addresses: the thread may hold any lock,
//!     |                  and must not allocate; noted, with its scope             [`note`]
//!     v
//!   the check judges     its notes are taken while its scope runs (none is replaced)
//!     |                                                                           [`take`]
//!     v
//!   the check has ended  no lock is held: names are looked up, by `backtrace`     [`tell`]
//! ```
//!
//! The lookup of names allocates, perhaps from the debug heap. By then the check's own scope has
//! ended, and cached data of the program's files is released, so an outer check sees no leak.
//! Called by `report` and `check`.
#![expect(clippy::disallowed_types, reason = "it is used where nothing of the heap is held")]

extern crate std;

use core::ffi::c_void;
use core::fmt::Write;
use core::ptr;
use std::string::String;

use heapwright_record::debug::{Call, Finding, Formatted, Role};

use crate::stacks::{self, Stack};
use crate::sync::Lock;

use super::scope;

/// The most findings that wait for the end of their checks. Others are printed without names.
const MOST: usize = 32;

#[derive(Clone, Copy)]
struct Note {
    /// The scope's number, never 0.
    scope: u32,
    finding: Finding,
}

static NOTES: Lock<[Option<Note>; MOST]> = Lock::new([None; MOST]);

/// Notes a finding. Any thread may call this, even in a signal handler.
#[cold]
pub(super) fn note(scope: u32, finding: &Finding) {
    let Some(mut notes) = NOTES.lock_soon() else { return };
    let same = |note: &Note| note.scope == scope && is_same(&note.finding, finding);
    if scope == 0 || notes.iter().flatten().any(same) {
        return;
    }
    // A closure that panicked leaves its notes.
    let is_free = |note: &Option<Note>| note.is_none_or(|note| !scope::is_running(note.scope));
    if let Some(place) = notes.iter_mut().find(|note| is_free(note)) {
        *place = Some(Note { scope, finding: *finding });
    }
}

fn is_same(one: &Finding, other: &Finding) -> bool {
    let key = |finding: &Finding| {
        (finding.kind, finding.here.stack, finding.freed.stack, finding.allocated.stack)
    };
    key(one) == key(other)
}

pub(super) struct Taken([Option<Finding>; MOST]);

/// Takes the findings of a scope, which must still run. Afterwards other checks reuse the places.
#[cold]
pub(super) fn take(scope: u32) -> Taken {
    let mut taken = [None; MOST];
    if let Some(mut notes) = NOTES.lock_soon() {
        for (to, note) in taken.iter_mut().zip(notes.iter_mut()) {
            *to = note.take_if(|note| note.scope == scope).map(|note| note.finding);
        }
    }
    Taken(taken)
}

/// Prints the findings of an ended scope with functions and lines. The caller must hold no lock.
#[cold]
pub(super) fn tell(taken: &Taken) {
    let mut text = Text(String::new());
    for finding in taken.0.iter().flatten() {
        text.finding(finding);
    }
    if !text.0.is_empty() {
        std::eprint!("{}", text.0);
        backtrace::clear_symbol_cache();
    }
}

fn is_of_library(file: &str) -> bool {
    file.starts_with(concat!(env!("CARGO_MANIFEST_DIR"), "/src/"))
        || file.contains("/heapwright-stacks")
        || file.starts_with("/rustc/")
}

/// Writing to a string cannot fail.
struct Text(String);

impl Text {
    fn finding(&mut self, finding: &Finding) {
        let _ = write!(self.0, "heapwright: {}: ", finding.kind.word());
        finding.sentence(&mut Formatted(&mut self.0));
        self.0.push('\n');
        for (role, moment) in finding.moments() {
            self.0.push_str("    ");
            finding.title(role, "", &mut Formatted(&mut self.0));
            self.0.push('\n');
            let is_exact = role == Role::Here && finding.call == Call::Access;
            for (number, &pc) in stacks::frames(Stack(moment.stack)).iter().enumerate() {
                // A return address belongs to the next instruction.
                let at = if is_exact && number == 0 { pc } else { pc - 1 };
                self.frame(number, at);
            }
        }
    }

    /// Adds a line for each function at an address, but none for heapwright's and std's.
    fn frame(&mut self, number: usize, at: usize) {
        let mut is_known = false;
        backtrace::resolve(ptr::without_provenance_mut::<c_void>(at), |symbol| {
            let Some(name) = symbol.name() else { return };
            is_known = true;
            let file = symbol.filename().map(|file| file.to_string_lossy());
            if file.as_deref().is_some_and(is_of_library) {
                return;
            }
            let _ = write!(self.0, "    #{number} {name:#}");
            if let (Some(file), Some(line)) = (file, symbol.lineno()) {
                let _ = write!(self.0, " at {file}:{line}");
            }
            self.0.push('\n');
        });
        if !is_known {
            let _ = writeln!(self.0, "    #{number} ?? at {at:#x}");
        }
    }
}
