//! Queries about a heap: objects by address, slot sizes, statistics, walks, dumps, verification.

use core::ffi::c_void;
use core::ptr;

use super::{heap_of, of};
use crate::errno;
use crate::gc_abi::GcStatistics;
use crate::hw_gc_types::{GcHeap, GcMutator, GcVisitor};
use crate::hw_pool::write_known;
use heapwright::gc::raw::{self};

/// The object of a heap that an address lies in, or NULL. Any address is allowed. Constant time,
/// except for objects that were just allocated.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_find(heap: *mut GcHeap, address: *const c_void) -> *mut c_void {
    // SAFETY: as the caller promises.
    let found = unsafe { heap_of(heap) }.find(address.cast());
    found.map_or(ptr::null_mut(), <*mut u8>::cast)
}

/// Bytes of an object's slot, or the requested bytes of a large object. 0 outside all collected
/// heaps.
#[unsafe(no_mangle)]
pub extern "C" fn hw_gc_object_size(object: *const c_void) -> usize {
    raw::object_size(object.cast())
}

/// The kind of an object, as the allocation got it: HW_GC_LEAF, HW_GC_FREED, HW_GC_USER. UINT32_MAX
/// outside all collected heaps.
#[unsafe(no_mangle)]
pub extern "C" fn hw_gc_object_kind(object: *const c_void) -> u32 {
    raw::object_kind(object.cast()).unwrap_or(u32::MAX)
}

/// Whether an object is old: a minor collection keeps it, and reads it only if it was stored into.
/// Takes constant time for most objects. All mutators stop for an object that has survived one
/// collection, or was stored into.
///
/// # Safety
///
/// mutator is this thread's; the call is a safepoint, so the duties listed in heapwright_gc.h hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_is_old(mutator: *mut GcMutator, object: *mut c_void) -> bool {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.is_old(object.cast()) }
}

/// Whether an object stays because it, or another object in its page, is pinned.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_is_pinned(mutator: *mut GcMutator, object: *mut c_void) -> bool {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.is_pinned(object.cast())
}

/// The new address of the object that was at address. NULL if it has not moved, or if the
/// collection that moved it has been swept.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_moved(mutator: *mut GcMutator, address: *mut c_void) -> *mut c_void {
    // SAFETY: as the caller promises.
    let now = unsafe { of(mutator) }.moved(address.cast());
    now.map_or(ptr::null_mut(), <*mut u8>::cast)
}

/// Bytes of the slot that an object of size bytes gets.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_slot_size(heap: *mut GcHeap, size: usize) -> usize {
    // SAFETY: as the caller promises.
    unsafe { heap_of(heap) }.slot_size(size)
}

/// The largest size that has a slot in one of the heap's pools; a larger object has pages of its
/// own.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_largest_slot(heap: *mut GcHeap) -> usize {
    // SAFETY: as the caller promises.
    unsafe { heap_of(heap) }.largest_slot()
}

/// Writes a heap's statistics to *out, which is size bytes: pass sizeof(hw_gc_statistics). A
/// smaller struct gets the fields that it has. A larger struct gets zeros behind the fields that
/// this library knows.
///
/// Returns how many bytes of the struct this library knows. Returns 0 with errno EINVAL for a size
/// of 0 or beyond 64 KiB.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed; out points to size bytes that can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_stats(
    heap: *mut GcHeap,
    out: *mut GcStatistics,
    size: usize,
) -> usize {
    // SAFETY: as the caller promises.
    let now = unsafe { heap_of(heap) }.statistics();
    // SAFETY: both structs have the same fields, and no padding.
    unsafe { write_known(&now, out.cast(), size) }
}

/// Gives all pages without objects to the system, and the process's other free memory too. Returns
/// the bytes of the heap's pages that have left the process.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_trim(heap: *mut GcHeap) -> usize {
    // SAFETY: as the caller promises.
    unsafe { heap_of(heap) }.trim()
}

/// Visits every object, while all mutators are stopped. visit must call nothing of the heap.
///
/// Returns whether the walk came to the end.
///
/// # Safety
///
/// mutator is this thread's; the duties listed in heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_walk(
    mutator: *mut GcMutator,
    visit: GcVisitor,
    context: *mut c_void,
) -> bool {
    let Some(visit) = visit else { return true };
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    let each = |object: *mut u8, size, kind| {
        // SAFETY: as the caller promises.
        unsafe { visit(object.cast(), size, kind, context) }
    };
    // SAFETY: as the caller promises.
    unsafe { mutator.walk(each) }
}

/// Writes a heap dump to a file descriptor, for `heapwright heap`. All mutators are stopped
/// meanwhile.
///
/// Returns false, with errno of write, or ENOMEM, if the dump is incomplete.
///
/// # Safety
///
/// mutator is this thread's; the duties listed in heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_dump(mutator: *mut GcMutator, descriptor: i32) -> bool {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    let mut failed = false;
    let sink = |mut bytes: &[u8]| {
        while !bytes.is_empty() && !failed {
            // SAFETY: the pointer and the length are the slice's.
            let wrote = unsafe { libc::write(descriptor, bytes.as_ptr().cast(), bytes.len()) };
            if let Ok(wrote) = usize::try_from(wrote) {
                bytes = bytes.get(wrote..).unwrap_or_default();
            } else {
                failed = errno::get() != libc::EINTR;
            }
        }
        !failed
    };
    // SAFETY: as the caller promises.
    let whole = unsafe { mutator.dump(sink) };
    if !whole && !failed {
        errno::fail(libc::ENOMEM);
    }
    whole
}

/// Verifies everything reachable from the roots. Prints each error on stderr, with the path to it.
/// Returns the number of errors.
///
/// # Safety
///
/// mutator is this thread's; the duties listed in heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_verify(mutator: *mut GcMutator) -> usize {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.verify() }
}
