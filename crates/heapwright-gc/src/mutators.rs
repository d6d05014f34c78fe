//! All mutators of a heap: queries and changes that concern each of them.
//!
//! Called by `safepoints`, `cycle` and other parts that look at a whole heap.

use heapwright_substrate::sync::atomic::Ordering::Relaxed;

use super::heap::Heap;
use super::mutator::Mutator;
use super::pacing::Live;
use super::phase::MOVING;
use super::space::Space;

impl Heap {
    /// Calls `with` for each mutator. No mutator comes or goes meanwhile.
    pub(super) fn each_mutator(&self, mut with: impl FnMut(&'static Mutator)) {
        self.world.each(|handshake| {
            // SAFETY: the members of a heap's world are its mutators'.
            with(unsafe { Mutator::of(handshake) });
            true
        });
    }

    pub(super) fn marked_so_far(&self) -> usize {
        let mut bytes = self.trace.marking.counted_bytes();
        self.each_mutator(|mutator| bytes = mutator.tracer.bytes.get().wrapping_add(bytes));
        bytes
    }

    /// The work of marking in this cycle, in bytes (see `tracer`).
    pub(super) fn work_so_far(&self) -> usize {
        let mut work = self.trace.marking.counted_work();
        self.each_mutator(|mutator| work = mutator.tracer.work.get().wrapping_add(work));
        work
    }

    pub(super) fn give_notes(&self) {
        self.each_mutator(|mutator| mutator.tracer.give_notes());
    }

    /// Sets which stores mutators report: those of `barrier`. If there is a plan, or the heap is
    /// verified, mutators report all stores.
    pub(super) fn set_barrier(&self, barrier: u32) {
        let all = self.moving.is_on() || self.space.is_verified();
        let barrier = barrier & !MOVING | if all { MOVING } else { 0 };
        self.space.cycle.barrier.store(barrier, Relaxed);
        self.each_mutator(|mutator| mutator.barrier.store(barrier, Relaxed));
    }

    /// Decides how much may be allocated before the next cycle ends, if `live` bytes live.
    pub(super) fn set_goal(&self, live: usize) {
        self.space.pacing.note_live(live);
        self.space.sizing.known.set(self.trace.generations.known_live(live));
        self.set_goal_again();
    }

    /// Sets the goal by the present target, and changes no count of live bytes.
    fn set_goal_again(&self) {
        let Space { pacing, sizing, lists, .. } = &self.space;
        // The lock orders all callers. The last of them sees the newest counts and target.
        let _lists = lists.lock();
        let minor = self.trace.generations.is_minor();
        let live = Live { all: pacing.live(), known: sizing.known.get(), minor };
        pacing.set_goal(&self.space.target(), live, sizing.mutators.get(), sizing.rule());
    }

    /// Sets the goal anew when the sweep is over: then the live external bytes are known.
    pub(super) fn know_external(&self) {
        self.set_goal(self.space.pacing.know_live());
    }

    /// Changes the factor and limits of the heap's memory, and its goal. Any thread may call this.
    pub(super) fn set_target(&self, factor: usize, least: usize, most: usize) {
        self.space.sizing.set_target(factor, least, most);
        self.set_goal_again();
    }
}
