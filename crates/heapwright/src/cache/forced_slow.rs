//! Forced-slow lists bring a quiet program to the slow paths, which look after its memory.
//!
//! There is no background thread, and the lists alone serve a program that allocates little. So a
//! cache forces its lists slow when pages begin to wait to go back, and then once a tick (a few
//! milliseconds). A forced-slow list is both empty and full for the fast paths, so each call
//! *polls*: it reaches a slow path.
//!
//! ```text
//!   list          head null, room 0      malloc finds no block, free finds no room
//!   forced slow   head, count            the list's blocks, which are kept back
//! ```
//!
//! The blocks that are kept back ([`ForcedSlow`]) serve the first few polls at a list. More polls
//! show that the program is busy. Then the list gets its blocks back. A poll after a pause
//! ([`Polls`]) comes from a quiet program, so the count starts anew. So a tick costs a busy thread
//! a few slow operations, and a quiet thread polls with each operation. A list that a busy thread
//! does not use stays forced slow, so its next use polls.
//!
//! The first few polls of a thread's own cache in a tick count for no list. A shared cache polls as
//! a whole (`maintenance`) before its lists are forced slow.
//!
//! Invariants: a forced-slow list is empty, or a slow path is handling the one block in it. (A
//! shared cache's list may also have blocks that signal handlers left.) Visitors never touch lists.
//!
//! Called by the slow paths of `cache`, and by `maintenance`.

use core::cell::Cell;
use core::ptr;

use super::Cache;
use super::depot::DepotChain;
use crate::os;
use crate::remote::Block;

/// Polls of a cache in one tick that restore no list.
const POLLS: u32 = 16;
/// Further polls at each list.
const POLLS_A_LIST: u8 = 2;
/// A program is quiet if it polls at least this many nanoseconds after its last poll.
pub(super) const PAUSE_NS: u64 = 20_000;

/// The blocks of a forced-slow list. If all fields are zero, the list is not forced slow.
pub(super) struct ForcedSlow {
    head: Cell<*mut Block>,
    count: Cell<u32>,
    is_on: Cell<bool>,
    pub(super) polls_left: Cell<u8>,
}

impl ForcedSlow {
    pub(super) fn is_on(&self) -> bool {
        self.is_on.get()
    }

    pub(super) fn count(&self) -> usize {
        self.count.get() as usize
    }

    /// For how many more polls the list stays forced slow. 0 if it is not forced slow.
    pub(super) fn polls(&self) -> u8 {
        if self.is_on() { self.polls_left.get() } else { 0 }
    }

    /// Forces the list slow, with the blocks of `chain`.
    pub(super) fn put(&self, chain: &DepotChain) {
        debug_assert!(self.head.get().is_null());
        self.head.set(chain.head());
        self.count.set(chain.count() as u32);
        self.is_on.set(true);
    }

    pub(super) fn take(&self) -> DepotChain {
        self.is_on.set(false);
        // SAFETY: the blocks that `put` and `push` added and `pop` left. The list forgets them.
        unsafe {
            DepotChain::of(self.head.replace(ptr::null_mut()), self.count.replace(0) as usize)
        }
    }

    /// Returns null if there is no block.
    pub(super) fn pop(&self) -> *mut Block {
        let block = self.head.get();
        if !block.is_null() {
            // SAFETY: a block of the list, which is free, linked and the caller's.
            self.head.set(unsafe { Block::next(block) });
            self.count.set(self.count.get().saturating_sub(1));
        }
        block
    }

    /// The block must be free and the caller's.
    fn push(&self, block: *mut Block) {
        // SAFETY: a free block, which is the caller's.
        unsafe { Block::set_next(block, self.head.get()) };
        self.head.set(block);
        self.count.set(self.count.get() + 1);
    }

    /// For a forked child: the list may have been changing.
    pub(super) fn forget_after_fork(&self) {
        let _forgotten = self.take();
    }
}

/// A cache's polls that are left in this tick, and the time of the last noted poll.
pub(super) struct Polls {
    pub(super) left: Cell<u32>,
    at_ns: Cell<u64>,
}

impl Polls {
    /// Nanoseconds since the last noted poll.
    pub(super) fn since(&self) -> u64 {
        os::now_ns().saturating_sub(self.at_ns.get())
    }

    pub(super) fn note(&self) -> u64 {
        let since = self.since();
        self.at_ns.set(self.at_ns.get() + since);
        since
    }

    /// Returns false if none was left.
    fn count(&self) -> bool {
        let fewer = self.left.get().checked_sub(1);
        self.left.set(fewer.unwrap_or(0));
        fewer.is_some()
    }
}

impl Cache {
    pub(super) fn force_all_slow(&self) {
        if self.is_heap() {
            return;
        }
        for (class, bin) in self.bins.iter().enumerate() {
            if !bin.forced_slow.is_on() {
                self.force_slow(class);
            }
            bin.forced_slow.polls_left.set(POLLS_A_LIST);
        }
        self.scavenger.polls.left.set(POLLS);
        self.scavenger.are_forced_slow.set(true);
        self.scavenger.has_forced_slow.set(true);
    }

    #[cold]
    #[inline(never)]
    fn force_slow(&self, class: usize) {
        let count = self.listed(class);
        // SAFETY: the list's blocks, which the list forgets here.
        let chain = unsafe { DepotChain::of(self.take_all_listed(class), count) };
        self.hot.list(class).room.set(0);
        self.bins[class].forced_slow.put(&chain);
    }

    /// Keeps new blocks in the list of `class` back.
    pub(super) fn stay_forced_slow(&self, class: usize) {
        if self.bins[class].forced_slow.is_on() {
            self.force_slow(class);
        }
    }

    /// Forces the list, which was too long, slow again, unless its polls are used up.
    pub(super) fn force_slow_again(&self, class: usize) {
        if self.count_poll(class) && !self.bins[class].forced_slow.is_on() {
            self.scavenger.are_forced_slow.set(true);
            self.force_slow(class);
        }
    }

    /// Ends the forced-slow state of the list of `class`, which is empty.
    pub(super) fn restore(&self, class: usize) {
        let bin = &self.bins[class];
        if bin.forced_slow.is_on() {
            let chain = bin.forced_slow.take();
            self.set_listed(class, chain.head(), chain.count());
            self.hot.list(class).room.set(bin.base.get() - chain.count() as i32);
        }
    }

    pub(super) fn restore_lists(&self) {
        if self.scavenger.are_forced_slow.replace(false) {
            for class in 0..self.bins.len() {
                self.restore(class);
            }
        }
    }

    /// Answers a `malloc` that polls. Returns null if the list has no block, or a sample is due.
    #[cold]
    #[inline(never)]
    pub(super) fn pop_forced_slow(&self, class: usize) -> *mut Block {
        self.scavenge();
        self.answer(class);
        let forced_slow = &self.bins[class].forced_slow;
        if !forced_slow.is_on() {
            return self.hot.list(class).pop();
        }
        if !forced_slow.head.get().is_null() && !self.sampling.count_given(class) {
            return ptr::null_mut();
        }
        forced_slow.pop()
    }

    /// Answers a `free` that polls. Returns false if the list is restored, and too long.
    #[cold]
    #[inline(never)]
    pub(super) fn push_forced_slow(&self, class: usize) -> bool {
        // The list has only the freed block. It is aside if it is due (`sampling`).
        let block = self.take_all_listed(class);
        let room = &self.hot.list(class).room;
        room.set(room.get() + 1);
        let bin = &self.bins[class];
        bin.forced_slow.push(block);
        let fits = bin.forced_slow.count() as i32 <= bin.base.get();
        if fits {
            self.scavenge();
            self.answer(class);
        } else {
            self.restore(class);
        }
        fits
    }

    /// Counts a poll. Restores the list if the tick's polls are used up.
    fn answer(&self, class: usize) {
        if !self.count_poll(class) {
            self.restore(class);
        }
    }

    /// Returns false if the polls were used up.
    fn count_poll(&self, class: usize) -> bool {
        let (polls, own) = (&self.scavenger.polls, &self.bins[class].forced_slow.polls_left);
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
