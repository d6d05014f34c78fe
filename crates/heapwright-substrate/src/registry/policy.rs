//! The policy that chooses the next shared cache, as arithmetic alone.
//!
//! ```text
//!   tryLock(current) failed
//!      |   seed: the current cache's precedence
//!      v
//!   start, stride --> try up to 4 of the K caches, each once
//!                        | one could be locked              --> it is the current cache now
//!                        | none; some have a precedence     --> wait for the lowest precedence
//!                        v none; none has a precedence      --> wait for the current cache
//! ```
//!
//! A cache's *precedence* is the time of the first failed try since the cache was last locked, or
//! 0. The cache with the lowest precedence above 0 has been contended longest, so it will probably
//! be released first. The precedence of the current cache is also the *seed* of the scan. The low
//! bits of a clock are nearly random, and the failed try has already fetched the cache line. The
//! stride is coprime with K, so the scan visits all caches before it visits a cache twice.
//!
//! The idea and the figures are those of LLVM's review D47289 ("Improve the shared TSD model");
//! docs/decisions.md has more comparisons. The simulator (bench/policies) includes this file. So
//! the file has `pub` items, and only its tests name another module. Called by `shared`.

#![forbid(unsafe_code)]
#![allow(unreachable_pub, reason = "bench/policies includes this file, and is another crate")]

/// The caches that a thread looks at before it waits for a cache.
pub const SCAN: usize = 4;

/// The caches to choose from, as the policy sees them.
pub trait Caches {
    /// The number of caches, at least one.
    fn count(&self) -> usize;
    /// The number of strides that are coprime with the count, at least one.
    fn strides(&self) -> usize;
    /// One of these strides.
    fn stride(&self, index: usize) -> usize;
    /// Tries to lock a cache. If this fails, the cache gets a precedence, unless it has one.
    fn try_lock(&self, cache: usize) -> bool;
    /// The time since which a cache has been contended; 0: it is not contended.
    fn precedence(&self, cache: usize) -> usize;
}

/// The decision of the policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// This cache is locked now, and is the thread's current cache.
    Locked(usize),
    /// Wait for this cache, which is the thread's current cache from now on.
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

/// Chooses a cache for a thread whose try of `current` has failed. Looks at no more than [`SCAN`]
/// caches.
pub fn choose(caches: &(impl Caches + ?Sized), current: usize) -> Choice {
    let count = caches.count();
    let random = spread(caches.precedence(current));
    let stride = caches.stride(below(random.rotate_left(16), caches.strides()));
    let mut at = below(random, count);
    let mut lowest = usize::MAX;
    let mut candidate = current;
    for _ in 0..SCAN.min(count) {
        if caches.try_lock(at) {
            return Choice::Locked(at);
        }
        let precedence = caches.precedence(at);
        // 0: the cache was locked again meanwhile.
        if precedence != 0 && precedence < lowest {
            lowest = precedence;
            candidate = at;
        }
        at += stride;
        // The stride may already belong to a larger count.
        while at >= count {
            at -= count;
        }
    }
    Choice::Wait(candidate)
}

/// Strides that visit each of `count` caches once: 1, and all numbers below `count` that are
/// coprime with `count`.
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

    /// Caches that record the tries. The tests of bench/policies use this, too.
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
