//! `daemon`, with the debug heap's last check of the process that ends.
//!
//! The C library's `daemon` ends the calling process by an `_exit` of its own, so the process would
//! get no leak check. In debug mode our `daemon` therefore does the same work and makes the last
//! check. In other modes it calls the C library's, if there is one.

use crate::weak::next;
use crate::{at_exit, errno};
use core::sync::atomic::AtomicPtr;
use heapwright::heap;
use libc::{c_int, c_void};

#[unsafe(no_mangle)]
extern "C" fn daemon(no_chdir: c_int, no_close: c_int) -> c_int {
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
    if !heap::debugging() {
        let next = next(&FOUND, c"daemon");
        if !next.is_null() {
            // SAFETY: `daemon` has this type.
            let next = unsafe {
                core::mem::transmute::<*mut c_void, extern "C" fn(c_int, c_int) -> c_int>(next)
            };
            return next(no_chdir, no_close);
        }
    }
    // SAFETY: the program called `daemon`, so it allows a fork here.
    match unsafe { libc::fork() } {
        -1 => return -1,
        0 => {}
        _ => at_exit::_exit(0),
    }
    // SAFETY: the call has no preconditions.
    if unsafe { libc::setsid() } == -1 {
        return -1;
    }
    if no_chdir == 0 {
        // SAFETY: the path is a string.
        let _ = unsafe { libc::chdir(c"/".as_ptr()) };
    }
    if no_close == 0 && !streams_to_nowhere() {
        return -1;
    }
    0
}

/// Leads all three standard streams to the null device.
fn streams_to_nowhere() -> bool {
    // SAFETY: the path is a string, and the flags need no mode.
    let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
    if null < 0 {
        return false;
    }
    let mut about = core::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the file is open, and `about` has room for the result.
    let failed = unsafe { libc::syscall(libc::SYS_fstat, null, about.as_mut_ptr()) } != 0;
    // SAFETY: all zeros is a valid struct, and so is the call's result.
    let about = unsafe { about.assume_init() };
    let is_null =
        about.st_mode & libc::S_IFMT == libc::S_IFCHR && about.st_rdev == libc::makedev(1, 3);
    if failed || !is_null {
        // SAFETY: this function opened the file.
        unsafe { libc::close(null) };
        if !failed {
            errno::set(libc::ENODEV);
        }
        return false;
    }
    for stream in 0..3 {
        // SAFETY: the file is open.
        unsafe { libc::dup2(null, stream) };
    }
    if null > 2 {
        // SAFETY: this function opened the file.
        unsafe { libc::close(null) };
    }
    true
}
