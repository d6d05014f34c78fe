//! aarch64: `svc`, and the entry point of a process.

use core::arch::{asm, global_asm};

pub(super) mod number {
    pub(in crate::system) const FCNTL: usize = 25;
    pub(in crate::system) const WRITE: usize = 64;
    pub(in crate::system) const EXIT_GROUP: usize = 94;
    pub(in crate::system) const WAITID: usize = 95;
    pub(in crate::system) const CLOCK_GETTIME: usize = 113;
    pub(in crate::system) const KILL: usize = 129;
    pub(in crate::system) const RT_SIGACTION: usize = 134;
    pub(in crate::system) const RT_SIGPROCMASK: usize = 135;
    pub(in crate::system) const RT_SIGTIMEDWAIT: usize = 137;
    pub(in crate::system) const SETPGID: usize = 154;
    pub(in crate::system) const PRCTL: usize = 167;
    pub(in crate::system) const GETPID: usize = 172;
    pub(in crate::system) const GETPPID: usize = 173;
    pub(in crate::system) const CLONE: usize = 220;
    pub(in crate::system) const EXECVE: usize = 221;
    pub(in crate::system) const WAIT4: usize = 260;
}

// The kernel enters with the arguments on the aligned stack. Zeros mark the outermost frame.
global_asm!(
    ".globl _start",
    ".type _start, @function",
    "_start:",
    "mov x29, #0",
    "mov x30, #0",
    "mov x0, sp",
    "bl {launch}",
    "brk #1",
    ".size _start, . - _start",
    launch = sym crate::launch,
);

/// Makes a system call. Returns its result, or a negative error number.
///
/// # Safety
///
/// The arguments are valid for this call.
pub(super) unsafe fn call(number: usize, arguments: [usize; 5]) -> isize {
    let [a, b, c, d, e] = arguments;
    let result: isize;
    // SAFETY: the kernel changes only x0 and the memory that the arguments point to, for which the
    // caller answers.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") a as isize => result,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            in("x4") e,
            options(nostack),
        );
    }
    result
}
