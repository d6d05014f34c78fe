//! The state of a heap's collections: the phase, the last cycle's number, and the barrier.
//!
//! ```text
//!   Idle --> Marking --> (Moving) --> Sweeping --> Idle        the number grows when marking ends
//! ```
//!
//! Changed by `cycle`, `mutators`, `sweep`, `raw`; read by parts that visit pages or report stores.

use core::sync::atomic::Ordering::Relaxed;

use heapwright_substrate::sync::atomic::AtomicU32;

use super::cell::Num;

/// Mutators report stores to the marking under way.
pub(super) const MARKING: u32 = 1;
/// Mutators report stores for the next minor cycle, while marks say which objects are old.
pub(super) const STORES: u32 = 2;

/// Mutators report all stores, whatever the marks: objects will move, or the heap is verified.
pub(super) const MOVING: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Idle = 0,
    Marking = 1,
    Sweeping = 2,
    /// The heap has marked, and objects are still to be moved. Then it sweeps.
    Moving = 3,
}

/// The state of a heap's collections. All-zero bytes: no cycle has begun.
pub(super) struct Cycle {
    phase: AtomicU32,
    /// Which stores mutators report: `MARKING`, `STORES`, `MOVING`.
    pub(super) barrier: AtomicU32,
    /// Cycles whose marking has ended.
    number: Num,
    /// Whether no collection may run: the runtime keeps references outside the roots (`held`).
    held: Num,
}

impl Cycle {
    #[inline]
    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            0 => Phase::Idle,
            1 => Phase::Marking,
            2 => Phase::Sweeping,
            _ => Phase::Moving,
        }
    }

    /// Enters a phase. The world must be stopped.
    pub(super) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u32, Relaxed);
    }

    /// Ends the sweep, after every page was claimed for it. Returns whether this call ended it.
    pub(super) fn end_sweep(&self) -> bool {
        let (sweeping, idle) = (Phase::Sweeping as u32, Phase::Idle as u32);
        self.phase.compare_exchange(sweeping, idle, Relaxed, Relaxed).is_ok()
    }

    pub(super) fn barrier(&self) -> u32 {
        self.barrier.load(Relaxed)
    }

    pub(super) fn number(&self) -> usize {
        self.number.get()
    }

    /// As [`Cycle::number`], for readers that acquire it: a reader of a new number must see that
    /// the sweep before is over (see `held`).
    pub(super) fn counter(&self) -> &Num {
        &self.number
    }

    /// A thread that reads the new number sees all marks, even if it has not stopped.
    pub(super) fn end_marking(&self) {
        self.number.set_released(self.number.get() + 1);
    }

    /// Returns whether no collection may run now.
    pub(super) fn is_held(&self) -> bool {
        self.held.get() != 0
    }

    /// Forbids collections from now on, or allows them again.
    pub(super) fn hold(&self, held: bool) {
        self.held.set(usize::from(held));
    }

    pub(super) fn end(&self) {
        self.enter(Phase::Idle);
        self.barrier.store(0, Relaxed);
        self.number.set(0);
        self.held.set(0);
    }
}
