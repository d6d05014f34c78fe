//! Forks: how many led to this process, and a heap's part in the one under way.
//!
//! Changed by `fork`.

use heapwright_substrate::sync::atomic::{AtomicUsize, Ordering};

use super::cell::Num;

/// The number of forks from the first process to this one: facts about threads and processes hold
/// for one number.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// Returns how many forks led to this process. By any number of threads.
pub(super) fn forks() -> usize {
    FORKS.load(Ordering::Relaxed)
}

/// Counts a fork, in the child.
pub(super) fn note() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A heap's part in forks. Zero has none.
pub(super) struct ForkPart {
    /// Its part in the fork under way.
    pub(super) part: Num,
    /// Whether it was copied while a mutator was at work: nothing is collected any more.
    pub(super) poisoned: Num,
}

impl ForkPart {
    /// Returns whether the heap was copied while a mutator was at work, so that nothing of it may
    /// be collected.
    pub(super) fn is_poisoned(&self) -> bool {
        self.poisoned.get() != 0
    }

    /// The heap ends.
    pub(super) fn end(&self) {
        self.poisoned.set(0);
    }
}
