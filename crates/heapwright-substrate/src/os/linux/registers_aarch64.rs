//! What a thread has in registers that a callee must keep, aarch64.

use core::arch::asm;

/// How many there are.
pub const SAVED_REGISTERS: usize = 12;

/// Copies the registers whose contents belong to the callers, and says where the stack
/// ends: all else that the callers keep is above.
///
/// Inlined, so that both hold for as long as the caller's own frame is there: what its
/// prologue has pushed lies in that.
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
