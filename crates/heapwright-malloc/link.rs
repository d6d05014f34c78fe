//! How the shared libraries of these sources are linked: libheapwright.so, and the libraries with
//! the module `bounds`. This is a module of their build scripts.
//!
//! - The soname carries no version while the interface is unfinished. A program linked with
//!   `-lheapwright` finds the library under its one name.
//! - `now` and `relro`: every symbol is bound when the library is loaded, and the tables are then
//!   made read-only. A lazy binding inside malloc would run the dynamic linker's resolver, and take
//!   its locks, in the middle of an allocation.
//! - `nodelete`: blocks, thread destructors and fork handlers outlive any `dlclose` of the library.
//! - `--wrap`: heapwright's own calls of the functions that the library interposes skip the checks
//!   (see heapwright-entry).
//! - The code of a program's start lies together, apart from the debug heap's (code_order.ld).
//!
//! The script also tells the code whether the compiler turns a call at a function's end into a
//! jump, as it does when it optimises. The C++ operators depend on that (src/cxx.rs).

pub(crate) struct Library {
    pub(crate) soname: &'static str,
    /// The folder of the sources, relative to the package.
    pub(crate) sources: &'static str,
    /// The interposed functions that heapwright itself calls.
    pub(crate) own: &'static [&'static str],
    /// Parts of the sources, each switched on by a cfg.
    pub(crate) parts: &'static [&'static str],
}

pub(crate) fn link(library: &Library) {
    let Library { soname, sources, own, parts } = *library;
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={sources}/link.rs");
    for cfg in ["heapwright_tail_calls", "heapwright_bounds", "heapwright_reads"] {
        println!("cargo:rustc-check-cfg=cfg({cfg})");
    }
    let optimises = matches!(std::env::var("OPT_LEVEL").as_deref(), Ok("2" | "3" | "s" | "z"));
    for cfg in parts.iter().chain(optimises.then_some(&"heapwright_tail_calls")) {
        println!("cargo:rustc-cfg={cfg}");
    }
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        for arg in [&*format!("-soname,{soname}"), "-z,now", "-z,relro", "-z,nodelete"] {
            println!("cargo:rustc-cdylib-link-arg=-Wl,{arg}");
        }
        // No other setting makes a library without std need musl. Without it, musl's loader would
        // give the library no functions if the program lacks musl.
        if std::env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("musl") {
            println!("cargo:rustc-cdylib-link-arg=-lc");
        }
        for name in own {
            println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap={name}");
        }
        let folder = std::env::var("CARGO_MANIFEST_DIR").expect("Cargo sets it");
        let order = format!("{folder}/{sources}/code_order.ld");
        println!("cargo:rerun-if-changed={order}");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-T,{order}");
    }
}
