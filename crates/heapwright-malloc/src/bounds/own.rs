//! What heapwright itself calls of the functions that it interposes: the real ones, without a check.
//!
//! The debug heap fills freed blocks, records are copied, a leak check reads pages into memory of the heap's own: no
//! bounds of blocks apply there. The linker leads these calls to `__wrap_*` (`--wrap` in the build script). Copies
//! are heapwright-entry's; the calls of the kernel, which are few, are here. They are made by the C library's `syscall`: it
//! need not be looked for, and is no cancellation point.

use core::arch::global_asm;
use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, Ordering};
use heapwright_entry::SLOTS;
use libc::{c_char, c_int, c_void, off64_t, size_t, ssize_t};

// They are called within the library alone.
global_asm!(".hidden __wrap_pread64", ".hidden __wrap_readlink", ".hidden __wrap_getcwd");

/// Has copies made by the C library's functions, where it has them: `find` says where.
pub(super) fn set(find: impl Fn(&CStr) -> *mut c_void) {
    let set = |slot: &AtomicPtr<c_void>, name| {
        let found = find(name);
        if !found.is_null() {
            slot.store(found, Ordering::Release);
        }
    };
    set(&SLOTS.own.memmove, c"memmove");
    set(&SLOTS.own.memset, c"memset");
    #[cfg(heapwright_reads)]
    {
        let own = &heapwright_entry_reads::SLOTS.own;
        set(&own.memcmp, c"memcmp");
        set(&own.memchr, c"memchr");
        set(&own.strlen, c"strlen");
        set(&own.strnlen, c"strnlen");
        set(&own.wcsnlen, c"wcsnlen");
    }
}

/// What heapwright itself writes to files: no function of the program's, and no check.
#[cfg(heapwright_reads)]
mod writing {
    use super::*;
    use core::mem::transmute;

    global_asm!(".hidden __wrap_write", ".hidden __wrap_fwrite");

    /// # Safety
    ///
    /// As `write`.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn __wrap_write(file: c_int, from: *const c_void, bytes: size_t) -> ssize_t {
        // SAFETY: the kernel reads at most `bytes` bytes, which the caller has.
        unsafe { libc::syscall(libc::SYS_write, file, from, bytes) as ssize_t }
    }

    /// # Safety
    ///
    /// As `fwrite`. (The program calls for it, by `malloc_info`: so the library's constructor has run.)
    #[unsafe(no_mangle)]
    unsafe extern "C" fn __wrap_fwrite(
        from: *const c_void,
        size: size_t,
        count: size_t,
        file: *mut libc::FILE,
    ) -> size_t {
        type Fwrite =
            unsafe extern "C" fn(*const c_void, size_t, size_t, *mut libc::FILE) -> size_t;
        let real = heapwright_entry_reads::SLOTS.fwrite.real.load(Ordering::Relaxed);
        if real.is_null() {
            return 0;
        }
        // SAFETY: the C library's function of that name, which has this type.
        let real = unsafe { transmute::<*mut c_void, Fwrite>(real) };
        // SAFETY: as the caller promises.
        unsafe { real(from, size, count, file) }
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
/// As `pread`, which is what musl calls `pread64`.
#[cfg(target_env = "musl")]
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_pread(
    file: c_int,
    to: *mut c_void,
    bytes: size_t,
    at: off64_t,
) -> ssize_t {
    // SAFETY: as the caller promises.
    unsafe { __wrap_pread64(file, to, bytes, at) }
}
#[cfg(target_env = "musl")]
global_asm!(".hidden __wrap_pread");

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
