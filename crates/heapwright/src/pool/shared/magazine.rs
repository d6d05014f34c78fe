//! A magazine: the free slots that a thread takes from and gives to.
//!
//! ```text
//!   0       8                                                     1016
//!   | count | slot | slot | slot | .... | slot |  room for the rest |
//!             the oldest          the newest ^ count
//!
//!   pop, push   at the newest end: what was just destroyed is still in the cache
//!   refill      empty: up to 63 of the store's returned slots, or of its fresh ones, the
//!               lowest at the newest end
//!   overflow    full: the 63 oldest go into the store's sets, the others move down
//! ```
//!
//! A refill leaves it half full and an overflow half empty, so a thread that goes up and
//! down around either end meets the store once in 63 operations.
//!
//! Eight bytes short of a kilobyte: without a lock it fills whole lines, a power of two. Zero is
//! an empty one, so its memory need not be written before it is used.
//!
//! Invariants: below `count`, slots are free memory of the owner's, each in one place only.
//! Which thread may touch the slots is said from outside (one thread's own, else a lock is
//! held); the count is an atomic, for sums of what waits in other magazines.
//!
//! Called by `slots`; across a fork, by the module above.

use core::cell::UnsafeCell;
use core::ptr::NonNull;

use super::super::store::Store;
use crate::registry::common::Family;
use crate::registry::places::Place;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Slots a magazine has room for.
pub(super) const ROUNDS: usize = 126;
/// Slots that go to the store, or come from it, at a time.
const BATCH: usize = ROUNDS / 2;

/// Free slots. Zero is an empty one.
///
/// One thread's own, or behind a lock that begins its first line (see `registry::shared`).
#[repr(C)]
pub(super) struct Magazine {
    /// Written by the thread that is in it; read by any that counts.
    count: AtomicUsize,
    slots: UnsafeCell<[*mut u8; ROUNDS]>,
}

/// Without a lock it fills whole lines, a power of two.
const _: () = assert!(size_of::<Magazine>() == 1024 - 8);

// SAFETY: the slots are touched by the thread that is in it alone, by the contracts of
// unsafe methods; they lead to free memory that is nobody else's.
unsafe impl Sync for Magazine {}
// SAFETY: the slots lead to free memory that is nobody else's, so they may go to another thread.
unsafe impl Send for Magazine {}

/// Magazines that threads share, of all pools.
static MAGAZINES: Family<Magazine> = Family::new();

// SAFETY: zero is an empty one; safe methods touch the count alone.
unsafe impl Place for Magazine {
    fn family() -> &'static Family<Self> {
        &MAGAZINES
    }
}

impl Magazine {
    /// Slots in it, as any thread may ask.
    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn set_count(&self, count: usize) {
        self.count.store(count, Ordering::Relaxed);
    }

    /// The place of a slot.
    #[inline(always)]
    fn place(&self, at: usize) -> *mut *mut u8 {
        self.slots.get().cast::<*mut u8>().wrapping_add(at)
    }

    /// Takes the slot that came last, if there is one.
    ///
    /// # Safety
    ///
    /// The caller is in it: it is the thread's own, or the caller holds its lock.
    #[inline(always)]
    pub(super) unsafe fn pop(&self) -> Option<NonNull<u8>> {
        let left = self.count().checked_sub(1)?;
        self.set_count(left);
        // SAFETY: the magazine is the caller's; below the count, so a slot is there.
        let slot = unsafe { self.place(left).read() };
        // SAFETY: slots in magazines are not null.
        Some(unsafe { NonNull::new_unchecked(slot) })
    }

    /// Puts a slot in, if there is room.
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

    /// The slots.
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
        // SAFETY: the magazine is the caller's, and the slice the only reference from it.
        unsafe { &self.slots()[..count] }
    }

    /// Fills it, which is empty, and takes a slot. `None`: there is none to be had.
    ///
    /// # Safety
    ///
    /// As [`Magazine::slots`].
    pub(super) unsafe fn refill(&self, store: &mut Store) -> Option<NonNull<u8>> {
        // SAFETY: the magazine is the caller's, and this the only reference from it.
        let slots = unsafe { self.slots() };
        let mut count = store.take(&mut slots[..BATCH]);
        if count == 0 {
            // Fresh ones, of one segment, the lowest on top.
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
        // SAFETY: the magazine is the caller's, and the reference into it is used no more.
        unsafe { self.pop() }
    }

    /// Makes room in it, which is full, and puts a slot in.
    ///
    /// # Safety
    ///
    /// As [`Magazine::slots`].
    pub(super) unsafe fn overflow(&self, store: &mut Store, slot: *mut u8) {
        // SAFETY: the magazine is the caller's, and this the only reference from it.
        let slots = unsafe { self.slots() };
        // Those that have been there longest.
        store.put(&slots[..BATCH]);
        slots.copy_within(BATCH.., 0);
        slots[ROUNDS - BATCH] = slot;
        self.set_count(ROUNDS - BATCH + 1);
    }
}
