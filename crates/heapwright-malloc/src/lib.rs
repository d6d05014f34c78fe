//! The C face of heapwright: `libheapwright.so` and `libheapwright.a`.
//!
//! This crate gives C and C++ names to the functions of the `heapwright` library: no policy, no
//! state but a flag. The floor below decides what happens to memory. This floor decides the errors
//! (errno, zero sizes, overflow, alignment) as POSIX and glibc document them.
//!
//! ```text
//!   malloc_family    malloc, calloc, realloc, free, ... , free_sized
//!   malloc_x86_64    malloc and free in assembly, with the sequences of per-CPU caches
//!   introspection    malloc_trim, mallinfo, mallinfo2, mallopt, malloc_info, malloc_stats
//!   cxx              operator new and delete, every form
//!   cxx_runtime        functions of the C++ runtime that they need, if the process has one
//!   address_limit    setrlimit, prlimit, mlockall, when addresses are limited
//!   sandbox          prctl and syscall, by which a program forbids itself system calls
//!   deepbind         dlopen, whose RTLD_DEEPBIND no preloaded allocator survives; dlclose
//!   fault_handler    SIGSEGV and SIGBUS, when the debug heap protects memory
//!   stepping         one access with a guard lifted, after it was reported
//!   ending_signals   SIGTERM and its kin, when the debug heap looks at a process that they end
//!   signals          sigaction, signal, ... , which set the program's own handlers
//!   musl_sigaction   the system call behind them, for static programs of musl
//!   hw_gc            hw_gc_*: collected heaps; their fast paths are in include/heapwright_gc.h
//!   hw_api           hw_*: heaps, questions about pointers, statistics (include/heapwright.h)
//!   hw_count         hw_count_*: counts of a thread's calls and bytes between two calls
//!   hw_types, hw_gc_types, gc_abi   the structs of that header
//!   constructor      what happens when the library is loaded
//!   own_stack        a stack to judge faults on
//!   at_exit          the process's end: statistics, the debug heap's last look; _exit, _Exit
//!   daemon           daemon, whose first process ends without a call of our functions
//!   stderr           dup2, dup3, fclose: the program changes its standard error
//!   report           the statistics as text and as XML
//!   text             a buffer on the stack to write them into
//!   errno            the thread's errno
//!   weak             symbols that need not exist
//!   bounds           in libheapwright-hardened.so and libheapwright-check.so: checks the C library's writes (and reads)
//!   sanitizer        in libheapwright-check.so alone: LeakSanitizer's interface
//!   poisoning        there, too: AddressSanitizer's
//!   user             there, too: setuid and its kin, by which a process gives up root's rights
//!   observe          for tests alone: records the calls of the debug heap's hooks
//! ```
//!
//! **Fast path.** Programs call `malloc`, `free` and the C++ operators billions of times. Their
//! bodies here are one call of an inlined function of the library. Its rare cases are tail calls of
//! out-of-line functions, which also set errno. A test reads the disassembly.
//!
//! **Forbidden here**: std (it would bring its own allocator); panics that format (they allocate
//! and need much stack); `malloc` followed by a `memset` (the compiler would make it a call of
//! `calloc`: of ours). Build this crate alone (`-p heapwright-malloc`): feature unification with
//! another member of the workspace could pull std in.

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

/// Writes one line on stderr and ends the program.
#[cold]
#[inline(never)]
fn fatal(line: &[u8]) -> ! {
    heapwright::process::write_stderr(line);
    // SAFETY: abort may be called in any state.
    unsafe { libc::abort() }
}

/// An instruction that ends the program.
#[cfg(target_arch = "x86_64")]
macro_rules! trap {
    () => {
        "ud2"
    };
}

/// An instruction that ends the program.
#[cfg(target_arch = "aarch64")]
macro_rules! trap {
    () => {
        "brk #1"
    };
}

// Parts of `core` that were compiled for unwinding refer to std's personality routine of Rust's
// frames. Link-time optimisation drops them; a build without it would have an undefined symbol.
// Nothing unwinds through Rust here, so it is never called. It is weak and hidden: a program may
// link another Rust library that brings the real one.
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
