//! The C face of heapwright: `libheapwright.so` and `libheapwright.a`.
//!
//! This crate gives C and C++ names to the functions of the `heapwright` library, which decides
//! what happens to memory. Only the errors (errno, zero sizes, overflow, alignment) are decided
//! here, as POSIX and glibc document them.
//!
//! ```text
//!   malloc_family, malloc_x86_64, alloc_token   malloc; in assembly; with a token
//!   jemalloc, tcmalloc, introspection           other allocators' functions; glibc's queries
//!   cxx, cxx_runtime                            operators new and delete; the C++ runtime, if any
//!   hw_*, gc_abi, owned, mirror                 include/heapwright.h: functions, structs, checks
//!   address_limit, sandbox                      setrlimit, mlockall; prctl, syscall
//!   deepbind, stderr, daemon                    dlopen, dlclose; dup2, fclose; daemon
//!   fault_handler, own_stack, stepping          faults at guards of the debug heap
//!   ending_signals, signals, musl_sigaction     signals that end processes; sigaction
//!   constructor, at_exit                        the start of the library; the end of the process
//!   report, text, errno, weak                   texts; errno; symbols that may be missing
//!   bounds                                      libraries with bounds: the C library's accesses
//!   sanitizer, poisoning, user                  check library: sanitizers' interfaces; setuid
//!   observe                                     tests: records the calls of the debug heap's hooks
//! ```
//!
//! **Fast path.** `malloc` and `free` (on x86-64 in assembly) and the C++ operators have the code
//! of the library's fast path inlined. Rare cases are tail calls of out-of-line functions, which
//! also set errno. A test reads the disassembly.
//!
//! **Forbidden here**: std (it would bring its own allocator); panics that format (they allocate
//! and need much stack); `malloc` followed by a `memset` (the compiler would make it a call of our
//! `calloc`). Build this crate alone (`-p heapwright-malloc`): feature unification with another
//! member of the workspace could pull std in.

#![no_std]

/// cbindgen:ignore
mod address_limit;
/// cbindgen:ignore
mod alloc_token;
/// cbindgen:ignore
mod at_exit;
#[cfg(heapwright_bounds)]
/// cbindgen:ignore
mod bounds;
/// cbindgen:ignore
mod constructor;
/// cbindgen:ignore
mod cxx;
/// cbindgen:ignore
mod cxx_runtime;
/// cbindgen:ignore
mod daemon;
/// cbindgen:ignore
mod deepbind;
/// cbindgen:ignore
mod ending_signals;
/// cbindgen:ignore
mod errno;
/// cbindgen:ignore
mod fault_handler;
#[path = "../../heapwright-gc/src/abi.rs"]
pub mod gc_abi;
pub mod hw_api;
pub mod hw_arena;
pub mod hw_count;
pub mod hw_gc;
pub mod hw_gc_types;
pub mod hw_pool;
pub mod hw_types;
/// cbindgen:ignore
mod introspection;
/// cbindgen:ignore
mod jemalloc;
/// cbindgen:ignore
mod malloc_family;
#[cfg(target_arch = "x86_64")]
/// cbindgen:ignore
mod malloc_x86_64;
/// cbindgen:ignore
mod mirror;
/// cbindgen:ignore
#[cfg(target_env = "musl")]
mod musl_sigaction;
/// cbindgen:ignore
#[cfg(feature = "observe")]
mod observe;
/// cbindgen:ignore
mod own_stack;
mod owned;
#[cfg(heapwright_reads)]
/// cbindgen:ignore
mod poisoning;
/// cbindgen:ignore
mod report;
/// cbindgen:ignore
mod sandbox;
#[cfg(heapwright_reads)]
/// cbindgen:ignore
mod sanitizer;
/// cbindgen:ignore
mod signals;
/// cbindgen:ignore
mod stderr;
/// cbindgen:ignore
#[cfg(target_arch = "x86_64")]
mod stepping;
/// cbindgen:ignore
#[allow(non_snake_case, reason = "the names are gperftools'")]
mod tcmalloc;
/// cbindgen:ignore
mod text;
#[cfg(heapwright_reads)]
/// cbindgen:ignore
mod user;
/// cbindgen:ignore
mod weak;

use core::panic::PanicInfo;

/// Writes one fixed line and ends the program. A panic is a bug of heapwright, and the heap may be
/// half changed. Formatting code would be large, and might allocate.
#[cold]
#[inline(never)]
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    fatal(
        b"heapwright: internal error: an invariant of the heap does not hold; please report this\n",
    )
}

#[cold]
#[inline(never)]
fn fatal(line: &[u8]) -> ! {
    heapwright::process::write_stderr(line);
    // SAFETY: abort may be called in any state.
    unsafe { libc::abort() }
}

#[cfg(target_arch = "x86_64")]
macro_rules! trap {
    () => {
        "ud2"
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! trap {
    () => {
        "brk #1"
    };
}

// Parts of `core` that were compiled for unwinding refer to the personality routine of Rust's
// frames, which std has. Link-time optimisation drops these parts; without it there would be an
// undefined symbol. Nothing unwinds through Rust here, so the routine is never called. The symbol
// is weak and hidden: a program may link another Rust library that brings the real routine.
core::arch::global_asm!(
    ".pushsection .text.heapwright_eh_personality, \"ax\"",
    ".weak rust_eh_personality",
    ".hidden rust_eh_personality",
    ".type rust_eh_personality, %function",
    "rust_eh_personality:",
    trap!(),
    ".size rust_eh_personality, . - rust_eh_personality",
    ".popsection",
);
