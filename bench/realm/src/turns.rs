//! A load with all peers, in turns. The limit of `heapwright-limited` is known when the first
//! round has shown what the peers that trace needed: no more than the least of them, less what
//! a process has before it begins. So it comes last in that round.

use std::cell::Cell;
use std::collections::BTreeSet;

use figures::process;
use figures::record::Record;

use crate::loads::Load;
use crate::options::Race;
use crate::peers::{NAMES, TRACING};
use crate::run::{Job, NEEDED};

/// heapwright as it is.
pub(crate) const UNLIMITED: &str = NAMES[0];
/// heapwright, once more.
pub(crate) const LIMITED: &str = "heapwright-limited";

/// Who runs, in the order of the first round.
pub(crate) fn contenders() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().chain([LIMITED])
}

/// The longest that a run may take, in seconds.
const SECONDS: u64 = 300;

/// What came of a load.
pub(crate) struct Turns {
    pub(crate) load: Load,
    /// KiB that the limited heap may have.
    pub(crate) most_kib: usize,
    all: figures::turns::Turns,
}

/// Runs all peers with a load.
pub(crate) fn take(race: &Race, load: Load) -> Turns {
    let most_kib = Cell::new(0);
    let contenders: Vec<&str> = contenders().collect();
    let all = figures::turns::Turns::take(contenders.clone(), race.rounds, |came, round, at| {
        if at == 0 {
            eprintln!("{}, round {} of {}", load.name(), round + 1, race.rounds);
        }
        let sizes = load.sizes(race.quick);
        let (peer, most_kib) = match contenders[at] {
            LIMITED => {
                if round == 0 {
                    most_kib.set(least_traced(came));
                }
                (UNLIMITED, most_kib.get())
            }
            peer => (peer, 0),
        };
        once(&Job { load, peer: peer.to_owned(), sizes, most_kib })
    });
    Turns { load, most_kib: most_kib.get(), all }
}

/// The least that a peer that traces had at its peak, in KiB, without what a process has anyway.
fn least_traced(came: &figures::turns::Turns) -> usize {
    let needed = TRACING
        .iter()
        .flat_map(|peer| came.of(peer))
        .filter_map(|line| Some(line.number("peak_kib")? - line.number("base_kib")?));
    needed.reduce(f64::min).unwrap_or_default().max(1.0) as usize
}

/// A run, or why there is none.
fn once(job: &Job) -> Result<Record, String> {
    let program = std::env::current_exe().map_err(|e| format!("where is this program? {e}"))?;
    let ended = process::run(&program, &job.words(), &[], SECONDS)?;
    // A panic says where, and in the next line why.
    let mut lines = ended.stderr.lines().filter(|line| !line.is_empty());
    let panicked = lines.find(|line| line.contains("panicked at")).and(lines.next());
    match panicked {
        Some(why) => Err(why.to_owned()),
        None => Record::result(&ended.well(SECONDS)?, NEEDED),
    }
}

impl std::ops::Deref for Turns {
    type Target = figures::turns::Turns;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl Turns {
    /// Why a contender did not run, the first time that it did not.
    pub(crate) fn why_not(&self, contender: &str) -> Option<&str> {
        self.failures().find(|(name, _)| *name == contender).map(|(_, why)| why)
    }

    /// What is not as it must be: runs that failed, but for want of what they were not to have, and
    /// runs that computed something else than the first.
    pub(crate) fn faults(&self) -> BTreeSet<String> {
        let failed = self.failures().filter(|(name, why)| {
            // It may not have enough to run at all: the table says so.
            !(*name == LIMITED && why.starts_with("no memory"))
        });
        failed.map(|(name, why)| format!("{name}: {why}")).chain(self.disagreements()).collect()
    }
}
