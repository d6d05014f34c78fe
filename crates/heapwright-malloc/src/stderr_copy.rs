//! A copy of the stderr the program was started with.
//!
//! The core utilities, and everything built on gnulib, close stderr in a handler
//! of `exit`; our destructor runs after it. So where the options ask for text at
//! exit, a second descriptor for the same file is kept from the start.
//!
//! **Invariant.** A program may close descriptors that it does not know, and
//! open its own files under their numbers. So the copy is used only while it
//! still is the file it was a copy of; otherwise the text goes to stderr.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use libc::c_int;

/// The copy's descriptor; -1 before [`keep`] and where there is none.
static COPY: AtomicI32 = AtomicI32::new(-1);

/// The file's device and number.
static IDENTITY: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Where the copies go: above the descriptors that shells and scripts number
/// themselves.
const LOWEST: c_int = 100;

/// Makes the copy. Called once, by the constructor.
pub(crate) fn keep() {
    let Some(identity) = identify(libc::STDERR_FILENO) else { return };
    // SAFETY: makes a descriptor; touches no memory.
    let mut copy = unsafe { libc::fcntl(libc::STDERR_FILENO, libc::F_DUPFD_CLOEXEC, LOWEST) };
    if copy < 0 {
        // The limit of open files may be lower.
        // SAFETY: makes a descriptor, and touches no memory.
        copy = unsafe { libc::fcntl(libc::STDERR_FILENO, libc::F_DUPFD_CLOEXEC, 3) };
    }
    for (slot, value) in IDENTITY.iter().zip(identity) {
        slot.store(value, Ordering::Relaxed);
    }
    COPY.store(copy, Ordering::Release);
}

/// Writes to the stderr of the program's start.
pub(crate) fn write(bytes: &[u8]) {
    let copy = COPY.load(Ordering::Acquire);
    let kept = [0, 1].map(|i| IDENTITY[i].load(Ordering::Relaxed));
    if copy >= 0 && identify(copy) == Some(kept) {
        // What cannot be written is lost.
        _ = heapwright::process::write_all(copy, bytes);
    } else {
        heapwright::process::write_stderr(bytes);
    }
}

/// Which file a descriptor is for; `None` where it is not open.
fn identify(file: c_int) -> Option<[u64; 2]> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: writes the struct it is given.
    if unsafe { libc::syscall(libc::SYS_fstat, file, status.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: fstat filled it.
    let status = unsafe { status.assume_init() };
    Some([status.st_dev, status.st_ino])
}
