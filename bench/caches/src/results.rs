//! What came of a plan: every line of every run, and the file that keeps it.
//!
//! ```text
//! results.json   { "machine": ..., "settings": [...], "empty": [bytes...],
//!                  "left_out": [{setting, why}],
//!                  "runs": [{workload, threads, clock, setting, round, numbers | failed}],
//!                  "commits": [{threads, percent}] }
//! ```
//!
//! A cell of a table is one setting at one number of threads; its numbers are by
//! round, so that ratios can be of runs that stood side by side in time.

use std::collections::BTreeMap;

use ::figures::statistics::{Estimate, estimate, median};
use serde::{Deserialize, Serialize};

use crate::line::Numbers;
use crate::metric::Metric;
use crate::setting::Setting;

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct One {
    pub(crate) workload: String,
    pub(crate) threads: u32,
    /// Which calls were timed (plan.rs).
    pub(crate) clock: String,
    pub(crate) setting: String,
    pub(crate) round: u32,
    /// What it printed; empty if it failed.
    #[serde(default)]
    pub(crate) numbers: Numbers,
    /// Why there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
}

/// A setting that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeftOut {
    pub(crate) setting: Setting,
    pub(crate) why: String,
}

/// How many of the operations of per-CPU caches were restartable sequences.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Commits {
    pub(crate) threads: u32,
    pub(crate) percent: f64,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Results {
    /// In words.
    pub(crate) machine: String,
    /// In the order of the tables.
    pub(crate) settings: Vec<Setting>,
    pub(crate) left_out: Vec<LeftOut>,
    /// What the empty program has of anonymous memory, by round.
    pub(crate) empty: Vec<f64>,
    pub(crate) runs: Vec<One>,
    #[serde(default)]
    pub(crate) commits: Vec<Commits>,
}

impl Results {
    pub(crate) fn to_json(&self) -> Result<String, String> {
        let text = serde_json::to_string_pretty(self).map_err(|e| format!("no JSON: {e}"))?;
        Ok(text + "\n")
    }

    pub(crate) fn from_json(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|e| format!("no results of a run: {e}"))
    }

    /// Whether all of ours was there and nothing failed.
    pub(crate) fn is_sound(&self) -> bool {
        let ours = |name: &str| self.settings.iter().any(|s| s.ours && s.name == name);
        !self.left_out.iter().any(|left| left.setting.ours)
            && !self.runs.iter().any(|run| run.failed.is_some() && ours(&run.setting))
    }

    /// The setting of this name, if it took part.
    pub(crate) fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.name == name)
    }

    /// The numbers of threads that a workload was run with, ascending.
    pub(crate) fn threads(&self, workload: &str) -> Vec<u32> {
        let of = self.runs.iter().filter(|run| run.workload == workload);
        let mut all: Vec<u32> = of.map(|run| run.threads).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// A cell's values by round.
    pub(crate) fn rounds(&self, cell: Cell<'_>, metric: Metric) -> BTreeMap<u32, f64> {
        let empty = if self.empty.is_empty() { 0.0 } else { median(&self.empty) };
        let of_cell = self.runs.iter().filter(|run| {
            run.workload == cell.workload
                && run.threads == cell.threads
                && run.setting == cell.setting
                && run.clock == metric.clock()
        });
        of_cell.filter_map(|run| Some((run.round, metric.of(&run.numbers, empty)?))).collect()
    }

    /// A cell's middle value and its interval.
    pub(crate) fn estimate(&self, cell: Cell<'_>, metric: Metric) -> Option<Estimate> {
        estimate(&[self.rounds(cell, metric).into_values().collect()])
    }

    /// One cell's ratio to another one's, round by round.
    pub(crate) fn ratios(&self, one: Cell<'_>, other: Cell<'_>, metric: Metric) -> Vec<f64> {
        let other = self.rounds(other, metric);
        let one = self.rounds(one, metric);
        let ratio = |(round, value): (u32, f64)| {
            other.get(&round).filter(|&&to| to > 0.0).map(|to| value / to)
        };
        one.into_iter().filter_map(ratio).collect()
    }

    /// The first failure of a cell.
    pub(crate) fn failure(&self, cell: Cell<'_>) -> Option<&str> {
        let mut of_cell = self.runs.iter().filter(|run| {
            (run.workload.as_str(), run.threads, run.setting.as_str())
                == (cell.workload, cell.threads, cell.setting)
        });
        of_cell.find_map(|run| run.failed.as_deref())
    }
}

/// A setting at a number of threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell<'a> {
    pub(crate) workload: &'a str,
    pub(crate) threads: u32,
    pub(crate) setting: &'a str,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A run with these numbers.
    pub(crate) fn one(
        (workload, threads, setting): (&str, u32, &str),
        round: u32,
        clock: &str,
        fields: &[(&str, f64)],
    ) -> One {
        One {
            workload: workload.to_owned(),
            threads,
            clock: clock.to_owned(),
            setting: setting.to_owned(),
            round,
            numbers: fields.iter().map(|&(name, value)| (name.to_owned(), value)).collect(),
            failed: None,
        }
    }

    const EXCLUSIVE: Cell<'static> = Cell { workload: "rpc", threads: 40, setting: "exclusive" };
    const SHARED: Cell<'static> = Cell { workload: "rpc", threads: 40, setting: "shared" };

    fn results() -> Results {
        let mut results = Results {
            settings: Setting::all_ours("/a.so", &[], 2),
            empty: vec![100.0, 100.0, 90_000.0],
            ..Results::default()
        };
        for (round, wall) in [(1, 1e9), (2, 2e9), (3, 4e9)] {
            let of = |setting: &str, wall: f64| {
                one(("rpc", 40, setting), round, "none", &[("requests", 1000.0), ("wall_ns", wall)])
            };
            results.runs.push(of("exclusive", wall));
            results.runs.push(of("shared", wall * 2.0));
        }
        results
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        let mut results = results();
        assert_eq!(results.ratios(SHARED, EXCLUSIVE, Metric::Requests), [0.5; 3]);
        let middle = results.estimate(EXCLUSIVE, Metric::Requests).unwrap().value;
        assert!((middle - 500.0).abs() < 1e-6);
        // A run that is missing takes its round with it.
        results.runs.retain(|run| !(run.round == 2 && run.setting == "exclusive"));
        assert_eq!(results.ratios(SHARED, EXCLUSIVE, Metric::Requests).len(), 2);
        assert_eq!(results.threads("rpc"), [40]);
    }

    #[test]
    fn the_file_holds_all_of_it() {
        let mut results = results();
        results.runs[0].failed = Some("signal 11".to_owned());
        results.commits.push(Commits { threads: 2, percent: 99.5 });
        assert_eq!(Results::from_json(&results.to_json().unwrap()), Ok(results));
        assert!(Results::from_json("{}").unwrap_err().starts_with("no results of a run"));
    }

    #[test]
    fn a_failure_of_ours_is_not_sound() {
        let mut results = results();
        assert!(results.is_sound());
        results.runs[0].failed = Some("signal 11".to_owned());
        assert_eq!(results.failure(EXCLUSIVE), Some("signal 11"));
        assert!(!results.is_sound());
        // A peer's failure is a row that says so.
        results.runs[0].setting = "peer".to_owned();
        assert!(results.is_sound());
        let setting = results.settings.pop().unwrap();
        results.left_out.push(LeftOut { setting, why: "refused".to_owned() });
        assert!(!results.is_sound());
    }
}
