//! A malloc to preload that looks for its shared caches as it is told: for measurement
//! alone.
//!
//! ```text
//!   LD_PRELOAD=libheapwright_policies.so HEAPWRIGHT=cache=shared:8 HEAPWRIGHT_POLICY=before program
//!
//!   constructor   HEAPWRIGHT_POLICY -> a variant's type -> heapwright::policies::set
//!   pair          malloc and free, compiled (x86-64: the library's are in assembly)
//!   malloc_family, errno   their kin: the files of crates/heapwright-malloc themselves
//! ```
//!
//! It is a crate of its own, apart from `policies`: what contains a `malloc` is the
//! allocator of every program that it is linked into, and the race must not be one of
//! them. Build it alone (`-p policies-preload`): Cargo unites the features of what it
//! builds together, and `interpose` is for a library that is the process's `malloc`.
//!
//! Calls before the constructor (other libraries' constructors) follow the library's
//! own policy; they come from one thread, which finds its cache free.

#![no_std]

mod constructor;
#[path = "../../../../crates/heapwright-malloc/src/errno.rs"]
#[allow(dead_code, reason = "that crate asks for errno as well; this one only sets it")]
mod errno;
#[path = "../../../../crates/heapwright-malloc/src/malloc_family.rs"]
mod malloc_family;
mod pair;

use core::panic::PanicInfo;

/// A panic is a bug, and the heap may be half changed: one fixed line, and the end.
#[cold]
#[inline(never)]
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    heapwright::process::write_stderr(
        b"heapwright: internal error: an invariant of the heap does not hold; please report this\n",
    );
    // SAFETY: abort may be called in any state.
    unsafe { libc::abort() }
}
