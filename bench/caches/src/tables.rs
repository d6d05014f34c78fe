//! The tables: a table for each number that is asked of a workload, a row for each
//! setting, a column for each number of threads.
//!
//! A cell is the median over the rounds. Behind it stands the ratio to `exclusive`,
//! with its 95 % interval for heapwright's own settings: the median of the
//! ratios within rounds.

use ::figures::statistics::of_rounds;
use ::figures::text::{interval, number, table};

use crate::metric::Metric;
use crate::plan::{WORKLOADS, Workload};
use crate::results::{Cell, Results};
use crate::setting::{EXCLUSIVE, Setting};

/// What is shown of a workload besides its speed.
fn more_of(workload: &Workload) -> &'static [Metric] {
    match workload.name {
        "ttest1" => &[Metric::Inside, Metric::InsideCpu, Metric::HeapPeak, Metric::Rss],
        "rpc" => &[
            Metric::P50,
            Metric::P99,
            Metric::P999,
            Metric::Share,
            Metric::Live,
            Metric::HeapPeak,
            Metric::AboveLive,
            Metric::Rss,
        ],
        "churn" => &[Metric::HeapEnd, Metric::Grown],
        _ => &[Metric::HeapPeak, Metric::HeapEnd],
    }
}

/// Whether a ratio to `exclusive` says something.
fn is_compared(metric: Metric) -> bool {
    !matches!(metric, Metric::Share | Metric::Live | Metric::Grown | Metric::AboveLive)
}

fn cell_text(results: &Results, cell: Cell<'_>, metric: Metric, setting: &Setting) -> String {
    let Some(middle) = results.estimate(cell, metric) else {
        return results.failure(cell).map_or("-", |_| "failed").to_owned();
    };
    let shown = number(middle.value / metric.unit());
    if setting.name == EXCLUSIVE || !is_compared(metric) {
        return shown;
    }
    let base = Cell { setting: EXCLUSIVE, ..cell };
    match of_rounds(&results.ratios(cell, base, metric)) {
        Some(ratio) if setting.ours => format!("{shown}; {}x", interval(ratio)),
        Some(ratio) => format!("{shown}; {}x", number(ratio.value)),
        None => shown,
    }
}

fn table_of(results: &Results, workload: &Workload, metric: Metric, threads: &[u32]) -> String {
    let counts: Vec<String> = threads.iter().map(u32::to_string).collect();
    let head: Vec<&str> = [""].into_iter().chain(counts.iter().map(String::as_str)).collect();
    let rows: Vec<Vec<String>> = results
        .settings
        .iter()
        .map(|setting| {
            let cells = threads.iter().map(|&threads| {
                let cell = Cell { workload: workload.name, threads, setting: &setting.name };
                cell_text(results, cell, metric, setting)
            });
            [setting.name.clone()].into_iter().chain(cells).collect()
        })
        .collect();
    format!("{}, {}:\n\n{}", workload.name, metric.label(), table(&head, &rows))
}

/// All tables.
pub(crate) fn all(results: &Results) -> String {
    let mut text = format!("{}.\n\n", results.machine);
    for workload in WORKLOADS {
        let threads = results.threads(workload.name);
        if threads.is_empty() {
            continue;
        }
        text.push_str(&format!("### {}: {}\n\n", workload.name, workload.about));
        text.push_str(
            "Columns are threads. Medians; behind them the ratio to `exclusive`, with its 95 % \
             interval from 6 rounds on.\n\n",
        );
        text.push_str(&table_of(results, workload, workload.speed, &threads));
        for &metric in more_of(workload) {
            text.push_str(&table_of(results, workload, metric, &threads));
        }
    }
    text
}

/// What a reader must know of the tables above.
pub(crate) fn feet(results: &Results) -> String {
    let mut text = String::new();
    for left in &results.left_out {
        text.push_str(&format!("- {} is left out: {}\n", left.setting.name, left.why));
    }
    for workload in WORKLOADS {
        for threads in results.threads(workload.name) {
            for setting in &results.settings {
                let cell = Cell { workload: workload.name, threads, setting: &setting.name };
                if let Some(why) = results.failure(cell) {
                    let (name, workload) = (&setting.name, workload.name);
                    text.push_str(&format!("- {workload}, {threads} threads, {name}: {why}\n"));
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::LeftOut;
    use crate::results::tests::one;

    #[test]
    fn cells_are_medians_ratios_or_reasons() {
        let mut results = Results {
            machine: "2 processors".to_owned(),
            settings: vec![
                Setting::all_ours("/a.so", &[], 2).remove(0),
                Setting::all_ours("/a.so", &[], 2).remove(2),
                Setting::peer("p=/p.so").unwrap(),
            ],
            ..Results::default()
        };
        for round in 1..=7 {
            for (setting, requests) in [("exclusive", 1000.0), ("shared", 970.0), ("p", 500.0)] {
                let fields = [("requests", requests), ("wall_ns", 1e9)];
                results.runs.push(one(("rpc", 40, setting), round, "none", &fields));
            }
        }
        let mut failed = one(("rpc", 80, "p"), 1, "none", &[]);
        failed.failed = Some("signal 11 ended it".to_owned());
        results.runs.push(failed);
        let text = all(&results);
        assert!(
            text.contains("|  | 40 | 80 |\n|---|---:|---:|\n| exclusive | 1000 | - |\n"),
            "{text}"
        );
        assert!(text.contains("| shared | 970; 0.970 (0.970 to 0.970)x | - |\n"), "{text}");
        assert!(text.contains("| p | 500; 0.500x | failed |\n"), "{text}");
        assert!(!text.contains("### idle"));
        let setting = results.settings[1].clone();
        results.left_out.push(LeftOut { setting, why: "it says: no".to_owned() });
        let feet = feet(&results);
        assert_eq!(
            feet,
            "- shared is left out: it says: no\n- rpc, 80 threads, p: signal 11 ended it\n"
        );
    }
}
