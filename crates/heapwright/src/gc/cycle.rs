//! The cycle: when a collection begins, what is done in a step, and how it ends.
//!
//! ```text
//!   IDLE --trigger--> MARKING --nothing left to mark--> SWEEPING --every page swept--> IDLE
//!                      step                                  share
//!                      step    roots again, finalizers       share
//!                      ...     until nothing is new          ...
//! ```
//!
//! **Marking** is tri-colour: white objects have no mark; grey ones are marked and in some
//! chunk; black ones are marked, and what they lead to was reported. It goes on only while the
//! world stands still, all stopped mutators and helpers marking together; between steps mutators
//! run. New objects are white, so nothing need be reported of them, and those that die
//! before marking ends are not kept. A store into a black object shades what is stored
//! (Dijkstra, Lamport, Martin, Scholten, Steffens: "On-the-fly garbage collection", 1978).
//! Roots are never black: they are reported again when nothing else is left, until that finds
//! nothing new. A step ends when its budget does; the next goes on where it ended.
//!
//! A runtime that reports no stores has its marking done in one step.
//!
//! The world's stop is the only lock here: whoever stops it is the collector.

use core::sync::atomic::Ordering::Relaxed;

use crate::os;

use super::heap::{Heap, Phase};
use super::held::StickyMarks;
use super::layout::PAGE_LISTS;
use super::mutator::Mutator;
use super::tracer::Budget;

/// What stores are reported for: the marking under way.
pub(super) const MARKING: u32 = 1;
/// And for the next one, a minor collection: who is old has a mark.
pub(super) const STORES: u32 = 2;

/// And while objects are to be moved: all stores, whatever has a mark.
pub(super) const MOVING: u32 = 4;

impl Heap {
    /// Stands still, if the world does.
    #[inline]
    pub(super) fn at_safepoint(&self, me: &Mutator) {
        if me.poll.load(Relaxed) != 0 {
            self.rest(me);
        }
    }

    /// As [`Heap::at_safepoint`], for who knows that the world stands still.
    #[cold]
    pub(super) fn rest(&self, me: &Mutator) {
        me.note_stack();
        self.world.rest(&me.handshake, || self.help(&me.tracer, |_| {}));
    }

    /// Whether there is a plan of what is to be moved, or somebody waits for one.
    pub(super) fn is_to_compact(&self) -> bool {
        self.moving.is_begun() || self.moving.is_asked() && !self.generations.are_majors_deferred()
    }

    /// Begins a cycle: a step, or all of its marking if stores are not reported.
    pub(super) fn collect_or_begin(&self, me: &Mutator) {
        let budget = if self.options().incremental {
            let deadline = os::now_ns().saturating_add(self.options().step());
            Budget { deadline, bytes: usize::MAX }
        } else {
            Budget::NONE
        };
        self.advance(me, budget, true);
    }

    /// A cycle from its beginning to its end, and all of its sweep.
    pub(super) fn collect(&self, me: &Mutator) {
        let mut begun = self.phase() != Phase::Marking;
        let mut cycles = self.cycles.get();
        while self.torn.get() == 0 && !self.is_held() {
            if self.options().generations {
                self.generations.want_major();
            }
            self.advance(me, Budget::NONE, true);
            if self.cycles.get() != cycles {
                cycles = self.cycles.get();
                if core::mem::replace(&mut begun, true) {
                    break;
                }
            }
        }
        while self.phase() == Phase::Moving && self.torn.get() == 0 && !self.is_held() {
            self.move_some(me, 0);
        }
        self.sweep_all();
    }

    /// Works for about as long as the budget says: sweeps, marks, and begins a cycle if
    /// `begin`.
    pub(super) fn advance(&self, me: &Mutator, budget: Budget, begin: bool) {
        if self.torn.get() != 0 || self.is_held() {
            return;
        }
        // What the last cycle left must be moved and swept before marks are made.
        if self.phase() == Phase::Moving {
            self.move_some(me, budget.deadline);
            if self.phase() == Phase::Moving || budget.is_spent() {
                return;
            }
        }
        if self.phase() == Phase::Sweeping && !self.sweep_until(budget.deadline) {
            return;
        }
        let ready = || self.clear_sticky_marks(me, budget.deadline) && self.plan(budget.deadline);
        if self.phase() != Phase::Marking && !(begin && ready()) {
            return;
        }
        me.note_stack();
        if !self.world.stop(&me.handshake) {
            return self.rest(me);
        }
        let (wall, cpu) = (os::now_ns(), os::thread_cpu_ns());
        // Another mutator may have gone on while this one stopped the world; or something could not be
        // remembered since marks were looked at, and they must go first.
        let lost = self.phase() == Phase::Idle
            && self.generations.sticky_marks() != StickyMarks::Nothing
            && self.generations.remembered.has_lost();
        if matches!(self.phase(), Phase::Sweeping | Phase::Moving) || lost {
            self.world.go_on();
            return;
        }
        self.each_mutator(|mutator| {
            mutator.settle();
            mutator.tracer.publish();
            mutator.tracer.stored.give(&self.stored);
        });
        if self.phase() == Phase::Idle {
            self.begin();
        }
        self.marking.set_deadline(budget.deadline);
        if self.mark(me, budget) {
            self.finish(me);
        }
        self.pauses.add(os::now_ns().saturating_sub(wall), os::thread_cpu_ns().saturating_sub(cpu));
        self.world.go_on();
    }

    /// See [`Mutator::step`](super::raw::Mutator::step).
    pub(super) fn step(&self, me: &Mutator, budget: u64) -> bool {
        let deadline = os::now_ns().saturating_add(budget).max(1);
        self.at_safepoint(me);
        let due = self.is_owed();
        let incremental = self.options().incremental;
        // Without barriers marking cannot be left half done.
        let until = if incremental || !due { deadline } else { 0 };
        self.advance(me, Budget { deadline: until, bytes: usize::MAX }, due);
        if self.phase() == Phase::Sweeping && os::now_ns() < deadline {
            self.sweep_until(deadline);
        }
        self.phase() == Phase::Idle && !self.generations.is_clearing() && !self.is_to_compact()
    }

    /// From now on there are marks.
    fn begin(&self) {
        self.phase.store(Phase::Marking as u32, Relaxed);
        let minor = self.generations.begin();
        self.set_barrier(
            if self.options().incremental { MARKING } else { 0 } | if minor { STORES } else { 0 },
        );
        if minor {
            self.begin_telling();
        } else {
            self.moving.note_begin();
            self.forget_remembered();
        }
        self.pacing.note_begin();
    }

    /// Has stores reported for this, and for moving while there is a plan.
    pub(super) fn set_barrier(&self, barrier: u32) {
        let barrier = barrier & !MOVING | if self.moving.is_on() { MOVING } else { 0 };
        self.barrier.store(barrier, Relaxed);
        self.each_mutator(|mutator| mutator.barrier.store(barrier, Relaxed));
    }

    /// All is marked. From now on pages are swept.
    fn finish(&self, me: &Mutator) {
        if self.options().verify & super::raw::VERIFY_BARRIERS != 0 {
            self.verify_barriers(me);
        }
        self.each_mutator(|mutator| {
            mutator.drop_regions(false);
            self.marking.keep_counts(&mutator.tracer);
        });
        let minor = self.generations.is_minor();
        let lists = self.supply.lists.lock();
        let (mut live, old_bytes) =
            if minor { (lists.old, lists.old_bytes) } else { ([0; PAGE_LISTS], 0) };
        let young_bytes = lists.young_bytes;
        drop(lists);
        let allocated = self.pacing.end_allocating();
        // How much of what the runtime has elsewhere goes with what is dead the sweep will
        // report; until then as much as of the heap itself.
        let marked = self.marking.take_counts(&mut live);
        let slots = old_bytes + marked;
        let first = self.cycles.get() == 0;
        let survival = self.generations.end_marking(first, allocated, marked, young_bytes);
        self.set_goal(self.pacing.estimate_live(slots, allocated));
        self.choose_next(survival);
        // Who sees that the cycle has ended, and has not stopped for it, sees all marks.
        self.cycles.set_released(self.cycles.get() + 1);
        let moves = self.moving.is_on();
        self.phase.store(if moves { Phase::Moving } else { Phase::Sweeping } as u32, Relaxed);
        self.supply.lists.lock().begin_sweep(&live);
        if moves && !self.moves_in_steps() {
            // No stores are reported.
            self.move_stopped(me, 0);
        }
        if self.options().verify & super::raw::VERIFY_HEAP != 0 {
            self.verify(me);
        }
    }

    /// Collects at an allocation, because it is asked to at each.
    #[cold]
    pub(super) fn stress(&self, me: &Mutator) {
        if me.deferred.get() > 0 || self.is_held() {
            return;
        }
        let verify = self.options().verify;
        if self.options().incremental && verify & super::raw::VERIFY_HEAP == 0 {
            // Little steps, so that stores come between them. Who looks for forgotten roots
            // wants whole collections.
            let budget = Budget { deadline: os::now_ns().max(1), bytes: 1 };
            self.advance(me, budget, true);
        } else {
            self.collect(me);
        }
    }
}
