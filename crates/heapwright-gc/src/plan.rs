//! The plan: which pages' objects are to be moved elsewhere.
//!
//! ```text
//!   page list     pages by how full they are         | ...... 3 % | 10 % | ...... | 70 % | 95 % |
//!                                                                       ^
//!              all live objects fit into these, the fullest ------------+---------------->
//!              and the others go              <-------------------------+
//! ```
//!
//! Of a page list, only the fullest pages stay, as many as its objects need. So few objects move,
//! and they move into existing pages (two-finger compaction, Saunders, 1974, by pages). Pages with
//! pinned objects stay. Nearly full pages stay too, except by [`Choice::ALL`]. Used by `moving`.
#![forbid(unsafe_code)]

/// The number of levels of fullness, less one.
const STEPS: usize = 32;
/// Pages of this level, or fuller ones, stay (but see [`Choice::ALL`]).
const FULL: usize = STEPS - STEPS / 8;

/// The pages of a page list by how full they are. All-zero bytes: no pages.
#[derive(Clone, Copy)]
pub(super) struct Census {
    pages: [u32; STEPS + 1],
    live: usize,
    /// Pages that stay in any case.
    pinned: usize,
}

/// Which pages stay: those fuller than `level`, and the first `spared` pages of this level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    level: usize,
    spared: usize,
}

fn level(live: usize, slots: usize) -> usize {
    live.min(slots) * STEPS / slots.max(1)
}

impl Census {
    pub(super) fn count(&mut self, live: usize, slots: usize, pinned: bool) {
        self.live += live.min(slots);
        if pinned {
            self.pinned += 1;
        } else {
            self.pages[level(live, slots)] += 1;
        }
    }

    /// Returns how many pages would go, of pages with `slots` slots, and which stay.
    pub(super) fn choose(&self, slots: usize) -> (usize, Choice) {
        let needed = self.live.div_ceil(slots.max(1)).saturating_sub(self.pinned);
        let mut stay = 0;
        for level in (0..=STEPS).rev() {
            let pages = self.pages[level] as usize;
            if level >= FULL || stay + pages <= needed {
                stay += pages;
                continue;
            }
            let spared = needed.saturating_sub(stay);
            let go = self.pages[..level].iter().map(|&pages| pages as usize).sum::<usize>();
            return (go + pages - spared, Choice { level: level + 1, spared });
        }
        (0, Choice::default())
    }
}

impl Choice {
    pub(super) const ALL: Self = Self { level: STEPS + 2, spared: 0 };

    /// Returns whether a page goes. Spares the first `spared` pages of the choice's own level.
    pub(super) fn goes(&mut self, live: usize, slots: usize) -> bool {
        let level = level(live, slots) + 1;
        if level < self.level {
            return true;
        }
        if level > self.level {
            return false;
        }
        let spared = self.spared > 0;
        self.spared -= usize::from(spared);
        !spared
    }
}

/// Returns whether the pages exceed the goal by far. `left`: bytes of pages after the last attempt.
pub(super) fn is_due(pages: usize, goal: usize, left: usize) -> bool {
    const WORTH: usize = 1 << 20;
    pages > goal.saturating_add(goal / 8 + WORTH) && pages > left.saturating_add(left / 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    extern crate std;
    use std::vec::Vec;

    const NONE: Census = Census { pages: [0; STEPS + 1], live: 0, pinned: 0 };

    #[test]
    fn sparse_pages_go_and_full_ones_stay() {
        let mut census = NONE;
        for live in [10, 100, 1000, 1000, 5, 0] {
            census.count(live, 1000, false);
        }
        let (go, mut choice) = census.choose(1000);
        assert_eq!(go, 3);
        let goes: Vec<bool> =
            [10, 100, 1000, 1000, 5, 0].into_iter().map(|live| choice.goes(live, 1000)).collect();
        assert_eq!(goes, [true, false, false, false, true, true]);
    }

    #[test]
    fn a_heap_within_its_goal_is_left_alone() {
        assert!(!is_due(100 << 20, 100 << 20, 0));
        assert!(is_due(120 << 20, 100 << 20, 0));
        assert!(!is_due(120 << 20, 100 << 20, 110 << 20), "little came of it the last time");
        assert!(!is_due(900 << 10, 100 << 10, 0), "a small one");
    }

    proptest! {
        #![proptest_config(crate::testing::cases(300))]
        #[test]
        fn what_goes_finds_room_in_what_stays(
            pages in proptest::collection::vec((0usize..=64, any::<bool>()), 0..200),
            slots in 1usize..=64,
        ) {
            let pages: Vec<(usize, bool)> =
                pages.into_iter().map(|(live, pinned)| (live.min(slots), pinned && live % 4 == 0)).collect();
            let mut census = NONE;
            pages.iter().for_each(|&(live, pinned)| census.count(live, slots, pinned));
            let (go, mut choice) = census.choose(slots);
            let (mut gone, mut free, mut moved) = (0, 0, 0);
            for &(live, pinned) in &pages {
                if !pinned && choice.goes(live, slots) {
                    gone += 1;
                    moved += live;
                } else {
                    free += slots - live;
                }
            }
            prop_assert_eq!(gone, go);
            prop_assert!(moved <= free, "{} into {}", moved, free);
            // No surplus page stays, except nearly full ones.
            let live: usize = pages.iter().map(|&(live, _)| live).sum();
            let full = pages.iter().filter(|&&(live, pinned)| pinned || level(live, slots) >= FULL).count();
            prop_assert!(pages.len() - gone <= live.div_ceil(slots).max(full));
        }
    }
}
