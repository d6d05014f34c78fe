//! C++'s forms are told apart before the first block is made.
//!
//! `operator new[]` forwards to `operator new`, so that a program may replace the latter alone. A debug heap and a
//! hardened one must know which was called; the C layer sees to that by a table that its forms jump through. Were the
//! table changed when the library is loaded, a block that another library's constructor made by `new[]` would be one of
//! `new`, and its `delete[]` a fault that is none. So the heap asks for it itself, while it starts:
//!
//! ```text
//! first call -> start -> the options want a debug or a hardened heap -> tell_apart -> the C layer's function
//! ```
//!
//! The C layer's function is found by a hidden weak symbol, a word with its address: a program without that layer has none.
//!
//! Called by `start`, once.

#[cfg(all(
    feature = "interpose",
    target_os = "linux",
    not(miri),
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub(super) fn tell_apart() {
    let word: *const Option<extern "C" fn()>;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads an entry of our own offset table: 0 for a weak symbol that nobody defines.
    unsafe {
        core::arch::asm!(
            ".weak __heapwright_0_1_tell_forms_apart",
            ".hidden __heapwright_0_1_tell_forms_apart",
            "mov {0}, qword ptr [rip + __heapwright_0_1_tell_forms_apart@GOTPCREL]",
            out(reg) word,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads an entry of our own offset table: 0 for a weak symbol that nobody defines.
    unsafe {
        core::arch::asm!(
            ".weak __heapwright_0_1_tell_forms_apart",
            ".hidden __heapwright_0_1_tell_forms_apart",
            "adrp {0}, :got:__heapwright_0_1_tell_forms_apart",
            "ldr {0}, [{0}, :got_lo12:__heapwright_0_1_tell_forms_apart]",
            out(reg) word,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    // SAFETY: null, or the C layer's word, which only the dynamic linker writes to; 0 is `None`.
    if let Some(&Some(tell)) = unsafe { word.as_ref() } {
        tell();
    }
}

#[cfg(not(all(
    feature = "interpose",
    target_os = "linux",
    not(miri),
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub(super) const fn tell_apart() {}
