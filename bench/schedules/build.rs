//! The library's sources take their model of threads from here: see `src/main.rs`.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(loom)");
    println!("cargo::rustc-check-cfg=cfg(feature, values(\"debug\"))");
    println!("cargo::rustc-cfg=loom");
}
