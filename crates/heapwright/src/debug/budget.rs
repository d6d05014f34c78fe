//! The budget decides how many blocks get guard pages, by the CPU time that guards may cost.
//!
//! ```text
//!   CPU time of the process --3 %--> left (ns) --cost of a guarded block--> spent
//!                                      ^
//!   the first 256 blocks of all -------+   an advance: all are guarded, and the budget
//!                                          is in debt until CPU time has paid for them
//!
//!   allowance   All     blocks are left of the first: each is guarded
//!               Some    time is left: every block of a site, later fewer (see `sample`)
//!               Due     no time is left: the due blocks of each site
//!               None    2.5 ms of debt: due blocks wait, except at sites with findings and for
//!                       the first blocks of each module (see `module_advance`); freed large blocks
//!                       (to 256 KiB) are filled, except the first four of a length and one in 64
//! ```
//!
//! In a program with few or slow allocations all blocks are guarded, except emptied buckets of
//! small blocks once 4 MiB are open. In a program that only allocates, only due blocks are guarded.
//! Their guards also cost time of the budget, and these blocks wait while the debt is large.
//!
//! **The advance is a count**, so a small program's reports on live blocks do not depend on the
//! machine. After the advance, the process's CPU time decides, so a busy machine guards as much as
//! a quiet one. The thread's CPU clock measures one call in [`TIMED`] that sets guards. A guard
//! takes two system calls and a fault. If a bucket or large block could have been filled instead,
//! its guard also costs its pages, which fault at the next use. Called by `heap`; each heap has one
//! budget.

use crate::memory_limit;
use crate::os;
use crate::sync;
use crate::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

const FIRST: u32 = 256;
/// The share of the process's CPU time that guards may take, in hundredths.
const SHARE: u64 = 3;
/// The most time that a heap saves up, for a program that allocates in bursts.
const MOST_NS: i64 = 5_000_000;
/// The largest debt. Even due blocks then wait, except those that [`Allowance::None`] names.
const DEBT_MOST_NS: i64 = 2_500_000;
/// Milliseconds between two readings of the process's CPU time.
const STEP_MS: u32 = 8;
const TIMED: u32 = 16;
/// The estimated cost of a page that a guard drops and the program touches again.
const FAULT_NS: i64 = 2_000;
/// The cost of a call before the first one is timed.
const COST_NS: u32 = 3_000;
/// A longer call was probably interrupted, and counts as this long.
const COST_MOST_NS: u64 = 200_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Allowance {
    All,
    Some,
    Due,
    /// Only blocks of flagged sites, and due blocks of modules with an advance left, are guarded.
    None,
}

impl Allowance {
    pub(super) fn is_generous(self) -> bool {
        matches!(self, Self::All | Self::Some)
    }
}

/// The time that a heap may spend on guards. Before [`GuardBudget::begin`] there is none. A forked
/// child continues with the time that its parent had left. In a sandbox no time is earned, because
/// the sandbox may forbid the clocks' system calls.
pub(super) struct GuardBudget {
    first: AtomicU32,
    /// The time left in nanoseconds. A debt is negative.
    left: AtomicI64,
    ran: AtomicU64,
    looked: AtomicU32,
    counted: AtomicU32,
    made: Cost,
    retired: Cost,
}

struct Cost(AtomicU32);

impl Cost {
    const fn new() -> Self {
        Self(AtomicU32::new(COST_NS))
    }

    fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    fn learn(&self, ns: u64) {
        let ns = ns.min(COST_MOST_NS) as u32;
        let before = self.get();
        // A concurrent thread's sample may be lost.
        self.0.store(before - before / 8 + ns / 8, Ordering::Relaxed);
    }
}

#[must_use]
pub(super) struct Spending {
    /// The thread's CPU time at the start; 0 if the call is not timed.
    began: u64,
}

impl GuardBudget {
    pub(super) const fn new() -> Self {
        Self {
            first: AtomicU32::new(0),
            left: AtomicI64::new(0),
            ran: AtomicU64::new(0),
            looked: AtomicU32::new(0),
            counted: AtomicU32::new(0),
            made: Cost::new(),
            retired: Cost::new(),
        }
    }

    pub(super) fn begin(&self) {
        self.ran.store(os::process_cpu_ns(), Ordering::Relaxed);
        self.looked.store(os::coarse_ms(), Ordering::Relaxed);
        self.left.store(0, Ordering::Relaxed);
        self.first.store(FIRST, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn allowance(&self) -> Allowance {
        if self.first.load(Ordering::Relaxed) > 0 {
            Allowance::All
        } else {
            match self.left.load(Ordering::Relaxed) {
                1.. => Allowance::Some,
                left if left > -DEBT_MOST_NS => Allowance::Due,
                // In a sandbox the budget earns no time, so the debt would last for ever.
                _ if memory_limit::is_in_sandbox() => Allowance::Due,
                _ => Allowance::None,
            }
        }
    }

    /// Earns the share of the CPU time, if [`STEP_MS`] have passed.
    pub(super) fn earn(&self) {
        let (now, looked) = (os::coarse_ms(), self.looked.load(Ordering::Relaxed));
        if now.wrapping_sub(looked) < STEP_MS
            || self
                .looked
                .compare_exchange(looked, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_err()
            || memory_limit::is_in_sandbox()
        {
            return;
        }
        let ran = os::process_cpu_ns();
        // A forked child's clock starts again from zero.
        let more = ran.saturating_sub(self.ran.swap(ran, Ordering::Relaxed));
        self.add((more * SHARE / 100) as i64);
    }

    fn add(&self, ns: i64) {
        // Guards that ignore the budget (flagged sites) could make a debt of seconds.
        let sum = |left: i64| Some(left.saturating_add(ns).clamp(-DEBT_MOST_NS, MOST_NS));
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
    }

    pub(super) fn begins(&self) -> Spending {
        let number = self.counted.fetch_add(1, Ordering::Relaxed);
        let is_timed = number.is_multiple_of(TIMED) && !memory_limit::is_in_sandbox();
        Spending { began: if is_timed { os::thread_cpu_ns() } else { 0 } }
    }

    pub(super) fn made(&self, spending: &Spending) {
        sync::take_one(&self.first);
        self.pay(&self.made, spending);
    }

    /// Pays for a retired block or bucket, and for faults in pages that a fill would have kept.
    pub(super) fn retired(&self, spending: &Spending, pages: usize) {
        self.pay(&self.retired, spending);
        self.add(-(pages as i64).saturating_mul(FAULT_NS));
    }

    fn pay(&self, cost: &Cost, spending: &Spending) {
        if spending.began > 0 {
            cost.learn(os::thread_cpu_ns().saturating_sub(spending.began));
        }
        self.add(-i64::from(cost.get()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One guarded block at the assumed cost, because the true cost depends on the machine.
    fn spend(budget: &GuardBudget) {
        let spending = Spending { began: 0 };
        budget.made(&spending);
        budget.retired(&spending, 0);
    }

    #[test]
    fn the_first_are_an_advance_that_time_pays_off() {
        let budget = GuardBudget::new();
        assert_eq!(budget.allowance(), Allowance::Due);
        budget.begin();
        for _ in 0..FIRST {
            assert_eq!(budget.allowance(), Allowance::All);
            spend(&budget);
        }
        assert_eq!(budget.allowance(), Allowance::Due);
        let debt = -budget.left.load(Ordering::Relaxed);
        assert!(debt > 0);
        budget.add(debt);
        assert_eq!(budget.allowance(), Allowance::Due);
        budget.add(1);
        assert_eq!(budget.allowance(), Allowance::Some);
        spend(&budget);
        assert_eq!(budget.allowance(), Allowance::Due);
        budget.add(-DEBT_MOST_NS);
        assert_eq!(budget.allowance(), Allowance::None);
        budget.add(DEBT_MOST_NS);
        assert_eq!(budget.allowance(), Allowance::Due);
    }

    #[test]
    fn a_guarded_bucket_is_charged_for_its_pages() {
        let budget = GuardBudget::new();
        budget.add(MOST_NS);
        budget.retired(&Spending { began: 0 }, 16);
        let left = budget.left.load(Ordering::Relaxed);
        assert_eq!(left, MOST_NS - 16 * FAULT_NS - i64::from(COST_NS));
        for _ in 0..2 {
            budget.retired(&Spending { began: 0 }, usize::MAX >> 1);
            assert_eq!(budget.left.load(Ordering::Relaxed), -DEBT_MOST_NS);
        }
    }

    #[test]
    fn one_call_in_so_many_is_timed() {
        let budget = GuardBudget::new();
        let timed = (0..3 * TIMED).filter(|_| budget.begins().began > 0).count();
        assert_eq!(timed, 3);
    }

    #[test]
    fn no_more_is_saved_up_than_a_burst() {
        let budget = GuardBudget::new();
        (0..10).for_each(|_| budget.add(MOST_NS));
        assert_eq!(budget.left.load(Ordering::Relaxed), MOST_NS);
    }

    #[test]
    fn what_a_call_costs_is_learnt() {
        let cost = Cost::new();
        (0..100).for_each(|_| cost.learn(20_000));
        assert!((19_000..=20_000).contains(&cost.get()), "{}", cost.get());
        cost.learn(u64::MAX);
        assert!(cost.get() < 50_000, "{}", cost.get());
    }
}
