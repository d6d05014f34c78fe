//! How `libheapwright-check.so` is linked: as `libheapwright-hardened.so` (see that crate's build script), and with the
//! functions that read:
//!
//! - `cfg(heapwright_reads)`, by which the module `bounds` has the second list of functions.
//! - `--wrap` for those of them that heapwright itself calls.

/// What heapwright itself calls of the interposed functions.
const OWN: &[&str] = &[
    "memcpy", "memmove", "memset", "pread64", "readlink", "getcwd", "memcmp", "bcmp", "memchr",
    "strlen", "strnlen", "wcsnlen", "write", "fwrite",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(heapwright_tail_calls)");
    println!("cargo:rustc-check-cfg=cfg(heapwright_bounds)");
    println!("cargo:rustc-check-cfg=cfg(heapwright_reads)");
    println!("cargo:rustc-cfg=heapwright_bounds");
    println!("cargo:rustc-cfg=heapwright_reads");
    if matches!(std::env::var("OPT_LEVEL").as_deref(), Ok("2" | "3" | "s" | "z")) {
        println!("cargo:rustc-cfg=heapwright_tail_calls");
    }
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        for arg in ["-soname,libheapwright-check.so", "-z,now", "-z,relro", "-z,nodelete"] {
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
