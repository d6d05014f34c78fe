//! `prctl` and `syscall`, with which a program forbids itself system calls.
//!
//! A program with a filter of its own (`seccomp`) may be killed for a call that its author did not
//! foresee. From then on the heap makes only the calls that docs/platforms.md names
//! (`heapwright::limit::enter_sandbox`). The first sign is `PR_SET_NO_NEW_PRIVS`, which programs
//! without privileges need for a filter: the heap stops reading the kernel's files then.
//!
//! Each function makes one system call, as the C library's does. `syscall` has no frame, because
//! programs use it to fork.

use core::arch::asm;
#[cfg(not(heapwright_reads))]
use core::arch::naked_asm;
use heapwright::limit::{self, Sandbox};
use heapwright::process;
use libc::{c_int, c_long, c_ulong};

/// # Safety
///
/// As the system call: the pointers that the option takes are valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn prctl(
    option: c_int,
    second: c_ulong,
    third: c_ulong,
    fourth: c_ulong,
    fifth: c_ulong,
) -> c_int {
    let call = |second| {
        let arguments = [option as c_ulong, second, third, fourth, fifth];
        // SAFETY: as the caller promises. (Arguments that a variadic call did not pass are unused.)
        unsafe { controlled(libc::SYS_prctl, arguments) as c_int }
    };
    #[cfg(heapwright_reads)]
    return crate::bounds::controls_process(option, second, call);
    #[cfg(not(heapwright_reads))]
    call(second)
}

/// Makes a system call that may begin a sandbox. Tells the heap before.
///
/// # Safety
///
/// As the system call.
unsafe fn controlled(number: c_long, arguments: [c_ulong; 5]) -> c_long {
    // A child of `vfork` has its parent's memory, but its sandbox is not its parent's.
    let begins = begins(number, arguments).filter(|_| process::is_original_process());
    let entry = begins.map(limit::begin_sandbox);
    let result = {
        let [first, second, third, fourth, fifth] = arguments;
        // SAFETY: as the caller promises.
        unsafe { call(number, first, second, third, fourth, fifth) }
    };
    if result < 0 {
        if let Some(entry) = entry {
            limit::leave_sandbox(entry);
        }
        crate::errno::set((-result) as c_int);
        return -1;
    }
    result
}

/// Returns the sandbox that a call enters or leads to, if any.
fn begins(number: c_long, arguments: [c_ulong; 5]) -> Option<Sandbox> {
    let (operation, mode) = (arguments[0], arguments[1]);
    let mode = match number {
        libc::SYS_seccomp if operation <= c_ulong::from(libc::SECCOMP_SET_MODE_FILTER) => {
            operation + c_ulong::from(libc::SECCOMP_MODE_STRICT)
        }
        libc::SYS_prctl if operation == libc::PR_SET_SECCOMP as c_ulong => mode,
        libc::SYS_prctl if operation == libc::PR_SET_NO_NEW_PRIVS as c_ulong => {
            return Some(Sandbox::Expected);
        }
        _ => return None,
    };
    let is_strict = mode == c_ulong::from(libc::SECCOMP_MODE_STRICT);
    Some(if is_strict { Sandbox::Strict } else { Sandbox::Filter })
}

/// Makes a system call. Returns its result, or minus its errno.
///
/// # Safety
///
/// As the system call.
unsafe fn call(
    number: c_long,
    first: c_ulong,
    second: c_ulong,
    third: c_ulong,
    fourth: c_ulong,
    fifth: c_ulong,
) -> c_long {
    let result;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as the caller promises.
    unsafe {
        asm!(
            "syscall", inlateout("rax") number => result, in("rdi") first, in("rsi") second, in("rdx") third,
            in("r10") fourth, in("r8") fifth, out("rcx") _, out("r11") _, options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as the caller promises.
    unsafe {
        asm!(
            "svc 0", in("x8") number, inlateout("x0") first => result, in("x1") second, in("x2") third,
            in("x3") fourth, in("x4") fifth, options(nostack),
        );
    }
    result
}

/// Whether a system call may begin a sandbox.
#[cfg(heapwright_reads)]
pub(crate) fn controls(number: c_long) -> bool {
    number == libc::SYS_prctl || number == libc::SYS_seccomp
}

/// Makes a system call that may begin a sandbox, as `syscall` does. Tells the heap before.
///
/// # Safety
///
/// As that system call.
pub(crate) unsafe extern "C" fn controlled_by_number(
    number: c_long,
    first: c_ulong,
    second: c_ulong,
    third: c_ulong,
    fourth: c_ulong,
    fifth: c_ulong,
) -> c_long {
    // SAFETY: as the caller promises.
    unsafe { controlled(number, [first, second, third, fourth, fifth]) }
}

#[cfg(not(heapwright_reads))]
extern "C" fn failed(result: c_long) -> c_long {
    crate::errno::set((-result) as c_int);
    -1
}

/// Makes a system call by its number. (The check library's table has a function of its own.)
///
/// # Safety
///
/// As that system call.
#[cfg(not(heapwright_reads))]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn syscall() {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        ".cfi_startproc",
        "cmp rdi, {prctl}",
        "je {controlled}",
        "cmp rdi, {seccomp}",
        "je {controlled}",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "mov r9, qword ptr [rsp + 8]",
        "syscall",
        "cmp rax, -4095",
        "jae 2f",
        "ret",
        "2:",
        "mov rdi, rax",
        "jmp {failed}",
        ".cfi_endproc",
        prctl = const libc::SYS_prctl,
        seccomp = const libc::SYS_seccomp,
        controlled = sym controlled_by_number,
        failed = sym failed,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        ".cfi_startproc",
        "cmp x0, {prctl}",
        "b.eq {controlled}",
        "cmp x0, {seccomp}",
        "b.eq {controlled}",
        "mov x8, x0",
        "mov x0, x1",
        "mov x1, x2",
        "mov x2, x3",
        "mov x3, x4",
        "mov x4, x5",
        "mov x5, x6",
        "svc 0",
        "cmn x0, 4095",
        "b.cs {failed}",
        "ret",
        ".cfi_endproc",
        prctl = const libc::SYS_prctl,
        seccomp = const libc::SYS_seccomp,
        controlled = sym controlled_by_number,
        failed = sym failed,
    );
}
