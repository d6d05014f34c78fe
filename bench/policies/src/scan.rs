//! The policy's `choose`, a try at a time.
//!
//! `choose` runs from its beginning to its end; but each of its tries takes time, in
//! which other threads do something. So it is run again after each try, with the answers
//! that came so far, and the first try that has no answer yet is answered "locked":
//! there `choose` ends, and says which cache it wants to try next.
//!
//! ```text
//!   run 1:  try 5 -> ?      choose says Locked(5):       try 5 now: held
//!   run 2:  try 5 -> held, try 2 -> ?     Locked(2):     try 2 now: held
//!   run 3:  try 5 -> held, try 2 -> held, no more:       Wait(2)
//! ```
//!
//! The code that decides is the library's; nothing of it is repeated here.

use std::cell::Cell;

use crate::{Caches, Choice, choose, strides};

/// A try that failed.
#[derive(Clone, Copy, Debug)]
pub struct Failed {
    /// Which cache.
    pub cache: usize,
    /// Its precedence afterwards.
    pub precedence: usize,
}

/// What the policy wants next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Try this cache.
    Try(usize),
    /// Wait for this one.
    Wait(usize),
}

/// The policy over a number of caches.
#[derive(Clone, Debug)]
pub struct Scan {
    count: usize,
    strides: Vec<usize>,
}

impl Scan {
    /// Over so many.
    pub fn new(caches: usize) -> Self {
        Self { count: caches, strides: strides(caches).collect() }
    }

    /// What comes after these tries, for a thread whose try of `current` failed and left
    /// it with the precedence `seed`.
    pub fn next(&self, current: usize, seed: usize, failed: &[Failed]) -> Next {
        let replay = Replay { scan: self, current, seed, failed, at: Cell::new(0) };
        match choose(&replay, current) {
            Choice::Locked(cache) => Next::Try(cache),
            Choice::Wait(cache) => Next::Wait(cache),
        }
    }
}

/// The caches as `choose` saw them so far.
struct Replay<'a> {
    scan: &'a Scan,
    current: usize,
    seed: usize,
    failed: &'a [Failed],
    /// How many tries were answered.
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
                assert_eq!(failed.cache, cache, "only what was just tried has been seen");
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
