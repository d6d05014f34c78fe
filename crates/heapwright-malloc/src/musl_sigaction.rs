//! `sigaction` by the system call, for programs that musl is linked into.
//!
//! In such a program `sigaction` is ours, and no exported name leads to musl's. A program that
//! loads musl does not call this function, because `dlsym` finds musl's.
//!
//! ```text
//!   the kernel's struct   | handler | flags | restorer | mask |
//! ```
//!
//! musl also notes which signals ever had a handler, and `posix_spawn` resets these in the child
//! before the exec. We keep no such note: a signal before the exec reaches the program's handler.
//! (The kernel resets the program's present handlers at exec.)

use crate::errno;
use core::mem::MaybeUninit;
use core::ptr;
use libc::{c_int, c_long, c_ulong};

#[repr(C)]
struct KernelAction {
    handler: usize,
    flags: c_ulong,
    restorer: usize,
    mask: u64,
}

/// With this flag the handler returns to `restorer`. On aarch64 we clear the flag: the handler then
/// returns to the kernel's own code (the vDSO).
const SA_RESTORER: c_ulong = 0x0400_0000;

/// Ends a handler. Unwinders and debuggers recognise a signal's frame by these bytes.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn restorer() {
    core::arch::naked_asm!(".byte 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05");
}

/// # Safety
///
/// `new` is null or can be read, `old` is null or can be written.
pub(crate) unsafe extern "C" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // Three signals belong to the C library, as with musl.
    if !(1..=64).contains(&signal) || (32..35).contains(&signal) {
        errno::set(libc::EINVAL);
        return -1;
    }
    // SAFETY: null, or a struct that can be read, as the caller promises.
    let new = unsafe { new.as_ref() }.map(to_kernel);
    let mut before = MaybeUninit::<KernelAction>::zeroed();
    let (new, size): (*const KernelAction, c_long) =
        (new.as_ref().map_or(ptr::null(), |new| new), 8);
    // SAFETY: the kernel reads `new`, if there is one, and writes `before`.
    let done =
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, before.as_mut_ptr(), size) };
    if done != 0 {
        return -1;
    }
    // SAFETY: all zeros is a valid value, and so is the call's result.
    let before = unsafe { before.assume_init() };
    // SAFETY: null, or a struct that can be written, as the caller promises.
    if let Some(old) = unsafe { old.as_mut() } {
        from_kernel(&before, old);
    }
    0
}

fn to_kernel(action: &libc::sigaction) -> KernelAction {
    let flags = c_ulong::from(action.sa_flags.cast_unsigned());
    // SAFETY: a signal set consists of words, at least one.
    let mask = unsafe { (&raw const action.sa_mask).cast::<u64>().read() };
    #[cfg(target_arch = "x86_64")]
    let (flags, restorer) = (flags | SA_RESTORER, restorer as *const () as usize);
    #[cfg(not(target_arch = "x86_64"))]
    let (flags, restorer) = (flags & !SA_RESTORER, 0);
    KernelAction { handler: action.sa_sigaction, flags, restorer, mask }
}

fn from_kernel(action: &KernelAction, to: &mut libc::sigaction) {
    to.sa_sigaction = action.handler;
    to.sa_flags = ((action.flags & !SA_RESTORER) as u32).cast_signed();
    // SAFETY: a signal set consists of words, at least one.
    unsafe { (&raw mut to.sa_mask).cast::<u64>().write(action.mask) };
}
