//! Processes that run, as metrics for Prometheus: its text format, version 0.0.4.
//!
//! Sizes are gauges in bytes, what only grows are counters. A process is known by its number (`pid`) and its name
//! (`command`); a part of memory by `part`.

use super::printable_text;
use crate::live::Watched;
use std::fmt::Write;

/// The exposition of all processes.
pub(crate) fn report(processes: &[&Watched]) -> String {
    let mut out = String::new();
    metric(
        &mut out,
        "heapwright_resident_bytes",
        "gauge",
        "Resident memory by part; the parts add up to it, unless the process's figures are old.",
        |out| {
            for watched in processes {
                let Some(report) = &watched.seen.report else { continue };
                for (part, bytes) in report.parts.all() {
                    sample(out, "heapwright_resident_bytes", watched, Some(part), bytes);
                }
            }
        },
    );
    let one = |out: &mut String,
               name: &str,
               kind: &str,
               help: &str,
               of: &dyn Fn(&Watched) -> Option<u64>| {
        metric(out, name, kind, help, |out| {
            for watched in processes {
                if let Some(value) = of(watched) {
                    sample(out, name, watched, None, value);
                }
            }
        });
    };
    let stats = |of: fn(&heapwright_record::Stats) -> u64| {
        move |watched: &Watched| watched.seen.report.as_ref().map(|report| of(&report.stats))
    };
    one(
        &mut out,
        "heapwright_live_bytes",
        "gauge",
        "Bytes in blocks that the program holds.",
        &stats(|stats| stats.live_bytes),
    );
    one(
        &mut out,
        "heapwright_live_blocks",
        "gauge",
        "Blocks that the program holds.",
        &stats(|stats| stats.live_blocks),
    );
    one(
        &mut out,
        "heapwright_given_back_bytes_total",
        "counter",
        "Bytes given back to the kernel.",
        &stats(|stats| stats.purged_bytes),
    );
    one(
        &mut out,
        "heapwright_thread_caches",
        "gauge",
        "Threads that have a cache of their own.",
        &stats(|stats| stats.caches_live),
    );
    one(
        &mut out,
        "heapwright_page_faults_total",
        "counter",
        "Page faults of the process.",
        &|watched| Some(watched.seen.process.faults),
    );
    one(
        &mut out,
        "heapwright_peak_resident_bytes",
        "gauge",
        "The most that was resident.",
        &|watched| Some(watched.seen.process.peak),
    );
    one(
        &mut out,
        "heapwright_limit_bytes",
        "gauge",
        "The memory limit of the process's control groups.",
        &|watched| watched.seen.process.limit,
    );
    one(
        &mut out,
        "heapwright_age_milliseconds",
        "gauge",
        "Time since the process has said where its memory is.",
        &|watched| watched.seen.report.as_ref().map(|report| report.age.as_millis() as u64),
    );
    out
}

fn metric(out: &mut String, name: &str, kind: &str, help: &str, samples: impl FnOnce(&mut String)) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    samples(out);
}

fn sample(out: &mut String, name: &str, watched: &Watched, part: Option<&str>, value: u64) {
    let process = &watched.seen.process;
    let command = escaped(process.name());
    let part = part.map(|part| format!(",part=\"{part}\"")).unwrap_or_default();
    let _ = writeln!(out, "{name}{{pid=\"{}\",command=\"{command}\"{part}}} {value}", process.pid);
}

/// A label's value.
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
