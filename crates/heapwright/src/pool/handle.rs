//! Handles: owned objects, and the end of an object's life.
//!
//! ```text
//!   Boxed, SharedBoxed   { object, pool }
//!        |  drop, into_inner
//!        v
//!   the object is dropped in place, or moved out
//!        v
//!   Vacating             dropped last, even after a panic
//!        v
//!   Home::deallocate     the slot is its pool's again
//! ```
//!
//! The unsafe part of an object's end is here, once for both kinds of pool. A pool only implements
//! the return of a slot. No reference to the pool's inside is held while the object is dropped,
//! because its destructor may use the pool.
//!
//! Invariants: a handle's object is live and belongs to the handle. It is dropped once, and then
//! its slot is freed once.
//!
//! Called by `typed` and `shared`.

use core::mem;
use core::ptr::NonNull;

/// A pool that frees slots.
pub(super) trait Home<T> {
    /// Frees a slot.
    ///
    /// # Safety
    ///
    /// The slot is this pool's and in use; its object has been dropped or moved out.
    unsafe fn deallocate(&self, slot: NonNull<T>);
}

/// Frees a slot when dropped. The slot's object is gone by then.
struct Vacating<'p, T, H: Home<T>> {
    object: NonNull<T>,
    home: &'p H,
}

impl<T, H: Home<T>> Drop for Vacating<'_, T, H> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the code that made this value dropped or moved the object.
        unsafe { self.home.deallocate(self.object) };
    }
}

/// Drops an object and frees its slot, even if the drop panics.
///
/// # Safety
///
/// The object is live and belongs to this pool; no code uses it afterwards.
#[inline(always)]
pub(super) unsafe fn destroy<T>(home: &impl Home<T>, object: NonNull<T>) {
    // Frees the slot on return and on a panic.
    let _slot = Vacating { object, home };
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
pub(super) unsafe fn take_out<T>(home: &impl Home<T>, object: NonNull<T>) -> T {
    let _slot = Vacating { object, home };
    // SAFETY: the caller promises that the object is live and not used afterwards.
    unsafe { object.read() }
}

/// The methods of every handle, which has an `object` and a `pool`.
macro_rules! handle_impls {
    ($handle:ident of $pool:ident) => {
        impl<T> $handle<'_, T> {
            /// Moves the object out of the handle and frees its slot.
            #[must_use]
            pub fn into_inner(self) -> T {
                let boxed = ::core::mem::ManuallyDrop::new(self);
                // SAFETY: the handle owned the object and is not dropped.
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
                // SAFETY: the handle owns the object and is borrowed mutably.
                unsafe { self.object.as_mut() }
            }
        }

        impl<T> Drop for $handle<'_, T> {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: the handle owned the object and is being dropped.
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
