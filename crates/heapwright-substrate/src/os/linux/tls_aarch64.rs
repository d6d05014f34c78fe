//! Four words per thread, aarch64: the twin of `tls_x86_64`, which describes them.
//!
//! The initial-exec sequence: the thread pointer, plus an offset from the GOT.

use core::arch::asm;
use core::sync::atomic::{Ordering, compiler_fence};

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
            ".xword {sentinel}",
            ".xword 0",
            ".xword 0",
            ".xword 0",
            ".popsection",
            sentinel = sym $sentinel,
        );
    };
}
pub use define_words;

#[inline(always)]
fn block() -> *mut *mut u8 {
    let at;
    // SAFETY: computes the address of this thread's block, which stays where it is while the
    // thread lives.
    unsafe {
        asm!(
            "mrs {0}, tpidr_el0",
            "adrp {1}, :gottprel:__heapwright_0_1_tls",
            "ldr {1}, [{1}, :gottprel_lo12:__heapwright_0_1_tls]",
            "add {0}, {0}, {1}",
            out(reg) at,
            out(reg) _,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    at
}

/// The thread's fast word. Its first value is `_sentinel` ([`define_words`]).
#[inline(always)]
pub fn fast(_sentinel: *const u8) -> *mut u8 {
    // SAFETY: the first initialised word of this thread's block.
    unsafe { *block() }
}

/// Sets the thread's fast word.
#[inline]
pub fn set_fast(word: *mut u8) {
    // SAFETY: the first word of this thread's block; only this module touches it.
    unsafe { *block() = word };
}

/// The thread's thread word.
#[inline]
pub fn own() -> *mut u8 {
    // SAFETY: the block is four words.
    let own = unsafe { block().add(1) };
    // SAFETY: the second initialised word of this thread's block.
    unsafe { *own }
}

/// Sets the thread's thread word.
#[inline]
pub fn set_own(word: *mut u8) {
    // SAFETY: the block is four words.
    let own = unsafe { block().add(1) };
    // SAFETY: the second word of this thread's block; only this module touches it.
    unsafe { *own = word };
}

/// The word of the thread's index, or 0 (see `registry::thread_index`).
#[inline(always)]
pub fn thread_index() -> usize {
    // SAFETY: the block is four words.
    let index = unsafe { block().add(2) };
    // SAFETY: the third initialised word of this thread's block.
    unsafe { index.read().addr() }
}

/// Sets the word of the thread's index.
#[inline]
pub fn set_thread_index(word: usize) {
    // SAFETY: the block is four words.
    let index = unsafe { block().add(2) };
    // SAFETY: the third word of this thread's block; only this module touches it.
    unsafe { index.write(core::ptr::without_provenance_mut(word)) };
}

/// The number of locks that the thread has, or is about to have.
#[inline]
pub fn locks() -> usize {
    // SAFETY: the block is four words.
    let locks = unsafe { block().add(3) };
    // Volatile, because a signal handler may read the word at any time.
    // SAFETY: the fourth initialised word of this thread's block.
    unsafe { locks.read_volatile().addr() }
}

/// Sets the number of locks that the thread has.
#[inline]
pub fn set_locks(number: usize) {
    compiler_fence(Ordering::SeqCst);
    // SAFETY: the block is four words.
    let locks = unsafe { block().add(3) };
    // SAFETY: the fourth word of this thread's block; only this module touches it.
    unsafe { locks.write_volatile(core::ptr::without_provenance_mut(number)) };
    compiler_fence(Ordering::SeqCst);
}
