//! A preload library that the user named.
//!
//! The loader ignores a library that it cannot use. So it is refused before the program runs.

use super::{machine, machine_of, unfit_for_ld_preload};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

const HEADER: usize = 20;

pub(super) fn checked(path: &Path) -> anyhow::Result<PathBuf> {
    let absolute = std::path::absolute(path)
        .with_context(|| format!("the library's path '{}' is not usable", path.display()))?;
    let shown = absolute.display();
    if let Some(culprit) = unfit_for_ld_preload(absolute.as_os_str()) {
        bail!("the library's path '{shown}' contains {culprit:?}, which LD_PRELOAD cannot carry");
    }
    let header = first_bytes(&absolute).with_context(|| format!("cannot read library {shown}"))?;
    if !header.starts_with(b"\x7fELF") || header.len() < HEADER {
        bail!("{shown} is not an ELF library");
    }
    if header[16..18] != 3u16.to_ne_bytes() {
        bail!("{shown} is an ELF file but not a shared library");
    }
    if machine_of(&header) != Some(machine()) {
        bail!("{shown} is a library for another kind of machine");
    }
    Ok(absolute)
}

fn first_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut header = Vec::new();
    std::fs::File::open(path)?.take(HEADER as u64).read_to_end(&mut header)?;
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(path: &str) -> String {
        format!("{:#}", checked(Path::new(path)).expect_err("is refused"))
    }

    #[test]
    fn what_a_loader_would_ignore_is_refused_in_words() {
        assert_eq!(
            complaint("/nonexistent/lib.so"),
            "cannot read library /nonexistent/lib.so: No such file or directory (os error 2)"
        );
        assert_eq!(complaint("/proc/self/stat"), "/proc/self/stat is not an ELF library");
        assert_eq!(
            complaint("/a b.so"),
            "the library's path '/a b.so' contains ' ', which LD_PRELOAD cannot carry"
        );
    }
}
