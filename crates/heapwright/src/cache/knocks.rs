//! Knocks: how a quiet program is made to look after caches that threads share.
//!
//! There is no background thread, so somebody must call for free pages to go back; and a
//! program that has become quiet does nothing slowly any more. So while there is something
//! to be given back, operations *knock*: they come by the slow paths, and look at the
//! clock. All of a quiet program's do, and of a busy one's a few in each tick.
//!
//! ```text
//!   no work --- a new tick, or slots that came home in this one ---> knocking
//!      ^                                                               |  ^
//!      |  a new tick, and nothing is left                              |  | a slow operation
//!      +---------------------------------------------------------------+  | after a PAUSE
//!                                                  KNOCKS without a PAUSE |  |
//!                                                                      v  |
//!                                          lists hidden, all that knock are answered
//! ```
//!
//! Where threads share caches a cache knocks as a whole: its lock is given back slowly. Per
//! CPU, the arrays are shut for both ends. When a busy program has knocked often enough,
//! the cache's lists are *hidden*, once a tick: their blocks are put aside, and what is left
//! finds no block and no room. The busy program soon has those back that it uses. The
//! others tell of the moment when it becomes quiet. (Arrays are never hidden.)
//!
//! Invariants: a list that is hidden is empty, but for what signal handlers have left, and
//! has no room; only one that is hidden has blocks aside.
//!
//! Called by `magazines`, and by `heap` on behalf of shelves that knock.

use core::ptr;

use super::central;
use super::depot::DepotChain;
use super::hot::Way;
use super::magazines::{Magazines, Shelf, chain_length, tend_all};
use crate::cache::arrays;
use crate::chunk;
use crate::options;
use crate::os;
use crate::remote::Block;
use crate::sync;

/// Operations in a row that knock before a program counts as busy.
const KNOCKS: u32 = 32;
/// Knocks at one list that it then stays hidden for.
const KNOCKS_A_LIST: u32 = 4;
/// Who knocks so late after the last time is quiet, in nanoseconds.
const PAUSE_NS: u64 = 20_000;
/// Who knocks at a hidden list so late after a busy program has knocked may be quiet.
const AGAIN_NS: u64 = 1_000_000;

/// Does what somebody who found a shelf with work knocked for, and has just unlocked it.
#[cold]
pub(crate) fn answer(shelf: &'static Shelf) {
    if shelf.try_lock() {
        // SAFETY: just locked.
        unsafe { shelf.value() }.tend();
        // SAFETY: locked above.
        unsafe { shelf.unlock() };
    }
}

/// What changes in how operations come by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// They are to knock from now on.
    Begin,
    /// No more: the program is busy.
    Enough,
    /// No more: nothing is left to be done.
    End,
}

impl Magazines {
    /// Looks after what is nobody's, once a tick of the clock. Called by slow operations,
    /// which hold this cache.
    pub(crate) fn tend(&self) {
        self.turn(self.tick());
    }

    fn turn(&self, turn: Option<Turn>) {
        let Some(turn) = turn else { return };
        let knock = turn == Turn::Begin;
        // SAFETY: all magazines are in a slot of `ALL`.
        let shelf = unsafe { Shelf::containing(self) };
        match shelf.front().way() {
            Way::Shared => {
                shelf.knock(knock);
                if turn == Turn::Enough && !self.has_hidden.replace(true) {
                    self.hide_lists();
                }
            }
            // Until then operations are slow, and this one is tried again by the next.
            _ if !arrays::divert(shelf.number(), knock) => self.knocks.set(1),
            _ => {}
        }
    }

    /// Looks at the clock. Returns what changes.
    fn tick(&self) -> Option<Turn> {
        if sync::is_interrupted() {
            return None;
        }
        let now = os::coarse_ms();
        let knocks = self.knocks.get();
        if self.now.replace(now) != now {
            self.rested.set(false);
            self.has_hidden.set(false);
            self.has_knocked.set(false);
            self.publish();
            let more = tend_all(now);
            self.knocks.set(0);
            return if more { Some(self.begin()) } else { (knocks > 0).then_some(Turn::End) };
        }
        if knocks == 0 {
            // Work that came up since the tick began: it may have been the program's last.
            // (What others write to is looked at last.)
            let is_news = !self.has_knocked.get()
                && options::purge_delay().is_some()
                && (central::has_work() || chunk::has_waiting());
            return is_news.then(|| self.begin());
        }
        let since = self.since_last_knock();
        self.knocked_ns.set(self.knocked_ns.get() + since);
        self.knocks.set(if since >= PAUSE_NS { KNOCKS } else { knocks - 1 });
        (self.knocks.get() == 0).then_some(Turn::Enough)
    }

    /// From now on operations knock.
    fn begin(&self) -> Turn {
        self.knocks.set(KNOCKS);
        self.has_knocked.set(true);
        Turn::Begin
    }

    /// Nanoseconds since the last knock.
    fn since_last_knock(&self) -> u64 {
        os::now_ns().saturating_sub(self.knocked_ns.get())
    }

    /// Hides all lists.
    #[cold]
    fn hide_lists(&self) {
        for (class, bin) in self.bins.iter().enumerate() {
            if bin.hidden.get() > 0 {
                bin.hidden.set(KNOCKS_A_LIST);
            } else {
                let chain = self.empty(class);
                self.hide(class, chain, KNOCKS_A_LIST);
            }
        }
    }

    /// Hides the list of `class`, which is empty, and keeps `chain` for it.
    fn hide(&self, class: usize, chain: DepotChain, knocks: u32) {
        let bin = &self.bins[class];
        bin.hidden_head.set(chain.head());
        bin.hidden_count.set(chain.count() as u32);
        bin.hidden.set(knocks);
        bin.base.set(0);
        self.list(class).room.set(0);
    }

    /// Takes what was in the list of `class`, if it is hidden. It is to be filled, or hidden
    /// again.
    pub(super) fn take_hidden(&self, class: usize) -> DepotChain {
        let bin = &self.bins[class];
        let head = bin.hidden_head.replace(ptr::null_mut());
        // SAFETY: what `hide` was given, and nobody has taken it since.
        unsafe { DepotChain::of(head, bin.hidden_count.replace(0) as usize) }
    }

    /// Answers a knock of who wants a block of `class`. `None`: the list is not hidden, or
    /// no more, for there is none in it.
    pub(super) fn pop_hidden(&self, class: usize) -> Option<*mut Block> {
        let knocks = self.bins[class].hidden.get();
        if knocks == 0 {
            return None;
        }
        let chain = self.take_hidden(class);
        self.fill(class, DepotChain::EMPTY);
        // (Whoever wrote to a free block may have cut the chain.)
        let first = chain.head();
        let count = chain.count().checked_sub(1).filter(|_| !first.is_null())?;
        // SAFETY: the first of a chain of free blocks that is ours.
        let head = unsafe { Block::next(first) };
        // SAFETY: the rest of that chain.
        self.put_back(class, unsafe { DepotChain::of(head, count) }, knocks - 1);
        Some(first)
    }

    /// Answers a knock of who has put a block into the list of `class`. False: it is
    /// not hidden, but too long.
    pub(super) fn push_hidden(&self, class: usize) -> bool {
        let knocks = self.bins[class].hidden.get();
        if knocks == 0 {
            return false;
        }
        let rest = self.take_hidden(class);
        // One block, and what signal handlers have left.
        let new = self.empty(class);
        let mut tail = new.head();
        for _ in 1..new.count() {
            // SAFETY: a chain of so many free blocks, which is ours.
            tail = unsafe { Block::next(tail) };
        }
        // SAFETY: the last block of the chain.
        unsafe { Block::set_next(tail, rest.head()) };
        // SAFETY: both chains are ours, and one now.
        let chain = unsafe { DepotChain::of(new.head(), new.count() + rest.count()) };
        // A list that is full is no place for more.
        let left = if chain.count() < chain_length(class) { knocks - 1 } else { 0 };
        self.put_back(class, chain, left);
        true
    }

    /// Puts back what was in a hidden list, which stays hidden for so many more knocks.
    fn put_back(&self, class: usize, chain: DepotChain, knocks: u32) {
        if knocks > 0 {
            self.hide(class, chain, knocks);
        } else {
            self.fill(class, chain);
        }
        self.tend();
        if self.knocks.get() == 0 && !sync::is_interrupted() && self.since_last_knock() >= AGAIN_NS
        {
            self.turn(Some(self.begin()));
        }
    }

    /// Hides the list of `class` again, which was empty and has been filled.
    pub(super) fn stay_hidden(&self, class: usize, knocks: u32) {
        if knocks > 0 {
            let chain = self.empty(class);
            self.hide(class, chain, knocks);
        }
    }
}
