//! The figures: what was asked, what was measured, and the verdict.
//!
//! Times need 6 rounds; memory is counted and not a matter of luck, so with fewer the worst one
//! decides (`figures::verdict`).

use ::figures::cells::ratios;
use ::figures::options::number;
use ::figures::report::Report;
use ::figures::verdict::{Asked, Kind};

use crate::metric::{self, Metric};
use crate::results::{Place, Results};
use crate::setting::{AUTO, EXCLUSIVE, GLIBC, PER_CPU, SCUDO, SHARED, caches, is_ours, is_shared};

const MIB: f64 = 1048576.0;

/// What a figure is judged against and a person can say.
#[derive(clap::Args, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// MiB that one of K shared caches may hold beyond what is live, for the figure
    #[arg(long = "bound-mib", default_value = "4", value_parser = number(1..=4096_u32))]
    pub(crate) cache_mib: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { cache_mib: 4 }
    }
}

/// Every figure that follows from the results.
pub(crate) fn all(results: &Results, bounds: &Bounds, report: &mut Report) {
    let mut judge = Judge { results, cache_mib: f64::from(bounds.cache_mib), report };
    judge.throughput();
    if results.settings().contains(&AUTO) {
        judge.auto();
    }
    judge.rpc();
    judge.idle();
    judge.churn();
    judge.peers();
}

/// Asks something if a condition holds.
fn only_if(condition: bool, asked: Asked) -> Asked {
    if condition { asked } else { Asked::Nothing }
}

fn place<'a>(workload: &'a str, threads: u32, setting: &'a str) -> Place<'a> {
    Place { workload, threads, setting }
}

struct Judge<'a> {
    results: &'a Results,
    cache_mib: f64,
    report: &'a mut Report,
}

impl Judge<'_> {
    /// The ratio of a setting to another one.
    fn ratio(
        &mut self,
        what: String,
        (asked, kind): (Asked, Kind),
        one: Place<'_>,
        other: &str,
        metric: &Metric,
    ) {
        let rounds = self.results.ratios(one, Place { setting: other, ..one }, metric);
        self.report.figure(what, asked, "x", kind, &rounds);
    }

    /// Throughput of shared caches and of per-CPU caches to exclusive ones'.
    fn throughput(&mut self) {
        for (workload, metric) in [("rpc", metric::REQUESTS), ("ttest1", metric::OPERATIONS)] {
            for threads in self.results.threads(workload) {
                for name in self.results.ours().into_iter().filter(|name| *name != EXCLUSIVE) {
                    // Shared caches are for more threads than there are caches.
                    let asked = workload == "rpc"
                        && (name == PER_CPU
                            || name == SHARED && caches(name).is_some_and(|k| threads > k));
                    let what =
                        format!("{workload}, T = {threads}, {name}: throughput to exclusive");
                    let asked = only_if(asked, Asked::AtLeast(0.97));
                    let one = place(workload, threads, name);
                    self.ratio(what, (asked, Kind::Timed), one, EXCLUSIVE, metric);
                }
            }
        }
    }

    /// The default beside the better of the two that it chooses from, in each round.
    fn auto(&mut self) {
        for (workload, speed) in [
            ("rpc", metric::REQUESTS),
            ("ttest1", metric::OPERATIONS),
            ("idle", metric::OPERATIONS_CPU),
            ("churn", metric::THREADS),
        ] {
            for threads in self.results.threads(workload) {
                for (metric, name, better, asked, kind) in [
                    (
                        speed,
                        "speed",
                        f64::max as fn(f64, f64) -> f64,
                        Asked::AtLeast(0.97),
                        Kind::Timed,
                    ),
                    (metric::RSS, "peak RSS", f64::min, Asked::AtMost(1.03), Kind::Counted),
                ] {
                    let of =
                        |setting| self.results.rounds(place(workload, threads, setting), metric);
                    let (own, cpus) = (of(EXCLUSIVE), of(PER_CPU));
                    let both = |(&round, &one)| Some((round, better(one, *cpus.get(&round)?)));
                    let rounds = ratios(&of(AUTO), &own.iter().filter_map(both).collect());
                    let what = format!(
                        "{workload}, T = {threads}, auto: {name} to the better of exclusive and \
                         percpu"
                    );
                    self.report.figure(what, asked, "x", kind, &rounds);
                }
            }
        }
    }

    /// What K caches hold, and what scudo needs; the share of processor time that makes the load
    /// one of an allocator; commits.
    fn rpc(&mut self) {
        let all = self.results.threads("rpc");
        for &threads in &all {
            for name in self.results.ours().into_iter().filter(|name| is_shared(name)) {
                let Some(caches) = caches(name) else { continue };
                let one = place("rpc", threads, name);
                let above = self.results.values(one, metric::ABOVE_LIVE);
                let each: Vec<f64> =
                    above.iter().map(|bytes| bytes / MIB / f64::from(caches)).collect();
                let who = format!("rpc, T = {threads}, {name}: heap at its peak");
                let what = format!("{who} above live, a cache (K = {caches})");
                let asked = Asked::AtMost(self.cache_mib);
                self.report.figure(what, asked, " MiB", Kind::Counted, &each);
                // The figure names 40 and 80 threads.
                let asked = only_if(name == SHARED && threads >= 40, Asked::AtMost(0.55));
                let what = format!("{who} to scudo's exclusive");
                self.ratio(what, (asked, Kind::Counted), one, SCUDO, metric::HEAP_PEAK);
            }
        }
        for &threads in &all {
            let rounds = self.results.values(place("rpc", threads, GLIBC), metric::SHARE);
            let what = format!("rpc, T = {threads}, glibc: the allocator's share of CPU time");
            self.report.figure(what, Asked::AtLeast(20.0), " %", Kind::Timed, &rounds);
        }
        for &threads in all.iter().filter(|_| self.results.settings().contains(&PER_CPU)) {
            let row = format!("{threads} {}", metric::REQUESTS.clock);
            let rounds = self.results.cells.values(("rpc", &row, PER_CPU), "commits_percent");
            let what = format!("rpc, T = {threads}, percpu: rseq commits of all operations");
            self.report.figure(what, Asked::AtLeast(99.0), " %", Kind::Counted, &rounds);
        }
    }

    /// What idle threads cost.
    fn idle(&mut self) {
        const FEW: u32 = 10;
        let threads = self.results.threads("idle");
        let Some(&many) = threads.last().filter(|&&many| many > FEW && threads.contains(&FEW))
        else {
            return;
        };
        for name in self.results.settings() {
            let of = |threads| self.results.rounds(place("idle", threads, name), metric::HEAP_PEAK);
            // The figure is of 1,000 threads.
            let asked = only_if(name == PER_CPU && many >= 1000, Asked::AtMost(1.3));
            let what = format!("idle, {name}: heap at its peak with {many} threads to {FEW}");
            let rounds = ratios(&of(many), &of(FEW));
            self.report.figure(what, asked, "x", Kind::Counted, &rounds);
        }
    }

    /// What short threads leave behind.
    fn churn(&mut self) {
        for threads in self.results.threads("churn") {
            for name in self.results.ours() {
                let grown = self.results.values(place("churn", threads, name), metric::GROWN);
                let rounds: Vec<f64> = grown.iter().map(|bytes| bytes / MIB).collect();
                // One after another it is the same thread again; with others beside it,
                // how many were there at a time is a matter of luck. A MiB is ten
                // bytes for each of 100,000 threads; K caches are come by one after
                // the other, and each may hold what it may hold.
                let bound = (f64::from(caches(name).unwrap_or(1)) * self.cache_mib).max(1.0);
                let asked = only_if(threads == 1, Asked::AtMost(bound));
                let what = format!(
                    "churn, {threads} at a time, {name}: heap after the last thread above heap \
                     after 10"
                );
                self.report.figure(what, asked, " MiB", Kind::Counted, &rounds);
            }
        }
    }

    /// Time inside the allocator and memory, to the peers'.
    fn peers(&mut self) {
        let mut peers = self.results.settings();
        peers.retain(|name| !is_ours(name) && *name != GLIBC);
        for threads in self.results.threads("ttest1") {
            for name in self.results.ours() {
                for peer in peers.iter().filter(|peer| peer.starts_with(SCUDO)) {
                    let asked = only_if(*peer == SCUDO, Asked::AtMost(0.5));
                    for (metric, time) in
                        [(metric::INSIDE, "time"), (metric::INSIDE_CPU, "processor time")]
                    {
                        let what = format!(
                            "ttest1, T = {threads}, {name}: {time} inside the allocator to {peer}'s"
                        );
                        let one = place("ttest1", threads, name);
                        self.ratio(what, (asked, Kind::Timed), one, peer, metric);
                    }
                }
            }
        }
        for workload in ["ttest1", "rpc"] {
            for threads in self.results.threads(workload) {
                for peer in &peers {
                    let what = format!("{workload}, T = {threads}, {SHARED}: peak RSS to {peer}'s");
                    let asked = (Asked::AtMost(1.0), Kind::Counted);
                    let one = place(workload, threads, SHARED);
                    self.ratio(what, asked, one, peer, metric::RSS);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::lines;
    use ::figures::cells::Cells;

    /// Settings at 40 threads, seven rounds, of heap `heap` MiB (shared) and so much live: whether
    /// the line of the table that begins so holds this.
    fn judged(heap: f64, live: f64, cache_mib: u32) -> impl Fn(&str, &str) -> bool {
        let mut text = lines(("rpc", "40 none", PER_CPU), 1, &[("commits_percent", 98.0)]);
        for round in 1..=7 {
            for setting in ["exclusive", "shared", "percpu", "scudo"] {
                let heap = if setting == "shared" { heap } else { 10.0 } * MIB;
                let of = |heap: f64| {
                    let wall = if setting == "percpu" { 1.2e9 } else { 1e9 };
                    [
                        ("requests", 1000.0),
                        ("wall_ns", wall),
                        ("rss_peak", heap),
                        ("rss_end", heap),
                        ("anonymous_end", heap),
                        ("stacks", 0.0),
                        ("own", 0.0),
                        ("live_peak", live * MIB),
                    ]
                };
                text += &lines(("rpc", "40 none", setting), round, &of(heap));
                text += &lines(("idle", "10 none", setting), round, &of(heap));
                let many = if setting == "percpu" { heap } else { 2.0 * heap };
                text += &lines(("idle", "1000 none", setting), round, &of(many));
            }
        }
        let mut report = Report::default();
        let results = Results::of(Cells::parse(&text).unwrap());
        all(&results, &Bounds { cache_mib }, &mut report);
        let text = report.text();
        move |start, verdict| {
            let start = format!("| {start}");
            let line = text.lines().find(|line| line.starts_with(&start)).unwrap_or_default();
            line.ends_with(&format!("| {verdict} |"))
        }
    }

    #[test]
    fn the_issue_s_figures_are_judged() {
        let of = judged(5.0, 4.0, 4);
        for (start, verdict) in [
            ("rpc, T = 40, shared: throughput", "met, certainly"),
            ("rpc, T = 40, percpu: throughput", "**MISSED**"),
            ("rpc, T = 40, shared: heap at its peak above live", "met, certainly"),
            ("rpc, T = 40, shared: heap at its peak to scudo", "met, certainly"),
            ("rpc, T = 40, percpu: rseq commits", "**MISSED**"),
            ("idle, percpu", "met, certainly"),
            ("idle, exclusive", ""),
            ("rpc, T = 40, glibc", "not measured"),
        ] {
            assert!(of(start, verdict), "{start}");
        }
    }

    #[test]
    fn the_bound_of_a_cache_can_be_said() {
        let start = "rpc, T = 40, shared: heap at its peak above live";
        let bound = f64::from(caches(SHARED).unwrap());
        let heavy = |mib| judged(1.0 + 3.5 * bound, 1.0, mib);
        assert!(heavy(3)(start, "**MISSED**") && heavy(4)(start, "met, certainly"));
    }
}
