//! Facts about a process that are remembered before it enters a sandbox (`seccomp`).
//!
//! A call that the sandbox forbids may end the process. Memory safety does not depend on these
//! facts. A forked child is in its parent's sandbox.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::process;

static PROCESS: AtomicU32 = AtomicU32::new(0);
static USER: AtomicU32 = AtomicU32::new(0);
static NAME: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Stores the facts when the process is about to enter a sandbox.
pub fn remember() {
    process::trust_stderr();
    renew();
    USER.store(process::user_id(), Ordering::Relaxed);
    let name = process::process_name();
    for (half, bytes) in NAME.iter().zip(name.chunks_exact(8)) {
        half.store(u64::from_ne_bytes(bytes.try_into().unwrap_or([0; 8])), Ordering::Relaxed);
    }
}

/// The remembered number. A forked child renews it.
pub(super) fn process_id() -> u32 {
    PROCESS.load(Ordering::Relaxed)
}

pub(super) fn user_id() -> u32 {
    USER.load(Ordering::Relaxed)
}

pub(super) fn renew() -> u32 {
    // SAFETY: no preconditions.
    let process = unsafe { libc::getpid() }.cast_unsigned();
    PROCESS.store(process, Ordering::Relaxed);
    process
}

pub(super) fn name() -> [u8; 16] {
    let mut name = [0; 16];
    for (bytes, half) in name.chunks_exact_mut(8).zip(&NAME) {
        bytes.copy_from_slice(&half.load(Ordering::Relaxed).to_ne_bytes());
    }
    name
}
