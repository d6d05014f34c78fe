//! The contents of a thread's callee-saved registers, aarch64.

use core::arch::asm;

/// The number of these registers.
pub const SAVED_REGISTERS: usize = 12;

/// Copies the callee-saved registers, whose contents belong to the callers. Returns the lowest
/// address of the stack: all other values of the callers lie above. The function is inlined, so the
/// address is in the caller's own frame, which has the registers that its prologue has pushed.
#[inline(always)]
pub fn save_registers(into: &mut [usize; SAVED_REGISTERS]) -> usize {
    let top;
    // SAFETY: writes the twelve words of the array; changes no register but the output.
    unsafe {
        asm!(
            "stp x19, x20, [{into}]",
            "stp x21, x22, [{into}, 16]",
            "stp x23, x24, [{into}, 32]",
            "stp x25, x26, [{into}, 48]",
            "stp x27, x28, [{into}, 64]",
            "stp x29, x30, [{into}, 80]",
            "mov {top}, sp",
            into = in(reg) into.as_mut_ptr(),
            top = lateout(reg) top,
            options(nostack, preserves_flags),
        );
    }
    top
}
