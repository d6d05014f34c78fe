//! A process that has forbidden itself system calls (`seccomp`).
//!
//! ```text
//!   Open     nothing is forbidden, as far as is known
//!   Filter   mmap, munmap, mremap, mprotect, madvise, futex, write, clock_gettime and exit are left
//!   Strict   write and exit
//! ```
//!
//! A call beyond these may be the process's end. So what others ask for (numbers, names) is remembered from the moment before, and what cannot
//! be remembered fails as if the kernel had refused it.
//!
//! Invariant: none that memory hangs on. A forked child is in its parent's sandbox.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::process;

/// Which calls are left.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Sandbox {
    /// All, as far as is known.
    Open,
    /// Those for memory and text.
    Filter,
    /// Those for text.
    Strict,
}

const ALL: [Sandbox; 3] = [Sandbox::Open, Sandbox::Filter, Sandbox::Strict];

static STATE: AtomicU8 = AtomicU8::new(Sandbox::Open as u8);
static PROCESS: AtomicU32 = AtomicU32::new(0);
static NAME: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// In which sandbox the process is.
#[inline]
pub fn sandbox() -> Sandbox {
    ALL[usize::from(STATE.load(Ordering::Relaxed)) % ALL.len()]
}

/// The process is about to enter a sandbox, or has not entered it after all.
pub fn enter(sandbox: Sandbox) {
    if self::sandbox() == Sandbox::Open {
        process::trust_stderr();
        renew();
        let name = process::process_name();
        for (half, bytes) in NAME.iter().zip(name.chunks_exact(8)) {
            half.store(u64::from_ne_bytes(bytes.try_into().unwrap_or([0; 8])), Ordering::Relaxed);
        }
    }
    STATE.store(sandbox as u8, Ordering::SeqCst);
}

/// Whether only the calls for memory and text are left, or fewer.
#[inline]
pub fn is_filtered() -> bool {
    sandbox() != Sandbox::Open
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
