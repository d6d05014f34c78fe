//! The sample: it chooses the blocks that stand alone between guard pages.
//!
//! ```text
//!   site (a stack)   | turn 1 | blocks to go until the next one 23 | guarded so far 8 |
//!
//!   guarded: the first two of every stack, then after 16, 64, 256, ... more
//! ```
//!
//! So a bug at a place that runs once is seen the first time, and a place that runs
//! a million times costs ten guards. Blocks stand at the end of their page and at
//! its beginning in turn: a read beyond the end is caught by the one, a read before
//! the start by the other.
//!
//! A site where something was found late (a canary was hit) is *flagged*: all its blocks
//! are guarded from then on, so the next wrong access is caught as it happens.
//!
//! Guarded blocks take a page each, so no more stand at a time than fill a quarter
//! of what is live (at least 4 MiB); a site's turn then waits until some were freed.

use crate::segments::Segments;
use crate::sync::atomic::{AtomicU32, Ordering};

use super::shape::PAGE;

/// The first so many of a site are guarded.
const FIRST: u32 = 2;
/// Blocks until the next one, after those; four times as many each time.
const THEN: u32 = 16;
const MOST: u32 = 1 << 20;
/// Guarded pages that may stand, whatever is live.
const PAGES_LEAST: usize = (4 << 20) / PAGE;
const FLAGGED: u32 = 255;
/// Which end the next block stands at that is guarded whatever the odds.
const TURN: u32 = 1 << 31;

/// The sites of a heap, by the numbers of their stacks.
pub(crate) struct Sites {
    words: Segments<AtomicU32, 4096, 21>,
}

/// Where a guarded block is to stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// Its end at the end of the page.
    Right,
    /// Its start at the start of the page.
    Left,
    /// Its start so many bytes into the page.
    Into(usize),
}

/// What to do with a block, by its site's word; and the word afterwards.
fn next(word: u32) -> (u32, Option<Side>) {
    let turn = word & TURN;
    let (to_go, guarded) = ((word & !TURN) >> 8, word & 255);
    if to_go > 0 {
        return (word - 256, None);
    }
    if guarded == FLAGGED {
        return (word, Some(Side::Right));
    }
    let side = if guarded % 2 == 0 { Side::Right } else { Side::Left };
    let guarded = (guarded + 1).min(FLAGGED - 1);
    let pause = match guarded.checked_sub(FIRST) {
        None => 0,
        Some(times) => THEN.checked_shl(2 * times).unwrap_or(MOST).min(MOST),
    };
    (turn | pause << 8 | guarded, Some(side))
}

impl Sites {
    pub(crate) const fn new() -> Self {
        Self { words: Segments::new() }
    }

    fn site(&self, stack: u32) -> Option<&AtomicU32> {
        // Numbers of stacks are at least two apart.
        self.words.get_or_make(stack as usize / 2)
    }

    /// Whether a block that `stack` asks for is to be guarded, and how. `pages` such
    /// stand now, and `live` bytes are live.
    #[inline]
    pub(crate) fn draw(&self, stack: u32, pages: impl FnOnce() -> (usize, usize)) -> Option<Side> {
        let site = self.site(stack)?;
        // Two threads at one site may draw the same; the odds are none the worse.
        let (after, side) = next(site.load(Ordering::Relaxed));
        if side.is_some() {
            let (pages, live) = pages();
            if pages >= PAGES_LEAST.max(live / 4 / PAGE) {
                return None;
            }
        }
        site.store(after, Ordering::Relaxed);
        side
    }

    /// Whether nothing was asked for at the site of `stack` so far.
    pub(crate) fn is_new(&self, stack: u32) -> bool {
        self.site(stack).is_some_and(|site| site.load(Ordering::Relaxed) == 0)
    }

    /// The end at which the next block of `stack` stands, where all are guarded.
    pub(crate) fn turn(&self, stack: u32) -> Side {
        let Some(site) = self.site(stack) else { return Side::Right };
        let before = site.fetch_xor(TURN, Ordering::Relaxed);
        if before & TURN == 0 { Side::Right } else { Side::Left }
    }

    /// The same where few blocks are guarded, those of new sites first: the site is none from now on.
    pub(crate) fn take_turn(&self, stack: u32) -> Side {
        let Some(site) = self.site(stack) else { return Side::Right };
        let before = site.fetch_xor(TURN, Ordering::Relaxed);
        site.fetch_or(1, Ordering::Relaxed);
        if before & TURN == 0 { Side::Right } else { Side::Left }
    }

    /// Whether all blocks of `stack` are to be guarded.
    pub(crate) fn is_flagged(&self, stack: u32) -> bool {
        self.site(stack).is_some_and(|site| site.load(Ordering::Relaxed) & 255 == FLAGGED)
    }

    /// Something was found late in a block that `stack` asked for.
    pub(crate) fn flag(&self, stack: u32) {
        if let Some(site) = self.site(stack) {
            site.store(FLAGGED, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    #[test]
    fn the_first_are_guarded_and_the_odds_fall() {
        let mut word = 0;
        let mut guarded = Vec::new();
        let rounds = if cfg!(miri) { 2000 } else { 100_000 };
        for block in 0..rounds {
            let (after, side) = next(word);
            word = after;
            if let Some(side) = side {
                guarded.push((block, side));
            }
        }
        let blocks: Vec<_> = guarded.iter().map(|&(block, _)| block).collect();
        let expected = [0, 1, 18, 83, 340, 1365, 5462, 21847, 87384];
        assert!(blocks.iter().eq(expected.iter().filter(|&&block| block < rounds)), "{blocks:?}");
        assert!(guarded.windows(2).all(|pair| pair[0].1 != pair[1].1));
    }

    #[test]
    fn a_hot_site_is_always_guarded_and_a_full_budget_never() {
        assert!(crate::substrate::open(crate::options::get));
        let sites = Sites::new();
        sites.flag(70_000);
        for _ in 0..10 {
            assert!(sites.draw(70_000, || (0, 0)).is_some());
            assert!(sites.draw(70_000, || (PAGES_LEAST, 0)).is_none());
            assert!(sites.draw(9, || (PAGES_LEAST, 0)).is_none());
        }
        assert_eq!(sites.draw(9, || (PAGES_LEAST, 1 << 30)), Some(Side::Right));
    }
}
