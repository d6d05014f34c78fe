//! Cells that hold a reference for the program: strong ones, which are roots, and weak ones.

use core::ffi::c_void;

use super::of;
use crate::errno;
use crate::hw_gc_types::GcMutator;

/// Makes a handle: a cell that keeps its object alive, and may be read and written freely.
///
/// Returns NULL with errno ENOMEM if there is no memory.
///
/// # Safety
///
/// mutator is this thread's; object is NULL or an object of its heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_root_new(
    mutator: *mut GcMutator,
    object: *mut c_void,
) -> *mut *mut c_void {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    match unsafe { mutator.new_root(object.cast()) } {
        Some(cell) => cell.cast(),
        None => errno::fail(libc::ENOMEM).cast(),
    }
}

/// Frees a handle, of any mutator of the heap. NULL is ignored.
///
/// # Safety
///
/// mutator is this thread's; cell is NULL or of hw_gc_root_new and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_root_free(mutator: *mut GcMutator, cell: *mut *mut c_void) {
    if !cell.is_null() {
        // SAFETY: as the caller promises.
        let mutator = unsafe { of(mutator) };
        // SAFETY: as the caller promises.
        unsafe { mutator.free_root(cell.cast()) };
    }
}

/// Makes a weak handle: a cell that may be read freely, and does not keep its object alive. It
/// becomes NULL when the object has died, before the object's finalizers run.
///
/// The program may store NULL into the cell. It may store an object directly over a NULL of this
/// call, of hw_gc_weak_set or of the heap. Over an object or its own NULL it must call
/// hw_gc_weak_set, because collections skip weak handles of old objects. HW_GC_VERIFY_BARRIERS
/// finds other stores.
///
/// Returns NULL with errno ENOMEM if there is no memory.
///
/// # Safety
///
/// mutator is this thread's; object is NULL or an object of its heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_weak_new(
    mutator: *mut GcMutator,
    object: *mut c_void,
) -> *mut *mut c_void {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    match unsafe { mutator.new_weak(object.cast()) } {
        Some(cell) => cell.cast(),
        None => errno::fail(libc::ENOMEM).cast(),
    }
}

/// Stores an object, or NULL, into a weak handle, whatever the handle holds.
///
/// # Safety
///
/// mutator is this thread's; cell is of hw_gc_weak_new and was not freed; object is NULL or an
/// object of the mutator's heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_weak_set(
    mutator: *mut GcMutator,
    cell: *mut *mut c_void,
    object: *mut c_void,
) {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.set_weak(cell.cast(), object.cast()) };
}

/// Frees a weak handle, of any mutator of the heap. NULL is ignored.
///
/// # Safety
///
/// mutator is this thread's; cell is NULL or of hw_gc_weak_new and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_weak_free(mutator: *mut GcMutator, cell: *mut *mut c_void) {
    if !cell.is_null() {
        // SAFETY: as the caller promises.
        let mutator = unsafe { of(mutator) };
        // SAFETY: as the caller promises.
        unsafe { mutator.free_weak(cell.cast()) };
    }
}
