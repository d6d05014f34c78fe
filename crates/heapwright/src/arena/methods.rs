//! The allocating methods of every arena, written once.

/// Implements the allocating methods for a type with `memory(&self)`. Objects live for `life`.
/// Types that may need dropping outlive `bound`. Each example begins with the line `made`, which
/// makes an arena with the name `arena`, and ends with the line `end`.
macro_rules! allocating {
    (life $life:lifetime, bound [$($bound:lifetime)?], made $made:literal, end $end:literal) => {
        /// Moves a value into the arena. O(1) amortised. Ends the process with one line if there is
        /// no memory or the limit is reached.
        ///
        /// ```
        #[doc = $made]
        /// *arena.alloc(6) += 1;
        #[doc = $end]
        /// ```
        #[inline(always)]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn alloc<T $(: $bound)?>(&self, value: T) -> &$life mut T {
            make::value(self.memory(), value)
        }

        /// Does the same as `alloc`, with an error.
        ///
        /// # Errors
        ///
        /// Returns the value if there is no memory or the limit is reached.
        #[inline]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn try_alloc<T $(: $bound)?>(&self, value: T) -> Result<&$life mut T, Refused<T>> {
            make::try_value(self.memory(), value)
        }

        /// Makes a value in the arena. A large value is not moved there from the stack. O(1)
        /// amortised. Ends the process if there is no memory or the limit is reached. If `make`
        /// panics, the value's room is lost until the next reset.
        ///
        /// ```
        #[doc = $made]
        /// let zeros = arena.alloc_with(|| [0u8; 4096]);
        /// assert_eq!(zeros.len(), 4096);
        #[doc = $end]
        /// ```
        #[inline(always)]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn alloc_with<T $(: $bound)?>(&self, make: impl FnOnce() -> T) -> &$life mut T {
            make::with(self.memory(), make)
        }

        /// Does the same as `alloc_with`, with an error.
        ///
        /// # Errors
        ///
        /// If there is no memory or the limit is reached. Then `make` is not called.
        #[inline(always)]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn try_alloc_with<T $(: $bound)?>(
            &self,
            make: impl FnOnce() -> T,
        ) -> Result<&$life mut T, Refused<()>> {
            make::try_with(self.memory(), make)
        }

        /// Makes a value with a function that may fail. Ends the process if there is no memory or
        /// the limit is reached.
        ///
        /// # Errors
        ///
        /// Returns the error of `make`. The room is reused if it is still the last block.
        ///
        /// ```
        #[doc = $made]
        /// let parse = |text: &str| text.parse::<i32>();
        /// assert_eq!(arena.alloc_try_with(|| parse("5")), Ok(&mut 5));
        /// assert!(arena.alloc_try_with(|| parse("five")).is_err());
        #[doc = $end]
        /// ```
        #[inline(always)]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn alloc_try_with<T $(: $bound)?, E>(
            &self,
            make: impl FnOnce() -> Result<T, E>,
        ) -> Result<&$life mut T, E> {
            let memory = self.memory();
            let room = |layout| Some(make::room(memory, layout));
            make::fallible(memory, room, make).unwrap_or_else(|| no_room())
        }

        /// Like `alloc_try_with`. The outer error is for memory. The inner error is that of `make`.
        ///
        /// # Errors
        ///
        /// If there is no memory or the limit is reached. Then `make` is not called.
        #[inline(always)]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn try_alloc_try_with<T $(: $bound)?, E>(
            &self,
            make: impl FnOnce() -> Result<T, E>,
        ) -> Result<Result<&$life mut T, E>, Refused<()>> {
            let memory = self.memory();
            let room = |layout| Memory::place(memory, layout);
            make::fallible(memory, room, make).ok_or(Refused(()))
        }

        with_error! {
            /// Returns room for a value that is written later. O(1) amortised.
            ///
            /// ```
            #[doc = $made]
            /// let seven: &mut u32 = arena.alloc_uninit().write(7);
            /// assert_eq!(*seven, 7);
            #[doc = $end]
            /// ```
            alloc_uninit, try_alloc_uninit:
            [T] () -> &$life mut MaybeUninit<T> {
                uninit()
            }
        }

        with_error! {
            /// Returns room for a slice that is written later. O(1) amortised.
            ///
            /// ```
            #[doc = $made]
            /// let squares = arena.alloc_uninit_slice(10);
            /// squares.iter_mut().zip(0u32..).for_each(|(at, n)| _ = at.write(n * n));
            /// // SAFETY: all elements are written.
            /// assert_eq!(unsafe { squares[9].assume_init() }, 81);
            #[doc = $end]
            /// ```
            alloc_uninit_slice, try_alloc_uninit_slice:
            [T] (length: usize) -> &$life mut [MaybeUninit<T>] {
                uninit_slice(length)
            }
        }

        with_error! {
            /// Copies a slice into the arena. O(bytes).
            ///
            /// ```
            #[doc = $made]
            /// assert_eq!(arena.alloc_slice_copy(&[1, 2, 3]), [1, 2, 3]);
            #[doc = $end]
            /// ```
            alloc_slice_copy, try_alloc_slice_copy:
            [T: Copy] (from: &[T]) -> &$life mut [T] {
                copy(from)
            }
        }

        with_error! {
            /// Clones the elements of a slice into the arena. O(length).
            ///
            /// ```
            #[doc = $made]
            /// let words = ["a".to_string(), "b".to_string()];
            /// assert_eq!(arena.alloc_slice_clone(&words), words);
            #[doc = $end]
            /// ```
            alloc_slice_clone, try_alloc_slice_clone:
            [T: Clone $(+ $bound)?] (from: &[T]) -> &$life mut [T] {
                clone(from)
            }
        }

        with_error! {
            /// Makes a slice of `length` elements. `make` makes each element from its index.
            ///
            /// ```
            #[doc = $made]
            /// assert_eq!(arena.alloc_slice_fill_with(4, |n| 16 << n), [16, 32, 64, 128]);
            #[doc = $end]
            /// ```
            alloc_slice_fill_with, try_alloc_slice_fill_with:
            [T $(: $bound)?] (length: usize, make: impl FnMut(usize) -> T) -> &$life mut [T] {
                fill(length, make)
            }
        }

        with_error! {
            /// Makes a slice of `length` copies. O(bytes).
            ///
            /// ```
            #[doc = $made]
            /// assert_eq!(arena.alloc_slice_fill_copy(3, 0u8), [0, 0, 0]);
            #[doc = $end]
            /// ```
            alloc_slice_fill_copy, try_alloc_slice_fill_copy:
            [T: Copy] (length: usize, value: T) -> &$life mut [T] {
                fill(length, |_| value)
            }
        }

        with_error! {
            /// Makes a slice of `length` clones. O(length).
            ///
            /// ```
            #[doc = $made]
            /// let words = arena.alloc_slice_fill_clone(2, &"a".to_string());
            /// assert_eq!(words, ["a", "a"]);
            #[doc = $end]
            /// ```
            alloc_slice_fill_clone, try_alloc_slice_fill_clone:
            [T: Clone $(+ $bound)?] (length: usize, value: &T) -> &$life mut [T] {
                fill(length, |_| value.clone())
            }
        }

        with_error! {
            /// Makes a slice of `length` default values. O(length).
            ///
            /// ```
            #[doc = $made]
            /// assert_eq!(arena.alloc_slice_fill_default::<u32>(2), [0, 0]);
            #[doc = $end]
            /// ```
            alloc_slice_fill_default, try_alloc_slice_fill_default:
            [T: Default $(+ $bound)?] (length: usize) -> &$life mut [T] {
                fill(length, |_| T::default())
            }
        }

        with_error! {
            /// Collects an `ExactSizeIterator` into a slice of its reported length, or shorter if
            /// it ends early.
            ///
            /// ```
            #[doc = $made]
            /// assert_eq!(arena.alloc_slice_fill_iter([1, 2].map(|n| n + 1)), [2, 3]);
            #[doc = $end]
            /// ```
            alloc_slice_fill_iter, try_alloc_slice_fill_iter:
            [T $(: $bound)?, I: IntoIterator<Item = T, IntoIter: ExactSizeIterator>]
            (from: I) -> &$life mut [T] {
                fill_iter(from)
            }
        }

        with_error! {
            /// Collects any iterator into a slice. O(length) amortised. If the iterator allocates
            /// from this arena, the elements may move. If it panics, they are dropped.
            ///
            /// ```
            #[doc = $made]
            /// let odd = arena.alloc_iter((0..9).filter(|n| n % 2 == 1));
            /// assert_eq!(odd, [1, 3, 5, 7]);
            #[doc = $end]
            /// ```
            alloc_iter, try_alloc_iter:
            [T $(: $bound)?, I: IntoIterator<Item = T>] (from: I) -> &$life mut [T] {
                iter(from)
            }
        }

        /// Makes a slice of `length` elements. `make` makes each element from its index, and may
        /// fail. Ends the process if there is no memory or the limit is reached.
        ///
        /// # Errors
        ///
        /// Returns the first error of `make`. If the arena drops its objects, it also drops the
        /// elements made before the error.
        ///
        /// ```
        #[doc = $made]
        /// let digits = |text: &'static [u8]| {
        ///     arena.alloc_slice_try_fill_with(text.len(), |n| match text[n] {
        ///         digit @ b'0'..=b'9' => Ok(digit - b'0'),
        ///         other => Err(other),
        ///     })
        /// };
        /// assert_eq!(digits(b"42"), Ok(&mut [4, 2][..]));
        /// assert_eq!(digits(b"4x"), Err(b'x'));
        #[doc = $end]
        /// ```
        #[inline]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn alloc_slice_try_fill_with<T $(: $bound)?, E>(
            &self,
            length: usize,
            make: impl FnMut(usize) -> Result<T, E>,
        ) -> Result<&$life mut [T], E> {
            self.alloc_slice_try_fill_iter((0..length).map(make))
        }

        /// Collects an `ExactSizeIterator` of results, as `alloc_slice_try_fill_with` does.
        ///
        /// # Errors
        ///
        /// Returns the first error of the iterator.
        ///
        /// ```
        #[doc = $made]
        /// let numbers = ["1", "2"].map(|text| text.parse::<u8>());
        /// assert_eq!(arena.alloc_slice_try_fill_iter(numbers), Ok(&mut [1, 2][..]));
        #[doc = $end]
        /// ```
        #[inline]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn alloc_slice_try_fill_iter<T $(: $bound)?, E, I>(
            &self,
            from: I,
        ) -> Result<&$life mut [T], E>
        where
            I: IntoIterator<Item = Result<T, E>, IntoIter: ExactSizeIterator>,
        {
            make::fill_fallible(self.memory(), from).unwrap_or_else(|_| no_room())
        }

        with_error! {
            /// Copies a string into the arena. O(bytes).
            ///
            /// ```
            #[doc = $made]
            /// assert_eq!(arena.alloc_str("copied"), "copied");
            #[doc = $end]
            /// ```
            alloc_str, try_alloc_str:
            [] (from: &str) -> &$life mut str {
                text(from)
            }
        }

        with_error! {
            /// Formats into a string in the arena. O(bytes) amortised.
            ///
            /// # Panics
            ///
            /// If an implementation of `Display` returns an error.
            ///
            /// ```
            #[doc = $made]
            /// assert_eq!(arena.alloc_fmt(format_args!("{} of {}", 1, 2)), "1 of 2");
            #[doc = $end]
            /// ```
            alloc_fmt, try_alloc_fmt:
            [] (what: fmt::Arguments<'_>) -> &$life mut str {
                formatted(what)
            }
        }

        /// Returns uninitialised memory, or ends the process as `alloc` does. O(1) amortised.
        ///
        /// ```
        #[doc = $made]
        /// let layout = core::alloc::Layout::new::<[u64; 3]>();
        /// assert!(arena.alloc_layout(layout).cast::<u64>().is_aligned());
        #[doc = $end]
        /// ```
        #[inline(always)]
        pub fn alloc_layout(&self, layout: Layout) -> NonNull<u8> {
            make::room(self.memory(), layout)
        }

        /// Does the same as `alloc_layout`, with an error.
        ///
        /// # Errors
        ///
        /// If there is no memory or the limit is reached.
        #[inline]
        pub fn try_alloc_layout(&self, layout: Layout) -> Result<NonNull<u8>, Refused<()>> {
            Memory::place(self.memory(), layout).ok_or(Refused(()))
        }
    };
}

/// Writes two methods. Without room in the arena, one ends the process, the other returns an error.
macro_rules! with_error {
    (
        $(#[$doc:meta])*
        $name:ident, $fallible:ident:
        [$($generic:tt)*] ($($argument:ident: $type:ty),*) -> $result:ty {
            $make:ident($($passed:expr),*)
        }
    ) => {
        $(#[$doc])*
        /// Ends the process if there is no memory, the limit is reached, or the size is too large.
        #[inline]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn $name<$($generic)*>(&self, $($argument: $type),*) -> $result {
            make::$make(self.memory(), $($passed),*).unwrap_or_else(|_| no_room())
        }

        #[doc = concat!("Does the same as `", stringify!($name), "`, with an error.")]
        ///
        /// # Errors
        ///
        /// If there is no memory, the limit is reached, or the size is beyond `isize::MAX` bytes.
        #[inline]
        #[allow(clippy::mut_from_ref, reason = "memory that nobody else has")]
        pub fn $fallible<$($generic)*>(
            &self,
            $($argument: $type),*
        ) -> Result<$result, Refused<()>> {
            make::$make(self.memory(), $($passed),*)
        }
    };
}

pub(super) use {allocating, with_error};

#[cold]
#[inline(never)]
pub(super) fn no_room() -> ! {
    crate::misuse::no_room("arena", "")
}
