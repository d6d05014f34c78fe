//! Finds the source folders of the crates that bench/Cargo.lock names.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compile::output;

pub(crate) fn bench_folder() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Returns the folder and version of a crate; downloads the crate if needed.
pub(crate) fn sources(name: &str) -> Result<(PathBuf, String), String> {
    let manifest = bench_folder().join("Cargo.toml");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["metadata", "--format-version", "1", "--locked", "--manifest-path"]);
    let text = output(command.arg(manifest))?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let packages = value["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let package = packages
        .iter()
        .find(|package| package["name"] == name)
        .ok_or_else(|| format!("{name} is not in bench/Cargo.lock"))?;
    let manifest = package["manifest_path"].as_str().ok_or("a package without a manifest")?;
    let version = package["version"].as_str().ok_or("a package without a version")?.to_owned();
    Ok((Path::new(manifest).parent().ok_or("a manifest without a folder")?.to_path_buf(), version))
}
