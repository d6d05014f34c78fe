//! What the kernel says of this process: the time it took, and its memory at its greatest.
//!
//! From `/proc`, which needs no unsafe call. The peak begins anew when a program begins, so
//! the size of the parent is not in it. CPU time comes in hundredths of a second.

use std::time::{Duration, Instant};

/// Hundredths, in milliseconds: the kernel's unit towards programs on every machine.
const TICK_MS: u64 = 10;

/// Times of a run.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
    /// From start to stop.
    pub(crate) wall: Duration,
    /// CPU time of all threads.
    pub(crate) cpu_ms: u64,
    /// The most that was resident.
    pub(crate) peak_kib: u64,
    /// The most that was, before the run began.
    pub(crate) base_kib: u64,
}

impl Clock {
    /// Begins.
    pub(crate) fn start() -> Self {
        let base_kib = peak_kib();
        Self { start: Instant::now(), wall: Duration::ZERO, cpu_ms: 0, peak_kib: 0, base_kib }
    }

    /// Ends.
    pub(crate) fn stop(self) -> Self {
        Self { wall: self.start.elapsed(), cpu_ms: cpu_ms(), peak_kib: peak_kib(), ..self }
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"))
}

fn peak_kib() -> u64 {
    let text = read("/proc/self/status");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    number.expect("the kernel says how much was resident")
}

fn cpu_ms() -> u64 {
    let text = read("/proc/self/stat");
    // Behind the name, which may have spaces: fields 14 and 15 of all are those of user and system.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks * TICK_MS
}
