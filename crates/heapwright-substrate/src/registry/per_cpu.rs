//! The per-CPU registry: one object for each CPU. A thread uses the object of its current CPU.
//!
//! ```text
//!   which CPU?    the thread's rseq area: one load       (without one: getcpu)
//!   its object    slot number `cpu` of a shared registry
//! ```
//!
//! A CPU's object is nearly always free, unless its holder was moved to another CPU or stopped. So
//! each object has a lock, and a thread that finds the lock held follows the policy of shared
//! objects. This is correct even with a wrong CPU number. For use without locks (restartable
//! sequences) see `cache::arrays`. Called by `heap` and `common`.

use super::shared::{Shared, Slot};
use crate::os::rseq;
use crate::sync::atomic::{AtomicIsize, Ordering};

/// `UNKNOWN`: no thread has looked for rseq areas yet. `NOWHERE`: there are none.
const UNKNOWN: isize = isize::MAX;
const NOWHERE: isize = isize::MAX - 1;

static AREA: AtomicIsize = AtomicIsize::new(UNKNOWN);

/// The calling thread's CPU, as of a moment ago.
#[inline]
pub fn cpu() -> usize {
    match AREA.load(Ordering::Relaxed) {
        UNKNOWN => first_cpu(),
        NOWHERE => rseq::current_cpu(),
        // A thread without an area makes a system call.
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
    all.nearest(cpu())
}
