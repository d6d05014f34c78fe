//! The nothrow forms of `operator new`: null instead of an exception.
//!
//! **Catching.** The nothrow forms must swallow the exception. An unwinder calls their personality
//! routine, [`nothrow_personality`], for their frames. The routine stops every exception at the
//! frame's landing pad. It lets a forced unwinding (thread cancellation) through.
//!
//! Programs call these functions, and so do the forms with a token (`alloc_token`).

use crate::cxx_runtime;
use core::arch::naked_asm;
use libc::{c_int, c_void};

/// The bytes between the call and the landing pad: `pop rcx; ret`.
#[cfg(target_arch = "x86_64")]
const LANDING_PAD: usize = 1 + 1;

/// The bytes between the call and the landing pad: `ldp; ret`.
#[cfg(target_arch = "aarch64")]
const LANDING_PAD: usize = 4 + 4;

/// A form that calls another form, and returns null if that form throws.
///
/// The frame is one word (two on aarch64), and its first call may throw. Then
/// [`nothrow_personality`] continues at the landing pad, [`LANDING_PAD`] bytes after the call, with
/// the exception in the register of a function's result.
macro_rules! nothrow {
    ($( $(#[$doc:meta])* $from:ident => $to:literal; )*) => {
        $(
            $(#[$doc])*
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            #[unsafe(link_section = "heapwright_operators")]
            extern "C" fn $from() -> *mut c_void {
                #[cfg(target_arch = "x86_64")]
                naked_asm!(
                    ".cfi_startproc",
                    ".cfi_personality 0x1b, {personality}",
                    "push rax",
                    ".cfi_def_cfa_offset 16",
                    concat!("call qword ptr [rip + ", $to, "@GOTPCREL]"),
                    "pop rcx",
                    ".cfi_remember_state",
                    ".cfi_def_cfa_offset 8",
                    "ret",
                    ".cfi_restore_state",
                    "mov rdi, rax",
                    "call {caught}",
                    "xor eax, eax",
                    "pop rcx",
                    ".cfi_def_cfa_offset 8",
                    "ret",
                    ".cfi_endproc",
                    personality = sym nothrow_personality,
                    caught = sym cxx_runtime::swallow_exception,
                );
                #[cfg(target_arch = "aarch64")]
                naked_asm!(
                    ".cfi_startproc",
                    ".cfi_personality 0x1b, {personality}",
                    "stp x29, x30, [sp, #-16]!",
                    ".cfi_def_cfa_offset 16",
                    ".cfi_offset w29, -16",
                    ".cfi_offset w30, -8",
                    "mov x29, sp",
                    concat!("adrp x16, :got:", $to),
                    concat!("ldr x16, [x16, :got_lo12:", $to, "]"),
                    "blr x16",
                    "ldp x29, x30, [sp], #16",
                    ".cfi_remember_state",
                    ".cfi_restore w29",
                    ".cfi_restore w30",
                    ".cfi_def_cfa_offset 0",
                    "ret",
                    ".cfi_restore_state",
                    "bl {caught}",
                    "mov x0, #0",
                    "ldp x29, x30, [sp], #16",
                    ".cfi_restore w29",
                    ".cfi_restore w30",
                    ".cfi_def_cfa_offset 0",
                    "ret",
                    ".cfi_endproc",
                    personality = sym nothrow_personality,
                    caught = sym cxx_runtime::swallow_exception,
                );
            }
        )*
    };
}

nothrow! {
    /// `operator new(std::size_t, const std::nothrow_t&)`.
    _ZnwmRKSt9nothrow_t => "_Znwm";
    /// `operator new[](std::size_t, const std::nothrow_t&)`.
    _ZnamRKSt9nothrow_t => "_Znam";
    /// `operator new(std::size_t, std::align_val_t, const std::nothrow_t&)`.
    _ZnwmSt11align_val_tRKSt9nothrow_t => "_ZnwmSt11align_val_t";
    /// `operator new[](std::size_t, std::align_val_t, const std::nothrow_t&)`.
    _ZnamSt11align_val_tRKSt9nothrow_t => "_ZnamSt11align_val_t";
}

/// Tells the unwinder whether an exception stops at the frame of a nothrow form. Every exception
/// stops there, except a forced unwinding. If the unwinder's own functions cannot be found, the
/// exception continues into the caller, which is noexcept and ends the program.
///
/// # Safety
///
/// Only the unwinder calls this, with its own exception and context.
unsafe extern "C" fn nothrow_personality(
    _version: c_int,
    actions: c_int,
    _class: u64,
    exception: *mut c_void,
    context: *mut c_void,
) -> c_int {
    /// "I search for a frame that stops the exception."
    const SEARCH_PHASE: c_int = 1;
    /// "You said that you stop it: arrange for that."
    const HANDLER_FRAME: c_int = 4;
    /// "No frame may stop it."
    const FORCE_UNWIND: c_int = 8;
    /// "Not here; look further."
    const CONTINUE_UNWIND: c_int = 8;
    /// "It stops here."
    const HANDLER_FOUND: c_int = 6;
    /// "Continue the program in the context I changed."
    const INSTALL_CONTEXT: c_int = 7;
    /// The register of a function's result, which the landing pad reads: number 0 is rax or x0.
    const RESULT_REGISTER: c_int = 0;

    let Some(unwinder) = cxx_runtime::unwinder() else { return CONTINUE_UNWIND };
    if actions & FORCE_UNWIND != 0 {
        return CONTINUE_UNWIND;
    }
    if actions & SEARCH_PHASE != 0 {
        return HANDLER_FOUND;
    }
    if actions & HANDLER_FRAME == 0 {
        return CONTINUE_UNWIND;
    }
    // SAFETY: the context is the unwinder's.
    let call_returns_to = unsafe { (unwinder.ip)(context) };
    // SAFETY: the context is the unwinder's.
    unsafe { (unwinder.set_register)(context, RESULT_REGISTER, exception.addr()) };
    // SAFETY: the context is the unwinder's.
    unsafe { (unwinder.set_ip)(context, call_returns_to + LANDING_PAD) };
    INSTALL_CONTEXT
}
