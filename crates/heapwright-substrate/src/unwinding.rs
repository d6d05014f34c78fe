//! Panics in the program's destructors. All destructors run, and then the first panic continues.
//!
//! ```text
//!   caught(destructor), caught(destructor), ...   the thread's first panic is kept, others dropped
//!   the heap is consistent again
//!   surface()                                     the panic continues, out of the heap's function
//! ```
//!
//! Only std can catch a panic. Without the feature `std` a panic unwinds out of `caught` at once.
//! Then the other destructors run while the panic unwinds, and a second panic ends the process.
//!
//! Called by `arena`, `pool` and the realms of collected heaps.

#[cfg(feature = "std")]
#[allow(clippy::disallowed_types, reason = "the panic is std's, which has allocated it")]
mod kept {
    extern crate std;

    use core::any::Any;
    use core::cell::Cell;
    use core::mem::{self, ManuallyDrop};
    use std::boxed::Box;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    type Panic = ManuallyDrop<Box<dyn Any + Send>>;

    std::thread_local! {
        /// The first caught panic that has not continued yet, kept until the thread's very end.
        static FIRST: Cell<Option<Panic>> = const { Cell::new(None) };
    }

    /// Drops a panic. If this drop panics, the memory of the new panic is lost.
    fn forget(panic: Panic) {
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(ManuallyDrop::into_inner(panic))));
        dropped.unwrap_or_else(mem::forget);
    }

    /// Runs a destructor, and keeps its panic for [`surface`].
    pub fn caught(destructor: impl FnOnce()) {
        // `surface` in a call inside the destructor must find only the panics of that call.
        let before = FIRST.take();
        let panic = catch_unwind(AssertUnwindSafe(destructor)).err().map(ManuallyDrop::new);
        let mut panics = [before, panic, FIRST.take()].into_iter().flatten();
        FIRST.set(panics.next());
        panics.for_each(forget);
    }

    /// Continues the first [`caught`] panic, or drops it while another panic unwinds.
    pub fn surface() {
        if let Some(panic) = FIRST.take() {
            if std::thread::panicking() {
                forget(panic);
            } else {
                resume_unwind(ManuallyDrop::into_inner(panic));
            }
        }
    }
}

#[cfg(not(feature = "std"))]
mod kept {
    /// Runs a destructor.
    #[inline(always)]
    pub fn caught(destructor: impl FnOnce()) {
        destructor();
    }

    /// Does nothing: a panic unwinds at once.
    #[inline(always)]
    pub fn surface() {}
}

pub use kept::{caught, surface};

/// Drops `count` values from `first` on, even if some panic.
///
/// # Safety
///
/// The values are valid, and no thread uses them afterwards.
pub unsafe fn drop_each<T>(first: *mut T, count: usize) {
    #[cfg(feature = "std")]
    for n in 0..count {
        caught(|| {
            // SAFETY: by the contract the value is valid; each is dropped once.
            unsafe { first.wrapping_add(n).drop_in_place() };
        });
    }
    // If a drop panics, the drop of the slice continues with the other values.
    #[cfg(not(feature = "std"))]
    // SAFETY: by the contract the values are valid; each is dropped once.
    unsafe {
        core::ptr::slice_from_raw_parts_mut(first, count).drop_in_place();
    }
}

/// Calls [`surface`] when it is dropped: at the end of a call that may run destructors.
pub struct Surfacing;

impl Drop for Surfacing {
    fn drop(&mut self) {
        surface();
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn a_call_in_a_destructor_surfaces_its_own_panics_alone() {
        caught(|| panic!("the first"));
        let mut is_done = false;
        caught(|| {
            surface();
            is_done = true;
        });
        assert!(is_done);
        caught(|| panic!("the last"));
        let panic = std::panic::catch_unwind(surface).expect_err("the first is kept");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"the first"));
        surface();
    }
}
