//! Segments: a table by number that grows in place.
//!
//! ```text
//!   FIRST = 64:   0..64  64..192  192..448  ...       numbers
//!                   |       |        |
//!   segments      [ p0      p1       p2     null ... ]   each twice as long as the one before
//! ```
//!
//! An entry never moves, so a reference to it stays valid, and a look-up takes no lock. A segment
//! is zeroed memory of the heap's metadata, and is never freed. If two threads make the same
//! segment, one of them is lost. Used by `ids` and `debug`. `debug::table` and `gc` use only
//! [`place`], for segments in their own memory.

use core::ptr;

use crate::chunk::metadata;
use crate::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// A type for the entries of a table.
///
/// # Safety
///
/// Zeroed bytes are a valid value, which needs no drop.
pub unsafe trait Zeroed: Sync {}

// SAFETY: every value of its bytes is valid.
unsafe impl Zeroed for AtomicU32 {}
// SAFETY: every value of its bytes is valid.
unsafe impl Zeroed for AtomicU64 {}
// SAFETY: zeros are a null pointer.
unsafe impl<T> Zeroed for AtomicPtr<T> {}

/// The segment of `number` in a table whose first segment has `first` entries, and its place there.
#[inline]
pub const fn place(number: usize, first: usize) -> (usize, usize) {
    let n = number + first;
    let segment = (n / first).ilog2() as usize;
    (segment, n - (first << segment))
}

/// A table of up to `FIRST * (2^SEGMENTS - 1)` entries.
pub struct Segments<T, const FIRST: usize, const SEGMENTS: usize> {
    segments: [AtomicPtr<T>; SEGMENTS],
}

impl<T: Zeroed, const FIRST: usize, const SEGMENTS: usize> Segments<T, FIRST, SEGMENTS> {
    /// An empty table.
    pub const fn new() -> Self {
        Self { segments: [const { AtomicPtr::new(ptr::null_mut()) }; SEGMENTS] }
    }

    /// The entry of `number`, if its segment exists.
    pub fn get(&self, number: usize) -> Option<&T> {
        let (segment, index) = place(number, FIRST);
        let at = self.segments.get(segment)?.load(Ordering::Acquire);
        if at.is_null() {
            return None;
        }
        // SAFETY: the segment has this entry, zeroed, and is never freed.
        Some(unsafe { &*at.wrapping_add(index) })
    }

    /// The entry of `number`, zero if it is new. `None`: there is no memory, or no such number.
    pub fn get_or_make(&self, number: usize) -> Option<&T> {
        self.get(number).or_else(|| {
            self.make(place(number, FIRST).0)?;
            self.get(number)
        })
    }

    #[cold]
    fn make(&self, segment: usize) -> Option<()> {
        let place = self.segments.get(segment)?;
        let fresh: *mut T =
            metadata::alloc((FIRST << segment) * size_of::<T>(), align_of::<T>()).cast();
        if !fresh.is_null() {
            let _ =
                place.compare_exchange(ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    #[test]
    fn numbers_fill_segments_without_a_gap() {
        const FIRST: usize = 64;
        let mut last = (0, usize::MAX);
        for number in 0..if cfg!(miri) { 1_000 } else { 100_000 } {
            let (segment, index) = place(number, FIRST);
            assert!(index < FIRST << segment);
            let follows = segment == last.0 && index == last.1.wrapping_add(1);
            let opens = segment == last.0 + 1 && index == 0 && last.1 + 1 == FIRST << last.0;
            assert!(follows || opens, "{number}");
            last = (segment, index);
        }
    }

    #[test]
    fn a_number_leads_to_one_place_whatever_thread_makes_it() {
        assert!(crate::substrate::open(crate::options::get));
        let table = Segments::<AtomicU32, 4, 3>::new();
        assert!(table.get(0).is_none());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 0..28 {
                        let found = table.get_or_make(number).unwrap();
                        found.fetch_add(number as u32, Ordering::Relaxed);
                    }
                });
            }
        });
        for number in 0..28 {
            assert_eq!(table.get(number).unwrap().load(Ordering::Relaxed), 4 * number as u32);
        }
        assert!(table.get(28).is_none() && table.get_or_make(28).is_none());
    }
}
