//! The restartable sequences for aarch64. `x86_64` explains the steps.
//!
//! The word before each abort address is the signature, a `brk` instruction.

use core::arch::naked_asm;

use super::{CpuEntry, ROW_MASK, RSEQ, SOURCES, TARGETS};
use crate::remote::Block;

pub(super) const EXIST: bool = true;

/// Returns the block, or 0 (empty) or 1 (aborted).
#[unsafe(naked)]
pub(super) extern "C" fn take_at(cpu_entry: &CpuEntry, offset: usize) -> *mut Block {
    naked_asm!(
        ".pushsection __rseq_cs, \"aw\", @progbits",
        ".balign 32",
        "3: .word 0, 0",
        ".xword 4f, (5f - 4f), 7f",
        ".popsection",
        "ldr x2, [x0, #{RSEQ}]",
        "mrs x3, tpidr_el0",
        "add x2, x2, x3",
        "adrp x3, 3b",
        "add x3, x3, :lo12:3b",
        "str x3, [x2, #8]",
        "4:",
        "ldr w3, [x2, #4]",
        "add x4, x0, #{SOURCES}",
        "ldr x4, [x4, x3, lsl #3]",
        "add x4, x4, x1",
        "ldp x5, x6, [x4]",
        "cmp x5, x6",
        "b.eq 6f",
        "ldr x0, [x5, #-8]!",
        "str x5, [x4]",
        "5:",
        "ret",
        "6:",
        "mov x0, #0",
        "ret",
        ".inst 0xd428bc00",
        "7:",
        "mov x0, #1",
        "ret",
        RSEQ = const RSEQ,
        SOURCES = const SOURCES,
    )
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
    naked_asm!(
        ".pushsection __rseq_cs, \"aw\", @progbits",
        ".balign 32",
        "3: .word 0, 0",
        ".xword 4f, (5f - 4f), 7f",
        ".popsection",
        "ldr x7, [x0, #{RSEQ}]",
        "mrs x3, tpidr_el0",
        "add x7, x7, x3",
        "adrp x3, 3b",
        "add x3, x3, :lo12:3b",
        "str x3, [x7, #8]",
        "4:",
        "ldr w3, [x7, #4]",
        "mov x4, #{TARGETS}",
        "add x4, x0, x4",
        "ldr x4, [x4, x3, lsl #3]",
        "add x4, x4, x1",
        "ldr x5, [x4]",
        "str x2, [x5], #8",
        "tst x5, #{ROW_MASK}",
        "b.eq 6f",
        "str x5, [x4]",
        "5:",
        "mov x0, #0",
        "ret",
        "6:",
        "mov x0, #2",
        "ret",
        ".inst 0xd428bc00",
        "7:",
        "mov x0, #1",
        "ret",
        RSEQ = const RSEQ,
        TARGETS = const TARGETS,
        ROW_MASK = const ROW_MASK,
    )
}
