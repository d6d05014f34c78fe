//! A file that a record names is opened only if the record's owner can read it.
//!
//! The writer of a record chooses the names of files in it. Root reads the records of other users,
//! and root's own rights must not decide. A file is opened with `O_PATH` first, which follows all
//! links, and neither waits nor disturbs a device. Then the modes and groups of the file and of the
//! folders above it decide whether the owner can read it.

use std::ffi::CString;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The rights of some users: a file is readable if one of them can read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Rights(Vec<u32>);

/// Bits of a mode, in the place for other users.
const READ: u32 = 4;
const SEARCH: u32 = 1;

impl Rights {
    /// The rights of this command's user.
    #[cfg(test)]
    pub(crate) fn own() -> Self {
        Self(vec![user()])
    }

    /// Adds the rights of a user.
    pub(crate) fn add(&mut self, user: u32) {
        if !self.0.contains(&user) {
            self.0.push(user);
        }
    }

    /// Whether the rights are less than this command's own. (Root can read everything that this
    /// command can.)
    fn are_limited(&self) -> bool {
        !self.0.iter().any(|&owner| owner == 0 || owner == user())
    }

    /// Opens a plain file that one of the users can read.
    pub(crate) fn open(&self, path: &Path) -> io::Result<File> {
        if !self.are_limited() {
            let file = File::options()
                .read(true)
                .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
                .open(plain(path, fs::metadata(path)?)?)?;
            return Ok(file);
        }
        let place = File::options().read(true).custom_flags(libc::O_PATH).open(path)?;
        let again = PathBuf::from(format!("/proc/self/fd/{}", place.as_raw_fd()));
        let (real, about) = (fs::read_link(&again)?, place.metadata()?);
        let is_readable = |&owner: &u32| can_read(owner, &real, &about);
        // (Files that the kernel makes up have no length.)
        if about.len() == 0 || !self.0.iter().any(is_readable) {
            return Err(ErrorKind::PermissionDenied.into());
        }
        File::open(plain(&again, about)?)
    }
}

/// The path of a plain file.
fn plain(path: &Path, about: Metadata) -> io::Result<&Path> {
    if about.is_file() { Ok(path) } else { Err(io::Error::other("not a file")) }
}

/// The user for whom this command acts.
pub(crate) fn user() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::geteuid() }
}

/// Whether a user can read the file at a path without links.
fn can_read(user: u32, path: &Path, file: &Metadata) -> bool {
    let groups = groups(user);
    let allows = |path: &Path, about: &Metadata, bit| {
        let shift = match about {
            _ if about.uid() == user => 6,
            // An access list may take away rights that the mode gives to others.
            _ if has_list(path) => return false,
            _ if groups.contains(&about.gid()) => 3,
            _ => 0,
        };
        about.mode() >> shift & bit != 0
    };
    let mut folders = path.ancestors().skip(1);
    path.is_absolute()
        && allows(path, file, READ)
        && folders
            .all(|folder| fs::metadata(folder).is_ok_and(|about| allows(folder, &about, SEARCH)))
}

/// Whether a file has a list of users beside its mode (an ACL).
fn has_list(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return true };
    let name = c"system.posix_acl_access";
    // SAFETY: two strings, and no room: nothing is written.
    unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

/// The groups of a user, by the machine's list of users.
fn groups(user: u32) -> Vec<u32> {
    const MOST: usize = 1024;
    let mut about = std::mem::MaybeUninit::<libc::passwd>::zeroed();
    let mut text = vec![0; 16 << 10];
    let mut found = std::ptr::null_mut();
    // SAFETY: room for the answer, for its text, and for where it is.
    let failed = unsafe {
        libc::getpwuid_r(user, about.as_mut_ptr(), text.as_mut_ptr(), text.len(), &raw mut found)
    };
    if failed != 0 || found.is_null() {
        return Vec::new();
    }
    // SAFETY: the call has filled it.
    let about = unsafe { about.assume_init() };
    let (mut groups, mut count) = (vec![0; MOST], MOST as libc::c_int);
    // SAFETY: a string of the answer, and room for `count` groups.
    let got = unsafe {
        libc::getgrouplist(about.pw_name, about.pw_gid, groups.as_mut_ptr(), &raw mut count)
    };
    groups.truncate(if got < 0 { 0 } else { count.unsigned_abs() as usize });
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Folder;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// Nobody's number.
    const STRANGER: u32 = 54_321;

    #[test]
    fn a_stranger_reads_what_all_may_read() {
        let folder = Folder::new().expect("made");
        let open = |mode, path: &Path| {
            let permissions = fs::Permissions::from_mode(mode);
            fs::set_permissions(folder.path(), permissions).expect("changed");
            Rights(vec![STRANGER]).open(path).is_ok()
        };
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "text").expect("written");
        symlink(&file, &link).expect("made");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("changed");
        assert!(open(0o755, &file) && open(0o755, &link));
        assert!(!open(0o700, &file) && !open(0o700, &link));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("changed");
        assert!(!open(0o755, &file) && !open(0o755, &link));
        assert!(Rights::own().open(&file).is_ok());
        assert!(Rights(vec![STRANGER, 0]).open(&file).is_ok());
        for wrong in ["/proc/self/maps", "/proc/self/environ", "/dev/zero", "/tmp", "/etc/shadow"] {
            assert!(!open(0o755, Path::new(wrong)), "{wrong}");
        }
        assert!(Rights::own().open(Path::new("/dev/zero")).is_err());
    }
}
