//! snmalloc, as `snmalloc-sys` bundles it.
//!
//! The flags and defines are those of the `snmallocshim` target of its CMake
//! files, release build: the fast one, without the checked variants' tests.

use std::path::Path;

use crate::compile;
use crate::peer::Peer;
use crate::registry;

/// Compiles it.
pub(crate) fn get(work: &Path) -> Result<Peer, String> {
    let (folder, version) = registry::sources("snmalloc-sys")?;
    let root = folder.join("upstream/src");
    let library = work.join("libsnmalloc.so");
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
    command.arg("-I").arg(&root);
    command.arg(root.join("snmalloc/override/malloc.cc"));
    command.arg(root.join("snmalloc/override/new.cc"));
    command.args(["-static-libstdc++", "-latomic"]);
    compile::build(command, &library)?;
    Ok(Peer {
        name: "snmalloc",
        environment: Vec::new(),
        library,
        // The crate is numbered as snmalloc is.
        origin: format!("crate snmalloc-sys {version}"),
        version,
    })
}
