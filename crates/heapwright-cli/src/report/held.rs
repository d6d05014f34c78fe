//! Held or allocated memory, stack by stack: the data of profiles and flame graphs.
//!
//! ```text
//! a process with a leak check                   its groups, by fate
//! another process whose last data is a count    its live blocks at the last count, as "live"
//! another process whose last data is a profile  its chosen figure, under the figure's name
//! ```
//!
//! Every block counts once: blocks lost *with* a block form a group of their own (indirectly lost).
//! Small groups that a check left out have no stack, and are left out here too. Errors are not
//! included.

use super::model::{Amount, Check, Figure, Process, Report, StackId};
use heapwright_record::debug::Reach;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) fate: Fate,
    pub(crate) stack: StackId,
    /// The process of the group, or of its example: an index into the report's processes.
    pub(crate) process: usize,
    pub(crate) amount: Amount,
    /// All that the stack allocated, from a heap profile.
    pub(crate) allocated: Amount,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    Checked(Reach),
    /// The blocks were counted, without a leak check.
    Live,
    /// A figure of a heap profile.
    Profiled(Figure),
}

impl Fate {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Checked(reach) => reach.word(),
            Self::Live => "live",
            Self::Profiled(figure) => figure.word(),
        }
    }
}

/// The most bytes or blocks of one stack, 64 TiB. Larger figures of a damaged record are reduced to
/// this, so that sums do not overflow.
const MOST: u64 = 1 << 46;

/// Returns all held memory, by fate, then by stack.
pub(crate) fn held(report: &Report) -> Vec<Held> {
    let mut sums: BTreeMap<(Fate, StackId, usize), (Amount, Amount)> = BTreeMap::new();
    let add_to = |sum: &mut Amount, amount: Amount| {
        sum.blocks = sum.blocks.saturating_add(amount.blocks).min(MOST);
        sum.bytes = sum.bytes.saturating_add(amount.bytes).min(MOST);
    };
    let mut add = |fate, stack, process, amount: Amount, allocated: Amount| {
        let sums = sums.entry((fate, stack, process)).or_default();
        add_to(&mut sums.0, amount);
        add_to(&mut sums.1, allocated);
    };
    for leak in &report.leaks {
        add(Fate::Checked(leak.reach), leak.stack, leak.process, leak.lost, Amount::default());
    }
    for (at, process) in report.processes.iter().enumerate() {
        let figure = report.wanted.figure;
        for (stack, amount, allocated) in counted(process, figure) {
            let is_profile = allocated != Amount::default();
            let fate = if is_profile { Fate::Profiled(figure) } else { Fate::Live };
            add(fate, stack, at, amount, allocated);
        }
    }
    let held = |((fate, stack, process), (amount, allocated))| Held {
        fate,
        stack,
        process,
        amount,
        allocated,
    };
    sums.into_iter().map(held).collect()
}

fn counted(process: &Process, figure: Figure) -> Vec<(StackId, Amount, Amount)> {
    if process.checks.iter().any(|check| check.occasion.follows()) {
        return Vec::new();
    }
    let mut last = process.checks.iter().rev();
    let is_one = |check: &&Check| !check.usage.is_empty() || check.profile.is_some();
    match last.find(is_one) {
        None => Vec::new(),
        Some(Check { profile: Some(profile), .. }) => {
            let sites = profile.sites.iter();
            let sites = sites.map(|site| (site.stack, figure.of(site), site.allocated));
            sites.filter(|(_, amount, _)| *amount != Amount::default()).collect()
        }
        Some(check) => {
            let usage = check.usage.iter();
            usage.map(|&(stack, amount)| (stack, amount, Amount::default())).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn every_block_counts_once() {
        let report = sample::report();
        let held = held(&report);
        let of = |fate| -> u64 {
            let these = held.iter().filter(|held| held.fate == fate);
            these.map(|held| held.amount.bytes).sum()
        };
        assert_eq!(of(Fate::Checked(Reach::Definite)), 1_214_904);
        assert_eq!(of(Fate::Checked(Reach::Indirect)), 91_000);
        assert_eq!(of(Fate::Live), 350_000);
        let all: u64 = report.leaks.iter().map(|leak| leak.lost.bytes).sum();
        assert_eq!(held.iter().map(|held| held.amount.bytes).sum::<u64>(), all + 350_000);
    }
}
