//! rusty_alloc: a Rust crate without C names. The package in `rusty-alloc/`
//! gives it those; Cargo builds it, with the profile of rusty_alloc's own
//! releases (the bench workspace's).

use std::path::Path;

use crate::compile::output;
use crate::peer::Peer;
use crate::registry;

/// Builds it; Cargo knows whether there is anything to do.
pub(crate) fn get(work: &Path) -> Result<Peer, String> {
    let (_, version) = registry::sources("rusty_alloc")?;
    let target = work.join("cargo");
    let mut command = registry::cargo();
    command.args(["build", "--quiet", "--release", "--locked", "-p", "peer-rusty-alloc"]);
    command.arg("--manifest-path").arg(registry::bench_folder().join("Cargo.toml"));
    command.arg("--target-dir").arg(&target);
    // Either would move the library to a folder of the target's name.
    command.env_remove("CARGO_BUILD_TARGET").env_remove("CARGO_TARGET_DIR");
    output(&mut command)?;
    Ok(Peer {
        name: "rusty_alloc",
        environment: Vec::new(),
        library: target.join("release/libpeer_rusty_alloc.so"),
        origin: format!("crate rusty_alloc {version}, C names by bench/peers/rusty-alloc"),
        version,
    })
}
