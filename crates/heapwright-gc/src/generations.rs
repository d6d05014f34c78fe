//! Generations: the age of objects by sticky mark bits, and the choice of major collections.
//!
//! ```text
//!   major  all marks are cleared first; every object that it marks is old afterwards
//!          its sweep leaves all marks                                       StickyMarks::Everything
//!   minor  marks that stayed stand for old objects, which are traced only if they are remembered
//!          its sweep leaves the marks of objects that survived twice        StickyMarks::Survivors
//!   next   a major one if minor ones do not pay (see `growth`), an object was not remembered, or on
//!          request: then no marks stay, or the old ones are cleared, a few pages at a time
//! ```
//!
//! Minor collections that do not pay are skipped for a while (see `minors`), as in a heap with
//! little memory beyond its live bytes.
//!
//! If a runtime uses scopes with minor collections (requests), marks stay although a major
//! collection is due, because a scope may begin at any time.
//!
//! [`Generations`] owns the remembered set and the state that decides between the two. (Demers,
//! Weiser, Hayes, Boehm, Bobrow, Shenker: "Combining generational and conservative garbage
//! collection", 1990: sticky mark bits.)
//!
//! Part of `trace`. Called by `cycle`, `sweep`, `moving`, `tracer` and `raw`.

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

/// The ages of one heap's objects. Zero knows none.
pub(super) struct Generations {
    pub(super) remembered: Remembered,
    /// Whether the last cycle, or the one under way, is a minor one.
    minor: Num,
    /// The marks that the last cycle's sweep leaves: a [`StickyMarks`].
    sticky: Num,
    /// Whether the next cycle is to be a major one, although marks stayed.
    pub(super) wants_major: Num,
    /// Scopes within which cycles are minor, and whether there ever was one.
    scopes: Num,
    has_scopes: Num,
    /// The number of the next page whose sticky marks are to be cleared; 0: none.
    pub(super) clearing: Num,
    /// Bytes that the last major cycle found live, and that the last minor one marked.
    live_at_major: Num,
    young: Num,
    /// Bytes that were allocated before the last cycle.
    allocated_last: Num,
    /// Cycles that were minor, and whether they pay.
    minors: Num,
    pay: Minors,
}

/// Bytes allocated between two cycles, and how many of them the second found live.
#[derive(Clone, Copy)]
pub(super) struct Survival {
    allocated: usize,
    survived: usize,
}

impl Generations {
    /// Returns whether the last cycle, or the one under way, is a minor one.
    pub(super) fn is_minor(&self) -> bool {
        self.minor.get() != 0
    }

    /// Cycles that were minor.
    pub(super) fn minors(&self) -> usize {
        self.minors.get()
    }

    /// Bytes that the last minor cycle marked.
    pub(super) fn young(&self) -> usize {
        self.young.get()
    }

    /// A cycle begins: a minor one if marks stayed. Returns whether it is.
    pub(super) fn begin(&self) -> bool {
        let minor = self.sticky_marks() != StickyMarks::Nothing;
        self.minor.set(usize::from(minor));
        if !minor {
            self.wants_major.set(0);
        }
        minor
    }

    /// The marks that the last cycle's sweep leaves.
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

    /// Returns whether marks say what is old, or will when the collection under way has ended.
    pub(super) fn has_ages(&self) -> bool {
        self.sticky_marks() != StickyMarks::Nothing && !self.is_clearing()
    }

    /// Returns whether sticky marks are being cleared. Once begun, it cannot be undone.
    pub(super) fn is_clearing(&self) -> bool {
        self.clearing.get() != 0
    }

    /// The next cycle is to be a major one.
    pub(super) fn want_major(&self) {
        self.wants_major.set(1);
    }

    /// Returns whether the next cycle is to be a major one although marks stayed.
    pub(super) fn is_major_owed(&self) -> bool {
        self.wants_major.get() != 0 || self.remembered.has_lost()
    }

    /// A scope begins within which cycles are minor. By any thread.
    pub(super) fn defer_majors(&self) {
        self.has_scopes.set(1);
        self.scopes.add_shared(1);
    }

    /// A scope ends.
    pub(super) fn resume_majors(&self) {
        self.scopes.sub_shared(1);
    }

    /// Returns whether there is such a scope.
    pub(super) fn are_majors_deferred(&self) -> bool {
        self.scopes.get() != 0
    }

    /// Returns how many of the live bytes are surely live: after a minor cycle, no more than the
    /// last major one found, because the rest may be old garbage.
    pub(super) fn known_live(&self, live: usize) -> usize {
        let known = if self.is_minor() { self.live_at_major.get().min(live) } else { live };
        self.live_at_major.set(known);
        known
    }

    /// A cycle has marked `marked` bytes, after `allocated` bytes. `young` bytes survived the cycle
    /// before as their first, by its sweep. `first`: there was none before. Returns the last known
    /// survival. Only the sweep knows that of a major cycle, so then it is that of the cycle
    /// before.
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

    /// Marking has ended: chooses the kind of the next cycle, in a heap that `has` generations.
    /// Returns whether marks stay.
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
        // With scopes, one may begin at any time.
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

    /// Forgets all.
    pub(super) fn end(&self) {
        self.remembered.end();
        self.pay.end();
        clear! { self:
            minor sticky wants_major scopes has_scopes clearing live_at_major young
            allocated_last minors
        }
    }

    /// Clears sticky marks, a few pages at a time, until `deadline` (0: no limit). Begins with the
    /// first page, or where it stopped. Returns whether none is left. While nothing is marked, and
    /// every page has been claimed for the sweep.
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
            // A thread that sees a mark gone sees that the sweep that had left it is over (see
            // `held`).
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
