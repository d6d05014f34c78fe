//! Withheld lists: how a quiet program is made to look after its memory.
//!
//! There is no background thread, so a thread of the program must come by for free pages to go
//! back; and a program that only allocates a little is served by its lists,
//! which look after nothing. So once a tick of the coarse clock (a few
//! milliseconds), while pages wait to go back or as soon as they do, a cache withholds its
//! lists: the fast paths find them empty and full at once, and poll at the slow ones.
//!
//! ```text
//!   list     head null, room 0      malloc finds no block, free finds no room
//!   withheld   head, room             as the list would be
//! ```
//!
//! The first few polls, and the first few at each list, are answered from the withheld
//! lists, which stay withheld; later ones, of a program that is busy, get their list back.
//! After a pause the count starts anew. A tick thus costs a busy thread a few slow operations
//! among millions; all operations of a quiet thread poll. Lists that a busy thread leaves
//! withheld poll at their next use.
//!
//! Invariants: while a list is withheld, it is empty, or a slow path is just
//! dealing with the one block in it. Only the thread itself touches its lists,
//! withheld or not; visitors never do.
//!
//! Called by the slow paths of `cache`.

use core::cell::Cell;
use core::ptr;

use super::{Cache, Use};
use crate::os;
use crate::remote::Block;

/// Polls that are answered without giving the list back, in one tick.
const POLLS: u32 = 16;
/// And as many more at each list.
const POLLS_A_LIST: u8 = 2;
/// A program that polls so late after the last time is quiet, in nanoseconds.
const PAUSE_NS: u64 = 20_000;

/// A class's list while it is withheld. Zero is: it is not.
pub(super) struct Withheld {
    head: Cell<*mut Block>,
    room: Cell<i32>,
    is_withheld: Cell<bool>,
    /// Polls at this list that it stays withheld for, when those for all are used up.
    polls_left: Cell<u8>,
}

impl Withheld {
    /// Whether the list is withheld.
    pub(super) fn is_withheld(&self) -> bool {
        self.is_withheld.get()
    }

    /// In a forked child: forgets the list, which may have been changing.
    pub(super) fn forget_after_fork(&self) {
        self.is_withheld.set(false);
    }

    /// The list's room.
    pub(super) fn room(&self) -> i32 {
        self.room.get()
    }
}

impl Cache {
    /// Withholds all lists.
    pub(super) fn withhold_all(&self) {
        if self.owned_by() == Use::Heap {
            return;
        }
        for (class, bin) in self.bins.iter().enumerate() {
            if !bin.withheld.is_withheld.replace(true) {
                self.withhold(class);
            }
            bin.withheld.polls_left.set(POLLS_A_LIST);
        }
        self.scavenger.polls_left.set(POLLS);
        self.scavenger.are_withheld.set(true);
        self.scavenger.has_withheld.set(true);
    }

    fn withhold(&self, class: usize) {
        let withheld = &self.bins[class].withheld;
        withheld.head.set(self.take_all_listed(class));
        withheld.room.set(self.hot.list(class).room.replace(0));
    }

    /// Withholds what the list of `class` was filled with while it is withheld.
    pub(super) fn stay_withheld(&self, class: usize) {
        if self.bins[class].withheld.is_withheld() {
            self.withhold(class);
        }
    }

    /// Withholds the list of `class` again, which was too long, unless its polls are used up.
    pub(super) fn withhold_again(&self, class: usize) {
        if self.count_poll(class) && !self.bins[class].withheld.is_withheld.replace(true) {
            self.scavenger.are_withheld.set(true);
            self.withhold(class);
        }
    }

    /// Brings the list of `class`, which is empty, back.
    pub(super) fn restore(&self, class: usize) {
        let withheld = &self.bins[class].withheld;
        if withheld.is_withheld.replace(false) {
            let count = self.bins[class].base.get() - withheld.room.get();
            self.set_listed(class, withheld.head.get(), count.max(0) as usize);
            self.hot.list(class).room.set(withheld.room.get());
        }
    }

    /// Brings all lists back.
    pub(super) fn restore_lists(&self) {
        if self.scavenger.are_withheld.replace(false) {
            for class in 0..self.bins.len() {
                self.restore(class);
            }
        }
    }

    /// Answers a `malloc` that polls because the list of `class` is withheld. Null:
    /// there was no block in it.
    pub(super) fn pop_withheld(&self, class: usize) -> *mut Block {
        self.scavenge();
        self.answer(class);
        let withheld = &self.bins[class].withheld;
        if !withheld.is_withheld() {
            return self.hot.list(class).pop();
        }
        let block = withheld.head.get();
        if !block.is_null() {
            if !self.sampling.count_given(class) {
                return ptr::null_mut();
            }
            // SAFETY: a block of the list, which is free, linked and this thread's.
            withheld.head.set(unsafe { Block::next(block) });
            withheld.room.set(withheld.room.get() + 1);
        }
        block
    }

    /// Answers a `free` that polled because the list of `class` is withheld. False:
    /// the list, which is back, is too long.
    pub(super) fn push_withheld(&self, class: usize) -> bool {
        // The one block; aside, if it is to be a sample.
        let block = self.take_all_listed(class);
        let room = &self.hot.list(class).room;
        room.set(room.get() + 1);
        let withheld = &self.bins[class].withheld;
        // SAFETY: just freed, and this thread's.
        unsafe { Block::set_next(block, withheld.head.get()) };
        withheld.head.set(block);
        withheld.room.set(withheld.room.get() - 1);
        let fits = withheld.room.get() >= 0;
        if fits {
            self.scavenge();
            self.answer(class);
        } else {
            self.restore(class);
        }
        fits
    }

    /// Counts a poll; beyond those of one tick, the list comes back.
    fn answer(&self, class: usize) {
        if !self.count_poll(class) {
            self.restore(class);
        }
    }

    /// Counts a poll at the list of `class`. False: it was one too many.
    fn count_poll(&self, class: usize) -> bool {
        let (left, own) = (&self.scavenger.polls_left, &self.bins[class].withheld.polls_left);
        if let Some(fewer) = left.get().checked_sub(1) {
            left.set(fewer);
            return true;
        }
        let now = os::now_ns();
        if now.saturating_sub(self.scavenger.polled_ns.replace(now)) >= PAUSE_NS {
            own.set(POLLS_A_LIST);
        }
        let fewer = own.get().checked_sub(1);
        own.set(fewer.unwrap_or(0));
        fewer.is_some()
    }
}
