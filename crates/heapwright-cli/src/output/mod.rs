//! All formatting, except that of the subcommands.
//!
//! ```text
//! document   the model of a report: sections of paragraphs, lists, tables, bars, cards, drawings;
//!            as text and as a page
//! table, stack, bars   its parts            units      bytes, counts, durations, dates
//!
//! text/      reports for people             html/      pages, with plots
//! heap       a heap dump, text and page     race       words of a race, for both
//! json/      for machines; documents the fields
//! found      the findings in one shape, for
//! sarif      code scanning                  junit      CI systems
//! gcc        lines that editors jump to     memcheck/  readers of valgrind's text or XML
//! profile/   held memory, for profilers     held       held memory, stack by stack
//! prometheus metrics of processes           timeline   collections, for Chrome and Perfetto
//!
//! rules      the kinds of findings          sentences  about findings
//! words      names, suppressions            calls      stacks as calls
//! render     the formats, and a report in one of them
//! run, answer          the data of a run, and of the doctor's answer
//! file, look           files to write to; the abilities of a terminal
//! ```
//!
//! Formatters are functions from data and a [`Look`] to text. They print nothing themselves, so
//! tests compare their text with golden files: `golden/` of this package.
//! `HEAPWRIGHT_BLESS=1 cargo test` writes these again.

mod answer;
mod bars;
mod calls;
mod document;
mod file;
pub(crate) mod found;
mod gcc;
pub(crate) mod heap;
mod held;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod junit;
mod look;
pub(crate) mod memcheck;
pub(crate) mod profile;
pub(crate) mod prometheus;
mod race;
mod render;
mod rules;
mod run;
#[cfg(test)]
mod sample;
pub(crate) mod sarif;
mod sentences;
mod stack;
mod table;
pub(crate) mod text;
mod timeline;
mod units;
mod words;
mod xml;

pub(crate) use answer::{Answer, Trial};
pub(crate) use file::{emptied, open, open_own, remove_unwritten, replace};
pub(crate) use look::Look;
pub(crate) use render::{Format, Plain, WithMetrics, WithPage, render, render_to};
pub(crate) use run::Run;
pub(crate) use sentences::recorded;
pub(crate) use timeline::{chrome, save_chrome};
pub(crate) use units::rfc3339;
pub(crate) use words::{fault_stack, frame, printable, printable_text, sentence};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs::File;
use std::io::{self, ErrorKind, Write};

/// Makes a progress bar on stderr, which draws at most four times a second.
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

/// Returns a number of bytes, for people.
pub(crate) fn size(bytes: u64) -> String {
    units::bytes(bytes)
}

/// Writes a text in its look to stdout, or to a file, whose contents it replaces.
pub(crate) fn write(file: Option<File>, text: impl FnOnce(Look) -> String) -> io::Result<()> {
    match file {
        Some(file) => {
            let look = Look::of(&file);
            replace(file, &text(look))
        }
        None => {
            let text = text(Look::of(&io::stdout()));
            to_stdout(|out| out.write_all(text.as_bytes()))
        }
    }
}

/// Writes the text of each format to its file, or to stdout. A format with nothing to write gives
/// `None`.
pub(crate) fn write_all<F>(
    outputs: Vec<(F, Option<File>)>,
    text: impl Fn(F, Look) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<()> {
    for (format, file) in outputs {
        let look = file.as_ref().map_or_else(|| Look::of(&io::stdout()), Look::of);
        if let Some(text) = text(format, look)? {
            write(file, |_| text)?;
        }
    }
    Ok(())
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
