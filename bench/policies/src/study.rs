//! The questions to the simulation, and tables of its answers: machines with more and more CPUs,
//! and threads and caches in proportion. Every heading says "simulated".

use std::fmt::Write as _;

use figures::statistics::median;
use figures::text::table;

use crate::calibration::{Calibration, mean};
use crate::world::{Outcome, Setup, simulate};

/// The settings of a study.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// CPUs of the machines.
    pub cpus: Vec<usize>,
    /// Simulated milliseconds of a run with more threads than CPUs. Other runs take an eighth.
    pub ms: u64,
    /// The number of seeds.
    pub seeds: u64,
}

type Shape = (&'static str, fn(usize) -> (usize, usize));

/// Two shapes have 40 and 80 threads and 32 caches on 72 CPUs. The third has the library's own
/// number of caches.
const SHAPES: [Shape; 3] = [
    ("5 threads and 4 caches to 9 CPUs", |cpus| ((cpus * 5).div_ceil(9), (cpus * 4).div_ceil(9))),
    ("10 threads and 4 caches to 9 CPUs", |cpus| ((cpus * 10).div_ceil(9), (cpus * 4).div_ceil(9))),
    ("10 threads to 9 CPUs, the default number of caches", |cpus| {
        ((cpus * 10).div_ceil(9), cpus.min(32))
    }),
];

type Column = (&'static str, fn(&Outcome) -> u64);

const COLUMNS: [Column; 6] = [
    ("failed", |of| of.failed),
    ("waits", |of| of.waits),
    ("sleeps", |of| of.sleeps),
    ("cold", |of| of.cold),
    ("preempted", |of| of.preempted),
    ("holders", |of| of.holders),
];

/// Returns all tables as text.
pub fn report(calibration: &Calibration, wanted: &Wanted) -> String {
    let costs = &calibration.costs;
    let mut text = format!(
        "Costs of {} ({}, load {}): an operation holds its lock for {} ns, {} ns lie between two, \
         a line from another CPU takes {} ns.\n\nMedians of {} seeds. Of 1000 operations: failed, tries of a \
         lock that was held; waits, went to wait for one; sleeps, and slept; cold, on a cache that another \
         CPU used last; preempted, lost their CPU; holders, and held a lock.\n\n",
        calibration.date,
        calibration.machine,
        calibration.load,
        mean(&costs.op),
        mean(&costs.work),
        costs.line,
        wanted.seeds
    );
    let names = COLUMNS.map(|(name, _)| name);
    let head = [&["CPUs", "threads", "caches", "ns an operation"][..], &names].concat();
    for (what, shape) in SHAPES {
        let row = |&cpus: &usize| {
            let (threads, caches) = shape(cpus);
            let ns = wanted.ms * 1_000_000 / if threads > cpus { 1 } else { 8 };
            let run = |seed| simulate(costs, Setup { cpus, threads, caches, ns, seed });
            let outcomes: Vec<Outcome> = (1..=wanted.seeds).map(run).collect();
            let middle =
                |of: &dyn Fn(&Outcome) -> f64| median(&outcomes.iter().map(of).collect::<Vec<_>>());
            let mut cells = [cpus, threads, caches].map(|count| count.to_string()).to_vec();
            cells.push(format!("{:.0}", middle(&Outcome::ns_per_op)));
            cells.extend(COLUMNS.map(|(_, of)| {
                let each =
                    |outcome: &Outcome| of(outcome) as f64 * 1000.0 / outcome.ops.max(1) as f64;
                format!("{:.1}", middle(&each))
            }));
            cells
        };
        let rows: Vec<Vec<String>> = wanted.cpus.iter().map(row).collect();
        let _ = write!(text, "### Simulated: shared caches, {what}\n\n{}", table(&head, &rows));
    }
    text
}
