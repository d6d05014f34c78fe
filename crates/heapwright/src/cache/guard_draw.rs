//! Draws for guarded blocks: which refills of a cache's lists bring a guarded block.
//!
//! ```text
//!   refill of a list    drawn?  --yes--> the caller makes a guarded block; the list stays empty
//!                         | no
//!                         v
//!   the list            block | block | block | ... | a drawn block | ...
//!                       +--- stays in the list ----+ +--- back to the depot --->
//! ```
//!
//! Only refills check, not `malloc` and `free`. A refill counts the blocks that it puts into the
//! list. If the countdown (`draw`) ends among them, the list is cut before that block, and the call
//! that finds the list empty is drawn. So each position in a list has the same chance. A block that
//! comes from no list is counted alone ([`GuardDraw::count_one`]). Blocks that go back to the depot
//! are not counted. This changes no chances, because the distribution has no memory.
//!
//! Blocks that a thread frees and takes again from its list are not counted. With a rate of 1 each
//! refill is drawn, so no list is ever filled, and every call is drawn.
//!
//! Called by the slow paths of `cache`, by `heap` and by `drawn`.

use core::cell::Cell;

use super::Cache;
use super::draw::{Countdown, Draw, is_time, next_pause, rate};
use crate::os;

/// No [`Draw`], and each kind of [`Draw`].
const NOTHING: u8 = 0;
const DRAWN: u8 = 1;
const IF_NEW: u8 = 2;

/// A thread's draws. If all fields are zero, nothing is drawn.
pub(crate) struct GuardDraw {
    /// Blocks to the next drawn block, which is included.
    countdown: Countdown,
    /// Classes whose next refill is drawn.
    due: Cell<u128>,
    /// The kind of block for the call whose refill has just failed, or 0.
    pending: Cell<u8>,
    /// Whether the next refill goes unchecked.
    skips: Cell<bool>,
    /// Refills before the next look at the stack, and the last pause ([`next_pause`]).
    to_look: Cell<u32>,
    pause: Cell<u32>,
}

impl GuardDraw {
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.countdown.left() != 0
    }

    /// Whether a refill has just failed, because a guarded block may be due.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.get() != NOTHING
    }

    /// The kind of block for the call whose refill failed, unless it failed for lack of memory.
    pub(crate) fn take_pending(&self) -> Option<Draw> {
        match self.pending.replace(NOTHING) {
            NOTHING => None,
            DRAWN => Some(Draw::Drawn),
            _ => Some(Draw::IfNew),
        }
    }

    /// Counts a block that comes from no list. Returns whether it is drawn.
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

    /// If `skips`, the next refill goes unchecked, because no guarded block is possible.
    pub(crate) fn skip(&self, skips: bool) {
        self.skips.set(skips);
    }

    /// `found` says that a look has found a new stack.
    pub(crate) fn looked(&self, found: bool) {
        self.pause.set(next_pause(self.pause.get(), found));
        self.to_look.set(self.pause.get());
    }
}

impl Cache {
    /// Call this when a thread is about to get the cache.
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

    pub(super) fn end_guards(&self) {
        self.guard_draw.countdown.end();
        self.watch(self.sampling.is_on());
    }

    /// Checks a refill of `class`, whose list is empty. Returns false if the refill is drawn, or if
    /// its caller must look at the stack: see [`GuardDraw::take_pending`].
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

    /// Counts the blocks of a refill, and cuts the list before the drawn block.
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
        // Cutting walks the list, so this checks first whether a guarded block may be made now.
        if !is_time(self.scavenger.now.get()) {
            return;
        }
        draw.due.set(draw.due.get() | 1 << class);
        // A list that is forced slow stays as it is. So does every list while blocks are sampled.
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
