//! The common body of all versions of the `Allocator` trait.
//!
//! ```text
//!   Source   take, give, change                    one implementation for each kind of memory
//!     ^
//!   Allocator of allocator-api2 0.2, 0.3, 0.4, std      one macro, written out per version
//! ```
//!
//! A zero-sized request gets a dangling, aligned pointer, as the traits allow.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;

use super::Heapwright;
use crate::arena::make::Memory;
use crate::arena::{Arena, Scope, SharedArena};

/// The operations that the traits need of a kind of memory.
pub(super) trait Source {
    /// Returns `None` if there is no memory. The size must not be 0.
    fn take(&self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>>;

    /// # Safety
    ///
    /// The block came from this source with this layout, whose size is not 0.
    unsafe fn give(&self, block: NonNull<u8>, layout: Layout);

    /// May move the block. `None` if there is no memory. Then the block is unchanged.
    ///
    /// # Safety
    ///
    /// The block came from this source with the layout `old`. The alignments are equal, and neither
    /// size is 0.
    unsafe fn change(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Option<NonNull<u8>>;
}

macro_rules! of_global {
    ([$($generic:tt)*] $type:ty) => {
        impl<$($generic)*> Source for $type {
            #[inline]
            fn take(&self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>> {
                NonNull::new(match zeroed {
                    // SAFETY: the size is not 0.
                    false => unsafe { self.alloc(layout) },
                    // SAFETY: the size is not 0.
                    true => unsafe { self.alloc_zeroed(layout) },
                })
            }

            #[inline]
            unsafe fn give(&self, block: NonNull<u8>, layout: Layout) {
                // SAFETY: the caller promises that the block has this layout.
                unsafe { self.dealloc(block.as_ptr(), layout) };
            }

            #[inline]
            unsafe fn change(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Option<NonNull<u8>> {
                // SAFETY: the caller promises that the block has the old layout; the new size is
                // not 0, and valid for a layout.
                NonNull::new(unsafe { self.realloc(block.as_ptr(), old, new.size()) })
            }
        }
    };
}
of_global!([] Heapwright);
#[cfg(feature = "debug")]
of_global!([] & crate::debug::DebugHeap);
#[cfg(feature = "debug")]
of_global!([A: GlobalAlloc] &crate::debug::Checked<A>);

/// Implements [`Source`] for an arena, whose last block grows, shrinks and goes back in place.
macro_rules! of_arena {
    ($type:ty) => {
        impl Source for $type {
            #[inline]
            fn take(&self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>> {
                let block = self.memory().place(layout)?;
                if zeroed {
                    // SAFETY: the block has this many bytes, and no other code has it.
                    unsafe { block.write_bytes(0, layout.size()) };
                }
                Some(block)
            }

            #[inline]
            unsafe fn give(&self, block: NonNull<u8>, layout: Layout) {
                // SAFETY: the caller promises that the block is this source's, and no longer used.
                unsafe { self.memory().give(block, layout.size()) };
            }

            #[inline]
            unsafe fn change(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Option<NonNull<u8>> {
                // SAFETY: as the caller promises, the block is this source's, of the layout `old`.
                unsafe { self.memory().move_to(block, old, new) }
            }
        }
    };
}
of_arena!(&Arena);
of_arena!(&Scope<'_, '_>);
of_arena!(&SharedArena);

/// Returns `None` if there is no memory.
#[inline]
pub(super) fn allocate(
    source: &impl Source,
    layout: Layout,
    zeroed: bool,
) -> Option<NonNull<[u8]>> {
    let block = match layout.size() {
        0 => NonNull::new(core::ptr::without_provenance_mut(layout.align()))?,
        _ => source.take(layout, zeroed)?,
    };
    Some(NonNull::slice_from_raw_parts(block, layout.size()))
}

/// # Safety
///
/// The block came from [`allocate`] or [`resize`] with this layout.
#[inline]
pub(super) unsafe fn deallocate(source: &impl Source, block: NonNull<u8>, layout: Layout) {
    if layout.size() != 0 {
        // SAFETY: the block is of this source and layout, as the caller promises.
        unsafe { source.give(block, layout) };
    }
}

/// May move the block. If `zeroed`, new bytes are 0. `None` (and no change) without memory.
///
/// # Safety
///
/// The block came from [`allocate`] or [`resize`] with the layout `old`.
#[inline]
pub(super) unsafe fn resize(
    source: &impl Source,
    block: NonNull<u8>,
    old: Layout,
    new: Layout,
    zeroed: bool,
) -> Option<NonNull<[u8]>> {
    let kept = old.size().min(new.size());
    if old.align() == new.align() && old.size() != 0 && new.size() != 0 {
        // SAFETY: the caller promises that the block is this source's and has the layout `old`.
        let moved = unsafe { source.change(block, old, new) }?;
        if zeroed {
            // SAFETY: the block has the new size, of which `kept` bytes are used.
            let tail = unsafe { moved.add(kept) };
            // SAFETY: the new block is ours, and longer than `kept`.
            unsafe { tail.write_bytes(0, new.size() - kept) };
        }
        return Some(NonNull::slice_from_raw_parts(moved, new.size()));
    }
    let moved = allocate(source, new, zeroed)?;
    // SAFETY: both blocks have `kept` bytes, and the new one is ours alone.
    unsafe { block.copy_to_nonoverlapping(moved.cast(), kept) };
    // SAFETY: the block has the layout `old`, as the caller promises, and was copied.
    unsafe { deallocate(source, block, old) };
    Some(moved)
}

/// Implements one version of the trait for every kind of memory.
macro_rules! implement {
    ($($path:ident)::+) => {
        use core::alloc::Layout;
        use core::ptr::NonNull;
        use $($path)::+::{AllocError, Allocator};
        use super::{Heapwright, allocator};
        use crate::arena::{Arena, Scope, SharedArena};

        $crate::adapters::allocator::implement!(Heapwright, "every handle is the same allocator");
        $crate::adapters::allocator::implement!(&Arena, "while it is borrowed the arena is not reset");
        $crate::adapters::allocator::implement!(
            &Scope<'_, '_>, "while it is borrowed the scope does not end"
        );
        $crate::adapters::allocator::implement!(
            &SharedArena, "while it is borrowed the arena is not reset"
        );
        #[cfg(feature = "debug")]
        $crate::adapters::allocator::implement!(
            [] &crate::debug::DebugHeap, "while it is borrowed the heap is not ended"
        );
        #[cfg(feature = "debug")]
        $crate::adapters::allocator::implement!(
            [A: core::alloc::GlobalAlloc] &crate::debug::Checked<A>,
            "while it is borrowed it is not ended"
        );
    };
    ([$($generic:tt)*] $type:ty, $why:literal) => {
        // SAFETY: blocks have the requested layout and stay valid until they are freed or their
        // lifetime ends.
        #[doc = $why]
        unsafe impl<$($generic)*> Allocator for $type {
            #[inline]
            fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
                allocator::allocate(self, layout, false).ok_or(AllocError)
            }

            #[inline]
            fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
                allocator::allocate(self, layout, true).ok_or(AllocError)
            }

            #[inline]
            unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
                // SAFETY: by the trait's contract the block is this allocator's, of this layout.
                unsafe { allocator::deallocate(self, block, layout) };
            }

            #[inline]
            unsafe fn grow(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, AllocError> {
                // SAFETY: by the trait's contract the block is this allocator's, of this layout.
                unsafe { allocator::resize(self, block, old, new, false) }.ok_or(AllocError)
            }

            #[inline]
            unsafe fn grow_zeroed(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, AllocError> {
                // SAFETY: by the trait's contract the block is this allocator's, of this layout.
                unsafe { allocator::resize(self, block, old, new, true) }.ok_or(AllocError)
            }

            #[inline]
            unsafe fn shrink(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, AllocError> {
                // SAFETY: by the trait's contract the block is this allocator's, of this layout.
                unsafe { allocator::resize(self, block, old, new, false) }.ok_or(AllocError)
            }
        }
    };
    ($type:ty, $why:literal) => {
        $crate::adapters::allocator::implement!([] $type, $why);
    };
}

pub(super) use implement;
