//! Hidden lists: how a quiet program is made to look after its memory.
//!
//! There is no background thread, so somebody must call for free pages to go
//! back; and a program that only allocates a little is served by its lists,
//! which look after nothing. So once a tick of the coarse clock (a few
//! milliseconds), while pages wait to go back or as soon as they do, a cache hides its
//! lists: the fast paths find them empty and full at once, and knock at the slow ones.
//!
//! ```text
//!   list     head null, room 0      malloc finds no block, free finds no room
//!   hidden   head, room             as the list would be
//! ```
//!
//! The first few knocks, and the first few at each list, are answered from the hidden
//! lists, which stay hidden; later ones, of a program that is busy, get their list back.
//! Those that come after a pause always are first ones. So a tick costs a busy thread some
//! slow operations in millions, and a quiet one has all of them looked at. What a busy one
//! leaves hidden tells of the moment when it becomes quiet.
//!
//! Invariants: while a list is hidden, it is empty, or a slow path is just
//! dealing with the one block in it. Only the thread itself touches its lists,
//! hidden or not; visitors never do.
//!
//! Called by the slow paths of `cache`.

use core::cell::Cell;
use core::ptr;

use super::{Cache, Use};
use crate::os;
use crate::remote::Block;

/// Knocks that are answered without giving the list back, in one tick.
const KNOCKS: u32 = 16;
/// And as many more at each list.
const KNOCKS_A_LIST: u8 = 2;
/// Who knocks so late after the last time is quiet, in nanoseconds.
const PAUSE_NS: u64 = 20_000;

/// A class's list while it is hidden. Zero is: it is not.
pub(super) struct Hidden {
    head: Cell<*mut Block>,
    room: Cell<i32>,
    is_hidden: Cell<bool>,
    /// Knocks at this list that it stays hidden for, when those for all are used up.
    knocks_left: Cell<u8>,
}

impl Hidden {
    /// Whether the list is hidden.
    pub(super) fn is_hidden(&self) -> bool {
        self.is_hidden.get()
    }

    /// In a forked child: forgets the list, which may have been changing.
    pub(super) fn forget_after_fork(&self) {
        self.is_hidden.set(false);
    }

    /// The list's room.
    pub(super) fn room(&self) -> i32 {
        self.room.get()
    }
}

impl Cache {
    /// Hides all lists.
    pub(super) fn hide_all(&self) {
        if self.owned_by() == Use::Heap {
            return;
        }
        for (class, bin) in self.bins.iter().enumerate() {
            if !bin.hidden.is_hidden.replace(true) {
                self.hide(class);
            }
            bin.hidden.knocks_left.set(KNOCKS_A_LIST);
        }
        self.scavenger.knocks_left.set(KNOCKS);
        self.scavenger.are_hidden.set(true);
        self.scavenger.has_hidden.set(true);
    }

    fn hide(&self, class: usize) {
        let (hidden, list) = (&self.bins[class].hidden, self.hot.list(class));
        hidden.head.set(list.head.replace(ptr::null_mut()));
        hidden.room.set(list.room.replace(0));
    }

    /// Hides what the list of `class` was filled with while it is hidden.
    pub(super) fn stay_hidden(&self, class: usize) {
        if self.bins[class].hidden.is_hidden() {
            self.hide(class);
        }
    }

    /// Hides the list of `class` again, which was too long, unless its knocks are used up.
    pub(super) fn hide_again(&self, class: usize) {
        if self.count_knock(class) && !self.bins[class].hidden.is_hidden.replace(true) {
            self.scavenger.are_hidden.set(true);
            self.hide(class);
        }
    }

    /// Brings the list of `class`, which is empty, back.
    pub(super) fn unhide(&self, class: usize) {
        let hidden = &self.bins[class].hidden;
        if hidden.is_hidden.replace(false) {
            let list = self.hot.list(class);
            debug_assert!(list.head.get().is_null());
            list.head.set(hidden.head.get());
            list.room.set(hidden.room.get());
        }
    }

    /// Brings all lists back.
    pub(super) fn unhide_all(&self) {
        if self.scavenger.are_hidden.replace(false) {
            for class in 0..self.bins.len() {
                self.unhide(class);
            }
        }
    }

    /// Answers a `malloc` that knocks because the list of `class` is hidden. Null:
    /// there was no block in it.
    pub(super) fn pop_hidden(&self, class: usize) -> *mut Block {
        self.scavenge();
        self.answer(class);
        let hidden = &self.bins[class].hidden;
        if !hidden.is_hidden() {
            return self.hot.list(class).pop();
        }
        let block = hidden.head.get();
        if !block.is_null() {
            // SAFETY: a block of the list, which is free, linked and this thread's.
            hidden.head.set(unsafe { Block::next(block) });
            hidden.room.set(hidden.room.get() + 1);
        }
        block
    }

    /// Answers a `free` that knocked because the list of `class` is hidden. False:
    /// the list, which is back, is too long.
    pub(super) fn push_hidden(&self, class: usize) -> bool {
        let block = self.hot.list(class).pop();
        let hidden = &self.bins[class].hidden;
        // SAFETY: just freed, and this thread's.
        unsafe { Block::set_next(block, hidden.head.get()) };
        hidden.head.set(block);
        hidden.room.set(hidden.room.get() - 1);
        let fits = hidden.room.get() >= 0;
        if fits {
            self.scavenge();
            self.answer(class);
        } else {
            self.unhide(class);
        }
        fits
    }

    /// Counts a knock; beyond those of one tick, the list comes back.
    fn answer(&self, class: usize) {
        if !self.count_knock(class) {
            self.unhide(class);
        }
    }

    /// Counts a knock at the list of `class`. False: it was one too many.
    fn count_knock(&self, class: usize) -> bool {
        let (left, own) = (&self.scavenger.knocks_left, &self.bins[class].hidden.knocks_left);
        if let Some(fewer) = left.get().checked_sub(1) {
            left.set(fewer);
            return true;
        }
        let now = os::now_ns();
        if now.saturating_sub(self.scavenger.knocked_ns.replace(now)) >= PAUSE_NS {
            own.set(KNOCKS_A_LIST);
        }
        let fewer = own.get().checked_sub(1);
        own.set(fewer.unwrap_or(0));
        fewer.is_some()
    }
}
