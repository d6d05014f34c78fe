//! rpmalloc, as `rpmalloc-sys` bundles it.
//!
//! The flags and defines are those of the `rpmallocwrap` shared library in its
//! own build, release configuration. One group is left out: its build passes
//! `-ffast-math`, and gcc then links a start-up file that switches denormal
//! numbers off in the whole process. rpmalloc computes nothing with floating
//! point, and the programs in the race must compute what they always do.

use std::path::Path;

use crate::compile;
use crate::peer::Peer;
use crate::registry;

/// Compiles it.
pub(crate) fn get(work: &Path) -> Result<Peer, String> {
    let (folder, crate_version) = registry::sources("rpmalloc-sys")?;
    let root = folder.join("rpmalloc");
    let library = work.join("librpmalloc.so");
    let mut command = compile::c();
    command.args(["-std=c11", "-O3", "-g", "-funroll-loops", "-fstrict-aliasing"]);
    command.args(["-fPIC", "-shared", "-pthread", "-w"]);
    command.args(["-D_GNU_SOURCE=1", "-DRPMALLOC_COMPILE=1", "-DBUILD_RELEASE=1"]);
    command.args(["-DENABLE_PRELOAD=1", "-DENABLE_OVERRIDE=1"]);
    command.arg("-I").arg(root.join("rpmalloc"));
    command.arg(root.join("rpmalloc/rpmalloc.c")).arg("-ldl");
    compile::build(command, &library)?;
    // Its sources carry no number; the change log's newest entry does, and the
    // crate's version names the commit.
    let log = root.join("CHANGELOG");
    let text = std::fs::read_to_string(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let entry = text.lines().next().unwrap_or("?").trim();
    let commit = crate_version.split_once('+').map_or("?", |(_, commit)| commit);
    Ok(Peer {
        name: "rpmalloc",
        environment: Vec::new(),
        library,
        version: format!("{entry}, commit {commit}"),
        origin: format!("crate rpmalloc-sys {crate_version}"),
    })
}
