//! Four words per thread, x86-64.
//!
//! ```text
//! fast   the cache that malloc and free use without a test; at first a read-only sentinel that
//!        has only empty lists and owns nothing
//! own    the thread's source of memory: see `heap` (words)
//! index  the thread's index (see `registry::thread_index`), or 0
//! locks  the number of locks that the thread has, or is about to have
//! ```
//!
//! `thread_local!` in a shared library calls `__tls_get_addr`. An access to a hidden `.tdata`
//! symbol through its GOT entry (*initial exec*) is two instructions. The block takes part of the
//! room that glibc keeps for libraries loaded late, so it has only 32 bytes.
//!
//! The symbol is in `.tdata`, not `.tbss`. So the loader sets `fast` to the sentinel before the
//! first instruction of a thread, and no code must test `fast` for null.

use core::arch::asm;

/// Defines the words. At first, `fast` is the address of the given static, which is never written.
/// One module must use this macro, once.
#[macro_export]
#[doc(hidden)]
macro_rules! define_words {
    ($sentinel:path) => {
        core::arch::global_asm!(
            ".pushsection .tdata.heapwright,\"awT\",@progbits",
            ".balign 16",
            ".globl __heapwright_0_1_tls",
            ".hidden __heapwright_0_1_tls",
            ".type __heapwright_0_1_tls, @object",
            ".size __heapwright_0_1_tls, 32",
            "__heapwright_0_1_tls:",
            ".quad {sentinel}",
            ".quad 0",
            ".quad 0",
            ".quad 0",
            ".popsection",
            sentinel = sym $sentinel,
        );
    };
}
pub use define_words;

/// The thread's fast word. Its first value is `_sentinel` ([`define_words`]).
#[inline(always)]
pub fn fast(_sentinel: *const u8) -> *mut u8 {
    let word;
    // SAFETY: reads one initialised word of this thread. `pure`: the compiler may read the word
    // only once in a function. So a function that calls `set_fast` does not read the word again.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + __heapwright_0_1_tls@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) word,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    word
}

/// Sets the thread's fast word.
#[inline]
pub fn set_fast(word: *mut u8) {
    // SAFETY: writes one word of this thread that only this module touches.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + __heapwright_0_1_tls@GOTTPOFF]",
            "mov qword ptr fs:[{0}], {1}",
            out(reg) _,
            in(reg) word,
            options(nostack, preserves_flags),
        );
    }
}

/// The thread's thread word.
#[inline]
pub fn own() -> *mut u8 {
    let word;
    // SAFETY: reads one initialised word of this thread. Not `pure`, because slow paths read the
    // word again after they have set it.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + __heapwright_0_1_tls@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0} + 8]",
            out(reg) word,
            options(readonly, nostack, preserves_flags),
        );
    }
    word
}

/// Sets the thread's thread word.
#[inline]
pub fn set_own(word: *mut u8) {
    // SAFETY: writes one word of this thread that only this module touches.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + __heapwright_0_1_tls@GOTTPOFF]",
            "mov qword ptr fs:[{0} + 8], {1}",
            out(reg) _,
            in(reg) word,
            options(nostack, preserves_flags),
        );
    }
}

/// The word of the thread's index, or 0 (see `registry::thread_index`).
#[inline(always)]
pub fn thread_index() -> usize {
    let word;
    // SAFETY: reads one initialised word of this thread. Not `pure`, because the cold path reads
    // the word again after it has set it.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + __heapwright_0_1_tls@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0} + 16]",
            out(reg) word,
            options(readonly, nostack, preserves_flags),
        );
    }
    word
}

/// Sets the word of the thread's index.
#[inline]
pub fn set_thread_index(word: usize) {
    // SAFETY: writes one word of this thread that only this module touches.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + __heapwright_0_1_tls@GOTTPOFF]",
            "mov qword ptr fs:[{0} + 16], {1}",
            out(reg) _,
            in(reg) word,
            options(nostack, preserves_flags),
        );
    }
}

/// The number of locks that the thread has, or is about to have.
#[inline]
pub fn locks() -> usize {
    let locks;
    // SAFETY: reads one initialised word of this thread. Neither `pure` nor `readonly`, because a
    // signal handler may use the word at any time.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + __heapwright_0_1_tls@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0} + 24]",
            out(reg) locks,
            options(nostack, preserves_flags),
        );
    }
    locks
}

/// Sets the number of locks that the thread has.
#[inline]
pub fn set_locks(locks: usize) {
    // SAFETY: writes one word of this thread that only this module touches.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + __heapwright_0_1_tls@GOTTPOFF]",
            "mov qword ptr fs:[{0} + 24], {1}",
            out(reg) _,
            in(reg) locks,
            options(nostack, preserves_flags),
        );
    }
}
