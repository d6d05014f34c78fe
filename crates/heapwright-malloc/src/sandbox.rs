//! `prctl`, by which a program forbids system calls to itself.
//!
//! Slow paths of the heap read files of the kernel now and then, to know how near the memory limit is (`heapwright::limit`). A
//! program with a filter of its own (`seccomp`) may be killed for opening one. Before a filter comes `PR_SET_NO_NEW_PRIVS`,
//! without which only privileged programs may have one, or `PR_SET_SECCOMP` itself: the heap stops reading then.
//!
//! The function does what the C library's does: one system call.

use libc::{c_int, c_ulong};

/// Controls the process.
///
/// # Safety
///
/// As the system call: what pointers the option wants are right.
#[unsafe(no_mangle)]
unsafe extern "C" fn prctl(
    option: c_int,
    second: c_ulong,
    third: c_ulong,
    fourth: c_ulong,
    fifth: c_ulong,
) -> c_int {
    // A child of `vfork` has its parent's memory, and is no sandbox of its parent's.
    let enter = || {
        if heapwright::process::is_original_process() {
            heapwright::limit::enter_sandbox();
        }
    };
    if option == libc::PR_SET_SECCOMP {
        enter();
    }
    // SAFETY: as the caller promises. (What a variadic call did not pass is not looked at.) Failure sets errno.
    let result =
        unsafe { libc::syscall(libc::SYS_prctl, option, second, third, fourth, fifth) as c_int };
    if option == libc::PR_SET_NO_NEW_PRIVS && result == 0 {
        enter();
    }
    result
}
