//! The command line.

use clap::builder::ArgPredicate::IsPresent;
use clap::{Args, Parser, Subcommand};
use figures::options::number;

use crate::loads::{Load, Sizes};
use crate::peers;
use crate::run::Job;

/// The safe door of heapwright's collected heap beside other ways to share values in Rust; ci/gc.sh
/// realm calls it
#[derive(Parser, Debug)]
#[command(name = "realm", args_conflicts_with_subcommands = true, args_override_self = true)]
pub(crate) struct Words {
    #[command(flatten)]
    pub(crate) race: Race,
    #[command(subcommand)]
    pub(crate) run: Option<Run>,
}

/// All peers in turns.
#[derive(Args, PartialEq, Debug)]
pub(crate) struct Race {
    /// Each peer runs so often
    #[arg(long, default_value = "5", default_value_if("quick", IsPresent, "2"), value_parser = number(1..=999_usize))]
    pub(crate) rounds: usize,
    /// Only these loads, with commas
    #[arg(long = "only", value_delimiter = ',', default_value = "binary-trees,gcbench,splay", value_parser = load)]
    pub(crate) loads: Vec<Load>,
    /// Tiny sizes, 2 rounds: only that all runs, and that checksums agree
    #[arg(long)]
    pub(crate) quick: bool,
    /// Ends with 1 if something that is asked is missed, too
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Run {
    /// One load with one peer
    Run {
        /// binary-trees, gcbench or splay
        #[arg(value_parser = load)]
        load: Load,
        /// heapwright, gc-arena, gc, dumpster, rc or box
        #[arg(value_parser = peers::NAMES)]
        peer: String,
        /// NAME=VALUE: depth=D (binary-trees, gcbench), size=N and rounds=N (splay) and, for
        /// heapwright, most=KIB, the greatest size of the heap
        settings: Vec<String>,
    },
}

fn load(name: &str) -> Result<Load, String> {
    Load::named(name).ok_or_else(|| {
        format!("there is no load '{name}': {}", Load::ALL.map(Load::name).join(", "))
    })
}

impl Run {
    /// The run that is asked for.
    pub(crate) fn job(self) -> Result<Job, String> {
        let Self::Run { load, peer, settings } = self;
        let mut job = Job { load, peer, sizes: load.sizes(false), most_kib: 0 };
        let Job { sizes: Sizes { depth, size, rounds }, most_kib, .. } = &mut job;
        for word in settings {
            match word.split_once('=') {
                Some(("depth", text)) => *depth = number(0..=28)(text)?,
                Some(("size", text)) => *size = number(0..=10_000_000)(text)?,
                Some(("rounds", text)) => *rounds = number(0..=10_000_000)(text)?,
                Some(("most", text)) => *most_kib = number(0..=usize::MAX >> 10)(text)?,
                _ => return Err(format!("'{word}' is no setting of a run")),
            }
        }
        Ok(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &str) -> Result<Words, String> {
        let words = ["realm"].into_iter().chain(words.split_whitespace());
        Words::try_parse_from(words).map_err(|error| error.to_string())
    }

    #[test]
    fn words_are_read() {
        let race = |rounds, loads: &[Load], quick| Race {
            rounds,
            loads: loads.to_vec(),
            quick,
            strict: false,
        };
        assert_eq!(of("").unwrap().race, race(5, &Load::ALL, false));
        assert_eq!(of("--quick").unwrap().race, race(2, &Load::ALL, true));
        assert_eq!(of("--rounds 9 --only splay").unwrap().race, race(9, &[Load::Splay], false));
    }

    #[test]
    fn what_a_job_asks_for_is_that_job() {
        let sizes = Sizes { depth: 3, size: 4, rounds: 5 };
        let job = Job { load: Load::GcBench, peer: "rc".to_owned(), sizes, most_kib: 6 };
        let run = of(&job.words().join(" ")).unwrap().run;
        assert_eq!(run.unwrap().job(), Ok(job));
    }

    #[test]
    fn mistakes_are_named() {
        assert!(of("--only splat").unwrap_err().contains("no load 'splat'"));
        assert!(of("--rounds 0").unwrap_err().contains("'0'"));
        assert!(of("run splay arc").unwrap_err().contains("'arc'"));
        let run = of("run splay rc deep=3").unwrap().run;
        assert!(run.unwrap().job().unwrap_err().contains("'deep=3'"));
    }
}
