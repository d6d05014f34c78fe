//! Files that a report goes to.
//!
//! They are opened before the work that the report is on, so that a mistake in
//! a name costs nothing, and emptied only when there is something to write.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Opens a file for [`replace`]; what is in it stays for now.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).open(path)
}

/// Puts a text in the place of what the file held.
pub(crate) fn replace(file: File, text: &str) -> io::Result<()> {
    emptied(file)?.write_all(text.as_bytes())
}

/// The file without what it held.
pub(crate) fn emptied(file: File) -> io::Result<File> {
    let kind = file.metadata()?.file_type();
    if !(kind.is_fifo() || kind.is_char_device() || kind.is_socket()) {
        file.set_len(0)?;
    }
    Ok(file)
}
