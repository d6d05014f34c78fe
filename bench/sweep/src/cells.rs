//! The cells and what was measured of them.
//!
//! ```text
//!   round 1   1 malloc: a b c | 1 calloc: a b c | ... | 8 handoff: a b c
//!   round 2   1 malloc: b c a | ...
//! ```
//!
//! With several threads each round is three, because other work on the machine disturbs these
//! more. A group of cells is a process of its own under each allocator, so that what one pattern
//! leaves behind does not reach the others. Before it runs, as much memory is touched and given
//! back as a group holds: the hosts of virtual machines take free memory back, and whoever touches
//! it first again pays for it.

use std::collections::BTreeMap;

use figures::process::{self, warm};
use figures::turns::order;

use crate::options::{Allocator, Asked, PER_CPU};

/// The most that a group holds, about.
const HELD: f64 = 64e6;
/// So often in a round are several threads measured.
const AGAIN: usize = 3;
/// A run that takes longer has failed.
const SECONDS: u64 = 120;

/// A pattern at one size by so many threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) threads: u32,
    pub(crate) group: String,
    pub(crate) bytes: u64,
    /// Nanoseconds an operation: for each allocator those of the rounds.
    pub(crate) ns: Vec<Vec<f64>>,
}

impl Cell {
    /// Of an allocator's rounds the least: other work on the machine only adds.
    pub(crate) fn least(&self, allocator: usize) -> Option<f64> {
        self.ns[allocator].iter().copied().reduce(f64::min)
    }
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    pub(crate) allocators: Vec<Allocator>,
    pub(crate) cells: Vec<Cell>,
    /// Who failed at what, and why.
    pub(crate) failures: BTreeMap<(String, String), String>,
}

impl Sweep {
    /// The place of an allocator that took part.
    pub(crate) fn allocator(&self, name: &str) -> Option<usize> {
        self.allocators.iter().position(|allocator| allocator.name == name)
    }

    /// The numbers of threads, and of each the groups, in their order.
    pub(crate) fn groups(&self) -> Vec<(u32, &str)> {
        let mut all: Vec<(u32, &str)> =
            self.cells.iter().map(|cell| (cell.threads, cell.group.as_str())).collect();
        all.dedup();
        all
    }

    /// The cells of a group.
    pub(crate) fn of(&self, group: (u32, &str)) -> Vec<&Cell> {
        self.cells.iter().filter(|cell| (cell.threads, cell.group.as_str()) == group).collect()
    }

    /// The least time of an allocator to that of the fastest peer in this cell, and whose that is.
    pub(crate) fn to_best(&self, cell: &Cell, allocator: usize) -> Option<(f64, &str)> {
        let peers = self.allocators.iter().enumerate().filter(|(_, allocator)| allocator.is_peer());
        let times = peers.filter_map(|(at, peer)| Some((cell.least(at)?, peer.name.as_str())));
        let (best, whose) = times.min_by(|one, other| one.0.total_cmp(&other.0))?;
        Some((cell.least(allocator)? / best, whose))
    }

    /// Whether heapwright failed nowhere. (A peer that fails is a cell without a number.)
    pub(crate) fn is_sound(&self) -> bool {
        !self.failures.keys().any(|(who, _)| who.starts_with(crate::options::OURS))
    }
}

/// What the program prints of this, under this allocator.
fn said(asked: &Asked, allocator: &Allocator, words: &[String]) -> Result<String, String> {
    let ended = process::run(&asked.program, words, &allocator.environment, SECONDS)?;
    // Without its preload it would be glibc under another name.
    let ignored = ended.stderr.lines().find(|line| line.contains("ld.so")).map(str::to_owned);
    ignored.map_or_else(|| ended.well(SECONDS), Err)
}

fn cell_of(line: &str) -> Option<Cell> {
    let (threads, rest) = line.split_once(' ')?;
    let (group, bytes) = rest.split_once(' ')?;
    let (threads, bytes) = (threads.parse().ok()?, bytes.parse().ok()?);
    Some(Cell { threads, group: group.to_owned(), bytes, ns: Vec::new() })
}

/// Runs all of it.
pub(crate) fn run(asked: &Asked) -> Result<Sweep, String> {
    let bare = Allocator { name: String::new(), environment: Vec::new() };
    let list = said(asked, &bare, &["list".to_owned(), asked.cells.clone()])?;
    let mut sweep = Sweep { allocators: asked.allocators()?, ..Sweep::default() };
    let count = sweep.allocators.len();
    sweep.cells = list.lines().filter_map(cell_of).collect();
    sweep.cells.retain(|cell| asked.threads.0.contains(&cell.threads));
    if sweep.cells.is_empty() {
        return Err("there is no such cell".to_owned());
    }
    for cell in &mut sweep.cells {
        cell.ns = vec![Vec::new(); count];
    }
    let groups: Vec<(u32, String)> =
        sweep.groups().into_iter().map(|(threads, group)| (threads, group.to_owned())).collect();
    for round in 0..asked.rounds {
        eprintln!("round {} of {}", round + 1, asked.rounds);
        for (threads, group) in &groups {
            let times = if *threads == 1 || asked.quick { 1 } else { AGAIN };
            for at in (0..times).flat_map(|again| order(round * times + again, count)) {
                let allocator = &sweep.allocators[at];
                if *threads == 1 && allocator.name == PER_CPU {
                    continue;
                }
                let came = measure(asked, allocator, *threads, group);
                if let Err(why) = &came {
                    let what = format!("{group}, {threads} threads");
                    sweep.failures.insert((allocator.name.clone(), what), why.clone());
                }
                for (bytes, ns) in came.unwrap_or_default() {
                    let named = (*threads, group, bytes);
                    let found = |cell: &&mut Cell| (cell.threads, &cell.group, cell.bytes) == named;
                    if let Some(cell) = sweep.cells.iter_mut().find(found) {
                        cell.ns[at].push(ns);
                    }
                }
            }
        }
    }
    Ok(sweep)
}

/// A group under an allocator: bytes, and nanoseconds.
fn measure(
    asked: &Asked,
    allocator: &Allocator,
    threads: u32,
    group: &str,
) -> Result<Vec<(u64, f64)>, String> {
    let ms = match threads {
        _ if asked.quick => "0.1",
        1 => "8",
        _ => "20",
    };
    let words = [&threads.to_string(), group, ms, &asked.cells].map(str::to_owned);
    warm(HELD);
    let said = said(asked, allocator, &words)?;
    let lines = said.lines().map(|line| {
        let (bytes, ns) = line.split_once(' ')?;
        Some((bytes.parse().ok()?, ns.parse().ok()?))
    });
    lines.collect::<Option<_>>().ok_or_else(|| format!("it says '{}'", said.trim()))
}
