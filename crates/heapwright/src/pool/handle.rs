//! Handles: owned objects, and the end of an object's life.
//!
//! ```text
//!   Boxed, SharedBoxed   { object, home }
//!        |  drop, into_inner
//!        v
//!   the object is dropped in place, or moved out
//!        v
//!   Vacating             dropped last, even after a panic
//!        v
//!   Home::deallocate     the slot is its pool's again
//! ```
//!
//! A pool frees slots without knowing the object's type, so a handle may hold a trait object. While
//! an object is dropped, no reference into the pool exists, so the destructor may use the pool.
//!
//! Invariants: a handle's object is live and belongs to the handle. The object is dropped once, and
//! then its slot is freed once.
//!
//! Called by `typed` and `shared`.

use core::mem;
use core::ptr::NonNull;

pub(super) trait Home {
    /// Frees a slot.
    ///
    /// # Safety
    ///
    /// The slot is this pool's and in use; its object has been dropped or moved out.
    unsafe fn deallocate(&self, slot: NonNull<u8>);
}

/// Frees a slot when dropped. The slot's object is gone by then.
struct Vacating<'p, H: Home> {
    slot: NonNull<u8>,
    home: &'p H,
}

impl<H: Home> Drop for Vacating<'_, H> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the code that made this value dropped or moved the object.
        unsafe { self.home.deallocate(self.slot) };
    }
}

/// Drops an object and frees its slot, even if the drop panics.
///
/// # Safety
///
/// The object is live and belongs to this pool; no code uses it afterwards.
#[inline(always)]
pub(super) unsafe fn destroy<T: ?Sized>(home: &impl Home, object: NonNull<T>) {
    let _slot = Vacating { slot: object.cast(), home };
    if mem::needs_drop::<T>() {
        // SAFETY: the caller promises that the object is live and not used afterwards.
        unsafe { object.drop_in_place() };
    }
}

/// Moves an object out and frees its slot.
///
/// # Safety
///
/// As [`destroy`].
#[inline(always)]
pub(super) unsafe fn take_out<T>(home: &impl Home, object: NonNull<T>) -> T {
    let _slot = Vacating { slot: object.cast(), home };
    // SAFETY: the caller promises that the object is live and not used afterwards.
    unsafe { object.read() }
}

/// The kinds of handle that [`coerce!`](crate::pool::coerce) takes apart. Other crates cannot name
/// this trait, so no other type implements it.
pub trait Handle {
    /// The type of the object.
    type Object: ?Sized;
    /// The pool of a handle that was taken apart.
    type Home;

    /// Takes the handle apart. The parts own the object.
    fn into_parts(self) -> (*mut Self::Object, Self::Home);
}

/// Takes a handle apart for [`coerce!`](crate::pool::coerce). If the parts are dropped, the object
/// stays in the pool, as after `into_raw`.
#[doc(hidden)]
#[inline]
pub fn __into_parts<H: Handle>(handle: H) -> (*mut H::Object, H::Home) {
    handle.into_parts()
}

/// The methods of every handle, which has an `object`, a `home` and a marker.
macro_rules! handle_impls {
    ($handle:ident of $pool:ident, $home:ident is $held:ty) => {
        impl<'p, T: ?Sized> $handle<'p, T> {
            #[inline(always)]
            pub(super) fn of(object: ::core::ptr::NonNull<T>, home: &'p $held) -> Self {
                Self { object, home, holds: ::core::marker::PhantomData }
            }

            #[doc = concat!("Lets go of the object: [`", stringify!($pool), "::destroy`], a reset or the")]
            #[doc = concat!("pool's end will drop it. [`", stringify!($pool), "::own`] makes a handle again.")]
            #[must_use]
            pub fn into_raw(self) -> ::core::ptr::NonNull<T> {
                ::core::mem::ManuallyDrop::new(self).object
            }
        }

        impl<'p, T: ?Sized> super::handle::Handle for $handle<'p, T> {
            type Object = T;
            type Home = $home<'p>;

            #[inline]
            fn into_parts(self) -> (*mut T, $home<'p>) {
                let handle = ::core::mem::ManuallyDrop::new(self);
                (handle.object.as_ptr(), $home(handle.home))
            }
        }

        /// The pool of a handle that was taken apart.
        #[doc(hidden)]
        pub struct $home<'p>(&'p $held);

        impl<'p> $home<'p> {
            /// Makes a handle of another type for the same object.
            ///
            /// # Safety
            ///
            /// `object` and `self` are the parts of one handle; the pointer may be unsized.
            #[doc(hidden)]
            #[inline]
            pub unsafe fn __with<U: ?Sized>(self, object: *mut U) -> $handle<'p, U> {
                // SAFETY: the caller promises that the pointer is a handle's; no handle has null.
                $handle::of(unsafe { ::core::ptr::NonNull::new_unchecked(object) }, self.0)
            }
        }

        impl<T> $handle<'_, T> {
            /// Moves the object out of the handle and frees its slot.
            #[must_use]
            pub fn into_inner(self) -> T {
                let handle = ::core::mem::ManuallyDrop::new(self);
                // SAFETY: the handle owned the object and is not dropped.
                unsafe { super::handle::take_out(handle.home, handle.object) }
            }
        }

        impl<T: ?Sized> ::core::ops::Deref for $handle<'_, T> {
            type Target = T;

            #[inline]
            fn deref(&self) -> &T {
                // SAFETY: the handle owns the object.
                unsafe { self.object.as_ref() }
            }
        }

        impl<T: ?Sized> ::core::ops::DerefMut for $handle<'_, T> {
            #[inline]
            fn deref_mut(&mut self) -> &mut T {
                // SAFETY: the handle owns the object and is borrowed mutably.
                unsafe { self.object.as_mut() }
            }
        }

        impl<T: ?Sized> Drop for $handle<'_, T> {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: the handle owned the object and is being dropped.
                unsafe { super::handle::destroy(self.home, self.object) };
            }
        }

        impl<T: ?Sized> AsRef<T> for $handle<'_, T> {
            fn as_ref(&self) -> &T {
                self
            }
        }

        impl<T: ?Sized> AsMut<T> for $handle<'_, T> {
            fn as_mut(&mut self) -> &mut T {
                self
            }
        }

        impl<T: ?Sized> ::core::borrow::Borrow<T> for $handle<'_, T> {
            fn borrow(&self) -> &T {
                self
            }
        }

        impl<T: ?Sized> ::core::borrow::BorrowMut<T> for $handle<'_, T> {
            fn borrow_mut(&mut self) -> &mut T {
                self
            }
        }

        impl<T: ?Sized + PartialEq> PartialEq for $handle<'_, T> {
            fn eq(&self, other: &Self) -> bool {
                **self == **other
            }
        }

        impl<T: ?Sized + Eq> Eq for $handle<'_, T> {}

        impl<T: ?Sized + PartialOrd> PartialOrd for $handle<'_, T> {
            fn partial_cmp(&self, other: &Self) -> Option<::core::cmp::Ordering> {
                (**self).partial_cmp(&**other)
            }
        }

        impl<T: ?Sized + Ord> Ord for $handle<'_, T> {
            fn cmp(&self, other: &Self) -> ::core::cmp::Ordering {
                (**self).cmp(&**other)
            }
        }

        impl<T: ?Sized + ::core::hash::Hash> ::core::hash::Hash for $handle<'_, T> {
            fn hash<H: ::core::hash::Hasher>(&self, state: &mut H) {
                (**self).hash(state);
            }
        }

        impl<T: ?Sized + ::core::fmt::Debug> ::core::fmt::Debug for $handle<'_, T> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<T: ?Sized + ::core::fmt::Display> ::core::fmt::Display for $handle<'_, T> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                (**self).fmt(f)
            }
        }
    };
}
pub(super) use handle_impls;

/// Turns a [`Boxed`](crate::pool::Boxed) or [`SharedBoxed`](crate::pool::SharedBoxed) into a handle
/// of a trait object or of a slice. The object stays where it is.
///
/// ```
/// use core::fmt::Display;
/// use heapwright::pool::{Boxed, Pool, coerce};
///
/// let (numbers, texts) = (Pool::new(), Pool::new());
/// let all: [Boxed<'_, dyn Display>; 2] = [
///     coerce!(numbers.boxed(1) => dyn Display),
///     coerce!(texts.boxed(String::from("two")) => dyn Display),
/// ];
/// assert_eq!(format!("{} {}", all[0], all[1]), "1 two");
/// drop(all);
/// assert!(texts.is_empty(), "the handle knows its pool");
/// ```
///
/// Only the compiler's own coercions are allowed:
///
/// ```compile_fail,E0277
/// use heapwright::pool::{Pool, coerce};
/// let pool = Pool::new();
/// let _ = coerce!(pool.boxed(core::cell::Cell::new(1)) => dyn core::fmt::Display);
/// ```
///
/// ```compile_fail,E0308
/// use heapwright::pool::{Pool, coerce};
/// let pool = Pool::new();
/// let _ = coerce!(pool.boxed(1_u32) => f32);
/// ```
///
/// No other type is a handle, whatever methods it has:
///
/// ```compile_fail,E0277
/// use heapwright::pool::{Pool, coerce};
/// struct Fake<H>(*mut [u64; 1], H);
/// impl<H> Fake<H> {
///     fn __into_parts(self) -> (*mut [u64; 1], H) { (self.0, self.1) }
///     fn into_parts(self) -> (*mut [u64; 1], H) { (self.0, self.1) }
/// }
/// let pool = Pool::new();
/// let (_, home) = heapwright::pool::__into_parts(pool.boxed([1_u64; 1]));
/// let forged = coerce!(Fake(core::ptr::null_mut(), home) => [u64]);
/// assert_eq!(forged[0], 1);
/// ```
///
/// A handle of a trait object does not outlive its pool:
///
/// ```compile_fail,E0597
/// use core::fmt::Display;
/// use heapwright::pool::{Boxed, Pool, coerce};
/// let handle: Boxed<'_, dyn Display>;
/// {
///     let pool = Pool::new();
///     handle = coerce!(pool.boxed(1) => dyn Display);
/// }
/// assert_eq!(handle.to_string(), "1");
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __heapwright_coerce {
    ($handle:expr => $target:ty) => {{
        let (object, home) = $crate::pool::__into_parts($handle);
        let object: *mut $target = object;
        // SAFETY: `object` and `home` are the parts of one handle: `__into_parts` takes nothing
        // else. The compiler itself unsized the pointer.
        unsafe { home.__with(object) }
    }};
}
#[doc(inline)]
pub use crate::__heapwright_coerce as coerce;
