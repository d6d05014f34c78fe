//! Segments: a table by number that grows where it stands.
//!
//! ```text
//!   FIRST = 64:   0..64  64..192  192..448  ...       numbers
//!                   |       |        |
//!   segments      [ p0      p1       p2     null ... ]   each twice as long as the one before
//! ```
//!
//! What a number leads to never moves, so a reference to it stays good, and finding it
//! takes no lock: a segment is made by the first thread that wants a number in it, zeroed, in
//! the heap's metadata, and never freed. Two threads that make the same one both go on
//! with the one that was stored first. The other's is lost: once a doubling at most,
//! and pages of zeroes that are never touched take no memory.
//!
//! `ids` keeps pointers in one; the debug heap its sites (`sample`) and its threads. A
//! table whose memory goes back with it (`debug::table`) only shares the arithmetic,
//! [`place`]. Pools and the depot of stacks have another: S, S, 2S, 4S, so that what they
//! have doubles.

use core::ptr;

use crate::chunk::metadata;
use crate::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// What may be in a table.
///
/// # Safety
///
/// Bytes that are all zero are one, and it needs no drop.
pub unsafe trait Zeroed: Sync {}

// SAFETY: as every value of its bytes.
unsafe impl Zeroed for AtomicU32 {}
// SAFETY: as every value of its bytes.
unsafe impl Zeroed for AtomicU64 {}
// SAFETY: null.
unsafe impl<T> Zeroed for AtomicPtr<T> {}

/// The segment that `number` is in, of a table whose first segment has `first`, and
/// its place there.
#[inline]
pub const fn place(number: usize, first: usize) -> (usize, usize) {
    let n = number + first;
    let segment = (n / first).ilog2() as usize;
    (segment, n - (first << segment))
}

/// A table of up to `FIRST * (2^SEGMENTS - 1)`.
pub struct Segments<T, const FIRST: usize, const SEGMENTS: usize> {
    segments: [AtomicPtr<T>; SEGMENTS],
}

impl<T: Zeroed, const FIRST: usize, const SEGMENTS: usize> Segments<T, FIRST, SEGMENTS> {
    /// Nothing, so far.
    pub const fn new() -> Self {
        Self { segments: [const { AtomicPtr::new(ptr::null_mut()) }; SEGMENTS] }
    }

    /// What `number` leads to, if its segment was made.
    pub fn get(&self, number: usize) -> Option<&T> {
        let (segment, index) = place(number, FIRST);
        let at = self.segments.get(segment)?.load(Ordering::Acquire);
        if at.is_null() {
            return None;
        }
        // SAFETY: the segment has this many, zeroed, and is never freed.
        Some(unsafe { &*at.wrapping_add(index) })
    }

    /// What `number` leads to: zero, if it is new. `None` where there is no memory, or
    /// no such number.
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
            // Refused: there is another's, which is as good.
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
