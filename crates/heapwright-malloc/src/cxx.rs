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
//! each forwarding form is one jump, which lands in the program's operator if
//! there is one and in ours otherwise: through the symbol table, or through a
//! table of our own, [`FORWARD`], which the dynamic linker fills in like the other.
//!
//! **Telling apart.** A debug heap must know `new[]` from `new`, and the sizes and
//! alignments that `delete` is given. The forms that do the work report the alignment: each
//! falls through to a door of its own (`heap::NEW`). But what came by a forwarding
//! form has lost where it came from. So in debug mode the constructor looks at each
//! word of [`FORWARD`]: where it leads to our own operator, and that one's way on
//! leads to ours too, it is replaced by a function that does the work at once and
//! reports everything. Where the program has put itself in the way, the word stays:
//! the program's operator is called, as the standard says, and what it then calls
//! is reported as what it is.
//!
//! ```text
//!                       fast mode              debug mode
//!   delete[](p, n)  ->  delete[](p)        ->  free_sized_from::<NEW_ARRAY>(p, n)
//!   delete[](p)     ->  delete(p)          ->  free_from::<NEW_ARRAY>(p)
//!   new[](n)        ->  new(n)             ->  new_array_slow(n, 1)
//!   nothrow forms   ->  what they forward to, which reports (they know no more)
//! ```
//!
//! The price in fast mode is none: a jump through one word of memory instead of
//! another. Nor is it a weaker place: the table lies in `.data.rel.ro`, which the
//! dynamic linker makes read-only before any code runs, as the symbol table is. In
//! debug mode alone the constructor makes its page writable again, and leaves it
//! so: a debug run looks for wild writes, and this process is not one to attack.
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
//! landing pad, except a forced unwinding (thread cancellation), which nothing
//! may stop.
//!
//! **Invariant.** The library is not linked with a C++ runtime. What is needed
//! of one is looked up by `cxx_runtime` when it is needed.

use crate::cxx_runtime;
use crate::malloc_family::page_size;
use core::arch::naked_asm;
use core::sync::atomic::{AtomicPtr, Ordering};
use heapwright::heap::{self, NEW, NEW_ARRAY};
use libc::{c_int, c_void, size_t};

/// `operator new(std::size_t)`.
///
/// All operators are in one section, whose ends the linker names: so
/// [`is_ours`] knows them, although their own names may lead to others.
#[cfg(heapwright_tail_calls)]
#[unsafe(no_mangle)]
#[unsafe(link_section = "heapwright_operators")]
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
#[unsafe(link_section = "heapwright_operators")]
extern "C" fn _Znwm() {
    #[cfg(target_arch = "x86_64")]
    naked_asm!("mov esi, 1", "jmp {slow}", slow = sym new_slow);
    #[cfg(target_arch = "aarch64")]
    naked_asm!("mov x1, #1", "b {slow}", slow = sym new_slow);
}

/// `operator new(std::size_t, std::align_val_t)`.
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[unsafe(link_section = "heapwright_operators")]
extern "C" fn _ZnwmSt11align_val_t() {
    #[cfg(target_arch = "x86_64")]
    naked_asm!("jmp {slow}", slow = sym new_slow);
    #[cfg(target_arch = "aarch64")]
    naked_asm!("b {slow}", slow = sym new_slow);
}

/// `operator delete(void*)`.
///
/// # Safety
///
/// `block` is null or a live block of this process.
#[unsafe(no_mangle)]
#[unsafe(link_section = "heapwright_operators")]
unsafe extern "C" fn _ZdlPv(block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { heap::free_from::<NEW>(block.cast()) };
}

/// `operator delete(void*, std::align_val_t)`.
///
/// # Safety
///
/// `block` is null or a live block of this process.
#[unsafe(no_mangle)]
#[unsafe(link_section = "heapwright_operators")]
unsafe extern "C" fn _ZdlPvSt11align_val_t(block: *mut c_void, alignment: size_t) {
    // SAFETY: as the caller promises.
    unsafe { heap::free_aligned_from::<NEW>(block.cast(), alignment) };
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
#[unsafe(link_section = "heapwright_operators")]
unsafe extern "C" fn _ZdlPvm(block: *mut c_void, size: size_t) {
    // SAFETY: as the caller promises.
    if unsafe { !heap::free_sized_fast(block.cast(), size) } {
        delete_sized(block, size);
    }
}

/// What the sized form forwards to, with the size behind it.
#[unsafe(naked)]
extern "C" fn delete_sized(block: *mut c_void, size: size_t) {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "jmp qword ptr [rip + {table} + {at}]",
        table = sym FORWARD,
        at = const DELETE_SIZED * 8,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        "adrp x16, {table} + {at}",
        "ldr x16, [x16, :lo12:{table} + {at}]",
        "br x16",
        table = sym FORWARD,
        at = const DELETE_SIZED * 8,
    );
}

/// Where the forwarding forms forward to that lose something on the way.
#[repr(C, align(64))]
struct Forward([AtomicPtr<c_void>; FORWARDING]);

/// How many there are, and the place of each.
const FORWARDING: usize = 8;
const NEW_ARRAY_PLAIN: usize = 0;
const NEW_ARRAY_ALIGNED: usize = 1;
const DELETE_SIZED: usize = 2;
const DELETE_SIZED_ALIGNED: usize = 3;
const DELETE_ARRAY: usize = 4;
const DELETE_ARRAY_SIZED: usize = 5;
const DELETE_ARRAY_ALIGNED: usize = 6;
const DELETE_ARRAY_SIZED_ALIGNED: usize = 7;

/// Filled in by the linker, or the dynamic linker, which put the program's own
/// operators there if it has any. Read by the assembly of the forms.
#[unsafe(link_section = ".data.rel.ro.heapwright_forward")]
static FORWARD: Forward = Forward([
    AtomicPtr::new(_Znwm as *mut c_void),
    AtomicPtr::new(_ZnwmSt11align_val_t as *mut c_void),
    AtomicPtr::new(_ZdlPv as *mut c_void),
    AtomicPtr::new(_ZdlPvSt11align_val_t as *mut c_void),
    AtomicPtr::new(_ZdlPv as *mut c_void),
    AtomicPtr::new(_ZdaPv as *mut c_void),
    AtomicPtr::new(_ZdlPvSt11align_val_t as *mut c_void),
    AtomicPtr::new(_ZdaPvSt11align_val_t as *mut c_void),
]);

/// Of each form: what does its work at once and reports which form it was, and the form that
/// its target is, if that is in the table, too.
fn reporting(form: usize) -> (*mut c_void, Option<usize>) {
    match form {
        NEW_ARRAY_PLAIN => (new_array as *mut c_void, None),
        NEW_ARRAY_ALIGNED => (new_array_slow as *mut c_void, None),
        DELETE_SIZED => (give_sized as *mut c_void, None),
        DELETE_SIZED_ALIGNED => (give_sized_aligned::<NEW> as *mut c_void, None),
        DELETE_ARRAY => (give_array as *mut c_void, None),
        DELETE_ARRAY_SIZED => (give_array_sized as *mut c_void, Some(DELETE_ARRAY)),
        DELETE_ARRAY_ALIGNED => (give_array_aligned as *mut c_void, None),
        _ => (give_sized_aligned::<NEW_ARRAY> as *mut c_void, Some(DELETE_ARRAY_ALIGNED)),
    }
}

/// Whether an address is one of this file's operators.
fn is_ours(operator: *mut c_void) -> bool {
    let (start, stop): (*mut c_void, *mut c_void);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: computes two addresses.
    unsafe {
        core::arch::asm!(
            ".hidden __start_heapwright_operators",
            ".hidden __stop_heapwright_operators",
            "lea {}, [rip + __start_heapwright_operators]",
            "lea {}, [rip + __stop_heapwright_operators]",
            out(reg) start,
            out(reg) stop,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: computes two addresses.
    unsafe {
        core::arch::asm!(
            ".hidden __start_heapwright_operators",
            ".hidden __stop_heapwright_operators",
            "adrp {0}, __start_heapwright_operators",
            "add {0}, {0}, :lo12:__start_heapwright_operators",
            "adrp {1}, __stop_heapwright_operators",
            "add {1}, {1}, :lo12:__stop_heapwright_operators",
            out(reg) start,
            out(reg) stop,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    (start.addr()..stop.addr()).contains(&operator.addr())
}

/// Whether what a form forwards to ends in an operator of ours, and no other is
/// on the way.
fn leads_to_us(form: usize) -> bool {
    let (_, next) = reporting(form);
    is_ours(FORWARD.0[form].load(Ordering::Relaxed)) && next.is_none_or(leads_to_us)
}

/// Looks whether the program has an `operator delete(void*)` of its own; if so,
/// the sized form forwards every block to it. Called by the constructor.
pub(crate) fn notice_replacements() {
    if !leads_to_us(DELETE_SIZED) {
        // SAFETY: constructors run one at a time, before `main` and before `dlopen` returns. A
        // thread that one of another library's has started would find the old tag or the new.
        unsafe { heap::forward_sized_frees() };
    }
}

/// Makes the forwarding forms report to the heap which one was called, where the program
/// has not replaced what they forward to. Called by the constructor in debug mode.
#[cold]
pub(crate) fn distinguish_forms() {
    // Decided before anything changes: what leads to us now is the linker's word.
    let mut ours = [false; FORWARDING];
    for (form, ours) in ours.iter_mut().enumerate() {
        *ours = leads_to_us(form);
    }
    let page = page_size();
    let start = FORWARD.0.as_ptr().addr() & !(page - 1);
    // The table is aligned to its size, so it is in one page.
    const { assert!(size_of::<Forward>() == align_of::<Forward>()) };
    let whole = FORWARD.0.as_ptr().with_addr(start).cast_mut().cast();
    // SAFETY: a page of ours becomes writable; its contents stay.
    if unsafe { libc::mprotect(whole, page, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
        // Then new[] is reported as new, and delete[] as delete, which agree.
        return;
    }
    for (form, word) in FORWARD.0.iter().enumerate() {
        if ours[form] {
            word.store(reporting(form).0, Ordering::Relaxed);
        }
    }
}

/// `new[](n)`, reporting.
#[unsafe(naked)]
extern "C" fn new_array() {
    #[cfg(target_arch = "x86_64")]
    naked_asm!("mov esi, 1", "jmp {slow}", slow = sym new_array_slow);
    #[cfg(target_arch = "aarch64")]
    naked_asm!("mov x1, #1", "b {slow}", slow = sym new_array_slow);
}

/// `delete(p, n)`, reporting.
///
/// # Safety
///
/// As the operator: so for those that follow.
unsafe extern "C" fn give_sized(block: *mut c_void, size: size_t) {
    // SAFETY: as the caller promises.
    unsafe { heap::free_sized_from::<NEW>(block.cast(), size) };
}

/// `delete[](p)`, reporting.
unsafe extern "C" fn give_array(block: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { heap::free_from::<NEW_ARRAY>(block.cast()) };
}

/// `delete[](p, n)`, reporting.
unsafe extern "C" fn give_array_sized(block: *mut c_void, size: size_t) {
    // SAFETY: as the caller promises.
    unsafe { heap::free_sized_from::<NEW_ARRAY>(block.cast(), size) };
}

/// `delete[](p, align)`, reporting.
unsafe extern "C" fn give_array_aligned(block: *mut c_void, alignment: size_t) {
    // SAFETY: as the caller promises.
    unsafe { heap::free_aligned_from::<NEW_ARRAY>(block.cast(), alignment) };
}

/// `delete(p, n, align)` and `delete[](p, n, align)`, reporting. The arguments have
/// changed places already.
unsafe extern "C" fn give_sized_aligned<const FROM: u8>(
    block: *mut c_void,
    alignment: size_t,
    size: size_t,
) {
    // SAFETY: as the caller promises.
    unsafe { heap::free_sized_aligned_from::<FROM>(block.cast(), size, alignment) };
}

/// A form that calls another with the leading arguments it was given, and reports no
/// more than that one: one jump through the global offset table, where the
/// program's own operator is found if it has one.
macro_rules! forwarding {
    ($( $(#[$doc:meta])* $from:ident => $to:literal; )*) => {
        $(
            $(#[$doc])*
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            #[unsafe(link_section = "heapwright_operators")]
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
    /// `operator delete(void*, const std::nothrow_t&)`.
    _ZdlPvRKSt9nothrow_t => "_ZdlPv";
    /// `operator delete[](void*, const std::nothrow_t&)`.
    _ZdaPvRKSt9nothrow_t => "_ZdaPv";
    /// `operator delete(void*, std::align_val_t, const std::nothrow_t&)`.
    _ZdlPvSt11align_val_tRKSt9nothrow_t => "_ZdlPvSt11align_val_t";
    /// `operator delete[](void*, std::align_val_t, const std::nothrow_t&)`.
    _ZdaPvSt11align_val_tRKSt9nothrow_t => "_ZdaPvSt11align_val_t";
}

/// A form that calls another, which cannot distinguish it from its own callers: one jump
/// through its place in [`FORWARD`]. The instructions in brackets come before it,
/// for x86-64 and for aarch64.
macro_rules! forwarding_apart {
    ($( $(#[$doc:meta])* $from:ident => $place:ident [$($x86:literal),*] [$($arm:literal),*]; )*) => {
        $(
            $(#[$doc])*
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            #[unsafe(link_section = "heapwright_operators")]
            extern "C" fn $from() {
                #[cfg(target_arch = "x86_64")]
                naked_asm!(
                    $($x86,)*
                    "jmp qword ptr [rip + {table} + {at}]",
                    table = sym FORWARD,
                    at = const $place * 8,
                );
                #[cfg(target_arch = "aarch64")]
                naked_asm!(
                    $($arm,)*
                    "adrp x16, {table} + {at}",
                    "ldr x16, [x16, :lo12:{table} + {at}]",
                    "br x16",
                    table = sym FORWARD,
                    at = const $place * 8,
                );
            }
        )*
    };
}

// Where the alignment is the third argument it must become the second; the size
// goes where it was, and only a reporting function looks at it.
forwarding_apart! {
    /// `operator new[](std::size_t)`.
    _Znam => NEW_ARRAY_PLAIN [] [];
    /// `operator new[](std::size_t, std::align_val_t)`.
    _ZnamSt11align_val_t => NEW_ARRAY_ALIGNED [] [];
    /// `operator delete[](void*)`.
    _ZdaPv => DELETE_ARRAY [] [];
    /// `operator delete[](void*, std::size_t)`.
    _ZdaPvm => DELETE_ARRAY_SIZED [] [];
    /// `operator delete[](void*, std::align_val_t)`.
    _ZdaPvSt11align_val_t => DELETE_ARRAY_ALIGNED [] [];
    /// `operator delete(void*, std::size_t, std::align_val_t)`.
    _ZdlPvmSt11align_val_t => DELETE_SIZED_ALIGNED
        ["xchg rsi, rdx"] ["mov x16, x1", "mov x1, x2", "mov x2, x16"];
    /// `operator delete[](void*, std::size_t, std::align_val_t)`.
    _ZdaPvmSt11align_val_t => DELETE_ARRAY_SIZED_ALIGNED
        ["xchg rsi, rdx"] ["mov x16, x1", "mov x1, x2", "mov x2, x16"];
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

/// All of `operator new`: an attempt; where it fails, the new-handler and another
/// attempt, for ever; without a handler, `std::bad_alloc`.
///
/// The frame keeps the request in two registers that the callee saves, and can be
/// unwound at each call.
///
/// One for each array-ness, so that the attempt knows which it is.
macro_rules! slow {
    ($( $(#[$doc:meta])* $name:ident => $from:ident; )*) => {
        $(
            $(#[$doc])*
            #[unsafe(naked)]
            extern "C" fn $name(size: size_t, alignment: size_t) -> *mut c_void {
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
    /// `operator new`, when the fast path was not enough; and all of the aligned form.
    new_slow => NEW;
    /// `operator new[]`, where it is distinguished.
    new_array_slow => NEW_ARRAY;
}

/// One attempt: a block, or null. Cannot throw.
extern "C" fn attempt<const FROM: u8>(size: size_t, alignment: size_t) -> *mut c_void {
    if !alignment.is_power_of_two() {
        return core::ptr::null_mut();
    }
    heap::malloc_aligned_for::<FROM>(size, alignment).cast()
}

/// What may help after a failed attempt: the new-handler, or null where there is
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
