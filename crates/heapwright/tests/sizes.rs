//! Every size: all of the usable size can be used, and it is not much larger than the request.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use common::{Owned, SLAB_MAX, UNIT};
use heapwright::heap;

#[test]
fn every_size_is_usable_to_its_last_byte() {
    for size in (0..=5000).chain((5000..SLAB_MAX + 200).step_by(61)) {
        let block = heap::malloc(size);
        // SAFETY: the block is in use.
        let usable = unsafe { heap::usable_size(block) };
        assert!(usable >= size.max(1), "{usable} of {size}");
        // Slots have at most 15 bytes or an eighth more. Large blocks have whole pages.
        let most = if size <= SLAB_MAX { size.max(1) + (size / 8).max(15) } else { size + 4095 };
        assert!(usable <= most, "{usable} usable bytes for {size}");
        // SAFETY: all of the usable bytes are the program's.
        unsafe { block.write_bytes(0xa5, usable) };
        // SAFETY: the byte is usable, and all usable bytes are the program's.
        assert_eq!(unsafe { block.wrapping_add(usable - 1).read() }, 0xa5);
        // SAFETY: the block is in use, and this is the last use.
        unsafe { heap::free_sized(block, size, 16) };
    }
    // SAFETY: null is no block.
    assert_eq!(unsafe { heap::usable_size(std::ptr::null()) }, 0);
    // SAFETY: null does nothing.
    unsafe { heap::free(std::ptr::null_mut()) };
}

#[test]
fn neighbours_of_one_size_do_not_share_a_byte() {
    for size in [1, 16, 24, 100, 512, 520, 3000, SLAB_MAX, UNIT] {
        let mut blocks: Vec<Owned> = (0..40).map(|_| Owned::malloc(size)).collect();
        for block in &mut blocks {
            // SAFETY: all of the usable bytes are the program's.
            unsafe { block.at.write_bytes(0xff, block.usable()) };
            block.fill();
        }
        assert!(blocks.iter().all(|block| block.is_intact(size)), "{size}");
        blocks.into_iter().for_each(Owned::free);
    }
}

#[test]
fn sizes_that_no_block_can_have_are_refused() {
    for size in [usize::MAX, usize::MAX - 15, isize::MAX as usize + 1, isize::MAX as usize, 1 << 60]
    {
        assert!(heap::malloc(size).is_null(), "{size}");
        assert!(heap::calloc(size).is_null(), "{size}");
        assert!(heap::malloc_aligned(size, 4096).is_null(), "{size}");
        let mut block = Owned::malloc(100);
        assert!(!block.try_realloc(size), "{size}");
        let mut large = Owned::malloc(100_000);
        assert!(!large.try_realloc(size), "{size}");
        block.free();
        large.free();
    }
}
