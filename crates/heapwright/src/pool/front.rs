//! The front of a pool: a stack of free slots. The slot freed last is handed out next.
//!
//! ```text
//!   | count | slot | slot | ... | slot |  room for the rest |     128 slots
//!             oldest       newest ^ count
//!
//!   pop, push   at the newest end: a slot freed just now is still in the cache
//!   refill      when empty: takes the 65 lowest returned slots; the lowest is handed out
//!   overflow    when full: the 64 oldest go into the store's sets
//! ```
//!
//! A stack of free slots stays in the processor's cache, but scatters new objects after frees in
//! random order. Sets of bits keep live objects dense, but cost more. The front combines both.
//!
//! Invariants: entries below `count` are free slots of the store. None is null, and no slot is
//! there twice. The store counts these slots as out.
//!
//! Called by `raw`.

use core::ptr::{self, NonNull};

use super::store::Store;

const ROOM: usize = 2 * BATCH;
/// The number of slots that an overflow moves, and that a refill leaves.
const BATCH: usize = 64;

pub(super) struct Front {
    count: usize,
    slots: [*mut u8; ROOM],
}

impl Front {
    pub(super) const EMPTY: Self = Self { count: 0, slots: [ptr::null_mut(); ROOM] };

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<NonNull<u8>> {
        self.count = self.count.checked_sub(1)?;
        // SAFETY: `count` was at most the length, and above 0.
        let slot = unsafe { *self.slots.get_unchecked(self.count) };
        // SAFETY: slots below `count` are not null.
        Some(unsafe { NonNull::new_unchecked(slot) })
    }

    /// Adds a slot. False if the front is full.
    ///
    /// # Safety
    ///
    /// The slot is free, belongs to the store, and is in no front.
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

    /// Fills the empty front and removes the lowest slot. The store must have returned slots.
    pub(super) fn refill(&mut self, store: &mut Store) -> *mut u8 {
        self.count = store.take(&mut self.slots[..=BATCH]) - 1;
        self.slots[self.count]
    }

    /// Moves half of the full front to the sets and adds a slot.
    ///
    /// # Safety
    ///
    /// The slot is free, belongs to the store, and is in no front.
    pub(super) unsafe fn overflow(&mut self, store: &mut Store, slot: *mut u8) {
        store.put(&self.slots[..BATCH]);
        self.slots.copy_within(BATCH.., 0);
        self.slots[ROOM - BATCH] = slot;
        self.count = ROOM - BATCH + 1;
    }

    /// Moves all slots to the store's sets and closes its frontier.
    pub(super) fn empty(&mut self, store: &mut Store) {
        store.put(&self.slots[..self.count]);
        self.count = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }
}
