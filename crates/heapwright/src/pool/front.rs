//! The front of a pool: a stack of free slots; a slot that is freed is handed out next.
//!
//! ```text
//!   | count | slot | slot | ... | slot |  room for the rest |     128 slots
//!             oldest       newest ^ count
//!
//!   pop, push   at the newest end: what was just destroyed is still in the cache
//!   refill      empty: the 64 lowest of the store's returned slots, the lowest on top
//!   overflow    full: the 64 oldest go into the store's sets
//! ```
//!
//! A stack of free slots is in the processor's cache, but after objects died in random order it is
//! in random order too, and objects made one after another lie anywhere. Sets of bits give the
//! lowest slot, so that live objects draw together, but an operation costs more. This is both:
//! short, in the cache, and refilled from the sets. A list through the free slots, an array of all
//! of them, and the sets alone lost to it: docs/pools.md.
//!
//! Invariants: below `count`, slots are free slots of the store's, not null, each there
//! once; the store thinks that they are out.
//!
//! Called by `raw`.

use core::ptr::{self, NonNull};

use super::store::Store;

/// Slots it has room for.
const ROOM: usize = 2 * BATCH;
/// Slots that go to the sets, or come from them, at a time.
const BATCH: usize = 64;

/// A short stack of free slots.
pub(super) struct Front {
    count: usize,
    slots: [*mut u8; ROOM],
}

impl Front {
    /// A front that holds nothing.
    pub(super) const EMPTY: Self = Self { count: 0, slots: [ptr::null_mut(); ROOM] };

    /// The slot that came last, if it holds any.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<NonNull<u8>> {
        self.count = self.count.checked_sub(1)?;
        // SAFETY: `count` was at most the length, and above 0.
        let slot = unsafe { *self.slots.get_unchecked(self.count) };
        // SAFETY: slots below `count` are not null.
        Some(unsafe { NonNull::new_unchecked(slot) })
    }

    /// Keeps a slot. False: it is full.
    ///
    /// # Safety
    ///
    /// The slot is free, the store's, and in no front.
    #[inline(always)]
    pub(super) unsafe fn push(&mut self, slot: *mut u8) -> bool {
        if self.count >= ROOM {
            return false;
        }
        // SAFETY: `count` is below the length.
        unsafe { *self.slots.get_unchecked_mut(self.count) = slot };
        self.count += 1;
        true
    }

    /// Fills it, which is empty, with returned slots, and takes the lowest; there are some.
    pub(super) fn refill(&mut self, store: &mut Store) -> *mut u8 {
        self.count = store.take(&mut self.slots[..=BATCH]) - 1;
        self.slots[self.count]
    }

    /// Makes room in it, which is full, and keeps a slot.
    ///
    /// # Safety
    ///
    /// The slot is free, the store's, and in no front.
    pub(super) unsafe fn overflow(&mut self, store: &mut Store, slot: *mut u8) {
        store.put(&self.slots[..BATCH]);
        self.slots.copy_within(BATCH.., 0);
        self.slots[ROOM - BATCH] = slot;
        self.count = ROOM - BATCH + 1;
    }

    /// Puts all into the store's sets, and closes its frontier.
    pub(super) fn empty(&mut self, store: &mut Store) {
        store.put(&self.slots[..self.count]);
        self.count = 0;
    }

    /// How many it holds.
    pub(super) fn len(&self) -> usize {
        self.count
    }
}
