//! `#[global_allocator]`.

use core::alloc::{GlobalAlloc, Layout};

use super::Heapwright;
use crate::heap::{self, RUST};

// SAFETY: blocks are of the layout asked for, stay where they are, and are
// freed by nobody else.
unsafe impl GlobalAlloc for Heapwright {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        heap::malloc_aligned_for::<RUST>(layout.size(), layout.align())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        heap::calloc_aligned_for::<RUST>(layout.size(), layout.align())
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: by the trait's contract the block is of this layout, and ours.
        unsafe { heap::free_sized_aligned_from::<RUST>(block, layout.size(), layout.align()) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: by the trait's contract the block is of this layout, and ours.
        unsafe { heap::realloc_sized_from::<RUST>(block, layout.size(), layout.align(), size) }
    }
}
