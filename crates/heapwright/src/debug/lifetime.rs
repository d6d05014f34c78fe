//! The lifetime predictor: tells whether a block will live long. Such blocks share buckets.
//!
//! ```text
//!   key (stack, class) --> blocks that this thread made there and that are live,
//!                          0 to 255
//!
//!   few    the block will be freed soon    current bucket of short lifetimes
//!   many   it is one of a collection       current bucket of long lifetimes
//! ```
//!
//! Slots are handed out forward only, so one long-lived block pins its whole bucket. Therefore each
//! class has two current buckets. The number of live blocks with a block's key decides which of
//! them the block gets. (The idea is from Barrett and Zorn, "Using Lifetime Predictors to Improve
//! Memory Allocation Performance", 1993.)
//!
//! A wrong guess does little harm. So colliding keys share counters, and a free by another thread
//! uses that thread's counters.
//!
//! Each thread has a predictor in its `thread_state`; `heap` calls it.
#![forbid(unsafe_code)]

/// The number of counters, which keys share.
const COUNTERS: usize = 4096;
/// More live blocks of one key than these are a collection.
const MANY: u8 = 64;

/// Selects a block's current bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lifetime {
    Short = 0,
    Long = 1,
}

pub(crate) const LIFETIMES: usize = 2;

pub(crate) struct LifetimePredictor {
    live: [u8; COUNTERS],
}

impl LifetimePredictor {
    #[inline]
    pub(crate) fn made(&mut self, stack: u32, class: usize) -> Lifetime {
        let live = &mut self.live[counter(stack, class)];
        *live = live.saturating_add(1);
        if *live > MANY { Lifetime::Long } else { Lifetime::Short }
    }

    pub(crate) fn forget(&mut self) {
        self.live.fill(0);
    }

    #[inline]
    pub(crate) fn gone(&mut self, stack: u32, class: usize) {
        let live = &mut self.live[counter(stack, class)];
        *live = live.saturating_sub(1);
    }
}

#[inline]
const fn counter(stack: u32, class: usize) -> usize {
    // The golden ratio's bits spread similar stack numbers.
    let hash = (stack ^ (class as u32) << 24).wrapping_mul(0x9e37_79b1);
    hash as usize >> (u32::BITS - COUNTERS.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    #[test]
    fn blocks_freed_at_once_are_short_lived_and_those_that_add_up_are_long_lived() {
        let mut lifetimes = LifetimePredictor { live: [0; COUNTERS] };
        for _ in 0..1000 {
            assert_eq!(lifetimes.made(7, 3), Lifetime::Short);
            lifetimes.gone(7, 3);
        }
        let predicted: std::vec::Vec<_> = (0..1000).map(|_| lifetimes.made(9, 3)).collect();
        assert!(predicted[..MANY as usize].iter().all(|&lifetime| lifetime == Lifetime::Short));
        assert!(predicted[MANY as usize..].iter().all(|&lifetime| lifetime == Lifetime::Long));
        (0..1000).for_each(|_| lifetimes.gone(9, 3));
        assert_eq!(lifetimes.made(9, 3), Lifetime::Short);
    }

    #[test]
    fn neighbours_have_counters_of_their_own() {
        // Stack numbers are small, and two or more apart.
        let mut counters: std::vec::Vec<_> = (0..200).map(|n| counter(2 * n, 5)).collect();
        counters.sort_unstable();
        counters.dedup();
        assert!(counters.len() > 190, "{}", counters.len());
        assert!((0..80).all(|class| counter(1234, class) < COUNTERS));
    }
}
