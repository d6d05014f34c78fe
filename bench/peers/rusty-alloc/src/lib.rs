//! rusty_alloc under malloc's names.
//!
//! The crate has a C-like interface in Rust and is not published with C names.
//! Each function here is one call of it, and the hot ones are those it marks
//! for inlining, so that the exported `malloc` and `free` *are* its fast paths
//! and nothing stands between the program and them.
//!
//! Errors are C's: null, and errno where a function returns a number. `errno`
//! itself is left alone, as rusty_alloc does.

use core::ffi::{c_int, c_void};

use rusty_alloc::{alloc, os};

/// C's numbers for the two errors of `posix_memalign`, on Linux.
const EINVAL: c_int = 22;
const ENOMEM: c_int = 12;

/// What a failing `operator new` does. C++ would throw; a Rust library built
/// without unwinding cannot, and no program in the race runs out of memory.
struct Abort;

impl alloc::OnOom for Abort {
    fn on_oom(_: usize) -> *mut u8 {
        std::process::abort()
    }
}

/// C's `malloc`.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    alloc::malloc(size).cast()
}

/// C's `calloc`.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    alloc::calloc(count, size).cast()
}

/// C's `realloc`.
///
/// # Safety
/// Null or a live block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller keeps realloc's contract.
    unsafe { alloc::realloc(block.cast(), size).cast() }
}

/// glibc's `reallocarray`.
///
/// # Safety
/// As `realloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(
    block: *mut c_void,
    count: usize,
    size: usize,
) -> *mut c_void {
    // SAFETY: the caller keeps realloc's contract.
    unsafe { alloc::reallocn(block.cast(), count, size).cast() }
}

/// C's `free`.
///
/// # Safety
/// Null or a live block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    // SAFETY: the caller keeps free's contract.
    unsafe { alloc::free_inline(block.cast()) }
}

/// POSIX's `posix_memalign`.
///
/// # Safety
/// `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    out: *mut *mut c_void,
    alignment: usize,
    size: usize,
) -> c_int {
    if !alignment.is_power_of_two() || alignment < size_of::<*mut c_void>() {
        return EINVAL;
    }
    // SAFETY: a power of two, as was just asked.
    let block = unsafe { alloc::malloc_aligned_pow2(size, alignment) };
    if block.is_null() {
        return ENOMEM;
    }
    // SAFETY: the caller gave a place for it.
    unsafe { out.write(block.cast()) };
    0
}

/// C's `aligned_alloc`.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    alloc::malloc_aligned(size, alignment).cast()
}

/// The older name of the same.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    alloc::malloc_aligned(size, alignment).cast()
}

/// Pages.
#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    alloc::malloc_aligned(size, os::page_size()).cast()
}

/// Whole pages.
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    let page = os::page_size();
    match size.checked_next_multiple_of(page) {
        Some(size) => alloc::malloc_aligned(size, page).cast(),
        None => core::ptr::null_mut(),
    }
}

/// glibc's `malloc_usable_size`.
///
/// # Safety
/// Null or a live block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    // SAFETY: the caller keeps the contract.
    unsafe { alloc::usable_size(block.cast()) }
}

/// C++'s operators under their mangled names. Without them, each `new` would go
/// through the C++ library's and pay a call more than under other peers.
macro_rules! new {
    ($($(#[$text:meta])* $name:ident($size:ident $(, $argument:ident)*) = $body:expr;)*) => { $(
        $(#[$text])*
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the names are C++'s")]
        pub extern "C" fn $name($size: usize $(, $argument: usize)*) -> *mut c_void {
            $body
        }
    )* };
}

macro_rules! delete {
    ($($(#[$text:meta])* $name:ident($($argument:ident),*);)*) => { $(
        $(#[$text])*
        ///
        /// # Safety
        /// The C++ operator's contract.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the names are C++'s")]
        pub unsafe extern "C" fn $name(block: *mut c_void $(, $argument: usize)*) {
            // SAFETY: the caller keeps delete's contract.
            unsafe { alloc::free_inline(block.cast()) }
        }
    )* };
}

fn new(size: usize) -> *mut c_void {
    alloc::malloc_or_with::<Abort>(size).cast()
}

fn new_aligned(size: usize, alignment: usize) -> *mut c_void {
    let block = alloc::malloc_aligned(size, alignment);
    if block.is_null() {
        std::process::abort();
    }
    block.cast()
}

new! {
    /// `operator new(size_t)`
    _Znwm(size) = new(size);
    /// `operator new[](size_t)`
    _Znam(size) = new(size);
    /// `operator new(size_t, nothrow)`
    _ZnwmRKSt9nothrow_t(size, _tag) = malloc(size);
    /// `operator new[](size_t, nothrow)`
    _ZnamRKSt9nothrow_t(size, _tag) = malloc(size);
    /// `operator new(size_t, align_val_t)`
    _ZnwmSt11align_val_t(size, align) = new_aligned(size, align);
    /// `operator new[](size_t, align_val_t)`
    _ZnamSt11align_val_t(size, align) = new_aligned(size, align);
    /// `operator new(size_t, align_val_t, nothrow)`
    _ZnwmSt11align_val_tRKSt9nothrow_t(size, align, _tag) = memalign(align, size);
    /// `operator new[](size_t, align_val_t, nothrow)`
    _ZnamSt11align_val_tRKSt9nothrow_t(size, align, _tag) = memalign(align, size);
}

delete! {
    /// `operator delete(void *)`
    _ZdlPv();
    /// `operator delete[](void *)`
    _ZdaPv();
    /// `operator delete(void *, size_t)`
    _ZdlPvm(_size);
    /// `operator delete[](void *, size_t)`
    _ZdaPvm(_size);
    /// `operator delete(void *, align_val_t)`
    _ZdlPvSt11align_val_t(_align);
    /// `operator delete[](void *, align_val_t)`
    _ZdaPvSt11align_val_t(_align);
    /// `operator delete(void *, size_t, align_val_t)`
    _ZdlPvmSt11align_val_t(_size, _align);
    /// `operator delete[](void *, size_t, align_val_t)`
    _ZdaPvmSt11align_val_t(_size, _align);
    /// `operator delete(void *, nothrow)`
    _ZdlPvRKSt9nothrow_t(_tag);
    /// `operator delete[](void *, nothrow)`
    _ZdaPvRKSt9nothrow_t(_tag);
}
