//! Which objects a page holds, as any thread may see it at any time.
//!
//! ```text
//!   an object is recorded by    its mutator's region    -->   cursor            -->   taken
//!   this place is               below `next`                 below the cursor        bit is set
//!                                      settle, then close             sweep
//!
//!   from the end of marking until the page is swept, the object also needs its mark
//! ```
//!
//! Any thread may call [`Heap::find`](super::raw::Heap::find), also while another thread sweeps. So
//! the call neither stops the world nor waits for the thread that sweeps.
//! Values may change from one load to the next, so readers and writers keep an order.
//!
//! - *The record of an object only moves to the right.* Each step writes the new place before it
//!   clears the old one, with a release between. A reader loads the places from left to right, with
//!   an acquire between: a record that is gone from one place is in the next. Pages are read first,
//!   because they mostly suffice and regions are under a lock. If neither records the object, pages
//!   are read *again*: the record may have moved from a region to a page meanwhile.
//! - *Marks* count from the end of a cycle, which increments the number of cycles, until the page's
//!   sweep. The sweep copies the marks to *taken*, then stores the cycle in `swept`, then clears
//!   marks. A reader that finds no mark checks whether the page has been swept meanwhile. If so,
//!   *taken* has the answer.
//! - *Pages are reused.* A page without objects gets another kind and other slots, or goes back.
//!   The state counts such changes. If the count changed during a read, the values count as no
//!   object: a page that holds an object does not change.
//!
//! A reader never waits, and looks at most twice. The thread that claimed the page may change its
//! [`Held`], and so may the collector while the world is stopped. Part of `page`; loom-checked
//! (`held/loom_tests.rs`).
#![forbid(unsafe_code)]

use heapwright_substrate::sync::atomic::{Ordering, fence};

use super::bits::{self, Bits, WORDS, Words};
use super::cell::Num;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    None = 0,
    InUse = 1,
    /// Wholly free, and may go to any pool.
    Empty = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StickyMarks {
    /// No marks: the next collection looks at everything.
    Nothing = 0,
    /// All marks: every object that has survived a major collection is old.
    Everything = 1,
    /// The marks of objects that had survived before.
    Survivors = 2,
}

/// The bits of the state's word that are the state; the count of changes is above them.
const STATE: usize = 3;

/// A page in use, as it was when it was read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen(usize);

/// The numbers of live objects, of those that had survived before, and of those with marks left.
pub(super) struct Counts {
    pub(super) live: usize,
    pub(super) survivors: usize,
    pub(super) old: usize,
}

#[repr(C)]
pub(super) struct Held {
    /// A [`State`], and the number of its changes.
    state: Num,
    /// Twice the cycle whose sweep has begun here, plus 1 if only the marks that stay are left.
    swept: Num,
    /// Every slot below this byte is taken.
    cursor: Num,
    taken: Bits,
}

/// The state of the page.
impl Held {
    pub(super) fn state(&self) -> State {
        match self.state.get() & STATE {
            0 => State::None,
            1 => State::InUse,
            _ => State::Empty,
        }
    }

    pub(super) fn look(&self) -> Option<Seen> {
        let word = self.state.get_acquired();
        (word & STATE == State::InUse as usize).then_some(Seen(word))
    }

    /// Returns whether all that was read since [`Held::look`] was of one page.
    pub(super) fn is_still(&self, seen: Seen) -> bool {
        // A thread that has read a value written after a change sees the change.
        fence(Ordering::Acquire);
        Seen(self.state.get()) == seen
    }

    fn set_state(&self, state: State) {
        let count = (self.state.get() & !STATE).wrapping_add(STATE + 1);
        self.state.set_released(count | state as usize);
    }

    /// Closes the page. It has no objects, and is on no page list any more.
    pub(super) fn close(&self, state: State) {
        self.set_state(state);
        // Comes before other values of the page change: see `is_still`.
        fence(Ordering::Release);
    }

    /// Opens the page, without objects. The page then counts as swept in `cycle`. `words` are the
    /// words of its bitmaps. `set` stores the other values of the record.
    pub(super) fn open(&self, marks: &Bits, words: Words, cycle: usize, set: impl FnOnce()) {
        // Another thread may have closed the page.
        fence(Ordering::Release);
        set();
        self.cursor.set(0);
        bits::clear_words(&self.taken, words);
        bits::clear_words(marks, words);
        self.set_swept(cycle);
        self.set_state(State::InUse);
    }
}

/// The objects in the slots.
impl Held {
    /// Returns whether the slot at byte `offset` holds an object, by the page's own records. An
    /// object that the coming sweep will free does not count. `cycles` is the number of cycles.
    pub(super) fn holds(&self, marks: &Bits, cycles: &Num, offset: usize) -> bool {
        let swept = self.swept();
        // The page awaits the sweep of this cycle.
        if swept != cycles.get_acquired() {
            if bits::is_set(marks, offset) {
                return true;
            }
            // A thread that sees a mark gone sees that the page is swept.
            fence(Ordering::Acquire);
            // A sweep may just have cleared the mark, and the page may await the next sweep.
            if self.swept() == swept {
                return false;
            }
        }
        self.is_taken(offset)
    }

    /// As [`Held::holds`], but also true if a region records the object, as `is_fresh` says.
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
        // A thread that sees a region closed sees what the region's mutator wrote to its page.
        fence(Ordering::Acquire);
        self.holds(marks, cycles, offset)
    }

    /// Returns whether the slot at byte `offset` holds an object, by the settled records.
    pub(super) fn is_taken(&self, offset: usize) -> bool {
        // Acquired: a thread that sees that a sweep has reset the cursor sees the bits of *taken*.
        offset < self.cursor.get_acquired() || bits::is_set(&self.taken, offset)
    }

    /// Notes that every slot below byte `next` is taken.
    pub(super) fn settle(&self, next: usize) {
        // Released, for a thread that sees this cursor and not the sweep's reset.
        self.cursor.set_released(next);
    }

    pub(super) fn cursor(&self) -> usize {
        self.cursor.get()
    }

    /// The bits of objects that the last sweep found, that moved here, or that are about to move.
    pub(super) fn taken(&self) -> &Bits {
        &self.taken
    }

    /// Makes *taken* the only record of the page's objects.
    pub(super) fn forget_cursor(&self, slot: usize) {
        for offset in (0..self.cursor.get()).step_by(slot.max(1)) {
            bits::set(&self.taken, offset);
        }
        self.cursor.set_released(0);
    }

    /// Notes that the sweep of `cycle` has ended here, or that the page is new since that sweep.
    pub(super) fn set_swept(&self, cycle: usize) {
        self.swept.set_released(2 * cycle + 1);
    }

    fn swept(&self) -> usize {
        self.swept.get_acquired() / 2
    }

    /// Returns whether the page's marks are those that this cycle's sweep left.
    pub(super) fn is_swept(&self, cycle: usize) -> bool {
        self.swept.get_acquired() == 2 * cycle + 1
    }

    /// Makes exactly the marked slots taken, and leaves the marks that stay.
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
        // Comes before any mark goes: see `holds`.
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
        // A thread that sees this number sees only marks that stay.
        self.set_swept(cycle);
        Counts { live, survivors, old }
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
