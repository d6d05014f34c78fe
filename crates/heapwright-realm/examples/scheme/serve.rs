//! A long run: calls a program's `request` with 0, 1, 2, ... for some seconds. Meanwhile reports
//! the process's memory and the waiting times of requests.
//!
//! ```text
//!   request   | piece | pause | piece | pause | ...   a pause: the collector's work between pieces
//! ```
//!
//! Times are wall-clock times, so they include other work of the machine. The collector's pauses
//! are also reported in processor time, from the realm's statistics.

use std::time::{Duration, Instant};

use crate::Scheme;
use crate::read::Failure;

const LINES: u32 = 20;

/// A histogram of durations. A bucket is at most 1/64 of its durations wide.
struct Durations {
    counts: Vec<u64>,
    all: u64,
    most: u64,
}

const PARTS: u32 = 6;

impl Durations {
    fn new() -> Self {
        Self { counts: vec![0; 64 << PARTS], all: 0, most: 0 }
    }

    fn place(ns: u64) -> usize {
        let ns = ns.max(1 << PARTS);
        let doubling = ns.ilog2() - PARTS;
        ((doubling as usize) << PARTS) + (ns >> doubling) as usize
    }

    fn add(&mut self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.counts[Self::place(ns)] += 1;
        self.all += 1;
        self.most = self.most.max(ns);
    }

    /// Returns the milliseconds that `of_100000` of 100,000 durations do not exceed.
    fn below(&self, of_100000: u64) -> f64 {
        let mut left = (self.all * of_100000).div_ceil(100_000);
        for (place, &count) in self.counts.iter().enumerate() {
            if count >= left && count > 0 {
                let (doubling, part) = (place >> PARTS, place & ((1 << PARTS) - 1));
                let doubling = doubling.saturating_sub(usize::from(doubling > 0));
                return (((1 << PARTS) + part) as f64) * (1u64 << doubling) as f64 / 1e6;
            }
            left -= count;
        }
        self.most as f64 / 1e6
    }

    fn told(&self) -> String {
        format!(
            "p50 {:.3} p99 {:.3} p99.9 {:.3} p99.99 {:.3} most {:.3} ms",
            self.below(50_000),
            self.below(99_000),
            self.below(99_900),
            self.below(99_990),
            self.most as f64 / 1e6
        )
    }
}

/// Returns the resident KiB of the process; 0 if the system does not say.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

pub(crate) fn serve(scheme: &mut Scheme, time: Duration) -> Result<(), Failure> {
    let (mut requests, mut pauses) = (Durations::new(), Durations::new());
    let began = Instant::now();
    let mut lines = 0;
    let mut number = 0u64;
    while began.elapsed() < time {
        let before = Instant::now();
        scheme.run_form(&format!("(request {number})"), (1, 1), &mut |pause| pauses.add(pause))?;
        requests.add(before.elapsed());
        number += 1;
        if began.elapsed() * LINES >= time * (lines + 1) {
            lines += 1;
            let told = scheme.statistics();
            println!(
                "serve at={:.0} requests={number} resident_kib={} heap_kib={} live_kib={} collections={} minor={} compactions={} moved={}",
                began.elapsed().as_secs_f64(),
                resident(),
                (told.in_use_bytes + told.empty_bytes + told.large_bytes) >> 10,
                told.live_bytes >> 10,
                told.cycles,
                told.minor_cycles,
                told.compactions,
                told.moved_objects,
            );
        }
    }
    println!("requests {number}: {}", requests.told());
    println!("pauses   {}: {}", pauses.all, pauses.told());
    println!(
        "longest pause, processor time: {:.3} ms",
        scheme.statistics().pause_max_ns as f64 / 1e6
    );
    Ok(())
}
