//! Chooses the sample: the blocks that stand alone between guard pages.
//!
//! ```text
//!   site (a stack)   | end 1 | waits 1 | blocks until the next due one 22 | due so far 8 |
//!
//!   due       the first two blocks of every stack, then one after 16 more, after 64 more, ...
//!   not due   while the budget lasts (see `budget`): first all blocks of the process; later all
//!             in the pause of 16, every second in that of 64, every fourth in that of 256, ...
//!             So their number grows like the square root of the number of a site's blocks.
//! ```
//!
//! So a small program's blocks are guarded, and a bug at a site that runs once is seen the first
//! time. A site that runs a million times costs ten guards, or as many as there is time for. Blocks
//! stand alternately at the end of their page, which catches accesses beyond them, and at its
//! start, which catches accesses before them. A late finding (a damaged canary), in this run or an
//! earlier one, makes a site *flagged*. So does a guard hit that may not repeat (`flagged`). All
//! blocks of a flagged site are guarded from then on, at the end that matters.
//!
//! A guarded block takes a page. Guarded pages take at most a quarter of the open buckets' bytes
//! (at least 4 MiB). Beyond that a due block waits for frees. Blocks that are not due get guards
//! only while guarded pages take less than a 64th of these bytes (at least 2 MiB).

use crate::segments::Segments;
use crate::sync::atomic::{AtomicU32, Ordering};

use super::budget::Allowance;
use super::shape::PAGE;

const FIRST: u32 = 2;
/// Blocks until the next due block: first `THEN`, then four times as many each time, to `MOST`.
const THEN: u32 = 16;
const MOST: u32 = 1 << 20;
const PAGES_LEAST: usize = (4 << 20) / PAGE;
const SPARE_LEAST: usize = PAGES_LEAST / 2;
const FLAGGED: u32 = 255;
/// The record has the flagged site, for the ends of its blocks (`NOTED`) or for their starts.
const NOTED: u32 = 1 << 8;
const NOTED_LEFT: u32 = 1 << 9;
/// The next guarded block stands at the start of its page.
const TURN: u32 = 1 << 31;
/// A block of the site is due, but no time is left for it: neither budget nor advance allows it.
const WAITS: u32 = 1 << 30;

pub(crate) struct Sites {
    words: Segments<AtomicU32, 4096, 21>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// The block's end at the end of the page.
    Right,
    /// The block's start at the start of the page.
    Left,
    /// The block's start this many bytes into the page.
    Into(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Why {
    Due,
    Spare,
}

fn is_due(word: u32) -> bool {
    (word & !(TURN | WAITS)) >> 8 == 0 && word & 255 != FLAGGED
}

/// Returns the next word of a site, with the turn unchanged, and why its next block is guarded.
fn next(word: u32, allowance: Allowance) -> (u32, Option<Why>) {
    let (to_go, due) = ((word & !(TURN | WAITS)) >> 8, word & 255);
    if due == FLAGGED {
        return (word, Some(Why::Due));
    }
    if to_go > 0 {
        let is_spare = match allowance {
            Allowance::All => true,
            // The pause grows fourfold each time, and its steps twofold.
            Allowance::Some => to_go.is_multiple_of(1 << due.saturating_sub(FIRST).min(23)),
            Allowance::Due | Allowance::None => false,
        };
        return (word - 256, is_spare.then_some(Why::Spare));
    }
    if allowance == Allowance::None {
        return (word, None);
    }
    let due = (due + 1).min(FLAGGED - 1);
    let pause = match due.checked_sub(FIRST) {
        None => 0,
        Some(times) => THEN << (2 * times).min((MOST / THEN).ilog2()),
    };
    (word & TURN | pause << 8 | due, Some(Why::Due))
}

impl Sites {
    pub(crate) const fn new() -> Self {
        Self { words: Segments::new() }
    }

    fn site(&self, stack: u32) -> Option<&AtomicU32> {
        self.words.get_or_make(stack as usize / 2)
    }

    /// Decides whether a block of `stack` is guarded, and where. `has_advance` tells whether a
    /// module's advance allows a guard that the budget does not. `pages` returns the number of
    /// guarded pages and the bytes of open buckets.
    #[inline]
    pub(crate) fn draw(
        &self,
        stack: u32,
        allowance: Allowance,
        has_advance: impl FnOnce() -> bool,
        pages: impl FnOnce() -> (usize, usize),
    ) -> Option<Side> {
        let site = self.site(stack)?;
        // Two threads at one site may make the same draw.
        let word = site.load(Ordering::Relaxed);
        let asks = allowance == Allowance::None && word & WAITS == 0 && is_due(word);
        let (after, why) = next(word, if asks { Allowance::Due } else { allowance });
        let Some(why) = why else {
            site.store(after, Ordering::Relaxed);
            return None;
        };
        let (pages, live) = pages();
        match why {
            Why::Due if pages >= PAGES_LEAST.max(live / 4 / PAGE) => return None,
            Why::Spare if pages >= SPARE_LEAST.max(live / 64 / PAGE) => {
                site.store(after, Ordering::Relaxed);
                return None;
            }
            _ => {}
        }
        let side = if word & TURN == 0 { Side::Right } else { Side::Left };
        let turns = if after & 255 == FLAGGED { 0 } else { TURN };
        if !asks {
            site.store(after ^ turns, Ordering::Relaxed);
        } else if has_advance() {
            // `has_advance` takes a while. If the site was flagged meanwhile, the flag stays.
            let (set, seen) = (Ordering::Relaxed, Ordering::Relaxed);
            let _ = site.compare_exchange(word, after ^ turns, set, seen);
        } else {
            site.fetch_or(WAITS, Ordering::Relaxed);
            return None;
        }
        Some(side)
    }

    pub(crate) fn is_new(&self, stack: u32) -> bool {
        self.site(stack).is_some_and(|site| site.load(Ordering::Relaxed) == 0)
    }

    pub(crate) fn turn(&self, stack: u32) -> Side {
        let Some(site) = self.site(stack) else { return Side::Right };
        let before = site.fetch_xor(TURN, Ordering::Relaxed);
        if before & TURN == 0 { Side::Right } else { Side::Left }
    }

    /// Returns the side for the next block of `stack`. From now on the site is not new.
    pub(crate) fn take_turn(&self, stack: u32) -> Side {
        let Some(site) = self.site(stack) else { return Side::Right };
        let before = site.fetch_xor(TURN, Ordering::Relaxed);
        site.fetch_or(1, Ordering::Relaxed);
        if before & TURN == 0 { Side::Right } else { Side::Left }
    }

    pub(crate) fn is_flagged(&self, stack: u32) -> bool {
        self.site(stack).is_some_and(|site| site.load(Ordering::Relaxed) & 255 == FLAGGED)
    }

    /// Flags the site of `stack`: all its blocks stand at this end from now on.
    pub(crate) fn flag(&self, stack: u32, side: Side) {
        if let Some(site) = self.site(stack) {
            let turn = if side == Side::Left { TURN } else { 0 };
            let word = site.load(Ordering::Relaxed);
            let noted = if word & 255 == FLAGGED { word & (NOTED | NOTED_LEFT) } else { 0 };
            site.store(turn | noted | FLAGGED, Ordering::Relaxed);
        }
    }

    /// Flags the site for a finding of this run. Returns whether the record must note the site.
    pub(crate) fn flag_anew(&self, stack: u32, side: Side) -> bool {
        self.flag(stack, side);
        let noted = if side == Side::Left { NOTED_LEFT } else { NOTED };
        // If a concurrent draw clears the bit, the site is noted twice.
        self.site(stack).is_some_and(|site| site.fetch_or(noted, Ordering::Relaxed) & noted == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    fn guarded(blocks: u32, allowance: Allowance) -> Vec<u32> {
        let mut word = 0;
        let mut guarded = Vec::new();
        for block in 0..blocks {
            let (after, why) = next(word, allowance);
            word = after;
            if why.is_some() {
                guarded.push(block);
            }
        }
        guarded
    }

    #[test]
    fn the_first_are_guarded_and_the_odds_fall() {
        let blocks = if cfg!(miri) { 2000 } else { 100_000 };
        let expected = [0, 1, 18, 83, 340, 1365, 5462, 21847, 87384];
        let guarded = guarded(blocks, Allowance::Due);
        assert!(guarded.iter().eq(expected.iter().filter(|&&block| block < blocks)), "{guarded:?}");
    }

    #[test]
    fn the_more_a_site_makes_the_fewer_of_them_there_is_time_for() {
        assert_eq!(guarded(1000, Allowance::All).len(), 1000);
        // All of the first 18, every second of the next 65, every fourth of 257.
        for (blocks, expected) in [(18, 18), (83, 18 + 33), (340, 18 + 33 + 65)] {
            assert_eq!(guarded(blocks, Allowance::Some).len(), expected);
        }
        let many = guarded(if cfg!(miri) { 2000 } else { 1_000_000 }, Allowance::Some).len();
        assert!(many < if cfg!(miri) { 400 } else { 10_000 }, "{many}");
    }

    #[test]
    fn what_is_due_waits_for_better_times() {
        assert!(guarded(100, Allowance::None).is_empty());
        let (waiting, _) = next(0, Allowance::None);
        assert_eq!(next(waiting, Allowance::Due).1, Some(Why::Due));
    }

    #[test]
    fn a_site_asks_for_an_advance_once_and_then_waits() {
        assert!(crate::substrate::open(crate::options::get));
        let sites = Sites::new();
        let asked = core::cell::Cell::new(0);
        let draw = |allowance, has_advance: bool, pages| {
            let answer = || {
                asked.set(asked.get() + 1);
                has_advance
            };
            sites.draw(40_000, allowance, answer, || (pages, 0))
        };
        assert!(draw(Allowance::None, true, PAGES_LEAST).is_none() && asked.get() == 0);
        for _ in 0..10 {
            assert!(draw(Allowance::None, false, 0).is_none());
        }
        assert_eq!(asked.get(), 1);
        // The budget allows the first due block, and an advance allows the second.
        assert_eq!(draw(Allowance::Due, false, 0), Some(Side::Right));
        assert_eq!(draw(Allowance::None, true, 0), Some(Side::Left));
        assert_eq!(asked.get(), 2);
        for _ in 0..THEN {
            assert!(draw(Allowance::None, true, 0).is_none());
        }
        assert_eq!(asked.get(), 2);
        assert_eq!(draw(Allowance::None, true, 0), Some(Side::Right));
    }

    #[test]
    fn a_site_that_is_flagged_while_it_asks_stays_flagged() {
        assert!(crate::substrate::open(crate::options::get));
        let sites = Sites::new();
        for has_advance in [false, true] {
            let stack = if has_advance { 42_000 } else { 44_000 };
            let answer = || {
                sites.flag(stack, Side::Left);
                has_advance
            };
            sites.draw(stack, Allowance::None, answer, || (0, 0));
            assert!(sites.is_flagged(stack));
            assert_eq!(sites.draw(stack, Allowance::None, || false, || (0, 0)), Some(Side::Left));
        }
    }

    #[test]
    fn pauses_do_not_become_shorter() {
        let mut word = 0;
        let mut last = 0;
        for due in 1..1000 {
            let (after, why) = next(word, Allowance::Due);
            assert_eq!(why, Some(Why::Due));
            let pause = after >> 8;
            assert!(last <= pause && pause <= MOST, "{due}: {pause} after {last}");
            (last, word) = (pause, after & 255);
        }
        assert_eq!(last, MOST);
    }

    #[test]
    fn a_site_is_noted_once_for_each_end() {
        assert!(crate::substrate::open(crate::options::get));
        let sites = Sites::new();
        sites.flag(80_000, Side::Right);
        for (side, is_first) in
            [(Side::Left, true), (Side::Right, true), (Side::Left, false), (Side::Right, false)]
        {
            assert_eq!(sites.flag_anew(80_000, side), is_first);
            for _ in 0..3 {
                assert_eq!(sites.draw(80_000, Allowance::Due, || false, || (0, 0)), Some(side));
            }
            assert!(sites.is_flagged(80_000));
        }
    }

    #[test]
    fn blocks_stand_at_both_ends_in_turn() {
        assert!(crate::substrate::open(crate::options::get));
        let sites = Sites::new();
        for allowance in [Allowance::Due, Allowance::All] {
            let stack = if allowance == Allowance::Due { 50_000 } else { 60_000 };
            let draw = || sites.draw(stack, allowance, || false, || (0, 0));
            let sides: Vec<_> = (0..100).filter_map(|_| draw()).collect();
            assert_eq!(sides[0], Side::Right);
            assert!(sides.windows(2).all(|pair| pair[0] != pair[1]), "{sides:?}");
        }
    }

    #[test]
    fn a_flagged_site_is_always_guarded_and_a_full_budget_never() {
        assert!(crate::substrate::open(crate::options::get));
        let sites = Sites::new();
        let (none, full) = (Allowance::None, PAGES_LEAST);
        for side in [Side::Left, Side::Right] {
            sites.flag(70_000, side);
            for _ in 0..10 {
                assert_eq!(sites.draw(70_000, none, || false, || (0, 0)), Some(side));
                assert!(sites.draw(70_000, none, || false, || (full, 0)).is_none());
                assert!(sites.draw(9, Allowance::Due, || false, || (full, 0)).is_none());
            }
        }
        assert_eq!(sites.draw(9, Allowance::Due, || false, || (full, 1 << 30)), Some(Side::Right));
        // Guards for blocks that are not due leave room for due blocks.
        let draw = |pages| sites.draw(9, Allowance::All, || false, || (pages, 0));
        assert!(draw(full / 2).is_some() && draw(full / 2).is_none() && draw(0).is_some());
    }
}
