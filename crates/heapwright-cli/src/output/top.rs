//! Running processes: a line each, or one of them in full.
//!
//! ```text
//!  PID RESIDENT     LIVE  PARTIAL   CACHES  WAITING  ...  FAULTS/S  LIMIT    AGE  CACHE  COMMAND
//! 4242    21.9M    15.2M     1.1M   512.0K     2.0M  ...       120    2 %   0.1s  auto   ./srv
//! ```
//!
//! The parts add up to the resident size, unless the process's own figures are old. A dash is an
//! unknown figure.

use super::document::{Bar, Cell, Document, Part, Table};
use super::json::{Figures, list, object};
use super::{of_process, printable_text, units};
use crate::live::{FRESH, Parts, Process, Reported, Seen, Watched};
use heapwright_record::Stats;
use heapwright_record::status::MOST;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Pid,
    Resident,
    Live,
    Partial,
    Caches,
    Waiting,
    Metadata,
    NotOurs,
    Faults,
    Limit,
    Age,
    Model,
    Command,
}

impl Column {
    /// All columns, each with its title and its width. The command takes the width that is left.
    const TITLES: [(Self, &'static str, usize); 13] = [
        (Self::Pid, "PID", 8),
        (Self::Resident, "RESIDENT", 8),
        (Self::Live, "LIVE", 8),
        (Self::Partial, "PARTIAL", 8),
        (Self::Caches, "CACHES", 8),
        (Self::Waiting, "WAITING", 8),
        (Self::Metadata, "METADATA", 8),
        (Self::NotOurs, "NOT OURS", 8),
        (Self::Faults, "FAULTS/S", 8),
        (Self::Limit, "LIMIT", 6),
        (Self::Age, "AGE", 6),
        (Self::Model, "CACHE", 9),
        (Self::Command, "COMMAND", 0),
    ];

    pub(crate) const ALL: [Self; 13] = {
        let mut all = [Self::Pid; 13];
        let mut at = 0;
        while at < all.len() {
            all[at] = Self::TITLES[at].0;
            at += 1;
        }
        all
    };

    pub(crate) fn title(self) -> &'static str {
        Self::TITLES[self as usize].1
    }

    pub(crate) fn width(self) -> usize {
        Self::TITLES[self as usize].2
    }

    /// Returns whether the column has numbers, which are aligned to the right.
    pub(crate) fn is_number(self) -> bool {
        !matches!(self, Self::Model | Self::Command)
    }

    pub(crate) fn text(self, watched: &Watched) -> String {
        let process = &watched.seen.process;
        match self {
            Self::Pid => process.pid.to_string(),
            Self::Resident => units::short(process.resident),
            Self::Faults => watched.rates.map_or_else(dash, |rates| format!("{:.0}", rates.faults)),
            Self::Limit => process.limit.map_or_else(dash, |limit| {
                format!("{:.0} %", units::share(process.resident, limit) * 100.0)
            }),
            Self::Age => age(watched).map_or_else(dash, |age| match age.as_secs() {
                0..100 => format!("{:.1}s", age.as_secs_f64()),
                seconds @ 100..6000 => format!("{}m", seconds / 60),
                seconds => format!("{}h", seconds / 3600),
            }),
            Self::Model => model(&watched.seen),
            Self::Command => printable_text(&process.command.join(" ")),
            _ => match &watched.seen.report {
                Some(report) => units::short(self.bytes(&report.parts)),
                None => dash(),
            },
        }
    }

    /// Returns the key by which processes are sorted, the largest first.
    pub(crate) fn key(self, watched: &Watched) -> f64 {
        let process = &watched.seen.process;
        match self {
            Self::Pid => f64::from(process.pid),
            Self::Resident | Self::Model | Self::Command => process.resident as f64,
            Self::Faults => watched.rates.map_or(-1.0, |rates| rates.faults),
            Self::Limit => {
                process.limit.map_or(-1.0, |limit| units::share(process.resident, limit))
            }
            Self::Age => age(watched).map_or(-1.0, |age| age.as_secs_f64()),
            _ => {
                watched.seen.report.as_ref().map_or(-1.0, |report| self.bytes(&report.parts) as f64)
            }
        }
    }

    fn bytes(self, parts: &Parts) -> u64 {
        match self {
            // Memory of pools and arenas counts as live: their free parts are not known.
            Self::Live => parts.live + parts.rounding + parts.pools,
            Self::Partial => parts.partial,
            Self::Caches => parts.caches + parts.remote,
            Self::Waiting => parts.waiting,
            Self::Metadata => parts.metadata,
            _ => parts.not_ours,
        }
    }
}

fn dash() -> String {
    "-".to_owned()
}

fn age(watched: &Watched) -> Option<Duration> {
    watched.seen.report.as_ref().map(|report| report.age)
}

/// Returns the cache model of a process, or that it runs in debug mode.
fn model(seen: &Seen) -> String {
    if seen.process.option("mode") == Some("debug") {
        return "debug".to_owned();
    }
    seen.process.option("cache").unwrap_or("auto").to_owned()
}

/// Makes the document of processes, in the order given: a table, or each of them in full.
pub(crate) fn document<'a>(processes: &'a [&Watched], in_full: bool) -> Document<'a> {
    let parts = if in_full {
        processes.iter().flat_map(|process| one(process)).collect()
    } else {
        vec![Part::Table(table(processes))]
    };
    Document::plain(parts, || object! { processes: list(processes.iter().copied().map(data)) })
}

fn table(processes: &[&Watched]) -> Table {
    let columns = Column::ALL.map(|column| {
        let kind = if column.is_number() { ">" } else { "" };
        format!("{kind}{}:{}", column.title(), column.width())
    });
    let mut table = Table::new(&columns.join("|"));
    for watched in processes {
        table.row("", Column::ALL.map(|column| Cell::Text(column.text(watched))).into());
    }
    table
}

fn data(watched: &Watched) -> impl Serialize {
    let (process, report) = (&watched.seen.process, watched.seen.report.as_ref());
    let facts = report.map(|report| &report.facts);
    object! { process =>
        pid, user, command, options,
        resident_bytes: process.resident,
        peak_resident_bytes: process.peak,
        page_faults: process.faults,
        limit_bytes: process.limit,
        rates: watched
            .rates
            .map(|rates| object! { page_faults: rates.faults, given_back_bytes: rates.given_back }),
        parts: report.map(|report| report.parts.all().into_iter().collect::<BTreeMap<_, _>>()),
        gone_bytes: report.map(|report| report.parts.gone),
        swapped_bytes: report.map(|report| report.parts.swapped),
        sampling_bytes: facts.map(|facts| facts.sampling),
        purge_delay_ms: facts.map(|facts| facts.purge_delay_ms).filter(|&delay| delay != MOST),
        age_seconds: report.map(|report| report.age.as_secs_f64()),
        report_ns: facts.map(|facts| facts.took_ns),
        stats: report.map(|report| Figures(&report.stats)),
    }
}

pub(crate) const NONE: &str = "no process of yours runs on heapwright and publishes figures (start one with `heapwright run`)";

/// Returns the line about the process, with the age of its figures if that matters.
pub(crate) fn heading(process: &Process, report: Option<&Reported>) -> String {
    let heading = of_process(process.pid, &process.command);
    match report.map(|report| report.age).filter(|age| *age > FRESH) {
        Some(age) => format!("{heading} (its own figures are {} old)", units::duration(age)),
        None => heading,
    }
}

fn one(watched: &Watched) -> [Part; 4] {
    let (process, report) = (&watched.seen.process, watched.seen.report.as_ref());
    let bar = |(name, bytes)| Bar::of(name, units::bytes(bytes), bytes, process.resident);
    [
        Part::heading(heading(process, report)),
        Part::fields("  ", 18, facts(watched)),
        Part::gap(),
        match report {
            None => Part::text_of("", "it has not said yet where its memory is"),
            Some(report) => {
                Part::Bars([18, 10], " ", parts(&report.parts).into_iter().map(bar).collect())
            }
        },
    ]
}

/// Returns the parts of resident memory, with names for people.
pub(crate) fn parts(parts: &Parts) -> Vec<(&'static str, u64)> {
    let names = [
        "live blocks",
        "rounding",
        "partial slabs",
        "caches",
        "freed by others",
        "waiting for purge",
        "metadata",
        "pools, arenas",
        "not heapwright's",
        "unattributed",
    ];
    let all = names.into_iter().zip(parts.all());
    all.map(|(name, (_, bytes))| (name, bytes)).filter(|(_, bytes)| *bytes > 0).collect()
}

pub(crate) fn facts(watched: &Watched) -> Vec<(&'static str, String)> {
    let process = &watched.seen.process;
    let mut facts = vec![
        (
            "resident",
            format!("{}, at most {}", units::bytes(process.resident), units::bytes(process.peak)),
        ),
        ("cache model", model(&watched.seen)),
    ];
    if let Some(limit) = process.limit {
        let used = units::percent(process.resident, limit);
        facts.push(("memory limit", format!("{}, {used} of it used", units::bytes(limit))));
    }
    let mut faults = units::counted(process.faults, "page fault");
    if let Some(rates) = watched.rates {
        let _ = write!(faults, ", {:.0} a second", rates.faults);
    }
    facts.push(("page faults", faults));
    if let Some(report) = &watched.seen.report {
        let (stats, told) = (&report.stats, &report.facts);
        facts.push(("live", live(stats)));
        let mut given = units::bytes(stats.purged_bytes);
        if let Some(rates) = watched.rates {
            let _ = write!(given, ", {} a second", units::bytes(rates.given_back as u64));
        }
        facts.push(("given back so far", given));
        let delay = match told.purge_delay_ms {
            MOST => "never".to_owned(),
            ms => format!("after {}", units::duration(Duration::from_millis(ms))),
        };
        facts.push(("free pages go back", delay));
        facts.push(("thread caches", caches(stats)));
        if report.parts.gone > 0 {
            facts.push(("gone since", units::bytes(report.parts.gone)));
        }
        if report.parts.swapped > 0 {
            facts.push(("in swap space", units::bytes(report.parts.swapped)));
        }
        let sampled = match told.sampling {
            0 => "off".to_owned(),
            period => format!("one block per {}", units::round_bytes(period)),
        };
        facts.push(("sampling", sampled));
        facts.push(("as of", format!("{} ago", units::duration(report.age))));
    }
    if !process.options.is_empty() {
        facts.push(("options", printable_text(&process.options)));
    }
    facts
}

fn live(stats: &Stats) -> String {
    format!(
        "{} in {}, {} of them large with {}",
        units::bytes(stats.live_bytes),
        units::counted(stats.live_blocks, "block"),
        units::count(stats.large_blocks),
        units::bytes(stats.large_bytes)
    )
}

fn caches(stats: &Stats) -> String {
    let mut text = format!("{} of threads", units::count(stats.caches_live));
    if stats.caches_orphaned > 0 {
        let _ = write!(text, ", {} of threads that ended", units::count(stats.caches_orphaned));
    }
    if stats.caches_shared > 0 {
        let _ = write!(
            text,
            ", {} shared with {}",
            units::count(stats.caches_touched),
            units::bytes(stats.caches_bytes)
        );
    }
    text
}
