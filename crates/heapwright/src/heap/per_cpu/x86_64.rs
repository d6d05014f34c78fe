//! `malloc` and `free` through a CPU's arrays, x86-64: what the fast paths jump to with their
//! arguments in place. See `cache::arrays` for the sequences.

use super::{aborted_free, aborted_malloc, empty, full, odd};
use crate::cache::Hot;
use crate::cache::arrays::{Gate, ROW_MASK, SINKS, SOURCES, sequence};
use crate::cache::hot::BIASED_TO_CPU;

const RECIPROCAL: usize = Hot::RECIPROCAL;

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
pub(crate) unsafe extern "C" fn free(block: *mut u8, gate: &Gate, residue: usize) {
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
            "add r8, 8",
            "test r8d, {ROW_MASK}",
            "jz 6f",
            "mov [rcx + rdx - {TURNED}], r8"
        ] ["ret", "6:", "jmp {full}", "8:", "jmp {odd}"]
        abort ["jmp {aborted}"]
        SINKS = const SINKS,
        ROW_MASK = const ROW_MASK,
        TURNED = const BIASED_TO_CPU,
        RECIPROCAL = const RECIPROCAL,
        full = sym full,
        odd = sym odd,
        aborted = sym aborted_free,
    )
}
