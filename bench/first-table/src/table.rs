//! From runs to a table: medians, ratios to glibc, spreads, geometric means.

use std::fmt::Write as _;

use serde_json::json;

use crate::jobs::{Job, Kind};
use crate::peers::Rival;
use crate::race::Run;

/// The middle value (the mean of the two middle ones for an even count).
fn median(values: impl Iterator<Item = f64>) -> f64 {
    quantile(values, 0.5)
}

fn quantile(values: impl Iterator<Item = f64>, at: f64) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = at * last as f64;
    let (low, part) = (place.floor() as usize, place.fract());
    sorted[low] + (sorted[(low + 1).min(last)] - sorted[low]) * part
}

fn geomean(values: &[f64]) -> f64 {
    (values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp()
}

/// A quantity of a run, with its title and how a cell of glibc's column reads.
struct Measure {
    title: &'static str,
    of: fn(&Run) -> f64,
    show: fn(f64) -> String,
}

const MEASURES: [Measure; 3] = [
    Measure { title: "wall time", of: |r| r.wall_ms, show: |v| format!("{v:.0} ms") },
    Measure { title: "CPU time", of: |r| r.cpu_ms, show: |v| format!("{v:.0} ms") },
    Measure { title: "peak RSS", of: |r| r.rss_kib, show: |v| format!("{:.1} MiB", v / 1024.0) },
];

/// Prints all tables to stdout, in Markdown, so that they can be pasted.
pub(crate) fn print(jobs: &[Job], rivals: &[Rival], runs: &[Vec<Vec<Run>>]) {
    let rounds = runs.first().map_or(0, |row| row[0].len());
    println!("Medians of {rounds} interleaved runs. glibc's column is absolute, the others are");
    println!("ratios to it (below 1 is better); +- is half the interquartile range over the");
    println!("median, the widest of the row.\n");
    for measure in &MEASURES {
        print!("{}", one(measure, jobs, rivals, runs));
    }
    print!("{}", own(jobs, rivals, runs));
    for rival in rivals {
        println!("- {}: {}", rival.name, rival.origin);
    }
}

fn header(title: &str, rivals: &[Rival], last: &str) -> String {
    let mut out = format!("| {title:<12} |");
    for rival in rivals {
        let _ = write!(out, " {:>10} |", rival.name);
    }
    let _ = write!(out, " {last:>6} |\n|--------------|");
    for _ in rivals {
        out.push_str("-----------:|");
    }
    out.push_str("-------:|\n");
    out
}

fn one(measure: &Measure, jobs: &[Job], rivals: &[Rival], runs: &[Vec<Vec<Run>>]) -> String {
    let mut out = header(measure.title, rivals, "+-");
    let mut ratios: Vec<(Kind, Vec<f64>)> = Vec::new();
    for (job, row) in jobs.iter().zip(runs) {
        let values = |cell: &[Run]| cell.iter().map(measure.of).collect::<Vec<_>>();
        let base = median(values(&row[0]).into_iter());
        let mut spread: f64 = 0.0;
        let _ = write!(out, "| {:<12} |", job.name);
        let mut row_ratios = Vec::new();
        for (r, cell) in row.iter().enumerate() {
            let values = values(cell);
            let middle = median(values.iter().copied());
            let width =
                quantile(values.iter().copied(), 0.75) - quantile(values.iter().copied(), 0.25);
            spread = spread.max(width / 2.0 / middle);
            row_ratios.push(middle / base);
            let text =
                if r == 0 { (measure.show)(middle) } else { format!("{:.2}", middle / base) };
            let _ = write!(out, " {text:>10} |");
        }
        let _ = writeln!(out, " {:>5.0}% |", spread * 100.0);
        ratios.push((job.kind, row_ratios));
    }
    let groups: [(&str, &[Kind]); 3] = [
        ("workloads", &[Kind::Workload]),
        ("programs", &[Kind::Program]),
        ("all", &[Kind::Workload, Kind::Program]),
    ];
    for (name, kinds) in groups {
        let rows: Vec<_> = ratios.iter().filter(|(kind, _)| kinds.contains(kind)).collect();
        if rows.is_empty() || (kinds.len() > 1 && rows.len() < 2) {
            continue;
        }
        let _ = write!(out, "| {:<12} |", format!("**{name}**"));
        for r in 0..rivals.len() {
            let column: Vec<f64> = rows.iter().map(|(_, row)| row[r]).collect();
            let _ = write!(out, " {:>10} |", format!("**{:.2}**", geomean(&column)));
        }
        out.push_str("        |\n");
    }
    out.push('\n');
    out
}

/// What the workloads say about themselves: without start-up and set-up.
fn own(jobs: &[Job], rivals: &[Rival], runs: &[Vec<Vec<Run>>]) -> String {
    let mut out = String::new();
    for (job, row) in jobs.iter().zip(runs) {
        let Some((unit, _)) = row[0].first().and_then(|run| run.own.clone()) else { continue };
        if out.is_empty() {
            out = header("per pair", rivals, "");
        }
        let _ = write!(out, "| {:<12} |", job.name);
        for cell in row {
            let value = median(cell.iter().filter_map(|run| Some(run.own.as_ref()?.1)));
            let _ = write!(out, " {value:>10.1} |");
        }
        let _ = writeln!(out, " {unit} |");
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// Every single run, for machines.
pub(crate) fn json(jobs: &[Job], rivals: &[Rival], runs: &[Vec<Vec<Run>>]) -> String {
    let mut list = Vec::new();
    for (job, row) in jobs.iter().zip(runs) {
        for (rival, cell) in rivals.iter().zip(row) {
            for (round, run) in cell.iter().enumerate() {
                list.push(json!({
                    "row": job.name,
                    "about": job.about,
                    "allocator": rival.name,
                    "origin": rival.origin,
                    "round": round,
                    "wall_ms": run.wall_ms,
                    "cpu_ms": run.cpu_ms,
                    "peak_rss_kib": run.rss_kib,
                    "own": run.own,
                }));
            }
        }
    }
    serde_json::to_string_pretty(&list).expect("numbers and strings always serialise") + "\n"
}
