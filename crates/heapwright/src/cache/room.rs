//! Room: how long a list may get.
//!
//! Only the cache's thread can use the blocks in a list, and a thread goes idle without notice. So
//! a list has room for a quarter of the program's blocks of its class:
//!
//! ```text
//!   out of the slabs  =  in use  +  in the list  +  in the depot
//!   room              =  a quarter of those in use, at most two chains
//! ```
//!
//! A thread that frees all its blocks takes the slow path a few times more often. Each time, three
//! quarters of the blocks in use are left. At the end its lists are empty.
//!
//! A program that uses little memory but allocates and frees much of it would take the slow path
//! all the time. So a list gets extra room for each chain that it takes back from the depot, about
//! twice as much each time. All lists share a budget for this. Each scavenger's pass ends extra
//! room.
//!
//! `out` is an estimate, and rather too low: if a cache takes a slab over, slots that are out of
//! the slab do not count. `out` is never below zero, so an error does not outlive the blocks
//! that caused it.
//!
//! Called by the slow paths of `cache`.

use core::cell::Cell;

use super::{Cache, chain_length};
use crate::size_class::{self, UNIT};

/// The lists' budget is this many bytes, plus the bytes of the slabs divided by [`SHARE`].
const BUDGET: usize = 48 << 10;
const SHARE: usize = 16;
/// The most bytes of extra room for one list.
const MOST: usize = 48 << 10;
/// A list's first extra room in blocks. They have at most [`FIRST_BYTES`], or there is only one.
const FIRST: usize = 4;
const FIRST_BYTES: usize = 8 << 10;
/// A small block counts as this many bytes, because it may be alone in its page.
const LEAST: usize = 64;

/// The bound of a class's list. If both fields are zero, the list has no room.
pub(super) struct Room {
    /// Slots out of the slabs.
    pub(super) out: Cell<i32>,
    /// The least room, in blocks. It grows with each chain that comes back from the depot.
    wanted: Cell<u32>,
}

impl Room {
    /// Counts slots that leave the slabs, or, below zero, come back.
    pub(super) fn count(&self, slots: i32) {
        self.out.set((self.out.get() + slots).max(0));
    }
}

impl Cache {
    /// How many more blocks the list may take after the `count` blocks that it is about to get.
    pub(super) fn room(&self, class: usize, count: usize) -> usize {
        let bin = &self.bins[class];
        let held = (bin.room.out.get() as usize).saturating_sub(count + bin.depot.blocks());
        let quarter = held / 4;
        quarter.max(bin.room.wanted.get() as usize).min(2 * chain_length(class))
    }

    /// Gives the empty list more room, because it takes a chain back from the depot.
    pub(super) fn grow_room(&self, class: usize) {
        let size = size_class::size(class);
        let wanted = &self.bins[class].room.wanted;
        let more = wanted.get() + (FIRST_BYTES / size).clamp(1, FIRST) as u32;
        let bytes = more as usize * size.max(LEAST);
        let total = self.room_bytes.get() + bytes;
        let fits = (wanted.get() + more) as usize * size <= MOST;
        if fits && total <= BUDGET + self.slab_count.get() * UNIT / SHARE {
            self.room_bytes.set(total);
            wanted.set(wanted.get() + more);
        }
    }

    /// Takes the extra room back. Lists that need extra room get it again.
    pub(super) fn begin_rooms_anew(&self) {
        self.room_bytes.set(0);
        for bin in &self.bins {
            bin.room.wanted.set(0);
        }
    }
}
