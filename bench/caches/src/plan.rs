//! What is run.
//!
//! ```text
//!   workload   threads          what runs                         timed runs    rounds
//!   ttest1     as asked for     4 T threads, T at a time          all, 61st     all
//!   rpc        as asked for     T/2 clients, T/2 servers          61st          all
//!   churn      1, 4             100,000 threads, so many at once  none          at most 3
//!   idle       1, 10, 100, 1000 so many, 4,000 bursts             none          at most 6
//! ```
//!
//! Speed and memory are those of runs in which no call is timed. In others all calls are,
//! or each 61st of a thread (programs/inside.h says how).
//!
//! A workload does the same work at each number of threads, so that a column can be
//! compared with the next. Of what runs long, memory is what is asked for, and that
//! is not a matter of luck: fewer rounds show it.

use std::path::Path;

use ::figures::options::{Numbers, number, numbers};
use ::figures::plan::Planned;

use crate::metric::{self, Metric};
use crate::setting::{Allocator, GLIBC};

/// The program that does nothing, and its section and row.
pub(crate) const EMPTY: &str = "empty";

/// CLOCK of a run in which no call is timed.
pub(crate) const UNTIMED: &str = "none";
/// All calls are, as the review of scudo's registries did it.
pub(crate) const ALL_TIMED: &str = "all";
/// Each 61st of a thread is, without what other threads ran meanwhile.
pub(crate) const SAMPLED: &str = "61";

/// A kind of load.
#[derive(Debug)]
pub(crate) struct Workload {
    /// As its program is called.
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// What of it is plotted against threads, besides memory.
    pub(crate) speed: &'static Metric,
    /// CLOCK of its runs, half the work for those that are timed.
    clocks: &'static [&'static str],
    /// It takes part in so many of the rounds at most; 0: in all.
    most_rounds: usize,
}

/// All of them.
pub(crate) static WORKLOADS: &[Workload] = &[
    Workload {
        name: "ttest1",
        about: "threads that work on bins of blocks, end, and are replaced (sizes to 100,000)",
        speed: metric::OPERATIONS,
        clocks: &[UNTIMED, ALL_TIMED, SAMPLED],
        most_rounds: 0,
    },
    Workload {
        name: "rpc",
        about: "clients and servers; messages are freed by the other side",
        speed: metric::REQUESTS,
        clocks: &[UNTIMED, SAMPLED],
        most_rounds: 0,
    },
    Workload {
        name: "churn",
        about: "many short threads, a few at a time",
        speed: metric::THREADS,
        clocks: &[UNTIMED],
        most_rounds: 3,
    },
    Workload {
        name: "idle",
        about: "threads that do a little now and then",
        speed: metric::OPERATIONS_CPU,
        clocks: &[UNTIMED],
        most_rounds: 6,
    },
];

/// What of all that is wanted.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Scope {
    /// Only these of ttest1, rpc, churn, idle
    #[arg(long, value_delimiter = ',', default_value = "ttest1,rpc,churn,idle", value_parser = named)]
    pub(crate) workloads: Vec<&'static Workload>,
    /// Threads of ttest1 and rpc
    #[arg(long, default_value = "2,40,80", value_parser = numbers(1..=5000_u32))]
    pub(crate) threads: Numbers<u32>,
    /// Of the work
    #[arg(long, default_value = "100", value_parser = number(1..=10000_u32))]
    pub(crate) percent: u32,
}

fn named(name: &str) -> Result<&'static Workload, String> {
    WORKLOADS
        .iter()
        .find(|workload| workload.name == name)
        .ok_or_else(|| format!("there is no '{name}'; there are ttest1, rpc, churn, idle"))
}

impl Scope {
    fn part(&self, of: u64, least: u64) -> u64 {
        (of * u64::from(self.percent) / 100).max(least)
    }
}

/// Threads of all that ttest1 starts, to those at a time.
const REPLACED: u64 = 4;

/// The arguments behind CLOCK.
fn arguments(scope: &Scope, workload: &Workload, threads: u32, clock: &str) -> Vec<u64> {
    let at_once = u64::from(threads);
    // A timed run needs fewer calls.
    let half = if clock == UNTIMED { 1 } else { 2 };
    match workload.name {
        "ttest1" => {
            let total = at_once * REPLACED;
            vec![total, at_once, scope.part(16_000_000 / half, 1) / total + 1, 100_000]
        }
        "rpc" => {
            let side = at_once.div_ceil(2);
            vec![side, side, scope.part(200_000 / half, 100 * side)]
        }
        "churn" => vec![scope.part(100_000, 200), at_once, 64],
        _ => vec![at_once, scope.part(4_000, 2 * at_once), 100],
    }
}

/// All runs: those that are compared with each other, one for each setting, are a row.
pub(crate) fn of(scope: &Scope, programs: &Path, settings: &[Allocator]) -> Vec<Planned> {
    let program = |name: &str| programs.join(name).display().to_string();
    let mut plan = vec![Planned::new((EMPTY, EMPTY, GLIBC), &[], vec![program(EMPTY)])];
    for &workload in &scope.workloads {
        let threads: &[u32] = match workload.name {
            "churn" => &[1, 4],
            "idle" if scope.percent < 10 => &[1, 10, 100],
            "idle" => &[1, 10, 100, 1000],
            _ => &scope.threads.0,
        };
        for &threads in threads {
            for &clock in workload.clocks {
                let row = format!("{threads} {clock}");
                let numbers = arguments(scope, workload, threads, clock);
                let words = [program(workload.name), clock.to_owned()].into_iter();
                let command: Vec<String> =
                    words.chain(numbers.iter().map(u64::to_string)).collect();
                plan.extend(settings.iter().map(|setting| Planned {
                    of_rounds: workload.most_rounds,
                    ..Planned::new(
                        (workload.name, &row, &setting.name),
                        &setting.environment,
                        command.clone(),
                    )
                }));
            }
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(percent: u32) -> Vec<Planned> {
        let workloads = WORKLOADS.iter().collect();
        let scope = Scope { workloads, threads: Numbers(vec![2, 40, 80]), percent };
        of(&scope, Path::new("/p"), &[Allocator::glibc()])
    }

    #[test]
    fn all_that_was_asked_for() {
        let plan = all(100);
        let of = |name: &str| plan.iter().filter(|run| run.cell.0 == name).count();
        assert_eq!(["ttest1", "rpc", "churn", "idle", EMPTY].map(of), [9, 6, 2, 4, 1]);
        let line = |name: &str, row: &str| {
            let found = plan.iter().find(|run| run.cell.0 == name && run.cell.1 == row).unwrap();
            (found.command[1..].join(" "), found.of_rounds)
        };
        assert_eq!(line("ttest1", "40 none"), ("none 160 40 100001 100000".into(), 0));
        assert_eq!(line("ttest1", "40 all"), ("all 160 40 50001 100000".into(), 0));
        assert_eq!(line("rpc", "80 61"), ("61 40 40 100000".into(), 0));
        assert_eq!(line("churn", "1 none"), ("none 100000 1 64".into(), 3));
        assert_eq!(line("idle", "1000 none"), ("none 1000 4000 100".into(), 6));
    }

    #[test]
    fn a_miniature_still_has_work_for_each() {
        for run in all(0).iter().filter(|run| run.cell.0 != EMPTY) {
            let words = run.command[2..].iter();
            let numbers: Vec<u64> = words.map(|word| word.parse().unwrap()).collect();
            assert!(numbers.iter().all(|&n| n >= 1), "{run:?}");
            assert!(run.cell.0 != "rpc" || numbers[2] >= numbers[0], "{run:?}");
        }
    }
}
