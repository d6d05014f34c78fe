//! Builds the preload libraries and the launcher, and puts them inside the command.
//!
//! `cargo install` installs one program and nothing else, so the command must contain the other
//! parts. This script builds `heapwright-malloc`, `heapwright-check` and `heapwright-launcher`,
//! each with a Cargo of its own: one Cargo for all would unite their features.
//! `src/preload/embedded.rs` includes the results.
//!
//! The sources of these parts are in `library/`, so that a registry's package of the command has
//! them. In the repository `library/` has links to the sources, which Cargo follows. A manifest
//! there is called `manifest.toml`, because Cargo leaves each folder with a `Cargo.toml` out of a
//! package. Under `OUT_DIR` the sources become two workspaces:
//!
//! ```text
//! sources/Cargo.toml                     the repository's, from which the manifests inherit
//! sources/crates/heapwright/...          crates that are linked into the parts
//! parts/Cargo.toml                       the repository's; its members are the parts
//! parts/Cargo.lock                       the repository's
//! parts/crates/heapwright-malloc/...     a part; .../heapwright-check, .../bench/launcher
//! nested/                                the target folder
//! ```
//!
//! Cargo resolves all dependencies that a member names, also those of tests and optional ones,
//! which a bare machine does not have. So only the parts are members. Of other projects' crates the
//! libraries need `libc` and `gimli`. This package's manifest names both, so Cargo has downloaded
//! them.
//!
//! `HEAPWRIGHT_EMBED_LIBRARY`, `HEAPWRIGHT_EMBED_CHECK_LIBRARY` and `HEAPWRIGHT_EMBED_LAUNCHER`
//! name parts that a packager has built. If all are set, this script builds nothing.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, exit};

/// A file that the command contains.
struct Part {
    /// The package that Cargo builds, and its folder in the repository.
    package: &'static str,
    folder: &'static str,
    /// The package's target.
    target: &'static str,
    file: &'static str,
    /// The variable that names a file to embed, instead of one built here.
    given: &'static str,
}

const PARTS: [Part; 3] = [
    Part {
        package: "heapwright-malloc",
        folder: "crates/heapwright-malloc",
        target: "--lib",
        file: "libheapwright.so",
        given: "HEAPWRIGHT_EMBED_LIBRARY",
    },
    Part {
        package: "heapwright-check",
        folder: "crates/heapwright-check",
        target: "--lib",
        file: "libheapwright_check.so",
        given: "HEAPWRIGHT_EMBED_CHECK_LIBRARY",
    },
    Part {
        package: "heapwright-launcher",
        folder: "bench/launcher",
        target: "--bins",
        file: "heapwright-launcher",
        given: "HEAPWRIGHT_EMBED_LAUNCHER",
    },
];

const SOURCES: [&str; 8] = [
    "heapwright",
    "heapwright-entry",
    "heapwright-entry-reads",
    "heapwright-gc",
    "heapwright-realm",
    "heapwright-record",
    "heapwright-stacks",
    "heapwright-substrate",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if variable("PROFILE") == "release" {
        // The linker drops debug information, so that an optimised command has a third of the size.
        // Symbols stay if the build asks for debug information. A registry's build does not ask.
        let strip = if variable("DEBUG") == "false" { "--strip-all" } else { "--strip-debug" };
        println!("cargo:rustc-link-arg-bins=-Wl,{strip}");
    }
    let out = PathBuf::from(variable("OUT_DIR"));
    let mut is_laid_out = false;
    let mut all = Vec::new();
    for part in &PARTS {
        println!("cargo:rerun-if-env-changed={}", part.given);
        let file = match env::var_os(part.given).filter(|path| !path.is_empty()) {
            Some(path) => {
                println!("cargo:rerun-if-changed={}", path.display());
                PathBuf::from(path)
            }
            None => {
                if !is_laid_out {
                    lay_out(&PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("library"), &out);
                    is_laid_out = true;
                }
                build(part, &out)
            }
        };
        let bytes = fs::read(&file)
            .unwrap_or_else(|error| fail(&format!("cannot read {}: {error}", file.display())));
        if !bytes.starts_with(b"\x7fELF") {
            fail(&format!("{} is not an ELF file", file.display()));
        }
        write(&out.join(part.file), &bytes);
        all.extend(bytes);
    }
    println!("cargo:rustc-env=HEAPWRIGHT_EMBEDDED_HASH={:016x}", fnv1a(&all));
}

fn lay_out(library: &Path, out: &Path) {
    let workspace = text(&library.join("workspace.toml"));
    let sources = out.join("sources");
    let parts = out.join("parts");
    for folder in [&sources, &parts] {
        if folder.exists() {
            fs::remove_dir_all(folder).unwrap_or_else(|error| {
                fail(&format!("cannot empty {}: {error}", folder.display()))
            });
        }
        make_folder(folder);
    }
    write(&sources.join("Cargo.toml"), workspace.as_bytes());
    write(&parts.join("Cargo.toml"), with_parts(&workspace).as_bytes());
    write(&parts.join("Cargo.lock"), text(&library.join("workspace.lock")).as_bytes());
    for name in SOURCES {
        let folder = format!("crates/{name}");
        link_crate(&library.join(&folder), &sources.join(&folder));
    }
    for part in &PARTS {
        link_crate(&library.join(part.folder), &parts.join(part.folder));
    }
}

/// Returns the repository's manifest for a workspace whose members are the parts, and whose other
/// crates are in `../sources`.
fn with_parts(workspace: &str) -> String {
    let (before, rest) = workspace
        .split_once("\nmembers = [")
        .unwrap_or_else(|| fail("library/workspace.toml names no members"));
    let (_, after) = rest.split_once("\n]").unwrap_or_else(|| fail("the members have no end"));
    let members: Vec<String> = PARTS.iter().map(|part| format!("{:?}", part.folder)).collect();
    let whole = format!("{before}\nmembers = [{}]{after}", members.join(", "));
    whole.replace("path = \"crates/", "path = \"../sources/crates/")
}

fn link_crate(from: &Path, to: &Path) {
    make_folder(to);
    let entries = fs::read_dir(from)
        .unwrap_or_else(|error| fail(&format!("cannot read {}: {error}", from.display())));
    for entry in entries {
        let entry = entry.unwrap_or_else(|error| fail(&format!("{}: {error}", from.display())));
        let name = entry.file_name();
        if name == "manifest.toml" {
            write(&to.join("Cargo.toml"), text(&entry.path()).as_bytes());
            continue;
        }
        let source = entry.path().canonicalize().unwrap_or_else(|error| {
            fail(&format!("cannot find {}: {error}", entry.path().display()))
        });
        println!("cargo:rerun-if-changed={}", source.display());
        symlink(&source, to.join(&name))
            .unwrap_or_else(|error| fail(&format!("cannot link {}: {error}", source.display())));
    }
}

/// Builds a part for the target. Returns its path.
///
/// The nested build must not share with the outer one:
/// - the target and build directories: the outer Cargo holds their locks while it waits for this
///   script, so the nested one works under `OUT_DIR`;
/// - the package's environment (`CARGO_PKG_*`, `CARGO_CFG_*`, ...) and compiler wrappers such as
///   clippy's, which describe the outer build;
/// - flags for a command, but not for a library without `std` that is loaded into foreign programs:
///   coverage, sanitizers, a static C runtime, loom.
///
/// The nested build does share the lock file, the downloaded crates, the job server and the user's
/// remaining flags (`-C target-cpu=...`).
fn build(part: &Part, out: &Path) -> PathBuf {
    let target = variable("TARGET");
    let target = target.to_string_lossy();
    let folder = out.join("parts").join(part.folder);
    let work = out.join("nested");
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        // From this folder Cargo finds a checkout's `.cargo/config.toml`, which may name the folder
        // of the crates.
        .current_dir(variable("CARGO_MANIFEST_DIR"))
        .args(["build", "--release", part.target, "--package", part.package])
        .arg("--manifest-path")
        .arg(folder.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&work)
        .args(["--target", &target])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut flags = nested_flags(env::var("CARGO_ENCODED_RUSTFLAGS"));
    if target.contains("-musl") {
        // For musl, Rust links statically by default. Programs load the libraries dynamically, and
        // the launcher has start code of its own.
        let is_library = part.target == "--lib";
        flags.extend(
            [
                "-C",
                if is_library { "target-feature=-crt-static" } else { "link-self-contained=no" },
            ]
            .map(String::from),
        );
    }
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(describes_outer_build) {
            cargo.env_remove(&name);
        }
    }
    cargo
        // The symbols stay, because reports leave out our frames by their names.
        .env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo")
        .env("CARGO_BUILD_BUILD_DIR", &work)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    match cargo.status() {
        Ok(status) if status.success() => work.join(&*target).join("release").join(part.file),
        Ok(_) => fail(&format!("{} does not build; see above", part.package)),
        Err(error) => fail(&format!("cannot run cargo: {error}")),
    }
}

/// Returns whether a variable describes the outer build, and would mislead a nested Cargo. The
/// user's own settings (`CARGO_HOME`, `CARGO_TARGET_<TRIPLE>_LINKER`, ...) and the job server stay.
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

/// Returns the outer build's compiler flags, without those that do not suit a preload library or a
/// program without a C library.
fn nested_flags(encoded: Result<String, env::VarError>) -> Vec<String> {
    let encoded = encoded.unwrap_or_default();
    let mut kept = Vec::new();
    let mut flags = encoded.split('\x1f').filter(|flag| !flag.is_empty());
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
            kept.push(flag.to_string());
            kept.extend(argument.map(String::from));
        }
    }
    kept
}

/// Reads a file. Cargo runs this script again if the file changes.
fn text(path: &Path) -> String {
    println!("cargo:rerun-if-changed={}", path.display());
    fs::read_to_string(path)
        .unwrap_or_else(|error| fail(&format!("cannot read {}: {error}", path.display())))
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes)
        .unwrap_or_else(|error| fail(&format!("cannot write {}: {error}", path.display())));
}

fn make_folder(path: &Path) {
    fs::create_dir_all(path)
        .unwrap_or_else(|error| fail(&format!("cannot make {}: {error}", path.display())));
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
