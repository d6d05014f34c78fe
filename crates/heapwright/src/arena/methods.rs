//! The allocating methods of every arena, written once.
//!
//! [`Arena`](super::Arena), [`Scope`](super::Scope) and [`SharedArena`](super::SharedArena) differ
//! in their source of memory (`place`) and in the lifetime of objects.

/// Implements the allocating methods for a type with `place(&self, Layout)`. The lifetime is that
/// of the objects.
macro_rules! allocating {
    ($life:lifetime) => {
        /// Moves a value into the arena, which does not drop it. O(1) amortised.
        ///
        /// Ends the process with one line if there is no memory; `try_alloc` returns an error
        /// instead.
        #[inline(always)]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn alloc<T>(&self, value: T) -> &$life mut T {
            let at = match self.place_here(Layout::new::<T>()) {
                Some(at) => at,
                None if size_of::<T>() <= IN_REGISTERS => return self.alloc_cold(value),
                None => self.alloc_layout_cold(Layout::new::<T>()),
            };
            // SAFETY: the memory has the type's layout, and no other code has it.
            unsafe { super::methods::put(at, value) }
        }

        /// Runs the slow path of `alloc` for a value in registers. This is a tail call, so the fast
        /// path saves no registers.
        #[cold]
        #[inline(never)]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        fn alloc_cold<T>(&self, value: T) -> &$life mut T {
            let at = self.alloc_layout_cold(Layout::new::<T>());
            // SAFETY: the memory has the type's layout, and no other code has it.
            unsafe { super::methods::put(at, value) }
        }

        /// Does the same as `alloc`, with an error.
        ///
        /// # Errors
        ///
        /// Returns the value if there is no memory or the limit is reached.
        #[inline]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn try_alloc<T>(&self, value: T) -> Result<&$life mut T, Refused<T>> {
            match self.place(Layout::new::<T>()) {
                // SAFETY: the memory has the type's layout, and no other code has it.
                Some(at) => Ok(unsafe { super::methods::put(at, value) }),
                None => Err(Refused(value)),
            }
        }

        /// Copies a slice into the arena. O(bytes).
        #[inline]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn alloc_slice_copy<T: Copy>(&self, from: &[T]) -> &$life mut [T] {
            self.try_alloc_slice_copy(from).unwrap_or_else(|_| no_room())
        }

        /// Does the same as `alloc_slice_copy`, with an error.
        ///
        /// # Errors
        ///
        /// If there is no memory or the limit is reached.
        #[inline]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn try_alloc_slice_copy<T: Copy>(
            &self,
            from: &[T],
        ) -> Result<&$life mut [T], Refused<()>> {
            let at = self.place(Layout::for_value(from)).ok_or(Refused(()))?.cast::<T>();
            // SAFETY: the memory has the slice's layout, and no other code has it.
            unsafe { at.as_ptr().copy_from_nonoverlapping(from.as_ptr(), from.len()) };
            // SAFETY: all elements were just written.
            Ok(unsafe { core::slice::from_raw_parts_mut(at.as_ptr(), from.len()) })
        }

        /// Clones a slice's elements into the arena, which does not drop them.
        #[inline]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn alloc_slice_clone<T: Clone>(&self, from: &[T]) -> &$life mut [T] {
            self.alloc_slice_fill_with(from.len(), |at| from[at].clone())
        }

        /// Makes a slice of `length` elements in the arena, each by `make` from its index. The
        /// arena does not drop them.
        #[inline]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn alloc_slice_fill_with<T>(
            &self,
            length: usize,
            make: impl FnMut(usize) -> T,
        ) -> &$life mut [T] {
            self.try_alloc_slice_fill_with(length, make).unwrap_or_else(|_| no_room())
        }

        /// Does the same as `alloc_slice_fill_with`, with an error.
        ///
        /// # Errors
        ///
        /// If there is no memory, the limit is reached, or the slice is larger than `isize::MAX`
        /// bytes.
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn try_alloc_slice_fill_with<T>(
            &self,
            length: usize,
            mut make: impl FnMut(usize) -> T,
        ) -> Result<&$life mut [T], Refused<()>> {
            let layout = Layout::array::<T>(length).map_err(|_| Refused(()))?;
            let first = self.place(layout).ok_or(Refused(()))?.cast::<T>();
            for at in 0..length {
                let value = make(at);
                // SAFETY: in the new memory.
                let element = unsafe { first.add(at) };
                // SAFETY: an element of the new memory, which no other code has.
                unsafe { element.write(value) };
            }
            // SAFETY: all elements are written.
            Ok(unsafe { core::slice::from_raw_parts_mut(first.as_ptr(), length) })
        }

        /// Collects an `ExactSizeIterator` into a slice of its reported length, or shorter if it
        /// ends early.
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn alloc_slice_fill_iter<T, I>(&self, from: I) -> &$life mut [T]
        where
            I: IntoIterator<Item = T>,
            I::IntoIter: ExactSizeIterator,
        {
            let from = from.into_iter();
            let length = from.len();
            let Ok(layout) = Layout::array::<T>(length) else { no_room() };
            let Some(first) = self.place(layout) else { no_room() };
            let first = first.cast::<T>();
            let mut count = 0;
            for value in from.take(length) {
                // SAFETY: in the new memory.
                let element = unsafe { first.add(count) };
                // SAFETY: an element of the new memory, which no other code has.
                unsafe { element.write(value) };
                count += 1;
            }
            // SAFETY: this many elements are written.
            unsafe { core::slice::from_raw_parts_mut(first.as_ptr(), count) }
        }

        /// Copies a string into the arena. O(bytes).
        #[inline]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn alloc_str(&self, from: &str) -> &$life mut str {
            self.try_alloc_str(from).unwrap_or_else(|_| no_room())
        }

        /// Does the same as `alloc_str`, with an error.
        ///
        /// # Errors
        ///
        /// If there is no memory or the limit is reached.
        #[inline]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn try_alloc_str(&self, from: &str) -> Result<&$life mut str, Refused<()>> {
            let bytes = self.try_alloc_slice_copy(from.as_bytes())?;
            // SAFETY: the bytes are a copy of a string, so they are UTF-8.
            Ok(unsafe { core::str::from_utf8_unchecked_mut(bytes) })
        }

        /// Returns uninitialised memory for a layout. O(1) amortised.
        #[inline(always)]
        pub fn alloc_layout(&self, layout: Layout) -> NonNull<u8> {
            match self.place_here(layout) {
                Some(at) => at,
                None => self.alloc_layout_cold(layout),
            }
        }

        /// Runs the slow path of `alloc_layout`.
        #[cold]
        #[inline(never)]
        fn alloc_layout_cold(&self, layout: Layout) -> NonNull<u8> {
            self.place(layout).unwrap_or_else(|| no_room())
        }

        /// Does the same as `alloc_layout`, with an error.
        ///
        /// # Errors
        ///
        /// If there is no memory or the limit is reached.
        #[inline]
        pub fn try_alloc_layout(&self, layout: Layout) -> Result<NonNull<u8>, Refused<()>> {
            self.place(layout).ok_or(Refused(()))
        }
    };
}

pub(super) use allocating;

use core::ptr::NonNull;

/// Writes a value.
///
/// # Safety
///
/// `at` is memory of the type's layout that no other code has, and lives as long as the result.
#[inline(always)]
pub(super) unsafe fn put<'a, T>(at: NonNull<u8>, value: T) -> &'a mut T {
    let mut at = at.cast::<T>();
    // SAFETY: the caller promises that the memory has the type's layout and no other code has it.
    unsafe { at.write(value) };
    // SAFETY: written just now.
    unsafe { at.as_mut() }
}

/// Ends the process: there is no memory, and the caller takes no error.
#[cold]
#[inline(never)]
pub(super) fn no_room() -> ! {
    crate::misuse::no_room("arena", "")
}
