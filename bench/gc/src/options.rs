//! The command line.

use std::path::PathBuf;

use ::figures::options::number;
use clap::Parser;
use clap::builder::ArgPredicate::IsPresent;

/// Measures the collected heap, against bdwgc and against itself; ci/gc.sh calls it
#[derive(Parser, Debug)]
#[command(name = "gc", args_override_self = true)]
pub(crate) struct Options {
    /// The folder of the loads, built by ci/gc.sh
    #[arg(long)]
    pub(crate) programs: PathBuf,
    /// Where tables.md and runs.txt go
    #[arg(long)]
    pub(crate) out: PathBuf,
    /// Only these loads, with commas
    #[arg(long, value_delimiter = ',', value_parser = load)]
    only: Vec<String>,
    /// Each variant runs so often; with fewer than 6 a time has no verdict
    #[arg(long, default_value = "7", default_value_if("quick", IsPresent, "2"), value_parser = number(1..=1000_usize))]
    pub(crate) rounds: usize,
    /// The longest a run may take
    #[arg(long, default_value = "600", value_parser = number(1..=86400_u64))]
    pub(crate) seconds: u64,
    /// A peer that could not be had: bdwgc
    #[arg(long)]
    without: Vec<String>,
    /// Tiny sizes, 2 rounds: only that all runs, and that checksums agree
    #[arg(long)]
    pub(crate) quick: bool,
}

fn load(name: &str) -> Result<String, String> {
    let names = crate::LOADS.map(|(name, _)| name);
    match names.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(format!("there is no load '{name}': {}", names.join(", "))),
    }
}

impl Options {
    /// Whether a load is to run.
    pub(crate) fn takes(&self, load: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == load)
    }

    /// Whether a peer is there.
    pub(crate) fn has(&self, peer: &str) -> bool {
        !self.without.iter().any(|name| name == peer)
    }

    /// A load's settings: in words, as they are meant and as `--quick` has them.
    pub(crate) fn sizes(&self, full: &str, quick: &str) -> Vec<String> {
        let words = if self.quick { quick } else { full };
        words.split_whitespace().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &str) -> Result<Options, String> {
        let words = format!("gc --programs p --out o {words}");
        Options::try_parse_from(words.split_whitespace()).map_err(|error| error.to_string())
    }

    #[test]
    fn words_are_read() {
        let options = of("--only pauses --rounds 9 --without bdwgc").unwrap();
        assert_eq!((options.rounds, options.quick), (9, false));
        assert!(options.takes("pauses") && !options.takes("splay"));
        assert!(!options.has("bdwgc"));
        assert_eq!(options.sizes("a b", "c"), ["a", "b"]);
    }

    #[test]
    fn quick_has_two_rounds_unless_more_are_asked_for() {
        assert_eq!(of("--quick").unwrap().rounds, 2);
        assert_eq!(of("--quick --rounds 3").unwrap().rounds, 3);
    }

    #[test]
    fn mistakes_are_named() {
        assert!(of("--only boot").unwrap_err().contains("no load 'boot'"));
        assert!(of("--rounds many").unwrap_err().contains("'many'"));
    }
}
