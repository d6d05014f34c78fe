//! The numbers that follow from what a program printed.
//!
//! ```text
//!   heap at the end  = anonymous_end - stacks - own - what the empty program has
//!   heap at the peak = rss_peak - files - stacks - own - what the empty program has
//!                      (files = rss_end - anonymous_end: what is of files stays)
//! ```
//!
//! The empty program runs without a preload, so that what an allocator takes as it
//! starts counts as its own. What a thread has of an allocator as thread-local
//! variables counts too: it is not in `stacks` (programs/threads.h).

use std::collections::BTreeMap;

use crate::plan::{ALL_TIMED, SAMPLED, UNTIMED};

/// One page: a ratio to nothing means nothing.
const LEAST_BYTES: f64 = 4096.0;

const MIB: f64 = 1048576.0;
const MS: f64 = 1e6;
const US: f64 = 1e3;

/// What a program printed, and what the empty program has of anonymous memory.
pub(crate) struct Line<'a> {
    pub(crate) numbers: BTreeMap<&'a str, f64>,
    pub(crate) empty: f64,
}

impl Line<'_> {
    fn get(&self, name: &str) -> Option<f64> {
        self.numbers.get(name).copied()
    }

    fn a_second(&self, count: &str, ns: &str) -> Option<f64> {
        Some(self.get(count)? / self.get(ns).filter(|ns| *ns > 0.0)? * 1e9)
    }

    fn heap(&self, anonymous: f64, stacks: &str) -> Option<f64> {
        Some((anonymous - self.get(stacks)? - self.get("own")? - self.empty).max(LEAST_BYTES))
    }

    fn heap_end(&self) -> Option<f64> {
        self.heap(self.get("anonymous_end")?, "stacks")
    }

    fn heap_peak(&self) -> Option<f64> {
        let files = self.get("rss_end")? - self.get("anonymous_end")?;
        self.heap(self.rss()? - files, "stacks")
    }

    /// The kernel's mark lags behind a little: at the end it is exact.
    fn rss(&self) -> Option<f64> {
        Some(self.get("rss_peak")?.max(self.get("rss_end")?))
    }
}

/// A number, of a run.
#[derive(Debug)]
pub(crate) struct Metric {
    /// What an axis says.
    pub(crate) label: &'static str,
    /// CLOCK of the runs that it follows from.
    pub(crate) clock: &'static str,
    /// By what a value is divided to be shown.
    pub(crate) unit: f64,
    /// Its value.
    pub(crate) of: fn(&Line<'_>) -> Option<f64>,
}

macro_rules! metrics {
    ($($(#[$text:meta])* $name:ident = $label:literal, $clock:ident, $unit:expr, $of:expr;)*) => {
        $($(#[$text])* pub(crate) const $name: &Metric =

            &Metric { label: $label, clock: $clock, unit: $unit, of: $of };)*
    };
}

metrics! {
    OPERATIONS = "calls of the allocator a second", UNTIMED, 1.0,
        |line| line.a_second("operations", "wall_ns");
    OPERATIONS_CPU = "calls of the allocator a second of CPU time", UNTIMED, 1.0,
        |line| line.a_second("operations", "cpu_ns");
    REQUESTS = "requests a second", UNTIMED, 1.0, |line| line.a_second("requests", "wall_ns");
    /// Threads that lived and died.
    THREADS = "threads a second", UNTIMED, 1.0, |line| line.a_second("total", "wall_ns");
    HEAP_PEAK = "heap at its peak, stacks apart, MiB", UNTIMED, MIB, |line| line.heap_peak();
    /// When the work is done (in idle: all threads are there).
    HEAP_END = "heap at the end, stacks apart, MiB", UNTIMED, MIB, |line| line.heap_end();
    /// What the program held at most, as it asked for it.
    LIVE = "live at the peak, MiB", UNTIMED, MIB, |line| line.get("live_peak");
    ABOVE_LIVE = "heap above live, MiB", UNTIMED, MIB,
        |line| Some((line.heap_peak()? - line.get("live_peak")?).max(0.0));
    RSS = "resident at the peak, MiB", UNTIMED, MIB, |line| line.rss();
    /// What others ran meanwhile on the processor is in it.
    INSIDE = "time inside the allocator, all threads, waiting included, ms", ALL_TIMED, MS,
        |line| line.get("inside_ns");
    INSIDE_CPU = "processor time inside the allocator, all threads, ms", SAMPLED, MS,
        |line| line.get("inside_ns");
    SHARE = "the allocator's share of CPU time, %", SAMPLED, 1.0,
        |line| Some(line.get("inside_ns")? / line.get("cpu_ns")? * 100.0);
    /// From sending a request to its answer.
    P50 = "latency, p50, us", UNTIMED, US, |line| line.get("p50_ns");
    P99 = "latency, p99, us", UNTIMED, US, |line| line.get("p99_ns");
    P999 = "latency, p99.9, us", UNTIMED, US, |line| line.get("p999_ns");
    GROWN = "heap after the last thread above heap after 10, MiB", UNTIMED, MIB, |line| {
        let first = line.heap(line.get("anonymous_first")?, "stacks_first")?;
        Some((line.heap_end()? - first).max(0.0))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_is_what_is_left() {
        let numbers = BTreeMap::from([
            ("rss_peak", 900_000.0),
            ("rss_end", 700_000.0),
            ("anonymous_end", 600_000.0),
            ("stacks", 50_000.0),
            ("own", 20_000.0),
            ("live_peak", 300_000.0),
            ("anonymous_first", 350_000.0),
            ("stacks_first", 20_000.0),
        ]);
        let of = |metric: &Metric, empty| (metric.of)(&Line { numbers: numbers.clone(), empty });
        assert_eq!(of(HEAP_END, 30_000.0), Some(500_000.0));
        assert_eq!(of(HEAP_PEAK, 30_000.0), Some(700_000.0));
        assert_eq!(of(ABOVE_LIVE, 30_000.0), Some(400_000.0));
        // 350,000 - 20,000 - 20,000 - 30,000 after the first threads.
        assert_eq!(of(GROWN, 30_000.0), Some(220_000.0));
        // Nothing is below a page.
        assert_eq!((of(HEAP_END, 1e9), of(REQUESTS, 0.0)), (Some(4096.0), None));
    }
}
