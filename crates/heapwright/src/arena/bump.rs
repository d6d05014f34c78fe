//! The arithmetic of a bump allocator.
//!
//! ```text
//!   position          start            end                limit
//!   |  used ... | padding | the request  |    free          |
//! ```
//!
//! The position moves upwards, so that the last block can grow in place. One comparison is enough:
//! addresses are below 2^57 and a `Layout`'s size is below 2^63, so no sum wraps.

#![forbid(unsafe_code)]

/// Returns the start and end of `size` bytes at the first multiple of `align` from `position` on.
#[inline(always)]
pub(super) const fn place(position: usize, size: usize, align: usize) -> (usize, usize) {
    let start = (position + (align - 1)) & align.wrapping_neg();
    (start, start + size)
}

/// Bytes of the first chunk. Regular chunks double, up to [`LARGEST`] bytes.
pub(super) const FIRST: usize = 64 << 10;
const LARGEST: usize = 8 << 20;

pub(super) fn first_chunk(needed: usize) -> usize {
    needed.clamp(1, LARGEST).next_multiple_of(FIRST)
}

/// Returns the bytes of the next chunk, and of the chunk after it, which may be twice as large. A
/// request that does not fit gets a chunk of its own size, and does not change the sequence.
pub(super) const fn next_chunk(usual: usize, needed: usize) -> (usize, usize) {
    if needed > usual {
        return (needed, usual);
    }
    (usual, if usual < LARGEST / 2 { usual * 2 } else { LARGEST })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases(500))]

        #[test]
        fn requests_are_aligned_and_do_not_overlap(
            position in 1usize..1 << 57, size in 0usize..=isize::MAX as usize, shift in 0u32..47,
        ) {
            let align = 1usize << shift;
            let size = size & !(align - 1);
            let (start, end) = place(position, size, align);
            prop_assert!(start >= position && start - position < align);
            prop_assert!(start.is_multiple_of(align));
            prop_assert_eq!(end.checked_sub(start), Some(size));
        }
    }

    #[test]
    fn chunks_double_and_large_requests_change_nothing() {
        let mut usual = FIRST;
        let mut sizes = [0; 10];
        for size in &mut sizes {
            (*size, usual) = next_chunk(usual, 100);
        }
        assert_eq!(sizes[0], FIRST);
        assert!(sizes[..8].windows(2).all(|pair| pair[1] == pair[0] * 2));
        assert_eq!(sizes[9], LARGEST);
        assert_eq!(next_chunk(FIRST, 1 << 30), (1 << 30, FIRST));
        assert_eq!(next_chunk(5 << 20, 100), (5 << 20, LARGEST));
        assert_eq!([0, FIRST + 1, 1 << 30].map(first_chunk), [FIRST, 2 * FIRST, LARGEST]);
    }
}
