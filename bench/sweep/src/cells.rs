//! The cells and what was measured of them. A group of cells is a process of its own under each
//! allocator, so that what one pattern leaves behind does not reach the others. With several
//! threads there are three times as many rounds, because other work on the machine disturbs these
//! more.

use std::process::Command;

use figures::cells::Cells;
use figures::options::Allocator;
use figures::plan::Planned;
use figures::run::Runner;

use crate::options::{Asked, OURS, PER_CPU, is_peer};
use crate::report::threads_text;

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
    /// The allocators, in their order.
    pub(crate) allocators: Vec<String>,
    pub(crate) cells: Vec<Cell>,
    /// Who failed at what.
    pub(crate) failures: Vec<(String, String)>,
}

impl Sweep {
    /// The place of an allocator that took part.
    pub(crate) fn allocator(&self, name: &str) -> Option<usize> {
        self.allocators.iter().position(|allocator| allocator == name)
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
        let peers = self.allocators.iter().enumerate().filter(|(_, name)| is_peer(name));
        let times = peers.filter_map(|(at, peer)| Some((cell.least(at)?, peer.as_str())));
        let (best, whose) = times.min_by(|one, other| one.0.total_cmp(&other.0))?;
        Some((cell.least(allocator)? / best, whose))
    }

    /// Whether heapwright failed nowhere. (A peer that fails is a cell without a number.)
    pub(crate) fn is_sound(&self) -> bool {
        !self.failures.iter().any(|(who, _)| who.starts_with(OURS))
    }
}

/// The cells that there are.
fn list(asked: &Asked) -> Result<Vec<Cell>, String> {
    let mut command = Command::new(&asked.program);
    let output = command.args(["list", &asked.cells]).output();
    let output = output.map_err(|e| format!("cannot run {}: {e}", asked.program.display()))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let cells = said.lines().filter_map(|line| {
        let [threads, group, bytes] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
        let (threads, bytes) = (threads.parse().ok()?, bytes.parse().ok()?);
        Some(Cell { threads, group: group.to_owned(), bytes, ns: Vec::new() })
    });
    Ok(cells.filter(|cell| asked.threads.0.contains(&cell.threads)).collect())
}

fn plan(asked: &Asked, sweep: &Sweep, allocators: &[Allocator]) -> Vec<Planned> {
    let mut plan = Vec::new();
    for (threads, group) in sweep.groups() {
        let ms = match threads {
            _ if asked.quick => "0.1",
            1 => "8",
            _ => "20",
        };
        let number = threads.to_string();
        let program = asked.program.display().to_string();
        let command = [&program, &number, group, ms, &asked.cells].map(str::to_owned);
        let section = threads_text(threads);
        for one in allocators.iter().filter(|one| threads > 1 || one.name != PER_CPU) {
            let at = (section.as_str(), group, one.name.as_str());
            let planned = Planned::new(at, &one.environment, command.to_vec());
            let of_rounds = if threads == 1 { asked.rounds } else { 0 };
            plan.push(Planned { of_rounds, ..planned });
        }
    }
    plan
}

/// Runs all of it.
pub(crate) fn run(asked: &Asked) -> Result<Sweep, String> {
    let allocators = asked.allocators()?;
    let names = allocators.iter().map(|one| one.name.clone()).collect();
    let mut sweep = Sweep { allocators: names, cells: list(asked)?, failures: Vec::new() };
    if sweep.cells.is_empty() {
        return Err("there is no such cell".to_owned());
    }
    let file = asked.libraries.out.join("results.tsv");
    figures::report::write(&file, "")?;
    let several = sweep.cells.iter().any(|cell| cell.threads > 1) && !asked.quick;
    let rounds = asked.rounds * if several { AGAIN } else { 1 };
    let mut runner = Runner::new(&asked.libraries.launcher, SECONDS, &file)?;
    runner.all(&plan(asked, &sweep, &allocators), rounds)?;
    let results = Cells::read(&file)?;
    for cell in &mut sweep.cells {
        let (section, metric) = (threads_text(cell.threads), cell.bytes.to_string());
        let of = |name: &String| results.values((&section, &cell.group, name), &metric);
        cell.ns = sweep.allocators.iter().map(of).collect();
    }
    for (section, group, name) in results.cells() {
        let at = (section.as_str(), group.as_str(), name.as_str());
        if results.of(at, "failed").is_some() {
            sweep.failures.push((name.clone(), format!("{group}, {section}")));
        }
    }
    Ok(sweep)
}
