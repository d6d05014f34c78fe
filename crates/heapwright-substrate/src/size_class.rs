//! Size classes: the slot size that serves a request, as pure arithmetic.
//!
//! ```text
//! request      1 .. 512           classes  0..=31  steps of 16 bytes
//! request    513 .. 32768         classes 32..=79  8 steps per doubling
//! request  32769 ..               no class: a run of whole units
//! ```
//!
//! Up to 512 bytes, the fast path finds the class by a mask, and at most 15 bytes are wasted. Of
//! larger requests at most one eighth is wasted.
//!
//! A slab is one 64-KiB unit whose slots start at its first byte. A division by a class size is a
//! multiplication by its *reciprocal* `ceil(2^32 / size)`. This is exact for all offsets below 2^16
//! (Lemire, Kaser, Kurz: "Faster remainder by direct computation", 2019):
//!
//! ```text
//! offset / size      ==  (offset * reciprocal) >> 32
//! offset % size == 0 <=> (offset * reciprocal) mod 2^32  <  2^16
//! ```
//!
//! (The second line has one bound for all classes. Let `offset = q * size + r`. The product mod
//! 2^32 is `q * excess + r * reciprocal`. Here `q * excess < 2^16`, and `reciprocal >= 2^17`.)
//!
//! Invariants: sizes are multiples of 16, strictly increasing, and include every power of two from
//! 16 to 32768. So a slot whose size is a multiple of the alignment can serve an aligned request.
#![forbid(unsafe_code)]

/// Bytes in a unit: the grain of the address map, and the size of a slab.
pub const UNIT: usize = 1 << UNIT_SHIFT;
/// `log2` of [`UNIT`].
pub const UNIT_SHIFT: usize = 16;
/// The number of classes.
pub const CLASSES: usize = 80;
/// Up to this size, classes are 16 bytes apart.
pub const LINEAR_MAX: usize = 512;
/// Slabs serve requests up to this size.
pub const SLAB_MAX: usize = 32 << 10;
/// All blocks have at least this alignment.
pub const MIN_ALIGN: usize = 16;

const LINEAR_CLASSES: usize = LINEAR_MAX / MIN_ALIGN;

/// The figures of a class.
#[derive(Clone, Copy)]
pub struct Class {
    /// Bytes in a slot.
    pub size: u32,
    /// `ceil(2^32 / size)`.
    pub reciprocal: u32,
    /// Slots in a slab.
    pub capacity: u16,
}

/// The class for `size` bytes, in `1..=SLAB_MAX`. For other sizes, the result has no meaning.
#[inline]
pub const fn of(size: usize) -> usize {
    let last = size.wrapping_sub(1);
    if last < LINEAR_MAX {
        last / MIN_ALIGN
    } else {
        // `last` has its top bit at 9..=14; the three bits below it are the step.
        let top = (usize::BITS - 1 - (last | LINEAR_MAX).leading_zeros()) as usize;
        let step = (last >> (top - 3)) & 7;
        LINEAR_CLASSES + (top - 9) * 8 + step
    }
}

/// The smallest class of at least `size` bytes whose slots are all aligned to `align`. `None`: no
/// slab can serve the request, or `align` is no power of two.
#[inline]
pub const fn of_aligned(size: usize, align: usize) -> Option<usize> {
    if size > SLAB_MAX || align > SLAB_MAX || !align.is_power_of_two() {
        return None;
    }
    let size = if size == 0 { 1 } else { size };
    let multiple = (size + (align - 1)) & !(align - 1);
    if multiple > SLAB_MAX { None } else { Some(of(multiple)) }
}

/// Bytes in a slot of `class`.
#[inline]
pub const fn size(class: usize) -> usize {
    TABLE[class].size as usize
}

/// Slots in a slab of `class`.
#[inline]
pub const fn capacity(class: usize) -> usize {
    TABLE[class].capacity as usize
}

/// The index of the slot at `offset` bytes into a slab of `class`.
#[inline]
pub const fn slot_of(class: usize, offset: usize) -> usize {
    ((offset as u64 * TABLE[class].reciprocal as u64) >> 32) as usize
}

/// The reciprocal of `class`.
#[inline]
pub const fn reciprocal(class: usize) -> u32 {
    TABLE[class].reciprocal
}

/// Whether a slot begins `offset` bytes into a slab; the slab's capacity is not checked.
#[inline(always)]
pub const fn is_slot_start(offset: u32, reciprocal: u32) -> bool {
    offset.wrapping_mul(reciprocal) < UNIT as u32
}

/// All classes.
pub static TABLE: [Class; CLASSES] = build_table();
const fn build_table() -> [Class; CLASSES] {
    let mut table = [Class { size: 0, reciprocal: 0, capacity: 0 }; CLASSES];
    let mut class = 0;
    while class < CLASSES {
        let size = if class < LINEAR_CLASSES {
            (class + 1) * MIN_ALIGN
        } else {
            let above = class - LINEAR_CLASSES;
            let base = LINEAR_MAX << (above / 8);
            base + (above % 8 + 1) * (base / 8)
        };
        table[class] = Class {
            size: size as u32,
            reciprocal: (1u64 << 32).div_ceil(size as u64) as u32,
            capacity: (UNIT / size) as u16,
        };
        class += 1;
    }
    table
}

const _: () = assert!(size(CLASSES - 1) == SLAB_MAX);
const _: () = assert!(size(LINEAR_CLASSES - 1) == LINEAR_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic without a pointer")]
    fn every_size_gets_the_smallest_class_that_holds_it() {
        for request in 1..=SLAB_MAX {
            let class = of(request);
            assert!(size(class) >= request, "{request}");
            assert!(class == 0 || size(class - 1) < request, "{request}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic without a pointer")]
    fn waste_is_at_most_15_bytes_or_an_eighth() {
        for request in 1..=SLAB_MAX {
            let waste = size(of(request)) - request;
            assert!(waste <= 15 || waste * 8 <= request, "{request}");
        }
    }

    #[test]
    fn sizes_are_multiples_of_16_and_increase() {
        for class in 0..CLASSES {
            assert_eq!(size(class) % MIN_ALIGN, 0);
            assert!(class == 0 || size(class) > size(class - 1));
            assert_eq!(of(size(class)), class);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic without a pointer")]
    fn reciprocals_divide_every_offset_exactly() {
        for class in 0..CLASSES {
            for offset in 0..UNIT {
                let slot = size(class);
                assert_eq!(slot_of(class, offset), offset / slot);
                let starts = is_slot_start(offset as u32, reciprocal(class));
                assert_eq!(starts, offset % slot == 0);
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic without a pointer")]
    fn aligned_classes_are_aligned_big_enough_and_minimal() {
        for shift in 0..=15 {
            let align = 1 << shift;
            for request in (0..=SLAB_MAX).step_by(7) {
                let class = of_aligned(request, align).unwrap();
                assert!(size(class) >= request && size(class).is_multiple_of(align));
                for smaller in of(request.max(1))..class {
                    assert_ne!(size(smaller) % align, 0, "{request} {align}");
                }
            }
        }
        assert_eq!(of_aligned(16, UNIT), None);
        assert_eq!((of_aligned(16, 0), of_aligned(16, 48)), (None, None));
        assert_eq!(of_aligned(SLAB_MAX + 1, 16), None);
    }
}
