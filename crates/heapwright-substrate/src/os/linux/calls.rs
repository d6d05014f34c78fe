//! System calls on files, and sleeps, without cancellation points. Calls for memory, which a
//! sandbox may forbid.
//!
//! A thread that was cancelled inside `malloc` or `free` would end with heapwright's locks held.
//! The C library's wrappers are cancellation points, but its `syscall` is not.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;

use crate::os::{Sandbox, is_filtered, is_in_sandbox, sandbox};

fn may(is_left: bool) -> bool {
    if !is_left {
        super::set_errno(libc::EPERM);
    }
    is_left
}

fn may_map() -> bool {
    may(sandbox() != Sandbox::Strict)
}

/// # Safety
///
/// As the system call.
pub(super) unsafe fn mmap(
    at: *mut c_void,
    size: usize,
    access: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    if !may_map() {
        return libc::MAP_FAILED;
    }
    // SAFETY: by the contract of this function.
    unsafe { libc::mmap(at, size, access, flags, file, offset) }
}

/// # Safety
///
/// As the system call.
pub(super) unsafe fn munmap(at: *mut c_void, size: usize) -> c_int {
    // SAFETY: by the contract of this function, which is the system call's.
    if may_map() { unsafe { libc::munmap(at, size) } } else { -1 }
}

/// # Safety
///
/// As the system call.
pub(super) unsafe fn mprotect(at: *mut c_void, size: usize, access: c_int) -> c_int {
    // SAFETY: by the contract of this function, which is the system call's.
    if may_map() { unsafe { libc::mprotect(at, size, access) } } else { -1 }
}

/// # Safety
///
/// As the system call.
pub(super) unsafe fn madvise(at: *mut c_void, size: usize, advice: c_int) -> c_int {
    // SAFETY: by the contract of this function, which is the system call's.
    if may_map() { unsafe { libc::madvise(at, size, advice) } } else { -1 }
}

/// # Safety
///
/// As the system call. `to` is used only with `MREMAP_FIXED`.
pub(super) unsafe fn mremap(
    at: *mut c_void,
    size: usize,
    new: usize,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    if !may_map() {
        return libc::MAP_FAILED;
    }
    // SAFETY: by the contract of this function, which is the system call's.
    unsafe { libc::mremap(at, size, new, flags, to) }
}

pub(super) fn open(path: &CStr, flags: c_int, mode: libc::mode_t) -> c_int {
    if !may(!is_filtered()) {
        return -1;
    }
    // SAFETY: the path is a C string, which the kernel reads.
    unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, mode) as c_int }
}

pub(super) fn read(file: c_int, buffer: &mut [u8]) -> isize {
    // SAFETY: the pointer and the length are the buffer's.
    unsafe { libc::syscall(libc::SYS_read, file, buffer.as_mut_ptr(), buffer.len()) as isize }
}

/// Returns the number of bytes written; below 0: see `errno`. Raises no signal in the program:
/// blocks SIGPIPE (a pipe without a reader), SIGXFSZ (the limit on file sizes) and SIGTTOU (another
/// job's terminal) meanwhile. Removes a signal that the write raised, but not one that was pending
/// before. In a sandbox only writes, because other calls may be forbidden.
pub(super) fn write(file: c_int, bytes: &[u8]) -> isize {
    // SAFETY: the kernel reads the slice.
    let write =
        || unsafe { libc::syscall(libc::SYS_write, file, bytes.as_ptr(), bytes.len()) as isize };
    if is_in_sandbox() {
        return write();
    }
    let raised = bit(libc::SIGPIPE) | bit(libc::SIGXFSZ);
    let before = change_mask(libc::SIG_BLOCK, raised | bit(libc::SIGTTOU));
    // A signal that was not blocked was not pending.
    let pending = if before & raised == 0 { 0 } else { pending() };
    let wrote = write();
    let error = super::errno();
    let ours = match error {
        libc::EPIPE if wrote < 0 => bit(libc::SIGPIPE),
        libc::EFBIG if wrote < 0 => bit(libc::SIGXFSZ),
        _ => 0,
    };
    if ours & !pending != 0 {
        let (at_once, none) = (libc::timespec { tv_sec: 0, tv_nsec: 0 }, ptr::null_mut::<u8>());
        // SAFETY: a set and a time that the kernel reads, and no place for details of the signal.
        unsafe {
            libc::syscall(libc::SYS_rt_sigtimedwait, &raw const ours, none, &raw const at_once, 8)
        };
    }
    change_mask(libc::SIG_SETMASK, before);
    super::set_errno(error);
    wrote
}

const fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

pub(super) fn change_mask(how: c_int, set: u64) -> u64 {
    let mut before = 0_u64;
    // SAFETY: a set that the kernel reads, and one that it writes, of 8 bytes each.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const set, &raw mut before, 8) };
    before
}

fn pending() -> u64 {
    let mut set = 0_u64;
    // SAFETY: a set of 8 bytes that the kernel writes.
    unsafe { libc::syscall(libc::SYS_rt_sigpending, &raw mut set, 8) };
    set
}

pub(super) fn close(file: c_int) {
    // SAFETY: no memory is touched; a number that is no descriptor is refused.
    unsafe { libc::syscall(libc::SYS_close, file) };
}

#[cfg(feature = "debug")]
pub(super) fn sleep_ns(nanoseconds: u32) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds.min(999_999_999).into() };
    // SAFETY: the kernel reads the time, and writes no rest.
    unsafe {
        libc::syscall(libc::SYS_nanosleep, &raw const time, ptr::null_mut::<libc::timespec>())
    };
}

/// As `waitpid`, but does not wait.
#[cfg(feature = "debug")]
pub(super) fn wait_now(child: c_int, status: &mut c_int) -> c_int {
    let how = libc::WNOHANG | libc::__WALL;
    let none = ptr::null_mut::<libc::rusage>();
    // SAFETY: the kernel writes the status, and no usage.
    unsafe { libc::syscall(libc::SYS_wait4, child, ptr::from_mut(status), how, none) as c_int }
}
