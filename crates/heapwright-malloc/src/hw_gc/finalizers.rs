//! Finalizers: functions that are called for unreachable objects, and the times of these calls.

use core::ffi::c_void;

use super::{heap_of, of};
use crate::errno;
use crate::hw_gc_types::{GcFinalizer, GcHeap, GcMutator, GcSomeAreDue};

/// Registers run, to be called with object and context when the object has become unreachable. The
/// object and all it leads to are kept until hw_gc_run_finalizers has called run.
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

/// As hw_gc_finalize, with a priority and a context. The context is an object of the heap, or NULL.
/// The heap keeps the context while the object lives or the finalizer is due. A context that leads
/// to the object does not keep the object. Finalizers of priority 0 come first. A finalizer is not
/// due while the object of another due finalizer, of a higher priority, leads to its object.
///
/// Returns false with errno ENOMEM if there is no memory, EINVAL without a function or for a
/// priority that does not exist.
///
/// # Safety
///
/// mutator is this thread's; object and context are objects of its heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_finalize_with(
    mutator: *mut GcMutator,
    object: *mut c_void,
    run: GcFinalizer,
    context: *mut c_void,
    priority: u32,
) -> bool {
    let (Some(run), 0..heapwright::gc::PRIORITIES) = (run, priority as usize) else {
        errno::fail(libc::EINVAL);
        return false;
    };
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    errno::or_no_memory(unsafe {
        mutator.finalize_with(object.cast(), run, context.cast(), priority as u8)
    })
}

/// Sets tell, which is called once a collection when finalizers have become due or guardians have
/// objects to retrieve. The thread that collected calls tell, after the other threads have resumed.
/// tell must call nothing of the heap: it sets a flag, or wakes a thread. NULL ends the calls. Any
/// thread may call this function.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed; tell may be called until the next call of this
/// function, or until the heap ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_tell_when_due(
    heap: *mut GcHeap,
    tell: GcSomeAreDue,
    context: *mut c_void,
) {
    // SAFETY: as the caller promises.
    let heap = unsafe { heap_of(heap) };
    // SAFETY: as the caller promises.
    unsafe { heap.tell_when_due(tell, context) };
}

/// Removes all finalizers of object, except those that are due already. Takes constant time for
/// each.
///
/// Returns their number.
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

/// Runs up to most due finalizers, by priority. Of one priority, those that became due together
/// run in the order of registration. The finalizers may allocate. Returns their number.
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
