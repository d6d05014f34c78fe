//! Builds the preload library and puts it inside the command.
//!
//! `cargo install` installs programs and nothing else, so a library that is to
//! be there after one install step has to travel inside the program. This
//! script builds `heapwright-malloc` with a Cargo of its own and leaves the
//! result where `src/preload/embedded.rs` includes it from.
//!
//! What the nested build must not share with the outer one:
//! - the target and build directories: the outer Cargo holds their locks while
//!   it waits for us, so the nested one works under `OUT_DIR`;
//! - the package's environment (`CARGO_PKG_*`, `CARGO_CFG_*`, ...) and compiler
//!   wrappers such as clippy's, which describe the outer build;
//! - flags that make sense for a command but not for a library without `std`
//!   that is loaded into foreign programs: coverage, sanitizers, a static C
//!   runtime, loom.
//!
//! It does share the lock file, the downloaded crates, the job server and the
//! user's remaining flags (`-C target-cpu=...`).
//!
//! A packager who has built the library already sets `HEAPWRIGHT_EMBED_LIBRARY`
//! to its path, and nothing is built here.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, exit};

/// The file `src/preload/embedded.rs` includes.
const LIBRARY: &str = "libheapwright.so";

/// The variable that names a library to embed instead of building one.
const GIVEN: &str = "HEAPWRIGHT_EMBED_LIBRARY";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={GIVEN}");
    let out = PathBuf::from(variable("OUT_DIR"));
    let library = match env::var_os(GIVEN).filter(|path| !path.is_empty()) {
        Some(path) => {
            println!("cargo:rerun-if-changed={}", path.display());
            PathBuf::from(path)
        }
        None => build(&out),
    };
    let bytes = fs::read(&library)
        .unwrap_or_else(|error| fail(&format!("cannot read {}: {error}", library.display())));
    if !bytes.starts_with(b"\x7fELF") {
        fail(&format!("{} is not an ELF library", library.display()));
    }
    fs::write(out.join(LIBRARY), &bytes)
        .unwrap_or_else(|error| fail(&format!("cannot write the library: {error}")));
    println!("cargo:rustc-env=HEAPWRIGHT_LIBRARY_HASH={:016x}", fnv1a(&bytes));
}

/// Builds `heapwright-malloc` for the target and says where the library is.
fn build(out: &Path) -> PathBuf {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let crates = here.parent().unwrap_or_else(|| fail("the crate has no parent folder"));
    let malloc = crates.join("heapwright-malloc");
    if !malloc.join("Cargo.toml").is_file() {
        fail(&format!(
            "the sources of the preload library are not in {}; build from a checkout of the \
             repository, or set {GIVEN} to a built {LIBRARY}",
            malloc.display()
        ));
    }
    for name in ["heapwright", "heapwright-malloc", "heapwright-record"] {
        watch_crate(&crates.join(name));
    }
    if let Some(root) = crates.parent() {
        for name in ["Cargo.toml", "Cargo.lock", ".cargo"] {
            watch(&root.join(name));
        }
    }

    let target = variable("TARGET");
    let target = target.to_string_lossy();
    let work = out.join("library");
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .current_dir(&malloc)
        .args(["build", "--release", "--lib", "--package", "heapwright-malloc"])
        .arg("--manifest-path")
        .arg(malloc.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&work)
        .args(["--target", &target])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(describes_outer_build) {
            cargo.env_remove(&name);
        }
    }
    cargo
        .env("CARGO_BUILD_BUILD_DIR", &work)
        .env("CARGO_ENCODED_RUSTFLAGS", library_flags(env::var("CARGO_ENCODED_RUSTFLAGS")));
    match cargo.status() {
        Ok(status) if status.success() => work.join(&*target).join("release").join(LIBRARY),
        Ok(_) => fail("the preload library (heapwright-malloc) does not build; see above"),
        Err(error) => fail(&format!("cannot run cargo: {error}")),
    }
}

/// Whether a variable belongs to the outer build and would mislead a nested
/// Cargo. The user's own settings (`CARGO_HOME`, `CARGO_NET_OFFLINE`,
/// `CARGO_TARGET_<TRIPLE>_LINKER`, ...) and the job server stay.
fn describes_outer_build(name: &str) -> bool {
    const PREFIXES: [&str; 5] =
        ["CARGO_CFG_", "CARGO_FEATURE_", "CARGO_MANIFEST_", "CARGO_PKG_", "DEP_"];
    const NAMES: [&str; 19] = [
        "CARGO",
        "CARGO_BIN_NAME",
        "CARGO_BUILD_RUSTFLAGS",
        "CARGO_BUILD_TARGET",
        "CARGO_CRATE_NAME",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_PRIMARY_PACKAGE",
        "CARGO_TARGET_DIR",
        "CLIPPY_ARGS",
        "CLIPPY_CONF_DIR",
        "DEBUG",
        "HOST",
        "NUM_JOBS",
        "OPT_LEVEL",
        "OUT_DIR",
        "PROFILE",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTFLAGS",
        "TARGET",
    ];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The outer build's compiler flags without those a preload library cannot
/// be built with.
fn library_flags(encoded: Result<String, env::VarError>) -> String {
    const SEPARATOR: char = '\x1f';
    let encoded = encoded.unwrap_or_default();
    let mut kept: Vec<&str> = Vec::new();
    let mut flags = encoded.split(SEPARATOR).filter(|flag| !flag.is_empty());
    while let Some(flag) = flags.next() {
        let (value, argument) = match flag {
            "-C" | "-Z" | "--codegen" | "--cfg" => match flags.next() {
                Some(argument) => (argument, Some(argument)),
                None => (flag, None),
            },
            _ => (
                flag.trim_start_matches("-C")
                    .trim_start_matches("-Z")
                    .trim_start_matches("--codegen=")
                    .trim_start_matches("--cfg="),
                None,
            ),
        };
        let unfit = value.starts_with("instrument-coverage")
            || value.starts_with("profile-generate")
            || value.starts_with("sanitizer")
            || value.contains("+crt-static")
            || value == "loom";
        if !unfit {
            kept.push(flag);
            kept.extend(argument);
        }
    }
    kept.join(&SEPARATOR.to_string())
}

/// Asks Cargo to run this script again when what a crate is built from changes.
fn watch_crate(folder: &Path) {
    for name in ["Cargo.toml", "build.rs", "src"] {
        watch(&folder.join(name));
    }
}

/// Only what exists: Cargo takes a missing path for one that always changed.
fn watch(path: &Path) {
    if path.exists() {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}

fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_else(|| fail(&format!("cargo did not set {name}")))
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn fail(message: &str) -> ! {
    eprintln!("heapwright-cli: {message}");
    exit(1)
}
