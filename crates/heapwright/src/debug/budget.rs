//! The budget: how many blocks stand between guards because there is time for it.
//!
//! ```text
//!   CPU time of the process --3 %--> left (ns) --cost of a guarded block--> spent
//!                                      ^
//!   the first 256 blocks of all  ------+  are an advance: all are guarded, and the budget is in debt until it is paid
//!
//!   allowance   All     blocks are left of the first: each is guarded
//!               Some    time is left: of a site every block, then every second, fourth, ... (see `sample`)
//!               Due     no time is left: what each site is due
//!               None    2.5 ms of debt: sites wait for what they are due, but for those where something was found, and for
//!                       the first of each module (see `module_advance`); large blocks up to 256 KiB that are freed are filled,
//!                       but for the first four of a length and one in 64
//! ```
//!
//! So a program that makes few blocks, or makes them slowly, behaves as under `guard=all` (but for
//! emptied buckets of small blocks, once 4 MiB are open); one that does nothing but allocate has
//! what its sites are due. That is paid from the budget, too, and waits when the debt is large: a
//! compiler has 20,000 sites, and to guard two blocks of each took 28 % of its time.
//!
//! **The advance is a count**, so what a small program is told of live blocks does not depend on
//! the machine. It is small, because a build is a thousand processes of 20 ms: 512 blocks were an
//! eighth of such a compiler's time, and found nothing in the corpus that 160 do not. Beyond it
//! time decides: that of the process on the CPU, not the clock's, so a busy machine guards as much
//! as a quiet one. What a guarded block costs is measured: of one in [`TIMED`] the calls that make
//! and retire it are timed by the thread's CPU clock. (A guard is two system calls and a fault, 3
//! to 6 us; where guards split mappings, or many threads run, it is more.) A bucket that is guarded
//! because there is time, and a large block that would have been filled, is also charged for its
//! pages, which the program faults in when it is used again: these faults are most of such a
//! guard's cost, and were not counted.
//!
//! A forked child goes on with what its parent had left. In a sandbox, which may not know the
//! clocks' system calls, no time comes in, and sites have what they are due.
//!
//! Called by `heap`, one budget a heap.

use crate::memory_limit;
use crate::os;
use crate::sync;
use crate::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

/// The first so many blocks of a heap are all guarded.
const FIRST: u32 = 256;
/// Of the time that the process runs, in hundredths.
const SHARE: u64 = 3;
/// Time that is saved up at most, for a program that allocates in bursts.
const MOST_NS: i64 = 5_000_000;
/// The debt above which sites wait for what they are due, but for what `module_advance` allows: 1
/// ms more than what the first 256 blocks cost. With 8 ms a compiler of 28 ms took 2.39 times as
/// long, with this 2.17.
const DEBT_MOST_NS: i64 = 2_500_000;
/// Milliseconds between two looks at how long the process has run.
const STEP_MS: u32 = 8;
/// One guarded block in so many is timed.
const TIMED: u32 = 16;
/// What a page costs that is dropped for a guard and touched again. (Not timed: the program touches
/// it.)
const FAULT_NS: i64 = 2_000;
/// What a call costs before one was timed.
const COST_NS: u32 = 3_000;
/// A call that took longer was interrupted.
const COST_MOST_NS: u64 = 200_000;

/// How generous the heap may be with a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Allowance {
    /// All blocks are guarded.
    All,
    /// Many are.
    Some,
    /// Those that their sites are due.
    Due,
    /// Those of sites where something was found.
    None,
}

impl Allowance {
    /// Whether there is time for guards that nothing is due.
    pub(super) fn is_generous(self) -> bool {
        matches!(self, Self::All | Self::Some)
    }
}

/// What a heap may spend on guards. Zero is one that has nothing, and is not spent from.
pub(super) struct GuardBudget {
    /// Blocks that are left of the first.
    first: AtomicU32,
    /// Nanoseconds that are left; less than none: the advance is not yet paid.
    left: AtomicI64,
    /// The process's CPU time when it was last looked at, and when that was.
    ran: AtomicU64,
    looked: AtomicU32,
    /// Guarded blocks, to time one in so many.
    counted: AtomicU32,
    /// What it costs to make one, and to retire one.
    made: Cost,
    retired: Cost,
}

/// The mean of what a call costs, in nanoseconds: the last dozen count.
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
        // What another thread learns at once is lost: one of many.
        self.0.store(before - before / 8 + ns / 8, Ordering::Relaxed);
    }
}

/// A call that may be timed, and what of it is to be paid.
#[must_use]
pub(super) struct Spending {
    /// When it began, by the thread's CPU clock; 0: it is not timed.
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

    /// Begins, for a heap that has one.
    pub(super) fn begin(&self) {
        self.ran.store(os::process_cpu_ns(), Ordering::Relaxed);
        self.looked.store(os::coarse_ms(), Ordering::Relaxed);
        self.left.store(0, Ordering::Relaxed);
        self.first.store(FIRST, Ordering::Relaxed);
    }

    /// How generous to be with the next block.
    #[inline]
    pub(super) fn allowance(&self) -> Allowance {
        if self.first.load(Ordering::Relaxed) > 0 {
            Allowance::All
        } else {
            match self.left.load(Ordering::Relaxed) {
                1.. => Allowance::Some,
                left if left > -DEBT_MOST_NS => Allowance::Due,
                // Where no time comes in it would be for ever.
                _ if memory_limit::is_in_sandbox() => Allowance::Due,
                _ => Allowance::None,
            }
        }
    }

    /// Looks how long the process has run since the last time, if it is time for that.
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
        // A forked child's clock begins again.
        let more = ran.saturating_sub(self.ran.swap(ran, Ordering::Relaxed));
        self.add((more * SHARE / 100) as i64);
    }

    fn add(&self, ns: i64) {
        // Guards that are not a matter of choice (flagged sites, freed blocks over 256 KiB) could
        // make a debt of seconds.
        let sum = |left: i64| Some(left.saturating_add(ns).clamp(-DEBT_MOST_NS, MOST_NS));
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
    }

    /// Guarding begins: a block is about to be made, or to be retired.
    pub(super) fn begins(&self) -> Spending {
        let number = self.counted.fetch_add(1, Ordering::Relaxed);
        let is_timed = number.is_multiple_of(TIMED) && !memory_limit::is_in_sandbox();
        Spending { began: if is_timed { os::thread_cpu_ns() } else { 0 } }
    }

    /// A guarded block was made.
    pub(super) fn made(&self, spending: &Spending) {
        sync::take_one(&self.first);
        self.pay(&self.made, spending);
    }

    /// A block or a bucket was retired, and is guarded; when it is used again, `pages` more are
    /// faulted in than if it had been filled.
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

    /// A guarded block that is made and retired, at the cost that is taken before one was timed:
    /// how long a call really takes here is the machine's affair (an interpreter's is a hundred
    /// times as long, and reaches the debt that stops all).
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
        // However many they are, what sites are due waits no longer than for any other debt.
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
