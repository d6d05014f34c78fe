//! Output files of reports.
//!
//! Files are opened before the work begins, so that a wrong name is noticed early. They are emptied
//! before the first write. At the end, a new file that was not written to is removed.

use crate::symbols::rights::user;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Files and folders that this command has made and not yet written to.
static MADE: Mutex<Vec<(u64, u64, PathBuf)>> = Mutex::new(Vec::new());

/// Opens a file with `options`, and remembers it if it is new.
fn opened(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let is_new = path.symlink_metadata().is_err();
    let file = options.write(true).create(true).truncate(false).open(path)?;
    let about = file.metadata()?;
    if is_new && let Ok(mut made) = MADE.lock() {
        made.push((about.dev(), about.ino(), path.to_owned()));
    }
    Ok(file)
}

/// Makes a folder, and those around it, for this user alone. Returns whether it is new.
pub(crate) fn make_folder(path: &Path) -> io::Result<bool> {
    let is_new = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let new: Vec<&Path> = path.ancestors().take_while(is_new).collect();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    for path in &new {
        let about = path.metadata()?;
        if let Ok(mut made) = MADE.lock() {
            made.push((about.dev(), about.ino(), path.to_path_buf()));
        }
    }
    Ok(!new.is_empty())
}

/// Notes that a file or folder is used, so that it stays.
pub(crate) fn stays(about: &Metadata) {
    if let Ok(mut made) = MADE.lock() {
        made.retain(|(device, inode, _)| (*device, *inode) != (about.dev(), about.ino()));
    }
}

/// Removes the files and folders that this command has made and not written to, at its end.
pub(crate) fn remove_unwritten() {
    for (device, inode, path) in
        MADE.lock().map_or_else(|_| Vec::new(), |mut made| made.split_off(0))
    {
        let is_it = |about: Metadata| (about.dev(), about.ino()) == (device, inode);
        if path.symlink_metadata().is_ok_and(is_it) {
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
        }
    }
}

/// Opens a file for [`replace`]; its contents stay until then.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    opened(path, &mut OpenOptions::new())
}

/// Opens a file whose name others can guess. Refuses a link, a pipe, and another user's file.
pub(crate) fn open_own(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = opened(path, &mut options)?;
    let about = file.metadata()?;
    if about.is_file() && about.nlink() == 1 && about.uid() == user() {
        return Ok(file);
    }
    Err(io::Error::other("it is no file of this user's alone (name another with --output)"))
}

pub(crate) fn replace(file: File, text: &str) -> io::Result<()> {
    emptied(file)?.write_all(text.as_bytes())
}

pub(crate) fn emptied(file: File) -> io::Result<File> {
    let about = file.metadata()?;
    stays(&about);
    // Another description of a standard stream's file would overwrite what is in it.
    for stream in [io::stdout().as_fd(), io::stderr().as_fd()] {
        let stream = File::from(stream.try_clone_to_owned()?);
        let other = stream.metadata()?;
        if about.is_file() && (other.dev(), other.ino()) == (about.dev(), about.ino()) {
            return Ok(stream);
        }
    }
    let kind = about.file_type();
    if !(kind.is_fifo() || kind.is_char_device() || kind.is_socket()) {
        file.set_len(0)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Folder;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_name_that_is_not_the_users_leads_to_a_file_of_the_users_alone() {
        let folder = Folder::new().expect("made");
        let path = |name| folder.path().join(name);
        replace(open_own(&path("new")).expect("made"), "text").expect("written");
        assert_eq!(fs::read_to_string(path("new")).expect("there"), "text");
        assert_eq!(fs::metadata(path("new")).expect("there").mode() & 0o777, 0o600);
        assert!(open_own(&path("new")).is_ok());
        symlink(path("new"), path("link")).expect("made");
        assert!(open_own(&path("link")).is_err() && open(&path("link")).is_ok());
        fs::hard_link(path("new"), path("other")).expect("made");
        assert!(open_own(&path("new")).is_err());
    }
}
