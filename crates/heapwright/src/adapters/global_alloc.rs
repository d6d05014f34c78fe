//! `#[global_allocator]`.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr;

use super::Heapwright;
use crate::heap;

/// Every block is aligned to this without asking.
const NATURAL: usize = 16;

// SAFETY: blocks are of the layout asked for, stay where they are, and are
// freed by nobody else.
unsafe impl GlobalAlloc for Heapwright {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        heap::malloc_aligned(layout.size(), layout.align())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        heap::calloc_aligned(layout.size(), layout.align())
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: by the trait's contract the block is of this layout, and ours.
        unsafe { heap::free_sized(block, layout.size(), layout.align()) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= NATURAL {
            // SAFETY: by the trait's contract the block is ours.
            return unsafe { heap::realloc(block, size) };
        }
        // SAFETY: `Layout` rules out sizes that overflow when rounded up.
        let layout_after = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the trait's contract says that `size` is not 0.
        let new = unsafe { self.alloc(layout_after) };
        if !new.is_null() {
            // SAFETY: both have so many bytes, and the new one is ours alone.
            unsafe { ptr::copy_nonoverlapping(block, new, layout.size().min(size)) };
            // SAFETY: by the trait's contract the block is of this layout.
            unsafe { self.dealloc(block, layout) };
        }
        new
    }
}
