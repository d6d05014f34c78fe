//! The nature of a program file, and the effect of a preload library on it.
//!
//! ```text
//! path       a name on PATH, as exec looks it up
//! script     #! lines, and the command lines of `env` in them
//! elf        the facts in an ELF file that matter here; no judgement
//! allocators allocators by their symbols
//! runtimes   programs that keep a heap of their own; advice
//! privilege  set-uid, capabilities, mount flags: would exec be "secure"?
//! judge      facts -> findings, in words
//! kernel     a kernel facility that is switched off
//! system     every program of this machine, and /etc/ld.so.preload
//! hardened   the facilities of this machine for `mode=hardened`
//! ```
//!
//! [`inspect`] follows a command from its name to the program that the kernel would run. It reads
//! files and never runs one.

mod allocators;
mod elf;
pub(crate) mod hardened;
mod judge;
pub(crate) mod kernel;
pub(crate) mod path;
mod privilege;
mod runtimes;
mod script;
pub(crate) mod system;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// The program's malloc becomes heapwright's.
    Yes,
    /// The files do not say.
    Unknown,
    /// The library is not loaded, or the program does not use it.
    No,
}

/// A fact about a program that the user should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The effect on the verdict; `Yes` for a remark.
    pub(crate) verdict: Verdict,
    /// A stable name, for machines.
    pub(crate) code: &'static str,
    /// A sentence without its full stop.
    pub(crate) text: String,
}

impl Finding {
    fn no(code: &'static str, text: impl Into<String>) -> Self {
        Self { verdict: Verdict::No, code, text: text.into() }
    }

    fn unknown(code: &'static str, text: impl Into<String>) -> Self {
        Self { verdict: Verdict::Unknown, code, text: text.into() }
    }

    fn remark(code: &'static str, text: impl Into<String>) -> Self {
        Self { verdict: Verdict::Yes, code, text: text.into() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) path: PathBuf,
    pub(crate) kind: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) steps: Vec<Step>,
    pub(crate) findings: Vec<Finding>,
}

impl Report {
    /// Returns the gravest verdict of the findings.
    pub(crate) fn verdict(&self) -> Verdict {
        self.findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Yes)
    }

    /// Returns the first finding with the gravest verdict, unless that is `Yes`.
    pub(crate) fn reason(&self) -> Option<&Finding> {
        let verdict = self.verdict();
        self.findings.iter().find(|f| verdict != Verdict::Yes && f.verdict == verdict)
    }
}

/// The most files that a command goes through. The kernel allows five `#!` interpreters in a row.
const MAX_STEPS: usize = 8;

/// The platform for which a library is made, and on which a program can load it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) machine: u16,
    /// Whether the C library is musl, not glibc.
    pub(crate) is_musl: bool,
}

/// Returns whether a library is for musl, by the C library that it needs.
pub(crate) fn is_for_musl(library: &Path) -> bool {
    let facts = elf::Facts::read(library).ok();
    facts.and_then(|facts| facts.inside).is_some_and(|inside| {
        inside.needed.iter().any(|name| name == "libc.so" || name.starts_with("libc.musl"))
    })
}

/// Judges a command's program against a library for `target`.
pub(crate) fn inspect(command: &OsStr, target: Target) -> Report {
    let mut report = Report { steps: Vec::new(), findings: Vec::new() };
    let mut next: Option<OsString> = Some(command.to_owned());
    while let Some(name) = next.take() {
        if report.steps.len() == MAX_STEPS {
            report.findings.push(Finding::no("loop", "its #! lines lead from script to script"));
            break;
        }
        let path = match path::find(&name) {
            Ok(path) => path,
            Err(problem) => {
                report.findings.push(problem.finding(&name));
                break;
            }
        };
        let (kind, follow) = look(&path, target, &mut report.findings);
        report.steps.push(Step { path, kind });
        next = follow;
    }
    report
}

/// Returns the file's kind in words and, for a script, the name of its interpreter.
fn look(path: &Path, target: Target, findings: &mut Vec<Finding>) -> (String, Option<OsString>) {
    let head = match script::head(path) {
        Ok(head) => head,
        Err(error) => {
            let text = format!("{} cannot be read: {error}", path.display());
            findings.push(Finding::unknown("unreadable", text));
            return (String::from("unreadable"), None);
        }
    };
    if head.starts_with(elf::MAGIC) {
        match elf::Facts::read(path) {
            Ok(facts) => {
                let place = privilege::Place::of(path);
                findings.extend(judge::program(path, &facts, &place, target));
                return (facts.to_string(), None);
            }
            Err(error) => {
                let text = format!("its ELF headers are damaged: {error}");
                findings.push(Finding::unknown("damaged", text));
                return (String::from("damaged ELF file"), None);
            }
        }
    }
    match script::parse(&head) {
        script::Script::NotOne => {
            findings.push(Finding::no(
                "not-elf",
                "it is neither an ELF program nor a script, so Linux cannot run it by itself",
            ));
            (String::from("unknown kind of file"), None)
        }
        script::Script::Plain => {
            findings.push(Finding::remark(
                "no-interpreter-line",
                "it is text without a #! line; shells run it with /bin/sh",
            ));
            (String::from("text"), Some(OsString::from("/bin/sh")))
        }
        script::Script::For(interpreter) => {
            if let Some(what) = interpreter.drops_preload {
                findings.push(Finding::no(
                    "environment-dropped",
                    format!("its #! line runs env with {what}, which drops LD_PRELOAD"),
                ));
            }
            findings.push(Finding::remark(
                "script",
                format!(
                    "it is a script: {} is what runs, and the programs it starts inherit heapwright",
                    interpreter.program.display()
                ),
            ));
            let kind = format!("script, #!{}", interpreter.line);
            (kind, Some(interpreter.program))
        }
    }
}

fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file())
}
