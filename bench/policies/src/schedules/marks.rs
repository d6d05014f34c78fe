//! What no second holder may see: a place that knows whether somebody is in it, and how
//! often somebody was. Its own atomics are the machine's, of which shuttle knows nothing.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// See above.
#[derive(Default)]
pub(crate) struct Marks {
    /// Which one it is.
    pub(crate) number: usize,
    is_held: AtomicBool,
    visits: AtomicUsize,
}

impl Marks {
    /// None yet, in the place of this number.
    pub(crate) fn new(number: usize) -> Self {
        Self { number, ..Self::default() }
    }

    /// Leaves a mark, and lets others run meanwhile.
    pub(crate) fn visit(&self) {
        assert!(!self.is_held.swap(true, Ordering::SeqCst), "there are two holders");
        let before = self.visits.load(Ordering::SeqCst);
        loom::thread::yield_now();
        self.visits.store(before + 1, Ordering::SeqCst);
        assert!(self.is_held.swap(false, Ordering::SeqCst), "somebody else left");
    }

    /// How many marks there are.
    pub(crate) fn count(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }
}
