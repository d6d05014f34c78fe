//! Links `libheapwright-hardened.so` like `libheapwright.so`, from the same sources (see link.rs),
//! with two more settings for the module `bounds`:
//!
//! - `cfg(heapwright_bounds)` adds the module to the sources.
//! - `--wrap`: heapwright's own calls of these functions are not checked, as a test verifies.
//!
//! Cargo allows no hyphens, so it names the file libheapwright_hardened.so. The soname and the
//! installed file have a hyphen.

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
