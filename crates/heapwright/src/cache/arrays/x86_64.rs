//! The sequences, x86-64.
//!
//! Each is: arm (the descriptor's address into the thread's area), which CPU, that CPU's
//! arrays, look, commit. The range that is restarted begins after the arming store and
//! ends after the committing one. The abort address is preceded by glibc's signature, in
//! an instruction that disassemblers can read.
//!
//! `malloc`, `malloc_linear` and `free` are what the fast paths jump to with their
//! arguments in place; `take` and `put` are for slow paths. None of them uses the stack.

use core::arch::naked_asm;

use super::{Gate, RECIPROCAL, RSEQ, SINKS, SOURCES};
use crate::cache::hot::TURNED_TO_CPU;
use crate::heap::per_cpu::{aborted_free, aborted_malloc, empty, full, odd};
use crate::remote::Block;

pub(super) const EXIST: bool = true;

/// A sequence. `$area` and `$cpu` become the thread's area and its CPU; labels: 4 begins
/// what is restarted, 5 is behind the commit, 7 the abort address.
macro_rules! sequence {
    ([$($before:literal),*] gate $gate:literal [$($inside:literal),*] [$($after:literal),*]
     abort [$($abort:literal),*] $($operands:tt)*) => {
        naked_asm!(
            ".pushsection __rseq_cs, \"aw\", @progbits",
            ".balign 32",
            "3: .long 0, 0",
            ".quad 4f, (5f - 4f), 7f",
            ".popsection",
            $($before,)*
            concat!("mov rcx, [", $gate, " + {RSEQ}]"),
            "lea rax, [rip + 3b]",
            "mov fs:[rcx + 8], rax",
            "4:",
            "mov eax, fs:[rcx + 4]",
            $($inside,)*
            "5:",
            $($after,)*
            // ud1 edi, [rip + signature]
            ".byte 0x0f, 0xb9, 0x3d",
            ".long 0x53053053",
            "7:",
            $($abort,)*
            RSEQ = const RSEQ,
            $($operands)*
        )
    };
}

/// The sequence of [`take_at`]; before the commit it may wait, for those who test it.
macro_rules! take {
    ([$($wait:literal),*]) => {
        sequence!(
            [] gate "rdi" [
                "mov rcx, [rdi + rax*8 + {SOURCES}]",
                "mov r8, [rcx + rsi]",
                "cmp r8, [rcx + rsi + 8]",
                "je 6f",
                "mov rax, [r8 - 8]",
                "sub r8, 8",
                $($wait,)*
                "mov [rcx + rsi], r8"
            ] ["ret", "6:", "xor eax, eax", "ret"]
            abort ["mov eax, 1", "ret"]
            SOURCES = const SOURCES,
        )
    };
}

/// The sequence of [`put_at`], likewise; `$before` comes before it is armed.
macro_rules! put {
    ([$($before:literal),*] [$($wait:literal),*]) => {
        sequence!(
            [$($before),*] gate "rdi" [
                "mov rcx, [rdi + rax*8 + {SINKS}]",
                "mov r8, [rcx + rsi]",
                "mov [r8], rdx",
                "add r8b, 8",
                "jc 6f",
                $($wait,)*
                "mov [rcx + rsi], r8"
            ] ["xor eax, eax", "ret", "6:", "mov eax, 2", "ret"]
            abort ["mov eax, 1", "ret"]
            SINKS = const SINKS,
        )
    };
}

/// A block for `size` bytes from the list at `offset`, which is that of a linear class.
#[unsafe(naked)]
pub(crate) extern "C" fn malloc_linear(size: usize, gate: &Gate, offset: usize) -> *mut u8 {
    sequence!(
        [] gate "rsi" [
            "mov rcx, [rsi + rax*8 + {SOURCES}]",
            "mov r8, [rcx + rdx]",
            "sub r8b, 8",
            "jc 6f",
            "mov rax, [r8]",
            "mov [rcx + rdx], r8"
        ] ["ret", "6:", "jmp {empty}"]
        abort ["jmp {aborted}"]
        SOURCES = const SOURCES,
        empty = sym empty,
        aborted = sym aborted_malloc,
    )
}

/// A block for `size` bytes from the list at `offset`.
#[unsafe(naked)]
pub(crate) extern "C" fn malloc(size: usize, gate: &Gate, offset: usize) -> *mut u8 {
    sequence!(
        [] gate "rsi" [
            "mov rcx, [rsi + rax*8 + {SOURCES}]",
            "mov r8, [rcx + rdx]",
            "cmp r8, [rcx + rdx + 8]",
            "je 6f",
            "mov rax, [r8 - 8]",
            "sub r8, 8",
            "mov [rcx + rdx], r8"
        ] ["ret", "6:", "jmp {empty}"]
        abort ["jmp {aborted}"]
        SOURCES = const SOURCES,
        empty = sym empty,
        aborted = sym aborted_malloc,
    )
}

/// Takes a block of the common owner's back; `rest` is what is left of its entry.
///
/// # Safety
///
/// As `heap::free`.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn free(block: *mut u8, gate: &Gate, rest: usize) {
    sequence!(
        [
            "movzx eax, di",
            "imul eax, [rsi + rdx - {TURNED} + {RECIPROCAL}]",
            "cmp eax, 0xffff",
            "ja 8f"
        ] gate "rsi" [
            "mov rcx, [rsi + rax*8 + {SINKS}]",
            "mov r8, [rcx + rdx - {TURNED}]",
            "mov [r8], rdi",
            "add r8b, 8",
            "jc 6f",
            "mov [rcx + rdx - {TURNED}], r8"
        ] ["ret", "6:", "jmp {full}", "8:", "jmp {odd}"]
        abort ["jmp {aborted}"]
        SINKS = const SINKS,
        TURNED = const TURNED_TO_CPU,
        RECIPROCAL = const RECIPROCAL,
        full = sym full,
        odd = sym odd,
        aborted = sym aborted_free,
    )
}

/// The block, 0: empty, 1: aborted.
#[unsafe(naked)]
pub(super) extern "C" fn take_at(gate: &Gate, offset: usize) -> *mut Block {
    take!([])
}

/// 0: done, 1: aborted, 2: full.
///
/// # Safety
///
/// As [`Gate::put`].
#[unsafe(naked)]
pub(super) unsafe extern "C" fn put_at(gate: &Gate, offset: usize, block: *mut Block) -> usize {
    put!([] [])
}

#[cfg(test)]
mod widened;
