//! How the launcher is linked: with nothing but itself.
//!
//! No start files and no C library: they would triple its resident size and
//! bring a loader that reads `LD_PRELOAD`. A fixed address, so that it starts
//! without relocating itself.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in ["-nostartfiles", "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none"] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}
