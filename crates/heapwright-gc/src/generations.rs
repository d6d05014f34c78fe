//! Generations: the age of objects by sticky mark bits, and the choice of major collections.
//!
//! ```text
//!   major  all marks are cleared first; every object that it marks is old afterwards
//!          its sweep leaves all marks                                    StickyMarks::Everything
//!   minor  marks that stayed stand for old objects, which are traced only if they are remembered
//!          its sweep leaves the marks of objects that survived twice     StickyMarks::Survivors
//!   next   a major one on request, if minor ones do not pay (see `growth`), or if an object could
//!          not be remembered: then no marks stay, or they are cleared, a few pages at a time
//! ```
//!
//! A heap skips minor collections for a while if they do not pay (see `minors`).
//!
//! A runtime may have scopes, such as requests, within which collections are minor. In such a heap
//! marks stay, although a major collection is due, because a scope may begin at any time.
//!
//! (Demers, Weiser, Hayes, Boehm, Bobrow, Shenker: "Combining generational and conservative garbage
//! collection", 1990: sticky mark bits.) Part of `trace`. Called by files that mark, sweep, move,
//! report stores, or tell an object's age.

use core::sync::atomic::{Ordering::Release, fence};

use heapwright_substrate::os;

use super::bits;
use super::cell::{Num, clear};
use super::growth::{self, Outcome};
use super::held::{State, StickyMarks};
use super::minors::Minors;
use super::remembered::Remembered;
use super::space::Space;

/// Pages whose marks are cleared under one lock.
const CLEARED_AT_A_TIME: usize = 64;

pub(super) struct Generations {
    pub(super) remembered: Remembered,
    minor: Num,
    /// The marks that the last cycle's sweep leaves: a [`StickyMarks`].
    sticky: Num,
    /// Whether the next cycle is to be a major one, although marks stayed.
    pub(super) wants_major: Num,
    /// Open scopes within which cycles are minor. `has_scopes`: whether there ever was a scope.
    scopes: Num,
    has_scopes: Num,
    /// The number of the next page whose sticky marks are to be cleared, or 0.
    pub(super) clearing: Num,
    /// Bytes that the last major cycle found live, at most the bytes that are live now. `young`:
    /// bytes that the last cycle marked, at most the bytes allocated before that cycle.
    live_at_major: Num,
    young: Num,
    allocated_last: Num,
    /// The number of minor cycles. `pay`: whether they pay.
    minors: Num,
    pay: Minors,
}

/// Bytes allocated between two cycles. `survived`: how many of them the second cycle found live.
#[derive(Clone, Copy)]
pub(super) struct Survival {
    allocated: usize,
    survived: usize,
}

impl Generations {
    pub(super) fn is_minor(&self) -> bool {
        self.minor.get() != 0
    }

    pub(super) fn minors(&self) -> usize {
        self.minors.get()
    }

    pub(super) fn young(&self) -> usize {
        self.young.get()
    }

    pub(super) fn begin(&self) -> bool {
        let minor = self.sticky_marks() != StickyMarks::Nothing;
        self.minor.set(usize::from(minor));
        if !minor {
            self.wants_major.set(0);
        }
        minor
    }

    pub(super) fn sticky_marks(&self) -> StickyMarks {
        match self.sticky.get() {
            0 => StickyMarks::Nothing,
            1 => StickyMarks::Everything,
            _ => StickyMarks::Survivors,
        }
    }

    fn set_sticky_marks(&self, sticky: StickyMarks) {
        self.sticky.set(sticky as usize);
    }

    /// Returns whether marks say which objects are old, or will when the collection has ended.
    pub(super) fn has_ages(&self) -> bool {
        self.sticky_marks() != StickyMarks::Nothing && !self.is_clearing()
    }

    /// Returns whether sticky marks are being cleared. Once begun, the clearing cannot be undone.
    pub(super) fn is_clearing(&self) -> bool {
        self.clearing.get() != 0
    }

    pub(super) fn want_major(&self) {
        self.wants_major.set(1);
    }

    pub(super) fn is_major_owed(&self) -> bool {
        self.wants_major.get() != 0 || self.remembered.has_lost()
    }

    /// Begins a scope within which cycles are minor. Any thread may call this.
    pub(super) fn defer_majors(&self) {
        self.has_scopes.set(1);
        self.scopes.add_shared(1);
    }

    pub(super) fn resume_majors(&self) {
        self.scopes.sub_shared(1);
    }

    /// Ends the scopes of a thread that a forked child lacks: `balance` calls of `defer_majors`
    /// without `resume_majors`.
    pub(super) fn end_scopes(&self, balance: usize) {
        if balance.cast_signed() > 0 {
            self.scopes.set(self.scopes.get().saturating_sub(balance));
        }
    }

    pub(super) fn are_majors_deferred(&self) -> bool {
        self.scopes.get() != 0
    }

    /// Returns how many of the `live` bytes are surely live. After a minor cycle these are at most
    /// the bytes that the last major cycle found, because other bytes may be old garbage.
    pub(super) fn known_live(&self, live: usize) -> usize {
        let known = if self.is_minor() { self.live_at_major.get().min(live) } else { live };
        self.live_at_major.set(known);
        known
    }

    /// Notes a cycle that marked `marked` bytes, after `allocated` bytes. `young` bytes survived
    /// their first collection in the cycle before, as its sweep counted. `first`: there was no
    /// cycle before. Returns the last known survival. After a major cycle, that is the survival of
    /// the cycle before, because only the coming sweep tells the survival of the major cycle.
    pub(super) fn end_marking(
        &self,
        first: bool,
        allocated: usize,
        marked: usize,
        young: usize,
    ) -> Survival {
        let minor = self.is_minor();
        let before = self.allocated_last.replace(allocated);
        self.young.set(marked.min(allocated));
        self.minors.add(usize::from(minor));
        let live = if minor { self.live_at_major.get() } else { marked };
        self.pay.note(minor, allocated, marked, live);
        if minor || first {
            Survival { allocated, survived: marked }
        } else {
            Survival { allocated: before, survived: young }
        }
    }

    /// Chooses the kind of the next cycle, when marking has ended. `has`: whether the heap has
    /// generations. Returns whether marks stay.
    pub(super) fn choose_next(
        &self,
        has: bool,
        live: usize,
        goal: usize,
        survival: Survival,
    ) -> bool {
        let sticky = if has { self.choose(live, goal, survival) } else { StickyMarks::Nothing };
        self.set_sticky_marks(sticky);
        sticky != StickyMarks::Nothing
    }

    fn choose(&self, live: usize, goal: usize, survival: Survival) -> StickyMarks {
        let Survival { allocated, survived } = survival;
        let live_at_major = self.live_at_major.get();
        let outcome = Outcome { live, live_at_major, goal, allocated, survived };
        let rest = !self.is_minor() && self.pay.rest();
        let due = rest || growth::is_major_due(outcome);
        // In a heap with scopes, a scope may begin at any time. So marks stay.
        let scopes = self.has_scopes.get() != 0;
        if due && scopes {
            self.want_major();
        }
        match due && !scopes {
            true => StickyMarks::Nothing,
            false if self.is_minor() => StickyMarks::Survivors,
            false => StickyMarks::Everything,
        }
    }

    pub(super) fn end(&self) {
        self.remembered.end();
        self.pay.end();
        clear! { self:
            minor sticky wants_major scopes has_scopes clearing live_at_major young
            allocated_last minors
        }
    }

    /// Clears sticky marks, a few pages at a time, until `deadline` (0: no limit). Returns whether
    /// none is left. No cycle may be marking, and every page must be claimed for the sweep.
    pub(super) fn clear_some(&self, space: &Space, deadline: u64) -> bool {
        loop {
            // Under the lock no page comes or goes. Another mutator that clears continues here.
            let lists = space.lists.lock();
            let from = self.clearing.get();
            if from == 0 {
                return self.sticky_marks() == StickyMarks::Nothing;
            }
            let end = space.pages.made() + 1;
            let to = (from + CLEARED_AT_A_TIME).min(end);
            // The last sweep had left the marks. A thread that sees a mark gone also sees that this
            // sweep is over (see `held`).
            fence(Release);
            for page in (from..to).filter_map(|number| space.pages.get(number)) {
                if page.state() == State::InUse {
                    bits::clear(page.marks());
                }
            }
            if to == end {
                self.set_sticky_marks(StickyMarks::Nothing);
                self.clearing.set(0);
                return true;
            }
            self.clearing.set(to);
            drop(lists);
            if deadline != 0 && os::now_ns() >= deadline {
                return false;
            }
        }
    }
}
