//! x86-64: the registers of a frame, and where the kernel saves them.
//!
//! ```text
//!   sp -->  ucontext: flags, link, stack (40 bytes) | r8 .. r15, rdi, rsi, rbp, rbx, rdx,
//!           rax, rcx, rsp, rip, ...                    words, from 40
//! ```
//!
//! A signal handler returns to the C library's `__restore_rt`. Then the stack pointer is at the
//! ucontext. `aarch64.rs` has the same items.

use core::arch::asm;

use super::super::tables::{self, Numbers};
use super::walk::Registers;

pub(super) const NUMBERS: Numbers = tables::X86_64;

/// The distance from the stack pointer of a signal frame to its ucontext.
pub(super) const UCONTEXT: usize = 0;
/// Places in a ucontext; there is no link register.
pub(super) const SAVED_PC: usize = 168;
pub(super) const SAVED_SP: usize = 160;
pub(super) const SAVED_FP: usize = 120;
pub(super) const SAVED_LINK: usize = SAVED_PC;

const _: () = {
    let registers = core::mem::offset_of!(libc::ucontext_t, uc_mcontext.gregs);
    assert!(SAVED_PC == registers + libc::REG_RIP as usize * 8);
    assert!(SAVED_SP == registers + libc::REG_RSP as usize * 8);
    assert!(SAVED_FP == registers + libc::REG_RBP as usize * 8);
};

/// No code is needed: a signal handler returns to the C library, whose tables describe that code.
pub(super) const SIGRETURN: Option<[u32; 2]> = None;

/// Returns the registers here. The address before `pc` is in this function, as after a call.
#[inline(always)]
pub(in super::super) fn registers() -> Registers {
    let (pc, sp, fp);
    // SAFETY: reads three registers.
    unsafe {
        asm!(
            "mov {sp}, rsp",
            "mov {fp}, rbp",
            "lea {pc}, [rip]",
            sp = out(reg) sp,
            fp = out(reg) fp,
            pc = out(reg) pc,
            options(nomem, nostack, preserves_flags),
        );
    }
    Registers { pc, sp, fp, link: 0 }
}

/// Returns the address of the thread's control block: unique among living threads, and above the
/// stack that the C library made for the thread.
#[inline(always)]
pub(super) fn thread_pointer() -> usize {
    let found;
    // SAFETY: reads the word in which the control block holds its own address.
    unsafe {
        asm!(
            "mov {}, qword ptr fs:[0]",
            out(reg) found,
            options(nostack, preserves_flags, readonly),
        );
    }
    found
}

/// Returns a return address without its signature. x86-64 has no signatures.
#[inline(always)]
pub(super) fn bare(address: usize) -> usize {
    address
}
