//! The malloc family of C, POSIX and glibc.
//!
//! Answers that the manuals leave open, or in which glibc differs from the manuals:
//!
//! | call | answer |
//! |---|---|
//! | `malloc(0)`, `calloc(0, n)`, `realloc(NULL, 0)` | a block of its own; free it |
//! | `realloc(p, 0)` | frees p, returns NULL, errno untouched |
//! | more than `PTRDIFF_MAX` bytes | NULL, `ENOMEM` |
//! | `n * size` overflows | NULL, `ENOMEM`; the old block of `reallocarray` lives on |
//! | `posix_memalign`, bad alignment | `EINVAL`, returned; errno and the pointer untouched |
//! | `posix_memalign`, no memory | `ENOMEM`, returned and in errno (as glibc); pointer untouched |
//! | `aligned_alloc`, not a power of two | NULL, `EINVAL` (glibc since 2.38); in `check` as glibc |
//! | `memalign`, not a power of two | the next power of two; if there is none: NULL, `EINVAL` |
//! | `valloc`, `pvalloc` | a page's alignment; `pvalloc` rounds the size up to pages |
//! | `free`, `cfree` | keep errno |
//! | `free_sized`, `free_aligned_sized` | C23; the sizes are the caller's promise |
//!
//! Every result is aligned to at least 16 bytes. On x86-64 `malloc` and `free` are in
//! `malloc_x86_64`.
//!
//! **Invariant.** No function here calls another through its C name. The program, or a library
//! before this one, may have its own `malloc`, and a block must come from and return to one heap.

use crate::errno;
use heapwright::heap::{self, ALIGNED, MALLOC, POSIX_MEMALIGN};
use libc::{c_int, c_void, size_t};

#[cfg(not(target_arch = "x86_64"))]
#[unsafe(no_mangle)]
extern "C" fn malloc(size: size_t) -> *mut c_void {
    heap::malloc(size).cast()
}

#[unsafe(no_mangle)]
extern "C" fn calloc(count: size_t, size: size_t) -> *mut c_void {
    zeroed(count, size)
}

/// `calloc`, for all its names.
#[inline(always)]
pub(crate) fn zeroed(count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // (The compiler would make malloc and memset a call of calloc.)
        Some(total) => heap::calloc(total).cast(),
        None => errno::fail(libc::ENOMEM),
    }
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
        None => errno::fail(libc::ENOMEM),
    }
}

/// `realloc` and `reallocarray`, for all their names.
///
/// # Safety
///
/// `block` is null or a live block of this process.
#[inline(always)]
pub(crate) unsafe fn resize(block: *mut c_void, size: usize) -> *mut c_void {
    if size == 0 && !block.is_null() {
        // SAFETY: the caller gives the block away.
        unsafe { heap::realloc_to_nothing(block.cast()) };
        return core::ptr::null_mut();
    }
    // SAFETY: as the caller promises.
    unsafe { heap::realloc(block.cast(), size).cast() }
}

/// # Safety
///
/// `block` is null or a live block of this process. The heap reports misuse that it sees.
#[cfg(not(target_arch = "x86_64"))]
#[unsafe(no_mangle)]
unsafe extern "C" fn free(block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { heap::free(block.cast()) };
}

/// SunOS's name for `free`, which old programs still link to.
///
/// # Safety
///
/// As for `free`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cfree(block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { heap::free(block.cast()) };
}

/// # Safety
///
/// `block` is null, or was got from `malloc`, `calloc` or `realloc` with `size`.
#[unsafe(no_mangle)]
unsafe extern "C" fn free_sized(block: *mut c_void, size: size_t) {
    // SAFETY: as the caller promises.
    unsafe { heap::free_sized_from::<MALLOC>(block.cast(), size) };
}

/// # Safety
///
/// `block` is null, or was got from `aligned_alloc(alignment, size)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn free_aligned_sized(block: *mut c_void, alignment: size_t, size: size_t) {
    // SAFETY: as the caller promises.
    unsafe { heap::free_sized_aligned_from::<ALIGNED>(block.cast(), size, alignment) };
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
    // SAFETY: as the caller promises.
    unsafe { align_into(result, alignment, size) }
}

/// `posix_memalign`, for all its names.
///
/// # Safety
///
/// `result` can be written.
#[inline(always)]
pub(crate) unsafe fn align_into(result: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    if !alignment.is_power_of_two() || alignment < size_of::<*mut c_void>() {
        return libc::EINVAL;
    }
    let block = heap::malloc_aligned_for::<POSIX_MEMALIGN>(size, alignment);
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: as the caller promises.
    unsafe { *result = block.cast() };
    0
}

/// The size need not be a multiple of the alignment (since C17).
#[unsafe(no_mangle)]
extern "C" fn aligned_alloc(alignment: size_t, size: size_t) -> *mut c_void {
    if !alignment.is_power_of_two() {
        return align_oddly(alignment, size);
    }
    heap::malloc_aligned(size, alignment).cast()
}

/// `aligned_alloc` if the alignment is not a power of two, for all its names.
#[cold]
pub(crate) fn align_oddly(alignment: usize, size: usize) -> *mut c_void {
    #[cfg(heapwright_reads)]
    if crate::bounds::glibc().is_some_and(|minor| minor < 38) {
        return align_to_next(alignment, size);
    }
    let _ = (alignment, size);
    errno::fail(libc::EINVAL)
}

#[unsafe(no_mangle)]
extern "C" fn memalign(alignment: size_t, size: size_t) -> *mut c_void {
    align_to_next(alignment, size)
}

/// `memalign`, for all its names.
#[inline(always)]
pub(crate) fn align_to_next(alignment: usize, size: usize) -> *mut c_void {
    match alignment.checked_next_power_of_two() {
        Some(alignment) => heap::malloc_aligned(size, alignment).cast(),
        None => errno::fail(libc::EINVAL),
    }
}

#[unsafe(no_mangle)]
extern "C" fn valloc(size: size_t) -> *mut c_void {
    heap::malloc_aligned(size, page_size()).cast()
}

#[unsafe(no_mangle)]
extern "C" fn pvalloc(size: size_t) -> *mut c_void {
    whole_pages(size)
}

/// `pvalloc`, for all its names.
#[inline(always)]
pub(crate) fn whole_pages(size: usize) -> *mut c_void {
    let page = page_size();
    match size.checked_add(page - 1) {
        Some(sum) => heap::malloc_aligned(sum & !(page - 1), page).cast(),
        None => errno::fail(libc::ENOMEM),
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

/// The size of a page. The C library knows it: this makes no system call, and allocates nothing.
pub(crate) fn page_size() -> usize {
    // SAFETY: sysconf takes any name.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).ok().filter(|s| s.is_power_of_two()).unwrap_or(4096)
}
