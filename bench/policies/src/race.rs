//! Runs the stand-in under each variant, in turns.
//!
//! ```text
//!   for each round, number of caches, number of threads:   the variants, one after the
//!   other, beginning one further than in the round before
//! ```
//!
//! So what is compared (variants of one row of the plan) ran within the same seconds.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use policies::with;

use crate::options::Options;
use crate::stand_in::Run;

/// Where a number belongs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place {
    pub(crate) caches: usize,
    pub(crate) threads: usize,
    /// Which of the options' variants.
    pub(crate) variant: usize,
}

/// The nanoseconds of each round.
pub(crate) type Numbers = BTreeMap<Place, Vec<f64>>;

pub(crate) fn run(options: &Options) -> Result<Numbers, String> {
    let mut kept = String::new();
    let mut numbers = Numbers::new();
    let count = options.variants.len();
    for round in 0..options.rounds {
        eprintln!("policies: round {} of {}", round + 1, options.rounds);
        for &caches in &options.caches {
            for &threads in &options.threads {
                for turn in 0..count {
                    let place = Place { caches, threads, variant: (turn + round) % count };
                    let name = options.variants[place.variant].name;
                    let run = Run { caches, threads, operations: options.operations };
                    let ns = with(name, run).ok_or("no such policy").map_err(str::to_owned)??;
                    numbers.entry(place).or_default().push(ns);
                    let _ = writeln!(kept, "{caches}\t{threads}\t{name}\t{}\t{ns}", round + 1);
                }
            }
        }
    }
    if let Some(path) = &options.keep {
        std::fs::write(path, kept).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    Ok(numbers)
}
