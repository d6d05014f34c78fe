//! An owned value in an arena.

use core::borrow::{Borrow, BorrowMut};
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use super::dropping::{DropArena, DropScope};
use super::local::{Arena, Core, Scope};
use super::make;
use super::methods::no_room;
use super::vec::ArenaVec;

/// An arena or a scope of one thread. [`ArenaBox`], [`ArenaVec`] and
/// [`ArenaString`](super::ArenaString) take `&Arena`, `&Scope`, `&DropArena` or `&DropScope`, and
/// convert it.
#[derive(Clone, Copy)]
pub struct ArenaRef<'a>(pub(super) &'a Core);

impl<'a> From<&'a Arena> for ArenaRef<'a> {
    fn from(arena: &'a Arena) -> Self {
        Self(arena.memory())
    }
}

impl<'a> From<&'a Scope<'_, '_>> for ArenaRef<'a> {
    fn from(scope: &'a Scope<'_, '_>) -> Self {
        Self(scope.memory())
    }
}

impl<'a> From<&'a DropArena<'_>> for ArenaRef<'a> {
    fn from(arena: &'a DropArena<'_>) -> Self {
        Self(arena.core())
    }
}

impl<'a> From<&'a DropScope<'_, '_>> for ArenaRef<'a> {
    fn from(scope: &'a DropScope<'_, '_>) -> Self {
        Self(scope.core())
    }
}

impl fmt::Debug for ArenaRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArenaRef").finish_non_exhaustive()
    }
}

/// An owned value in an arena. The box drops the value. The memory stays until the next reset.
///
/// A box takes one word. Its functions are called as `ArenaBox::leak(value)`, because method calls
/// reach the value. [`coerce!`](super::coerce) makes a box of a trait object. There is no pinned
/// box, because a pinned value must be dropped before its memory is used again. A reset would not
/// drop the value of a forgotten box.
///
/// ```
/// use heapwright::arena::{Arena, ArenaBox};
/// let arena = Arena::new();
/// let mut word = ArenaBox::new_in(String::from("dropped"), &arena);
/// word.push('!');
/// assert_eq!(*word, "dropped!");
/// ```
///
/// ```compile_fail,E0505
/// use heapwright::arena::{Arena, ArenaBox};
/// let arena = Arena::new();
/// let word = ArenaBox::new_in(String::new(), &arena);
/// drop(arena);
/// assert!(word.is_empty());
/// ```
///
/// A destructor sees only values that outlive the box:
///
/// ```compile_fail,E0597
/// use heapwright::arena::{Arena, ArenaBox};
/// let arena = Arena::new();
/// let holder;
/// let text = String::new();
/// holder = ArenaBox::new_in(vec![&text], &arena);
/// ```
pub struct ArenaBox<'a, T: ?Sized> {
    at: NonNull<T>,
    /// The box owns a value, in memory that is borrowed.
    holds: PhantomData<(&'a (), T)>,
}

// SAFETY: a box is the only owner of its value, and does not touch the arena.
unsafe impl<T: ?Sized + Send> Send for ArenaBox<'_, T> {}
// SAFETY: a shared box gives only shared access to its value, and does not touch the arena.
unsafe impl<T: ?Sized + Sync> Sync for ArenaBox<'_, T> {}

impl<'a, T: 'a> ArenaBox<'a, T> {
    /// Moves a value into an arena, or ends the process as [`Arena::alloc`] does. O(1) amortised.
    #[inline]
    pub fn new_in(value: T, arena: impl Into<ArenaRef<'a>>) -> Self {
        Self::own(make::value(arena.into().0, value))
    }

    /// Moves the value out.
    #[inline]
    #[must_use]
    pub fn into_inner(this: Self) -> T {
        let this = ManuallyDrop::new(this);
        // SAFETY: the box owns its value, and does not drop it any more.
        unsafe { this.at.read() }
    }
}

impl<'a, T: ?Sized> ArenaBox<'a, T> {
    #[inline]
    pub(super) fn own(value: &'a mut T) -> Self {
        Self { at: NonNull::from(value), holds: PhantomData }
    }

    /// Returns the value for as long as the arena is borrowed. The value is not dropped.
    #[inline]
    #[must_use]
    pub fn leak(this: Self) -> &'a mut T {
        let mut this = ManuallyDrop::new(this);
        // SAFETY: the box owns its value, which it does not drop any more.
        unsafe { this.at.as_mut() }
    }

    /// Splits the box into its parts for [`coerce!`](crate::arena::coerce).
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn __into_parts(this: Self) -> (*mut T, PhantomData<&'a ()>) {
        (ManuallyDrop::new(this).at.as_ptr(), PhantomData)
    }

    /// Makes a box of its parts again.
    ///
    /// # Safety
    ///
    /// The parts are those of one call of [`ArenaBox::__into_parts`], and are used once. The
    /// compiler may have coerced the pointer to an unsized type. Nothing else changed it.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub unsafe fn __from_parts(value: *mut T, _arena: PhantomData<&'a ()>) -> Self {
        // SAFETY: by the contract the pointer was that of a box, which is not null.
        Self { at: unsafe { NonNull::new_unchecked(value) }, holds: PhantomData }
    }
}

/// Makes an [`ArenaBox`](crate::arena::ArenaBox) of a trait object or a slice from a box of one
/// type. The value stays where it is.
///
/// ```
/// use heapwright::arena::{Arena, ArenaBox, coerce};
/// let arena = Arena::new();
/// let tasks: [ArenaBox<'_, dyn Fn(i32) -> i32>; 2] = [
///     coerce!(ArenaBox::new_in(|n| n + 1, &arena) => dyn Fn(i32) -> i32),
///     coerce!(ArenaBox::new_in(|n| n * 2, &arena) => dyn Fn(i32) -> i32),
/// ];
/// assert_eq!(tasks.iter().fold(3, |n, task| task(n)), 8);
/// ```
///
/// Only coercions of the compiler are allowed. A box of a field, for example, would not drop the
/// value around it:
///
/// ```compile_fail,E0308
/// use heapwright::arena::{Arena, ArenaBox, coerce};
/// struct Word(String);
/// impl Drop for Word {
///     fn drop(&mut self) { println!("dropped with its field") }
/// }
/// let arena = Arena::new();
/// let field = coerce!(ArenaBox::new_in(Word(String::new()), &arena) => String);
/// ```
///
/// ```compile_fail,E0277
/// use heapwright::arena::{Arena, ArenaBox, coerce};
/// let arena = Arena::new();
/// let cell = ArenaBox::new_in(core::cell::Cell::new(1), &arena);
/// let shared = coerce!(cell => dyn Sync);
/// ```
///
/// The parts of another type make no box:
///
/// ```compile_fail,E0308
/// use core::marker::PhantomData;
/// struct Impostor;
/// impl Impostor {
///     fn __into_parts(self) -> (*mut u8, PhantomData<&'static ()>) {
///         (core::ptr::null_mut(), PhantomData)
///     }
/// }
/// let made = heapwright::arena::coerce!(Impostor => u8);
/// ```
///
/// An unsafe call needs its own `unsafe`:
///
/// ```compile_fail,E0133
/// use heapwright::arena::{ArenaBox, coerce};
/// unsafe fn made<'a>() -> ArenaBox<'a, u8> {
///     unreachable!()
/// }
/// let byte = coerce!(made() => u8);
/// ```
///
/// The new box borrows its arena, too:
///
/// ```compile_fail,E0505
/// use heapwright::arena::{Arena, ArenaBox, coerce};
/// let arena = Arena::new();
/// let shown = coerce!(ArenaBox::new_in(1, &arena) => dyn core::fmt::Display);
/// drop(arena);
/// assert_eq!(shown.to_string(), "1");
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __heapwright_coerce_in_arena {
    ($value:expr => $target:ty) => {{
        let (value, arena) = $crate::arena::ArenaBox::__into_parts($value);
        let value: *mut $target = value;
        // SAFETY: the parts are of the box above. The compiler itself coerced the pointer.
        unsafe { $crate::arena::ArenaBox::__from_parts(value, arena) }
    }};
}
#[doc(inline)]
pub use crate::__heapwright_coerce_in_arena as coerce;

impl<'a, T: 'a> ArenaBox<'a, [T]> {
    /// Collects an iterator into a boxed slice, or ends the process as [`Arena::alloc`] does.
    ///
    /// ```
    /// use heapwright::arena::{Arena, ArenaBox};
    /// let arena = Arena::new();
    /// let words = ArenaBox::from_iter_in("a b".split(' ').map(String::from), &arena);
    /// assert_eq!(*words, ["a", "b"]);
    /// ```
    #[must_use]
    pub fn from_iter_in(from: impl IntoIterator<Item = T>, arena: impl Into<ArenaRef<'a>>) -> Self {
        let slice = make::iter(arena.into().0, from).unwrap_or_else(|_| no_room());
        Self::own(slice)
    }
}

impl<'a, T: 'a> From<ArenaVec<'a, T>> for ArenaBox<'a, [T]> {
    fn from(vec: ArenaVec<'a, T>) -> Self {
        vec.into_boxed_slice()
    }
}

impl<T: ?Sized> Drop for ArenaBox<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the box owns its value, and this runs once.
        unsafe { self.at.drop_in_place() };
    }
}

impl<T: ?Sized> Deref for ArenaBox<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the box owns its value, and is borrowed.
        unsafe { self.at.as_ref() }
    }
}

impl<T: ?Sized> DerefMut for ArenaBox<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the box owns its value, and is borrowed mutably.
        unsafe { self.at.as_mut() }
    }
}

// The memory stays where it is when its box moves.
impl<T: ?Sized> Unpin for ArenaBox<'_, T> {}

impl<T: ?Sized> AsRef<T> for ArenaBox<'_, T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: ?Sized> AsMut<T> for ArenaBox<'_, T> {
    fn as_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: ?Sized> Borrow<T> for ArenaBox<'_, T> {
    fn borrow(&self) -> &T {
        self
    }
}

impl<T: ?Sized> BorrowMut<T> for ArenaBox<'_, T> {
    fn borrow_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for ArenaBox<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for ArenaBox<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + PartialEq> PartialEq for ArenaBox<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: ?Sized + Eq> Eq for ArenaBox<'_, T> {}

impl<T: ?Sized + PartialOrd> PartialOrd for ArenaBox<'_, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (**self).partial_cmp(&**other)
    }
}

impl<T: ?Sized + Ord> Ord for ArenaBox<'_, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl<T: ?Sized + Hash> Hash for ArenaBox<'_, T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}
