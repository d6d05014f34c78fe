//! Builds the preload libraries and the launcher and puts them inside the command.
//!
//! `cargo install` installs one program and nothing else, so what is to be
//! there after one install step has to travel inside it. This script builds
//! `heapwright-malloc`, `heapwright-check` and `heapwright-launcher`, each with a Cargo of its own
//! (one for all would unite their features), and leaves the results where
//! `src/preload/embedded.rs` includes them from.
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
//! A packager who has built them already sets `HEAPWRIGHT_EMBED_LIBRARY`, `HEAPWRIGHT_EMBED_CHECK_LIBRARY` and
//! `HEAPWRIGHT_EMBED_LAUNCHER` to their paths, and nothing is built here.
//!
//! The library for `check` travels without debug information: it is as large as all the rest of it, and the frames that it
//! would name are left out of stacks.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, exit};

/// Something that travels inside the command.
struct Part {
    /// The package it is built from, and its folder in the repository.
    package: &'static str,
    folder: &'static str,
    /// What Cargo is to build of the package.
    target: &'static str,
    /// The file's name, in Cargo's folder and in ours.
    file: &'static str,
    /// The variable that names one to embed instead of building it.
    given: &'static str,
    /// Whether its debug information stays behind.
    is_bare: bool,
}

const PARTS: [Part; 3] = [
    Part {
        package: "heapwright-malloc",
        folder: "crates/heapwright-malloc",
        target: "--lib",
        file: "libheapwright.so",
        given: "HEAPWRIGHT_EMBED_LIBRARY",
        is_bare: false,
    },
    Part {
        package: "heapwright-check",
        folder: "crates/heapwright-check",
        target: "--lib",
        file: "libheapwright_check.so",
        given: "HEAPWRIGHT_EMBED_CHECK_LIBRARY",
        is_bare: true,
    },
    Part {
        package: "heapwright-launcher",
        folder: "bench/launcher",
        target: "--bins",
        file: "heapwright-launcher",
        given: "HEAPWRIGHT_EMBED_LAUNCHER",
        is_bare: false,
    },
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(variable("OUT_DIR"));
    let mut all = Vec::new();
    for part in &PARTS {
        println!("cargo:rerun-if-env-changed={}", part.given);
        let file = match env::var_os(part.given).filter(|path| !path.is_empty()) {
            Some(path) => {
                println!("cargo:rerun-if-changed={}", path.display());
                PathBuf::from(path)
            }
            None => build(part, &out),
        };
        let bytes = fs::read(&file)
            .unwrap_or_else(|error| fail(&format!("cannot read {}: {error}", file.display())));
        if !bytes.starts_with(b"\x7fELF") {
            fail(&format!("{} is not an ELF file", file.display()));
        }
        fs::write(out.join(part.file), &bytes)
            .unwrap_or_else(|error| fail(&format!("cannot write {}: {error}", part.file)));
        all.extend(bytes);
    }
    println!("cargo:rustc-env=HEAPWRIGHT_EMBEDDED_HASH={:016x}", fnv1a(&all));
}

/// Builds a part for the target and says where it is.
fn build(part: &Part, out: &Path) -> PathBuf {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().nth(2).unwrap_or_else(|| fail("the crate has no parent folder"));
    let folder = root.join(part.folder);
    if !folder.join("Cargo.toml").is_file() {
        fail(&format!(
            "the sources of {} are not in {}; build from a checkout of the repository, or set {} \
             to a built {}",
            part.package,
            folder.display(),
            part.given,
            part.file
        ));
    }
    for name in ["", "-entry", "-entry-reads", "-gc", "-malloc", "-record", "-stacks", "-substrate"]
    {
        watch_crate(&root.join(format!("crates/heapwright{name}")));
    }
    watch_crate(&folder);
    for name in ["Cargo.toml", "Cargo.lock", ".cargo"] {
        watch(&root.join(name));
    }

    let target = variable("TARGET");
    let target = target.to_string_lossy();
    let work = out.join("nested");
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .current_dir(&folder)
        .args(["build", "--release", part.target, "--package", part.package])
        .arg("--manifest-path")
        .arg(folder.join("Cargo.toml"))
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
    if part.is_bare {
        cargo.env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo");
    }
    cargo
        .env("CARGO_BUILD_BUILD_DIR", &work)
        .env("CARGO_ENCODED_RUSTFLAGS", nested_flags(env::var("CARGO_ENCODED_RUSTFLAGS")));
    match cargo.status() {
        Ok(status) if status.success() => work.join(&*target).join("release").join(part.file),
        Ok(_) => fail(&format!("{} does not build; see above", part.package)),
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

/// The outer build's compiler flags without those a preload library or a
/// program without a C library cannot be built with.
fn nested_flags(encoded: Result<String, env::VarError>) -> String {
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
