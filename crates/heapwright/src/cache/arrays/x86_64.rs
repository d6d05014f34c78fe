//! The restartable sequences for x86-64.
//!
//! Each sequence arms itself (stores the descriptor's address in the thread's area), reads the
//! CPU's number, loads the CPU's arrays, checks them, and commits. The restarted range begins after
//! the store that arms, and ends after the store that commits. glibc's signature precedes the abort
//! address, in an instruction that disassemblers can read.
//!
//! `take` and `put` are for slow paths. The fast paths jump to the sequences of `heap::cpu`, which
//! use the same macro. No sequence uses the stack.

use super::{CpuEntry, ROW_MASK, SOURCES, TARGETS};
use crate::remote::Block;

pub(super) const EXIST: bool = true;

/// Loads the area's place into `rcx` and the CPU's number into `eax`. Label 4 begins the restarted
/// range, label 5 is behind the commit, and label 7 is the abort address.
macro_rules! sequence {
    ([$($before:literal),*] entry $entry:literal [$($inside:literal),*] [$($after:literal),*]
     abort [$($abort:literal),*] $($operands:tt)*) => {
        core::arch::naked_asm!(
            ".pushsection __rseq_cs, \"aw\", @progbits",
            ".balign 32",
            "3: .long 0, 0",
            ".quad 4f, (5f - 4f), 7f",
            ".popsection",
            $($before,)*
            concat!("mov rcx, [", $entry, " + {RSEQ}]"),
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
            RSEQ = const $crate::cache::arrays::RSEQ,
            $($operands)*
        )
    };
}
pub(crate) use sequence;

/// Tests add `$wait` before the commit.
macro_rules! take {
    ([$($wait:literal),*]) => {
        sequence!(
            [] entry "rdi" [
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

/// `$before` precedes the arming.
macro_rules! put {
    ([$($before:literal),*] [$($wait:literal),*]) => {
        sequence!(
            [$($before),*] entry "rdi" [
                "mov rcx, [rdi + rax*8 + {TARGETS}]",
                "mov r8, [rcx + rsi]",
                "mov [r8], rdx",
                "add r8, 8",
                "test r8d, {ROW_MASK}",
                "jz 6f",
                $($wait,)*
                "mov [rcx + rsi], r8"
            ] ["xor eax, eax", "ret", "6:", "mov eax, 2", "ret"]
            abort ["mov eax, 1", "ret"]
            TARGETS = const TARGETS,
            ROW_MASK = const ROW_MASK,
        )
    };
}

/// Returns the block, or 0 (empty) or 1 (aborted).
#[unsafe(naked)]
pub(super) extern "C" fn take_at(cpu_entry: &CpuEntry, offset: usize) -> *mut Block {
    take!([])
}

/// Returns 0 (done), 1 (aborted) or 2 (full).
///
/// # Safety
///
/// As [`CpuEntry::put`].
#[unsafe(naked)]
pub(super) unsafe extern "C" fn put_at(
    cpu_entry: &CpuEntry,
    offset: usize,
    block: *mut Block,
) -> usize {
    put!([] [])
}

#[cfg(test)]
mod widened;
