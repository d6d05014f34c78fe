//! What can be made in every arena, written once.
//!
//! [`Arena`](super::Arena), [`Scope`](super::Scope) and
//! [`SharedArena`](super::SharedArena) differ in where memory comes from (their
//! `place`) and in how long it lives; all else is here.

/// Implements the allocating methods for a type whose `place(&self, Layout)` gives
/// memory. The lifetime is that of what is made.
macro_rules! allocating {
    ($life:lifetime) => {
        /// Puts a value into the arena. It will not be dropped.
        ///
        /// Ends the process with one line where there is no memory; `try_alloc`
        /// does not.
        #[inline(always)]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn alloc<T>(&self, value: T) -> &$life mut T {
            let at = match self.place_here(Layout::new::<T>()) {
                Some(at) => at,
                None if size_of::<T>() <= IN_REGISTERS => return self.alloc_cold(value),
                None => self.alloc_layout_cold(Layout::new::<T>()),
            };
            // SAFETY: memory of the type's layout, which nobody else has.
            unsafe { super::methods::put(at, value) }
        }

        /// The rest of `alloc` for a value in registers: a call that is the last thing
        /// its caller does, so that the way there needs no register saved.
        #[cold]
        #[inline(never)]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        fn alloc_cold<T>(&self, value: T) -> &$life mut T {
            let at = self.alloc_layout_cold(Layout::new::<T>());
            // SAFETY: memory of the type's layout, which nobody else has.
            unsafe { super::methods::put(at, value) }
        }

        /// As `alloc`.
        ///
        /// # Errors
        ///
        /// The value, where there is no memory or the limit is reached.
        #[inline]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn try_alloc<T>(&self, value: T) -> Result<&$life mut T, Refused<T>> {
            match self.place(Layout::new::<T>()) {
                // SAFETY: memory of the type's layout, which nobody else has.
                Some(at) => Ok(unsafe { super::methods::put(at, value) }),
                None => Err(Refused(value)),
            }
        }

        /// Puts a copy of a slice into the arena.
        #[inline]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn alloc_slice_copy<T: Copy>(&self, from: &[T]) -> &$life mut [T] {
            self.try_alloc_slice_copy(from).unwrap_or_else(|_| no_room())
        }

        /// As `alloc_slice_copy`.
        ///
        /// # Errors
        ///
        /// Where there is no memory or the limit is reached.
        #[inline]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn try_alloc_slice_copy<T: Copy>(
            &self,
            from: &[T],
        ) -> Result<&$life mut [T], Refused<()>> {
            let at = self.place(Layout::for_value(from)).ok_or(Refused(()))?.cast::<T>();
            // SAFETY: memory of the slice's layout, which nobody else has.
            unsafe { at.as_ptr().copy_from_nonoverlapping(from.as_ptr(), from.len()) };
            // SAFETY: written just now.
            Ok(unsafe { core::slice::from_raw_parts_mut(at.as_ptr(), from.len()) })
        }

        /// Puts clones of a slice's elements into the arena. They will not be dropped.
        #[inline]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn alloc_slice_clone<T: Clone>(&self, from: &[T]) -> &$life mut [T] {
            self.alloc_slice_fill_with(from.len(), |at| from[at].clone())
        }

        /// Puts a slice of `length` elements into the arena, each made by `make` from
        /// its index. They will not be dropped.
        #[inline]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn alloc_slice_fill_with<T>(
            &self,
            length: usize,
            make: impl FnMut(usize) -> T,
        ) -> &$life mut [T] {
            self.try_alloc_slice_fill_with(length, make).unwrap_or_else(|_| no_room())
        }

        /// As `alloc_slice_fill_with`.
        ///
        /// # Errors
        ///
        /// Where there is no memory, the limit is reached, or the slice would be larger
        /// than all memory.
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
                // SAFETY: in the memory just given.
                let element = unsafe { first.add(at) };
                // SAFETY: an element of the memory just given, which nobody else has.
                unsafe { element.write(value) };
            }
            // SAFETY: all elements are written.
            Ok(unsafe { core::slice::from_raw_parts_mut(first.as_ptr(), length) })
        }

        /// Puts what an iterator gives into the arena as a slice: as many as it says it
        /// has, or fewer, if it ends before.
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
                // SAFETY: in the memory just given.
                let element = unsafe { first.add(count) };
                // SAFETY: an element of the memory just given, which nobody else has.
                unsafe { element.write(value) };
                count += 1;
            }
            // SAFETY: so many elements are written.
            unsafe { core::slice::from_raw_parts_mut(first.as_ptr(), count) }
        }

        /// Puts a copy of a string into the arena.
        #[inline]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn alloc_str(&self, from: &str) -> &$life mut str {
            self.try_alloc_str(from).unwrap_or_else(|_| no_room())
        }

        /// As `alloc_str`.
        ///
        /// # Errors
        ///
        /// Where there is no memory or the limit is reached.
        #[inline]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn try_alloc_str(&self, from: &str) -> Result<&$life mut str, Refused<()>> {
            let bytes = self.try_alloc_slice_copy(from.as_bytes())?;
            // SAFETY: a copy of a string.
            Ok(unsafe { core::str::from_utf8_unchecked_mut(bytes) })
        }

        /// Memory for a layout, uninitialised.
        #[inline(always)]
        pub fn alloc_layout(&self, layout: Layout) -> NonNull<u8> {
            match self.place_here(layout) {
                Some(at) => at,
                None => self.alloc_layout_cold(layout),
            }
        }

        /// The rest of `alloc_layout`.
        #[cold]
        #[inline(never)]
        fn alloc_layout_cold(&self, layout: Layout) -> NonNull<u8> {
            self.place(layout).unwrap_or_else(|| no_room())
        }

        /// As `alloc_layout`.
        ///
        /// # Errors
        ///
        /// Where there is no memory or the limit is reached.
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
/// `at` is memory of the type's layout that nobody else has, and lives as long as
/// the result.
#[inline(always)]
pub(super) unsafe fn put<'a, T>(at: NonNull<u8>, value: T) -> &'a mut T {
    let mut at = at.cast::<T>();
    // SAFETY: memory of the type's layout that nobody else has, as the caller promises.
    unsafe { at.write(value) };
    // SAFETY: written just now.
    unsafe { at.as_mut() }
}

/// There is no memory for a caller that cannot be given an error.
#[cold]
#[inline(never)]
pub(super) fn no_room() -> ! {
    crate::misuse::no_room("arena", "")
}
