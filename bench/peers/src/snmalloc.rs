//! snmalloc, as `snmalloc-sys` bundles it.
//!
//! The flags and defines are those of the `snmallocshim` target of its CMake
//! files, release build: the fast one, without the checked variants' tests; and
//! those of `snmallocshim-checks`.

use std::path::Path;

use crate::compile;
use crate::peer::Peer;
use crate::registry;

/// The fast one.
pub(crate) fn get(work: &Path) -> Result<Peer, String> {
    build(work, "snmalloc", false)
}

/// The one with all its checks, but for those of `memcpy`, which is no part of malloc.
pub(crate) fn checked(work: &Path) -> Result<Peer, String> {
    build(work, "snmalloc-checks", true)
}

fn build(work: &Path, name: &'static str, checks: bool) -> Result<Peer, String> {
    let (folder, version) = registry::sources("snmalloc-sys")?;
    let root = folder.join("upstream/src");
    let library = work.join(format!("lib{name}.so"));
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
    if checks {
        command.arg("-DSNMALLOC_CHECK_CLIENT");
    }
    command.arg("-I").arg(&root);
    command.arg(root.join("snmalloc/override/malloc.cc"));
    command.arg(root.join("snmalloc/override/new.cc"));
    command.args(["-static-libstdc++", "-latomic"]);
    compile::build(command, &library)?;
    Ok(Peer {
        name,
        environment: Vec::new(),
        library,
        // The crate is numbered as snmalloc is.
        origin: format!("crate snmalloc-sys {version}"),
        version,
    })
}
