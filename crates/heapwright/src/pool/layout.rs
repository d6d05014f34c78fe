//! The arithmetic of a pool: slots, segments that double, and indexes.
//!
//! ```text
//!   segment      0        1        2                3
//!   slots        S        S        2 S              4 S  ...
//!   indexes   | 0 .. S | S .. 2S | 2S ....... 4S | 4S .............. 8S |
//! ```
//!
//! `S` is the largest power of two of slots that fit in 64 KiB, or 1 if no slot fits. The number of
//! an index's leading zeros gives its segment. After at most 32 doublings a pool has every 32-bit
//! index. Indexes without a slot, because of a limit or a lack of memory, stay unused.
//!
//! A pointer's slot is the result of an exact division: a shift, and a multiplication by the
//! inverse modulo 2^64. Another multiplication detects a pointer at which no slot begins.

#![forbid(unsafe_code)]

use crate::size_class::UNIT;

/// The most segments of a pool.
pub(super) const SEGMENTS: usize = 33;
/// One more than the last index.
const INDEXES: u64 = 1 << 32;
/// A segment's first slot begins at one of this many cache lines.
const COLOURS: usize = 64;
const LINE: usize = 64;
/// The range of colours in bytes: a page, which indexes the first-level cache.
const PAGE: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Bytes from one slot to the next.
    size: usize,
    align: usize,
    /// The inverse of the odd part of `size` modulo 2^64.
    inverse: u64,
    /// The logarithm of the number of slots of segment 0.
    first: u32,
}

impl Shape {
    /// Returns the shape for objects of this size and alignment. `None` if one of them is too
    /// large, or the alignment is no power of two. A slot takes at least a byte, so zero-sized
    /// objects have addresses, indexes and keys.
    pub(super) const fn of(size: usize, align: usize) -> Option<Self> {
        if !align.is_power_of_two() || align > 1 << 32 || size > 1 << 40 {
            return None;
        }
        let size = if size == 0 { 1 } else { size }.next_multiple_of(align);
        let slots = UNIT / size;
        let first = if slots == 0 { 0 } else { slots.ilog2() };
        Some(Self { size, align, inverse: inverse(size >> size.trailing_zeros()), first })
    }

    /// Like [`Shape::of`], but panics if the size or the alignment is unsuitable.
    pub(super) const fn of_objects(size: usize, align: usize) -> Self {
        match Self::of(size, align) {
            Some(shape) => shape,
            None => {
                panic!("a pool's objects are at most a tebibyte, at multiples of 4 GiB at most")
            }
        }
    }

    /// Returns the shape with one segment for `limit` slots.
    pub(super) const fn in_one(self, limit: u32) -> Self {
        let first = (limit as u64).next_power_of_two().trailing_zeros();
        Self { first: if first < 32 { first } else { 32 }, ..self }
    }

    #[inline]
    pub(super) const fn size(&self) -> usize {
        self.size
    }

    pub(super) const fn align(&self) -> usize {
        self.align
    }

    #[inline]
    pub(super) const fn first_index(&self, segment: usize) -> u64 {
        if segment == 0 { 0 } else { 1 << (self.first as usize + segment - 1) }
    }

    pub(super) const fn indexes(&self, segment: usize) -> u64 {
        let from = self.first_index(segment);
        let share = if segment == 0 { 1 << self.first } else { from };
        let left = INDEXES.saturating_sub(from);
        if share < left { share } else { left }
    }

    /// Returns the segment of `index`, and the slot's number there.
    #[inline]
    pub(super) const fn place(&self, index: u32) -> (usize, usize) {
        let above = index as u64 >> self.first;
        let segment = (u64::BITS - above.leading_zeros()) as usize;
        (segment, (index as u64 - self.first_index(segment)) as usize)
    }

    /// Returns the slot that begins `offset` bytes after the first one, if any.
    #[inline]
    pub(super) const fn slot_at(&self, offset: usize) -> Option<usize> {
        let slot =
            ((offset as u64) >> self.size.trailing_zeros()).wrapping_mul(self.inverse) as usize;
        if slot.wrapping_mul(self.size) == offset && slot <= offset { Some(slot) } else { None }
    }

    /// Returns the bytes before the first slot. They put the first objects of different pools into
    /// different cache sets. Zero for slots of whole pages, which would straddle one page more.
    pub(super) const fn colour(&self, id: u32) -> usize {
        if self.size.is_multiple_of(PAGE) || self.align >= PAGE {
            return 0;
        }
        // 27 is odd, so 64 successive pools get 64 colours. Two successive pools share no pair of
        // lines that the processor fetches together.
        let colour = id as usize * 27 % COLOURS * LINE;
        colour & !(self.align - 1)
    }
}

/// Returns the inverse of an odd number modulo 2^64, by Newton's iteration. The number itself is
/// the inverse modulo 8, and each step doubles the number of correct bits.
const fn inverse(odd: usize) -> u64 {
    let odd = odd as u64;
    let mut inverse = odd;
    let mut bits = 3;
    while bits < 64 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        bits *= 2;
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases(500))]

        #[test]
        fn slots_are_found_at_their_starts_and_nowhere_else(
            size in 1usize..5_000_000, slot in 0usize..100_000, inside in 1usize..5_000_000,
        ) {
            let shape = Shape::of(size, 1).unwrap();
            prop_assert_eq!(shape.slot_at(slot * size), Some(slot));
            if inside < size {
                prop_assert_eq!(shape.slot_at(slot * size + inside), None);
            }
        }

        #[test]
        fn indexes_lead_to_their_segments(size in 1usize..200_000, index: u32) {
            let shape = Shape::of(size, 1).unwrap();
            let (segment, at) = shape.place(index);
            prop_assert!(segment < SEGMENTS);
            prop_assert!((at as u64) < shape.indexes(segment));
            prop_assert_eq!(shape.first_index(segment) + at as u64, u64::from(index));
        }

        #[test]
        fn one_segment_has_all_indexes_of_a_limit(limit in 1u32.., index: u32) {
            let shape = Shape::of(48, 16).unwrap().in_one(limit);
            prop_assert!(shape.indexes(0) >= u64::from(limit));
            let index = index % limit;
            prop_assert_eq!(shape.place(index), (0, index as usize));
        }
    }

    #[test]
    fn segments_follow_one_another_without_a_gap() {
        for size in [1, 8, 24, 64, 4096, 65_536, 1 << 20] {
            let shape = Shape::of(size, 1).unwrap();
            let mut next = 0;
            for segment in 0..SEGMENTS {
                if shape.indexes(segment) > 0 {
                    assert_eq!(shape.first_index(segment), next);
                    next += shape.indexes(segment);
                }
            }
            assert_eq!(next, INDEXES, "{size}");
        }
    }

    #[test]
    fn sixty_four_pools_have_sixty_four_colours() {
        let shape = Shape::of(48, 16).unwrap();
        let mut seen = [false; COLOURS];
        for id in 1000..1064 {
            let colour = shape.colour(id);
            assert!(colour.is_multiple_of(LINE) && !seen[colour / LINE]);
            seen[colour / LINE] = true;
        }
        assert_eq!(Shape::of(8192, 4096).unwrap().colour(7), 0);
    }

    #[test]
    fn sizes_that_cannot_be_had_are_refused() {
        assert_eq!(Shape::of(usize::MAX, 1), None);
        assert_eq!(Shape::of(8, 3), None);
        assert_eq!(Shape::of(0, 1).unwrap().size(), 1);
        assert_eq!(Shape::of(1, 64).unwrap().size(), 64);
    }
}
