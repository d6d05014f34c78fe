//! With the feature `schedules` the library's sources take their model of threads from shuttle.

fn main() {
    if std::env::var_os("CARGO_FEATURE_SCHEDULES").is_some() {
        println!("cargo::rustc-cfg=loom");
    }
}
