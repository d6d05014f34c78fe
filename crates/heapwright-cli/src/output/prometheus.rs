//! Metrics of running processes in Prometheus's text format, version 0.0.4.
//!
//! Sizes are gauges in bytes; growing figures are counters. The labels of a process are its id
//! (`pid`) and its name (`command`); the label of a part of memory is `part`.

use super::printable_text;
use crate::live::Watched;
use heapwright_record::Stats;
use std::fmt::Write;

/// A metric's name, kind, description, and value for a process.
type Metric = (&'static str, &'static str, &'static str, fn(&Watched) -> Option<u64>);

fn stats(watched: &Watched) -> Option<&Stats> {
    Some(&watched.seen.report.as_ref()?.stats)
}

const METRICS: [Metric; 8] = [
    ("live_bytes", "gauge", "Bytes in blocks that the program holds.", |of| {
        Some(stats(of)?.live_bytes)
    }),
    ("live_blocks", "gauge", "Blocks that the program holds.", |of| Some(stats(of)?.live_blocks)),
    ("given_back_bytes_total", "counter", "Bytes given back to the kernel.", |of| {
        Some(stats(of)?.purged_bytes)
    }),
    ("thread_caches", "gauge", "Threads that have a cache of their own.", |of| {
        Some(stats(of)?.caches_live)
    }),
    ("page_faults_total", "counter", "Page faults of the process.", |of| {
        Some(of.seen.process.faults)
    }),
    ("peak_resident_bytes", "gauge", "The most that was resident.", |of| {
        Some(of.seen.process.peak)
    }),
    ("limit_bytes", "gauge", "The memory limit of the process's control groups.", |of| {
        of.seen.process.limit
    }),
    ("age_milliseconds", "gauge", "Time since the process has said where its memory is.", |of| {
        Some(of.seen.report.as_ref()?.age.as_millis() as u64)
    }),
];

pub(crate) fn report(processes: &[&Watched]) -> String {
    let help =
        "Resident memory by part; the parts add up to it, unless the process's figures are old.";
    let mut out = String::new();
    metric(&mut out, "resident_bytes", "gauge", help);
    for watched in processes {
        for (part, bytes) in watched.seen.report.iter().flat_map(|report| report.parts.all()) {
            sample(&mut out, "resident_bytes", watched, Some(part), bytes);
        }
    }
    for (name, kind, help, of) in METRICS {
        metric(&mut out, name, kind, help);
        for watched in processes {
            if let Some(value) = of(watched) {
                sample(&mut out, name, watched, None, value);
            }
        }
    }
    out
}

fn metric(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP heapwright_{name} {help}\n# TYPE heapwright_{name} {kind}");
}

fn sample(out: &mut String, name: &str, watched: &Watched, part: Option<&str>, value: u64) {
    let (pid, command) = (watched.seen.process.pid, escaped(watched.seen.process.name()));
    let part = part.map(|part| format!(",part=\"{part}\"")).unwrap_or_default();
    let _ = writeln!(out, "heapwright_{name}{{pid=\"{pid}\",command=\"{command}\"{part}}} {value}");
}

/// Returns a label's value, escaped.
fn escaped(text: &str) -> String {
    printable_text(text).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        assert_eq!(escaped("a\"b\\c\n\u{1b}d"), "a\\\"b\\\\c\\\\n\\\\u{1b}d");
    }
}
