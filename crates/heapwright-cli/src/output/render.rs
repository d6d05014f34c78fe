//! The formats that subcommands offer, and a report in one of them.

use super::profile::{dhat, flamegraph, folded, pprof};
use super::{Look, emptied, gcc, json, junit, memcheck, page, sarif, text};
use crate::report::model::Report;
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::fs::File;
use std::io::{self, BufWriter, Write};

/// The formats of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people, in the shape of sanitizers and valgrind
    #[default]
    Text,
    /// Everything, as one JSON object
    Json,
    /// A page with everything, for a browser
    Html,
    /// Findings, for code scanning (SARIF 2.1.0)
    Sarif,
    /// Findings, for CI systems (JUnit's XML)
    Junit,
    /// Findings, a line each as compilers print them, for editors
    Gcc,
    /// Findings, in the words of valgrind's memcheck
    Memcheck,
    /// Findings, in valgrind's XML (protocol 4)
    MemcheckXml,
    /// Live bytes by stack, as a picture (SVG)
    Flamegraph,
    /// Live bytes by stack, a line each, for flame graph tools
    Folded,
    /// Live blocks and bytes by stack, for pprof
    Pprof,
    /// Live blocks and bytes by stack, for the viewer of valgrind's DHAT
    Dhat,
}

/// The formats of a report for which text and JSON suffice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Plain {
    /// For people
    #[default]
    Text,
    /// Everything, as one JSON object
    Json,
}

/// The formats of a report that also has a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WithPage {
    /// For people
    #[default]
    Text,
    /// Everything, as one JSON object
    Json,
    /// A page with pictures, complete in itself, for a browser
    Html,
}

impl From<Plain> for WithPage {
    fn from(format: Plain) -> Self {
        match format {
            Plain::Text => Self::Text,
            Plain::Json => Self::Json,
        }
    }
}

/// The formats of a report on running processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WithMetrics {
    /// For people
    #[default]
    Text,
    /// Everything, as one JSON object
    Json,
    /// Metrics, in Prometheus's text format
    Prometheus,
}

impl Format {
    /// Parses the formats that show held memory. The other formats show only findings.
    pub(crate) fn of_memory() -> impl TypedValueParser<Value = Self> {
        let findings = [Self::Sarif, Self::Junit, Self::Gcc, Self::Memcheck, Self::MemcheckXml];
        let of_memory = Self::value_variants().iter().filter(move |one| !findings.contains(one));
        PossibleValuesParser::new(of_memory.filter_map(ValueEnum::to_possible_value))
            .try_map(|name| Self::from_str(&name, false))
    }

    /// Returns whether the format needs details of every leak, not only of the wanted kinds.
    pub(crate) fn shows_all_stacks(self) -> bool {
        !matches!(self, Self::Text | Self::Gcc | Self::Memcheck | Self::MemcheckXml)
    }

    /// Returns the lines of the report for which the format has no place.
    pub(crate) fn left_out(self, report: &Report) -> impl Iterator<Item = &String> {
        let [unseen, notes] = match self {
            Self::Text | Self::Json | Self::Html | Self::Sarif | Self::Gcc | Self::Memcheck => {
                [false, false]
            }
            Self::Junit => [false, true],
            _ => [true, true],
        };
        let unseen = report.unseen.iter().filter(move |_| unseen);
        unseen.chain(report.notes.iter().filter(move |_| notes))
    }
}

pub(crate) fn render(
    report: &Report,
    format: Format,
    out: &mut dyn Write,
    look: Look,
) -> io::Result<()> {
    let document = |format| {
        let document = page::of(report).with(|| json::report::data(report));
        document.rendered(format, look).map_err(io::Error::other)
    };
    match format {
        Format::Text => text::report::write(report, out, look),
        Format::Json => out.write_all(document(WithPage::Json)?.as_bytes()),
        Format::Html => out.write_all(document(WithPage::Html)?.as_bytes()),
        Format::Sarif => sarif::write(report, out),
        Format::Junit => junit::write(report, out),
        Format::Gcc => gcc::write(report, out),
        Format::Memcheck => memcheck::text::write(report, &memcheck::Style::default(), out),
        Format::MemcheckXml => memcheck::xml::write(report, &memcheck::Style::default(), out),
        Format::Flamegraph => flamegraph::write(report, out),
        Format::Folded => folded::write(report, out),
        Format::Pprof => pprof::write(report, out),
        Format::Dhat => dhat::write(report, out),
    }
}

/// Writes a report into a file, and replaces its contents.
pub(crate) fn render_to(file: File, report: &Report, format: Format) -> io::Result<()> {
    let look = Look::of(&file);
    let mut out = BufWriter::new(emptied(file)?);
    render(report, format, &mut out, look)?;
    out.flush()
}
