//! The body that all versions of the `Allocator` trait share.
//!
//! A zero-sized request gets a dangling, aligned pointer, as the traits allow,
//! so empty collections cost nothing.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;

use super::Heapwright;

/// A block, or `None` where there is no memory.
#[inline]
pub(super) fn allocate(layout: Layout, zeroed: bool) -> Option<NonNull<[u8]>> {
    let block = match (layout.size(), zeroed) {
        (0, _) => core::ptr::without_provenance_mut(layout.align()),
        // SAFETY: the size is not 0.
        (_, false) => unsafe { Heapwright.alloc(layout) },
        // SAFETY: the size is not 0.
        (_, true) => unsafe { Heapwright.alloc_zeroed(layout) },
    };
    Some(NonNull::slice_from_raw_parts(NonNull::new(block)?, layout.size()))
}

/// Frees a block.
///
/// # Safety
///
/// The block came from [`allocate`] or [`resize`] with this layout.
#[inline]
pub(super) unsafe fn deallocate(block: NonNull<u8>, layout: Layout) {
    if layout.size() != 0 {
        // SAFETY: by the contract the block is of this layout.
        unsafe { Heapwright.dealloc(block.as_ptr(), layout) };
    }
}

/// Grows or shrinks a block, moving it where it must; new bytes are zero if
/// `zeroed`. `None`: no memory, and the block is as it was.
///
/// # Safety
///
/// The block came from here with the layout `old`.
pub(super) unsafe fn resize(
    block: NonNull<u8>,
    old: Layout,
    new: Layout,
    zeroed: bool,
) -> Option<NonNull<[u8]>> {
    let kept = old.size().min(new.size());
    if old.align() == new.align() && old.size() != 0 && new.size() != 0 {
        // SAFETY: by the contract the block is of the old layout; the new size
        // is not 0, and no larger than a layout allows.
        let moved = unsafe { Heapwright.realloc(block.as_ptr(), old, new.size()) };
        let moved = NonNull::new(moved)?;
        if zeroed {
            // SAFETY: the block has the new size, of which `kept` bytes are used.
            let tail = unsafe { moved.add(kept) };
            // SAFETY: as above.
            unsafe { tail.write_bytes(0, new.size() - kept) };
        }
        return Some(NonNull::slice_from_raw_parts(moved, new.size()));
    }
    let moved = allocate(new, zeroed)?;
    // SAFETY: both have `kept` bytes, and the new one is ours alone.
    unsafe { block.copy_to_nonoverlapping(moved.cast(), kept) };
    // SAFETY: the same contract.
    unsafe { deallocate(block, old) };
    Some(moved)
}

/// Implements one version of the trait for [`Heapwright`].
macro_rules! implement {
    ($($path:ident)::+) => {
        use core::alloc::Layout;
        use core::ptr::NonNull;
        use $($path)::+::{AllocError, Allocator};
        use super::{Heapwright, allocator};

        // SAFETY: blocks are of the layout asked for and stay valid until they are
        // freed; every handle is the same allocator.
        unsafe impl Allocator for Heapwright {
            #[inline]
            fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
                allocator::allocate(layout, false).ok_or(AllocError)
            }

            #[inline]
            fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
                allocator::allocate(layout, true).ok_or(AllocError)
            }

            #[inline]
            unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
                // SAFETY: the trait's contract.
                unsafe { allocator::deallocate(block, layout) };
            }

            #[inline]
            unsafe fn grow(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, AllocError> {
                // SAFETY: the trait's contract.
                unsafe { allocator::resize(block, old, new, false) }.ok_or(AllocError)
            }

            #[inline]
            unsafe fn grow_zeroed(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, AllocError> {
                // SAFETY: the trait's contract.
                unsafe { allocator::resize(block, old, new, true) }.ok_or(AllocError)
            }

            #[inline]
            unsafe fn shrink(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, AllocError> {
                // SAFETY: the trait's contract.
                unsafe { allocator::resize(block, old, new, false) }.ok_or(AllocError)
            }
        }
    };
}

pub(super) use implement;
