//! mimalloc, v3 and v2: `libmimalloc-sys` bundles both.
//!
//! The flags, defines and lists of sources are those of the shared library in
//! mimalloc's own CMake files, release build, default options.

use std::path::Path;

use crate::compile;
use crate::peer::Peer;
use crate::registry;

/// Each a unit of its own; what else lies in `src` is included by these.
const COMMON: [&str; 12] = [
    "alloc",
    "alloc-aligned",
    "alloc-posix",
    "arena",
    "bitmap",
    "heap",
    "init",
    "libc",
    "options",
    "os",
    "page",
    "random",
];
const V3: [&str; 6] = ["arena-meta", "page-map", "stats", "theap", "threadlocal", "prim/prim"];

/// v3 with its defaults: it asks for huge pages where the machine allows it.
pub(crate) fn v3(work: &Path) -> Result<Peer, String> {
    build(work, "mimalloc", "v3", &V3, None)
}

/// v3 with its mitigations (`MI_SECURE=ON` of its CMake files).
pub(crate) fn v3_secure(work: &Path) -> Result<Peer, String> {
    build(work, "mimalloc-secure", "v3", &V3, Some(4))
}

/// v3 with huge pages off for the whole process (`allow_thp` of its options).
pub(crate) fn v3_no_thp(work: &Path) -> Result<Peer, String> {
    Ok(v3(work)?.variant("mimalloc-no-thp", "MIMALLOC_ALLOW_THP", "0"))
}

/// v2 with its defaults.
pub(crate) fn v2(work: &Path) -> Result<Peer, String> {
    build(work, "mimalloc2", "v2", &["segment", "segment-map", "stats", "prim/prim"], None)
}

fn build(
    work: &Path,
    name: &'static str,
    branch: &str,
    files: &[&str],
    secure: Option<u32>,
) -> Result<Peer, String> {
    let (folder, crate_version) = registry::sources("libmimalloc-sys")?;
    let root = folder.join("c_src/mimalloc").join(branch);
    let library = work.join(format!("lib{name}.so"));
    let mut command = compile::c();
    command.args(["-O3", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-w"]);
    command.args(["-ftls-model=initial-exec", "-fno-builtin-malloc"]);
    command.args(["-DMI_SHARED_LIB", "-DMI_SHARED_LIB_EXPORT", "-DMI_MALLOC_OVERRIDE"]);
    command.args(["-DMI_BUILD_RELEASE", "-DMI_CMAKE_BUILD_TYPE=release"]);
    if let Some(level) = secure {
        command.arg(format!("-DMI_SECURE={level}"));
    }
    if cfg!(target_arch = "aarch64") {
        // Its default there: fast atomics.
        command.arg("-march=armv8.1-a");
    }
    command.arg("-I").arg(root.join("include"));
    for file in COMMON.iter().chain(files) {
        command.arg(root.join(format!("src/{file}.c")));
    }
    command.args(["-lpthread", "-lrt"]);
    compile::build(command, &library)?;
    Ok(Peer {
        name,
        environment: Vec::new(),
        library,
        version: version(&root.join("include/mimalloc.h"))?,
        origin: format!("crate libmimalloc-sys {crate_version}"),
    })
}

/// The version its header states.
fn version(header: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(header).map_err(|e| format!("{}: {e}", header.display()))?;
    number(&text).ok_or_else(|| format!("{}: no MI_MALLOC_VERSION", header.display()))
}

/// `#define MI_MALLOC_VERSION 30302`: major, two digits of minor, two of patch.
fn number(header: &str) -> Option<String> {
    let line = header.lines().find_map(|l| l.strip_prefix("#define MI_MALLOC_VERSION"))?;
    let digits: u32 = line.split_whitespace().next()?.parse().ok()?;
    Some(format!("{}.{}.{}", digits / 10000, digits / 100 % 100, digits % 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_says_the_version() {
        let header = "#pragma once\n#define MI_MALLOC_VERSION 30302   // major\n";
        assert_eq!(number(header).as_deref(), Some("3.3.2"));
        assert_eq!(number("#define MI_MALLOC_VERSION 20304"), Some("2.3.4".to_owned()));
        assert_eq!(number("nothing"), None);
    }
}
