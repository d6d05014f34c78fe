//! From runs to ratios: compares allocators on one program and over many.
//!
//! A comparison of two allocators always uses their own pairs of runs, round by round. Ratios of
//! ratios to the baseline would add the baseline's noise.
//!
//! Groups, for means: the built-in workloads, other programs, all, and workloads with at least
//! 32 MiB live. Only the last group compares memory above that of an empty program: with few live
//! bytes, this difference hardly depends on the allocator. The empty workload is in no group.

use super::results::{Comparison, Entry, Kind, Measure, Outcome, Program, Results, Run, Summary};
use super::statistics::{self, Estimate, Ratios, geometric_mean};

/// The fewest live bytes of a program in the group [`Group::MuchLive`].
pub(crate) const MUCH_LIVE: u64 = 32 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    All,
    Workloads,
    Programs,
    MuchLive,
}

impl Group {
    pub(crate) const EVERY: [Self; 4] =
        [Self::All, Self::Workloads, Self::Programs, Self::MuchLive];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Workloads => "workloads",
            Self::Programs => "programs",
            Self::MuchLive => "32 MiB live",
        }
    }

    pub(crate) fn holds(self, program: &Program) -> bool {
        if program.is_empty_workload() {
            return false;
        }
        match self {
            Self::All => true,
            Self::Workloads => program.kind == Kind::Workload,
            Self::Programs => program.kind != Kind::Workload,
            Self::MuchLive => program.live_bytes.is_some_and(|live| live >= MUCH_LIVE),
        }
    }

    fn measures(self) -> &'static [Measure] {
        match self {
            Self::MuchLive => &[Measure::PeakRss, Measure::PeakRssAboveEmpty],
            _ => &[Measure::Time, Measure::Cpu, Measure::PeakRss],
        }
    }
}

/// Returns a run's value of a measure; `empty` is the peak of the empty program.
fn value(run: &Run, measure: Measure, empty: u64) -> f64 {
    let number = match measure {
        Measure::Time => run.wall_ns,
        Measure::Cpu => run.cpu_ns(),
        Measure::PeakRss => run.peak_rss_bytes,
        Measure::PeakRssAboveEmpty => run.peak_rss_bytes.saturating_sub(empty),
    };
    number as f64
}

/// Returns the peak RSS of the empty workload under the baseline, if it was raced.
pub(crate) fn empty_peak(results: &Results) -> Option<u64> {
    let program = results.programs.iter().find(|program| program.is_empty_workload())?;
    let entry = program.results.get(results.baseline())?;
    let peaks: Vec<f64> = entry.runs.iter().map(|run| run.peak_rss_bytes as f64).collect();
    Some(statistics::median(&peaks)? as u64)
}

fn ratios(this: &Entry, that: &Entry, measure: Measure, empty: u64) -> Option<Ratios> {
    if this.outcome != Outcome::Ok || that.outcome != Outcome::Ok {
        return None;
    }
    let of = |run: &Run| value(run, measure, empty);
    Ratios::new(this.runs.iter().map(of).zip(that.runs.iter().map(of)))
}

pub(crate) fn on_program(
    results: &Results,
    program: &Program,
    of: usize,
    against: usize,
    measure: Measure,
) -> Option<Estimate> {
    let empty = empty_peak(results).unwrap_or_default();
    let (this, that) = (program.results.get(of)?, program.results.get(against)?);
    Some(ratios(this, that, measure, empty)?.estimate())
}

/// Makes the summary: each allocator against the baseline, and `favourite` against each other one.
pub(crate) fn summary(results: &Results, favourite: &str) -> Summary {
    let empty = empty_peak(results);
    let baseline = results.baseline();
    let all = 0..results.allocators.len();
    let mut pairs: Vec<(usize, usize)> =
        all.clone().filter(|&of| of != baseline).map(|of| (of, baseline)).collect();
    if let Some(favourite) = results.allocator(favourite) {
        let others = all.filter(|&against| against != favourite && against != baseline);
        pairs.extend(others.map(|against| (favourite, against)));
    }
    let mut comparisons = Vec::new();
    for (of, against) in pairs {
        for measure in [Measure::Time, Measure::Cpu, Measure::PeakRss, Measure::PeakRssAboveEmpty] {
            if measure == Measure::PeakRssAboveEmpty && empty.is_none() {
                continue;
            }
            comparisons.extend(over_groups(results, of, against, measure, empty.unwrap_or(0)));
        }
    }
    Summary { comparisons }
}

/// Returns the means of one pair and measure over each group that uses the measure.
fn over_groups(
    results: &Results,
    of: usize,
    against: usize,
    measure: Measure,
    empty: u64,
) -> Vec<Comparison> {
    let found: Vec<(&Program, Ratios)> = results
        .programs
        .iter()
        .filter_map(|program| {
            let (this, that) = (program.results.get(of)?, program.results.get(against)?);
            Some((program, ratios(this, that, measure, empty)?))
        })
        .collect();
    let groups = Group::EVERY.into_iter().filter(|group| group.measures().contains(&measure));
    groups
        .filter_map(|group| {
            let members: Vec<Ratios> = found
                .iter()
                .filter(|(program, _)| group.holds(program))
                .map(|(_, ratios)| ratios.clone())
                .collect();
            let Estimate { value, interval } = geometric_mean(&members)?;
            Some(Comparison {
                group: group.name().to_owned(),
                measure,
                of: results.allocators[of].name.clone(),
                against: results.allocators[against].name.clone(),
                programs: members.len(),
                ratio: value,
                low: interval.map(|(low, _)| low),
                high: interval.map(|(_, high)| high),
            })
        })
        .collect()
}

impl Comparison {
    pub(crate) fn estimate(&self) -> Estimate {
        Estimate { value: self.ratio, interval: self.low.zip(self.high) }
    }
}

impl Summary {
    pub(crate) fn find(
        &self,
        group: Group,
        measure: Measure,
        of: &str,
        against: &str,
    ) -> Option<&Comparison> {
        self.comparisons.iter().find(|found| {
            found.group == group.name()
                && found.measure == measure
                && found.of == of
                && found.against == against
        })
    }
}

/// Returns the fewest rounds behind any ratio, for a warning.
pub(crate) fn fewest_rounds(results: &Results) -> Option<usize> {
    let entries = results.programs.iter().flat_map(|program| &program.results);
    entries.filter(|entry| entry.outcome == Outcome::Ok).map(|entry| entry.runs.len()).min()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::results::{Allocator, Head, Machine, SCHEMA};
    use super::*;

    /// Makes a program's entry of runs that took these milliseconds and MiB.
    pub(crate) fn entry(allocator: &str, runs: &[(u64, u64)]) -> Entry {
        let run = |&(ms, mib): &(u64, u64)| Run {
            wall_ns: ms * 1_000_000,
            user_ns: ms * 900_000,
            system_ns: ms * 100_000,
            peak_rss_bytes: mib << 20,
            minor_faults: mib * 256,
            major_faults: 0,
        };
        Entry {
            allocator: allocator.to_owned(),
            outcome: Outcome::Ok,
            detail: None,
            runs: runs.iter().map(run).collect(),
        }
    }

    pub(crate) fn failed(allocator: &str, outcome: Outcome, detail: &str) -> Entry {
        Entry {
            allocator: allocator.to_owned(),
            outcome,
            detail: Some(detail.to_owned()),
            runs: Vec::new(),
        }
    }

    pub(crate) fn program(name: &str, kind: Kind, results: Vec<Entry>) -> Program {
        Program {
            name: name.to_owned(),
            stands_for: format!("What {name} stands for."),
            kind,
            threads: 1,
            long: false,
            live_bytes: (kind == Kind::Workload).then_some(MUCH_LIVE),
            operations: (kind == Kind::Workload).then_some(1_000_000),
            results,
        }
    }

    /// Makes results of three allocators: glibc, heapwright at half its time, and a peer like glibc
    /// that fails on "odd".
    pub(crate) fn example(programs: &[(&str, Kind)]) -> Results {
        let names = ["glibc", "heapwright", "peer"];
        let allocator = |name: &str| Allocator {
            name: name.to_owned(),
            library: (name != "glibc").then(|| format!("lib{name}.so")),
            ..Allocator::default()
        };
        let mut results = Results {
            head: Head {
                schema: SCHEMA,
                machine: Machine {
                    cpu: "A Processor".to_owned(),
                    cores: 2,
                    memory_bytes: 8 << 30,
                    kernel: "6.1.0".to_owned(),
                    libc: "glibc 2.36".to_owned(),
                    page_bytes: 4096,
                    thp: "madvise".to_owned(),
                },
                command: ["heapwright", "bench"].map(str::to_owned).to_vec(),
                started: "2026-01-02T03:04:05Z".to_owned(),
            },
            rounds: 7,
            rounds_long: 7,
            baseline: "glibc".to_owned(),
            complete: true,
            notes: Vec::new(),
            allocators: names.map(allocator).to_vec(),
            programs: programs
                .iter()
                .map(|&(name, kind)| {
                    let peer = match name {
                        "odd" => failed("peer", Outcome::Crashed, "signal 11 (SIGSEGV)"),
                        "empty" => entry("peer", &[(2, 3); 7]),
                        _ => entry("peer", &[100, 101, 99, 100, 102, 98, 100].map(|ms| (ms, 44))),
                    };
                    let (ours, theirs) = match name {
                        "empty" => ((2, 3), (2, 2)),
                        _ => ((50, 34), (100, 42)),
                    };
                    let entries =
                        vec![entry("glibc", &[theirs; 7]), entry("heapwright", &[ours; 7]), peer];
                    program(name, kind, entries)
                })
                .collect(),
            summary: Summary::default(),
        };
        results.summary = summary(&results, "heapwright");
        results
    }

    #[test]
    fn the_empty_workload_is_in_no_mean() {
        let results = example(&[("empty", Kind::Workload), ("a", Kind::Workload)]);
        let found = results.summary.find(Group::All, Measure::Time, "heapwright", "glibc");
        let found = found.expect("is there");
        assert_eq!((found.programs, found.ratio), (1, 0.5));
        assert_eq!((found.low, found.high), (Some(0.5), Some(0.5)));
    }

    #[test]
    fn memory_is_compared_above_the_baselines_empty_program() {
        let results = example(&[("empty", Kind::Workload), ("a", Kind::Workload)]);
        let of = |measure| {
            let found = results.summary.find(Group::MuchLive, measure, "heapwright", "glibc");
            found.expect("is there").ratio
        };
        assert!((of(Measure::PeakRss) - 34.0 / 42.0).abs() < 1e-9);
        assert!((of(Measure::PeakRssAboveEmpty) - 32.0 / 40.0).abs() < 1e-9);
        let without = example(&[("a", Kind::Workload)]);
        let above = |c: &&Comparison| c.measure == Measure::PeakRssAboveEmpty;
        assert_eq!(without.summary.comparisons.iter().filter(above).count(), 0);
    }

    #[test]
    fn a_failure_leaves_its_program_out_for_that_pair_alone() {
        let results = example(&[("a", Kind::Program), ("odd", Kind::Program)]);
        let programs = |of, against| {
            let found = results.summary.find(Group::Programs, Measure::Time, of, against);
            found.expect("is there").programs
        };
        assert_eq!(programs("heapwright", "glibc"), 2);
        assert_eq!(programs("heapwright", "peer"), 1);
        assert_eq!(programs("peer", "glibc"), 1);
        let odd = &results.programs[1];
        assert_eq!(on_program(&results, odd, 2, 0, Measure::Time), None);
    }

    #[test]
    fn the_favourite_is_compared_with_everybody_directly() {
        let results = example(&[("a", Kind::Workload)]);
        let direct = results.summary.find(Group::All, Measure::Time, "heapwright", "peer");
        assert!((direct.expect("is there").ratio - 0.5).abs() < 0.02);
        assert!(results.summary.find(Group::All, Measure::Time, "peer", "heapwright").is_none());
    }
}
