//! What came of a plan: cells of `figures` (results.tsv), and what is read of them.
//!
//! ```text
//!   section   row                column    metrics
//!   rpc       40 none, 40 61     setting   what the program printed (below), findings, failed
//!   empty     empty              glibc     what the empty program has
//!   left out  a setting                    it says in results.tsv alone that it could not be had
//! ```
//!
//! What a program of programs/ prints is one line, `result program=rpc threads=40 ...`:
//!
//! | name | |
//! |---|---|
//! | threads | at once |
//! | wall_ns, cpu_ns | of the work: after the tables were made, before the line is printed |
//! | operations, ns_an_operation | calls of the allocator; wall time over calls |
//! | live_peak, live_error | the most bytes that the program held, as asked for; how far off that may be |
//! | rss_peak, rss_end, anonymous_end | resident bytes at the peak and at the end, and what of these is no file |
//! | stacks, own | what of it are stacks of threads, and tables of the program |
//! | every, timed, inside_ns, clock_ns | with a clock: each so-manieth call, how many, the time inside of all calls, what a reading costs (taken off) |
//! | total | threads in all (ttest1, churn) |
//! | clients, servers, requests, p50_ns, p99_ns, p999_ns | of rpc |
//! | anonymous_first, stacks_first | of churn: after the first 10 threads |
//! | bursts | of idle |

use std::collections::BTreeMap;

use ::figures::cells::{Cells, Rounds, ratios};

use crate::metric::{Line, Metric};
use crate::plan::EMPTY;
use crate::setting::{GLIBC, is_ours};

/// A workload at a number of threads under a setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) workload: &'a str,
    pub(crate) threads: u32,
    pub(crate) setting: &'a str,
}

/// All of it.
pub(crate) struct Results {
    pub(crate) cells: Cells,
    /// What the empty program has of anonymous memory.
    empty: f64,
}

impl Results {
    pub(crate) fn of(cells: Cells) -> Self {
        let empty = cells.middle((EMPTY, EMPTY, GLIBC), "anonymous_end").unwrap_or(0.0);
        Self { cells, empty }
    }

    /// The settings that took part, in their order.
    pub(crate) fn settings(&self) -> Vec<&str> {
        let sections = self.cells.sections().into_iter().filter(|section| *section != EMPTY);
        sections.map(|section| self.cells.columns(section)).next().unwrap_or_default()
    }

    /// Heapwright's.
    pub(crate) fn ours(&self) -> Vec<&str> {
        self.settings().into_iter().filter(|name| is_ours(name)).collect()
    }

    /// Whether nothing of ours failed or complained.
    pub(crate) fn is_sound(&self) -> bool {
        let of = |metric| self.cells.total(metric, |cell| is_ours(&cell.2));
        of("failed") + of("findings") == 0.0
    }

    /// The numbers of threads that a workload was run with, ascending.
    pub(crate) fn threads(&self, workload: &str) -> Vec<u32> {
        let rows = self.cells.rows(workload).into_iter();
        let mut all: Vec<u32> =
            rows.filter_map(|row| row.split(' ').next()?.parse().ok()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// A place's values by round.
    pub(crate) fn rounds(&self, place: Place<'_>, metric: &Metric) -> Rounds {
        let row = format!("{} {}", place.threads, metric.clock);
        let at = (place.workload, row.as_str(), place.setting);
        let mut lines: BTreeMap<usize, BTreeMap<&str, f64>> = BTreeMap::new();
        for name in self.cells.metrics(at) {
            for (&round, &value) in self.cells.of(at, name).into_iter().flatten() {
                lines.entry(round).or_default().insert(name, value);
            }
        }
        let value =
            |(round, numbers)| Some((round, (metric.of)(&Line { numbers, empty: self.empty })?));
        lines.into_iter().filter_map(value).collect()
    }

    /// The same without the rounds' numbers.
    pub(crate) fn values(&self, place: Place<'_>, metric: &Metric) -> Vec<f64> {
        self.rounds(place, metric).into_values().collect()
    }

    /// One place's ratio to another one's, round by round.
    pub(crate) fn ratios(&self, one: Place<'_>, other: Place<'_>, metric: &Metric) -> Vec<f64> {
        ratios(&self.rounds(one, metric), &self.rounds(other, metric))
    }

    /// Whether a run of a place failed.
    pub(crate) fn failed(&self, place: Place<'_>) -> bool {
        let rows = self.cells.rows(place.workload);
        let of_place = format!("{} ", place.threads);
        rows.iter()
            .filter(|row| row.starts_with(&of_place))
            .any(|row| self.cells.of((place.workload, row, place.setting), "failed").is_some())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::metric;

    /// Lines of a file: metrics of a workload, a row and a setting in a round.
    pub(crate) fn lines(at: (&str, &str, &str), round: usize, fields: &[(&str, f64)]) -> String {
        let cell = (at.0.to_owned(), at.1.to_owned(), at.2.to_owned());
        fields.iter().map(|(name, value)| Cells::line(&cell, round, name, *value)).collect()
    }

    #[test]
    fn a_line_of_a_round_is_one_metric_s() {
        let mut text = lines(("empty", "empty", GLIBC), 1, &[("anonymous_end", 30_000.0)]);
        for (round, wall) in [(1, 1e9), (2, 2e9)] {
            let fields = [("requests", 1000.0), ("wall_ns", wall)];
            text += &lines(("rpc", "40 none", "exclusive"), round, &fields);
        }
        text += &lines(("rpc", "40 none", "shared"), 2, &[("requests", 500.0), ("wall_ns", 2e9)]);
        text += &lines(("rpc", "80 61", "scudo"), 1, &[("failed", 1.0)]);
        let results = Results::of(Cells::parse(&text).unwrap());
        let place = |setting| Place { workload: "rpc", threads: 40, setting };
        assert_eq!(results.values(place("exclusive"), metric::REQUESTS), [1000.0, 500.0]);
        let (shared, exclusive) = (place("shared"), place("exclusive"));
        assert_eq!(results.ratios(shared, exclusive, metric::REQUESTS), [0.5]);
        assert_eq!((results.empty, results.threads("rpc")), (30_000.0, vec![40, 80]));
        assert_eq!(results.settings(), ["exclusive", "shared", "scudo"]);
        // A peer's failure is a row that says so.
        assert!(results.failed(Place { threads: 80, ..place("scudo") }) && results.is_sound());
        text += &lines(("rpc", "80 61", "shared"), 1, &[("failed", 1.0)]);
        assert!(!Results::of(Cells::parse(&text).unwrap()).is_sound());
    }
}
