//! One run: one load with one peer, in a process of its own. What it prints is one line, which the
//! race reads again:
//!
//! ```text
//!   result load=splay peer=gc checksum=123 wall_ms=12.345 cpu_ms=10 peak_kib=4096 base_kib=2048
//! ```
//!
//! heapwright adds what its collector did: `share=0.31 cycles=12 minor_cycles=10`.

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
        "result load={} peer={} checksum={checksum} wall_ms={wall:.3} cpu_ms={} peak_kib={} base_kib={}",
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

/// The numbers that every line has.
pub(crate) const NEEDED: [&str; 5] = ["wall_ms", "cpu_ms", "peak_kib", "base_kib", "checksum"];

#[cfg(test)]
mod tests {
    use super::*;
    use figures::record::Record;

    #[test]
    fn every_peer_computes_the_same_and_its_line_is_read() {
        for load in Load::ALL {
            let sizes = Sizes { depth: 6, size: 50, rounds: 3 };
            let checksums = peers::NAMES.map(|peer| {
                let peer = peer.to_owned();
                let said = here(&Job { load, peer, sizes, most_kib: 0 });
                let record = Record::result(&said, NEEDED).unwrap();
                assert!(record.number("peak_kib").unwrap() > 100.0);
                record.word("checksum").unwrap().to_owned()
            });
            assert!(checksums.iter().all(|sum| *sum == checksums[0]), "{load:?}: {checksums:?}");
        }
    }
}
