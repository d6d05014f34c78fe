//! What is asked of the simulation, and the tables that answer.
//!
//! ```text
//!   settings    the calibration with several seeds; then each cost halved, and doubled
//!   runs        settings x variants x numbers of threads, on as many CPUs as are here
//!   cell        a variant's ns an operation over the library's own, in the same setting:
//!               the median over the seeds, and the range over all settings
//! ```
//!
//! Every heading says "simulated". The order in which runs end changes nothing: results
//! are put where their run was planned.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{ALL, CHOSEN};

use super::calibration::{ADJUSTABLE, Calibration, Costs, mean};
use super::world::{Outcome, Setup, simulate};

/// What a person may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// CPUs of the comparison with the review.
    pub cpus: usize,
    /// Caches of it.
    pub caches: usize,
    /// Numbers of threads of it.
    pub threads: [usize; 2],
    /// Simulated milliseconds of a run with more threads than CPUs. The others need no
    /// slices, and take an eighth.
    pub ms: u64,
    /// How many seeds.
    pub seeds: u64,
    /// Whether the costs are halved and doubled.
    pub sensitivity: bool,
    /// How many CPUs the last table goes up to.
    pub most_cpus: usize,
}

impl Wanted {
    /// The review's machine.
    pub const FULL: Self = Self {
        cpus: 72,
        caches: 32,
        threads: [40, 80],
        ms: 20,
        seeds: 5,
        sensitivity: true,
        most_cpus: 256,
    };

    /// That all runs, and no more.
    pub const QUICK: Self =
        Self { ms: 4, seeds: 1, sensitivity: false, most_cpus: 16, ..Self::FULL };

    fn setup(&self, cpus: usize, threads: usize, caches: usize, seed: u64) -> Setup {
        let ns = self.ms * 1_000_000;
        let ns = if threads > cpus { ns } else { ns / 8 };
        Setup { cpus, threads, caches, ns, seed }
    }
}

/// A setting: what it is, the costs, the seed.
struct Setting {
    what: String,
    costs: Costs,
    seed: u64,
}

fn settings(calibration: &Calibration, wanted: &Wanted) -> Vec<Setting> {
    let costs = &calibration.costs;
    let mut settings: Vec<Setting> = (1..=wanted.seeds)
        .map(|seed| Setting { what: format!("seed {seed}"), costs: costs.clone(), seed })
        .collect();
    if wanted.sensitivity {
        for name in ADJUSTABLE {
            for (up, down, how) in [(1, 2, "halved"), (2, 1, "doubled")] {
                let mut costs = costs.clone();
                costs.scale(name, up, down);
                settings.push(Setting { what: format!("{name} {how}"), costs, seed: 1 });
            }
        }
    }
    settings
}

/// One run: a policy, under these costs.
#[derive(Clone, Copy)]
struct Run<'a> {
    policy: &'static str,
    costs: &'a Costs,
    setup: Setup,
}

/// Does all runs, on all CPUs that are here; the outcomes in the order of the runs.
fn run_all(runs: &[Run<'_>]) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(vec![Outcome::default(); runs.len()]);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(run) = runs.get(index) else { break };
                    let outcome = simulate(run.policy, run.costs, run.setup).unwrap_or_default();
                    outcomes.lock().unwrap_or_else(|e| e.into_inner())[index] = outcome;
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_else(|e| e.into_inner())
}

/// The middle one, and the range.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Span {
    middle: f64,
    low: f64,
    high: f64,
}

impl Span {
    /// Of `all`, whose first `seeds` give the middle.
    fn of(all: &[f64], seeds: usize) -> Self {
        let mut first = all[..seeds].to_vec();
        first.sort_by(f64::total_cmp);
        let low = all.iter().copied().fold(f64::INFINITY, f64::min);
        let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self { middle: first[seeds / 2], low, high }
    }

    fn text(&self) -> String {
        format!("{:.2} ({:.2} to {:.2})", self.middle, self.low, self.high)
    }
}

/// Ranks from 1; equals share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    values
        .iter()
        .map(|value| {
            let below = values.iter().filter(|other| *other < value).count();
            let equal = values.iter().filter(|other| *other == value).count();
            below as f64 + (equal as f64 + 1.0) / 2.0
        })
        .collect()
}

/// Spearman's rank correlation: 1 the same order, -1 the opposite, 0 none.
fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let middle = (a.len() as f64 + 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - middle) * (y - middle)).sum()
    };
    let scale = (product(&a, &a) * product(&b, &b)).sqrt();
    if scale == 0.0 { 0.0 } else { product(&a, &b) / scale }
}

/// All tables, as text.
pub fn report(calibration: &Calibration, wanted: &Wanted) -> String {
    let mut text = String::new();
    let costs = &calibration.costs;
    let _ = writeln!(
        text,
        "Costs of {} ({}, load {}): an operation holds its lock for {} ns, {} ns lie between two, \
         a line from another CPU takes {} ns.\n",
        calibration.date,
        calibration.machine,
        calibration.load,
        mean(&costs.op),
        mean(&costs.work),
        costs.line
    );
    beside_the_review(&mut text, calibration, wanted);
    many_cpus(&mut text, calibration, wanted);
    text
}

fn chosen_index() -> usize {
    ALL.iter().position(|variant| variant.name == CHOSEN).unwrap_or(0)
}

fn beside_the_review(text: &mut String, calibration: &Calibration, wanted: &Wanted) {
    let settings = settings(calibration, wanted);
    let seeds = wanted.seeds as usize;
    let runs: Vec<Run<'_>> = settings
        .iter()
        .flat_map(|setting| {
            wanted.threads.iter().flat_map(move |&threads| {
                let setup = wanted.setup(wanted.cpus, threads, wanted.caches, setting.seed);
                ALL.iter().map(move |variant| Run {
                    policy: variant.name,
                    costs: &setting.costs,
                    setup,
                })
            })
        })
        .collect();
    let outcomes = run_all(&runs);
    // [setting][threads][variant]
    let outcome = |setting: usize, threads: usize, variant: usize| {
        &outcomes[(setting * 2 + threads) * ALL.len() + variant]
    };
    let chosen = chosen_index();
    let ratio = |setting, threads, variant| {
        outcome(setting, threads, variant).ns_per_op()
            / outcome(setting, threads, chosen).ns_per_op()
    };
    let over_settings = |value: &dyn Fn(usize) -> f64| {
        let all: Vec<f64> = (0..settings.len()).map(value).collect();
        Span::of(&all, seeds)
    };

    let [few, many] = wanted.threads;
    let _ = writeln!(
        text,
        "### Simulated: time in the allocator, {} CPUs, {} caches, {few} and {many} threads\n\n\
         Ratios to {CHOSEN}. The review's seconds are of 72 cores, 32 caches, 40 and 80 threads. \
         Simulated: the median of {} seeds (the range over seeds{}).\n",
        wanted.cpus,
        wanted.caches,
        wanted.seeds,
        if wanted.sensitivity { ", and each cost halved and doubled" } else { "" }
    );
    let _ = writeln!(
        text,
        "| policy | review, 40 | ratio | simulated, {few} | review, 80 | ratio | simulated, {many} |\n\
         |---|---:|---:|---:|---:|---:|---:|"
    );
    for (index, variant) in ALL.iter().enumerate() {
        let _ = write!(text, "| {} |", variant.name);
        for threads in 0..2 {
            match (variant.reviewed(threads == 1), ALL[chosen].reviewed(threads == 1)) {
                (Some(seconds), Some(of_chosen)) => {
                    let _ = write!(text, " {seconds} s | {:.2} |", seconds / of_chosen);
                }
                _ => text.push_str(" | |"),
            }
            let span = over_settings(&|setting| ratio(setting, threads, index));
            let _ = write!(text, " {} |", span.text());
        }
        text.push('\n');
    }

    let nine: Vec<usize> = (0..ALL.len()).filter(|&i| ALL[i].review.is_some()).collect();
    let correlation = |setting: usize, threads: usize| {
        let reviewed: Vec<f64> =
            nine.iter().filter_map(|&i| ALL[i].reviewed(threads == 1)).collect();
        let simulated: Vec<f64> = nine.iter().map(|&i| ratio(setting, threads, i)).collect();
        rank_correlation(&reviewed, &simulated)
    };
    let growth = over_settings(&|setting| {
        outcome(setting, 1, chosen).ns_per_op() / outcome(setting, 0, chosen).ns_per_op()
    });
    let _ = writeln!(
        text,
        "\nSimulated rank correlation with the review over its nine (1: the same order): {few} \
         threads {}, {many} threads {}.\nSimulated, {many} threads of {CHOSEN} take {} of {few} \
         threads' time an operation; in the review {:.2}.\n",
        over_settings(&|setting| correlation(setting, 0)).text(),
        over_settings(&|setting| correlation(setting, 1)).text(),
        growth.text(),
        3200.0 / 810.0
    );

    let _ = writeln!(
        text,
        "### Simulated: what the policies do there, of 1000 operations (seed 1)\n\n\
         Failed: tries of a lock that was held. Waits: went to wait for one. Sleeps: and slept. \
         Cold: on a cache that another CPU used last. Holders: threads that lost their CPU while \
         they held a lock, in the whole run.\n"
    );
    text.push_str("| policy |");
    for threads in wanted.threads {
        let _ = write!(text, " {threads}: ns | failed | waits | sleeps | cold | holders |");
    }
    text.push_str("\n|---|");
    text.push_str(&"---:|".repeat(12));
    text.push('\n');
    for (index, variant) in ALL.iter().enumerate() {
        let _ = write!(text, "| {} |", variant.name);
        for threads in 0..2 {
            let of = outcome(0, threads, index);
            let each = |count: u64| count as f64 * 1000.0 / of.ops.max(1) as f64;
            let _ = write!(
                text,
                " {:.0} | {:.0} | {:.0} | {:.1} | {:.0} | {} |",
                of.ns_per_op(),
                each(of.failed),
                each(of.waits),
                each(of.sleeps),
                each(of.cold),
                of.holders
            );
        }
        text.push('\n');
    }
    text.push('\n');

    if wanted.sensitivity {
        let _ = writeln!(
            text,
            "### Simulated: what each cost changes\n\n\
             Rank correlation with the review, and the best of its nine (with its ratio).\n\n\
             | setting | {few}: correlation | best | {many}: correlation | best |\n\
             |---|---:|---|---:|---|"
        );
        for (index, setting) in settings.iter().enumerate() {
            let _ = write!(text, "| {} |", setting.what);
            for threads in 0..2 {
                let best = nine
                    .iter()
                    .copied()
                    .min_by(|&a, &b| ratio(index, threads, a).total_cmp(&ratio(index, threads, b)))
                    .unwrap_or(0);
                let _ = write!(
                    text,
                    " {:.2} | {} {:.2} |",
                    correlation(index, threads),
                    ALL[best].name,
                    ratio(index, threads, best)
                );
            }
            text.push('\n');
        }
        text.push('\n');
    }
}

/// How many threads and caches a machine is given, and what that is called.
type Shape = (&'static str, fn(usize) -> (usize, usize));

/// As the review's 40 and 80 threads and 32 caches to 72 CPUs; and as the library does it.
const SHAPES: [Shape; 3] = [
    ("5 threads and 4 caches to 9 CPUs", |cpus| ((cpus * 5).div_ceil(9), (cpus * 4).div_ceil(9))),
    ("10 threads and 4 caches to 9 CPUs", |cpus| ((cpus * 10).div_ceil(9), (cpus * 4).div_ceil(9))),
    ("10 threads to 9 CPUs, the default number of caches", |cpus| {
        ((cpus * 10).div_ceil(9), cpus.min(32))
    }),
];

/// Tables over numbers of CPUs.
fn many_cpus(text: &mut String, calibration: &Calibration, wanted: &Wanted) {
    let cpus: Vec<usize> =
        [8, 16, 32, 64, 128, 256].into_iter().filter(|&n| n <= wanted.most_cpus).collect();
    for (what, shape) in SHAPES {
        let runs: Vec<Run<'_>> = cpus
            .iter()
            .flat_map(|&cpus| {
                let (threads, caches) = shape(cpus);
                let setup = wanted.setup(cpus, threads, caches, 1);
                ALL.iter().map(move |variant| Run {
                    policy: variant.name,
                    costs: &calibration.costs,
                    setup,
                })
            })
            .collect();
        let outcomes = run_all(&runs);
        let _ = writeln!(
            text,
            "### Simulated: time in the allocator over CPUs, {what}\n\n\
             Ratios to {CHOSEN} (seed 1).\n"
        );
        text.push_str("| policy |");
        for &cpus in &cpus {
            let (threads, caches) = shape(cpus);
            let _ = write!(text, " {cpus} CPUs: {threads} on {caches} |");
        }
        text.push_str("\n|---|");
        text.push_str(&"---:|".repeat(cpus.len()));
        text.push('\n');
        let of = |column: usize, variant: usize| outcomes[column * ALL.len() + variant].ns_per_op();
        for (index, variant) in ALL.iter().enumerate() {
            let _ = write!(text, "| {} |", variant.name);
            for column in 0..cpus.len() {
                let ratio = of(column, index) / of(column, chosen_index());
                let _ = write!(text, " {ratio:.2} |");
            }
            text.push('\n');
        }
        let _ = write!(text, "| *ns an operation, {CHOSEN}* |");
        for column in 0..cpus.len() {
            let _ = write!(text, " {:.0} |", of(column, chosen_index()));
        }
        text.push_str("\n\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_equals_are_shared() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 9.0]), [2.5, 1.0, 2.5, 4.0]);
    }

    #[test]
    fn the_same_order_is_one_and_the_opposite_is_minus_one() {
        let up = [1.0, 2.0, 5.0, 6.0];
        let down = [9.0, 7.0, 3.0, 1.0];
        assert!((rank_correlation(&up, &up) - 1.0).abs() < 1e-12);
        assert!((rank_correlation(&up, &down) + 1.0).abs() < 1e-12);
        assert_eq!(rank_correlation(&up, &[1.0; 4]), 0.0);
        // By hand: differences of ranks 1, 1, 0, 0: 1 - 6 * 2 / (4 * 15).
        assert!((rank_correlation(&up, &[2.0, 1.0, 5.0, 6.0]) - 0.8).abs() < 1e-12);
    }

    #[test]
    fn a_span_has_the_middle_of_the_seeds_and_the_range_of_all() {
        let span = Span::of(&[1.0, 3.0, 2.0, 0.5, 9.0], 3);
        assert_eq!(span, Span { middle: 2.0, low: 0.5, high: 9.0 });
        assert_eq!(span.text(), "2.00 (0.50 to 9.00)");
    }
}
