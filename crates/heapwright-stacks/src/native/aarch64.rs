//! aarch64: the registers of a frame, and where the kernel saves them.
//!
//! ```text
//!   sp -->  siginfo (128) | ucontext: flags, link, stack, mask (176) |
//!                           fault address, x0 .. x30, sp, pc, ...  words, from 176
//! ```
//!
//! A signal handler returns to the kernel's `__kernel_rt_sigreturn`. Then the stack pointer is at
//! the siginfo. Return addresses in memory may be signed. `x86_64.rs` has the same items.

use core::arch::asm;

use super::super::tables::{self, Numbers};
use super::walk::Registers;

pub(super) const NUMBERS: Numbers = tables::AARCH64;

/// The distance from the stack pointer of a signal frame to its ucontext.
pub(super) const UCONTEXT: usize = 128;
/// Places in a ucontext.
pub(super) const SAVED_PC: usize = 440;
pub(super) const SAVED_SP: usize = 432;
pub(super) const SAVED_FP: usize = 416;
pub(super) const SAVED_LINK: usize = 424;

const _: () = {
    let registers = core::mem::offset_of!(libc::ucontext_t, uc_mcontext.regs);
    assert!(SAVED_FP == registers + 29 * 8 && SAVED_LINK == registers + 30 * 8);
    assert!(SAVED_SP == core::mem::offset_of!(libc::ucontext_t, uc_mcontext.sp));
    assert!(SAVED_PC == core::mem::offset_of!(libc::ucontext_t, uc_mcontext.pc));
};

/// `mov x8, #139; svc #0`: in emulators, a signal handler returns to this code in no module.
pub(super) const SIGRETURN: Option<[u32; 2]> = Some([0xd280_1168, 0xd400_0001]);

/// Returns the registers here. The address before `pc` is in this function, as after a call.
#[inline(always)]
pub(in super::super) fn registers() -> Registers {
    let (pc, sp, fp, link);
    // SAFETY: reads four registers.
    unsafe {
        asm!(
            "mov {link}, x30",
            "mov {sp}, sp",
            "mov {fp}, x29",
            "adr {pc}, 2f",
            "2:",
            link = out(reg) link,
            sp = out(reg) sp,
            fp = out(reg) fp,
            pc = out(reg) pc,
            options(nomem, nostack, preserves_flags),
        );
    }
    Registers { pc, sp, fp, link }
}

/// Returns the address of the thread's control block: unique among living threads, and above the
/// stack that the C library made for the thread.
#[inline(always)]
pub(super) fn thread_pointer() -> usize {
    let found;
    // SAFETY: reads a register.
    unsafe {
        asm!("mrs {}, tpidr_el0", out(reg) found, options(nomem, nostack, preserves_flags));
    }
    found
}

/// Returns a return address without its signature.
#[inline(always)]
pub(super) fn bare(address: usize) -> usize {
    let bare;
    // SAFETY: `xpaclri` changes one register; older machines do nothing.
    unsafe {
        asm!(
            "hint #7",
            inlateout("x30") address => bare,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    bare
}
