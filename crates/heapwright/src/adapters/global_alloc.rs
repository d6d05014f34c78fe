//! `#[global_allocator]`.
//!
//! ```text
//! Linux (x86-64, aarch64), Miri   the heap
//! other systems                   System, the allocator that the program had without us
//! ```
//!
//! Elsewhere the window is a piece of what Rust's own allocator gives (`os::portable`), so a heap
//! on it would have its cost twice, and a program's whole memory in a window of fixed size. What a
//! program asks of pools, arenas, realms and the debug wrappers works there as here; of
//! `Heapwright` it may ask the same everywhere, without a `cfg` of its own.

#[cfg(any(miri, all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod imp {
    use core::alloc::{GlobalAlloc, Layout};

    use crate::Heapwright;
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

    // SAFETY: all is passed on to the system's allocator, which keeps the trait's contract.
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
            // SAFETY: by the trait's contract the block is of this layout, and came from here: from
            // the system.
            unsafe { System.dealloc(block, layout) };
        }

        #[inline]
        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            // SAFETY: by the trait's contract the block is of this layout, and came from here: from
            // the system.
            unsafe { System.realloc(block, layout, size) }
        }
    }
}
