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

use ::figures::options::{Numbers, number, numbers};

use crate::metric::Metric;

/// CLOCK of a run in which no call is timed.
pub(crate) const UNTIMED: &str = "none";
/// All calls are, as the review of scudo's registries did it.
pub(crate) const ALL_TIMED: &str = "all";
/// Each 61st of a thread is, without what other threads ran meanwhile.
pub(crate) const SAMPLED: &str = "61";

/// A kind of load.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Workload {
    /// As its program is called.
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// What of it is plotted against threads, besides memory.
    pub(crate) speed: Metric,
    /// CLOCK of its runs, half the work for those that are timed.
    clocks: &'static [&'static str],
    /// It takes part in so many of the rounds at most.
    most_rounds: u32,
}

/// All of them.
pub(crate) static WORKLOADS: &[Workload] = &[
    Workload {
        name: "ttest1",
        about: "threads that work on bins of blocks, end, and are replaced (sizes to 100,000)",
        speed: Metric::Operations,
        clocks: &[UNTIMED, ALL_TIMED, SAMPLED],
        most_rounds: u32::MAX,
    },
    Workload {
        name: "rpc",
        about: "clients and servers; messages are freed by the other side",
        speed: Metric::Requests,
        clocks: &[UNTIMED, SAMPLED],
        most_rounds: u32::MAX,
    },
    Workload {
        name: "churn",
        about: "many short threads, a few at a time",
        speed: Metric::ThreadsASecond,
        clocks: &[UNTIMED],
        most_rounds: 3,
    },
    Workload {
        name: "idle",
        about: "threads that do a little now and then",
        speed: Metric::OperationsCpu,
        clocks: &[UNTIMED],
        most_rounds: 6,
    },
];

/// The workload of this name.
pub(crate) fn workload(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().find(|workload| workload.name == name)
}

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
    workload(name)
        .ok_or_else(|| format!("there is no '{name}'; there are ttest1, rpc, churn, idle"))
}

impl Scope {
    fn part(&self, of: u64, least: u64) -> u64 {
        (of * u64::from(self.percent) / 100).max(least)
    }
}

/// Runs that are compared with each other: one for each setting.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) workload: &'static Workload,
    pub(crate) threads: u32,
    pub(crate) clock: &'static str,
    pub(crate) arguments: Vec<String>,
}

impl Group {
    /// Whether it is part of a round; rounds count from 1.
    pub(crate) fn takes_part(&self, round: u32) -> bool {
        round <= self.workload.most_rounds
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

/// All groups, in order.
pub(crate) fn of(scope: &Scope) -> Vec<Group> {
    let mut groups = Vec::new();
    for &workload in &scope.workloads {
        let threads: &[u32] = match workload.name {
            "churn" => &[1, 4],
            "idle" if scope.percent < 10 => &[1, 10, 100],
            "idle" => &[1, 10, 100, 1000],
            _ => &scope.threads.0,
        };
        for &threads in threads {
            for &clock in workload.clocks {
                let numbers = arguments(scope, workload, threads, clock);
                let arguments = std::iter::once(clock.to_owned())
                    .chain(numbers.iter().map(u64::to_string))
                    .collect();
                groups.push(Group { workload, threads, clock, arguments });
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(percent: u32) -> Scope {
        Scope { workloads: WORKLOADS.iter().collect(), threads: Numbers(vec![2, 40, 80]), percent }
    }

    #[test]
    fn all_that_was_asked_for() {
        let groups = of(&scope(100));
        let of = |name: &str| groups.iter().filter(|g| g.workload.name == name).count();
        assert_eq!([of("ttest1"), of("rpc"), of("churn"), of("idle")], [9, 6, 2, 4]);
        let line = |name: &str, threads: u32, clock: &str| {
            let found = groups
                .iter()
                .find(|g| (g.workload.name, g.threads, g.clock) == (name, threads, clock));
            found.unwrap().arguments.join(" ")
        };
        assert_eq!(line("ttest1", 40, UNTIMED), "none 160 40 100001 100000");
        assert_eq!(line("ttest1", 40, ALL_TIMED), "all 160 40 50001 100000");
        assert_eq!(line("rpc", 80, SAMPLED), "61 40 40 100000");
        assert_eq!(line("churn", 1, UNTIMED), "none 100000 1 64");
        assert_eq!(line("idle", 1000, UNTIMED), "none 1000 4000 100");
    }

    #[test]
    fn rounds_end_sooner_where_memory_is_asked_for() {
        let groups = of(&scope(100));
        let rounds = |name: &str| {
            let group = groups.iter().find(|g| g.workload.name == name).unwrap();
            (1..=10).filter(|&round| group.takes_part(round)).count()
        };
        assert_eq!(["ttest1", "rpc", "churn", "idle"].map(rounds), [10, 10, 3, 6]);
    }

    #[test]
    fn a_miniature_still_has_work_for_each() {
        for group in of(&scope(0)) {
            let numbers: Vec<u64> =
                group.arguments[1..].iter().map(|word| word.parse().unwrap()).collect();
            assert!(numbers.iter().all(|&n| n >= 1), "{group:?}");
            if group.workload.name == "rpc" {
                assert!(numbers[2] >= numbers[0], "{group:?}");
            }
        }
    }
}
