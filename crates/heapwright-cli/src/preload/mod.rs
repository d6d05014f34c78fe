//! The preload library and the environment that makes a program load it.
//!
//! ```text
//! library()      a path to libheapwright.so: the one given, or the one inside
//! for_check()    a path to libheapwright-check.so, which also checks the C library's accesses
//!   given        the user's library, checked before a loader sees it
//!   embedded     the files inside this command
//!   extract      puts them where a loader can map them
//! launcher()     a path to the launcher, which is embedded and extracted, too
//! asked          the library's complaints about options, before a program runs
//! shared         the memory that the processes of one check share: unwind rules, spilled entries
//! environment    LD_PRELOAD and HEAPWRIGHT for the program
//! ```

mod asked;
mod embedded;
mod environment;
mod extract;
mod given;
mod shared;

pub(crate) use asked::{refuse_bad, sets};
pub(crate) use environment::{Options, preload_variable};
pub(crate) use shared::{Elsewhere, Shared};

use crate::inspect::{Target, is_for_musl};
use crate::wrong::is_wrong;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub(crate) fn library(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    match given {
        Some(path) => given::checked(path).map_err(|error| is_wrong(&error)),
        None => extract::extracted(&embedded::LIBRARY),
    }
}

/// Returns the library that `check` preloads: the given one, else the built-in one.
pub(crate) fn for_check(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    match given {
        Some(path) => given::checked(path).map_err(|error| is_wrong(&error)),
        None => extract::extracted(&embedded::CHECK_LIBRARY),
    }
}

/// Checks a library to preload. Returns its absolute path if a loader will take it.
pub(crate) fn checked(path: &Path) -> anyhow::Result<PathBuf> {
    given::checked(path)
}

pub(crate) fn launcher() -> anyhow::Result<PathBuf> {
    extract::extracted(&embedded::LAUNCHER)
}

pub(crate) fn named() -> Option<PathBuf> {
    std::env::var_os("HEAPWRIGHT_LIBRARY").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Returns the platform for which a program must be made, by the given library or the built-in one.
pub(crate) fn target(given: Option<&Path>) -> Target {
    let is_musl = given.map_or(cfg!(target_env = "musl"), is_for_musl);
    Target { machine: machine(), is_musl }
}

/// Returns the ELF machine number of the programs the library can be loaded into.
fn machine() -> u16 {
    machine_of(embedded::LIBRARY.bytes).unwrap_or_default()
}

/// The header has this machine's byte order.
fn machine_of(elf: &[u8]) -> Option<u16> {
    let field = elf.get(18..20)?;
    Some(u16::from_ne_bytes([field[0], field[1]]))
}

/// Returns the character that keeps a path out of LD_PRELOAD: the loader splits at colons and
/// blanks, and expands `$ORIGIN`. Nothing can be quoted.
fn unfit_for_ld_preload(path: &OsStr) -> Option<char> {
    path.as_bytes().iter().map(|&byte| char::from(byte)).find(|c| " \t\n:$".contains(*c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_files_are_for_this_machine() {
        let ours = std::fs::read("/proc/self/exe").expect("readable");
        assert_eq!(Some(machine()), machine_of(&ours));
        assert_eq!(Some(machine()), machine_of(embedded::LAUNCHER.bytes));
        assert_eq!(Some(machine()), machine_of(embedded::CHECK_LIBRARY.bytes));
    }

    #[test]
    fn paths_the_loader_would_split_are_refused() {
        for (path, culprit) in
            [("/a b/c.so", ' '), ("/a/b:c.so", ':'), ("/a/$ORIGIN/c.so", '$'), ("/a\n", '\n')]
        {
            assert_eq!(unfit_for_ld_preload(OsStr::new(path)), Some(culprit), "{path}");
        }
        assert_eq!(unfit_for_ld_preload(OsStr::new("/home/ä/x-1.2_3/lib.so")), None);
    }
}
