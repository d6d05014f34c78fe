//! Zeroed arrays for the length of a check, from the system and back to it.
//!
//! ```text
//!   | guard | T | T | T | .......... zeroes, no memory until touched | guard |
//! ```
//!
//! A check may not allocate from the heap that it looks at, and may need much: a byte
//! and a word for each block. What is not touched costs nothing.
//!
//! Called by the rest of `leaks`.

use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::slice;

use crate::os::Answer;

use super::super::table::{give_room, room};

/// What such an array may contain.
///
/// # Safety
///
/// Bytes that are all zero are one, and it needs no drop.
pub(super) unsafe trait Plain {}

// SAFETY: numbers, each of them.
unsafe impl Plain for u8 {}
// SAFETY: any bytes are a number of 32 bits.
unsafe impl Plain for u32 {}
// SAFETY: any bytes are a number of a word.
unsafe impl Plain for usize {}
// SAFETY: one that nobody gave, of no thread.
unsafe impl Plain for Answer {}

/// So many zeroes, to be written over.
pub(super) struct ZeroedArray<T: Plain> {
    at: *mut u8,
    count: usize,
    of: PhantomData<T>,
}

impl<T: Plain> ZeroedArray<T> {
    /// Room for `count` of them. `None`: there is no memory.
    pub(super) fn new(count: usize) -> Option<Self> {
        let at = room(count.checked_mul(size_of::<T>())?.max(1));
        (!at.is_null()).then_some(Self { at, count, of: PhantomData })
    }
}

impl<T: Plain> Deref for ZeroedArray<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: so many, zeroed at first, aligned to a page; ours while this lives.
        unsafe { slice::from_raw_parts(self.at.cast(), self.count) }
    }
}

impl<T: Plain> DerefMut for ZeroedArray<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: so many, zeroed at first, aligned to a page; ours alone while this is borrowed.
        unsafe { slice::from_raw_parts_mut(self.at.cast(), self.count) }
    }
}

impl<T: Plain> Drop for ZeroedArray<T> {
    fn drop(&mut self) {
        let bytes = (self.count * size_of::<T>()).max(1);
        // SAFETY: made with so many bytes, and nobody has it any more.
        unsafe { give_room(self.at, bytes) };
    }
}
