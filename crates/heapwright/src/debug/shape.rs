//! Shapes divide a span of one size class into buckets and slots.
//!
//! ```text
//!   span     | bucket 0              | bucket 1              | ...            64 KiB
//!   bucket   | lead | slot 0 | slot 1 | ...        | tail |    1 to 16 pages
//! ```
//!
//! A bucket consists of whole pages, because pages go back to the kernel or get guards. One live
//! block pins its bucket, so buckets are small. At most a sixteenth of the touched pages is waste.
//! If slots are larger than 1 KiB it is a quarter, and if they are larger than a page, a third. The
//! *lead* is heapwright's memory before the first slot, so that a write before that slot is seen.
//! To keep slots aligned, the lead's size is the largest power of two, up to 1 KiB, that divides
//! the slot's size.
#![forbid(unsafe_code)]

use crate::size_class::{self, CLASSES, UNIT};

pub(crate) const PAGE: usize = 4096;
pub(crate) const BUCKETS: usize = UNIT / PAGE;
/// Slots up to this size share buckets.
pub(crate) const SLOT_MAX: usize = 28 << 10;
pub(crate) const ALIGN_MAX: usize = 1024;
/// The checked bytes at a bucket's ends, and before a large block. They are next to the slots. The
/// rest of a lead or a tail is not touched, because a tail may be pages long.
pub(crate) const WATCHED: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// `log2` of the bytes in a bucket.
    pub(crate) shift: u32,
    pub(crate) lead: u32,
    pub(crate) slot: u32,
    /// `ceil(2^32 / slot)`.
    pub(crate) reciprocal: u32,
    pub(crate) slots: u32,
}

impl Shape {
    pub(crate) const fn bucket(&self) -> usize {
        1 << self.shift
    }

    /// Returns the bucket of an offset into a span, and the slot (none in a lead or a tail).
    #[inline]
    pub(crate) const fn locate(&self, offset: usize) -> (usize, Option<usize>) {
        let bucket = offset >> self.shift;
        let within = offset & (self.bucket() - 1);
        let Some(into) = within.checked_sub(self.lead as usize) else { return (bucket, None) };
        let slot = ((into as u64 * self.reciprocal as u64) >> 32) as usize;
        (bucket, if slot < self.slots as usize { Some(slot) } else { None })
    }

    #[inline]
    pub(crate) const fn slot_at(&self, bucket: usize, slot: usize) -> usize {
        (bucket << self.shift) + self.lead as usize + slot * self.slot as usize
    }

    #[inline]
    pub(crate) const fn lead_watched(&self) -> usize {
        let lead = self.lead as usize;
        if lead < WATCHED { lead } else { WATCHED }
    }

    /// Returns the bytes in pages that are touched if all slots are in use.
    const fn touched(&self) -> usize {
        let first = (self.lead as usize - self.lead_watched()) / PAGE;
        let (end, watched) = self.tail();
        (end + watched).div_ceil(PAGE) * PAGE - first * PAGE
    }

    /// Larger slots may waste more. In a larger bucket, one live block would pin more memory.
    const fn spills_little(&self) -> bool {
        let slot = self.slot as usize;
        let used = self.slots as usize * slot;
        let spilled = self.touched() - used;
        match slot {
            0..1025 => spilled * 15 <= used,
            1025..=PAGE => spilled * 3 <= used,
            _ => spilled * 2 <= used,
        }
    }

    pub(crate) const fn tail(&self) -> (usize, usize) {
        let end = self.lead as usize + self.slots as usize * self.slot as usize;
        let tail = self.bucket() - end;
        (end, if tail < WATCHED { tail } else { WATCHED })
    }

    pub(crate) const fn buckets(&self) -> usize {
        UNIT >> self.shift
    }
}

/// Returns a class's shape: the smallest bucket with `most` slots, or else with little waste.
pub(crate) const fn of(class: usize, most: usize) -> Shape {
    let slot = size_class::size(class);
    let lead = lead(slot);
    let mut bucket = PAGE;
    while bucket <= UNIT {
        let now = cut(class, bucket, lead, most);
        if now.slots as usize == most {
            return now;
        }
        bucket *= 2;
    }
    let mut best = cut(class, PAGE, lead, most);
    let mut bucket = PAGE;
    while bucket <= UNIT {
        let now = cut(class, bucket, lead, most);
        if now.slots > 0 && now.spills_little() {
            return now;
        }
        if now.slots as usize * best.bucket() > best.slots as usize * bucket {
            best = now;
        }
        bucket *= 2;
    }
    best
}

const fn lead(slot: usize) -> usize {
    let aligned = 1 << slot.trailing_zeros();
    if aligned > ALIGN_MAX { ALIGN_MAX } else { aligned }
}

const fn cut(class: usize, bucket: usize, lead: usize, most: usize) -> Shape {
    let slot = size_class::size(class);
    let slots = (bucket - lead) / slot;
    Shape {
        shift: bucket.trailing_zeros(),
        lead: lead as u32,
        slot: slot as u32,
        reciprocal: size_class::reciprocal(class),
        slots: if slots < most { slots } else { most } as u32,
    }
}

/// Returns the class for a request and a spare byte, or `None` if the request needs its own span.
#[inline]
pub(crate) const fn class_for(size: usize, align: usize) -> Option<usize> {
    if size >= SLOT_MAX || align > ALIGN_MAX {
        return None;
    }
    if align <= size_class::MIN_ALIGN {
        return Some(size_class::of(size + 1));
    }
    match size_class::of_aligned(size + 1, align) {
        Some(class) if size_class::size(class) <= SLOT_MAX => Some(class),
        _ => None,
    }
}

const _: () = assert!(CLASSES > size_class::of(SLOT_MAX));

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    const MOST: usize = usize::MAX >> 1;

    #[test]
    fn every_class_has_a_shape_that_fits() {
        for class in 0..=size_class::of(SLOT_MAX) {
            let shape = of(class, MOST);
            let slots_end = shape.lead as usize + shape.slots as usize * shape.slot as usize;
            assert!(shape.slots > 0 && slots_end <= shape.bucket(), "{shape:?}");
            assert!(shape.slot.is_multiple_of(shape.lead) || shape.lead as usize == ALIGN_MAX);
            assert!(shape.bucket().is_power_of_two() && shape.bucket() <= UNIT);
            let wasted = shape.touched() - shape.slots as usize * shape.slot as usize;
            assert!(wasted * 3 <= shape.touched(), "{class}: {shape:?}");
        }
    }

    #[test]
    fn every_offset_is_in_the_slot_that_holds_it() {
        for class in (0..=size_class::of(SLOT_MAX)).step_by(if cfg!(miri) { 20 } else { 1 }) {
            for most in [MOST, 32] {
                let shape = of(class, most);
                for bucket in 0..shape.buckets() {
                    for slot in 0..shape.slots as usize {
                        let at = shape.slot_at(bucket, slot);
                        let last = at + shape.slot as usize - 1;
                        assert_eq!(shape.locate(at), (bucket, Some(slot)));
                        assert_eq!(shape.locate(last), (bucket, Some(slot)));
                    }
                    let start = bucket * shape.bucket();
                    assert_eq!(shape.locate(start), (bucket, None));
                    let end = shape.slot_at(bucket, shape.slots as usize);
                    if end < start + shape.bucket() {
                        assert_eq!(shape.locate(end), (bucket, None));
                    }
                }
            }
        }
    }

    #[test]
    fn a_request_gets_an_aligned_slot_with_a_byte_to_spare() {
        for align in [1, 8, 16, 32, 64, 256, 1024, 4096] {
            for size in (0..SLOT_MAX + 100).step_by(if cfg!(miri) { 997 } else { 7 }) {
                let Some(class) = class_for(size, align) else {
                    assert!(size >= SLOT_MAX - align || align > 16);
                    continue;
                };
                let shape = of(class, MOST);
                assert!(shape.slot as usize > size);
                assert!(shape.slot_at(0, 0).is_multiple_of(align));
                assert!((shape.slot as usize).is_multiple_of(align));
            }
        }
        assert!(class_for(100, 8192).is_none() && class_for(SLOT_MAX, 1).is_none());
    }

    #[test]
    fn a_literal_number_of_slots_is_had() {
        let shape = of(size_class::of(129), 32);
        assert_eq!((shape.slots, shape.bucket()), (32, 8192));
    }
}
