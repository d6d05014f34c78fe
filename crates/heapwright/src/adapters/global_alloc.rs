//! `#[global_allocator]`.
//!
//! ```text
//! Linux (x86-64, aarch64), Miri   the heap
//! other systems                   `System`, the allocator that the program would have without us
//! ```
//!
//! On other systems the window is memory of Rust's own allocator (`os::portable`). There the heap
//! would cost as much as both allocators, and the program could not use more than the window.

#[cfg(any(miri, all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod imp {
    use core::alloc::{GlobalAlloc, Layout};

    use crate::Heapwright;
    use crate::heap::{self, RUST};

    // SAFETY: blocks have the requested layout, do not move, and only the caller frees them.
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
            // SAFETY: by the trait's contract the block is ours and has this layout.
            unsafe { heap::free_sized_aligned_from::<RUST>(block, layout.size(), layout.align()) };
        }

        #[inline]
        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            // SAFETY: by the trait's contract the block is ours and has this layout.
            unsafe { heap::realloc_sized_from::<RUST>(block, layout.size(), layout.align(), size) }
        }
    }
}

#[cfg(not(any(
    miri,
    all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))
)))]
mod imp {
    extern crate std;

    use core::alloc::{GlobalAlloc, Layout};
    use std::alloc::System;

    use crate::Heapwright;

    // SAFETY: all calls go to the system's allocator, which keeps the trait's contract.
    unsafe impl GlobalAlloc for Heapwright {
        #[inline]
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: by the trait's contract the size is not 0.
            unsafe { System.alloc(layout) }
        }

        #[inline]
        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            // SAFETY: by the trait's contract the size is not 0.
            unsafe { System.alloc_zeroed(layout) }
        }

        #[inline]
        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: by the trait's contract the system made the block through us, with this
            // layout.
            unsafe { System.dealloc(block, layout) };
        }

        #[inline]
        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            // SAFETY: by the trait's contract the system made the block through us, with this
            // layout.
            unsafe { System.realloc(block, layout, size) }
        }
    }
}
