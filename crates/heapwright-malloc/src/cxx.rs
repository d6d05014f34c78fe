//! C++'s operators new and delete, in every form.
//!
//! ```text
//!   forms that do the work                       forms that forward, as the standard says
//!   ------------------------------------------   ----------------------------------------
//!   new(n)              _Znwm                     new[](n)              -> new(n)
//!   new(n, align)       _ZnwmSt11align_val_t      new[](n, align)       -> new(n, align)
//!   delete(p)           _ZdlPv                    delete[](p)           -> delete(p)
//!   delete(p, n)        _ZdlPvm (see there)       delete[](p, n)        -> delete[](p)
//!   delete(p, align)    _ZdlPvSt11align_val_t     ... (the tables below)
//!   new(n, nothrow)     try { new(n) } catch (...) { return nullptr; }, and its kin
//! ```
//!
//! **Forwarding.** A program may replace some of the forms and rely on the
//! others to call its own: programs that count their allocations replace
//! `new(n)` and `delete(p)` alone, and the compiler calls `delete(p, n)`. So
//! each forwarding form is one jump through the symbol table, which lands in
//! the program's operator if there is one and in ours otherwise.
//!
//! **Failure.** Where the heap has no memory, the standard wants a loop: fetch
//! the new-handler; none: throw `std::bad_alloc`; else call it, and try again.
//! Both the handler and the thrower may throw, and Rust built with
//! `panic=abort` cannot be unwound through. So no Rust frame is on the stack
//! then: the operator ends in a tail call of [`new_slow`], which is assembly
//! with its unwinding written out. It calls Rust only for what cannot throw.
//! (A test throws through it, and another reads the disassembly to see that the
//! operator *jumps* there.)
//!
//! ```text
//!   caller (C++)                         caller (C++)
//!   _Znwm (Rust) --tail call-->          new_slow (assembly, can be unwound)
//!                                        the new-handler (C++, may throw)
//! ```
//!
//! **Catching.** The nothrow forms must swallow what the handler threw. They
//! have a personality routine of their own, the function an unwinder asks about
//! a frame: [`nothrow_personality`]. It stops every exception at the frame's
//! landing pad, except a forced unwinding (thread cancellation), which nobody
//! may stop.
//!
//! **Invariant.** The library is not linked with a C++ runtime. What is needed
//! of one is looked up by `cxx_runtime` when it is needed.

use crate::cxx_runtime;
use crate::weak::bound;
use core::arch::naked_asm;
use heapwright::heap;
use libc::{c_int, c_void, size_t};

/// `operator new(std::size_t)`.
#[cfg(heapwright_tail_calls)]
#[unsafe(no_mangle)]
extern "C" fn _Znwm(size: size_t) -> *mut c_void {
    let block = heap::malloc_fast(size);
    if block.is_null() {
        return new_slow(size, 1);
    }
    block.cast()
}

/// `operator new(std::size_t)` where the compiler does not make tail calls: the
/// slow way always.
#[cfg(not(heapwright_tail_calls))]
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn _Znwm() {
    #[cfg(target_arch = "x86_64")]
    naked_asm!("mov esi, 1", "jmp {slow}", slow = sym new_slow);
    #[cfg(target_arch = "aarch64")]
    naked_asm!("mov x1, #1", "b {slow}", slow = sym new_slow);
}

/// `operator new(std::size_t, std::align_val_t)`.
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn _ZnwmSt11align_val_t() {
    #[cfg(target_arch = "x86_64")]
    naked_asm!("jmp {slow}", slow = sym new_slow);
    #[cfg(target_arch = "aarch64")]
    naked_asm!("b {slow}", slow = sym new_slow);
}

/// `operator delete(void*)`.
///
/// Alone in a section, whose beginning the linker names: so
/// [`notice_replacements`] knows where this function is, although its own name
/// may lead to another.
///
/// # Safety
///
/// `block` is null or a live block of this process.
#[unsafe(no_mangle)]
#[unsafe(link_section = "heapwright_delete")]
unsafe extern "C" fn _ZdlPv(block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { heap::free(block.cast()) };
}

/// `operator delete(void*, std::align_val_t)`.
///
/// # Safety
///
/// `block` is null or a live block of this process.
#[unsafe(no_mangle)]
unsafe extern "C" fn _ZdlPvSt11align_val_t(block: *mut c_void, _alignment: size_t) {
    // SAFETY: as the caller promises.
    unsafe { heap::free(block.cast()) };
}

/// `operator delete(void*, std::size_t)`: the form that most programs call.
///
/// A forwarding form like those below, but where [`notice_replacements`] saw
/// that it would forward to us, the way is spared.
///
/// # Safety
///
/// `block` is null or a live block of this process.
#[unsafe(no_mangle)]
unsafe extern "C" fn _ZdlPvm(block: *mut c_void, _size: size_t) {
    // SAFETY: as the caller promises.
    if unsafe { !heap::free_sized_fast(block.cast()) } {
        delete(block);
    }
}

/// Looks whether the program has an `operator delete(void*)` of its own; if so,
/// the sized form forwards every block to it. Called by the constructor.
pub(crate) fn notice_replacements() {
    let ours: *mut c_void;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: computes an address.
    unsafe {
        core::arch::asm!(
            ".hidden __start_heapwright_delete",
            "lea {}, [rip + __start_heapwright_delete]",
            out(reg) ours,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: computes an address.
    unsafe {
        core::arch::asm!(
            ".hidden __start_heapwright_delete",
            "adrp {0}, __start_heapwright_delete",
            "add {0}, {0}, :lo12:__start_heapwright_delete",
            out(reg) ours,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    if bound!("", "_ZdlPv") != ours {
        heap::forward_sized_frees();
    }
}

/// A form that calls another with the leading arguments it was given: one jump
/// through the global offset table, where the program's own operator is found
/// if it has one.
macro_rules! forwarding {
    ($( $(#[$doc:meta])* $from:ident => $to:literal; )*) => {
        $(
            $(#[$doc])*
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            extern "C" fn $from() {
                #[cfg(target_arch = "x86_64")]
                naked_asm!(concat!("jmp qword ptr [rip + ", $to, "@GOTPCREL]"));
                #[cfg(target_arch = "aarch64")]
                naked_asm!(
                    concat!("adrp x16, :got:", $to),
                    concat!("ldr x16, [x16, :got_lo12:", $to, "]"),
                    "br x16",
                );
            }
        )*
    };
}

forwarding! {
    /// `operator new[](std::size_t)`.
    _Znam => "_Znwm";
    /// `operator new[](std::size_t, std::align_val_t)`.
    _ZnamSt11align_val_t => "_ZnwmSt11align_val_t";
    /// `operator delete[](void*)`.
    _ZdaPv => "_ZdlPv";
    /// `operator delete[](void*, std::size_t)`.
    _ZdaPvm => "_ZdaPv";
    /// `operator delete(void*, const std::nothrow_t&)`.
    _ZdlPvRKSt9nothrow_t => "_ZdlPv";
    /// `operator delete[](void*, const std::nothrow_t&)`.
    _ZdaPvRKSt9nothrow_t => "_ZdaPv";
    /// `operator delete[](void*, std::align_val_t)`.
    _ZdaPvSt11align_val_t => "_ZdlPvSt11align_val_t";
    /// `operator delete(void*, std::align_val_t, const std::nothrow_t&)`.
    _ZdlPvSt11align_val_tRKSt9nothrow_t => "_ZdlPvSt11align_val_t";
    /// `operator delete[](void*, std::align_val_t, const std::nothrow_t&)`.
    _ZdaPvSt11align_val_tRKSt9nothrow_t => "_ZdaPvSt11align_val_t";
}

/// The program's `operator delete(void*)`, or ours.
#[unsafe(naked)]
extern "C" fn delete(block: *mut c_void) {
    #[cfg(target_arch = "x86_64")]
    naked_asm!("jmp qword ptr [rip + _ZdlPv@GOTPCREL]");
    #[cfg(target_arch = "aarch64")]
    naked_asm!("adrp x16, :got:_ZdlPv", "ldr x16, [x16, :got_lo12:_ZdlPv]", "br x16");
}

/// A form whose arguments must change places before it forwards: the size is in
/// the second register, and the alignment in the third.
macro_rules! forwarding_sized_aligned {
    ($( $(#[$doc:meta])* $from:ident => $to:literal; )*) => {
        $(
            $(#[$doc])*
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            extern "C" fn $from() {
                #[cfg(target_arch = "x86_64")]
                naked_asm!(
                    "mov rsi, rdx",
                    concat!("jmp qword ptr [rip + ", $to, "@GOTPCREL]"),
                );
                #[cfg(target_arch = "aarch64")]
                naked_asm!(
                    "mov x1, x2",
                    concat!("adrp x16, :got:", $to),
                    concat!("ldr x16, [x16, :got_lo12:", $to, "]"),
                    "br x16",
                );
            }
        )*
    };
}

forwarding_sized_aligned! {
    /// `operator delete(void*, std::size_t, std::align_val_t)`.
    _ZdlPvmSt11align_val_t => "_ZdlPvSt11align_val_t";
    /// `operator delete[](void*, std::size_t, std::align_val_t)`.
    _ZdaPvmSt11align_val_t => "_ZdaPvSt11align_val_t";
}

/// How many bytes two instructions take that end a nothrow form: `pop rcx; ret`.
#[cfg(target_arch = "x86_64")]
const LANDING_PAD: usize = 1 + 1;

/// How many bytes two instructions take that end a nothrow form: `ldp; ret`.
#[cfg(target_arch = "aarch64")]
const LANDING_PAD: usize = 4 + 4;

/// A form that calls another and gives null where that one throws.
///
/// The frame is one word (two on aarch64), and its first call may throw. When it
/// does, [`nothrow_personality`] continues at the landing pad, with the exception
/// in the register of a function's result. The landing pad is where the ordinary
/// way ends: [`LANDING_PAD`] bytes after the call.
macro_rules! nothrow {
    ($( $(#[$doc:meta])* $from:ident => $to:literal; )*) => {
        $(
            $(#[$doc])*
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
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

/// All of `operator new`: an attempt; where it fails, the new-handler and another
/// attempt, for ever; without a handler, `std::bad_alloc`.
///
/// The frame keeps the request in two registers that the callee saves, and can be
/// unwound at each call.
#[unsafe(naked)]
extern "C" fn new_slow(size: size_t, alignment: size_t) -> *mut c_void {
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
        attempt = sym attempt,
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
        attempt = sym attempt,
        helper = sym helper,
        throw = sym throw_bad_alloc,
    );
}

/// One attempt: a block, or null. Cannot throw.
extern "C" fn attempt(size: size_t, alignment: size_t) -> *mut c_void {
    if !alignment.is_power_of_two() {
        return core::ptr::null_mut();
    }
    heap::malloc_aligned(size, alignment).cast()
}

/// Who may help after a failed attempt: the new-handler, or null where there is
/// none, or where the alignment is none and no memory can help. Cannot throw.
#[cold]
extern "C" fn helper(alignment: size_t) -> *mut c_void {
    if !alignment.is_power_of_two() {
        return core::ptr::null_mut();
    }
    cxx_runtime::new_handler()
}

/// Throws `std::bad_alloc` into the caller: asks how that is done in this
/// process, gives up its own frame and jumps there.
///
/// The answer is four words on the stack: a function and its arguments.
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

/// The unwinder's question about the frame of a nothrow form: does this
/// exception stop here?
///
/// The answer is yes for all but forced unwinding; where the unwinder's own
/// functions cannot be found, no, and the exception goes on into the caller,
/// which is noexcept and ends the program.
///
/// # Safety
///
/// Called by the unwinder, with its own exception and context.
unsafe extern "C" fn nothrow_personality(
    _version: c_int,
    actions: c_int,
    _class: u64,
    exception: *mut c_void,
    context: *mut c_void,
) -> c_int {
    /// "I search whether anybody stops it."
    const SEARCH_PHASE: c_int = 1;
    /// "You said you would: arrange for it."
    const HANDLER_FRAME: c_int = 4;
    /// "Nobody may stop it."
    const FORCE_UNWIND: c_int = 8;
    /// "Not here; look further."
    const CONTINUE_UNWIND: c_int = 8;
    /// "It stops here."
    const HANDLER_FOUND: c_int = 6;
    /// "Continue the program in the context I changed."
    const INSTALL_CONTEXT: c_int = 7;
    /// The register of a function's result, where the landing pad looks. Both
    /// rax and x0 are number 0 of their architectures.
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
    // SAFETY: the unwinder gave us the context.
    let call_returns_to = unsafe { (unwinder.ip)(context) };
    // SAFETY: the unwinder gave us the context.
    unsafe { (unwinder.set_register)(context, RESULT_REGISTER, exception.addr()) };
    // SAFETY: the unwinder gave us the context.
    unsafe { (unwinder.set_ip)(context, call_returns_to + LANDING_PAD) };
    INSTALL_CONTEXT
}
