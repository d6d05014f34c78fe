//! Links `libheapwright-check.so` like `libheapwright-hardened.so` (see that crate's build script).
//! This library also checks the C library's functions that read, and its system calls:
//!
//! - `cfg(heapwright_reads)` adds these functions to the module `bounds`.
//! - `--wrap`: heapwright's own calls of interposed functions are not checked.

#[path = "../heapwright-malloc/link.rs"]
mod link;
use link::Library;

fn main() {
    link::link(&Library {
        soname: "libheapwright-check.so",
        sources: "../heapwright-malloc",
        own: &[
            "memcpy",
            "memmove",
            "memset",
            "pread",
            "pread64",
            "readlink",
            "getcwd",
            "memcmp",
            "bcmp",
            "memchr",
            "strlen",
            "strnlen",
            "wcsnlen",
            "write",
            "fwrite",
            "syscall",
            "open",
            "unlink",
            "rename",
            "chdir",
            "fcntl",
            "fstatfs",
            "getrlimit",
            "mincore",
            "shmctl",
            "sigprocmask",
            "clock_gettime",
        ],
        parts: &["heapwright_bounds", "heapwright_reads"],
    });
}
