//! The contents of a thread's callee-saved registers, x86-64.

use core::arch::asm;

/// The number of these registers.
pub const SAVED_REGISTERS: usize = 6;

/// Copies the callee-saved registers, whose contents belong to the callers. Returns the lowest
/// address of the stack: all other values of the callers lie above. The function is inlined, so the
/// address is in the caller's own frame, which has the registers that its prologue has pushed.
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
