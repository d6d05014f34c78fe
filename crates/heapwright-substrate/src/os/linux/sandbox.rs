//! What a process in a sandbox is not asked any more (`seccomp`).
//!
//! A call that the sandbox forbids may be the process's end. So numbers and names are remembered
//! from the moment before, and what cannot be remembered fails as if the kernel had refused it.
//!
//! Invariant: none that memory hangs on. A forked child is in its parent's sandbox.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::process;

static PROCESS: AtomicU32 = AtomicU32::new(0);
static NAME: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// The process is about to enter a sandbox.
pub fn remember() {
    process::trust_stderr();
    renew();
    let name = process::process_name();
    for (half, bytes) in NAME.iter().zip(name.chunks_exact(8)) {
        half.store(u64::from_ne_bytes(bytes.try_into().unwrap_or([0; 8])), Ordering::Relaxed);
    }
}

/// The process's number, as it was; a forked child asks for its own.
pub(super) fn process_id() -> u32 {
    PROCESS.load(Ordering::Relaxed)
}

/// Asks for the process's number, in a forked child as well.
pub(super) fn renew() -> u32 {
    // SAFETY: no preconditions.
    let process = unsafe { libc::getpid() }.cast_unsigned();
    PROCESS.store(process, Ordering::Relaxed);
    process
}

/// The name of the thread that entered.
pub(super) fn name() -> [u8; 16] {
    let mut name = [0; 16];
    for (bytes, half) in name.chunks_exact_mut(8).zip(&NAME) {
        bytes.copy_from_slice(&half.load(Ordering::Relaxed).to_ne_bytes());
    }
    name
}
