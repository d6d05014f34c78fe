//! The thread's errno.
//!
//! The slow paths of the library set `ENOMEM`, so the fast paths that call them need not check the
//! result. This module serves the other cases: `EINVAL`, an overflow found before the library is
//! called, and functions that must leave errno as it was.

use libc::c_int;

pub(crate) fn set(value: c_int) {
    // SAFETY: the C library gives a valid address for every thread.
    let slot = unsafe { libc::__errno_location() };
    // SAFETY: the address is this thread's own errno.
    unsafe { *slot = value };
}

pub(crate) fn get() -> c_int {
    // SAFETY: the C library gives a valid address for every thread.
    let slot = unsafe { libc::__errno_location() };
    // SAFETY: the address is this thread's own errno.
    unsafe { *slot }
}

/// Sets errno and returns null, as each failing function of the malloc family does.
#[cold]
pub(crate) fn fail(value: c_int) -> *mut libc::c_void {
    set(value);
    core::ptr::null_mut()
}

/// Sets errno and returns -1, as most functions do that fail.
#[cfg(heapwright_reads)]
pub(crate) fn set_and_fail(value: c_int) -> c_int {
    set(value);
    -1
}

/// Sets errno to `ENOMEM` if a request was not `done`. Returns `done`.
pub(crate) fn or_no_memory(done: bool) -> bool {
    if !done {
        fail(libc::ENOMEM);
    }
    done
}
