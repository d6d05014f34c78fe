//! Payment: the collector's work that an allocation does for its bytes.
//!
//! ```text
//!   pay --> sweep a share --> idle: begin a cycle if due; marking, moving: a step for the debt
//! ```
//!
//! The accounts are in `pacing`. Called by `allocation` and `raw`.

use heapwright_substrate::os;

use super::cycle::STEP;
use super::growth;
use super::heap::Heap;
use super::mutator::Mutator;
use super::phase::Phase;
use super::tracer::Budget;

/// A heap is near its limit if less than one part in this many of the limit is left.
const LITTLE: usize = 8;

/// Sweeping on the allocation path takes one part in this many of a step's time.
const SWEEP_OF_STEP: u64 = 8;
/// The number of owed pages that doubles that time.
const MANY_OWED: u64 = 32;

impl Heap {
    /// Does the work that a mutator owes for `bytes` that it is about to allocate.
    pub(super) fn pay(&self, me: &Mutator, bytes: usize) {
        let pacing = &self.space.pacing;
        if self.fork.is_poisoned() {
            // A poisoned heap is neither swept nor moved: see `fork`.
            return;
        }
        self.owe_sweep(bytes);
        self.pay_sweep();
        self.tend();
        if self.space.cycle.is_held() {
            return me.unpaid.add(bytes);
        }
        if me.deferred.get() > 0 {
            return;
        }
        if self.space.cycle.phase() == Phase::Moving {
            pacing.debt.add_shared(bytes);
            if pacing.debt.get() >= STEP {
                pacing.debt.take();
                self.move_some(me, self.deadline());
            }
            return;
        }
        if self.space.cycle.phase() != Phase::Marking {
            if pacing.is_due(&self.space.target()) {
                self.collect_or_begin(me);
            }
            return;
        }
        let room = pacing.allowance().saturating_sub(pacing.used());
        pacing.debt.add_shared(self.space.target().marking(bytes, self.left(), room));
        self.pay_marking(me);
    }

    /// How many times more work than usual a step on the allocation path may do, in the same time.
    fn step_factor(&self) -> u64 {
        growth::step_factor(self.space.pacing.used(), self.space.pacing.allowance())
    }

    /// Adds a mutator's share of the sweep, for `bytes` that it is about to allocate.
    fn owe_sweep(&self, bytes: usize) {
        if self.space.cycle.phase() == Phase::Sweeping {
            let unswept = self.space.lists.lock().unswept;
            let pacing = &self.space.pacing;
            let share = growth::sweep_share(unswept, bytes, pacing.allowance(), pacing.used());
            pacing.unswept.add_shared(share);
        }
    }

    /// Sweeps the owed pages. With incremental marking, stops after a part of a step's time: the
    /// cost of a page depends on the runtime's `free`.
    fn pay_sweep(&self) {
        let owed = self.space.pacing.unswept.get();
        if owed == 0 {
            return;
        }
        let deadline = if self.space.options().incremental {
            let part = self.space.options().step() / SWEEP_OF_STEP;
            os::now_ns().saturating_add(part.saturating_mul(1 + owed as u64 / MANY_OWED))
        } else {
            0
        };
        self.space.pacing.unswept.sub_shared(self.sweep_some(owed, deadline));
    }

    /// Sweeps the owed pages, and marks if the debt is worth a step.
    #[inline]
    pub(super) fn pay_debts(&self, me: &Mutator) {
        if !self.fork.is_poisoned() {
            self.pay_sweep();
            self.pay_marking(me);
        }
    }

    fn pay_marking(&self, me: &Mutator) {
        let pacing = &self.space.pacing;
        if pacing.debt.get() < STEP || self.space.cycle.phase() != Phase::Marking {
            return;
        }
        if self.space.cycle.is_held() || me.deferred.get() > 0 {
            return;
        }
        let step_factor = self.step_factor();
        let deadline = self.deadline();
        // Only this mutator's work counts: another mutator subtracts the work of its own step.
        let worked = me.tracer.work.get();
        let bytes = pacing.debt.get().min(STEP.saturating_mul(step_factor as usize));
        self.advance(me, Budget { deadline, bytes }, false);
        pacing.debt.sub_shared(me.tracer.work.get().saturating_sub(worked));
    }

    /// Pays for bytes that were allocated while no collection was allowed (`Mutator::held`).
    pub(super) fn pay_rest(&self, me: &Mutator) {
        if self.space.is_stressed() {
            self.stress(me);
        }
        match me.unpaid.take() {
            0 => {}
            bytes => self.pay(me, bytes),
        }
        // Collects now if the heap is near its limit: later allocations would find no memory.
        if self.is_near_its_limit() {
            self.collect(me);
        }
    }

    /// Returns whether little room is left below the limit, and a collection may make some.
    fn is_near_its_limit(&self) -> bool {
        let most = self.space.target().most;
        most != usize::MAX
            && self.space.pacing.used() > most / LITTLE
            && self.space.bytes_now().saturating_add(most / LITTLE) > most
    }
}
