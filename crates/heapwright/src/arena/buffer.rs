//! A row of elements that grows in an arena: the common part of vectors, strings and iterators.
//!
//! ```text
//!   first             length             capacity
//!   | elements ...    | no elements      |          the last block grows in place
//! ```

use core::alloc::Layout;
use core::mem::{self, ManuallyDrop};
use core::ptr::{self, NonNull};
use core::slice;

use super::make::Memory;
use crate::refused::Refused;

/// Owned elements. The buffer's drop drops them, and frees the block if it is the arena's last one.
pub(super) struct Buffer<'a, M: Memory, T> {
    memory: &'a M,
    first: NonNull<T>,
    capacity: usize,
    length: usize,
}

impl<'a, M: Memory, T> Buffer<'a, M, T> {
    /// The least capacity after growth: two cache lines, or four elements, or one large element.
    /// Excess room goes back to the arena if the block is its last one, as it usually is.
    const LEAST: usize = match size_of::<T>() {
        0 => 0,
        1..=32 => 128 / size_of::<T>(),
        33..=1024 => 4,
        _ => 1,
    };

    #[inline]
    pub(super) const fn new(memory: &'a M) -> Self {
        // Elements without a size need no memory.
        let capacity = if size_of::<T>() == 0 { usize::MAX } else { 0 };
        Self { memory, first: NonNull::dangling(), capacity, length: 0 }
    }

    #[inline]
    pub(super) fn with_capacity(memory: &'a M, capacity: usize) -> Result<Self, Refused<()>> {
        let mut buffer = Self::new(memory);
        if capacity > buffer.capacity {
            let layout = Layout::array::<T>(capacity).map_err(|_| Refused(()))?;
            buffer.first = memory.place(layout).ok_or(Refused(()))?.cast();
            buffer.capacity = capacity;
        }
        Ok(buffer)
    }

    #[inline]
    pub(super) fn memory(&self) -> &'a M {
        self.memory
    }

    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    #[inline]
    pub(super) fn as_slice(&self) -> &[T] {
        // SAFETY: this many elements are written.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.length) }
    }

    #[inline]
    pub(super) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: this many elements are written, and the buffer owns them.
        unsafe { slice::from_raw_parts_mut(self.first.as_ptr(), self.length) }
    }

    /// Returns the address of element `at`, which may lie behind the last one.
    #[inline]
    pub(super) fn at(&self, at: usize) -> *mut T {
        self.first.as_ptr().wrapping_add(at)
    }

    #[inline]
    pub(super) fn reserve(&mut self, more: usize) -> Result<(), Refused<()>> {
        if more <= self.capacity - self.length { Ok(()) } else { self.grow(more) }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, more: usize) -> Result<(), Refused<()>> {
        let needed = self.length.checked_add(more).ok_or(Refused(()))?;
        let usual = needed.max(Self::LEAST).max(self.capacity.saturating_mul(2));
        let old = self.layout().size();
        if let Ok(new) = Layout::array::<T>(usual)
            && old > 0
            // SAFETY: the buffer owns its block, which has the old size.
            && unsafe { self.memory.resize(self.first.cast(), old, new.size()) }
        {
            self.capacity = usual;
            return Ok(());
        }
        // If there is no memory for the usual size, takes only the needed elements.
        self.move_to(usual).or_else(|| self.move_to(needed)).ok_or(Refused(()))
    }

    /// Moves the elements to a block of this capacity, at least the length. `None` without memory.
    #[cold]
    #[inline(never)]
    fn move_to(&mut self, capacity: usize) -> Option<()> {
        let first = self.memory.place(Layout::array::<T>(capacity).ok()?)?.cast::<T>();
        if self.length > 0 {
            // SAFETY: the new block has room for the elements, and overlaps no other block.
            unsafe { first.copy_from_nonoverlapping(self.first, self.length) };
        }
        (self.first, self.capacity) = (first, capacity);
        Some(())
    }

    fn layout(&self) -> Layout {
        let size = if size_of::<T>() == 0 { 0 } else { self.capacity * size_of::<T>() };
        // SAFETY: a block of this layout was taken, or the size is 0.
        unsafe { Layout::from_size_align_unchecked(size, align_of::<T>()) }
    }

    pub(super) fn shrink(&mut self) {
        let old = self.layout();
        let size = self.length * size_of::<T>();
        if size == old.size() {
            return;
        }
        // SAFETY: the buffer owns its block, of which only `size` bytes are used.
        if unsafe { self.memory.resize(self.first.cast(), old.size(), size) } {
            self.capacity = self.length;
        }
    }

    #[inline]
    pub(super) fn push(&mut self, value: T) -> Result<(), Refused<T>> {
        if self.length == self.capacity && self.grow(1).is_err() {
            return Err(Refused(value));
        }
        // SAFETY: the capacity is larger than the length.
        unsafe { self.write(value) };
        Ok(())
    }

    /// Writes an element behind the last one.
    ///
    /// # Safety
    ///
    /// The capacity is larger than the length.
    #[inline(always)]
    unsafe fn write(&mut self, value: T) {
        // SAFETY: the caller promises room, and the buffer owns its block.
        unsafe { self.at(self.length).write(value) };
        self.length += 1;
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        self.length = self.length.checked_sub(1)?;
        // SAFETY: the element was written, and is no longer in the length.
        Some(unsafe { self.at(self.length).read() })
    }

    #[inline]
    pub(super) fn extend(&mut self, from: impl IntoIterator<Item = T>) -> Result<(), Refused<()>> {
        /// Counts elements in a register. Its drop stores the length, even during a panic.
        struct Length<'l>(&'l mut usize, usize);
        impl Drop for Length<'_> {
            #[inline(always)]
            fn drop(&mut self) {
                *self.0 = self.1;
            }
        }
        let mut from = from.into_iter();
        self.reserve(from.size_hint().0)?;
        loop {
            let (first, old) = (self.first.as_ptr(), self.length);
            let mut length = Length(&mut self.length, old);
            while length.1 < self.capacity {
                let Some(value) = from.next() else { return Ok(()) };
                // SAFETY: the capacity is larger than the length, and the buffer owns its block.
                unsafe { first.wrapping_add(length.1).write(value) };
                length.1 += 1;
            }
            drop(length);
            let Some(value) = from.next() else { return Ok(()) };
            self.reserve(from.size_hint().0.saturating_add(1))?;
            // SAFETY: there is room for at least one element more.
            unsafe { self.write(value) };
        }
    }

    #[inline]
    pub(super) fn copy(&mut self, from: &[T]) -> Result<(), Refused<()>>
    where
        T: Copy,
    {
        self.reserve(from.len())?;
        let end = self.at(self.length);
        // SAFETY: the block has room for the elements. The block is the buffer's alone.
        unsafe { end.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        self.length += from.len();
        Ok(())
    }

    pub(super) fn insert(&mut self, index: usize, value: T) -> Result<(), Refused<T>> {
        assert!(index <= self.length, "index {index} is behind the length {}", self.length);
        if self.reserve(1).is_err() {
            return Err(Refused(value));
        }
        let at = self.at(index);
        // SAFETY: the block has room for one more element behind those that move.
        unsafe { at.copy_to(at.wrapping_add(1), self.length - index) };
        // SAFETY: the element that was here has moved.
        unsafe { at.write(value) };
        self.length += 1;
        Ok(())
    }

    pub(super) fn remove(&mut self, index: usize) -> T {
        assert!(index < self.length, "index {index} is not below the length {}", self.length);
        let at = self.at(index);
        // SAFETY: the element was written, and its place is overwritten or cut off next.
        let value = unsafe { at.read() };
        self.length -= 1;
        // SAFETY: the elements behind the removed element were written, and lie in the block.
        unsafe { at.copy_from(at.wrapping_add(1), self.length - index) };
        value
    }

    pub(super) fn truncate(&mut self, length: usize) {
        let Some(count) = self.length.checked_sub(length) else { return };
        // This comes before the destructors run, so that no element is dropped twice after a panic.
        self.length = length;
        let rest = ptr::slice_from_raw_parts_mut(self.at(length), count);
        // SAFETY: the elements were written, and are no longer in the length.
        unsafe { rest.drop_in_place() };
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        /// The elements before `kept` stay. `keep` has not judged the elements from `next` on.
        struct Gap<'g, 'a, M: Memory, T> {
            buffer: &'g mut Buffer<'a, M, T>,
            kept: usize,
            next: usize,
            end: usize,
        }
        impl<M: Memory, T> Drop for Gap<'_, '_, M, T> {
            fn drop(&mut self) {
                // Also during a panic, the elements that `keep` has not judged stay.
                let (from, to) = (self.buffer.at(self.next), self.buffer.at(self.kept));
                let rest = self.end - self.next;
                // SAFETY: the elements from `next` on were written. The elements between `kept` and
                // `next` were moved or dropped.
                unsafe { to.copy_from(from, rest) };
                self.buffer.length = self.kept + rest;
            }
        }
        let end = self.length;
        // No element is in the length while some have moved.
        self.length = 0;
        let mut gap = Gap { buffer: self, kept: 0, next: 0, end };
        while gap.next < end {
            let at = gap.buffer.at(gap.next);
            // SAFETY: the element was written, and only this loop has it.
            let stays = keep(unsafe { &mut *at });
            gap.next += 1;
            if stays {
                // SAFETY: both places are in the block, and the first is free or the same.
                unsafe { gap.buffer.at(gap.kept).copy_from(at, 1) };
                gap.kept += 1;
            } else {
                // SAFETY: the element was written, and is in no part of the length any more.
                unsafe { at.drop_in_place() };
            }
        }
    }

    /// Returns the elements, which are not dropped. Gives the memory behind them back if possible.
    #[inline]
    pub(super) fn into_parts(mut self) -> (NonNull<T>, usize) {
        self.shrink();
        let this = ManuallyDrop::new(self);
        (this.first, this.length)
    }

    /// Hands the elements over to the caller, who drops them. The buffer keeps the block.
    #[inline]
    pub(super) fn hand_over(&mut self) -> usize {
        mem::take(&mut self.length)
    }
}

impl<M: Memory, T> Drop for Buffer<'_, M, T> {
    fn drop(&mut self) {
        /// Frees the block after the elements are dropped, even during a panic.
        struct Block<'b, 'a, M: Memory, T>(&'b Buffer<'a, M, T>);
        impl<M: Memory, T> Drop for Block<'_, '_, M, T> {
            fn drop(&mut self) {
                let size = self.0.layout().size();
                // SAFETY: the block is the buffer's, and its elements are dropped.
                unsafe { self.0.memory.give(self.0.first.cast(), size) };
            }
        }
        let elements = ptr::from_mut(self.as_mut_slice());
        let _block = Block(self);
        // SAFETY: the elements were written, and no code uses the buffer afterwards.
        unsafe { elements.drop_in_place() };
    }
}
