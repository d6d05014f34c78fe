//! One run: one load with one peer, in a process of its own. What it prints is one line, which the
//! race reads again:
//!
//! ```text
//!   load=splay peer=gc checksum=123 wall_ms=12.345 cpu_ms=10 peak_kib=4096 base_kib=2048
//! ```
//!
//! heapwright adds what its collector did: `share=0.31 cycles=12 minor_cycles=10`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::loads::{Load, Sizes};
use crate::peers::{self, Done};

/// What is run.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Job {
    pub(crate) load: Load,
    pub(crate) peer: String,
    pub(crate) sizes: Sizes,
    /// KiB that heapwright's heap may have; 0: any number.
    pub(crate) most_kib: usize,
}

impl Job {
    /// The words that ask for it.
    pub(crate) fn words(&self) -> Vec<String> {
        let Sizes { depth, size, rounds } = self.sizes;
        let mut words = vec!["run".to_owned(), self.load.name().to_owned(), self.peer.clone()];
        words.extend([
            format!("depth={depth}"),
            format!("size={size}"),
            format!("rounds={rounds}"),
            format!("most={}", self.most_kib),
        ]);
        words
    }
}

/// Runs it here, and says what it took.
pub(crate) fn here(job: &Job) -> String {
    let done = peers::run(&job.peer, job.load, job.sizes, job.most_kib << 10);
    let Done { checksum, clock, collector } = done.expect("a peer that there is");
    let wall = clock.wall.as_secs_f64() * 1e3;
    let mut line = format!(
        "load={} peer={} checksum={checksum} wall_ms={wall:.3} cpu_ms={} peak_kib={} base_kib={}",
        job.load.name(),
        job.peer,
        clock.cpu_ms,
        clock.peak_kib,
        clock.base_kib
    );
    if let Some(collector) = collector {
        let share = collector.ns as f64 / clock.wall.as_nanos() as f64;
        let (cycles, minor) = (collector.cycles, collector.minor_cycles);
        let more = write!(line, " share={share:.3} cycles={cycles} minor_cycles={minor}");
        more.expect("strings take what is written");
    }
    line
}

/// What a run printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    /// Of all peers the same.
    pub(crate) checksum: String,
    numbers: BTreeMap<String, f64>,
}

impl Line {
    /// Reads it.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let mut line = Self::default();
        for (name, value) in text.split_whitespace().filter_map(|word| word.split_once('=')) {
            match (name, value.parse()) {
                ("checksum", _) => line.checksum = value.to_owned(),
                (_, Ok(number)) => _ = line.numbers.insert(name.to_owned(), number),
                _ => {}
            }
        }
        let whole = ["wall_ms", "cpu_ms", "peak_kib", "base_kib"];
        let has_all = whole.iter().all(|&name| line.numbers.contains_key(name));
        (has_all && !line.checksum.is_empty()).then_some(line)
    }

    /// A number of it.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.numbers.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_computes_the_same_and_its_line_is_read() {
        for load in Load::ALL {
            let sizes = Sizes { depth: 6, size: 50, rounds: 3 };
            let checksums = peers::NAMES.map(|peer| {
                let peer = peer.to_owned();
                let line = Line::of(&here(&Job { load, peer, sizes, most_kib: 0 })).unwrap();
                assert!(line.number("peak_kib").unwrap() > 100.0);
                line.checksum
            });
            assert!(checksums.iter().all(|sum| *sum == checksums[0]), "{load:?}: {checksums:?}");
        }
    }

    #[test]
    fn half_a_line_is_none() {
        assert!(Line::of("").is_none());
        assert!(Line::of("load=splay wall_ms=1 cpu_ms=1 peak_kib=1 base_kib=1").is_none());
        let line =
            Line::of("checksum=18446744073709551615 wall_ms=1.5 cpu_ms=1 peak_kib=1 base_kib=1");
        assert_eq!(line.unwrap().checksum, u64::MAX.to_string());
    }
}
