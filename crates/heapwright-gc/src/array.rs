//! An array that grows, in side memory.
//!
//! ```text
//!   side memory  | T | T | T | ... room for more |       doubles when it is full; never shrinks
//! ```
//!
//! Without memory, [`Array::push`] returns false, and the array keeps its items. [`Array::end`]
//! gives the memory back. Dropping the array does not. All-zero bytes are an empty array.

use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};
use core::slice;

use heapwright_substrate::chunk::Side;

const FIRST: usize = 1024;

pub(super) struct Array<T> {
    side: Side,
    length: usize,
    room: usize,
    of: core::marker::PhantomData<T>,
}

impl<T: Copy> Array<T> {
    pub(super) const fn new() -> Self {
        Self { side: Side::NONE, length: 0, room: 0, of: core::marker::PhantomData }
    }

    fn start(&self) -> NonNull<T> {
        NonNull::new(self.side.at().cast()).unwrap_or(NonNull::dangling())
    }

    /// Makes room for `more` items. Returns false without memory.
    pub(super) fn reserve(&mut self, more: usize) -> bool {
        let needed = self.length + more;
        if needed <= self.room {
            return true;
        }
        let room = needed.max(self.room * 2).max(FIRST);
        let Some(mut side) = Side::take(room * size_of::<T>()) else { return false };
        // SAFETY: both blocks have room for `length` items, and do not overlap.
        unsafe {
            ptr::copy_nonoverlapping(self.start().as_ptr(), side.at().cast(), self.length);
        }
        core::mem::swap(&mut self.side, &mut side);
        side.give();
        self.room = room;
        true
    }

    #[must_use]
    pub(super) fn push(&mut self, item: T) -> bool {
        if !self.reserve(1) {
            return false;
        }
        let at = self.start().as_ptr().wrapping_add(self.length);
        // SAFETY: there is room.
        unsafe { at.write(item) };
        self.length += 1;
        true
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let last = self.last().copied()?;
        self.length -= 1;
        Some(last)
    }

    /// Keeps the items for which `keep` is true, in order. Returns how many were removed.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(T) -> bool) -> usize {
        let before = self.length;
        let mut kept = 0;
        for index in 0..before {
            let item = self[index];
            if keep(item) {
                self[kept] = item;
                kept += 1;
            }
        }
        self.truncate(kept);
        before - kept
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    pub(super) fn end(&mut self) {
        self.side.give();
        *self = Self::new();
    }
}

impl<T: Copy> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `length` items were pushed. For an empty slice, any aligned address is valid.
        unsafe { slice::from_raw_parts(self.start().as_ptr(), self.length) }
    }
}

impl<T: Copy> DerefMut for Array<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: `length` items were pushed. For an empty slice, any aligned address is valid. The
        // borrow is exclusive.
        unsafe { slice::from_raw_parts_mut(self.start().as_ptr(), self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_is_there_in_order_however_far_it_grows() {
        assert!(heapwright_substrate::substrate::open(heapwright_substrate::options::get));
        let mut array = Array::new();
        assert!(array.is_empty() && array.pop().is_none());
        for n in 0..3 * FIRST {
            assert!(array.push(n));
        }
        assert!(array.iter().copied().eq(0..3 * FIRST));
        array[5] = 500;
        assert_eq!(array.pop(), Some(3 * FIRST - 1));
        array.truncate(6);
        assert_eq!(array[..], [0, 1, 2, 3, 4, 500]);
        assert_eq!(array.retain(|n| n % 2 == 0), 2);
        assert_eq!(array[..], [0, 2, 4, 500]);
        array.end();
        assert!(array.is_empty() && array.room == 0);
    }

    #[test]
    fn an_array_that_no_memory_holds_is_refused_and_keeps_what_it_has() {
        assert!(heapwright_substrate::substrate::open(heapwright_substrate::options::get));
        let mut array = Array::new();
        assert!(array.push(7u64));
        assert!(!array.reserve(1 << 50));
        assert_eq!(array[..], [7]);
        array.end();
    }
}
