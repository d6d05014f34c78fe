//! The tables: a table for each number that is asked of a workload, a row for each
//! setting, a column for each number of threads.
//!
//! A cell is the median over the rounds. Behind it stands the ratio to `exclusive`,
//! with its 95 % interval for heapwright's own settings: the median of the
//! ratios within rounds.

use ::figures::cells::matrix;
use ::figures::statistics::{median, of_rounds};
use ::figures::text::{interval, number};

use crate::metric::{self, Metric};
use crate::plan::{WORKLOADS, Workload};
use crate::results::{Place, Results};
use crate::setting::{EXCLUSIVE, is_ours};

/// What is shown of a workload besides its speed.
fn more_of(workload: &Workload) -> &'static [&'static Metric] {
    match workload.name {
        "ttest1" => &[metric::INSIDE, metric::INSIDE_CPU, metric::HEAP_PEAK, metric::RSS],
        "rpc" => &[
            metric::P50,
            metric::P99,
            metric::P999,
            metric::SHARE,
            metric::LIVE,
            metric::HEAP_PEAK,
            metric::ABOVE_LIVE,
            metric::RSS,
        ],
        "churn" => &[metric::HEAP_END, metric::GROWN],
        _ => &[metric::HEAP_PEAK, metric::HEAP_END],
    }
}

/// Whether a ratio to `exclusive` says something.
fn is_compared(metric: &Metric) -> bool {
    let alone = [metric::SHARE, metric::LIVE, metric::GROWN, metric::ABOVE_LIVE];
    alone.iter().all(|one| one.label != metric.label)
}

fn cell(results: &Results, place: Place<'_>, metric: &Metric) -> String {
    let values = results.values(place, metric);
    if values.is_empty() {
        return if results.failed(place) { "failed" } else { "-" }.to_owned();
    }
    let shown = number(median(&values) / metric.unit);
    if place.setting == EXCLUSIVE || !is_compared(metric) {
        return shown;
    }
    let base = Place { setting: EXCLUSIVE, ..place };
    match of_rounds(&results.ratios(place, base, metric)) {
        Some(ratio) if is_ours(place.setting) => format!("{shown}; {}x", interval(ratio)),
        Some(ratio) => format!("{shown}; {}x", number(ratio.value)),
        None => shown,
    }
}

/// All tables of a workload that was run.
fn of(results: &Results, workload: &Workload) -> Option<String> {
    let threads = results.threads(workload.name);
    if threads.is_empty() {
        return None;
    }
    let counts: Vec<String> = threads.iter().map(u32::to_string).collect();
    let columns: Vec<&str> = counts.iter().map(String::as_str).collect();
    let mut text = String::from(
        "Columns are threads. Medians; behind them the ratio to `exclusive`, with its 95 % \
         interval from 6 rounds on.\n\n",
    );
    for metric in [workload.speed].iter().chain(more_of(workload)) {
        let table = matrix("", &results.settings(), &columns, |setting, threads| {
            let threads = threads.parse().unwrap_or_default();
            cell(results, Place { workload: workload.name, threads, setting }, metric)
        });
        text.push_str(&format!("{}, {}:\n\n{table}", workload.name, metric.label));
    }
    Some(text)
}

/// Every workload that was run: its title, and its tables.
pub(crate) fn all(results: &Results) -> Vec<(String, String)> {
    let tables = WORKLOADS.iter().filter_map(|workload| {
        Some((format!("{}: {}", workload.name, workload.about), of(results, workload)?))
    });
    tables.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::lines;
    use ::figures::cells::Cells;

    #[test]
    fn cells_are_medians_ratios_or_reasons() {
        let mut text = String::new();
        for round in 1..=7 {
            for (setting, requests) in [("exclusive", 1000.0), ("shared", 970.0), ("p", 500.0)] {
                let fields = [("requests", requests), ("wall_ns", 1e9)];
                text += &lines(("rpc", "40 none", setting), round, &fields);
            }
        }
        text += &lines(("rpc", "80 none", "p"), 1, &[("failed", 1.0)]);
        let all = all(&Results::of(Cells::parse(&text).unwrap()));
        assert_eq!(all.len(), 1);
        let text = &all[0].1;
        for line in [
            "|  | 40 | 80 |\n|---|---:|---:|\n| exclusive | 1000 | - |\n",
            "| shared | 970; 0.970 (0.970 to 0.970)x | - |\n",
            "| p | 500; 0.500x | failed |\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
