//! Forks: how many led to this process, and a heap's part in the fork under way.
//!
//! Changed by `fork`.

use heapwright_substrate::sync::atomic::{AtomicUsize, Ordering};

use super::cell::Num;

/// The number of forks so far. If it has changed, noted facts about threads and processes are old.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// Returns how many forks led to this process. Any thread may call this.
pub(super) fn forks() -> usize {
    FORKS.load(Ordering::Relaxed)
}

/// Counts a fork, in the child.
pub(super) fn note() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

pub(super) struct ForkPart {
    pub(super) part: Num,
    /// Whether a fork copied the heap while a mutator ran. Then the heap never collects again.
    pub(super) poisoned: Num,
}

impl ForkPart {
    pub(super) fn is_poisoned(&self) -> bool {
        self.poisoned.get() != 0
    }

    pub(super) fn end(&self) {
        self.poisoned.set(0);
    }
}
