//! Which of the shared caches next? The policy, in arithmetic alone.
//!
//! ```text
//!   tryLock(current) failed
//!      |   seed: the current cache's precedence
//!      v
//!   start, stride --> look at up to 4 of the K caches, each once
//!                        | one could be locked              --> it is the current one now
//!                        | none; some have a precedence     --> wait for the lowest
//!                        v none; none has                   --> wait for the current one
//! ```
//!
//! A cache's *precedence* is the clock at the first failed try since it was last
//! locked by a try, or 0: "contended since". The lowest that is not 0 belongs to the
//! cache that has been held longest, which is the likeliest to be given back soon.
//!
//! The precedence of the current cache is also the *seed* of the scan. We come here
//! because a try of that cache failed, and a failed try sets a precedence that was 0,
//! so it is very likely not 0; it is a clock, so its low bits are as good as random;
//! and it costs nothing, for it lies in the line that the try has just fetched.
//!
//! The stride is coprime with K, so the scan never looks at a cache twice before it
//! has seen all. The scan may land on the current cache and try it again: with few
//! caches that is what helps most (a holder keeps a cache for some dozens of
//! instructions).
//!
//! The idea and the figures are those of LLVM's review D47289 ("Improve the shared
//! TSD model"), which tried nine of these; this is the one that it chose. The others are
//! types in bench/policies, which includes this file as it stands: hence the `pub`, and
//! hence nothing but the tests names another module of the crate.
//!
//! Called by `shared`.

#![forbid(unsafe_code)]
#![allow(unreachable_pub, reason = "bench/policies includes this file, and is another crate")]

/// How many caches a thread looks at before it waits for one.
pub const SCAN: usize = 4;

/// The caches that are chosen from, as the policy sees them.
pub trait Caches {
    /// How many there are; at least one.
    fn count(&self) -> usize;
    /// How many strides are coprime with that number; at least one.
    fn strides(&self) -> usize;
    /// One of them.
    fn stride(&self, index: usize) -> usize;
    /// Tries to lock a cache; keeps its precedence, whatever comes of it.
    fn try_lock(&self, cache: usize) -> bool;
    /// Since when a cache has been contended; 0: it is not.
    fn precedence(&self, cache: usize) -> usize;
}

/// What the policy decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// This cache is locked now, and the thread's.
    Locked(usize),
    /// Wait for this cache: it is the thread's from now on.
    Wait(usize),
}

/// A number below `bound` from 32 random bits, without a division.
pub fn below(random: u32, bound: usize) -> usize {
    ((u64::from(random) * bound as u64) >> 32) as usize
}

/// Spreads the low bits of a clock over all of a word (Knuth's multiplier).
pub fn spread(seed: usize) -> u32 {
    (seed as u32 ^ (seed as u64 >> 32) as u32).wrapping_mul(0x9e37_79b1)
}

/// Chooses a cache for a thread whose try of `current` has failed.
///
/// Looks at no more than [`SCAN`] caches.
pub fn choose(caches: &(impl Caches + ?Sized), current: usize) -> Choice {
    let count = caches.count();
    let random = spread(caches.precedence(current));
    // The start takes the upper bits, the stride others.
    let stride = caches.stride(below(random.rotate_left(16), caches.strides()));
    let mut at = below(random, count);
    let mut lowest = usize::MAX;
    let mut candidate = current;
    for _ in 0..SCAN.min(count) {
        if caches.try_lock(at) {
            return Choice::Locked(at);
        }
        let precedence = caches.precedence(at);
        // 0: it was given back and locked again in between. Not one to wait for.
        if precedence != 0 && precedence < lowest {
            lowest = precedence;
            candidate = at;
        }
        at += stride;
        // More than once where the strides are already those of more caches.
        while at >= count {
            at -= count;
        }
    }
    Choice::Wait(candidate)
}

/// Strides that visit each of `count` caches once: the numbers below `count` (and 1)
/// that have no divisor in common with it.
pub fn strides(count: usize) -> impl Iterator<Item = usize> {
    fn divisor(a: usize, b: usize) -> usize {
        if b == 0 { a } else { divisor(b, a % b) }
    }
    (1..count.max(2)).filter(move |&stride| divisor(count, stride) == 1)
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;
    use std::cell::RefCell;
    use std::vec::Vec;

    /// Caches of which some are free, that write down which were tried. (The tests of the other
    /// policies, in bench/policies, use it too.)
    #[derive(Clone, Debug)]
    pub(crate) struct Row {
        pub(crate) free: Vec<bool>,
        since: Vec<usize>,
        pub(crate) tried: RefCell<Vec<usize>>,
    }

    impl Caches for Row {
        fn count(&self) -> usize {
            self.free.len()
        }
        fn strides(&self) -> usize {
            strides(self.count()).count()
        }
        fn stride(&self, index: usize) -> usize {
            strides(self.count()).nth(index).unwrap()
        }
        fn try_lock(&self, cache: usize) -> bool {
            self.tried.borrow_mut().push(cache);
            self.free[cache]
        }
        fn precedence(&self, cache: usize) -> usize {
            self.since[cache]
        }
    }

    pub(crate) fn some() -> impl Strategy<Value = (Row, usize)> {
        (1..40usize).prop_flat_map(|count| {
            let free = prop::collection::vec(prop::bool::weighted(0.2), count);
            let since = prop::collection::vec(prop_oneof![Just(0), 1..usize::MAX], count);
            (free, since, 0..count).prop_map(|(free, since, current)| {
                (Row { free, since, tried: RefCell::new(Vec::new()) }, current)
            })
        })
    }

    proptest! {
        #![proptest_config(crate::testing::cases(2000))]

        #[test]
        fn at_most_four_are_tried_and_none_twice((caches, current) in some()) {
            let choice = choose(&caches, current);
            let mut tried = caches.tried.borrow().clone();
            prop_assert!(tried.len() <= SCAN);
            if let Choice::Locked(cache) = choice {
                prop_assert_eq!(Some(&cache), tried.last());
                prop_assert!(caches.free[cache]);
            } else {
                prop_assert!(tried.iter().all(|&cache| !caches.free[cache]));
                prop_assert_eq!(tried.len(), caches.count().min(SCAN));
                let contended = tried.iter().copied().filter(|&cache| caches.since[cache] != 0);
                let longest = contended.min_by_key(|&cache| caches.since[cache]);
                prop_assert_eq!(choice, Choice::Wait(match longest {
                    // Of equals the first that was seen.
                    Some(cache) => cache,
                    None => current,
                }));
            }
            tried.sort_unstable();
            tried.dedup();
            prop_assert_eq!(tried.len(), caches.tried.borrow().len());
        }

        #[test]
        fn a_stride_visits_all(count in 1..300usize) {
            for stride in strides(count) {
                let mut seen = std::vec![false; count];
                for step in 0..count {
                    seen[step * stride % count] = true;
                }
                prop_assert!(seen.iter().all(|&seen| seen), "{} by {}", count, stride);
            }
            prop_assert!(strides(count).next().is_some());
        }
    }

    #[test]
    fn the_start_is_spread_over_all_caches() {
        let mut starts = [0; 8];
        for clock in 0..8000 {
            let caches = Row {
                free: std::vec![true; 8],
                since: std::vec![1 + clock * 37; 8],
                tried: RefCell::default(),
            };
            choose(&caches, 0);
            starts[caches.tried.borrow()[0]] += 1;
        }
        assert!(starts.iter().all(|&n| (700..1300).contains(&n)), "{starts:?}");
    }
}
