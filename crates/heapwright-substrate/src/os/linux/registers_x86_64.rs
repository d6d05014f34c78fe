//! What a thread has in registers that a callee must keep, x86-64.

use core::arch::asm;

/// How many there are.
pub const SAVED_REGISTERS: usize = 6;

/// Copies the registers whose contents belong to the callers, and says where the stack
/// ends: all else that the callers keep is above.
///
/// Inlined, so that both hold for as long as the caller's own frame is there: what its
/// prologue has pushed lies in that.
#[inline(always)]
pub fn save_registers(into: &mut [usize; SAVED_REGISTERS]) -> usize {
    let top;
    // SAFETY: writes the six words of the array; changes no register but the output.
    unsafe {
        asm!(
            "mov [{into}], rbx",
            "mov [{into} + 8], rbp",
            "mov [{into} + 16], r12",
            "mov [{into} + 24], r13",
            "mov [{into} + 32], r14",
            "mov [{into} + 40], r15",
            "mov {top}, rsp",
            into = in(reg) into.as_mut_ptr(),
            top = lateout(reg) top,
            options(nostack, preserves_flags),
        );
    }
    top
}
