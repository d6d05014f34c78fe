//! Links `libheapwright-hardened.so`: as `libheapwright.so`, from the same sources (see its
//! link.rs), plus the needs of the module `bounds`:
//!
//! - `cfg(heapwright_bounds)`, by which the sources have that module.
//! - `--wrap`. A function that is missing in this list would be checked within the heap, too: a
//!   test looks at the linked library.
//! - The file is made as libheapwright_hardened.so, for Cargo knows no hyphens; its soname and the
//!   name under which it is installed have one.

#[path = "../heapwright-malloc/link.rs"]
mod link;
use link::Library;

fn main() {
    link::link(&Library {
        soname: "libheapwright-hardened.so",
        sources: "../heapwright-malloc",
        own: &["memcpy", "memmove", "memset", "pread", "pread64", "readlink", "getcwd"],
        parts: &["heapwright_bounds"],
    });
}
