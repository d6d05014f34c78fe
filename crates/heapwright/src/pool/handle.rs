//! Handles: owned objects, and the end of an object's life.
//!
//! ```text
//!   Boxed, SharedBoxed   { object, pool }
//!        |  drop, into_inner
//!        v
//!   the object is dropped in place, or moved out
//!        v
//!   Vacating             dropped last, whatever the object's own drop did
//!        v
//!   Home::deallocate     the slot is its pool's again
//! ```
//!
//! What is unsafe about the end of an object is here, once for both kinds of pool: a pool
//! says only how it takes a slot back. No reference to the pool's inside is held while the
//! object is dropped, because its destructor may use the pool.
//!
//! Invariants: a handle's object is live and the handle's alone; it is dropped once, and
//! its slot given back once, after it.
//!
//! Called by `typed` and `shared`.

use core::mem;
use core::ptr::NonNull;

/// A pool, as the end of an object knows it.
pub(super) trait Home<T> {
    /// Takes a slot back.
    ///
    /// # Safety
    ///
    /// The slot is this pool's and in use; what was in it is gone.
    unsafe fn deallocate(&self, slot: NonNull<T>);
}

/// Gives a slot back when it is dropped. What is in it is gone by then.
struct Vacating<'p, T, H: Home<T>> {
    object: NonNull<T>,
    home: &'p H,
}

impl<T, H: Home<T>> Drop for Vacating<'_, T, H> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the maker of this gave the object up.
        unsafe { self.home.deallocate(self.object) };
    }
}

/// Drops an object and gives its slot back, even if the drop panics.
///
/// # Safety
///
/// The object is live and of this pool; nobody uses it afterwards.
#[inline(always)]
pub(super) unsafe fn destroy<T>(home: &impl Home<T>, object: NonNull<T>) {
    // Gives the slot back when it ends, however it ends.
    let _slot = Vacating { object, home };
    if mem::needs_drop::<T>() {
        // SAFETY: by the contract the object is whole, and nobody's any more.
        unsafe { object.drop_in_place() };
    }
}

/// Moves an object out and gives its slot back.
///
/// # Safety
///
/// As [`destroy`].
#[inline(always)]
pub(super) unsafe fn take_out<T>(home: &impl Home<T>, object: NonNull<T>) -> T {
    let _slot = Vacating { object, home };
    // SAFETY: by the contract the object is whole, and nobody's any more.
    unsafe { object.read() }
}

/// What every handle can do; it has an `object` and a `pool`.
macro_rules! handle_impls {
    ($handle:ident of $pool:ident) => {
        impl<T> $handle<'_, T> {
            /// The object itself; its slot is free.
            #[must_use]
            pub fn into_inner(self) -> T {
                let boxed = ::core::mem::ManuallyDrop::new(self);
                // SAFETY: the handle owned the object, and is gone.
                unsafe { super::handle::take_out(boxed.pool, boxed.object) }
            }

            #[doc = concat!("Lets go of the object: [`", stringify!($pool), "::destroy`],")]
            #[doc = concat!("[`", stringify!($pool), "::own`], a reset or the pool's end will drop it.")]
            #[must_use]
            pub fn into_raw(self) -> ::core::ptr::NonNull<T> {
                ::core::mem::ManuallyDrop::new(self).object
            }
        }

        impl<T> ::core::ops::Deref for $handle<'_, T> {
            type Target = T;

            #[inline]
            fn deref(&self) -> &T {
                // SAFETY: the handle owns the object.
                unsafe { self.object.as_ref() }
            }
        }

        impl<T> ::core::ops::DerefMut for $handle<'_, T> {
            #[inline]
            fn deref_mut(&mut self) -> &mut T {
                // SAFETY: the handle owns the object, and is borrowed alone.
                unsafe { self.object.as_mut() }
            }
        }

        impl<T> Drop for $handle<'_, T> {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: the handle owned the object, and is gone.
                unsafe { self.pool.destroy(self.object) };
            }
        }

        impl<T: ::core::fmt::Debug> ::core::fmt::Debug for $handle<'_, T> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<T: ::core::fmt::Display> ::core::fmt::Display for $handle<'_, T> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                (**self).fmt(f)
            }
        }
    };
}
pub(super) use handle_impls;
