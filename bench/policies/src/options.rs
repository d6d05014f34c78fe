//! The command line.
//!
//! A word that is not understood ends it before anything has run: a race takes long.

use std::path::PathBuf;

use clap::Parser;
use figures::options::{Numbers, number, numbers};
use policies::simulator::study::Wanted;
use policies::{ALL, CHOSEN, Variant, find};

/// Ways to find a shared cache, raced and simulated; ci/policies.sh calls it
#[derive(Parser, Debug)]
#[command(name = "policies")]
pub(crate) enum Asked {
    /// Prints the names, what they mean, and what the review measured
    List,
    /// Runs each of them in turns, and prints tables in Markdown
    Race(Options),
    /// Simulates them on machines with many CPUs, and prints tables in Markdown
    Simulate(Simulation),
    /// Measures the costs on this machine and prints the file
    Calibrate {
        /// Writes it there
        #[arg(long)]
        output: Option<PathBuf>,
    },
    /// Measures the costs on one CPU, for `calibrate`
    #[command(hide = true)]
    CalibrateOneCpu,
}

/// So many CPUs, caches or threads are simulated in the memory that there is.
const MOST: usize = 4096;

/// The options of a simulation.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Simulation {
    /// One seed, short runs, no ranges: to see that it works
    #[arg(long)]
    quick: bool,
    /// The costs [default: those that were committed]
    #[arg(long)]
    pub(crate) calibration: Option<PathBuf>,
    /// CPUs of the machine beside the review's [default: 72]
    #[arg(long, value_parser = number(1..=MOST))]
    cpus: Option<usize>,
    /// Its caches [default: 32]
    #[arg(long, value_parser = number(1..=MOST))]
    caches: Option<usize>,
    /// Two numbers of threads [default: 40,80]
    #[arg(long, value_parser = two)]
    threads: Option<[usize; 2]>,
    /// Simulated milliseconds of a run [default: 20]
    #[arg(long, value_parser = number(1..=1_000_000_u64))]
    ms: Option<u64>,
    /// How many [default: 5]
    #[arg(long, value_parser = number(1..=1000_u64))]
    seeds: Option<u64>,
}

impl Simulation {
    /// The settings of the simulation: a default stands for each option that was not given.
    pub(crate) fn wanted(&self) -> Wanted {
        let usual = if self.quick { Wanted::QUICK } else { Wanted::FULL };
        Wanted {
            cpus: self.cpus.unwrap_or(usual.cpus),
            caches: self.caches.unwrap_or(usual.caches),
            threads: self.threads.unwrap_or(usual.threads),
            ms: self.ms.unwrap_or(usual.ms),
            seeds: self.seeds.unwrap_or(usual.seeds),
            ..usual
        }
    }
}

fn two(value: &str) -> Result<[usize; 2], String> {
    let both = value.split_once(',');
    let (few, many) = both.ok_or_else(|| format!("two numbers: 40,80, not '{value}'"))?;
    Ok([number(1..=MOST)(few)?, number(1..=MOST)(many)?])
}

/// What is asked.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// How many caches, with commas
    #[arg(long, default_value = "2,8,32", value_parser = numbers(1..=4096_usize))]
    pub(crate) caches: Numbers<usize>,
    /// How many threads, with commas
    #[arg(long, default_value = "40,80", value_parser = numbers(1..=4096_usize))]
    pub(crate) threads: Numbers<usize>,
    /// Of each thread
    #[arg(long, default_value = "20000", value_parser = number(1..=1_000_000_000_usize))]
    pub(crate) operations: usize,
    /// Which; the library's own is always run
    #[arg(long, default_value = "all", value_parser = chosen)]
    pub(crate) variants: Variants,
    /// How often each
    #[arg(long, default_value = "9", value_parser = number(1..=1000_usize))]
    pub(crate) rounds: usize,
    /// Writes every single number to this file, separated by tabs
    #[arg(long)]
    pub(crate) keep: Option<PathBuf>,
}

/// Some of them, each once.
#[derive(Clone, Debug)]
pub(crate) struct Variants(pub(crate) Vec<&'static Variant>);

/// The variants of these names, the library's own first among them if it is not there.
fn chosen(names: &str) -> Result<Variants, String> {
    if names == "all" {
        return Ok(Variants(ALL.iter().collect()));
    }
    let mut variants: Vec<&'static Variant> = Vec::new();
    for name in names.split(',') {
        let variant = find(name)
            .ok_or_else(|| format!("'{name}' is no policy; `policies list` shows the names"))?;
        if !variants.contains(&variant) {
            variants.push(variant);
        }
    }
    if let Some(own) = find(CHOSEN).filter(|own| !variants.contains(own)) {
        variants.insert(0, own);
    }
    Ok(Variants(variants))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let words = ["policies", "race"].into_iter().chain(line.split_whitespace());
        match Asked::try_parse_from(words).map_err(|error| error.to_string())? {
            Asked::Race(options) => Ok(options),
            other => Err(format!("{other:?} is no race")),
        }
    }

    #[test]
    fn the_librarys_own_is_always_there_and_none_twice() {
        let options = parse("--variants before,stay,before").unwrap();
        let names: Vec<_> = options.variants.0.iter().map(|variant| variant.name).collect();
        assert_eq!(names, [CHOSEN, "before", "stay"]);
        assert_eq!(parse("").unwrap().variants.0.len(), ALL.len());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = parse("--variants best").unwrap_err();
        assert!(wrong.contains("'best' is no policy; `policies list` shows the names"), "{wrong}");
        assert!(parse("--caches 2,0").unwrap_err().contains("'0' is no number from 1 to 4096"));
    }
}
