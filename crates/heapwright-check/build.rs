//! Links `libheapwright-check.so`: as `libheapwright-hardened.so` (see that crate's build script),
//! plus the functions that read:
//!
//! - `cfg(heapwright_reads)`, by which the module `bounds` has the second list of functions.
//! - `--wrap` for those of them that heapwright itself calls.

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
