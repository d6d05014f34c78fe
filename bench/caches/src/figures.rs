//! The figures: what was asked, what was measured, and the verdict.
//!
//! Times need 6 rounds; memory is counted and not a matter of luck, so with fewer the worst one
//! decides (`figures::verdict`).

use ::figures::options::number;
use ::figures::statistics::of_rounds;
use ::figures::verdict::{Asked, Figure, Kind};

use crate::metric::Metric;
use crate::results::{Cell, Results};
use crate::setting::{AUTO, EXCLUSIVE, GLIBC, PER_CPU, SCUDO, SHARED, Setting};

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

struct Judge<'a> {
    results: &'a Results,
    bounds: &'a Bounds,
    figures: Vec<Figure>,
}

impl Judge<'_> {
    fn add(&mut self, what: String, asked: Asked, unit: &str, kind: Kind, rounds: &[f64]) {
        self.figures.push(Figure::new(what, asked, unit, kind, of_rounds(rounds)));
    }

    fn ratios(&self, workload: &str, threads: u32, pair: (&str, &str), metric: Metric) -> Vec<f64> {
        let of = |setting| Cell { workload, threads, setting };
        self.results.ratios(of(pair.0), of(pair.1), metric)
    }

    /// Heapwright's settings but `exclusive`, and whether the issue asks something of them.
    fn others(&self) -> Vec<(Setting, bool)> {
        let others = self.results.settings.iter().filter(|s| s.ours && s.name != EXCLUSIVE);
        others.map(|s| (s.clone(), s.name == SHARED || s.name == PER_CPU)).collect()
    }

    /// Throughput of shared caches and of per-CPU caches to exclusive ones'.
    fn throughput(&mut self) {
        for workload in ["rpc", "ttest1"] {
            let metric = if workload == "rpc" { Metric::Requests } else { Metric::Operations };
            for threads in self.results.threads(workload) {
                for (setting, asked) in self.others() {
                    // Shared caches are for more threads than there are caches.
                    let asked = asked
                        && workload == "rpc"
                        && (setting.name == PER_CPU || setting.caches.is_some_and(|k| threads > k));
                    let asked = if asked { Asked::AtLeast(0.97) } else { Asked::Nothing };
                    let rounds = self.ratios(workload, threads, (&setting.name, EXCLUSIVE), metric);
                    let what = format!(
                        "{workload}, T = {threads}, {}: throughput to exclusive",
                        setting.name
                    );
                    self.add(what, asked, "x", Kind::Timed, &rounds);
                }
            }
        }
    }

    /// The default beside the better of the two that it chooses from, in each round.
    fn auto(&mut self) {
        for (workload, speed) in [
            ("rpc", Metric::Requests),
            ("ttest1", Metric::Operations),
            ("idle", Metric::OperationsCpu),
            ("churn", Metric::ThreadsASecond),
        ] {
            for threads in self.results.threads(workload) {
                for (metric, is_speed) in [(speed, true), (Metric::Rss, false)] {
                    let of =
                        |setting| self.results.rounds(Cell { workload, threads, setting }, metric);
                    let (auto, own, cpus) = (of(AUTO), of(EXCLUSIVE), of(PER_CPU));
                    let better = if is_speed { f64::max } else { f64::min };
                    let rounds: Vec<f64> = auto
                        .iter()
                        .filter_map(|(round, auto)| {
                            Some(auto / better(*own.get(round)?, *cpus.get(round)?))
                        })
                        .collect();
                    let (name, asked, kind) = if is_speed {
                        ("speed", Asked::AtLeast(0.97), Kind::Timed)
                    } else {
                        ("peak RSS", Asked::AtMost(1.03), Kind::Counted)
                    };
                    let what = format!(
                        "{workload}, T = {threads}, auto: {name} to the better of exclusive and percpu"
                    );
                    self.add(what, asked, "x", kind, &rounds);
                }
            }
        }
    }

    /// What K caches hold, and what scudo needs.
    fn memory_of_rpc(&mut self) {
        for threads in self.results.threads("rpc") {
            for (setting, asked) in self.others() {
                let name = &setting.name;
                let Some(caches) = setting.caches.filter(|_| setting.is_shared()) else { continue };
                let bound = f64::from(self.bounds.cache_mib);
                let cell = Cell { workload: "rpc", threads, setting: name };
                let above = self.results.rounds(cell, Metric::AboveLive);
                let each: Vec<f64> =
                    above.values().map(|bytes| bytes / 1048576.0 / f64::from(caches)).collect();
                let what = format!(
                    "rpc, T = {threads}, {name}: heap at its peak above live, a cache (K = {caches})"
                );
                self.add(what, Asked::AtMost(bound), " MiB", Kind::Counted, &each);
                // The figure names 40 and 80 threads.
                let bound =
                    if asked && threads >= 40 { Asked::AtMost(0.55) } else { Asked::Nothing };
                let rounds = self.ratios("rpc", threads, (name, SCUDO), Metric::HeapPeak);
                let what =
                    format!("rpc, T = {threads}, {name}: heap at its peak to scudo's exclusive");
                self.add(what, bound, "x", Kind::Counted, &rounds);
            }
        }
    }

    /// The share of processor time that makes the load one of an allocator.
    fn share_of_rpc(&mut self) {
        for threads in self.results.threads("rpc") {
            let cell = Cell { workload: "rpc", threads, setting: GLIBC };
            let rounds: Vec<f64> = self.results.rounds(cell, Metric::Share).into_values().collect();
            let what = format!("rpc, T = {threads}, glibc: the allocator's share of CPU time");
            self.add(what, Asked::AtLeast(20.0), " %", Kind::Timed, &rounds);
        }
    }

    fn commits(&mut self) {
        for threads in self.results.threads("rpc") {
            let found = self.results.commits.iter().find(|one| one.threads == threads);
            let rounds: Vec<f64> = found.map(|one| one.percent).into_iter().collect();
            let what = format!("rpc, T = {threads}, percpu: rseq commits of all operations");
            self.add(what, Asked::AtLeast(99.0), " %", Kind::Counted, &rounds);
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
        let settings: Vec<Setting> = self.results.settings.clone();
        for setting in settings {
            let name = setting.name.as_str();
            // The figure is of 1,000 threads.
            let asked = name == PER_CPU && many >= 1000;
            let asked = if asked { Asked::AtMost(1.3) } else { Asked::Nothing };
            let of = |threads| Cell { workload: "idle", threads, setting: name };
            let (few, most) = (
                self.results.rounds(of(FEW), Metric::HeapPeak),
                self.results.rounds(of(many), Metric::HeapPeak),
            );
            let rounds: Vec<f64> =
                most.iter().filter_map(|(round, bytes)| Some(bytes / few.get(round)?)).collect();
            let what = format!("idle, {name}: heap at its peak with {many} threads to {FEW}");
            self.add(what, asked, "x", Kind::Counted, &rounds);
        }
    }

    /// What short threads leave behind.
    fn churn(&mut self) {
        for threads in self.results.threads("churn") {
            let ours: Vec<Setting> =
                self.results.settings.iter().filter(|s| s.ours).cloned().collect();
            for setting in ours {
                let cell = Cell { workload: "churn", threads, setting: &setting.name };
                let grown = self.results.rounds(cell, Metric::Grown);
                let rounds: Vec<f64> = grown.values().map(|bytes| bytes / 1048576.0).collect();
                // One after another it is the same thread again; with others beside it,
                // how many were there at a time is a matter of luck. A MiB is ten
                // bytes for each of 100,000 threads; K caches are come by one after
                // the other, and each may hold what it may hold.
                let caches = f64::from(setting.caches.unwrap_or(1));
                let bound = (caches * f64::from(self.bounds.cache_mib)).max(1.0);
                let asked = if threads == 1 { Asked::AtMost(bound) } else { Asked::Nothing };
                let what = format!(
                    "churn, {threads} at a time, {}: heap after the last thread above heap after 10",
                    setting.name
                );
                self.add(what, asked, " MiB", Kind::Counted, &rounds);
            }
        }
    }

    /// Time inside the allocator and memory, to the peers'.
    fn peers(&mut self) {
        let ours: Vec<Setting> = self.results.settings.iter().filter(|s| s.ours).cloned().collect();
        let peers: Vec<Setting> =
            self.results.settings.iter().filter(|s| !s.ours && s.name != GLIBC).cloned().collect();
        for threads in self.results.threads("ttest1") {
            for setting in &ours {
                for peer in peers.iter().filter(|peer| peer.name.starts_with(SCUDO)) {
                    let pair = (setting.name.as_str(), peer.name.as_str());
                    let asked =
                        if peer.name == SCUDO { Asked::AtMost(0.5) } else { Asked::Nothing };
                    for (metric, time) in
                        [(Metric::Inside, "time"), (Metric::InsideCpu, "processor time")]
                    {
                        let rounds = self.ratios("ttest1", threads, pair, metric);
                        let what = format!(
                            "ttest1, T = {threads}, {}: {time} inside the allocator to {}'s",
                            pair.0, pair.1
                        );
                        self.add(what, asked, "x", Kind::Timed, &rounds);
                    }
                }
            }
            for peer in &peers {
                let pair = (SHARED, peer.name.as_str());
                let rounds = self.ratios("ttest1", threads, pair, Metric::Rss);
                let what = format!("ttest1, T = {threads}, {}: peak RSS to {}'s", pair.0, pair.1);
                self.add(what, Asked::AtMost(1.0), "x", Kind::Counted, &rounds);
            }
        }
        for threads in self.results.threads("rpc") {
            for peer in &peers {
                let pair = (SHARED, peer.name.as_str());
                let rounds = self.ratios("rpc", threads, pair, Metric::Rss);
                let what = format!("rpc, T = {threads}, {}: peak RSS to {}'s", pair.0, pair.1);
                self.add(what, Asked::AtMost(1.0), "x", Kind::Counted, &rounds);
            }
        }
    }
}

/// Every figure that follows from the results.
pub(crate) fn all(results: &Results, bounds: &Bounds) -> Vec<Figure> {
    let mut judge = Judge { results, bounds, figures: Vec::new() };
    judge.throughput();
    if results.setting(AUTO).is_some() {
        judge.auto();
    }
    judge.memory_of_rpc();
    judge.share_of_rpc();
    if results.setting(PER_CPU).is_some() {
        judge.commits();
    }
    judge.idle();
    judge.churn();
    judge.peers();
    judge.figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::figures::verdict::{Verdict, hold};

    use crate::results::Commits;
    use crate::results::tests::one;

    /// Two settings at 40 threads, seven rounds, of heap `a` and `b` MiB and so much live.
    fn results(heap: f64, live: f64) -> Results {
        let mut settings = Setting::all_ours("/a.so", &[], 2);
        settings.push(Setting::peer("scudo=/s.so").unwrap());
        let mut results = Results { settings, ..Results::default() };
        for round in 1..=7 {
            for setting in ["exclusive", "shared", "percpu", "scudo"] {
                let heap = if setting == "shared" { heap } else { 10.0 } * 1048576.0;
                let fields = [
                    ("requests", 1000.0),
                    ("wall_ns", if setting == "percpu" { 1.2e9 } else { 1e9 }),
                    ("rss_peak", heap),
                    ("rss_end", heap),
                    ("anonymous_end", heap),
                    ("stacks", 0.0),
                    ("own", 0.0),
                    ("live_peak", live * 1048576.0),
                ];
                results.runs.push(one(("rpc", 40, setting), round, "none", &fields));
                for threads in [10, 1000] {
                    let fields = fields.map(|(name, value)| {
                        (
                            name,
                            if setting == "percpu" || threads == 10 { value } else { value * 2.0 },
                        )
                    });
                    results.runs.push(one(("idle", threads, setting), round, "none", &fields));
                }
            }
        }
        results
    }

    fn verdict(figures: &[Figure], start: &str) -> Verdict {
        let found = figures.iter().find(|figure| figure.what.starts_with(start));
        found.unwrap_or_else(|| panic!("no figure '{start}'")).verdict
    }

    #[test]
    fn the_issue_s_figures_are_judged() {
        let mut results = results(5.0, 4.0);
        results.commits.push(Commits { threads: 40, percent: 98.0 });
        let figures = all(&results, &Bounds::default());
        let of = |start: &str| verdict(&figures, start);
        assert_eq!(of("rpc, T = 40, shared: throughput"), Verdict::Certainly);
        assert_eq!(of("rpc, T = 40, percpu: throughput"), Verdict::Missed);
        assert_eq!(of("rpc, T = 40, shared: heap at its peak above live"), Verdict::Certainly);
        assert_eq!(of("rpc, T = 40, shared: heap at its peak to scudo"), Verdict::Certainly);
        assert_eq!(of("rpc, T = 40, percpu: rseq commits"), Verdict::Missed);
        assert_eq!(of("idle, percpu"), Verdict::Certainly);
        assert_eq!(of("idle, exclusive"), Verdict::Shown);
        assert_eq!(of("rpc, T = 40, glibc"), Verdict::NotMeasured);
        assert!(!hold(&figures));
    }

    #[test]
    fn the_bound_of_a_cache_can_be_said() {
        let heavy = results(9.0, 1.0);
        let start = "rpc, T = 40, shared: heap at its peak above live";
        assert_eq!(verdict(&all(&heavy, &Bounds { cache_mib: 3 }), start), Verdict::Missed);
        assert_eq!(verdict(&all(&heavy, &Bounds::default()), start), Verdict::Certainly);
        let to_scudo = "rpc, T = 40, shared: heap at its peak to scudo";
        assert_eq!(verdict(&all(&heavy, &Bounds::default()), to_scudo), Verdict::Missed);
    }
}
