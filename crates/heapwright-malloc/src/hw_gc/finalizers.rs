//! What is called when an object has died, and when.

use core::ffi::c_void;

use super::of;
use crate::errno;
use crate::hw_gc_types::{GcFinalizer, GcMutator};

/// Asks for run to be called with object and context once nothing leads to the object any more.
/// Then it and all it leads to are kept until run has been called, by hw_gc_run_finalizers.
///
/// Returns false with errno ENOMEM if there is no memory, EINVAL without a function.
///
/// # Safety
///
/// mutator is this thread's; object is an object of its heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_finalize(
    mutator: *mut GcMutator,
    object: *mut c_void,
    run: GcFinalizer,
    context: *mut c_void,
) -> bool {
    let Some(run) = run else {
        errno::fail(libc::EINVAL);
        return false;
    };
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    let added = unsafe { mutator.finalize(object.cast(), run, context) };
    if !added {
        errno::fail(libc::ENOMEM);
    }
    added
}

/// Forgets all finalizers of object that are not due yet. Takes time for each that any object has.
///
/// Returns how many there were.
///
/// # Safety
///
/// mutator is this thread's; object is an object of its heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_finalize_cancel(
    mutator: *mut GcMutator,
    object: *mut c_void,
) -> usize {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.cancel_finalizers(object.cast()) }
}

/// Runs up to most finalizers that are due, in the order in which they were asked for. They may
/// allocate. Returns how many.
///
/// # Safety
///
/// mutator is this thread's; the duties listed in heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_run_finalizers(mutator: *mut GcMutator, most: usize) -> usize {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.run_finalizers(most) }
}
