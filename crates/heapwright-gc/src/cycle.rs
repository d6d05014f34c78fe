//! The cycle: when a collection begins, the work of a step, and how it ends.
//!
//! ```text
//!   IDLE --trigger--> MARKING --nothing left to mark--> SWEEPING --every page swept--> IDLE
//!                      step                                  share
//!                      step    roots again, finalizers       share
//!                      ...     until nothing is new          ...
//! ```
//!
//! **Marking** is tri-colour. White objects have no mark. Grey ones are marked, but not yet traced.
//! Black ones are marked, and their references were reported. Tracing runs only while the world is
//! stopped. All stopped mutators and helpers mark together. Between steps mutators run. New objects
//! are white. They need no report, and are not kept if they die before marking ends. A store into a
//! black object shades the stored object (Dijkstra, Lamport, Martin, Scholten, Steffens:
//! "On-the-fly garbage collection", 1978). Roots are never black. They are reported again when
//! nothing else is left, until a report finds nothing new. A step ends when its budget is spent.
//!
//! If a runtime does not report stores, one step does all marking. If objects are to move, that
//! happens between marking and sweeping. The collector is the thread that stops the world.

use heapwright_substrate::os;
use heapwright_substrate::sync;

use super::around::Around;
use super::event::Span;
use super::heap::Heap;
use super::held::StickyMarks;
use super::layout::PAGE_LISTS;
use super::mutator::Mutator;
use super::options;
use super::page::Page;
use super::pauses::Began;
use super::phase::{MARKING, Phase, STORES};
use super::sizing::Measured;
use super::tracer::{Budget, Tracer};

/// Bytes of marking in a step on the allocation path.
pub(super) const STEP: usize = 128 << 10;

impl Heap {
    /// Also returns false in the program's own fork handlers, where the thread holds every lock.
    fn may_collect(&self) -> bool {
        !self.fork.is_poisoned() && !self.space.cycle.is_held() && !sync::holds_all()
    }

    /// Returns whether there is a plan, or a compaction was requested and no scope defers it.
    pub(super) fn is_to_compact(&self) -> bool {
        self.moving.is_begun()
            || self.moving.is_asked() && !self.trace.generations.are_majors_deferred()
    }

    pub(super) fn collect_or_begin(&self, me: &Mutator) {
        let budget = if self.space.options().incremental {
            Budget { deadline: self.deadline(), bytes: self.first_step() }
        } else {
            Budget::NONE
        };
        self.advance(me, budget, true);
    }

    /// Returns the bytes to mark when a cycle begins. A small heap grows with each allocation until
    /// the cycle ends, so only the deadline limits its first step.
    fn first_step(&self) -> usize {
        let small = self.space.pacing.allowance() <= self.space.target().least.saturating_mul(2);
        if small { usize::MAX } else { STEP }
    }

    pub(super) fn collect(&self, me: &Mutator) {
        self.collect_whole(me, self.space.options().generations, false);
    }

    pub(super) fn collect_in_steps(&self, me: &Mutator) {
        let options = self.space.options();
        self.collect_whole(me, options.generations, options.incremental);
    }

    /// Finishes the cycle under way. Then runs another whole cycle and all of its sweep. That cycle
    /// is minor, unless a major cycle is due or ages are unknown. Returns whether it was minor.
    pub(super) fn collect_young(&self, me: &Mutator) -> bool {
        self.collect_whole(me, false, self.space.options().incremental);
        self.trace.generations.is_minor()
    }

    /// Finishes the cycle under way. Then runs a whole cycle and all of its sweep: a major cycle if
    /// `major`, else the kind that is due. Runs in several pauses if `steps`, else in one pause.
    fn collect_whole(&self, me: &Mutator, major: bool, steps: bool) {
        let mut begun = self.space.cycle.phase() != Phase::Marking;
        let mut cycles = self.space.cycle.number();
        while self.may_collect() {
            if major && self.space.cycle.phase() != Phase::Marking {
                self.trace.generations.want_major();
            }
            let budget =
                Budget { deadline: if steps { self.deadline() } else { 0 }, ..Budget::NONE };
            self.advance(me, budget, true);
            if self.space.cycle.number() != cycles {
                cycles = self.space.cycle.number();
                if core::mem::replace(&mut begun, true) {
                    break;
                }
            }
        }
        while self.space.cycle.phase() == Phase::Moving && self.may_collect() {
            self.move_some(me, if steps { self.deadline() } else { 0 });
        }
        if !self.fork.is_poisoned() {
            self.sweep_all();
        }
    }

    /// Moves, sweeps and marks for about as long as `budget` says. Begins a cycle if `begin`.
    pub(super) fn advance(&self, me: &Mutator, budget: Budget, begin: bool) {
        if !self.may_collect() {
            return;
        }
        // The last cycle's moves and sweep must end before new marks are made.
        if self.space.cycle.phase() == Phase::Moving {
            self.move_some(me, budget.deadline);
            if self.space.cycle.phase() == Phase::Moving || budget.is_spent() {
                return;
            }
        }
        if self.space.cycle.phase() == Phase::Sweeping && !self.sweep_until(budget.deadline) {
            return;
        }
        let ready = || {
            self.clear_sticky_marks(me, budget.deadline)
                && self.moving.plan(&self.trace, budget.deadline)
        };
        if self.space.cycle.phase() != Phase::Marking && !(begin && ready()) {
            return;
        }
        me.stack.note();
        let asked = os::now_ns();
        if !self.stop_world(me) {
            return;
        }
        let began = Began::now(asked);
        // Another mutator may have advanced the cycle meanwhile. Or, since `ready` checked the
        // sticky marks, there was no memory to remember an object. Then they must be cleared first.
        let lost = self.space.cycle.phase() == Phase::Idle
            && self.trace.generations.sticky_marks() != StickyMarks::Nothing
            && self.trace.generations.remembered.has_lost();
        if matches!(self.space.cycle.phase(), Phase::Sweeping | Phase::Moving) || lost {
            return self.go_on(me);
        }
        self.pause_begins(me, &began);
        self.each_mutator(|mutator| {
            mutator.settle();
            mutator.tracer.publish();
            mutator.tracer.dirty_slots.give(&self.trace.dirty_slots);
        });
        if self.space.cycle.phase() == Phase::Idle {
            self.begin(me);
        }
        self.trace.marking.set_deadline(budget.deadline);
        if self.during(Span::Mark, me, || self.trace.mark(&me.tracer, budget, &Stopped(self, me))) {
            self.finish(me, &began);
        }
        let (pause, cpu) = self.pauses.add(&began);
        self.space.sizing.end_step(cpu);
        self.go_on(me);
        self.pause_ends(me, &began, pause);
        self.trace.due.tell();
    }

    /// See [`Mutator::step`](super::raw::Mutator::step).
    pub(super) fn step(&self, me: &Mutator, budget: u64) -> bool {
        let deadline = os::now_ns().saturating_add(budget).max(1);
        self.at_rare_safepoint(me);
        let due = self.is_owed();
        let incremental = self.space.options().incremental;
        // Without barriers, marking must end in the step in which it begins.
        let until = if incremental || !due { deadline } else { 0 };
        self.advance(me, Budget { deadline: until, bytes: usize::MAX }, due);
        if self.space.cycle.phase() == Phase::Sweeping && os::now_ns() < deadline {
            self.sweep_until(deadline);
        }
        let is_through = self.space.cycle.phase() == Phase::Idle
            && !self.trace.generations.is_clearing()
            && !self.is_to_compact();
        // (A poisoned heap never collects again.)
        is_through || self.fork.is_poisoned()
    }

    fn begin(&self, me: &Mutator) {
        self.space.cycle.enter(Phase::Marking);
        self.trace.settling.clear();
        self.trace.weak.stop_watching();
        let minor = self.trace.generations.begin();
        self.set_barrier(
            if self.space.options().incremental { MARKING } else { 0 }
                | if minor { STORES } else { 0 },
        );
        if minor {
            self.give_notes();
            self.trace.generations.remembered.begin();
        } else {
            self.moving.note_begin();
            self.give_notes();
            let marking = &self.trace.marking;
            self.trace.generations.remembered.forget(|chunk| marking.give_back(chunk));
        }
        self.collection_begins(me);
        self.space.pacing.note_begin();
    }

    /// Ends marking: all live objects are marked. From now on pages are swept.
    fn finish(&self, me: &Mutator, began: &Began) {
        self.trace_ends(me);
        if self.space.options().verify & options::VERIFY_BARRIERS != 0 {
            self.verify_barriers(me);
        }
        let (target, mut unused) = (self.space.target(), 0);
        self.each_mutator(|mutator| {
            unused += mutator.unused();
            mutator.drop_regions(false);
            mutator.tracer.give_counts();
        });
        let minor = self.trace.generations.is_minor();
        let lists = self.space.lists.lock();
        let (mut live, old_bytes) =
            if minor { (lists.old, lists.old_bytes) } else { ([0; PAGE_LISTS], 0) };
        let young_bytes = lists.young_bytes;
        drop(lists);
        self.space.pacing.note_cycle(&target, unused, minor);
        let allocated = self.space.pacing.end_allocating();
        let marked = self.trace.marking.take_counts(&mut live);
        self.trace.marking.trim(self.space.pacing.live());
        let slots = old_bytes + marked;
        let first = self.space.cycle.number() == 0;
        let survival = self.trace.generations.end_marking(first, allocated, marked, young_bytes);
        // Only the end of the sweep tells how many external bytes belong to dead objects.
        let all = self.space.pacing.estimate_live(slots, allocated);
        let measured = Measured {
            live: all,
            allocated,
            marked,
            step: began.cpu() as usize,
            swept: self.pauses.swept_ns(),
            cycle: self.space.cycle.number() + 1,
            minor,
        };
        self.space.sizing.size(&target, &measured);
        self.set_goal(all);
        let generations = self.space.options().generations;
        let goal = self.space.pacing.goal();
        let stay = self.trace.generations.choose_next(
            generations,
            self.space.pacing.live(),
            goal,
            survival,
        );
        self.set_barrier(if stay { STORES } else { 0 });
        self.space.cycle.end_marking();
        let moves = self.moving.is_on();
        self.space.cycle.enter(if moves { Phase::Moving } else { Phase::Sweeping });
        self.space.lists.lock().begin_sweep(&live);
        self.sweep_begins();
        if moves && !self.moves_in_steps() {
            self.during(Span::Move, me, || self.move_stopped(me, 0));
        }
        if self.space.options().verify & options::VERIFY_HEAP != 0 {
            self.verify(me);
        }
    }

    /// Collects at an allocation, in stress mode.
    #[cold]
    pub(super) fn stress(&self, me: &Mutator) {
        if me.deferred.get() > 0 || self.space.cycle.is_held() {
            return;
        }
        let verify = self.space.options().verify;
        if self.space.options().incremental && verify & options::VERIFY_HEAP == 0 {
            // Makes little steps, so that stores come between them. The heap verifier, which looks
            // for forgotten roots, needs whole collections.
            let budget = Budget { deadline: os::now_ns().max(1), bytes: 1 };
            self.advance(me, budget, true);
        } else {
            self.collect(me);
        }
    }

    /// Clears sticky marks, a few pages at a time, until `deadline` (0: no limit). Does so if the
    /// next cycle is to be a major one. Returns whether nothing is left to clear. Call this only
    /// while no cycle is marking and every page has been claimed for the sweep.
    fn clear_sticky_marks(&self, me: &Mutator, deadline: u64) -> bool {
        let generations = &self.trace.generations;
        if generations.sticky_marks() == StickyMarks::Nothing {
            return true;
        }
        if !generations.is_clearing() {
            let major = generations.wants_major.get() != 0 || self.moving.wants_major();
            let wanted = major && !generations.are_majors_deferred();
            if !wanted && !generations.remembered.has_lost() {
                return true;
            }
            // If a mutator still sweeps one of the last pages, it stops when the page is swept.
            me.stack.note();
            if !self.stop_world(me) {
                return false;
            }
            generations.clearing.set(usize::from(self.space.cycle.phase() == Phase::Idle));
            self.go_on(me);
        }
        generations.clear_some(&self.space, deadline)
    }

    pub(super) fn move_some(&self, me: &Mutator, deadline: u64) {
        me.stack.note();
        let asked = os::now_ns();
        if !self.stop_world(me) {
            return;
        }
        let began = Began::now(asked);
        self.pause_begins(me, &began);
        if self.space.cycle.phase() == Phase::Moving {
            self.each_mutator(Mutator::settle);
            self.during(Span::Move, me, || self.move_stopped(me, deadline));
        }
        let (pause, _) = self.pauses.add(&began);
        self.go_on(me);
        self.pause_ends(me, &began, pause);
    }

    fn move_stopped(&self, me: &Mutator, deadline: u64) {
        let through = self.moving.step(&me.tracer, deadline, &Stopped(self, me));
        while let Some(number) = self.moving.next_large() {
            if let Some(page) = self.space.pages.get(number as usize) {
                self.large_was_moved(me, page);
            }
        }
        if through {
            self.set_barrier(self.space.cycle.barrier());
            self.space.cycle.enter(Phase::Sweeping);
        }
        if self.space.options().verify & options::VERIFY_HEAP != 0 {
            self.each_mutator(Mutator::settle);
            self.verify(me);
        }
    }

    /// Returns whether objects can move in steps, between which mutators run. Mutators must report
    /// all stores, and the references to a page must be known. (A runtime that changes references
    /// itself visits all objects, in one step.)
    fn moves_in_steps(&self) -> bool {
        let options = self.space.options();
        (options.incremental || options.generations) && !self.runtime().updates()
    }

    /// Runs a whole compaction: of all pages that may move if `all`, else of sparse pages.
    pub(super) fn compact(&self, me: &Mutator, all: bool) {
        self.collect(me);
        self.moving.ask_now(all);
        self.collect(me);
        self.space.trim();
    }

    /// Returns when a step that begins now must end, in nanoseconds of the clock.
    pub(super) fn deadline(&self) -> u64 {
        os::now_ns().saturating_add(self.space.options().step())
    }

    /// Returns the expected bytes still to be marked. A major cycle marks the bytes that the last
    /// cycle found live. The first cycle marks the allocated bytes. A minor cycle marks as many as
    /// the last cycle, but at most the bytes allocated before that cycle.
    pub(super) fn left(&self) -> usize {
        let expected = match self.space.cycle.number() {
            _ if self.trace.generations.is_minor() => self.trace.generations.young(),
            0 => self.space.pacing.allocated.get(),
            _ => self.space.pacing.live_slots(),
        };
        expected.saturating_sub(self.work_so_far())
    }

    pub(super) fn is_owed(&self) -> bool {
        !self.fork.is_poisoned()
            && (matches!(self.space.cycle.phase(), Phase::Marking | Phase::Moving)
                || self.space.pacing.is_due(&self.space.target())
                || self.trace.generations.is_clearing()
                || self.is_to_compact())
    }
}

struct Stopped<'a>(&'a Heap, &'a Mutator);

impl Around for Stopped<'_> {
    fn each_tracer(&self, with: &mut dyn FnMut(&Tracer)) {
        self.0.each_mutator(|mutator| with(&mutator.tracer));
    }

    fn scan_stacks(&self, tracer: &Tracer) {
        self.0.each_mutator(|mutator| {
            // Each stack's references go into separate chunks. The objects of one mutator lie
            // together. So two marking threads rarely use the same cache line of marks.
            tracer.publish();
            mutator.stack.scan(tracer);
            tracer.publish_for(&mutator.tracer);
        });
    }

    fn parked(&self) -> usize {
        let mut parked = 0;
        self.0.world.each(|handshake| {
            let other = !core::ptr::eq(handshake, &self.1.handshake);
            parked += usize::from(other && handshake.is_parked());
            true
        });
        parked
    }

    fn call(&self) {
        self.0.world.call_for_help();
    }

    fn left(&self) -> usize {
        self.0.left()
    }

    fn during(&self, span: Span, work: &mut dyn FnMut() -> bool) -> bool {
        self.0.during(span, self.1, work)
    }

    fn settle(&self) {
        self.0.each_mutator(Mutator::settle);
    }

    fn each_open_page(&self, with: &mut dyn FnMut(&Page)) {
        self.0.each_mutator(|mutator| mutator.each_page_in_use(&mut *with));
    }

    fn place(&self, page_list: usize, size: usize) -> Option<(*mut u8, &'static Page, usize)> {
        self.1.place(page_list, size)
    }
}
