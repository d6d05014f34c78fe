//! What a page holds, as any thread may see it at any time.
//!
//! ```text
//!   an object is recorded by    its mutator's region    -->   cursor            -->   taken
//!                           next is behind it             is behind it            has its bit
//!                                      settle, then close             sweep
//!
//!   and from the end of marking until the page is swept, it needs its mark as well
//! ```
//!
//! [`Heap::find`](super::raw::Heap::find) is any thread's: it neither stops the world nor waits for
//! the thread that sweeps, because a signal handler that interrupted the sweep may ask, too. What
//! it reads may change from one load to the next, so both sides keep an order.
//!
//! - *What records an object only ever passes on to the right.* Each step writes the new place
//!   before it takes back the old one, with a release between. A thread that looks reads the places
//!   from left to right, with an acquire between: what is gone from one is in the next. Pages are
//!   looked at first, because mostly that is enough and regions are under a lock; if neither
//!   records the object, pages are looked at *again*, for it may have gone from a region to a page
//!   between the two.
//! - *Marks* count from the end of a cycle, which counts cycles up, until the page's sweep, which
//!   notes the cycle in `swept` between making *taken* what marks were and taking marks off. A
//!   thread that finds no mark looks whether the page has been swept meanwhile, and then *taken*
//!   says it.
//! - *Pages become others.* A page that no object is left in gets another kind and other slots, or
//!   goes back. Its state has a count of such changes: what was read while that changed is of no
//!   page, and there was no object, because a page that holds one does not change.
//!
//! Nobody waits and nothing is tried more than twice. Who may change it is as for a page's record
//! (see `page`).
//!
//! Part of `page`; loom-checked (`held/loom_tests.rs`).
#![forbid(unsafe_code)]

use heapwright_substrate::sync::atomic::{Ordering, fence};

use super::bits::{self, Bits, WORDS, Words};
use super::cell::Num;

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No page: a record that waits for one.
    None = 0,
    /// In use: objects lie in it, or may.
    InUse = 1,
    /// Wholly free, and any pool's.
    Empty = 2,
}

/// Which marks a sweep leaves: of objects that the next collection, a minor one, takes for live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StickyMarks {
    /// None: the next one looks at everything.
    Nothing = 0,
    /// All: everything that has survived a major collection is old.
    Everything = 1,
    /// Those of objects that had survived before.
    Survivors = 2,
}

/// Bits of the state's word that are the state; the count of changes is above them.
const STATE: usize = 3;

/// A page in use, as it was when it was looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen(usize);

/// What a sweep found: objects, those that had survived before, and those whose marks stayed.
pub(super) struct Counts {
    pub(super) live: usize,
    pub(super) survivors: usize,
    pub(super) old: usize,
}

/// What a page holds. Zero is no page.
#[repr(C)]
pub(super) struct Held {
    /// A [`State`], and how often it has changed.
    state: Num,
    /// Twice the cycle whose sweep it has been through, and 1 if its marks are those that stay.
    swept: Num,
    /// Bytes: every slot below is taken.
    cursor: Num,
    taken: Bits,
}

/// What the page is.
impl Held {
    /// What it is.
    pub(super) fn state(&self) -> State {
        match self.state.get() & STATE {
            0 => State::None,
            1 => State::InUse,
            _ => State::Empty,
        }
    }

    /// The page, if it is in use.
    pub(super) fn look(&self) -> Option<Seen> {
        let word = self.state.get_acquired();
        (word & STATE == State::InUse as usize).then_some(Seen(word))
    }

    /// Returns whether all that was read of the page since [`Held::look`] was of one page.
    pub(super) fn is_still(&self, seen: Seen) -> bool {
        // A thread that has read what came with a change sees the change.
        fence(Ordering::Acquire);
        Seen(self.state.get()) == seen
    }

    fn set_state(&self, state: State) {
        let count = (self.state.get() & !STATE).wrapping_add(STATE + 1);
        self.state.set_released(count | state as usize);
    }

    /// No object is in it, and it is no page of a page list any more.
    pub(super) fn close(&self, state: State) {
        self.set_state(state);
        // Before anything else of it changes: see `is_still`.
        fence(Ordering::Release);
    }

    /// Makes it a page without objects, whose bits are in those `words`, and its marks `marks`, as
    /// new as this cycle. `set` notes what else it is from now on.
    pub(super) fn open(&self, marks: &Bits, words: Words, cycle: usize, set: impl FnOnce()) {
        // It was closed by another thread, maybe.
        fence(Ordering::Release);
        set();
        self.cursor.set(0);
        bits::clear_words(&self.taken, words);
        bits::clear_words(marks, words);
        self.set_swept(cycle);
        self.set_state(State::InUse);
    }
}

/// What is in its slots.
impl Held {
    /// Returns whether the slot that begins at byte `offset` holds an object, of which no mutator's
    /// region records. What a sweep has yet to free is none any more. `cycles` have ended.
    pub(super) fn holds(&self, marks: &Bits, cycles: &Num, offset: usize) -> bool {
        let swept = self.swept();
        // It awaits the sweep of this cycle.
        if swept != cycles.get_acquired() {
            if bits::is_set(marks, offset) {
                return true;
            }
            // A thread that sees a mark gone sees that the page is swept.
            fence(Ordering::Acquire);
            // A sweep may have taken the mark just now, and the page await the next one already.
            if self.swept() == swept {
                return false;
            }
        }
        self.is_taken(offset)
    }

    /// As [`Held::holds`], or a region records it: then `is_fresh` says so.
    pub(super) fn holds_or(
        &self,
        marks: &Bits,
        cycles: &Num,
        offset: usize,
        is_fresh: impl FnOnce() -> bool,
    ) -> bool {
        if self.holds(marks, cycles, offset) || is_fresh() {
            return true;
        }
        // A thread that has seen a region closed sees what it wrote to its page.
        fence(Ordering::Acquire);
        self.holds(marks, cycles, offset)
    }

    /// Returns whether the slot that begins at byte `offset` holds an object, by what was settled.
    pub(super) fn is_taken(&self, offset: usize) -> bool {
        // Acquired: a thread that sees that a sweep has moved the cursor sees what it says is
        // taken.
        offset < self.cursor.get_acquired() || bits::is_set(&self.taken, offset)
    }

    /// Every slot below byte `next` is taken.
    pub(super) fn settle(&self, next: usize) {
        // Released, for a thread that does not see that the sweep has moved it, but this.
        self.cursor.set_released(next);
    }

    /// Bytes: every slot below is taken.
    pub(super) fn cursor(&self) -> usize {
        self.cursor.get()
    }

    /// Where objects begin that were there when it was swept, or that were moved here or are to be
    /// elsewhere.
    pub(super) fn taken(&self) -> &Bits {
        &self.taken
    }

    /// From now on *taken* alone records its objects.
    pub(super) fn forget_cursor(&self, slot: usize) {
        for offset in (0..self.cursor.get()).step_by(slot.max(1)) {
            bits::set(&self.taken, offset);
        }
        self.cursor.set_released(0);
    }

    /// It has been through the sweep of a cycle, or is as new as that.
    pub(super) fn set_swept(&self, cycle: usize) {
        self.swept.set_released(2 * cycle + 1);
    }

    /// The cycle whose sweep it has been through, or is about to be through.
    fn swept(&self) -> usize {
        self.swept.get_acquired() / 2
    }

    /// Returns whether its marks are those that this cycle's sweep left.
    pub(super) fn is_swept(&self, cycle: usize) -> bool {
        self.swept.get_acquired() == 2 * cycle + 1
    }

    /// What is marked is taken, nothing else is, and those marks are left that stay.
    pub(super) fn sweep(
        &self,
        marks: &Bits,
        words: Words,
        cycle: usize,
        sticky: StickyMarks,
    ) -> Counts {
        let mut stay = [0; WORDS];
        let (live, survivors) = bits::copy_and_compare(marks, &self.taken, &mut stay, words);
        self.cursor.set_released(0);
        self.swept.set_released(2 * cycle);
        // Before any mark goes: see `holds`.
        fence(Ordering::Release);
        let old = match sticky {
            StickyMarks::Nothing => {
                bits::clear_words(marks, words);
                0
            }
            StickyMarks::Everything => live,
            StickyMarks::Survivors => {
                bits::assign(marks, &stay, words);
                survivors
            }
        };
        // A thread that sees this sees no mark but those that stay.
        self.set_swept(cycle);
        Counts { live, survivors, old }
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
