//! The sequences, aarch64: the twin of `x86_64`.
//!
//! `malloc` and `free` are Rust around `take` and `put`: there is no golden count to keep
//! here. The signature is that of the ABI's `brk`.

use core::arch::naked_asm;

use super::{Gate, Put, RSEQ, SINKS, SOURCES, Taken};
use crate::address_map::CLASS_STEP;
use crate::cache::hot::{Rest, TURNED_TO_CPU};
use crate::heap::per_cpu::{aborted_free, aborted_malloc, empty, full, odd};
use crate::remote::Block;
use crate::size_class::{self, UNIT};

pub(super) const EXIST: bool = true;

/// The block, 0: empty, 1: aborted.
#[unsafe(naked)]
pub(super) extern "C" fn take_at(gate: &Gate, offset: usize) -> *mut Block {
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

/// 0: done, 1: aborted, 2: full.
///
/// # Safety
///
/// As [`Gate::put`].
#[unsafe(naked)]
pub(super) unsafe extern "C" fn put_at(gate: &Gate, offset: usize, block: *mut Block) -> usize {
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
        "mov x4, #{SINKS}",
        "add x4, x0, x4",
        "ldr x4, [x4, x3, lsl #3]",
        "add x4, x4, x1",
        "ldr x5, [x4]",
        "str x2, [x5], #8",
        "tst x5, #0xff",
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
        SINKS = const SINKS,
    )
}

/// [`malloc`], for a linear class: no shorter here.
pub(crate) fn malloc_linear(size: usize, gate: &Gate, offset: usize) -> *mut u8 {
    malloc(size, gate, offset)
}

/// A block for `size` bytes from the list at `offset`.
pub(crate) fn malloc(size: usize, gate: &Gate, offset: usize) -> *mut u8 {
    match Taken::of(take_at(gate, offset)) {
        Taken::Block(block) => block.cast(),
        Taken::Empty => empty(size, gate, offset),
        Taken::Aborted => aborted_malloc(size, gate, offset),
    }
}

/// Takes a block of the common owner's back; `rest` is what is left of its entry.
///
/// # Safety
///
/// As `heap::free`.
pub(crate) unsafe fn free(block: *mut u8, gate: &Gate, rest: usize) {
    // SAFETY: by the contract it is what is left of an entry.
    let left = unsafe { Rest::of(rest) };
    let class = (rest - TURNED_TO_CPU) / CLASS_STEP;
    let offset = (block.addr() & (UNIT - 1)) as u32;
    if !size_class::is_slot_start(offset, size_class::reciprocal(class)) {
        // SAFETY: the caller gives the block away, whatever begins there.
        return unsafe { odd(block, gate, left) };
    }
    // SAFETY: a slot begins there, and the caller gives away the block of the class and the
    // common owner.
    match Put::of(unsafe { put_at(gate, class * CLASS_STEP, block.cast()) }) {
        Put::Done => {}
        // SAFETY: the caller gives away the block of the common owner's, which no array has.
        Put::Full => unsafe { full(block, gate, left) },
        // SAFETY: the caller gives away the block of the common owner's, which no array has.
        Put::Aborted => unsafe { aborted_free(block, gate, left) },
    }
}
