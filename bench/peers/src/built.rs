//! Peers that are compiled here, most of them from sources in crates of Cargo's registry. Flags,
//! defines and lists of sources are those of the projects' release builds; exceptions are named.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compile::{self, output};
use crate::peer::Peer;
use crate::registry;

fn library(
    work: &Path,
    name: &'static str,
    command: Command,
    version: String,
    origin: String,
) -> Result<Peer, String> {
    let library = work.join(format!("lib{name}.so"));
    compile::build(command, &library)?;
    Ok(Peer { name, environment: Vec::new(), library, version, origin })
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

// --- mimalloc, v3 and v2: the shared library of its CMake files, default options ---

/// The compilation units of both versions. They include the other files of `src`.
const MIMALLOC: &str = "alloc alloc-aligned alloc-posix arena bitmap heap init libc options os page \
                        random stats prim/prim";
const MIMALLOC_V3: &str = "arena-meta page-map theap threadlocal";
const MIMALLOC_V2: &str = "segment segment-map";

/// Builds mimalloc. `branch` is "v3" or "v2", and `secure` is the level of its mitigations
/// (`MI_SECURE=ON` in its CMake files).
pub(crate) fn mimalloc(
    work: &Path,
    name: &'static str,
    branch: &str,
    secure: Option<u32>,
) -> Result<Peer, String> {
    let (folder, crate_version) = registry::sources("libmimalloc-sys")?;
    let root = folder.join("c_src/mimalloc").join(branch);
    let mut command = compile::c();
    command.args(["-O3", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-w"]);
    command.args(["-ftls-model=initial-exec", "-fno-builtin-malloc"]);
    command.args(["-DMI_SHARED_LIB", "-DMI_SHARED_LIB_EXPORT", "-DMI_MALLOC_OVERRIDE"]);
    command.args(["-DMI_BUILD_RELEASE", "-DMI_CMAKE_BUILD_TYPE=release"]);
    if let Some(level) = secure {
        command.arg(format!("-DMI_SECURE={level}"));
    }
    if cfg!(target_arch = "aarch64") {
        // mimalloc's default for this processor: fast atomics.
        command.arg("-march=armv8.1-a");
    }
    command.arg("-I").arg(root.join("include"));
    let own = if branch == "v3" { MIMALLOC_V3 } else { MIMALLOC_V2 };
    let files = MIMALLOC.split_whitespace().chain(own.split_whitespace());
    command.args(files.map(|file| root.join(format!("src/{file}.c"))));
    command.args(["-lpthread", "-lrt"]);
    let header = root.join("include/mimalloc.h");
    let version = mimalloc_version(&read(&header)?);
    let version = version.ok_or_else(|| format!("{}: no version", header.display()))?;
    library(work, name, command, version, format!("crate libmimalloc-sys {crate_version}"))
}

fn mimalloc_version(header: &str) -> Option<String> {
    let line = header.lines().find_map(|l| l.strip_prefix("#define MI_MALLOC_VERSION"))?;
    let digits: u32 = line.split_whitespace().next()?.parse().ok()?;
    Some(format!("{}.{}.{}", digits / 10000, digits / 100 % 100, digits % 100))
}

// --- snmalloc ---

/// Builds snmalloc: the `snmallocshim` target of its CMake files, the fast one.
/// `snmallocshim-checks` has all checks except those of `memcpy`, which is no part of malloc.
pub(crate) fn snmalloc(work: &Path, name: &'static str, checks: bool) -> Result<Peer, String> {
    let (folder, version) = registry::sources("snmalloc-sys")?;
    let root = folder.join("upstream/src");
    let mut command = compile::cxx();
    command.args(["-std=gnu++20", "-O3", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden"]);
    command.args(["-fno-rtti", "-fomit-frame-pointer", "-ftls-model=initial-exec"]);
    command.args(["-ffunction-sections", "-w"]);
    if cfg!(target_arch = "x86_64") {
        command.args(["-mcx16", "-mprfchw"]);
    }
    command.args([
        "-DMALLOC_USABLE_SIZE_QUALIFIER=const",
        "-DSNMALLOC_CHECK_LOADS=false",
        "-DSNMALLOC_EXPORT=__attribute__((visibility(\"default\")))",
        "-DSNMALLOC_HAS_LINUX_FUTEX_H",
        "-DSNMALLOC_HAS_LINUX_RANDOM_H",
        "-DSNMALLOC_NO_REALLOCARR",
        "-DSNMALLOC_NO_REALLOCARRAY",
        "-DSNMALLOC_PAGEID=false",
        "-DSNMALLOC_PLATFORM_HAS_GETENTROPY",
        "-DSNMALLOC_PTHREAD_ATFORK_WORKS",
        "-DSNMALLOC_USE_CXX11_THREAD_ATEXIT_DIRECT",
        "-DSNMALLOC_USE_WAIT_ON_ADDRESS=1",
    ]);
    command.args(checks.then_some("-DSNMALLOC_CHECK_CLIENT"));
    command.arg("-I").arg(&root);
    command.args(["malloc.cc", "new.cc"].map(|file| root.join("snmalloc/override").join(file)));
    command.args(["-static-libstdc++", "-latomic"]);
    let origin = format!("crate snmalloc-sys {version}");
    library(work, name, command, version, origin)
}

// --- rpmalloc ---

/// Builds rpmalloc: the `rpmallocwrap` shared library of its own build, without `-ffast-math`. With
/// that flag gcc links a start-up file that turns off denormal numbers in the whole process.
pub(crate) fn rpmalloc(work: &Path) -> Result<Peer, String> {
    let (folder, crate_version) = registry::sources("rpmalloc-sys")?;
    let root = folder.join("rpmalloc");
    let mut command = compile::c();
    command.args(["-std=c11", "-O3", "-g", "-funroll-loops", "-fstrict-aliasing"]);
    command.args(["-fPIC", "-shared", "-pthread", "-w"]);
    command.args(["-D_GNU_SOURCE=1", "-DRPMALLOC_COMPILE=1", "-DBUILD_RELEASE=1"]);
    command.args(["-DENABLE_PRELOAD=1", "-DENABLE_OVERRIDE=1"]);
    command.arg("-I").arg(root.join("rpmalloc"));
    command.arg(root.join("rpmalloc/rpmalloc.c")).arg("-ldl");
    // The change log has the version, and the crate's version names the commit.
    let log = read(&root.join("CHANGELOG"))?;
    let entry = log.lines().next().unwrap_or("?").trim();
    let commit = crate_version.split_once('+').map_or("?", |(_, commit)| commit);
    let version = format!("{entry}, commit {commit}");
    library(work, "rpmalloc", command, version, format!("crate rpmalloc-sys {crate_version}"))
}

// --- hardened_malloc of GrapheneOS ---

/// Builds hardened_malloc in one of its configurations, `config/*.mk`.
///
/// No registry has its sources: `HARDENED_MALLOC` names a checkout of
/// <https://github.com/GrapheneOS/hardened_malloc>. Flags come from its Makefile, without
/// `-march=native`. Headers define C23's words if the compiler lacks them.
pub(crate) fn hardened_malloc(
    work: &Path,
    name: &'static str,
    configuration: &str,
) -> Result<Peer, String> {
    let root: PathBuf = std::env::var_os("HARDENED_MALLOC")
        .ok_or("HARDENED_MALLOC does not name a checkout of github.com/GrapheneOS/hardened_malloc")?
        .into();
    let defines = hardened_defines(&read(&root.join(format!("config/{configuration}.mk")))?);
    let shared = |command: &mut Command| {
        command.args(["-D_GNU_SOURCE", "-pipe", "-O3", "-flto", "-fPIC", "-w"]);
        command.args(["-fvisibility=hidden", "-fno-plt", "-fstack-clash-protection"]);
        command.arg("-fstack-protector-strong");
        command.args(cfg!(target_arch = "x86_64").then_some("-fcf-protection"));
        command.arg(format!("-I{}", root.join("include").display())).args(&defines);
    };
    let operators = work.join(format!("{name}-new.o"));
    let mut command = compile::cxx();
    command.args(["-std=c++17", "-fsized-deallocation", "-c"]);
    shared(&mut command);
    command.arg(root.join("new.cc"));
    compile::build(command, &operators)?;

    let mut command = compile::c();
    command.arg("-std=c2x");
    for header in ["stdalign.h", "stdbool.h", "assert.h"] {
        command.args(["-include", header]);
    }
    shared(&mut command);
    let sources = ["chacha", "h_malloc", "memory", "pages", "random", "util"];
    command.args(sources.map(|source| root.join(format!("{source}.c"))));
    command.arg(operators).args(["-lstdc++", "-shared"]);
    command.arg("-Wl,-O1,--as-needed,-z,defs,-z,relro,-z,now,-z,nodlopen,-z,text");
    let mut git = Command::new("git");
    git.arg("-C").arg(&root).args(["log", "-1", "--format=%h of %cs"]);
    let version = output(&mut git).map_or("unknown".to_owned(), |text| text.trim().to_owned());
    let origin = format!("GitHub, GrapheneOS/hardened_malloc, configuration {configuration}");
    library(work, name, command, version, origin)
}

/// Returns the defines of a configuration, as the project's Makefile makes them. For example,
/// `CONFIG_SLAB_CANARY := true` is `-DSLAB_CANARY=true`. Names in `WHOLE` keep `CONFIG_`.
fn hardened_defines(configuration: &str) -> Vec<String> {
    const WHOLE: [&str; 7] = [
        "SEAL_METADATA",
        "EXTENDED_SIZE_CLASSES",
        "LARGE_SIZE_CLASSES",
        "CLASS_REGION_SIZE",
        "STATS",
        "SELF_INIT",
        "LABEL_MEMORY",
    ];
    const OF_THE_BUILD: [&str; 4] = ["WERROR", "NATIVE", "CXX_ALLOCATOR", "UBSAN"];
    let define = |line: &str| {
        let (name, value) = line.strip_prefix("CONFIG_")?.split_once(":=")?;
        let (name, value) = (name.trim(), value.split('#').next()?.trim());
        let first = if WHOLE.contains(&name) { "CONFIG_" } else { "" };
        (!OF_THE_BUILD.contains(&name)).then(|| format!("-D{first}{name}={value}"))
    };
    configuration.lines().filter_map(define).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_says_the_version() {
        let header = "#pragma once\n#define MI_MALLOC_VERSION 30302   // major\n";
        assert_eq!(mimalloc_version(header).as_deref(), Some("3.3.2"));
        assert_eq!(mimalloc_version("nothing"), None);
    }

    #[test]
    fn a_configuration_is_read_as_its_makefile_does() {
        let text = "CONFIG_WERROR := true\nCONFIG_SLAB_CANARY := true\nCONFIG_STATS := false\n\
            CONFIG_REGION_QUARANTINE_SKIP_THRESHOLD := 33554432 # 32MiB\n# a remark\n";
        let expected = [
            "-DSLAB_CANARY=true",
            "-DCONFIG_STATS=false",
            "-DREGION_QUARANTINE_SKIP_THRESHOLD=33554432",
        ];
        assert_eq!(hardened_defines(text), expected);
    }
}
