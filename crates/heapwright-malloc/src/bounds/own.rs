//! What heapwright itself calls of the functions that it interposes: the real ones, without a check.
//!
//! The debug heap fills freed blocks, records are copied, a leak check reads pages into memory of the heap's own: no
//! bounds of blocks apply there. The linker leads these calls to `__wrap_*` (`--wrap` in the build script). Copies
//! are heapwright-entry's; the calls of the kernel, which are few, are here. They are made by the C library's `syscall`: it
//! need not be looked for, and is no cancellation point.

use core::arch::global_asm;
use core::sync::atomic::Ordering;
use heapwright_entry::SLOTS;
use libc::{c_char, c_int, c_void, off64_t, size_t, ssize_t};

// They are called within the library alone.
global_asm!(".hidden __wrap_pread64", ".hidden __wrap_readlink", ".hidden __wrap_getcwd");

/// Has copies made by the C library's functions, where it has them.
pub(super) fn set(memmove: *mut c_void, memset: *mut c_void) {
    if !memmove.is_null() {
        SLOTS.own.memmove.store(memmove, Ordering::Release);
    }
    if !memset.is_null() {
        SLOTS.own.memset.store(memset, Ordering::Release);
    }
}

/// # Safety
///
/// As `pread64`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_pread64(
    file: c_int,
    to: *mut c_void,
    bytes: size_t,
    at: off64_t,
) -> ssize_t {
    // SAFETY: the kernel writes at most `bytes` bytes, for which the caller has room.
    unsafe { libc::syscall(libc::SYS_pread64, file, to, bytes, at) as ssize_t }
}

/// # Safety
///
/// As `readlink`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_readlink(
    path: *const c_char,
    to: *mut c_char,
    bytes: size_t,
) -> ssize_t {
    // SAFETY: the kernel reads the path, and writes at most `bytes` bytes, for which the caller has room.
    unsafe { libc::syscall(libc::SYS_readlinkat, libc::AT_FDCWD, path, to, bytes) as ssize_t }
}

/// # Safety
///
/// As `getcwd`, with a place to write to.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_getcwd(to: *mut c_char, bytes: size_t) -> *mut c_char {
    // SAFETY: the kernel writes at most `bytes` bytes, for which the caller has room.
    let got = unsafe { libc::syscall(libc::SYS_getcwd, to, bytes) };
    if got > 0 { to } else { core::ptr::null_mut() }
}
