//! Every alignment with every kind of size.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use common::{Owned, SLAB_MAX, UNIT};
use heapwright::heap::{self, Heap};

const SIZES: [usize; 16] = [
    0,
    1,
    15,
    17,
    48,
    100,
    511,
    513,
    1000,
    4097,
    20_000,
    SLAB_MAX - 1,
    SLAB_MAX + 1,
    UNIT,
    UNIT + 1,
    5 * UNIT,
];

#[test]
fn every_alignment_is_kept_for_every_size() {
    for shift in 0..=22 {
        let align = 1 << shift;
        for size in SIZES {
            // Several blocks, so that not all are the first of their slab.
            let count = if size <= SLAB_MAX && align <= SLAB_MAX { 5 } else { 2 };
            let blocks: Vec<Owned> = (0..count).map(|_| Owned::aligned(size, align)).collect();
            for block in blocks {
                assert!(block.usable() >= size);
                block.free();
            }
            let zeroed = heap::calloc_aligned(size, align);
            assert!(zeroed.addr().is_multiple_of(align));
            // SAFETY: the block has `size` initialised bytes.
            let bytes = unsafe { std::slice::from_raw_parts(zeroed, size) };
            assert!(bytes.iter().all(|&byte| byte == 0), "{size}, {align}");
            let block = Owned::adopt(zeroed, size);
            // SAFETY: the block is in use, of this size and alignment, and this is the last use.
            unsafe { heap::free_sized(block.into_raw(), size, align) };
        }
    }
}

#[test]
fn a_heap_of_its_own_keeps_alignments_too() {
    let own = Heap::create();
    for shift in 0..=18 {
        let align = 1 << shift;
        for size in SIZES {
            // SAFETY: the heap exists.
            let at = unsafe { Heap::alloc(own, size, align, false) };
            assert!(at.addr().is_multiple_of(align), "{size}, {align}");
            let block = Owned::adopt(at, size);
            assert!(block.usable() >= size);
            block.free();
        }
    }
    // SAFETY: no code uses the heap or its blocks afterwards.
    unsafe { Heap::destroy(own) };
}

#[test]
fn an_alignment_that_is_no_power_of_two_is_rounded_up() {
    for align in [0, 3, 17, 48, 100, 4097, 40_000, 100_000] {
        for size in SIZES {
            for at in [heap::malloc_aligned(size, align), heap::calloc_aligned(size, align)] {
                assert!(at.addr().is_multiple_of(align.next_power_of_two()), "{size}, {align}");
                let block = Owned::adopt(at, size);
                assert!(block.usable() >= size);
                block.free();
            }
            assert!(heap::good_size(size, align).is_some_and(|good| good >= size));
        }
        for size in [usize::MAX, usize::MAX - 15, isize::MAX as usize + 1, isize::MAX as usize] {
            assert!(heap::malloc_aligned(size, align).is_null(), "{size}, {align}");
            assert!(heap::calloc_aligned(size, align).is_null(), "{size}, {align}");
        }
    }
    assert!(heap::malloc_aligned(1, usize::MAX).is_null());
    assert!(heap::calloc_aligned(1, (1 << 63) + 1).is_null());
}

#[test]
fn alignments_beyond_the_address_space_are_refused() {
    for shift in [44, 50, 62, 63] {
        assert!(heap::malloc_aligned(1, 1 << shift).is_null(), "{shift}");
        assert!(heap::calloc_aligned(1 << 40, 1 << shift).is_null(), "{shift}");
    }
}
