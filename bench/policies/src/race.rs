//! Runs the program under each variant, in turns.
//!
//! ```text
//!   for each round, number of caches, number of threads:   the variants, one after the
//!   other, beginning one further than in the round before
//! ```
//!
//! So what is compared (variants of one row of the plan) ran within the same seconds.
//! The child is `timeout LIMIT env LD_PRELOAD=... PROGRAM`: neither we nor `timeout` run
//! under the preload. A run that fails, that cannot be preloaded or that says something
//! of heapwright's (an unknown option, an unknown policy, a finding) ends the race: its
//! number would not mean what its row says.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Command;
use std::time::Instant;

use crate::options::{Options, Program};

/// Where a number belongs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place {
    pub(crate) caches: usize,
    /// 0: the program says itself how many.
    pub(crate) threads: usize,
    /// Which of the options' variants.
    pub(crate) variant: usize,
}

/// The seconds of each round.
pub(crate) type Numbers = BTreeMap<Place, Vec<f64>>;

pub(crate) fn run(options: &Options) -> Result<Numbers, String> {
    let mut keep = match &options.keep {
        None => None,
        Some(path) => {
            let file = std::fs::File::create(path);
            Some(file.map_err(|e| format!("cannot write {}: {e}", path.display()))?)
        }
    };
    let threads = match &options.program {
        Program::Ttest1(ttest1) => ttest1.threads.clone(),
        Program::Any { .. } => vec![0],
    };
    let mut numbers = Numbers::new();
    let count = options.variants.len();
    for round in 0..options.rounds {
        eprintln!("policies: round {} of {}", round + 1, options.rounds);
        for &caches in &options.caches {
            for &threads in &threads {
                for turn in 0..count {
                    let place = Place { caches, threads, variant: (turn + round) % count };
                    let seconds = one(options, place)?;
                    numbers.entry(place).or_default().push(seconds);
                    if let Some(file) = &mut keep {
                        let name = options.variants[place.variant].name;
                        writeln!(file, "{caches}\t{threads}\t{name}\t{}\t{seconds}", round + 1)
                            .map_err(|e| format!("cannot write the numbers: {e}"))?;
                    }
                }
            }
        }
    }
    Ok(numbers)
}

/// One run: its seconds.
fn one(options: &Options, place: Place) -> Result<f64, String> {
    let name = options.variants[place.variant].name;
    let (words, figure) = match &options.program {
        Program::Ttest1(ttest1) => {
            let total = ttest1.total.unwrap_or(2 * place.threads);
            let words = vec![
                ttest1.path.to_string_lossy().into_owned(),
                ttest1.clock.clone(),
                total.to_string(),
                place.threads.to_string(),
                ttest1.actions.to_string(),
                ttest1.limit.to_string(),
            ];
            (words, Some("inside_ns"))
        }
        Program::Any { words, figure } => (words.clone(), figure.as_deref()),
    };
    let start = Instant::now();
    let output = Command::new("timeout")
        .args(["-k", "5", &options.seconds.to_string(), "env"])
        .arg(format!("LD_PRELOAD={}", options.library.display()))
        .arg(format!("HEAPWRIGHT=cache=shared:{}", place.caches))
        .arg(format!("HEAPWRIGHT_POLICY={name}"))
        .args(&words)
        .output()
        .map_err(|e| format!("timeout (coreutils) does not run: {e}"))?;
    let wall = start.elapsed().as_secs_f64();
    let said = String::from_utf8_lossy(&output.stderr);
    let failed = |what: String| Err(format!("{name}, {} caches: {what}", place.caches));
    if output.status.code() == Some(124) {
        return failed(format!("{} took more than {} s", words[0], options.seconds));
    }
    if !output.status.success() {
        return failed(format!("{} ended with {}: {}", words[0], output.status, said.trim()));
    }
    if let Some(line) = said
        .lines()
        .find(|line| line.contains("heapwright:") || line.contains("cannot be preloaded"))
    {
        return failed(line.to_owned());
    }
    match figure {
        None => Ok(wall),
        Some(figure) => {
            let printed = String::from_utf8_lossy(&output.stdout);
            match number_of(&printed, figure) {
                Some(number) if figure.ends_with("_ns") => Ok(number / 1e9),
                Some(number) => Ok(number),
                None => failed(format!("{} printed no {figure}=NUMBER above 0", words[0])),
            }
        }
    }
}

/// What stands behind `NAME=` in a program's output; nothing if it is no number above 0,
/// which no ratio can be made of.
fn number_of(printed: &str, name: &str) -> Option<f64> {
    printed
        .split_whitespace()
        .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        .and_then(|number| number.parse().ok())
        .filter(|number: &f64| number.is_finite() && *number > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_their_whole_name() {
        let line =
            "result program=ttest1 every=1 not_inside_ns=7 inside_ns=253993991 clock_ns=10.2\n";
        assert_eq!(number_of(line, "inside_ns"), Some(253_993_991.0));
        assert_eq!(number_of(line, "clock_ns"), Some(10.2));
        assert_eq!(number_of(line, "ns"), None);
        assert_eq!(number_of("inside_ns=0", "inside_ns"), None);
        assert_eq!(number_of("inside_ns=nan", "inside_ns"), None);
    }
}
