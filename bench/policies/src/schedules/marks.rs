//! A place that counts its visits and detects two visitors at a time. Its own atomics are the
//! machine's: shuttle does not see them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[derive(Default)]
pub(crate) struct Marks {
    pub(crate) number: usize,
    is_held: AtomicBool,
    visits: AtomicUsize,
}

impl Marks {
    pub(crate) fn new(number: usize) -> Self {
        Self { number, ..Self::default() }
    }

    /// Counts a visit, and lets other threads run meanwhile.
    pub(crate) fn visit(&self) {
        assert!(!self.is_held.swap(true, Ordering::SeqCst), "there are two holders");
        let before = self.visits.load(Ordering::SeqCst);
        loom::thread::yield_now();
        self.visits.store(before + 1, Ordering::SeqCst);
        assert!(self.is_held.swap(false, Ordering::SeqCst), "somebody else left");
    }

    pub(crate) fn count(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }
}
