//! The policy's `choose`, one try at a time.
//!
//! `choose` runs from its beginning to its end, but each of its tries takes simulated time, in
//! which other threads act. So this module runs `choose` again after each try, with the known
//! answers. The module answers the first unknown try with "locked". There `choose` ends, and names
//! the next cache to try.
//!
//! ```text
//!   run 1:  try 5 -> ?      choose says Locked(5):       try 5 now: held
//!   run 2:  try 5 -> held, try 2 -> ?     Locked(2):     try 2 now: held
//!   run 3:  try 5 -> held, try 2 -> held, no more:       Wait(2)
//! ```
//!
//! Only the library's code decides; this module repeats none of it.

use std::cell::Cell;

use crate::{Caches, Choice, choose, strides};

/// A failed try.
#[derive(Clone, Copy, Debug)]
pub struct Failed {
    /// The number of the cache.
    pub cache: usize,
    /// The cache's precedence after the try.
    pub precedence: usize,
}

/// The policy's next step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Try this cache.
    Try(usize),
    /// Wait for this cache.
    Wait(usize),
}

/// The policy over a number of caches.
#[derive(Clone, Debug)]
pub struct Scan {
    count: usize,
    strides: Vec<usize>,
}

impl Scan {
    /// Makes a policy over this many caches.
    pub fn new(caches: usize) -> Self {
        Self { count: caches, strides: strides(caches).collect() }
    }

    /// Returns the step after these tries, for a thread whose try of `current` failed and gave it
    /// the precedence `seed`.
    pub fn next(&self, current: usize, seed: usize, failed: &[Failed]) -> Next {
        let replay = Replay { scan: self, current, seed, failed, at: Cell::new(0) };
        match choose(&replay, current) {
            Choice::Locked(cache) => Next::Try(cache),
            Choice::Wait(cache) => Next::Wait(cache),
        }
    }
}

struct Replay<'a> {
    scan: &'a Scan,
    current: usize,
    seed: usize,
    failed: &'a [Failed],
    /// The number of answered tries.
    at: Cell<usize>,
}

impl Caches for Replay<'_> {
    fn count(&self) -> usize {
        self.scan.count
    }

    fn strides(&self) -> usize {
        self.scan.strides.len()
    }

    fn stride(&self, index: usize) -> usize {
        self.scan.strides[index]
    }

    fn try_lock(&self, cache: usize) -> bool {
        let Some(failed) = self.failed.get(self.at.get()) else { return true };
        assert_eq!(failed.cache, cache, "the policy decides otherwise than before");
        self.at.set(self.at.get() + 1);
        false
    }

    fn precedence(&self, cache: usize) -> usize {
        match self.at.get().checked_sub(1) {
            None => {
                assert_eq!(cache, self.current, "before the first try only the seed is known");
                self.seed
            }
            Some(last) => {
                let failed = self.failed[last];
                assert_eq!(failed.cache, cache, "only the last try's precedence is known");
                failed.precedence
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::tests::some;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_try_at_a_time_is_the_same_as_all_at_once(
            (mut held, current) in some(),
        ) {
            let count = held.count();
            held.free.fill(false);
            let expected = choose(&held, current);

            let scan = Scan::new(count);
            let mut failed = Vec::new();
            let end = loop {
                match scan.next(current, held.precedence(current), &failed) {
                    Next::Try(cache) => {
                        failed.push(Failed { cache, precedence: held.precedence(cache) });
                    }
                    Next::Wait(cache) => break cache,
                }
            };
            prop_assert_eq!(Choice::Wait(end), expected);
            let tried: Vec<usize> = failed.iter().map(|failed| failed.cache).collect();
            prop_assert_eq!(tried, held.tried.into_inner());
        }
    }
}
