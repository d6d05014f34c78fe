//! The numbers that follow from a program's line.
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

/// A number, of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    /// Calls of the allocator in a second.
    Operations,
    /// Calls of the allocator in a second of processor time.
    OperationsCpu,
    /// Requests that were answered in a second.
    Requests,
    /// Threads that lived and died in a second.
    ThreadsASecond,
    /// Bytes of the heap at their most.
    HeapPeak,
    /// Bytes of the heap when the work is done (in idle: all threads are there).
    HeapEnd,
    /// Bytes that the program held at most, as it asked for them.
    Live,
    /// Bytes that the heap had above these.
    AboveLive,
    /// Resident bytes of the process at their most.
    Rss,
    /// Nanoseconds inside the allocator, over all threads: waiting is in it, and what
    /// others ran meanwhile on the processor.
    Inside,
    /// Nanoseconds of processor time inside the allocator, over all threads.
    InsideCpu,
    /// Of processor time, what is spent inside the allocator, in percent.
    Share,
    /// Nanoseconds from sending a request to its answer: half of them take no longer.
    P50,
    /// The same, 99 of 100.
    P99,
    /// The same, 999 of 1,000.
    P999,
    /// Bytes of the heap at the end beyond those after the first 10 threads.
    Grown,
}

/// One page: a ratio to nothing means nothing.
const LEAST_BYTES: f64 = 4096.0;

impl Metric {
    /// What an axis says.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Operations => "calls of the allocator a second",
            Self::OperationsCpu => "calls of the allocator a second of CPU time",
            Self::Requests => "requests a second",
            Self::ThreadsASecond => "threads a second",
            Self::HeapPeak => "heap at its peak, stacks apart, MiB",
            Self::HeapEnd => "heap at the end, stacks apart, MiB",
            Self::Live => "live at the peak, MiB",
            Self::AboveLive => "heap above live, MiB",
            Self::Rss => "resident at the peak, MiB",
            Self::Inside => "time inside the allocator, all threads, waiting included, ms",
            Self::InsideCpu => "processor time inside the allocator, all threads, ms",
            Self::Share => "the allocator's share of CPU time, %",
            Self::P50 => "latency, p50, us",
            Self::P99 => "latency, p99, us",
            Self::P999 => "latency, p99.9, us",
            Self::Grown => "heap after the last thread above heap after 10, MiB",
        }
    }

    /// CLOCK of the runs that it follows from.
    pub(crate) fn clock(self) -> &'static str {
        match self {
            Self::Inside => ALL_TIMED,
            Self::InsideCpu | Self::Share => SAMPLED,
            _ => UNTIMED,
        }
    }

    /// By what a value is divided to be shown.
    pub(crate) fn unit(self) -> f64 {
        match self {
            Self::HeapPeak
            | Self::HeapEnd
            | Self::Live
            | Self::AboveLive
            | Self::Grown
            | Self::Rss => 1048576.0,
            Self::Inside | Self::InsideCpu => 1e6,
            Self::P50 | Self::P99 | Self::P999 => 1e3,
            _ => 1.0,
        }
    }

    /// Its value; `empty` is what the empty program has of anonymous memory.
    pub(crate) fn of(self, line: &BTreeMap<&str, f64>, empty: f64) -> Option<f64> {
        let get = |name: &str| line.get(name).copied();
        let a_second = |count: f64, ns: f64| if ns > 0.0 { Some(count / ns * 1e9) } else { None };
        let heap = |anonymous: f64, stacks: f64| {
            Some((anonymous - stacks - get("own")? - empty).max(LEAST_BYTES))
        };
        match self {
            Self::Operations => a_second(get("operations")?, get("wall_ns")?),
            Self::OperationsCpu => a_second(get("operations")?, get("cpu_ns")?),
            Self::Requests => a_second(get("requests")?, get("wall_ns")?),
            Self::ThreadsASecond => a_second(get("total")?, get("wall_ns")?),
            Self::HeapEnd => heap(get("anonymous_end")?, get("stacks")?),
            Self::HeapPeak => {
                let files = get("rss_end")? - get("anonymous_end")?;
                heap(Self::Rss.of(line, empty)? - files, get("stacks")?)
            }
            // The kernel's mark lags behind a little: at the end it is exact.
            Self::Rss => Some(get("rss_peak")?.max(get("rss_end")?)),
            Self::Live => get("live_peak"),
            Self::AboveLive => Some((Self::HeapPeak.of(line, empty)? - get("live_peak")?).max(0.0)),
            Self::Inside | Self::InsideCpu => get("inside_ns"),
            Self::Share => Some(get("inside_ns")? / get("cpu_ns")? * 100.0),
            Self::P50 => get("p50_ns"),
            Self::P99 => get("p99_ns"),
            Self::P999 => get("p999_ns"),
            Self::Grown => {
                let first = heap(get("anonymous_first")?, get("stacks_first")?)?;
                Some((Self::HeapEnd.of(line, empty)? - first).max(0.0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_is_what_is_left() {
        let line = BTreeMap::from([
            ("rss_peak", 900_000.0),
            ("rss_end", 700_000.0),
            ("anonymous_end", 600_000.0),
            ("stacks", 50_000.0),
            ("own", 20_000.0),
            ("live_peak", 300_000.0),
            ("anonymous_first", 350_000.0),
            ("stacks_first", 20_000.0),
        ]);
        assert_eq!(Metric::HeapEnd.of(&line, 30_000.0), Some(500_000.0));
        assert_eq!(Metric::HeapPeak.of(&line, 30_000.0), Some(700_000.0));
        assert_eq!(Metric::AboveLive.of(&line, 30_000.0), Some(400_000.0));
        // 350,000 - 20,000 - 20,000 - 30,000 after the first threads.
        assert_eq!(Metric::Grown.of(&line, 30_000.0), Some(220_000.0));
        // Nothing is below a page.
        assert_eq!(Metric::HeapEnd.of(&line, 1e9), Some(4096.0));
        assert_eq!(Metric::Requests.of(&line, 0.0), None);
    }

    #[test]
    fn speeds_are_by_the_second() {
        let line = BTreeMap::from([
            ("wall_ns", 2e9),
            ("cpu_ns", 4e9),
            ("operations", 100.0),
            ("requests", 50.0),
            ("inside_ns", 1e9),
        ]);
        assert_eq!(Metric::Operations.of(&line, 0.0), Some(50.0));
        assert_eq!(Metric::OperationsCpu.of(&line, 0.0), Some(25.0));
        assert_eq!(Metric::Requests.of(&line, 0.0), Some(25.0));
        assert_eq!(Metric::Share.of(&line, 0.0), Some(25.0));
    }
}
