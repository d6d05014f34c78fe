//! Links the launcher without any other code.
//!
//! Start files and a C library would triple its resident size, and bring a loader that reads
//! `LD_PRELOAD`. The address is fixed, so the launcher starts without relocating itself.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in ["-nostartfiles", "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none"] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}
