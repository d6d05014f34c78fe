//! All formatting of results, except the screen of `top`.
//!
//! ```text
//! document   the model of a report: sections of paragraphs, lists, tables, bars, cards, drawings,
//!            and its figures; as text, as a page and as JSON
//! table, stack, bars, json   its parts         units     bytes, counts, durations, dates
//!
//! run, doctor, top, explain, diff, heap, bench, replay   documents of subcommands
//! page, profile_page, json/report                        documents of reports and heap profiles
//! chart, flame, classes, pages, scatter                  their pictures; race: words of a race
//!
//! writers in formats of other tools:
//! text/      lines of sanitizers and valgrind            memcheck/  readers of valgrind's own
//! found      the findings in one shape, for sarif, junit and gcc:
//! sarif      code scanning                  junit        CI systems
//! gcc        lines that editors jump to     profile/     held memory, for profilers
//! prometheus metrics of processes           timeline     collections, for Chrome and Perfetto
//!
//! rules      the kinds of findings          sentences    about findings
//! words      names, suppressions            render       the formats, and a report in one of them
//! file, look           files to write to; the abilities of a terminal
//! ```
//!
//! Formatters are functions from data to a document, or to text. They print nothing, so tests
//! compare their text with `golden/`. `HEAPWRIGHT_BLESS=1 cargo test` writes these files again.
#![allow(non_camel_case_types, reason = "in `object`, a field's type has the field's name")]

mod bars;
pub(crate) mod bench;
mod chart;
mod classes;
pub(crate) mod diff;
pub(crate) mod doctor;
mod document;
pub(crate) mod explain;
mod file;
mod flame;
pub(crate) mod found;
mod gcc;
pub(crate) mod heap;
mod json;
mod junit;
mod look;
pub(crate) mod memcheck;
mod page;
mod pages;
mod profile;
mod profile_page;
pub(crate) mod prometheus;
mod race;
mod render;
pub(crate) mod replay;
mod rules;
pub(crate) mod run;
mod sarif;
mod scatter;
mod sentences;
mod stack;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod timeline;
pub(crate) mod top;
mod units;
mod words;
mod xml;

pub(crate) use file::{emptied, make_folder, open, open_own, remove_unwritten, replace, stays};
pub(crate) use look::Look;
pub(crate) use render::{Format, Plain, WithMetrics, WithPage, render, render_to};
pub(crate) use sentences::{amount, recorded};
pub(crate) use timeline::{chrome, save_chrome};
pub(crate) use units::rfc3339;
pub(crate) use words::{fault_stack, frame, printable, printable_text, sentence};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs::File;
use std::io::{self, ErrorKind, Write};

/// Makes a progress bar that draws at most four times a second.
pub(crate) fn bar(length: u64, template: &str, is_shown: bool) -> ProgressBar {
    let target =
        if is_shown { ProgressDrawTarget::stderr_with_hz(4) } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// Returns the line above a process's figures: `process 4242: ./server --port 80`.
pub(crate) fn of_process(pid: u32, command: &[String]) -> String {
    format!("process {pid}: {}", printable_text(&command.join(" ")))
}

pub(crate) fn size(bytes: u64) -> String {
    units::bytes(bytes)
}

/// Writes to stdout, or replaces the contents of a file.
pub(crate) fn write(file: Option<File>, text: &str) -> io::Result<()> {
    match file {
        Some(file) => replace(file, text),
        None => to_stdout(|out| out.write_all(text.as_bytes())),
    }
}

/// Writes a line to stderr, and ignores a failure.
pub(crate) fn say(text: std::fmt::Arguments<'_>) {
    _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Writes to stdout; a closed pipe (`| head`) is not an error.
pub(crate) fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
