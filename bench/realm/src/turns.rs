//! Rounds: each runs every peer once, one after the other, in an order that turns from round to
//! round.
//!
//! ```text
//!   round 1   heapwright, gc-arena, ..., box, heapwright-limited
//!   round 2   gc-arena, ..., box, heapwright-limited, heapwright
//! ```
//!
//! What is compared are the runs of one round, which stand side by side in time. The limit of
//! `heapwright-limited` is known when the first round has shown what the peers that trace
//! needed: no more than the least of them, less what a process has before it begins.

use std::collections::BTreeSet;
use std::process::Command;

use crate::loads::{Load, Sizes};
use crate::options::Race;
use crate::peers::{NAMES, TRACING};
use crate::run::{Job, Line};

/// heapwright as it is.
pub(crate) const UNLIMITED: &str = NAMES[0];
/// heapwright, once more.
pub(crate) const LIMITED: &str = "heapwright-limited";

/// Who runs, in the order of the first round.
pub(crate) fn contenders() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().chain([LIMITED])
}

/// The longest that a run may take, in seconds.
const SECONDS: &str = "300";

/// What came of a load.
pub(crate) struct Turns {
    pub(crate) load: Load,
    /// KiB that the limited heap may have.
    pub(crate) most_kib: usize,
    /// For each contender a run a round, or why there is none.
    runs: Vec<(&'static str, Vec<Result<Line, String>>)>,
}

/// Runs all peers with a load.
pub(crate) fn take(race: &Race, load: Load) -> Turns {
    let mut turns = Turns {
        load,
        most_kib: 0,
        runs: contenders().map(|contender| (contender, Vec::new())).collect(),
    };
    let count = turns.runs.len();
    for round in 0..race.rounds {
        eprintln!("{}, round {} of {}", load.name(), round + 1, race.rounds);
        for turn in 0..count {
            let at = (round + turn) % count;
            let contender = turns.runs[at].0;
            // In the first round it is the last.
            if contender == LIMITED && round == 0 {
                turns.most_kib = turns.least_traced();
            }
            let run = once(&turns.job(contender, load.sizes(race.quick)));
            turns.runs[at].1.push(run);
        }
    }
    turns
}

/// A run, or why there is none.
fn once(job: &Job) -> Result<Line, String> {
    let program = std::env::current_exe().map_err(|e| format!("where is this program? {e}"))?;
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", SECONDS]).arg(program).args(job.words());
    let output = command.output().map_err(|e| format!("cannot run timeout, of coreutils: {e}"))?;
    if output.status.success() {
        let line = Line::of(&String::from_utf8_lossy(&output.stdout));
        return line.ok_or("what it printed is no result".to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    // A panic says where, and in the next line why.
    let mut lines = said.lines().filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("it said nothing");
    let why = if first.contains("panicked at") { lines.next().unwrap_or(first) } else { first };
    Err(format!("{why} ({})", output.status))
}

impl Turns {
    /// A contender's next run.
    fn job(&self, contender: &str, sizes: Sizes) -> Job {
        let (peer, most_kib) = match contender {
            LIMITED => (UNLIMITED, self.most_kib),
            peer => (peer, 0),
        };
        Job { load: self.load, peer: peer.to_owned(), sizes, most_kib }
    }

    /// The least that a peer that traces had at its peak, in KiB, without what a process has anyway.
    fn least_traced(&self) -> usize {
        let needed = TRACING
            .iter()
            .flat_map(|peer| self.of(peer).flatten())
            .filter_map(|line| Some(line.number("peak_kib")? - line.number("base_kib")?));
        needed.reduce(f64::min).unwrap_or_default().max(1.0) as usize
    }

    /// A contender's runs, a round each.
    fn of(&self, contender: &str) -> impl Iterator<Item = Option<&Line>> {
        let runs = self.runs.iter().find(|(name, _)| *name == contender);
        runs.into_iter().flat_map(|(_, runs)| runs.iter().map(|run| run.as_ref().ok()))
    }

    /// A contender's numbers, of the rounds that it ran in.
    pub(crate) fn numbers(&self, contender: &str, name: &str) -> Vec<f64> {
        self.of(contender).flatten().filter_map(|line| line.number(name)).collect()
    }

    /// One contender's number by another's, within each round.
    pub(crate) fn ratios(&self, contender: &str, other: &str, name: &str) -> Vec<f64> {
        let pairs = self.of(contender).zip(self.of(other));
        pairs.filter_map(|(one, other)| Some(one?.number(name)? / other?.number(name)?)).collect()
    }

    /// Why a contender did not run, the first time that it did not.
    pub(crate) fn why_not(&self, contender: &str) -> Option<&str> {
        let runs = self.runs.iter().find(|(name, _)| *name == contender);
        runs?.1.iter().find_map(|run| run.as_ref().err().map(String::as_str))
    }

    /// What is not as it must be: runs that failed, but for want of what they were not to have, and
    /// runs that computed something else than the first.
    pub(crate) fn faults(&self) -> BTreeSet<String> {
        let runs =
            self.runs.iter().flat_map(|(name, runs)| runs.iter().map(move |run| (*name, run)));
        let mut expected = None;
        let mut faults = BTreeSet::new();
        for (name, run) in runs {
            match run {
                Ok(Line { checksum, .. }) => {
                    let expected = expected.get_or_insert(checksum);
                    if checksum != *expected {
                        faults.insert(format!("{name} computes {checksum}, not {expected}"));
                    }
                }
                Err(why) if name == LIMITED && why.starts_with("no memory") => {}
                Err(why) => _ = faults.insert(format!("{name}: {why}")),
            }
        }
        faults
    }
}
