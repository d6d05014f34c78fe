//! A file as memory.
//!
//! Debug information of a large program is gigabytes, of which a report needs a few
//! pages: so it is mapped, not read. The mapping stays to the end of this command,
//! which opens each file once; a borrower of it need not ask how long.
//!
//! A file that is cut while it is mapped would end this command by a signal. Who
//! replaces a program writes a new file beside it, as linkers and package managers
//! do; it is what debuggers and profilers rely on, too. Another user may cut a file on
//! purpose: so one that the record of another user names is read.

use super::Rights;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;

/// A file that is read is no larger.
const LARGEST: usize = 1 << 30;

/// The bytes of a file, for as long as this command runs.
pub(super) fn whole(file: &File, rights: &Rights) -> io::Result<&'static [u8]> {
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    if rights.are_limited() {
        let mut bytes = Vec::new();
        file.take(length.min(LARGEST) as u64).read_to_end(&mut bytes)?;
        return Ok(super::debug::kept(bytes));
    }
    if length == 0 {
        return Ok(&[]);
    }
    // SAFETY: a new mapping, private and only read, in a place that the kernel chooses.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: so many bytes are mapped there, readable, and never unmapped.
    Ok(unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) })
}
