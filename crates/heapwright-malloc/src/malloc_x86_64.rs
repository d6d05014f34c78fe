//! `malloc` and `free`, x86-64: the two functions that are written in assembly.
//!
//! ```text
//!   malloc   list by the size, pop                               13    (`heap::fast`, as compiled)
//!            head negative: arm, CPU, its arrays, pop, commit    20
//!   free     entry of the unit, mine? slot start? push           22    (`heap::fast`, as compiled)
//!            not mine, but the common owner's: arm, ... commit   29
//! ```
//!
//! For exclusive caches the code is the compiler's code of `heap::malloc` and `heap::free`,
//! instruction for instruction. The compiler cannot put the restartable sequences of per-CPU caches
//! (`cache::arrays`) into the same function. One function for both saves a jump and reloads of
//! registers: five instructions of a `malloc` with its `free`.
//!
//! - The heads of the per-CPU entry's lists are negative: one test sees an empty list and the
//!   per-CPU entry. Each head also states where the thread's rseq area is.
//! - The descriptor of `malloc`'s sequence is copied to the start of the per-CPU entry. Its address
//!   is the thread's fast word, which a register holds already.
//! - `free` compares the tag mismatch with `KINDS`. The signed comparison overflows exactly if the
//!   block is the common owner's and the thread uses the per-CPU entry.
//!
//! The numbers in the picture count instructions, with the `ret`. CI compares them.

use core::arch::naked_asm;
use heapwright::heap::assembly as a;
use libc::{c_void, size_t};

#[unsafe(no_mangle)]
#[unsafe(naked)]
#[allow(named_asm_labels, reason = "the library copies the descriptor, and finds it by its name")]
extern "C" fn malloc(size: size_t) -> *mut c_void {
    naked_asm!(
        ".pushsection .data.rel.ro.__heapwright_0_1_rseq, \"aw\", @progbits",
        ".balign 32",
        ".weak __heapwright_0_1_malloc_sequence",
        ".hidden __heapwright_0_1_malloc_sequence",
        "__heapwright_0_1_malloc_sequence:",
        ".long 0, 0",
        ".quad 4f, (5f - 4f), 7f",
        ".popsection",
        "lea rdx, [rdi - 1]",
        "cmp rdx, {LINEAR_MAX}",
        "jae {other}",
        "mov rsi, [rip + __heapwright_0_1_tls@GOTTPOFF]",
        "mov rsi, fs:[rsi]",
        "and edx, {OFFSET_MASK}",
        "mov rax, [rsi + rdx + {LISTS}]",
        "test rax, rax",
        "jle 2f",
        "mov rcx, [rax]",
        "mov [rsi + rdx + {LISTS}], rcx",
        "inc dword ptr [rsi + rdx + {LISTS} + 8]",
        "ret",
        "2:",
        "je 9f",
        "mov fs:[rax + 8 + {BIAS}], rsi",
        "4:",
        "mov eax, fs:[rax + 4 + {BIAS}]",
        "mov rcx, [rsi + rax*8 + {SOURCES}]",
        "mov r8, [rcx + rdx]",
        "cmp r8, [rcx + rdx + 8]",
        "je 6f",
        "mov rax, [r8 - 8]",
        "sub r8, 8",
        "mov [rcx + rdx], r8",
        "5:",
        "ret",
        "6:",
        "jmp {empty}",
        "9:",
        "mov rax, [rsi + {SERVE}]",
        "jmp [rax + {MALLOC}]",
        // ud1 edi, [rip + signature]
        ".byte 0x0f, 0xb9, 0x3d",
        ".long 0x53053053",
        "7:",
        "jmp {aborted}",
        LINEAR_MAX = const a::LINEAR_MAX,
        OFFSET_MASK = const a::OFFSET_MASK,
        LISTS = const a::LISTS,
        BIAS = const a::BIAS,
        SERVE = const a::SERVE,
        MALLOC = const a::MALLOC,
        SOURCES = const a::SOURCES,
        other = sym a::malloc_other,
        empty = sym a::malloc_empty,
        aborted = sym a::malloc_aborted,
    )
}

/// # Safety
///
/// `block` is null or a live block of this process. The heap reports misuse that it sees.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn free(block: *mut c_void) {
    naked_asm!(
        ".pushsection __rseq_cs, \"aw\", @progbits",
        ".balign 32",
        "3: .long 0, 0",
        ".quad 4f, (5f - 4f), 7f",
        ".popsection",
        "mov rsi, [rip + __heapwright_0_1_tls@GOTTPOFF]",
        "mov rsi, fs:[rsi]",
        "mov rax, [rsi + {BASE}]",
        "mov rcx, rdi",
        "sub rcx, rax",
        "shr rcx, 16",
        "cmp rcx, [rsi + {LIMIT}]",
        "jae 32f",
        "mov edx, [rax + rcx*4 - {GAP}]",
        "xor edx, [rsi + {TAG}]",
        "cmp edx, {KINDS}",
        "jae 2f",
        "movzx eax, di",
        "imul eax, [rsi + rdx + {LISTS} + 12]",
        "cmp eax, 0xffff",
        "ja 32f",
        "mov rax, [rsi + rdx + {LISTS}]",
        "mov [rdi], rax",
        "mov [rsi + rdx + {LISTS}], rdi",
        "dec dword ptr [rsi + rdx + {LISTS} + 8]",
        "js 9f",
        "ret",
        "2:",
        "jno 8f",
        "movzx eax, di",
        "imul eax, [rsi + rdx - {TO_CPU} + {LISTS} + 12]",
        "cmp eax, 0xffff",
        "ja 32f",
        "mov rcx, [rsi + {RSEQ}]",
        "lea rax, [rip + 3b]",
        "mov fs:[rcx + 8], rax",
        "4:",
        "mov eax, fs:[rcx + 4]",
        "mov rcx, [rsi + rax*8 + {TARGETS}]",
        "mov r8, [rcx + rdx - {TO_CPU}]",
        "mov [r8], rdi",
        "add r8, 8",
        "test r8d, {ROW_MASK}",
        "jz 6f",
        "mov [rcx + rdx - {TO_CPU}], r8",
        "5:",
        "ret",
        "6:",
        "jmp {full}",
        "8:",
        "lea eax, [rdx - {TO_SHARED}]",
        "cmp eax, {KINDS}",
        "jb {shared}",
        "jmp {other}",
        "32:",
        "mov rax, [rsi + {SERVE}]",
        "jmp [rax + {UNKNOWN}]",
        "9:",
        "shr edx, 4",
        "mov edi, edx",
        "jmp {overflow}",
        ".byte 0x0f, 0xb9, 0x3d",
        ".long 0x53053053",
        "7:",
        "jmp {aborted}",
        BASE = const a::BASE,
        LIMIT = const a::LIMIT,
        GAP = const a::GAP,
        TAG = const a::TAG,
        SERVE = const a::SERVE,
        UNKNOWN = const a::UNKNOWN,
        KINDS = const a::KINDS,
        LISTS = const a::LISTS,
        TO_CPU = const a::TO_CPU,
        TO_SHARED = const a::TO_SHARED,
        RSEQ = const a::RSEQ,
        TARGETS = const a::TARGETS,
        ROW_MASK = const a::ROW_MASK,
        other = sym a::free_other,
        shared = sym a::free_shared,
        full = sym a::free_full,
        aborted = sym a::free_aborted,
        overflow = sym a::overflow,
    )
}
