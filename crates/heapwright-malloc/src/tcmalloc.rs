//! gperftools' functions beside `malloc`, for programs that are linked with its tcmalloc and run
//! under the preload.
//!
//! ```text
//!   tc_malloc tc_free ...      the malloc family and operators by other names
//!   MallocExtension_...        questions and orders in C
//! ```
//!
//! The C++ class `MallocExtension` stays the linked library's, and answers for that library's empty
//! heap.
//!
//! | property | its value here |
//! |---|---|
//! | `generic.current_allocated_bytes` | bytes in live blocks |
//! | `generic.heap_size` | bytes made writable |
//! | `tcmalloc.pageheap_free_bytes` | free pages that wait for the purge |
//! | `tcmalloc.pageheap_unmapped_bytes` | bytes of the heap that are not resident |
//! | `tcmalloc.current_total_thread_cache_bytes` | free blocks in caches |

use core::ffi::{CStr, c_char};
use core::ptr;

use crate::cxx::forwarding;
use crate::{introspection, malloc_family};
use heapwright::heap::{self, MALLOC};
use libc::{c_int, c_void, size_t};

#[unsafe(no_mangle)]
extern "C" fn tc_malloc(size: size_t) -> *mut c_void {
    heap::malloc(size).cast()
}

/// `malloc`: in C, no new handler is called.
#[unsafe(no_mangle)]
extern "C" fn tc_malloc_skip_new_handler(size: size_t) -> *mut c_void {
    heap::malloc(size).cast()
}

#[unsafe(no_mangle)]
extern "C" fn tc_calloc(count: size_t, size: size_t) -> *mut c_void {
    malloc_family::zeroed(count, size)
}

/// # Safety
///
/// `block` is null or a live block of this process.
#[unsafe(no_mangle)]
unsafe extern "C" fn tc_realloc(block: *mut c_void, size: size_t) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe { malloc_family::resize(block, size) }
}

/// # Safety
///
/// `block` is null or a live block of this process.
#[unsafe(no_mangle)]
unsafe extern "C" fn tc_free(block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { heap::free(block.cast()) };
}

/// # Safety
///
/// `block` is null or a live block of this process.
#[unsafe(no_mangle)]
unsafe extern "C" fn tc_cfree(block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { heap::free(block.cast()) };
}

/// # Safety
///
/// `block` is null or a live block of this process, of that size.
#[unsafe(no_mangle)]
unsafe extern "C" fn tc_free_sized(block: *mut c_void, size: size_t) {
    // SAFETY: as the caller promises.
    unsafe { heap::free_sized_from::<MALLOC>(block.cast(), size) };
}

#[unsafe(no_mangle)]
extern "C" fn tc_memalign(alignment: size_t, size: size_t) -> *mut c_void {
    malloc_family::align_to_next(alignment, size)
}

/// # Safety
///
/// `result` can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn tc_posix_memalign(
    result: *mut *mut c_void,
    alignment: size_t,
    size: size_t,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { malloc_family::align_into(result, alignment, size) }
}

#[unsafe(no_mangle)]
extern "C" fn tc_valloc(size: size_t) -> *mut c_void {
    heap::malloc_aligned(size, malloc_family::page_size()).cast()
}

/// `pvalloc`; one page for size 0.
#[unsafe(no_mangle)]
extern "C" fn tc_pvalloc(size: size_t) -> *mut c_void {
    malloc_family::whole_pages(size.max(1))
}

/// # Safety
///
/// `block` is null or a live block of this process.
#[unsafe(no_mangle)]
unsafe extern "C" fn tc_malloc_size(block: *mut c_void) -> size_t {
    // SAFETY: as the caller promises.
    unsafe { heap::usable_size(block.cast_const().cast()) }
}

/// The usable bytes of a block for this request (flags: see `jemalloc`).
#[unsafe(no_mangle)]
extern "C" fn tc_nallocx(size: size_t, flags: c_int) -> size_t {
    heap::good_size(size, 1 << (flags & 0x3f)).unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn tc_malloc_stats() {
    introspection::print();
}

/// The version of the gperftools whose interface this is.
///
/// # Safety
///
/// Each pointer is null or can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn tc_version(
    major: *mut c_int,
    minor: *mut c_int,
    patch: *mut *const c_char,
) -> *const c_char {
    for (place, number) in [(major, 2), (minor, 10)] {
        if !place.is_null() {
            // SAFETY: as the caller promises.
            unsafe { place.write(number) };
        }
    }
    if !patch.is_null() {
        // SAFETY: as the caller promises.
        unsafe { patch.write(c"".as_ptr()) };
    }
    c"gperftools 2.10 (heapwright)".as_ptr()
}

/// Reads a property. Returns 1, or 0 if it is unknown.
///
/// # Safety
///
/// `property` is a string, `value` can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn MallocExtension_GetNumericProperty(
    property: *const c_char,
    value: *mut size_t,
) -> c_int {
    // SAFETY: as the caller promises.
    let property = unsafe { CStr::from_ptr(property) }.to_bytes();
    let now = introspection::snapshot();
    let resident = now.rss - now.rss_not_ours;
    let figure = match property {
        b"generic.current_allocated_bytes" => now.live_bytes,
        b"generic.heap_size" => now.committed_bytes.max(resident),
        b"generic.total_physical_bytes" => resident,
        b"tcmalloc.pageheap_free_bytes" | b"tcmalloc.slack_bytes" => now.rss_lazy,
        b"tcmalloc.pageheap_unmapped_bytes" => now.committed_bytes.saturating_sub(resident),
        b"tcmalloc.current_total_thread_cache_bytes"
        | b"tcmalloc.thread_cache_free_bytes"
        | b"tcmalloc.max_total_thread_cache_bytes" => now.rss_caches,
        b"tcmalloc.central_cache_free_bytes" => now.rss_partial,
        b"tcmalloc.transfer_cache_free_bytes" => now.rss_remote,
        b"tcmalloc.aggressive_memory_decommit" => 0,
        _ => return 0,
    };
    // SAFETY: as the caller promises.
    unsafe { value.write(figure as size_t) };
    1
}

/// Sets a property. Returns 0: none can be set.
#[unsafe(no_mangle)]
extern "C" fn MallocExtension_SetNumericProperty(
    _property: *const c_char,
    _value: size_t,
) -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn MallocExtension_ReleaseFreeMemory() {
    heap::trim(0);
}

/// Gives all free memory back, perhaps more than `_bytes`.
#[unsafe(no_mangle)]
extern "C" fn MallocExtension_ReleaseToSystem(_bytes: size_t) {
    heap::trim(0);
}

/// Writes the statistics as text that ends with a zero.
///
/// # Safety
///
/// `buffer` has room for `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn MallocExtension_GetStats(buffer: *mut c_char, length: c_int) {
    let Some(room) = usize::try_from(length).ok().and_then(|length| length.checked_sub(1)) else {
        return;
    };
    let text = introspection::text();
    let bytes = &text.bytes()[..text.bytes().len().min(room)];
    // SAFETY: `buffer` has room for the bytes, as the caller promises.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr().cast(), buffer, bytes.len()) };
    let end = buffer.wrapping_add(bytes.len());
    // SAFETY: `buffer` has room for one more byte, as the caller promises.
    unsafe { end.write(0) };
}

#[unsafe(no_mangle)]
extern "C" fn MallocExtension_GetEstimatedAllocatedSize(size: size_t) -> size_t {
    heap::good_size(size, 1).unwrap_or(0)
}

/// # Safety
///
/// `block` is null or a live block of this process.
#[unsafe(no_mangle)]
unsafe extern "C" fn MallocExtension_GetAllocatedSize(block: *const c_void) -> size_t {
    // SAFETY: as the caller promises.
    unsafe { heap::usable_size(block.cast()) }
}

/// The owner of a block: 1 for this allocator, 2 otherwise.
#[unsafe(no_mangle)]
extern "C" fn MallocExtension_GetOwnership(block: *const c_void) -> c_int {
    if heap::owns(block.cast()) { 1 } else { 2 }
}

#[unsafe(no_mangle)]
extern "C" fn MallocExtension_MarkThreadIdle() {}

#[unsafe(no_mangle)]
extern "C" fn MallocExtension_MarkThreadBusy() {}

#[unsafe(no_mangle)]
extern "C" fn MallocExtension_MarkThreadTemporarilyIdle() {}

/// The bytes in the thread's cache. No such count is kept, so this returns 0.
#[unsafe(no_mangle)]
extern "C" fn MallocExtension_GetThreadCacheSize() -> size_t {
    0
}

/// Returns that the heap is in order: the heap reports a mistake at once when it sees one.
#[unsafe(no_mangle)]
extern "C" fn MallocExtension_VerifyAllMemory() -> c_int {
    1
}

/// Sets nothing, unlike `mallopt`.
#[unsafe(no_mangle)]
extern "C" fn tc_mallopt(_parameter: c_int, _value: c_int) -> c_int {
    1
}

/// Sets nothing. Returns 0, the old mode: `malloc` never calls the new-handler.
#[unsafe(no_mangle)]
extern "C" fn tc_set_new_mode(_mode: c_int) -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn tc_query_new_mode() -> c_int {
    0
}

// C++'s operators by C names.
forwarding! {
    tc_new => "_Znwm";
    tc_newarray => "_Znam";
    tc_new_nothrow => "_ZnwmRKSt9nothrow_t";
    tc_newarray_nothrow => "_ZnamRKSt9nothrow_t";
    tc_new_aligned => "_ZnwmSt11align_val_t";
    tc_newarray_aligned => "_ZnamSt11align_val_t";
    tc_new_aligned_nothrow => "_ZnwmSt11align_val_tRKSt9nothrow_t";
    tc_newarray_aligned_nothrow => "_ZnamSt11align_val_tRKSt9nothrow_t";
    tc_delete => "_ZdlPv";
    tc_deletearray => "_ZdaPv";
    tc_delete_nothrow => "_ZdlPvRKSt9nothrow_t";
    tc_deletearray_nothrow => "_ZdaPvRKSt9nothrow_t";
    tc_delete_sized => "_ZdlPvm";
    tc_deletearray_sized => "_ZdaPvm";
    tc_delete_aligned => "_ZdlPvSt11align_val_t";
    tc_deletearray_aligned => "_ZdaPvSt11align_val_t";
    tc_delete_aligned_nothrow => "_ZdlPvSt11align_val_tRKSt9nothrow_t";
    tc_deletearray_aligned_nothrow => "_ZdaPvSt11align_val_tRKSt9nothrow_t";
    tc_delete_sized_aligned => "_ZdlPvmSt11align_val_t";
    tc_deletearray_sized_aligned => "_ZdaPvmSt11align_val_t";
}
