//! Withheld lists: how a quiet program is made to look after its memory.
//!
//! There is no background thread, so a thread of the program must come by for free pages to go
//! back; and a program that only allocates a little is served by its lists,
//! which look after nothing. So once a tick of the coarse clock (a few
//! milliseconds), while pages wait to go back or as soon as they do, a cache withholds its
//! lists: the fast paths find them empty and full at once, and poll at the slow ones.
//!
//! ```text
//!   list       head null, room 0      malloc finds no block, free finds no room
//!   withheld   head, count            the list's blocks
//! ```
//!
//! The first few polls at a list are answered from what is withheld ([`Withheld`]), which stays
//! withheld; later ones, of a program that is busy, get their list back. A poll that comes a pause
//! after the last one ([`Polls`]) is a quiet program's, and the count starts anew. A tick thus
//! costs a busy thread a few slow operations among millions; all operations of a quiet thread poll.
//! Lists that a busy thread leaves withheld poll at their next use.
//!
//! A thread's own cache does this for its lists, below. Its first few polls in a tick are not
//! counted at a list. Caches that threads share can poll as a whole before (`maintenance`), and
//! withhold their lists when that is over.
//!
//! Invariants: while a list is withheld, it is empty, or a slow path is just dealing with the one
//! block in it (of a shared cache: with that and what signal handlers have left). Only the thread
//! itself touches its lists, withheld or not; visitors never do. Those of a shared cache are its
//! lock's holder's.
//!
//! Called by the slow paths of `cache`, and by `maintenance`.

use core::cell::Cell;
use core::ptr;

use super::Cache;
use super::depot::DepotChain;
use crate::os;
use crate::remote::Block;

/// Polls that are answered without giving the list back, in one tick.
const POLLS: u32 = 16;
/// And as many more at each list.
const POLLS_A_LIST: u8 = 2;
/// A program that polls so late after the last time is quiet, in nanoseconds.
pub(super) const PAUSE_NS: u64 = 20_000;

/// What is put aside of a class's list while it is withheld. Zero: it is not.
pub(super) struct Withheld {
    head: Cell<*mut Block>,
    count: Cell<u32>,
    is_withheld: Cell<bool>,
    /// Polls at this list that it stays withheld for.
    pub(super) polls_left: Cell<u8>,
}

impl Withheld {
    /// Whether the list is withheld.
    pub(super) fn is_withheld(&self) -> bool {
        self.is_withheld.get()
    }

    /// How many blocks are.
    pub(super) fn count(&self) -> usize {
        self.count.get() as usize
    }

    /// Polls that the list stays withheld for; 0: it is not.
    pub(super) fn polls(&self) -> u8 {
        if self.is_withheld() { self.polls_left.get() } else { 0 }
    }

    /// From now on the list is withheld, whose blocks these are.
    pub(super) fn put(&self, chain: &DepotChain) {
        debug_assert!(self.head.get().is_null());
        self.head.set(chain.head());
        self.count.set(chain.count() as u32);
        self.is_withheld.set(true);
    }

    /// The list is withheld no more: what was in it.
    pub(super) fn take(&self) -> DepotChain {
        self.is_withheld.set(false);
        // SAFETY: what `put` was given, less what `pop` and with what `push` had; forgotten here.
        unsafe {
            DepotChain::of(self.head.replace(ptr::null_mut()), self.count.replace(0) as usize)
        }
    }

    /// The first block, which is taken out. Null: there is none.
    pub(super) fn pop(&self) -> *mut Block {
        let block = self.head.get();
        if !block.is_null() {
            // SAFETY: a block of the list, which is free, linked and the caller's.
            self.head.set(unsafe { Block::next(block) });
            self.count.set(self.count.get().saturating_sub(1));
        }
        block
    }

    /// Puts a block in, which is free and the caller's.
    fn push(&self, block: *mut Block) {
        // SAFETY: a free block, which is the caller's.
        unsafe { Block::set_next(block, self.head.get()) };
        self.head.set(block);
        self.count.set(self.count.get() + 1);
    }

    /// In a forked child: forgets the list, which may have been changing.
    pub(super) fn forget_after_fork(&self) {
        let _forgotten = self.take();
    }
}

/// How many more polls of a cache are answered in this tick, and when the last one was. Zero: none.
pub(super) struct Polls {
    pub(super) left: Cell<u32>,
    at_ns: Cell<u64>,
}

impl Polls {
    /// Nanoseconds since the last poll that was noted.
    pub(super) fn since(&self) -> u64 {
        os::now_ns().saturating_sub(self.at_ns.get())
    }

    /// Notes a poll. Returns nanoseconds since the last one.
    pub(super) fn note(&self) -> u64 {
        let since = self.since();
        self.at_ns.set(self.at_ns.get() + since);
        since
    }

    /// One less is left. False: none was.
    fn count(&self) -> bool {
        let fewer = self.left.get().checked_sub(1);
        self.left.set(fewer.unwrap_or(0));
        fewer.is_some()
    }
}

impl Cache {
    /// Withholds all lists.
    pub(super) fn withhold_all(&self) {
        if self.is_heap() {
            return;
        }
        for (class, bin) in self.bins.iter().enumerate() {
            if !bin.withheld.is_withheld() {
                self.withhold(class);
            }
            bin.withheld.polls_left.set(POLLS_A_LIST);
        }
        self.scavenger.polls.left.set(POLLS);
        self.scavenger.are_withheld.set(true);
        self.scavenger.has_withheld.set(true);
    }

    #[cold]
    #[inline(never)]
    fn withhold(&self, class: usize) {
        let count = self.listed(class);
        // SAFETY: the list's blocks; it forgets them here.
        let chain = unsafe { DepotChain::of(self.take_all_listed(class), count) };
        self.hot.list(class).room.set(0);
        self.bins[class].withheld.put(&chain);
    }

    /// Withholds what the list of `class` was filled with while it is withheld.
    pub(super) fn stay_withheld(&self, class: usize) {
        if self.bins[class].withheld.is_withheld() {
            self.withhold(class);
        }
    }

    /// Withholds the list of `class` again, which was too long, unless its polls are used up.
    pub(super) fn withhold_again(&self, class: usize) {
        if self.count_poll(class) && !self.bins[class].withheld.is_withheld() {
            self.scavenger.are_withheld.set(true);
            self.withhold(class);
        }
    }

    /// Brings the list of `class`, which is empty, back.
    pub(super) fn restore(&self, class: usize) {
        let bin = &self.bins[class];
        if bin.withheld.is_withheld() {
            let chain = bin.withheld.take();
            self.set_listed(class, chain.head(), chain.count());
            self.hot.list(class).room.set(bin.base.get() - chain.count() as i32);
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
    #[cold]
    #[inline(never)]
    pub(super) fn pop_withheld(&self, class: usize) -> *mut Block {
        self.scavenge();
        self.answer(class);
        let withheld = &self.bins[class].withheld;
        if !withheld.is_withheld() {
            return self.hot.list(class).pop();
        }
        if !withheld.head.get().is_null() && !self.sampling.count_given(class) {
            return ptr::null_mut();
        }
        withheld.pop()
    }

    /// Answers a `free` that polled because the list of `class` is withheld. False:
    /// the list, which is back, is too long.
    #[cold]
    #[inline(never)]
    pub(super) fn push_withheld(&self, class: usize) -> bool {
        // The one block; aside, if it is to be a sample.
        let block = self.take_all_listed(class);
        let room = &self.hot.list(class).room;
        room.set(room.get() + 1);
        let bin = &self.bins[class];
        bin.withheld.push(block);
        let fits = bin.withheld.count() as i32 <= bin.base.get();
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
        let (polls, own) = (&self.scavenger.polls, &self.bins[class].withheld.polls_left);
        if polls.count() {
            return true;
        }
        if polls.note() >= PAUSE_NS {
            own.set(POLLS_A_LIST);
        }
        let fewer = own.get().checked_sub(1);
        own.set(fewer.unwrap_or(0));
        fewer.is_some()
    }
}
