//! `operator new` without memory: the new-handler, and `std::bad_alloc`.
//!
//! If the heap has no memory, the standard demands a loop. It fetches the new-handler, calls it,
//! and tries again; without a handler it throws `std::bad_alloc`. Both the handler and the thrower
//! may throw, and Rust built with `panic=abort` cannot be unwound through. So no Rust frame may be
//! on the stack at that moment. The operator ends in a tail call of [`new_slow`], which is assembly
//! with its unwinding written out. The assembly calls only Rust functions that cannot throw.
//!
//! ```text
//!   caller (C++)                         caller (C++)
//!   _Znwm (Rust) --tail call-->          new_slow (assembly, can be unwound)
//!                                        the new-handler (C++, may throw)
//! ```

use crate::cxx_runtime;
use core::arch::naked_asm;
use heapwright::heap::{self, NEW, NEW_ARRAY};
use libc::{c_void, size_t};

/// All of `operator new`: attempts, with the new-handler called between them. Without a handler,
/// throws `std::bad_alloc`.
///
/// The frame keeps the request in two callee-saved registers, and can be unwound at each call.
///
/// `new` and `new[]` each have a function, so the attempt knows the form. The strings are the
/// instruction before the loop, on x86-64 and on aarch64.
macro_rules! slow {
    ($( $(#[$doc:meta])* $name:ident => $from:ident, $x86_64:literal, $aarch64:literal; )*) => {
        $(
            $(#[$doc])*
            #[unsafe(naked)]
            pub(super) extern "C" fn $name(size: size_t, alignment: size_t) -> *mut c_void {
                #[cfg(target_arch = "x86_64")]
                naked_asm!(
                    ".cfi_startproc",
                    "push rbx",
                    ".cfi_def_cfa_offset 16",
                    ".cfi_offset rbx, -16",
                    "push r14",
                    ".cfi_def_cfa_offset 24",
                    ".cfi_offset r14, -24",
                    "push rax",
                    ".cfi_def_cfa_offset 32",
                    "mov rbx, rdi",
                    "mov r14, rsi",
                    $x86_64,
                    "2:",
                    "mov rdi, rbx",
                    "mov rsi, r14",
                    "call {attempt}",
                    "test rax, rax",
                    "jz 3f",
                    "pop rcx",
                    ".cfi_remember_state",
                    ".cfi_def_cfa_offset 24",
                    "pop r14",
                    ".cfi_def_cfa_offset 16",
                    "pop rbx",
                    ".cfi_def_cfa_offset 8",
                    "ret",
                    ".cfi_restore_state",
                    "3:",
                    "mov rdi, r14",
                    "call {helper}",
                    "test rax, rax",
                    "jz 4f",
                    "call rax",
                    "jmp 2b",
                    "4:",
                    "pop rcx",
                    ".cfi_def_cfa_offset 24",
                    "pop r14",
                    ".cfi_def_cfa_offset 16",
                    "pop rbx",
                    ".cfi_def_cfa_offset 8",
                    "jmp {throw}",
                    ".cfi_endproc",
                    attempt = sym attempt::<{ $from }>,
                    helper = sym helper,
                    throw = sym throw_bad_alloc,
                );
                #[cfg(target_arch = "aarch64")]
                naked_asm!(
                    ".cfi_startproc",
                    "stp x29, x30, [sp, #-32]!",
                    ".cfi_def_cfa_offset 32",
                    ".cfi_offset w29, -32",
                    ".cfi_offset w30, -24",
                    "stp x19, x20, [sp, #16]",
                    ".cfi_offset w19, -16",
                    ".cfi_offset w20, -8",
                    "mov x29, sp",
                    "mov x19, x0",
                    "mov x20, x1",
                    $aarch64,
                    "2:",
                    "mov x0, x19",
                    "mov x1, x20",
                    "bl {attempt}",
                    "cbz x0, 3f",
                    "ldp x19, x20, [sp, #16]",
                    "ldp x29, x30, [sp], #32",
                    ".cfi_remember_state",
                    ".cfi_restore w19",
                    ".cfi_restore w20",
                    ".cfi_restore w29",
                    ".cfi_restore w30",
                    ".cfi_def_cfa_offset 0",
                    "ret",
                    ".cfi_restore_state",
                    "3:",
                    "mov x0, x20",
                    "bl {helper}",
                    "cbz x0, 4f",
                    "blr x0",
                    "b 2b",
                    "4:",
                    "ldp x19, x20, [sp, #16]",
                    "ldp x29, x30, [sp], #32",
                    ".cfi_restore w19",
                    ".cfi_restore w20",
                    ".cfi_restore w29",
                    ".cfi_restore w30",
                    ".cfi_def_cfa_offset 0",
                    "b {throw}",
                    ".cfi_endproc",
                    attempt = sym attempt::<{ $from }>,
                    helper = sym helper,
                    throw = sym throw_bad_alloc,
                );
            }
        )*
    };
}

slow! {
    /// The slow path of `operator new`, plain or aligned.
    new_slow => NEW, "", "";
    /// Continues `operator new` after an attempt that failed.
    #[cfg_attr(not(heapwright_tail_calls), allow(dead_code, reason = "no attempt before"))]
    new_failed => NEW, "jmp 3f", "b 3f";
    /// `operator new[]`, in modes that tell it from `operator new`.
    new_array_slow => NEW_ARRAY, "", "";
}

/// One attempt: a block, or null. Cannot throw.
extern "C" fn attempt<const FROM: u8>(size: size_t, alignment: size_t) -> *mut c_void {
    if !alignment.is_power_of_two() {
        return core::ptr::null_mut();
    }
    heap::malloc_aligned_for::<FROM>(size, alignment).cast()
}

/// Returns the new-handler after a failed attempt. Returns null if there is none, or if the
/// alignment is invalid, so that no memory can help. Cannot throw.
#[cold]
extern "C" fn helper(alignment: size_t) -> *mut c_void {
    if !alignment.is_power_of_two() {
        return core::ptr::null_mut();
    }
    cxx_runtime::new_handler()
}

/// Throws `std::bad_alloc` into the caller: gives up its own frame and jumps to the function that
/// throws.
///
/// `prepare_bad_alloc` writes four words to the stack: that function and its arguments.
#[unsafe(naked)]
extern "C" fn throw_bad_alloc() -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        ".cfi_startproc",
        "sub rsp, 40",
        ".cfi_def_cfa_offset 48",
        "mov rdi, rsp",
        "call {prepare}",
        "mov rax, qword ptr [rsp]",
        "mov rdi, qword ptr [rsp + 8]",
        "mov rsi, qword ptr [rsp + 16]",
        "mov rdx, qword ptr [rsp + 24]",
        "add rsp, 40",
        ".cfi_def_cfa_offset 8",
        "jmp rax",
        ".cfi_endproc",
        prepare = sym cxx_runtime::prepare_bad_alloc,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        ".cfi_startproc",
        "sub sp, sp, #48",
        ".cfi_def_cfa_offset 48",
        "str x30, [sp, #32]",
        ".cfi_offset w30, -16",
        "mov x0, sp",
        "bl {prepare}",
        "ldp x16, x0, [sp]",
        "ldp x1, x2, [sp, #16]",
        "ldr x30, [sp, #32]",
        "add sp, sp, #48",
        ".cfi_restore w30",
        ".cfi_def_cfa_offset 0",
        "br x16",
        ".cfi_endproc",
        prepare = sym cxx_runtime::prepare_bad_alloc,
    );
}
