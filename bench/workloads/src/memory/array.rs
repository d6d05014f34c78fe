//! A run of plain numbers in one block, which may grow by `realloc`.
//!
//! Like a `Vec` of exact capacity, but growth is asked for by the workload,
//! step by step, and not by a rule of Rust's library.

use super::{allocate, allocate_zeroed, reallocate, release};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Numbers without padding, for which all bits nought is nought.
pub(crate) trait Plain: Copy {
    /// Nought.
    const ZERO: Self;
}

impl Plain for u32 {
    const ZERO: Self = 0;
}

impl Plain for u64 {
    const ZERO: Self = 0;
}

/// At least one number, all of them written.
pub(crate) struct Array<T: Plain> {
    start: NonNull<T>,
    len: usize,
}

impl<T: Plain> Array<T> {
    /// Noughts by `calloc`.
    pub(crate) fn zeroed(len: usize) -> Self {
        Self { start: allocate_zeroed(bytes::<T>(len)).cast(), len }
    }

    /// Noughts by `malloc`, written here.
    pub(crate) fn new(len: usize) -> Self {
        let start = allocate(bytes::<T>(len)).cast();
        // SAFETY: new memory of this length.
        unsafe { fill(start, 0, len) };
        Self { start, len }
    }

    /// A copy by `malloc`.
    pub(crate) fn copy(numbers: &[T]) -> Self {
        let start = allocate(bytes::<T>(numbers.len())).cast::<T>();
        // SAFETY: both are as long as `numbers`, and the new one is nobody
        // else's.
        unsafe { start.copy_from_nonoverlapping(NonNull::from(numbers).cast(), numbers.len()) }
        Self { start, len: numbers.len() }
    }

    /// Grows or shrinks by `realloc`; what is new is nought.
    pub(crate) fn resize(&mut self, len: usize) {
        // SAFETY: the old start is ours, and is replaced by the new one.
        self.start = unsafe { reallocate(self.start.cast(), bytes::<T>(len)) }.cast();
        if len > self.len {
            // SAFETY: realloc made it this long.
            unsafe { fill(self.start, self.len, len) };
        }
        self.len = len;
    }
}

/// Bytes in `len` numbers; never none, since `malloc(0)` is a story of its own.
fn bytes<T>(len: usize) -> usize {
    assert!(len > 0, "an array has a number");
    len * size_of::<T>()
}

/// Writes noughts at `from..to`.
///
/// # Safety
/// The block at `start` came from this module's parent, belongs to the caller
/// alone and is at least `to` numbers long.
unsafe fn fill<T: Plain>(start: NonNull<T>, from: usize, to: usize) {
    for at in from..to {
        // SAFETY: within the block, by the caller's promise.
        let number = unsafe { start.add(at) };
        // SAFETY: within the block, which is aligned for any number.
        unsafe { number.write(T::ZERO) };
    }
}

impl<T: Plain> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` numbers are there, and all were written.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for Array<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: `len` numbers are there, all were written, and they are ours
        // alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> Drop for Array<T> {
    fn drop(&mut self) {
        // SAFETY: `start` came from this module's parent, and dies with self.
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
