//! The results of a race: the structures of `--format json`, from which all other output is made.
//!
//! `schema` names the format. A new meaning of a field changes this name; a new field does not.

use super::machine;
use crate::output::rfc3339;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::SystemTime;

pub(crate) const SCHEMA: &str = "heapwright-bench/1";

/// The first fields of every file of results: of a race's and of a replay's.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Head {
    pub(crate) schema: &'static str,
    pub(crate) machine: Machine,
    /// The command line, for repeating the race.
    pub(crate) command: Vec<String>,
    /// The start, in the form of RFC 3339.
    pub(crate) started: String,
}

impl Head {
    /// Makes the head of results that began at `started`, with this command line.
    pub(crate) fn of(schema: &'static str, started: SystemTime) -> Self {
        let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
        Self {
            schema,
            machine: machine::describe(),
            command: std::iter::once("heapwright".to_owned()).chain(words).collect(),
            started: rfc3339(started),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Results {
    #[serde(flatten)]
    pub(crate) head: Head,
    /// Rounds of ordinary and of long programs.
    pub(crate) rounds: usize,
    pub(crate) rounds_long: usize,
    /// The allocator against which all others are compared.
    pub(crate) baseline: String,
    pub(crate) complete: bool,
    /// Notes for the reader: noise of the machine, programs whose output was not compared, ...
    pub(crate) notes: Vec<String>,
    pub(crate) allocators: Vec<Allocator>,
    pub(crate) programs: Vec<Program>,
    pub(crate) summary: Summary,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) kernel: String,
    pub(crate) libc: String,
    pub(crate) page_bytes: u64,
    /// The use of huge pages: "always", "madvise" or "never".
    pub(crate) thp: String,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Allocator {
    pub(crate) name: String,
    pub(crate) library: Option<String>,
    pub(crate) version: Option<String>,
    /// Variables that were set in the program's environment.
    pub(crate) environment: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    Workload,
    Program,
    Command,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) stands_for: String,
    pub(crate) kind: Kind,
    pub(crate) threads: u32,
    pub(crate) long: bool,
    /// Live bytes at its peak, if known.
    pub(crate) live_bytes: Option<u64>,
    /// The number of allocations and frees, if known.
    pub(crate) operations: Option<u64>,
    /// The results of each allocator, in the order of `Results::allocators`.
    pub(crate) results: Vec<Entry>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Entry {
    pub(crate) allocator: String,
    pub(crate) outcome: Outcome,
    pub(crate) detail: Option<String>,
    /// `runs[i]` of all allocators belong to one round. A failure ends the list.
    pub(crate) runs: Vec<Run>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    Ok,
    Crashed,
    Hung,
    /// Ended with another code than 0, was not started, printed too much, or fails on the baseline.
    Failed,
    /// Printed something else than under the baseline.
    Differs,
    /// The program did not take the allocator's library.
    NotTaken,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Run {
    pub(crate) wall_ns: u64,
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    /// The peak of the largest single process.
    pub(crate) peak_rss_bytes: u64,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
}

impl Run {
    /// Returns all processor time, in the program and in the kernel.
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }
}

/// The ratios over several programs.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Summary {
    pub(crate) comparisons: Vec<Comparison>,
}

/// A comparison of two allocators over a group of programs: the geometric mean of the programs'
/// median ratios.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Comparison {
    /// "all", "workloads", "programs" or "32 MiB live".
    pub(crate) group: String,
    pub(crate) measure: Measure,
    pub(crate) of: String,
    pub(crate) against: String,
    /// The number of programs that ran well under both allocators.
    pub(crate) programs: usize,
    pub(crate) ratio: f64,
    /// The 95 % interval; `None` after a single round.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Measure {
    Time,
    Cpu,
    PeakRss,
    /// Peak RSS above that of an empty program under the baseline.
    PeakRssAboveEmpty,
}

impl Results {
    pub(crate) fn allocator(&self, name: &str) -> Option<usize> {
        self.allocators.iter().position(|allocator| allocator.name == name)
    }

    pub(crate) fn baseline(&self) -> usize {
        self.allocator(&self.baseline).unwrap_or_default()
    }
}

impl Program {
    /// Returns whether the program is the empty workload, above whose peak memory is measured.
    pub(crate) fn is_empty_workload(&self) -> bool {
        self.kind == Kind::Workload && self.name == EMPTY
    }
}

pub(crate) const EMPTY: &str = "empty";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::comparison::tests::example;

    #[test]
    fn the_words_are_those_documented() {
        let results = example(&[("odd", Kind::Program)]);
        let value = serde_json::to_value(&results).expect("is JSON");
        assert_eq!(value["schema"], "heapwright-bench/1");
        assert_eq!(value["machine"]["cores"], 2);
        assert_eq!(value["programs"][0]["kind"], "program");
        assert_eq!(value["programs"][0]["results"][2]["outcome"], "crashed");
        assert_eq!(value["programs"][0]["results"][0]["outcome"], "ok");
        assert_eq!(value["programs"][0]["results"][0]["runs"][0]["peak_rss_bytes"], 42 << 20);
        assert_eq!(value["summary"]["comparisons"][0]["measure"], "time");
    }
}
