//! How far a heap's collections are: the phase, the number of the last cycle, and which stores are
//! reported.
//!
//! ```text
//!   Idle --> Marking --> (Moving) --> Sweeping --> Idle        the number rises where marking ends
//! ```
//!
//! Changed by `cycle`; read by all that look at pages or report stores.

use core::sync::atomic::Ordering::Relaxed;

use heapwright_substrate::sync::atomic::AtomicU32;

use super::cell::Num;

/// What stores are reported for: the marking under way.
pub(super) const MARKING: u32 = 1;
/// And for the next one, a minor collection, while marks say what is old.
pub(super) const STORES: u32 = 2;

/// And while objects are to be moved: all stores, whatever has a mark.
pub(super) const MOVING: u32 = 4;

/// What a heap is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing.
    Idle = 0,
    /// It marks.
    Marking = 1,
    /// It has marked, and pages are still to be swept.
    Sweeping = 2,
    /// It has marked, and objects are still to be moved; then it sweeps.
    Moving = 3,
}

/// How far a heap's collections are. Zero has not begun one.
pub(super) struct Cycle {
    /// A [`Phase`].
    phase: AtomicU32,
    /// Which stores are reported, as mutators see it: `MARKING`, `STORES`, `MOVING`.
    pub(super) barrier: AtomicU32,
    /// Cycles whose marking has ended.
    number: Num,
    /// Whether references are where roots do not lead: nothing is collected meanwhile.
    held: Num,
}

impl Cycle {
    /// What the heap is doing.
    #[inline]
    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            0 => Phase::Idle,
            1 => Phase::Marking,
            2 => Phase::Sweeping,
            _ => Phase::Moving,
        }
    }

    /// Another phase begins. While the world is stopped.
    pub(super) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u32, Relaxed);
    }

    /// The sweep is over: every page has been claimed for it. Whether this is the first to notice.
    pub(super) fn end_sweep(&self) -> bool {
        let (sweeping, idle) = (Phase::Sweeping as u32, Phase::Idle as u32);
        self.phase.compare_exchange(sweeping, idle, Relaxed, Relaxed).is_ok()
    }

    /// Which stores must be reported, as mutators see it.
    pub(super) fn barrier(&self) -> u32 {
        self.barrier.load(Relaxed)
    }

    /// Cycles whose marking has ended: the number of the last one.
    pub(super) fn number(&self) -> usize {
        self.number.get()
    }

    /// The same, for a reader that must see that a sweep is over when it sees the number change
    /// (see `held`).
    pub(super) fn counter(&self) -> &Num {
        &self.number
    }

    /// Marking has ended. A thread that sees it by the number, without having stopped, sees all
    /// marks.
    pub(super) fn end_marking(&self) {
        self.number.set_released(self.number.get() + 1);
    }

    /// Returns whether nothing may be collected now, because references are where roots do not
    /// lead.
    pub(super) fn is_held(&self) -> bool {
        self.held.get() != 0
    }

    /// From now on nothing is collected, or it may be again.
    pub(super) fn hold(&self, held: bool) {
        self.held.set(usize::from(held));
    }

    /// Forgets all.
    pub(super) fn end(&self) {
        self.enter(Phase::Idle);
        self.barrier.store(0, Relaxed);
        self.number.set(0);
        self.held.set(0);
    }
}
