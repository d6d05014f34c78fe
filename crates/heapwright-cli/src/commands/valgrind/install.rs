//! Installs a program called `valgrind`, which calls this command, in a folder of the user.
//!
//! The program is a script, so this command runs under its own name. The command never replaces a
//! `valgrind` that it did not write.

use crate::process::Exit;
use crate::wrong::wrong;
use anyhow::Context;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The second line of each installed script.
const MARK: &[u8] = b"# heapwright valgrind --install\n";

/// Writes the script into the folder, and prints how to use it.
pub(super) fn install(folder: &Path) -> anyhow::Result<Exit> {
    let this = std::env::current_exe().context("this command's own path is not known")?;
    fs::create_dir_all(folder)
        .map_err(|error| wrong(format!("cannot make {}: {error}", folder.display())))?;
    let path = fs::canonicalize(folder)?.join("valgrind");
    let ours = |text: Vec<u8>| text.windows(MARK.len()).any(|window| window == MARK);
    if fs::symlink_metadata(&path).is_ok() && !fs::read(&path).is_ok_and(ours) {
        return Err(wrong(format!("there is another {} already", path.display())));
    }
    let mut script = b"#!/bin/sh\n".to_vec();
    script.extend_from_slice(MARK);
    script.extend_from_slice(b"exec '");
    for &byte in this.as_os_str().as_bytes() {
        match byte {
            b'\'' => script.extend_from_slice(b"'\\''"),
            byte => script.push(byte),
        }
    }
    script.extend_from_slice(b"' valgrind \"$@\"\n");
    fs::write(&path, script).with_context(|| format!("cannot write {}", path.display()))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    eprintln!(
        "heapwright: wrote {}; to use it: PATH={}:$PATH",
        path.display(),
        path.parent().unwrap_or(&path).display()
    );
    Ok(Exit::Code(0))
}
