//! Room: how long a list may get.
//!
//! What lies in a list nobody but its thread can reach. A thread that goes idle
//! should leave little there, and nothing announces that it is about to. So a
//! list has room for a quarter of what the program holds of its class:
//!
//! ```text
//!   out of the slabs  =  the program's  +  in the list  +  in the depot
//!   room              =  a quarter of the program's, at most two chains
//! ```
//!
//! A thread that frees all it has comes by the slow path a few times more often
//! on the way (each time three quarters are left), and its lists are empty at
//! the end: what was in them is in the depot or the slabs, where others can
//! look after it.
//!
//! A program that holds little but allocates and frees much of it would come by
//! all the time. It is known by chains that are wanted back from the depot. For
//! each, the list gets *more* room, twice as much each time, from a budget that
//! all lists share. With each pass of the scavenger all begin anew.
//!
//! `out` is an estimate, and rather too low: the slots that are out of a slab
//! when it is taken over are no longer counted, because some may lie in the list
//! of the cache that it is taken from, for ever. It is never below zero, so an
//! error does not outlive the blocks it is about.
//!
//! Called by the slow paths of `cache`.

use core::cell::Cell;

use super::{Cache, chain_length};
use crate::size_class::{self, UNIT};

/// What the lists share, in bytes: at least, and one of so many bytes of slabs.
const BUDGET: usize = 48 << 10;
const SHARE: usize = 16;
/// The most that one list is given, in bytes.
const MOST: usize = 48 << 10;
/// What a list is given more at first: blocks, and not above so many bytes of them, but for one.
const FIRST: usize = 4;
const FIRST_BYTES: usize = 8 << 10;
/// What a small block counts for, since it may be alone in its page.
const LEAST: usize = 64;

/// What a class's list may hold. Zero is nothing.
pub(super) struct Room {
    /// Slots out of the slabs.
    pub(super) out: Cell<i32>,
    /// Blocks that were wanted back.
    wanted: Cell<u32>,
}

impl Room {
    /// Counts slots that leave the slabs, or come back.
    pub(super) fn count(&self, slots: i32) {
        self.out.set((self.out.get() + slots).max(0));
    }
}

impl Cache {
    /// How many more blocks the list of `class` may take that is about to be
    /// filled with `count`.
    pub(super) fn room(&self, class: usize, count: usize) -> usize {
        let bin = &self.bins[class];
        let held = (bin.room.out.get() as usize).saturating_sub(count + bin.depot.blocks());
        let quarter = held / 4;
        quarter.max(bin.room.wanted.get() as usize).min(2 * chain_length(class))
    }

    /// A chain was wanted back: the list of `class`, which is empty, gets more room.
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

    /// Takes back what the lists were given. Those that need it get it again.
    pub(super) fn begin_rooms_anew(&self) {
        self.room_bytes.set(0);
        for bin in &self.bins {
            bin.room.wanted.set(0);
        }
    }
}
