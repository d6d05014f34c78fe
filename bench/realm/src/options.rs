//! The command line.

use figures::options::number;

use crate::loads::{Load, Sizes};
use crate::peers;
use crate::run::Job;

/// What `--help` prints.
pub(crate) const USAGE: &str = "\
usage: realm [options]
       realm run LOAD PEER [NAME=VALUE...]

  --rounds N     each peer runs so often (default 5)
  --only LOADS   binary-trees, gcbench, splay; with commas
  --quick        tiny sizes, 2 rounds: only that all runs, and that checksums agree
  --strict       ends with 1 if something that is asked is missed, too

A run is one load with one peer: heapwright, gc-arena, gc, dumpster, rc or box. It takes
depth=D (binary-trees, gcbench), size=N and rounds=N (splay) and, for heapwright, most=KIB,
the greatest size of the heap.
";

/// What is to be done.
#[derive(PartialEq, Debug)]
pub(crate) enum Words {
    Help,
    Run(Job),
    Race(Race),
}

/// All peers in turns.
#[derive(PartialEq, Debug)]
pub(crate) struct Race {
    pub(crate) rounds: usize,
    pub(crate) loads: Vec<Load>,
    pub(crate) quick: bool,
    pub(crate) strict: bool,
}

fn load(name: &str) -> Result<Load, String> {
    Load::named(name).ok_or_else(|| {
        format!("there is no load '{name}': {}", Load::ALL.map(Load::name).join(", "))
    })
}

/// Reads the words.
pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Words, String> {
    let mut race = Race { rounds: 0, loads: Vec::new(), quick: false, strict: false };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs something after it"));
        match word.as_str() {
            "--help" | "-h" => return Ok(Words::Help),
            "--rounds" => race.rounds = number(&value()?, "--rounds", 1..=999)?,
            "--only" => race.loads = value()?.split(',').map(load).collect::<Result<_, _>>()?,
            "--quick" => race.quick = true,
            "--strict" => race.strict = true,
            "run" => return run(words).map(Words::Run),
            _ => return Err(format!("'{word}' is not understood; --help lists the options")),
        }
    }
    if race.rounds == 0 {
        race.rounds = if race.quick { 2 } else { 5 };
    }
    if race.loads.is_empty() {
        race.loads = Load::ALL.into();
    }
    Ok(Words::Race(race))
}

fn run(mut words: impl Iterator<Item = String>) -> Result<Job, String> {
    let (Some(name), Some(peer)) = (words.next(), words.next()) else {
        return Err("run needs a load and a peer".to_owned());
    };
    let load = load(&name)?;
    if !peers::NAMES.contains(&peer.as_str()) {
        return Err(format!("there is no peer '{peer}': {}", peers::NAMES.join(", ")));
    }
    let mut job = Job { load, peer, sizes: load.sizes(false), most_kib: 0 };
    let Job { sizes: Sizes { depth, size, rounds }, most_kib, .. } = &mut job;
    for word in words {
        match word.split_once('=') {
            Some(("depth", text)) => *depth = number(text, "depth", 0..=28)?,
            Some(("size", text)) => *size = number(text, "size", 0..=10_000_000)?,
            Some(("rounds", text)) => *rounds = number(text, "rounds", 0..=10_000_000)?,
            Some(("most", text)) => *most_kib = number(text, "most", 0..=usize::MAX >> 10)?,
            _ => return Err(format!("'{word}' is no setting of a run")),
        }
    }
    Ok(job)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &str) -> Result<Words, String> {
        parse(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn words_are_read() {
        let race = |rounds, loads: &[Load], quick| {
            Ok(Words::Race(Race { rounds, loads: loads.to_vec(), quick, strict: false }))
        };
        assert_eq!(of(""), race(5, &Load::ALL, false));
        assert_eq!(of("--quick"), race(2, &Load::ALL, true));
        assert_eq!(of("--rounds 9 --only splay"), race(9, &[Load::Splay], false));
        assert_eq!(of("--help"), Ok(Words::Help));
    }

    #[test]
    fn what_a_job_asks_for_is_that_job() {
        let sizes = Sizes { depth: 3, size: 4, rounds: 5 };
        let job = Job { load: Load::GcBench, peer: "rc".to_owned(), sizes, most_kib: 6 };
        assert_eq!(parse(job.words().into_iter()), Ok(Words::Run(job)));
    }

    #[test]
    fn mistakes_are_named() {
        assert!(of("--only splat").unwrap_err().contains("no load 'splat'"));
        assert!(of("--rounds 0").unwrap_err().contains("'0'"));
        assert!(of("--rounds").unwrap_err().contains("needs something"));
        assert!(of("--loud").unwrap_err().contains("'--loud'"));
        assert!(of("run splay").unwrap_err().contains("a load and a peer"));
        assert!(of("run splay arc").unwrap_err().contains("no peer 'arc'"));
        assert!(of("run splay rc deep=3").unwrap_err().contains("'deep=3'"));
    }
}
