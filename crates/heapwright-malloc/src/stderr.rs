//! `dup2`, `dup3` and `fclose`, by which a program replaces or closes its standard error.
//!
//! Text goes only to the file that standard error was when the library began
//! (`heapwright::process::write_stderr`). After descriptor 2 is closed, a data file may get the
//! number 2. A program that names the number in `dup2`, such as a shell (`exec 2>log`) or a daemon,
//! wants another standard error. From then on text goes to that file.
//!
//! The core utilities, and all programs with gnulib, close standard error in a handler of `exit`,
//! before our destructor. So statistics are printed at that moment. The library keeps no descriptor
//! of its own: a process that waits for the end of a pipe would wait for a daemon.
//!
//! Otherwise each function does the same as the C library's.

use heapwright::process;
#[cfg(not(target_env = "musl"))]
use libc::FILE;
use libc::c_int;

#[unsafe(no_mangle)]
extern "C" fn dup2(old: c_int, new: c_int) -> c_int {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the call takes only numbers. Failure sets errno.
    let result = unsafe { libc::syscall(libc::SYS_dup2, old, new) as c_int };
    #[cfg(not(target_arch = "x86_64"))]
    let result = if old == new {
        // SAFETY: the call takes only numbers, and reads a flag of the file.
        let flags = unsafe { libc::syscall(libc::SYS_fcntl, old, libc::F_GETFD) };
        if flags < 0 { -1 } else { new }
    } else {
        // SAFETY: the call takes only numbers. Failure sets errno.
        unsafe { libc::syscall(libc::SYS_dup3, old, new, 0) as c_int }
    };
    notice(result);
    result
}

#[unsafe(no_mangle)]
extern "C" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    // SAFETY: the call takes only numbers. Failure sets errno.
    let result = unsafe { libc::syscall(libc::SYS_dup3, old, new, flags) as c_int };
    notice(result);
    result
}

/// Notes a new descriptor. (A child of `vfork` has its parent's memory, but its own descriptors.)
fn notice(descriptor: c_int) {
    if descriptor == libc::STDERR_FILENO && process::is_original_process() {
        process::stderr_is_new();
    }
}

#[cfg(not(target_env = "musl"))]
unsafe extern "C" {
    static stderr: *mut FILE;
    /// `fclose`, by the C library's own name.
    fn _IO_fclose(stream: *mut FILE) -> c_int;
}

/// # Safety
///
/// As the C library's: an open stream.
#[cfg(not(target_env = "musl"))]
#[unsafe(no_mangle)]
unsafe extern "C" fn fclose(stream: *mut FILE) -> c_int {
    // SAFETY: the C library sets `stderr` before any program runs.
    if stream == unsafe { stderr } {
        crate::at_exit::stderr_closes();
    }
    // SAFETY: as the caller promises.
    unsafe { _IO_fclose(stream) }
}
