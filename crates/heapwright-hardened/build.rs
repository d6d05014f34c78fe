//! How `libheapwright-hardened.so` is linked: as `libheapwright.so` (see the build script of heapwright-malloc, whose
//! sources these are), and with what the module `bounds` needs:
//!
//! - `cfg(heapwright_bounds)`, by which the sources have that module.
//! - `--wrap`: what heapwright itself calls of the functions that the library interposes leads past the
//!   checks (see heapwright-entry). A function that is missing in this list would be checked within the heap, too: a test
//!   looks at the linked library.
//! - The file is made as libheapwright_hardened.so, for Cargo knows no hyphens; its soname and the name under which it
//!   is installed have one.

/// What heapwright itself calls of the interposed functions.
const OWN: &[&str] = &["memcpy", "memmove", "memset", "pread64", "readlink", "getcwd"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(heapwright_tail_calls)");
    println!("cargo:rustc-check-cfg=cfg(heapwright_bounds)");
    println!("cargo:rustc-check-cfg=cfg(heapwright_reads)");
    println!("cargo:rustc-cfg=heapwright_bounds");
    if matches!(std::env::var("OPT_LEVEL").as_deref(), Ok("2" | "3" | "s" | "z")) {
        println!("cargo:rustc-cfg=heapwright_tail_calls");
    }
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        for arg in ["-soname,libheapwright-hardened.so", "-z,now", "-z,relro", "-z,nodelete"] {
            println!("cargo:rustc-cdylib-link-arg=-Wl,{arg}");
        }
        for name in OWN {
            println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap={name}");
        }
        let folder = std::env::var("CARGO_MANIFEST_DIR").expect("Cargo sets it");
        let order = format!("{folder}/../heapwright-malloc/code_order.ld");
        println!("cargo:rerun-if-changed={order}");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-T,{order}");
    }
}
