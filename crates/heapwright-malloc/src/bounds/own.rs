//! heapwright's own calls of the functions that it interposes: the real ones, without a check.
//!
//! The debug heap fills freed blocks, copies records and reads pages into its own memory for a leak
//! check, where no bounds apply. The linker redirects these calls to `__wrap_*` (`--wrap`).
//! heapwright-entry has the copies, heapwright-entry-reads the reads. This file has `fwrite` and a
//! few calls of the kernel. They use `syscall`, which is no cancellation point and needs no lookup.

use core::arch::global_asm;
use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, Ordering};
use heapwright_entry::SLOTS;
use libc::{c_char, c_int, c_void, off64_t, size_t, ssize_t};

// Only this library calls these functions.
global_asm!(".hidden __wrap_pread64", ".hidden __wrap_readlink", ".hidden __wrap_getcwd");

/// Stores the C library's functions that `find` finds, for heapwright's own calls.
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
        set(&own.clock_gettime, c"clock_gettime");
    }
}

#[cfg(heapwright_reads)]
mod calls {
    use super::*;
    use crate::errno;
    use core::arch::naked_asm;
    use core::mem::transmute;
    use libc::{c_long, c_uint, mode_t, rlimit, sigset_t, statfs};

    global_asm!(".hidden __wrap_write", ".hidden __wrap_fwrite", ".hidden __wrap_syscall");
    global_asm!(".hidden __wrap_open", ".hidden __wrap_unlink", ".hidden __wrap_rename");
    global_asm!(".hidden __wrap_chdir", ".hidden __wrap_fcntl", ".hidden __wrap_fstatfs");
    global_asm!(".hidden __wrap_getrlimit", ".hidden __wrap_sigprocmask");
    global_asm!(".hidden __wrap_mincore", ".hidden __wrap_shmctl");

    /// As `syscall`. Uses only `errno` of the C library.
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    unsafe extern "C" fn __wrap_syscall() {
        #[cfg(target_arch = "x86_64")]
        naked_asm!(
            ".cfi_startproc",
            "mov rax, rdi",
            "mov rdi, rsi",
            "mov rsi, rdx",
            "mov rdx, rcx",
            "mov r10, r8",
            "mov r8, r9",
            "mov r9, [rsp + 8]",
            "syscall",
            "cmp rax, -4095",
            "jae 2f",
            "ret",
            "2:",
            "neg eax",
            "mov edi, eax",
            "jmp {fail}",
            ".cfi_endproc",
            fail = sym fail,
        );
        #[cfg(target_arch = "aarch64")]
        naked_asm!(
            ".cfi_startproc",
            "mov x8, x0",
            "mov x0, x1",
            "mov x1, x2",
            "mov x2, x3",
            "mov x3, x4",
            "mov x4, x5",
            "mov x5, x6",
            "svc #0",
            "cmn x0, #4095",
            "b.cs 2f",
            "ret",
            "2:",
            "neg w0, w0",
            "b {fail}",
            ".cfi_endproc",
            fail = sym fail,
        );
    }

    extern "C" fn fail(error: c_int) -> c_long {
        errno::set(error);
        -1
    }

    macro_rules! calls {
        ($(
            $name:ident($($argument:ident: $type:ty),*)
                = $number:ident($($passed:expr),*);
        )*) => { $(
            /// # Safety
            ///
            /// As the C library's.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
                // SAFETY: the caller passes valid arguments of the C library's function.
                unsafe { libc::syscall(libc::$number, $($passed),*) as c_int }
            }
        )* };
    }

    calls! {
        __wrap_open(path: *const c_char, flags: c_int, mode: mode_t)
            = SYS_openat(libc::AT_FDCWD, path, flags, mode);
        __wrap_unlink(path: *const c_char) = SYS_unlinkat(libc::AT_FDCWD, path, 0);
        __wrap_rename(path: *const c_char, new: *const c_char)
            = SYS_renameat2(libc::AT_FDCWD, path, libc::AT_FDCWD, new, 0);
        __wrap_chdir(path: *const c_char) = SYS_chdir(path);
        __wrap_fcntl(file: c_int, command: c_int, what: usize) = SYS_fcntl(file, command, what);
        __wrap_fstatfs(file: c_int, to: *mut statfs) = SYS_fstatfs(file, to);
        __wrap_getrlimit(resource: c_uint, to: *mut rlimit) = SYS_prlimit64(0, resource, 0, to);
        __wrap_mincore(at: *mut c_void, n: size_t, to: *mut u8) = SYS_mincore(at, n, to);
        __wrap_shmctl(id: c_int, command: c_int, what: *mut c_void)
            = SYS_shmctl(id, command, what);
        __wrap_sigprocmask(how: c_int, new: *const sigset_t, old: *mut sigset_t)
            = SYS_rt_sigprocmask(how, new, old, 8);
    }

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
    /// As `fwrite`. (Only the program's `malloc_info` leads here, after the library's constructor.)
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
/// As `pread`: musl has `pread64` under this name.
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
    // SAFETY: the kernel reads the path, and writes at most `bytes` bytes, for which there is room.
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
