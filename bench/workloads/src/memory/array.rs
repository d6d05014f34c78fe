//! A sequence of plain numbers in one block, which may grow by `realloc`.
//!
//! Unlike with a `Vec`, the workload requests each step of its growth.

use super::{allocate, allocate_zeroed, reallocate, release};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Numbers without padding, for which zero bits mean zero.
pub(crate) trait Plain: Copy {
    const ZERO: Self;
}

impl Plain for u32 {
    const ZERO: Self = 0;
}

impl Plain for u64 {
    const ZERO: Self = 0;
}

/// At least one number, all of them initialised.
pub(crate) struct Array<T: Plain> {
    start: NonNull<T>,
    len: usize,
}

impl<T: Plain> Array<T> {
    pub(crate) fn zeroed(len: usize) -> Self {
        Self { start: allocate_zeroed(bytes::<T>(len)).cast(), len }
    }

    /// Makes zeros by `malloc`, and writes them.
    pub(crate) fn new(len: usize) -> Self {
        let start = allocate(bytes::<T>(len)).cast();
        // SAFETY: the new memory has this length.
        unsafe { fill(start, 0, len) };
        Self { start, len }
    }

    pub(crate) fn copy(numbers: &[T]) -> Self {
        let start = allocate(bytes::<T>(numbers.len())).cast::<T>();
        // SAFETY: the new block is as long as `numbers`, and no other code has it.
        unsafe { start.copy_from_nonoverlapping(NonNull::from(numbers).cast(), numbers.len()) }
        Self { start, len: numbers.len() }
    }

    /// Grows or shrinks by `realloc`; new numbers are zero.
    pub(crate) fn resize(&mut self, len: usize) {
        // SAFETY: the block is ours, and the result replaces its old start.
        self.start = unsafe { reallocate(self.start.cast(), bytes::<T>(len)) }.cast();
        if len > self.len {
            // SAFETY: realloc made the block this long.
            unsafe { fill(self.start, self.len, len) };
        }
        self.len = len;
    }
}

/// Returns the bytes of `len` numbers, at least one: allocators differ in `malloc(0)`.
fn bytes<T>(len: usize) -> usize {
    assert!(len > 0, "an array has a number");
    len * size_of::<T>()
}

/// Writes zeros at `from..to`.
///
/// # Safety
/// The block at `start` came from this module's parent, belongs to the caller
/// alone and is at least `to` numbers long.
unsafe fn fill<T: Plain>(start: NonNull<T>, from: usize, to: usize) {
    for at in from..to {
        // SAFETY: the number lies within the block, by the caller's promise.
        let number = unsafe { start.add(at) };
        // SAFETY: the number lies within the block, which is aligned for any number.
        unsafe { number.write(T::ZERO) };
    }
}

impl<T: Plain> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the block has `len` numbers, all initialised.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for Array<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the block has `len` numbers, all initialised, and is ours alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> Drop for Array<T> {
    fn drop(&mut self) {
        // SAFETY: `start` came from this module's parent, and is not used after this.
        unsafe { release(self.start.cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_keeps_what_is_there() {
        let mut array = Array::<u64>::new(2);
        array.copy_from_slice(&[1, 2]);
        array.resize(4);
        assert_eq!(*array, [1, 2, 0, 0]);
        array[3] = 4;
        assert_eq!(*Array::copy(&array), [1, 2, 0, 4]);
        array.resize(1);
        assert_eq!(*array, [1]);
    }

    #[test]
    fn zeroed_is_zero() {
        assert!(Array::<u32>::zeroed(100_000).iter().all(|&number| number == 0));
    }
}
