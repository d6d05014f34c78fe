//! How the shared library is linked.
//!
//! - The soname carries no version while the interface is unfinished: a program
//!   linked with `-lheapwright` finds the library under the one name it has.
//! - `now` and `relro`: every symbol is bound when the library is loaded and the
//!   tables are then made read-only. A lazy binding inside malloc would run the
//!   dynamic linker's resolver, and take its locks, in the middle of an
//!   allocation.
//! - `nodelete`: blocks, thread destructors and fork handlers outlive any
//!   `dlclose` of the library.
//!
//! - What programs run at their start lies side by side, and the debug heap apart (code_order.ld).
//!
//! And whether the compiler turns a call at a function's end into a jump, which
//! it does where it optimises: the C++ operators depend on it (src/cxx.rs).

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(heapwright_tail_calls)");
    // Set by heapwright-hardened alone, which builds these sources with their module `bounds`.
    println!("cargo:rustc-check-cfg=cfg(heapwright_bounds)");
    println!("cargo:rustc-check-cfg=cfg(heapwright_reads)");
    if matches!(std::env::var("OPT_LEVEL").as_deref(), Ok("2" | "3" | "s" | "z")) {
        println!("cargo:rustc-cfg=heapwright_tail_calls");
    }
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        for arg in ["-soname,libheapwright.so", "-z,now", "-z,relro", "-z,nodelete"] {
            println!("cargo:rustc-cdylib-link-arg=-Wl,{arg}");
        }
        let folder = std::env::var("CARGO_MANIFEST_DIR").expect("Cargo sets it");
        println!("cargo:rerun-if-changed=code_order.ld");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-T,{folder}/code_order.ld");
    }
}
