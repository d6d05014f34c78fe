//! The per-CPU registry: one object a CPU, and the thread's is that of the CPU it is on.
//!
//! ```text
//!   which CPU?    the thread's rseq area: one load       (where there is none: getcpu)
//!   its object    slot number `cpu` of a shared registry
//! ```
//!
//! A CPU's object is nearly always free when a thread of that CPU comes, for there is no
//! other that runs. It is not where its holder was moved away or stopped in the middle:
//! so each has a lock, and a thread that finds it held does as with shared ones, with the same
//! policy. That is all that is right everywhere: under emulators, with hot-plug, where the
//! CPU's number is beyond those that were possible at the start, or wrong a moment later.
//!
//! What needs no lock at all (restartable sequences) is not the registry's: it needs one
//! store to commit, and only the objects' owner knows how to do with one (see
//! `cache::arrays`).
//!
//! Called by `heap` and `pool`.

use super::shared::{Shared, Slot};
use crate::os::rseq;
use crate::sync::atomic::{AtomicIsize, Ordering};

/// Where threads' areas are; not looked for yet; nowhere.
const UNKNOWN: isize = isize::MAX;
const NOWHERE: isize = isize::MAX - 1;

static AREA: AtomicIsize = AtomicIsize::new(UNKNOWN);

/// The calling thread's CPU: true a moment ago.
#[inline]
pub fn cpu() -> usize {
    match AREA.load(Ordering::Relaxed) {
        UNKNOWN => first_cpu(),
        NOWHERE => rseq::current_cpu(),
        // A thread whose area the kernel does not keep asks the system.
        area => rseq::cpu(area).unwrap_or_else(rseq::current_cpu),
    }
}

#[cold]
fn first_cpu() -> usize {
    AREA.store(rseq::offset().unwrap_or(NOWHERE), Ordering::Relaxed);
    cpu()
}

/// The slot of the calling thread's CPU.
#[inline]
pub fn mine<T, F, const MOST: usize>(all: &Shared<T, F, MOST>) -> &'static Slot<T, F> {
    // Hardly ever another's: of a CPU that was not possible when the objects were made.
    all.nearest(cpu())
}
