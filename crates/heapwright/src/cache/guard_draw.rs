//! Draws for guards: which refills of a cache's lists are to bring a block that stands between
//! guards.
//!
//! ```text
//!   refill of a list    drawn?  --yes--> the caller makes a guarded block, and the list stays empty
//!                         | no
//!                         v
//!   the list            block | block | block | ... | the one that is drawn | ...
//!                       +--- stays in the list ----+ +--- back to the depot --->
//! ```
//!
//! Only refills look: `malloc` and `free` are what they are without guards, instruction by
//! instruction. A refill counts the blocks that it puts into the list. Where the countdown (`draw`)
//! ends among them, the list is cut before that block, and the call that finds the list empty is
//! the drawn one: so each position in a list has the same chance, and a program whose refills
//! always come from one place is drawn elsewhere, too. What goes back to the depot was not counted,
//! and the distribution has no memory.
//!
//! What a thread frees and takes again from its list is not counted: the rate is one of so many
//! blocks that come into lists. With a rate of 1 each refill is drawn, so no list is ever filled,
//! and every call is.
//!
//! Called by the slow paths of `cache`, and by `heap`.

use core::cell::Cell;

use super::Cache;
use super::draw::{Countdown, Draw, is_time, next_pause, rate};
use crate::os;

/// No [`Draw`], and each of them, as numbers.
const NOTHING: u8 = 0;
const DRAWN: u8 = 1;
const IF_NEW: u8 = 2;

/// A thread's draws. Zero: nothing is drawn.
pub(crate) struct GuardDraw {
    /// Blocks to the next one that is drawn.
    countdown: Countdown,
    /// Classes whose next refill is drawn.
    due: Cell<u128>,
    /// What the refill that has just failed is to be: a [`Draw`] as a number, and 0 for nothing,
    /// for a cache is made of zeros.
    pending: Cell<u8>,
    /// The next refill is not looked at.
    skips: Cell<bool>,
    /// Refills to the next look, and from that one to the one after it, if it finds nothing.
    to_look: Cell<u32>,
    pause: Cell<u32>,
}

impl GuardDraw {
    /// Whether blocks are drawn.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.countdown.left() != 0
    }

    /// Whether a refill failed because a guarded block is to be made.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.get() != NOTHING
    }

    /// What the call whose refill failed is to be. `None`: it failed for want of memory, or there
    /// was none.
    pub(crate) fn take_pending(&self) -> Option<Draw> {
        match self.pending.replace(NOTHING) {
            NOTHING => None,
            DRAWN => Some(Draw::Drawn),
            _ => Some(Draw::IfNew),
        }
    }

    /// Counts a block that comes from no list. True: it is drawn.
    pub(crate) fn count_one(&self) -> bool {
        let left = self.countdown.left();
        if left > 1 {
            self.countdown.pass(1);
            return false;
        }
        if left == 0 {
            return false;
        }
        self.countdown.draw(rate());
        is_time(os::coarse_ms())
    }

    /// The next refill is not looked at, for there can be no guarded block; or it is, again.
    pub(crate) fn skip(&self, skips: bool) {
        self.skips.set(skips);
    }

    /// A look has found a new stack, or none.
    pub(crate) fn looked(&self, found: bool) {
        self.pause.set(next_pause(self.pause.get(), found));
        self.to_look.set(self.pause.get());
    }
}

impl Cache {
    /// Begins to draw, if the process does. The cache is about to be a thread's.
    pub(super) fn begin_guards(&self) {
        let draw = &self.guard_draw;
        if rate() == 0 || self.is_heap() {
            return;
        }
        draw.countdown.begin(rate());
        draw.due.set(0);
        draw.pending.set(NOTHING);
        self.watch(true);
    }

    /// Draws none from now on.
    pub(super) fn end_guards(&self) {
        self.guard_draw.countdown.end();
        self.watch(self.sampling.is_on());
    }

    /// Looks at a refill of `class`, whose list is empty. False: it is drawn, or is to be looked at
    /// by its caller, who finds out by [`GuardDraw::take_pending`].
    pub(super) fn draws_guarded(&self, class: usize) -> bool {
        let draw = &self.guard_draw;
        let left = draw.countdown.left();
        if left == 0 || draw.skips.replace(false) {
            return true;
        }
        let (bit, due) = (1 << class, draw.due.get());
        if due & bit != 0 || left == 1 {
            if due & bit != 0 {
                draw.due.set(due & !bit);
            } else {
                draw.countdown.draw(rate());
            }
            if is_time(self.scavenger.now.get()) {
                draw.pending.set(DRAWN);
                return false;
            }
            return true;
        }
        draw.countdown.pass(1);
        let to_look = draw.to_look.get();
        if to_look > 0 {
            draw.to_look.set(to_look - 1);
        } else if is_time(self.scavenger.now.get()) {
            draw.pending.set(IF_NEW);
            return false;
        }
        true
    }

    /// Counts the blocks that a refill has put into the list of `class`, and cuts the list before
    /// the one that is drawn.
    pub(super) fn count_for_guards(&self, class: usize) {
        let (draw, listed) = (&self.guard_draw, self.length(class));
        let left = draw.countdown.left();
        if left > listed {
            draw.countdown.pass(listed);
            return;
        }
        if left == 0 || listed == 0 {
            return;
        }
        draw.countdown.draw(rate());
        // To cut a list is to walk along it, which is not done in vain.
        if !is_time(self.scavenger.now.get()) {
            return;
        }
        draw.due.set(draw.due.get() | 1 << class);
        // A list that is forced slow, or has samples beside it, is left as it is.
        if self.bins[class].forced_slow.is_on() || self.sampling.is_on() {
            return;
        }
        let room = self.hot.list(class).room.get();
        let chain = self.empty(class);
        match left - 1 {
            0 => self.keep(class, chain),
            stay => {
                let (stay, rest) = chain.cut(stay);
                let room = room + rest.count() as i32;
                self.fill(class, stay, room);
                self.keep(class, rest);
            }
        }
    }
}
