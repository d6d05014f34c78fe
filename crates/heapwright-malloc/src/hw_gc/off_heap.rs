//! Memory outside the collected heap that objects keep: blocks of malloc, and bytes that are only
//! counted. Both pace collections.

use core::ffi::c_void;

use super::{heap_of, of};
use crate::errno;
use crate::hw_gc_types::{GcHeap, GcMutator};
use heapwright::heap;

/// Reports that objects of the heap keep more memory of malloc, by bytes. A negative number means
/// less memory. The bytes count in the heap's budget.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_external(mutator: *mut GcMutator, bytes: isize) {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.external(bytes);
}

/// As hw_gc_external, for a thread without a mutator: no collection work is done for the bytes now.
/// Any thread may call this, also from the runtime's free.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_account(heap: *mut GcHeap, bytes: isize) {
    // SAFETY: as the caller promises.
    unsafe { heap_of(heap) }.account(bytes);
}

/// Does the collection work for bytes reported to hw_gc_account, as an allocation of so many bytes
/// in the heap would. It sweeps a little, begins a collection if one is due, or marks.
///
/// # Safety
///
/// mutator is this thread's; the duties listed in heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_pay(mutator: *mut GcMutator, bytes: usize) {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.pay(bytes) };
}

/// As malloc; the bytes count in the heap's budget.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_malloc(mutator: *mut GcMutator, size: usize) -> *mut c_void {
    let block = heap::malloc(size);
    if block.is_null() {
        return errno::fail(libc::ENOMEM);
    }
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.external(size.cast_signed());
    block.cast()
}

/// As realloc, of a block of hw_gc_malloc that has old_size bytes.
///
/// # Safety
///
/// mutator is this thread's; block is NULL (and old_size 0) or of hw_gc_malloc, and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_realloc(
    mutator: *mut GcMutator,
    block: *mut c_void,
    old_size: usize,
    size: usize,
) -> *mut c_void {
    // SAFETY: as the caller promises.
    let moved = unsafe { heap::realloc(block.cast(), size) };
    if moved.is_null() {
        return errno::fail(libc::ENOMEM);
    }
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.external(size.cast_signed().wrapping_sub(old_size.cast_signed()));
    moved.cast()
}

/// As free, of a block of hw_gc_malloc that has size bytes. The runtime's free callback may call
/// it. mutator may be NULL while the heap is being destroyed: nothing is counted then.
///
/// # Safety
///
/// mutator is this thread's or NULL; block is NULL (and size 0) or of hw_gc_malloc, and not
/// freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_free(mutator: *mut GcMutator, block: *mut c_void, size: usize) {
    if !mutator.is_null() {
        // SAFETY: as the caller promises.
        unsafe { of(mutator) }.external(size.cast_signed().wrapping_neg());
    }
    // SAFETY: as the caller promises.
    unsafe { heap::free(block.cast()) };
}
