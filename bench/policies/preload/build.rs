//! Linked as the library that is shipped (crates/heapwright-malloc): every symbol bound
//! when it is loaded, and never unloaded.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        for arg in ["-z,now", "-z,relro", "-z,nodelete"] {
            println!("cargo:rustc-cdylib-link-arg=-Wl,{arg}");
        }
    }
}
