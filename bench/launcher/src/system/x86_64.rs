//! x86-64: `syscall`, and the entry point of a process.

use core::arch::{asm, global_asm};

pub(super) mod number {
    pub(in crate::system) const WRITE: usize = 1;
    pub(in crate::system) const RT_SIGACTION: usize = 13;
    pub(in crate::system) const RT_SIGPROCMASK: usize = 14;
    pub(in crate::system) const GETPID: usize = 39;
    pub(in crate::system) const CLONE: usize = 56;
    pub(in crate::system) const EXECVE: usize = 59;
    pub(in crate::system) const WAIT4: usize = 61;
    pub(in crate::system) const KILL: usize = 62;
    pub(in crate::system) const FCNTL: usize = 72;
    pub(in crate::system) const SETPGID: usize = 109;
    pub(in crate::system) const GETPPID: usize = 110;
    pub(in crate::system) const RT_SIGTIMEDWAIT: usize = 128;
    pub(in crate::system) const PRCTL: usize = 157;
    pub(in crate::system) const CLOCK_GETTIME: usize = 228;
    pub(in crate::system) const EXIT_GROUP: usize = 231;
    pub(in crate::system) const WAITID: usize = 247;
}

// The kernel enters with the arguments on the stack and no return address. A zero marks the
// outermost frame.
global_asm!(
    ".globl _start",
    ".type _start, @function",
    "_start:",
    "xor ebp, ebp",
    "mov rdi, rsp",
    "and rsp, -16",
    "call {launch}",
    "ud2",
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
    // SAFETY: the kernel changes only rcx, r11 and the memory that the arguments point to, for
    // which the caller answers.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}
