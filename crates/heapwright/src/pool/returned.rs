//! A set of slots, as a tree of bits, that returns the lowest slot first.
//!
//! ```text
//!   level 2                                    . . . . . . . 1
//!   level 1                    . . 1 . . . . .        a bit for each word below
//!   level 0    ........ ........ ..1..1.. ........    a bit for each slot
//! ```
//!
//! An insertion sets the slot's bit. If the bit's word was empty, it also sets the bit above. A
//! search for the lowest slot takes one step for each level: four steps for sixteen million slots.
//! Slots leave in address order, so live objects become dense again.
//!
//! All levels lie in one slice of zeroed words, which the caller owns, level 0 first.

#![forbid(unsafe_code)]

/// The levels of a set of 2^32 slots.
const LEVELS: usize = 6;

/// The places of the levels in a set's words.
#[derive(Clone, Copy)]
pub(super) struct Levels {
    from: [u32; LEVELS],
    depth: u32,
    words: u32,
}

impl Levels {
    pub(super) fn of(slots: usize) -> Self {
        let mut levels = Self { from: [0; LEVELS], depth: 0, words: 0 };
        let mut bits = slots.max(1);
        loop {
            let words = bits.div_ceil(64);
            levels.from[levels.depth as usize] = levels.words;
            levels.words += words as u32;
            levels.depth += 1;
            if words == 1 {
                return levels;
            }
            bits = words;
        }
    }

    pub(super) fn words(&self) -> usize {
        self.words as usize
    }

    /// Adds `slot`. False if it was in the set.
    pub(super) fn insert(&self, words: &mut [u64], slot: usize) -> bool {
        let mut at = slot;
        for level in 0..self.depth as usize {
            let word = &mut words[self.from[level] as usize + at / 64];
            let before = *word;
            *word |= 1 << (at % 64);
            if before != 0 {
                return level > 0 || before & 1 << (at % 64) == 0;
            }
            at /= 64;
        }
        true
    }

    /// Removes `slot`. False if it was not in the set.
    pub(super) fn remove(&self, words: &mut [u64], slot: usize) -> bool {
        let word = &mut words[slot / 64];
        let was = *word >> (slot % 64) & 1 != 0;
        *word &= !(1 << (slot % 64));
        if was && *word == 0 {
            self.clear_above(words, slot / 64);
        }
        was
    }

    pub(super) fn contains(&self, words: &[u64], slot: usize) -> bool {
        words[slot / 64] >> (slot % 64) & 1 != 0
    }

    /// Removes up to `most` of the lowest slots, all of one word. Returns the word's first slot and
    /// the removed bits, or no bits if the set is empty.
    pub(super) fn take_lowest(&self, words: &mut [u64], most: usize) -> (usize, u64) {
        let mut at = 0;
        for level in (0..self.depth as usize).rev() {
            let word = words[self.from[level] as usize + at];
            if word == 0 {
                return (0, 0);
            }
            if level > 0 {
                at = at * 64 + word.trailing_zeros() as usize;
            }
        }
        let word = &mut words[at];
        let mut left = *word;
        let mut count = 0;
        while left != 0 && count < most {
            left &= left - 1;
            count += 1;
        }
        let taken = *word & !left;
        *word = left;
        if left == 0 {
            self.clear_above(words, at);
        }
        (at * 64, taken)
    }

    /// Clears the upper bits for word `at` of level 0, which became empty.
    fn clear_above(&self, words: &mut [u64], mut at: usize) {
        for level in 1..self.depth as usize {
            let word = &mut words[self.from[level] as usize + at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                return;
            }
            at /= 64;
        }
    }

    pub(super) fn contains_all(&self, words: &[u64], from: usize, to: usize) -> bool {
        let mut at = from;
        while at < to {
            let end = ((at / 64 + 1) * 64).min(to);
            let mask = (u64::MAX >> (64 - (end - at))) << (at % 64);
            if words[at / 64] & mask != mask {
                return false;
            }
            at = end;
        }
        true
    }

    pub(super) fn next_absent(&self, words: &[u64], from: usize, to: usize) -> Option<usize> {
        let mut at = from;
        while at < to {
            let absent = !words[at / 64] >> (at % 64);
            if absent != 0 {
                let slot = at + absent.trailing_zeros() as usize;
                return (slot < to).then_some(slot);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    pub(super) fn clear(&self, words: &mut [u64]) {
        while self.take_lowest(words, 64).1 != 0 {}
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::cases::cases;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec;
    use std::vec::Vec;

    proptest! {
        #![proptest_config(cases(200))]

        #[test]
        fn behaves_as_an_ordered_set(
            slots in prop::sample::select(vec![1usize, 63, 64, 65, 4096, 4097, 300_000]),
            steps in prop::collection::vec((any::<u32>(), 0usize..70), 1..200),
        ) {
            let levels = Levels::of(slots);
            let mut words = vec![0; levels.words()];
            let mut model = BTreeSet::new();
            for (slot, most) in steps {
                let slot = slot as usize % slots;
                prop_assert_eq!(levels.insert(&mut words, slot), model.insert(slot));
                prop_assert!(levels.contains(&words, slot));
                if most % 5 == 0 {
                    prop_assert!(levels.remove(&mut words, slot) && model.remove(&slot));
                    prop_assert!(!levels.remove(&mut words, slot));
                }
                let to = (slot + most).min(slots);
                let all = (slot..to).all(|slot| model.contains(&slot));
                prop_assert_eq!(levels.contains_all(&words, slot, to), all);
                let absent = (slot..to).find(|slot| !model.contains(slot));
                prop_assert_eq!(levels.next_absent(&words, slot, to), absent);
                if most % 3 == 0 {
                    let (from, bits) = levels.take_lowest(&mut words, most);
                    let taken: Vec<_> = (0..64).filter(|i| bits >> i & 1 != 0).collect();
                    for &i in &taken {
                        prop_assert_eq!(model.pop_first(), Some(from + i));
                    }
                    prop_assert!(taken.len() <= most);
                    prop_assert!(most == 0 || !taken.is_empty() || model.is_empty());
                }
            }
            levels.clear(&mut words);
            prop_assert!(words.iter().all(|&word| word == 0));
        }
    }

    #[test]
    fn there_is_a_level_for_every_set() {
        assert_eq!(Levels::of(1 << 32).depth as usize, LEVELS);
        assert_eq!(Levels::of(0).words(), 1);
    }
}
