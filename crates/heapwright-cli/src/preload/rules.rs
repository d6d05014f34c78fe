//! The file in which the processes of one check share the rules that they read from unwind tables
//! (option `rules`).
//!
//! The file has no name. Processes find it under /proc while the command lives; later they read
//! their tables themselves. It is sealed, because a truncated file would fault in each process that
//! has mapped it.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};

/// The length that the library requires (`SHARED_BYTES` of heapwright-stacks).
const BYTES: u64 = 1 << 20;

/// The file; it exists while this value lives.
pub(crate) struct SharedRules(File);

impl SharedRules {
    /// Makes the file. Returns `None` without memory, or if the kernel has no such files.
    pub(crate) fn new() -> Option<Self> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name ends in NUL.
        let file = unsafe { libc::memfd_create(c"heapwright-rules".as_ptr(), flags) };
        if file < 0 {
            return None;
        }
        // SAFETY: the descriptor was just made, and only this call knows it.
        let file = unsafe { File::from_raw_fd(file) };
        file.set_len(BYTES).ok()?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: the descriptor is open, and the call takes only numbers.
        let sealed = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } == 0;
        sealed.then_some(Self(file))
    }

    /// Returns the option that tells the library the file's path.
    pub(crate) fn option(&self) -> String {
        format!("rules=/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}
