//! The front of a pool: where a slot goes that comes back, and comes from next.
//!
//! ```text
//!              free slots are kept in              a slot that comes back
//!   Magazine   128 pointers; the rest as bits      is next; the 129th pushes 64 into the sets
//!   Linked     the slots' own first words          is next
//!   Stack      an array of pointers                is next
//!   Bitmap     bits                                is next if it is the lowest
//! ```
//!
//! A stack of free slots is hot: what was just destroyed is in the cache. But
//! after objects died in random order it is in random order too, and objects
//! made one after another lie anywhere. A bitmap gives the lowest slot, so that
//! live objects draw together, but an operation costs more. [`Magazine`] is
//! both: short and hot, refilled from the bitmap. `ci/pools.sh` measures the
//! four against each other; docs/pools.md has the table.
//!
//! A front holds slots that its store thinks are out. It never fails: a front
//! that is full says so, and the slots go into the store's sets.

use core::ptr::{self, NonNull};

use crate::chunk::Side;

/// Slots that a refill takes out of the sets at a time.
pub(super) const REFILL: usize = 64;

/// Where a pool keeps the slots that come back: [`Magazine`], [`Linked`],
/// [`Stack`] or [`Bitmap`]. The default is the winner of the measurements.
///
/// Sealed: a front must keep what the store entrusts to it.
pub trait FreeList: sealed::Front {}

pub(super) mod sealed {
    use core::ptr::NonNull;

    /// What a pool asks of its front.
    pub trait Front: Sized {
        /// A front that holds nothing.
        const EMPTY: Self;
        /// Whether the first word of free slots is the front's.
        const LINKS: bool;
        /// How many slots it wants at a refill, besides the one that is needed.
        const REFILL: usize;

        /// A slot, if it holds any.
        fn pop(&mut self) -> Option<NonNull<u8>>;

        /// Keeps a slot. False: it is full.
        ///
        /// # Safety
        ///
        /// The slot is free, the store's, and in no front; where
        /// [`Front::LINKS`], it has room for a word at a word's alignment.
        unsafe fn push(&mut self, slot: *mut u8) -> bool;

        /// Keeps these, at most [`Front::REFILL`], the last on top. It is empty. Returns
        /// how many it has no room for: the first so many.
        fn refill(&mut self, slots: &[*mut u8]) -> usize {
            let refused = slots.len().saturating_sub(self.room());
            for &slot in &slots[refused..] {
                // SAFETY: by the contract of `push`, which is this one's too.
                let kept = unsafe { self.push(slot) };
                debug_assert!(kept);
            }
            refused
        }

        /// Slots it has room for.
        fn room(&self) -> usize {
            usize::MAX
        }

        /// Takes slots out, into the start of `out`: those that have been there
        /// longest if it can tell, else the next. Returns how many; 0: there are none.
        fn spill(&mut self, out: &mut [*mut u8]) -> usize {
            let mut count = 0;
            while count < out.len()
                && let Some(slot) = self.pop()
            {
                out[count] = slot.as_ptr();
                count += 1;
            }
            count
        }

        /// How many it holds. May take time in proportion.
        fn len(&self) -> usize;

        /// Makes room for all slots of the pool, `capacity` of them, where it must, and
        /// where there is memory for that.
        fn reserve(&mut self, _capacity: usize) {}

        /// Gives its memory back. It holds nothing.
        fn end(&mut self);
    }
}

use sealed::Front;

/// A short stack of slots, hot in the cache; behind it, the sets, lowest first.
///
/// The default: as fast as a stack for what comes and goes, and objects that
/// are made in a row after any disorder lie in a row.
pub struct Magazine {
    count: usize,
    slots: [*mut u8; Magazine::ROUNDS],
}

impl Magazine {
    /// Slots it has room for.
    const ROUNDS: usize = 2 * REFILL;
}

impl FreeList for Magazine {}

impl Front for Magazine {
    const EMPTY: Self = Self { count: 0, slots: [ptr::null_mut(); Self::ROUNDS] };
    const LINKS: bool = false;
    const REFILL: usize = REFILL;

    #[inline(always)]
    fn pop(&mut self) -> Option<NonNull<u8>> {
        self.count = self.count.checked_sub(1)?;
        // SAFETY: `count` was at most the length, and above 0.
        let slot = unsafe { *self.slots.get_unchecked(self.count) };
        // SAFETY: slots are not null.
        Some(unsafe { NonNull::new_unchecked(slot) })
    }

    #[inline(always)]
    unsafe fn push(&mut self, slot: *mut u8) -> bool {
        if self.count >= Self::ROUNDS {
            return false;
        }
        // SAFETY: checked above.
        unsafe { *self.slots.get_unchecked_mut(self.count) = slot };
        self.count += 1;
        true
    }

    fn refill(&mut self, slots: &[*mut u8]) -> usize {
        self.slots[..slots.len()].copy_from_slice(slots);
        self.count = slots.len();
        0
    }

    fn spill(&mut self, out: &mut [*mut u8]) -> usize {
        let count = out.len().min(self.count);
        out[..count].copy_from_slice(&self.slots[..count]);
        self.slots.copy_within(count..self.count, 0);
        self.count -= count;
        count
    }

    fn len(&self) -> usize {
        self.count
    }

    fn end(&mut self) {}
}

/// A list through the free slots themselves, as Zig's `MemoryPool` has it.
///
/// No memory beside the slots; but a slot is at least a word, destroyed objects
/// are written to, and no page of free slots goes back before a trim.
pub struct Linked {
    head: *mut u8,
}

impl FreeList for Linked {}

impl Front for Linked {
    const EMPTY: Self = Self { head: ptr::null_mut() };
    const LINKS: bool = true;
    const REFILL: usize = REFILL;

    #[inline(always)]
    fn pop(&mut self) -> Option<NonNull<u8>> {
        let slot = NonNull::new(self.head)?;
        // SAFETY: a free slot of ours, whose first word `push` wrote.
        self.head = unsafe { slot.cast::<*mut u8>().read() };
        Some(slot)
    }

    #[inline(always)]
    unsafe fn push(&mut self, slot: *mut u8) -> bool {
        // SAFETY: by the contract the slot is free and has room for a word.
        unsafe { slot.cast::<*mut u8>().write(self.head) };
        self.head = slot;
        true
    }

    fn len(&self) -> usize {
        let mut count = 0;
        let mut at = self.head;
        while !at.is_null() {
            count += 1;
            // SAFETY: a free slot of ours, whose first word `push` wrote.
            at = unsafe { at.cast::<*mut u8>().read() };
        }
        count
    }

    fn end(&mut self) {}
}

/// An array of pointers to all free slots.
///
/// A word of memory beside each slot, in use or free; where there is none, free slots
/// become bits.
pub struct Stack {
    count: usize,
    room: usize,
    slots: *mut *mut u8,
    side: Option<Side>,
}

impl FreeList for Stack {}

impl Front for Stack {
    const EMPTY: Self = Self { count: 0, room: 0, slots: ptr::null_mut(), side: None };
    const LINKS: bool = false;
    const REFILL: usize = REFILL;

    #[inline(always)]
    fn pop(&mut self) -> Option<NonNull<u8>> {
        self.count = self.count.checked_sub(1)?;
        // SAFETY: below `count`, which is at most the array's length.
        let slot = unsafe { self.slots.wrapping_add(self.count).read() };
        // SAFETY: slots are not null.
        Some(unsafe { NonNull::new_unchecked(slot) })
    }

    #[inline(always)]
    unsafe fn push(&mut self, slot: *mut u8) -> bool {
        if self.count >= self.room {
            return false;
        }
        // SAFETY: below the array's length.
        unsafe { self.slots.wrapping_add(self.count).write(slot) };
        self.count += 1;
        true
    }

    fn len(&self) -> usize {
        self.count
    }

    fn room(&self) -> usize {
        self.room - self.count
    }

    fn reserve(&mut self, capacity: usize) {
        if capacity <= self.room {
            return;
        }
        let room = capacity.max(2 * self.room);
        let Some(bytes) = room.checked_mul(size_of::<*mut u8>()) else { return };
        let Some(side) = Side::take(bytes) else { return };
        let slots: *mut *mut u8 = side.at().cast();
        if self.count > 0 {
            // SAFETY: the old array has `count` pointers, the new one room for more.
            unsafe { ptr::copy_nonoverlapping(self.slots, slots, self.count) };
        }
        self.end();
        (self.slots, self.room, self.side) = (slots, room, Some(side));
    }

    fn end(&mut self) {
        if let Some(mut side) = self.side.take() {
            side.give();
        }
        (self.slots, self.room) = (ptr::null_mut(), 0);
    }
}

/// No list: free slots are bits, and the lowest is next.
///
/// The densest, and the slowest where objects come and go.
pub struct Bitmap;

impl FreeList for Bitmap {}

impl Front for Bitmap {
    const EMPTY: Self = Self;
    const LINKS: bool = false;
    const REFILL: usize = 0;

    #[inline(always)]
    fn pop(&mut self) -> Option<NonNull<u8>> {
        None
    }

    #[inline(always)]
    unsafe fn push(&mut self, _slot: *mut u8) -> bool {
        false
    }

    fn len(&self) -> usize {
        0
    }

    fn end(&mut self) {}
}
