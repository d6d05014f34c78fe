//! How much memory a heap may have: decided once a cycle, and for each pool after its sweep.
//!
//! ```text
//!   0            live             trigger              goal
//!   |-------------|------------------|------------------|
//!     survived      allocated since    while marking      = live * factor, or `most`
//!                   <---------- allowance ------------->
//!
//!   live and allocated: bytes of slots, and the runtime's bytes in malloc
//! ```
//!
//! One number tunes this: `factor`. The live bytes may grow by the factor before the next cycle
//! ends, up to a limit in bytes. All pools and the runtime's blocks share the one allowance.
//!
//! As in Ruby's Feature #18045, each pool is judged when its sweep has ended:
//!
//! ```text
//!   nobody took or freed a page         stable: may stay full (classes, made at boot)
//!   free slots >= 7/8 of 20 %           enough
//!   otherwise                           grows to 40 % free, at most to 1.8 times its pages
//! ```
//!
//! A pool may take the pages that it is granted even if the heap's pages have reached the goal.
//! Otherwise a pool whose objects all survive would cause one collection after the other. Many
//! pools that each lack a little would grow the heap together. So a pool grows only below 7/8 of
//! 20 %, and a grant is at most the allowance and a page.
#![forbid(unsafe_code)]

use heapwright_substrate::size_class::UNIT;

#[derive(Clone, Copy)]
pub(super) struct Target {
    /// Percent of the live bytes.
    pub(super) factor: usize,
    /// Bytes that each mutator may always allocate between two cycles.
    pub(super) least: usize,
    /// Limit in bytes, beyond which no page is taken.
    pub(super) most: usize,
    /// Whether marking is incremental, while the mutators allocate.
    pub(super) incremental: bool,
}

/// The rule for the goal of a heap (see `sizing`).
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// The live bytes times the factor.
    Factor,
    /// The live bytes and so many bytes.
    Room(usize),
    /// So many bytes in all.
    Bytes(usize),
}

impl Target {
    /// Returns how many live and garbage bytes there may be when the next cycle ends. Each of the
    /// `mutators` gets at least `least` bytes. So two mutators collect no more often on one heap
    /// than on two heaps.
    pub(super) fn goal(&self, live: usize, mutators: usize, rule: Rule) -> usize {
        let grown = match rule {
            Rule::Factor => live.saturating_mul(self.factor) / 100,
            Rule::Room(room) => live.saturating_add(room),
            Rule::Bytes(bytes) => bytes,
        };
        let least = self.least.saturating_mul(mutators.max(1));
        let goal = grown.max(live.saturating_add(least));
        goal.min(self.most).max(live)
    }

    /// Returns after how many allocated bytes of the allowance a cycle begins. Incremental marking
    /// begins when half of the allowance is used. An earlier start makes steps smaller, and keeps
    /// no garbage, because new objects are white.
    pub(super) fn trigger(&self, allowance: usize) -> usize {
        if self.incremental { allowance / 2 } else { allowance }
    }

    /// Returns the bytes to mark for `allocated` bytes, so that `left` bytes are marked before
    /// `room` bytes more are allocated.
    pub(super) fn marking(&self, allocated: usize, left: usize, room: usize) -> usize {
        let room = room.max(UNIT);
        allocated.saturating_mul(left.div_ceil(room).max(2))
    }
}

/// After a minor cycle the allowance is at least one part in this many of that after a major one.
pub(super) const LEAST_OF_ALLOWANCE: usize = 8;

#[derive(Clone, Copy)]
pub(super) struct Outcome {
    /// The bytes that the cycle found live, old garbage included.
    pub(super) live: usize,
    pub(super) live_at_major: usize,
    pub(super) goal: usize,
    /// Bytes allocated between two cycles, the last two for which the survivors are known.
    /// `survived`: how many of these bytes the second cycle found live.
    pub(super) allocated: usize,
    pub(super) survived: usize,
}

const MEASURABLE: usize = 64 << 10;

/// Returns whether the next cycle of a heap with generations is to be a major one. This is so if
/// old garbage may have taken half of the allowance, or if minor cycles do not pay. A minor cycle
/// marks the young survivors to free the other young objects. A major cycle marks all live objects
/// to free all dead ones. (The estimate assumes that as many bytes die old as become old.)
pub(super) fn is_major_due(outcome: Outcome) -> bool {
    let Outcome { live, live_at_major, goal, allocated, survived } = outcome;
    let room = goal.saturating_sub(live_at_major);
    if goal.saturating_sub(live) < room / 2 {
        return true;
    }
    let freed = allocated.saturating_sub(survived);
    // Bytes marked for each freed byte. A minor cycle may mark half as many as a major one.
    let (minor, major) = (survived as f64 * room as f64, live_at_major as f64 * freed as f64);
    allocated >= MEASURABLE && minor > major * 0.5
}

/// The decision for a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Decision {
    /// The pool has not been swept yet.
    None = 0,
    /// Enough of the pool's slots are free.
    Enough = 1,
    /// No page of the pool was taken or freed lately. The pool stays as it is, even if it is full.
    Stable = 2,
    /// The pool is too full, and may take more pages.
    Grows = 3,
    /// The pool gave pages back.
    Shrinks = 4,
}

const SWEPT_FOR_A_PAGE: usize = 4;

#[derive(Clone, Copy)]
pub(super) struct Swept {
    pub(super) slots: usize,
    pub(super) free: usize,
    pub(super) in_page: usize,
    /// Pages that mutators took since marking last ended, and in the cycle before.
    pub(super) taken: usize,
    pub(super) freed: usize,
}

/// Judges a pool. Returns the decision, and how many pages the pool may take.
pub(super) fn judge(pool: Swept) -> (Decision, usize) {
    let enough = pool.slots / 5;
    if pool.taken == 0 && pool.freed == 0 {
        return (Decision::Stable, 0);
    }
    if pool.free >= enough - enough / 8 {
        return (if pool.freed > 0 { Decision::Shrinks } else { Decision::Enough }, 0);
    }
    let live = pool.slots - pool.free;
    let wanted = (live * 5).div_ceil(3).min(pool.slots * 9 / 5).max(pool.slots + pool.in_page);
    (Decision::Grows, (wanted - pool.slots).div_ceil(pool.in_page.max(1)))
}

/// Returns how many pages may be borrowed at once: an eighth of the allowance, and at least four.
/// While a pool's sweep is under way, the pool may *borrow* pages. The pages that the sweep frees
/// repay them. So an allocation never has to finish a sweep.
pub(super) fn credit(allowance: usize) -> usize {
    (allowance / 8 / UNIT).max(4)
}

/// Returns the factor by which a step on the allocation path is enlarged when `used` bytes of the
/// allowance are used. Without this factor, short steps would let a heap grow without end.
pub(super) fn step_factor(used: usize, allowance: usize) -> u64 {
    let over = used.saturating_sub(allowance);
    1 + (over.saturating_mul(16) / allowance.max(1)).min(31) as u64
}

/// Returns the pages to sweep for `bytes` allocated bytes, at least four for each allocated page.
/// At this rate, `unswept` pages are swept before three eighths of the allowance are used.
pub(super) fn sweep_share(unswept: usize, bytes: usize, allowance: usize, used: usize) -> usize {
    let room = (allowance / 8 * 3).saturating_sub(used).max(allowance / 16).max(UNIT);
    let share = (unswept as u128 * bytes as u128).div_ceil(room as u128);
    (share.min(unswept as u128) as usize).max(bytes.div_ceil(UNIT / SWEPT_FOR_A_PAGE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TARGET: Target =
        Target { factor: 200, least: 4 << 20, most: usize::MAX, incremental: true };

    #[test]
    fn the_goal_is_a_factor_of_what_is_live_within_bounds() {
        assert_eq!(TARGET.goal(100 << 20, 1, Rule::Factor), 200 << 20);
        assert_eq!(TARGET.goal(1 << 20, 1, Rule::Factor), 5 << 20);
        assert_eq!(
            Target { most: 150 << 20, ..TARGET }.goal(100 << 20, 1, Rule::Factor),
            150 << 20
        );
        assert_eq!(Target { most: 50 << 20, ..TARGET }.goal(100 << 20, 1, Rule::Factor), 100 << 20);
        assert!(TARGET.goal(usize::MAX / 2, 1, Rule::Factor) > usize::MAX / 2);
        assert_eq!(TARGET.goal(100 << 20, 1, Rule::Room(10 << 20)), 110 << 20);
        assert_eq!(TARGET.goal(100 << 20, 1, Rule::Room(0)), 104 << 20);
        assert_eq!(TARGET.goal(100 << 20, 1, Rule::Bytes(300 << 20)), 300 << 20);
        assert_eq!(TARGET.goal(100 << 20, 2, Rule::Bytes(1)), 108 << 20);
    }

    #[test]
    fn minor_cycles_go_on_for_as_long_as_they_pay() {
        let mib = |n: usize| n << 20;
        let outcome = Outcome {
            live: mib(120),
            live_at_major: mib(100),
            goal: mib(200),
            allocated: mib(80),
            survived: mib(20),
        };
        assert!(!is_major_due(outcome));
        assert!(is_major_due(Outcome { live: mib(151), ..outcome }), "garbage that is old");
        assert!(is_major_due(Outcome { survived: mib(40), ..outcome }), "half survives");
        // If few bytes live, a major cycle costs little.
        assert!(is_major_due(Outcome { live_at_major: mib(10), live: mib(10), ..outcome }));
        assert!(!is_major_due(Outcome { allocated: 0, survived: 0, ..outcome }), "not known yet");
    }

    #[test]
    fn a_stable_pool_may_be_full() {
        let full = Swept { slots: 1000, free: 0, in_page: 100, taken: 0, freed: 0 };
        assert_eq!(judge(full), (Decision::Stable, 0));
        let (decision, pages) = judge(Swept { taken: 3, ..full });
        assert_eq!(decision, Decision::Grows);
        assert!((4..=8).contains(&pages));
    }

    proptest! {
        #![proptest_config(crate::testing::cases(256))]
        #[test]
        fn a_grant_is_never_more_than_four_fifths(
            pages in 1usize..10_000, in_page in 2usize..4096, free in 0usize..100, taken in 0usize..9,
        ) {
            let slots = pages * in_page;
            let free = slots * free / 100;
            let (decision, granted) = judge(Swept { slots, free, in_page, taken, freed: 0 });
            prop_assert_eq!(decision == Decision::Grows, granted > 0);
            prop_assert!(granted <= pages * 4 / 5 + 1);
            if free * 5 >= slots {
                prop_assert_eq!(granted, 0);
            }
        }

        #[test]
        fn sweeping_ends_in_time(unswept in 0usize..1 << 20, allowance in 0usize..1 << 36) {
            let (mut left, mut used) = (unswept, 0);
            while left > 0 && used < (allowance / 8 * 3).max(UNIT) {
                left = left.saturating_sub(sweep_share(left, UNIT, allowance, used));
                used += UNIT;
            }
            prop_assert!(left <= unswept / 4, "{left}");
            prop_assert!(sweep_share(unswept, 0, allowance, used) == 0 && sweep_share(0, UNIT, allowance, used) == 4);
        }
    }
}
