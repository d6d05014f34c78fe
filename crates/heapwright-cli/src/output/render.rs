//! A report in one of its formats.

use super::{Look, json, text};
use crate::report::model::Report;
use std::io::{self, Write};

/// How a report is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people, in the shape of sanitizers and valgrind
    #[default]
    Text,
    /// Everything, as one JSON object
    Json,
    // Another format: a variant here, and a line in `render`.
}

impl Format {
    /// Whether it tells of every stack that has live blocks, not of findings only.
    pub(crate) fn tells_everything(self) -> bool {
        self != Self::Text
    }
}

/// Writes a report.
pub(crate) fn render(
    report: &Report,
    format: Format,
    out: &mut dyn Write,
    look: Look,
) -> io::Result<()> {
    match format {
        Format::Text => text::report::write(report, out, look),
        Format::Json => json::report::write(report, out, look),
    }
}
