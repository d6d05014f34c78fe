//! Runs the stand-in under each variant, in turns: for each number of caches and of threads the
//! rounds, each of which runs every variant once.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use figures::record::Record;
use figures::turns::Turns;
use policies::with;

use crate::options::Options;
use crate::stand_in::Run;

/// The nanoseconds of an operation, in a record.
pub(crate) const NS: &str = "ns";

/// What came of it, by caches and threads.
pub(crate) type Numbers = BTreeMap<(usize, usize), Turns>;

pub(crate) fn run(options: &Options) -> Result<Numbers, String> {
    let mut kept = String::new();
    let mut numbers = Numbers::new();
    for &caches in &options.caches.0 {
        for &threads in &options.threads.0 {
            eprintln!("policies: {caches} caches, {threads} threads");
            let names: Vec<&str> = options.variants.0.iter().map(|variant| variant.name).collect();
            let turns = Turns::take(names.iter().copied(), options.rounds, |_, round, at| {
                let run = Run { caches, threads, operations: options.operations };
                let ns = with(names[at], run).ok_or("there is no such policy")??;
                let _ = writeln!(kept, "{caches}\t{threads}\t{}\t{}\t{ns}", names[at], round + 1);
                Ok(Record::of(&[(NS, ns)]))
            });
            if let Some((name, why)) = turns.failures().next() {
                return Err(format!("{name}, {caches} caches, {threads} threads: {why}"));
            }
            numbers.insert((caches, threads), turns);
        }
    }
    if let Some(path) = &options.keep {
        std::fs::write(path, kept).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Variants;
    use figures::options::Numbers as Several;

    #[test]
    fn a_small_race_has_a_row_for_each_variant() {
        let options = Options {
            caches: Several(vec![2, 8]),
            threads: Several(vec![8, 40]),
            operations: 200,
            variants: Variants(policies::ALL.iter().collect()),
            rounds: 1,
            keep: None,
        };
        let text = crate::table::report(&options, &run(&options).unwrap());
        for variant in policies::ALL {
            let row = format!("| {} |", variant.name);
            assert_eq!(text.lines().filter(|line| line.starts_with(&row)).count(), 2, "{text}");
        }
    }
}
