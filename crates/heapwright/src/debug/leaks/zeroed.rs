//! Zeroed arrays for the duration of a check, mapped from the system.
//!
//! ```text
//!   | guard | T | T | T | .......... zeroes, no memory until touched | guard |
//! ```
//!
//! A check may need a byte and a word for each block, and must not allocate from the heap that it
//! checks. Small arrays are cut from one piece ([`Shelf`]), to save system calls. Called by the
//! rest of `leaks`.

use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::slice;

use crate::os::Answer;
use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::super::table::{give_room, room};

/// Bytes of the piece, and of the largest array cut from it.
const SHELF: usize = 1 << 20;
const CUT_MOST: usize = SHELF / 4;
const GRAIN: usize = 64;

/// The piece of the running check, or null.
static PIECE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static CUT: AtomicUsize = AtomicUsize::new(0);

/// Owns the piece during a check. One thread makes the check's arrays, which must end earlier.
pub(super) struct Shelf(());

impl Shelf {
    /// The caller must hold the lock of checks, or be the copy of the process that does the check.
    pub(super) fn take() -> Self {
        CUT.store(0, Ordering::Relaxed);
        PIECE.store(room(SHELF), Ordering::Relaxed);
        Self(())
    }

    fn cut(bytes: usize) -> Option<*mut u8> {
        let piece = PIECE.load(Ordering::Relaxed);
        let at = CUT.load(Ordering::Relaxed);
        let end = at + bytes.next_multiple_of(GRAIN);
        if piece.is_null() || bytes > CUT_MOST || end > SHELF {
            return None;
        }
        CUT.store(end, Ordering::Relaxed);
        Some(piece.wrapping_add(at))
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        let piece = PIECE.swap(core::ptr::null_mut(), Ordering::Relaxed);
        if !piece.is_null() {
            // SAFETY: `take` mapped this many bytes, and no array outlives the shelf.
            unsafe { give_room(piece, SHELF) };
        }
    }
}

/// The elements of zeroed arrays.
///
/// # Safety
///
/// All-zero bytes are a valid value, and the type needs no drop.
pub(super) unsafe trait Plain {}

// SAFETY: any bytes are a valid number.
unsafe impl Plain for u8 {}
// SAFETY: any bytes are a valid number.
unsafe impl Plain for u32 {}
// SAFETY: any bytes are a valid number.
unsafe impl Plain for usize {}
// SAFETY: the zero value is an answer that no thread has given.
unsafe impl Plain for Answer {}

pub(super) struct ZeroedArray<T: Plain> {
    at: *mut u8,
    count: usize,
    is_alone: bool,
    of: PhantomData<T>,
}

impl<T: Plain> ZeroedArray<T> {
    pub(super) fn new(count: usize) -> Option<Self> {
        let bytes = count.checked_mul(size_of::<T>())?.max(1);
        let cut = Shelf::cut(bytes);
        let (at, is_alone) = (cut.unwrap_or_else(|| room(bytes)), cut.is_none());
        (!at.is_null()).then_some(Self { at, count, is_alone, of: PhantomData })
    }
}

impl<T: Plain> Deref for ZeroedArray<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `count` elements, zeroed at first, lie there, aligned to a cache line or more.
        // They are ours while this array lives.
        unsafe { slice::from_raw_parts(self.at.cast(), self.count) }
    }
}

impl<T: Plain> DerefMut for ZeroedArray<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: `count` elements, zeroed at first, lie there, aligned to a cache line or more.
        // They are ours alone while this array is borrowed.
        unsafe { slice::from_raw_parts_mut(self.at.cast(), self.count) }
    }
}

impl<T: Plain> Drop for ZeroedArray<T> {
    fn drop(&mut self) {
        if !self.is_alone {
            return;
        }
        let bytes = (self.count * size_of::<T>()).max(1);
        // SAFETY: `new` mapped this many bytes, and no code uses them any more.
        unsafe { give_room(self.at, bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_arrays_are_cut_from_the_shelf_and_large_ones_are_not() {
        assert!(crate::substrate::open(crate::options::get));
        let _one = super::super::ONE.lock();
        for _ in 0..3 {
            let shelf = Shelf::take();
            let mut one = ZeroedArray::<u8>::new(3).unwrap();
            let mut two = ZeroedArray::<usize>::new(100).unwrap();
            let large = ZeroedArray::<u8>::new(CUT_MOST + 1).unwrap();
            assert!(!one.is_alone && !two.is_alone && large.is_alone);
            assert!(two.as_ptr().addr() - one.as_ptr().addr() == GRAIN);
            assert!(one.iter().all(|&byte| byte == 0) && two.iter().all(|&word| word == 0));
            one.fill(0xff);
            two.fill(usize::MAX);
            assert_eq!(large[CUT_MOST], 0);
            drop((one, two, large, shelf));
            assert!(ZeroedArray::<u8>::new(3).unwrap().is_alone);
        }
        let shelf = Shelf::take();
        let arrays = [(); 5].map(|()| ZeroedArray::<u8>::new(CUT_MOST).unwrap());
        assert_eq!(
            arrays.each_ref().map(|array| array.is_alone),
            [false, false, false, false, true]
        );
        drop((arrays, shelf));
    }
}
