//! A vector in an arena.

use core::borrow::{Borrow, BorrowMut};
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::iter::FusedIterator;
use core::ops::{Deref, DerefMut};
use core::ptr;
use core::slice;

use super::boxed::{ArenaBox, ArenaRef};
use super::buffer::Buffer;
use super::local::Core;
use super::methods::no_room;
use crate::refused::Refused;

/// A vector in an arena, like `Vec`. It drops its elements, and dereferences to a slice.
///
/// A vector takes four words. It grows in place if its block is the arena's last one and the chunk
/// has room. Otherwise its elements move, and their old memory is lost until the next reset. The
/// vector's drop gives the block back if it is the last one. Functions without `try_` end the
/// process if there is no memory or the limit is reached. With the features `allocator-api2-*` and
/// `nightly`, vectors with all functions of `Vec` take `&Arena`.
///
/// ```
/// use heapwright::arena::{Arena, ArenaVec};
/// let arena = Arena::new();
/// let mut squares = ArenaVec::from_iter_in((0..4).map(|n| n * n), &arena);
/// squares.push(16);
/// squares.retain(|n| n % 2 == 0);
/// assert_eq!(squares, [0, 4, 16]);
/// let kept: &mut [i32] = squares.into_slice();
/// assert_eq!(kept.last(), Some(&16));
/// ```
///
/// A vector borrows its scope, so no inner scope can be opened while the vector exists:
///
/// ```compile_fail,E0502
/// use heapwright::arena::{Arena, ArenaVec};
/// Arena::new().scope(|outer| {
///     let mut numbers = ArenaVec::new_in(&*outer);
///     outer.scope(|_| numbers.push(1));
/// });
/// ```
///
/// ```compile_fail,E0502
/// use heapwright::arena::{Arena, ArenaVec};
/// let mut arena = Arena::new();
/// let mut numbers = ArenaVec::from_iter_in([1, 2], &arena);
/// arena.reset();
/// numbers.push(3);
/// ```
///
/// ```compile_fail,E0277
/// let arena = heapwright::arena::Arena::new();
/// let numbers = heapwright::arena::ArenaVec::from_iter_in([1], &arena);
/// std::thread::scope(|scope| _ = scope.spawn(move || numbers.len()));
/// ```
pub struct ArenaVec<'a, T> {
    buffer: Buffer<'a, Core, T>,
}

impl<'a, T> ArenaVec<'a, T> {
    /// Creates an empty vector. Takes no memory yet.
    #[inline]
    #[must_use]
    pub fn new_in(arena: impl Into<ArenaRef<'a>>) -> Self {
        Self { buffer: Buffer::new(arena.into().0) }
    }

    /// Creates a vector with room for `capacity` elements.
    #[inline]
    #[must_use]
    pub fn with_capacity_in(capacity: usize, arena: impl Into<ArenaRef<'a>>) -> Self {
        Self::of(Buffer::with_capacity(arena.into().0, capacity).unwrap_or_else(|_| no_room()))
    }

    /// Collects an iterator, which may allocate from the same arena. O(length) amortised.
    #[inline]
    #[must_use]
    pub fn from_iter_in(from: impl IntoIterator<Item = T>, arena: impl Into<ArenaRef<'a>>) -> Self {
        let from = from.into_iter();
        let mut vec = Self::with_capacity_in(from.size_hint().0, arena);
        vec.extend(from);
        vec
    }

    #[inline]
    pub(super) fn of(buffer: Buffer<'a, Core, T>) -> Self {
        Self { buffer }
    }

    /// Returns the arena, for other values.
    ///
    /// ```
    /// use heapwright::arena::{Arena, ArenaVec};
    /// let arena = Arena::new();
    /// let rows = ArenaVec::from_iter_in([1, 2], &arena);
    /// let columns = ArenaVec::from_iter_in([3], rows.arena());
    /// assert_eq!(columns, [3]);
    /// ```
    #[must_use]
    pub fn arena(&self) -> ArenaRef<'a> {
        ArenaRef(self.buffer.memory())
    }

    /// Returns the number of elements that there is room for.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Makes room for `more` elements. If the vector grows, its capacity doubles if possible.
    #[inline]
    pub fn reserve(&mut self, more: usize) {
        self.try_reserve(more).unwrap_or_else(|_| no_room());
    }

    /// Does the same as `reserve`, with an error.
    ///
    /// # Errors
    ///
    /// If there is no memory or the limit is reached.
    #[inline]
    pub fn try_reserve(&mut self, more: usize) -> Result<(), Refused<()>> {
        self.buffer.reserve(more)
    }

    /// Gives the memory behind the elements back if the block is the arena's last one.
    pub fn shrink_to_fit(&mut self) {
        self.buffer.shrink();
    }

    /// Appends an element. O(1) amortised.
    #[inline]
    pub fn push(&mut self, value: T) {
        self.try_push(value).unwrap_or_else(|_| no_room());
    }

    /// Does the same as `push`, with an error.
    ///
    /// # Errors
    ///
    /// Returns the element if there is no memory or the limit is reached.
    ///
    /// ```
    /// use heapwright::arena::{Arena, ArenaVec};
    /// let arena = Arena::with_limit(0);
    /// assert_eq!(ArenaVec::new_in(&arena).try_push(7).unwrap_err().0, 7);
    /// ```
    #[inline]
    pub fn try_push(&mut self, value: T) -> Result<(), Refused<T>> {
        self.buffer.push(value)
    }

    /// Removes the last element and returns it.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.buffer.pop()
    }

    /// Inserts an element before `index`. O(length).
    ///
    /// # Panics
    ///
    /// If `index` is larger than the length.
    pub fn insert(&mut self, index: usize, value: T) {
        self.buffer.insert(index, value).unwrap_or_else(|_| no_room());
    }

    /// Removes element `index` and returns it. O(length); [`ArenaVec::swap_remove`] is O(1).
    ///
    /// # Panics
    ///
    /// If there is no such element.
    pub fn remove(&mut self, index: usize) -> T {
        self.buffer.remove(index)
    }

    /// Removes element `index` and returns it. The last element takes its place. O(1).
    ///
    /// # Panics
    ///
    /// If there is no such element.
    pub fn swap_remove(&mut self, index: usize) -> T {
        let last = self.len().saturating_sub(1);
        self.swap(index, last);
        self.buffer.remove(last)
    }

    /// Drops the elements from `length` on.
    pub fn truncate(&mut self, length: usize) {
        self.buffer.truncate(length);
    }

    /// Drops all elements, and keeps the room.
    pub fn clear(&mut self) {
        self.buffer.truncate(0);
    }

    /// Keeps the elements that `keep` returns true for, in their order. O(length). If `keep` or a
    /// destructor panics, the elements that `keep` has not judged yet stay.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.buffer.retain(|value| keep(value));
    }

    /// Does the same as `retain`, and `keep` may change elements.
    pub fn retain_mut(&mut self, keep: impl FnMut(&mut T) -> bool) {
        self.buffer.retain(keep);
    }

    /// Appends clones of a slice's elements.
    #[inline]
    pub fn extend_from_slice(&mut self, from: &[T])
    where
        T: Clone,
    {
        self.extend(from.iter().cloned());
    }

    /// Appends a copy of a slice. O(bytes).
    #[inline]
    pub fn extend_from_slice_copy(&mut self, from: &[T])
    where
        T: Copy,
    {
        self.buffer.copy(from).unwrap_or_else(|_| no_room());
    }

    /// Changes the length to `length`: drops elements, or appends clones of `value`.
    ///
    /// ```
    /// use heapwright::arena::{Arena, ArenaVec};
    /// let arena = Arena::new();
    /// let mut row = ArenaVec::new_in(&arena);
    /// row.resize(3, 'x');
    /// assert_eq!(row, ['x', 'x', 'x']);
    /// ```
    pub fn resize(&mut self, length: usize, value: T)
    where
        T: Clone,
    {
        self.buffer.truncate(length);
        self.extend(core::iter::repeat_n(value, length - self.len()));
    }

    /// Returns the elements for as long as the arena is borrowed. They are not dropped.
    #[inline]
    #[must_use]
    pub fn into_slice(self) -> &'a mut [T]
    where
        T: 'a,
    {
        let (first, count) = self.buffer.into_parts();
        // SAFETY: the buffer wrote this many elements, and no other code has them.
        unsafe { slice::from_raw_parts_mut(first.as_ptr(), count) }
    }

    /// Returns the elements in a box, which drops them.
    #[inline]
    #[must_use]
    pub fn into_boxed_slice(self) -> ArenaBox<'a, [T]>
    where
        T: 'a,
    {
        ArenaBox::own(self.into_slice())
    }
}

impl<T> Deref for ArenaVec<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.buffer.as_slice()
    }
}

impl<T> DerefMut for ArenaVec<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        self.buffer.as_mut_slice()
    }
}

impl<T> Extend<T> for ArenaVec<'_, T> {
    #[inline]
    fn extend<I: IntoIterator<Item = T>>(&mut self, from: I) {
        self.buffer.extend(from).unwrap_or_else(|_| no_room());
    }
}

impl<'t, T: Copy + 't> Extend<&'t T> for ArenaVec<'_, T> {
    #[inline]
    fn extend<I: IntoIterator<Item = &'t T>>(&mut self, from: I) {
        self.extend(from.into_iter().copied());
    }
}

impl<T: Clone> Clone for ArenaVec<'_, T> {
    fn clone(&self) -> Self {
        Self::from_iter_in(self.iter().cloned(), self.arena())
    }
}

impl<T> AsRef<[T]> for ArenaVec<'_, T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T> AsMut<[T]> for ArenaVec<'_, T> {
    fn as_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T> Borrow<[T]> for ArenaVec<'_, T> {
    fn borrow(&self) -> &[T] {
        self
    }
}

impl<T> BorrowMut<[T]> for ArenaVec<'_, T> {
    fn borrow_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T: fmt::Debug> fmt::Debug for ArenaVec<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: PartialEq<U>, U> PartialEq<ArenaVec<'_, U>> for ArenaVec<'_, T> {
    fn eq(&self, other: &ArenaVec<'_, U>) -> bool {
        **self == **other
    }
}

macro_rules! compared {
    ([$($generic:tt)*] $other:ty) => {
        impl<T: PartialEq<U>, U, $($generic)*> PartialEq<$other> for ArenaVec<'_, T> {
            fn eq(&self, other: &$other) -> bool {
                self[..] == other[..]
            }
        }
    };
}
compared!([][U]);
compared!([] & [U]);
compared!([] &mut [U]);
compared!([const N: usize] [U; N]);

impl<T: Eq> Eq for ArenaVec<'_, T> {}

impl<T: PartialOrd> PartialOrd for ArenaVec<'_, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (**self).partial_cmp(&**other)
    }
}

impl<T: Ord> Ord for ArenaVec<'_, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl<T: Hash> Hash for ArenaVec<'_, T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<'a, T> IntoIterator for ArenaVec<'a, T> {
    type Item = T;
    type IntoIter = IntoIter<'a, T>;

    fn into_iter(mut self) -> IntoIter<'a, T> {
        let end = self.buffer.hand_over();
        IntoIter { block: self.buffer, next: 0, end }
    }
}

impl<'t, T> IntoIterator for &'t ArenaVec<'_, T> {
    type Item = &'t T;
    type IntoIter = slice::Iter<'t, T>;

    fn into_iter(self) -> slice::Iter<'t, T> {
        self.iter()
    }
}

impl<'t, T> IntoIterator for &'t mut ArenaVec<'_, T> {
    type Item = &'t mut T;
    type IntoIter = slice::IterMut<'t, T>;

    fn into_iter(self) -> slice::IterMut<'t, T> {
        self.iter_mut()
    }
}

/// An iterator over the elements of an [`ArenaVec`], by value. Its drop drops the rest of them.
pub struct IntoIter<'a, T> {
    /// The block, whose elements are this iterator's.
    block: Buffer<'a, Core, T>,
    next: usize,
    end: usize,
}

impl<T> Iterator for IntoIter<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        if self.next == self.end {
            return None;
        }
        let at = self.block.at(self.next);
        self.next += 1;
        // SAFETY: the element was written, and is no longer the iterator's.
        Some(unsafe { at.read() })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end - self.next;
        (left, Some(left))
    }
}

impl<T> DoubleEndedIterator for IntoIter<'_, T> {
    #[inline]
    fn next_back(&mut self) -> Option<T> {
        if self.next == self.end {
            return None;
        }
        self.end -= 1;
        // SAFETY: the element was written, and is no longer the iterator's.
        Some(unsafe { self.block.at(self.end).read() })
    }
}

impl<T> ExactSizeIterator for IntoIter<'_, T> {}
impl<T> FusedIterator for IntoIter<'_, T> {}

impl<T> Drop for IntoIter<'_, T> {
    fn drop(&mut self) {
        let left = self.end - self.next;
        let rest = ptr::slice_from_raw_parts_mut(self.block.at(self.next), left);
        // SAFETY: these elements were written, and are the iterator's.
        unsafe { rest.drop_in_place() };
    }
}

impl<T> fmt::Debug for IntoIter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoIter").field("left", &self.len()).finish_non_exhaustive()
    }
}
