//! The file in which the processes of one check share the rules that they have read from unwind
//! tables (option `rules`).
//!
//! The file has no name: processes find it under /proc while the command lives, or else read their
//! tables themselves. It is sealed, because a truncated file would fault in each process that has
//! mapped it.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};

/// As long as the library wants it (`SHARED_BYTES` of heapwright-stacks).
const BYTES: u64 = 1 << 20;

/// The file, there while this is.
pub(crate) struct SharedRules(File);

impl SharedRules {
    /// `None`: there is no memory for it, or the kernel has no such files.
    pub(crate) fn new() -> Option<Self> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: makes a descriptor.
        let file = unsafe { libc::memfd_create(c"heapwright-rules".as_ptr(), flags) };
        if file < 0 {
            return None;
        }
        // SAFETY: the descriptor was just made, and is nobody else's.
        let file = unsafe { File::from_raw_fd(file) };
        file.set_len(BYTES).ok()?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: a call on a descriptor of ours.
        let sealed = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } == 0;
        sealed.then_some(Self(file))
    }

    /// The option by which the library finds it.
    pub(crate) fn option(&self) -> String {
        format!("rules=/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}
