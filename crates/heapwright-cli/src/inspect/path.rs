//! Finds the file for a command's name, as exec does.
//!
//! A name with a slash is a path. Any other name is looked up in the folders of PATH; an empty
//! entry is the current folder. A file that may not be executed is named only if no other is found.

use super::{Finding, is_file};
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The search path of exec if PATH is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    Missing,
    Folder,
    NotExecutable(PathBuf),
}

impl Problem {
    pub(super) fn finding(&self, name: &OsStr) -> Finding {
        let code = match self {
            Self::Missing => "not-found",
            Self::Folder | Self::NotExecutable(_) => "not-executable",
        };
        Finding::no(code, self.text(name))
    }

    /// Returns a sentence about the problem with the name.
    pub(crate) fn text(&self, name: &OsStr) -> String {
        let name = name.display();
        match self {
            Self::Missing => format!("{name}: command not found"),
            Self::Folder => format!("{name} is a folder"),
            Self::NotExecutable(path) => {
                format!("{} may not be executed (no x permission)", path.display())
            }
        }
    }
}

pub(crate) fn find(name: &OsStr) -> Result<PathBuf, Problem> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from(DEFAULT_PATH));
    find_in(name, &path)
}

fn find_in(name: &OsStr, path: &OsStr) -> Result<PathBuf, Problem> {
    if name.is_empty() {
        return Err(Problem::Missing);
    }
    if name.as_bytes().contains(&b'/') {
        return check(Path::new(name));
    }
    let mut worst = Problem::Missing;
    for folder in std::env::split_paths(path) {
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        match check(&folder.join(name)) {
            Err(problem @ Problem::NotExecutable(_)) => worst = problem,
            Err(_) => {}
            found => return found,
        }
    }
    Err(worst)
}

fn check(path: &Path) -> Result<PathBuf, Problem> {
    if path.is_dir() {
        Err(Problem::Folder)
    } else if !path.exists() {
        Err(Problem::Missing)
    } else if is_file(path) && may_execute(path) {
        Ok(path.to_owned())
    } else {
        Err(Problem::NotExecutable(path.to_owned()))
    }
}

/// Returns the kernel's answer, which respects access lists and mount flags.
fn may_execute(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: the name ends in NUL.
    let result =
        unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), libc::X_OK, libc::AT_EACCESS) };
    result == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_on(name: &str, path: &str) -> Result<PathBuf, Problem> {
        find_in(OsStr::new(name), OsStr::new(path))
    }

    #[test]
    fn the_first_executable_on_the_path_is_found() {
        assert_eq!(find_on("sh", "/nonexistent:/bin"), Ok(PathBuf::from("/bin/sh")));
        assert_eq!(find_on("/bin/sh", ""), Ok(PathBuf::from("/bin/sh")));
    }

    #[test]
    fn what_is_no_program_is_distinguished() {
        assert_eq!(find_on("sh", "/nonexistent"), Err(Problem::Missing));
        assert_eq!(find_on("", "/bin"), Err(Problem::Missing));
        assert_eq!(find_on("/bin", "/bin"), Err(Problem::Folder));
        // A folder on the PATH is not a command.
        assert_eq!(find_on("bin", "/usr"), Err(Problem::Missing));
        let passwd = PathBuf::from("/etc/passwd");
        assert_eq!(find_on("passwd", "/etc"), Err(Problem::NotExecutable(passwd.clone())));
        assert_eq!(find_on("/etc/passwd", ""), Err(Problem::NotExecutable(passwd)));
        assert_eq!(find_on("/etc/passwd/x", ""), Err(Problem::Missing));
    }
}
