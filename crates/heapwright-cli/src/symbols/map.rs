//! A file as memory.
//!
//! Debug information of a large program is gigabytes, of which a report needs a few
//! pages: so it is mapped, not read. The mapping stays to the end of this command,
//! which opens each file once; a borrower of it need not ask how long.
//!
//! A file that is cut while it is mapped would end this command by a signal. Who
//! replaces a program writes a new file beside it, as linkers and package managers
//! do; it is what debuggers and profilers rely on, too.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// The bytes of a file, for as long as this command runs.
pub(super) fn whole(file: &File) -> io::Result<&'static [u8]> {
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
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
