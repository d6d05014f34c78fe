//! A magazine: a stack of up to 126 free slots that a thread allocates from and frees into.
//!
//! ```text
//!   0       8                                                     1016
//!   | count | slot | slot | slot | .... | slot |  room for the rest |
//!             the oldest          the newest ^ count
//!
//!   pop, push   at the newest end: a slot freed just now is still in the cache
//!   refill      when empty: takes up to 63 of the store's returned slots, or of its fresh
//!               slots; the lowest lies at the newest end
//!   overflow    when full: the 63 oldest go into the store's sets, the others move down
//! ```
//!
//! A refill or an overflow leaves the magazine half full, so a thread uses the store at most once
//! in about 63 operations.
//!
//! The size is eight bytes below a kilobyte, so a thread's own magazine takes a kilobyte of whole
//! cache lines. The lock of a shared magazine adds 16 bytes. Zeroed memory is an empty magazine.
//!
//! Invariants: slots below `count` are free, and each is in one place only. Only one thread at a
//! time touches the slots: the owner of the magazine, or the holder of its lock. The count is
//! atomic, because other threads read it for statistics.
//!
//! Called by `slots` and `whole`, and by the module above for a fork.

use core::cell::UnsafeCell;
use core::ptr::NonNull;

use super::super::store::Store;
use crate::registry::common::Family;
use crate::registry::places::Place;
use crate::sync::atomic::{AtomicUsize, Ordering};

pub(super) const ROUNDS: usize = 126;
/// The number of slots that a refill or an overflow moves.
const BATCH: usize = ROUNDS / 2;

/// Free slots. The lock of a shared magazine lies before the count, in the same cache line (see
/// `registry::shared`).
#[repr(C)]
pub(super) struct Magazine {
    count: AtomicUsize,
    slots: UnsafeCell<[*mut u8; ROUNDS]>,
}

/// A thread's own magazine, padded to whole cache lines, takes a kilobyte.
const _: () = assert!(size_of::<Magazine>() == 1024 - 8);

// SAFETY: by the contracts of the unsafe methods, only the thread that holds the magazine touches
// the slots. The slots' memory is free and belongs to no other code.
unsafe impl Sync for Magazine {}
// SAFETY: the slots' memory is free and belongs to no other code, so it may go to another thread.
unsafe impl Send for Magazine {}

static MAGAZINES: Family<Magazine> = Family::new();

// SAFETY: zero is an empty magazine; safe methods only touch the count.
unsafe impl Place for Magazine {
    fn family() -> &'static Family<Self> {
        &MAGAZINES
    }
}

impl Magazine {
    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn set_count(&self, count: usize) {
        self.count.store(count, Ordering::Relaxed);
    }

    #[inline(always)]
    fn place(&self, at: usize) -> *mut *mut u8 {
        self.slots.get().cast::<*mut u8>().wrapping_add(at)
    }

    /// Removes the newest slot, if there is one.
    ///
    /// # Safety
    ///
    /// The magazine is the thread's own, or the caller holds its lock.
    #[inline(always)]
    pub(super) unsafe fn pop(&self) -> Option<NonNull<u8>> {
        let left = self.count().checked_sub(1)?;
        self.set_count(left);
        // SAFETY: the magazine is the caller's, and entries below the count are slots.
        let slot = unsafe { self.place(left).read() };
        // SAFETY: slots in magazines are not null.
        Some(unsafe { NonNull::new_unchecked(slot) })
    }

    /// Adds a slot, if there is room.
    ///
    /// # Safety
    ///
    /// As [`Magazine::pop`].
    #[inline(always)]
    pub(super) unsafe fn push(&self, slot: *mut u8) -> bool {
        let count = self.count();
        let has_room = count < ROUNDS;
        if has_room {
            // SAFETY: the magazine is the caller's, and there is room.
            unsafe { self.place(count).write(slot) };
            self.set_count(count + 1);
        }
        has_room
    }

    /// Returns the slots.
    ///
    /// # Safety
    ///
    /// As [`Magazine::pop`]; the caller makes no other reference meanwhile.
    #[expect(clippy::mut_from_ref, reason = "the magazine is the caller's, by the contract")]
    unsafe fn slots(&self) -> &mut [*mut u8; ROUNDS] {
        // SAFETY: the magazine is the caller's, which makes no other reference meanwhile.
        unsafe { &mut *self.slots.get() }
    }

    /// Takes all slots out.
    ///
    /// # Safety
    ///
    /// As [`Magazine::slots`].
    pub(super) unsafe fn take_all(&self) -> &[*mut u8] {
        let count = self.count();
        self.set_count(0);
        // SAFETY: the magazine is the caller's, and the slice is the only reference to its slots.
        unsafe { &self.slots()[..count] }
    }

    /// Fills the empty magazine and removes a slot. `None` if the store has no slot.
    ///
    /// # Safety
    ///
    /// As [`Magazine::slots`].
    pub(super) unsafe fn refill(&self, store: &mut Store) -> Option<NonNull<u8>> {
        // SAFETY: the magazine is the caller's, and this is the only reference to its slots.
        let slots = unsafe { self.slots() };
        let mut count = store.take(&mut slots[..BATCH]);
        if count == 0 {
            // Takes fresh slots of one segment, so that the lowest is on top.
            while count < BATCH {
                let slot = if count == 0 { store.fresh_or_grow() } else { store.fresh() };
                if slot.is_null() {
                    break;
                }
                slots[count] = slot;
                count += 1;
            }
            slots[..count].reverse();
        }
        self.set_count(count);
        // SAFETY: the magazine is the caller's, and `slots` is not used any more.
        unsafe { self.pop() }
    }

    /// Moves half of the full magazine to the store and adds a slot.
    ///
    /// # Safety
    ///
    /// As [`Magazine::slots`].
    pub(super) unsafe fn overflow(&self, store: &mut Store, slot: *mut u8) {
        // SAFETY: the magazine is the caller's, and this is the only reference to its slots.
        let slots = unsafe { self.slots() };
        // The oldest slots leave.
        store.put(&slots[..BATCH]);
        slots.copy_within(BATCH.., 0);
        slots[ROUNDS - BATCH] = slot;
        self.set_count(ROUNDS - BATCH + 1);
    }
}
