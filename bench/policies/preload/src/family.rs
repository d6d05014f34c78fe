//! The malloc family, as far as measured programs need it. What each call answers where
//! the manuals leave it open stands in crates/heapwright-malloc/src/malloc_family.rs.

use heapwright::heap;
use libc::{c_int, c_void, size_t};

/// Sets errno and returns null.
#[cold]
fn fail(value: c_int) -> *mut c_void {
    // SAFETY: the C library gives a valid address for every thread.
    let slot = unsafe { libc::__errno_location() };
    // SAFETY: the slot belongs to this thread.
    unsafe { *slot = value };
    core::ptr::null_mut()
}

#[unsafe(no_mangle)]
extern "C" fn malloc(size: size_t) -> *mut c_void {
    heap::malloc(size).cast()
}

#[unsafe(no_mangle)]
extern "C" fn calloc(count: size_t, size: size_t) -> *mut c_void {
    match count.checked_mul(size) {
        Some(total) => heap::calloc(total).cast(),
        None => fail(libc::ENOMEM),
    }
}

/// # Safety
///
/// `block` is null or a live block of this process.
#[inline(always)]
unsafe fn resize(block: *mut c_void, size: usize) -> *mut c_void {
    if size == 0 && !block.is_null() {
        // SAFETY: the caller hands the block over.
        unsafe { heap::realloc_to_nothing(block.cast()) };
        return core::ptr::null_mut();
    }
    // SAFETY: as the caller promises.
    unsafe { heap::realloc(block.cast(), size).cast() }
}

/// # Safety
///
/// `block` is null or a live block of this process.
#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(block: *mut c_void, size: size_t) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe { resize(block, size) }
}

/// # Safety
///
/// `block` is null or a live block of this process.
#[unsafe(no_mangle)]
unsafe extern "C" fn reallocarray(block: *mut c_void, count: size_t, size: size_t) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: as the caller promises.
        Some(total) => unsafe { resize(block, total) },
        None => fail(libc::ENOMEM),
    }
}

/// # Safety
///
/// `block` is null or a live block of this process.
#[unsafe(no_mangle)]
unsafe extern "C" fn free(block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { heap::free(block.cast()) };
}

/// # Safety
///
/// `result` can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(
    result: *mut *mut c_void,
    alignment: size_t,
    size: size_t,
) -> c_int {
    if !alignment.is_power_of_two() || alignment < size_of::<*mut c_void>() {
        return libc::EINVAL;
    }
    let block = heap::malloc_aligned(size, alignment);
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: as the caller promises.
    unsafe { *result = block.cast() };
    0
}

#[unsafe(no_mangle)]
extern "C" fn aligned_alloc(alignment: size_t, size: size_t) -> *mut c_void {
    if !alignment.is_power_of_two() {
        return fail(libc::EINVAL);
    }
    heap::malloc_aligned(size, alignment).cast()
}

#[unsafe(no_mangle)]
extern "C" fn memalign(alignment: size_t, size: size_t) -> *mut c_void {
    match alignment.checked_next_power_of_two() {
        Some(alignment) => heap::malloc_aligned(size, alignment).cast(),
        None => fail(libc::EINVAL),
    }
}

#[unsafe(no_mangle)]
extern "C" fn valloc(size: size_t) -> *mut c_void {
    heap::malloc_aligned(size, page_size()).cast()
}

#[unsafe(no_mangle)]
extern "C" fn pvalloc(size: size_t) -> *mut c_void {
    let page = page_size();
    match size.checked_add(page - 1) {
        Some(sum) => heap::malloc_aligned(sum & !(page - 1), page).cast(),
        None => fail(libc::ENOMEM),
    }
}

/// # Safety
///
/// `block` is null or a live block of this process.
#[unsafe(no_mangle)]
unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> size_t {
    // SAFETY: as the caller promises.
    unsafe { heap::usable_size(block.cast_const().cast()) }
}

fn page_size() -> usize {
    // SAFETY: sysconf takes any name.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).ok().filter(|s| s.is_power_of_two()).unwrap_or(4096)
}
