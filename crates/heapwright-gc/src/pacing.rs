//! Pacing: how much a heap may allocate before it collects, and what an allocation pays for that.
//!
//! ```text
//!   allocated + external_added              what was used of the allowance since the last cycle
//!   |--------------------|---------------|  allowance = goal - live
//!                        ^ trigger       ^ goal (see `growth`)
//!
//!   while marking   debt += bytes allocated * (bytes left to mark / bytes left to allocate)
//!                   debt >= STEP: a step, which marks STEP bytes; the rest when the mutator comes by next
//!   while sweeping  unswept += its share in pages (see `growth`); swept in pieces likewise, by time
//! ```
//!
//! A heap of `live` bytes may grow to its goal. When it begins to mark, each byte that is allocated
//! is paid for with as many bytes of marking as it takes to finish at the goal. The debt is paid in
//! steps of a useful length, because stopping the world has a price of its own; not all at once,
//! because somebody waits for what a mutator does meanwhile. It comes by whenever it needs another
//! stretch of free slots, many times in a page that was in use.
//!
//! External bytes are what the runtime has in malloc for objects of the heap. They count like bytes
//! of slots, but how many go with what is dead is known only when the sweep is over.
//!
//! [`Pacing`] keeps the accounts; the decisions are arithmetic and stand in `growth`. What an
//! allocation pays with (a share of the sweep, a step) stands in `payment`.
//!
//! Part of `space`.

use super::cell::{Num, clear};
use super::growth::{self, Target};
use super::overhead::Overhead;

/// The accounts of one heap, in bytes. Zero has none.
pub(super) struct Pacing {
    /// A cycle is to begin, whether it is due or not.
    wanted: Num,
    /// What the last cycle found live, external bytes included.
    live: Num,
    goal: Num,
    allowance: Num,
    /// What mutators may have allocated since the last cycle ended, and in cycles before.
    pub(super) allocated: Num,
    allocated_before: Num,
    /// What the runtime has in malloc.
    external: Num,
    /// Of these, what goes with live objects: estimated when marking ends, known when the sweep
    /// does. And what was added since.
    external_live: Num,
    external_added: Num,
    /// Mutators that free what died: what they take from `external` belonged to no live object.
    freeing: Num,
    /// What must be marked before mutators have paid for what they allocated, and pages that must
    /// be swept.
    pub(super) debt: Num,
    pub(super) unswept: Num,
    /// What its pages have, as when a page last came, and the most that pages and malloc ever had.
    pages: Num,
    peak: Num,
    overhead: Overhead,
}

/// What a cycle found live, in bytes.
#[derive(Clone, Copy)]
pub(super) struct Live {
    pub(super) all: usize,
    /// Without garbage that may be old: what a major cycle has found.
    pub(super) known: usize,
    /// Whether the cycle was a minor one.
    pub(super) minor: bool,
}

impl Pacing {
    /// Decides what may be allocated before the next cycle ends. Old garbage gets no allowance.
    pub(super) fn set_goal(
        &self,
        target: &Target,
        live: Live,
        mutators: usize,
        room: Option<usize>,
    ) {
        let goal = target.goal(live.known, mutators, room);
        self.live.set(live.all);
        self.goal.set(goal);
        let least = if live.minor { (goal - live.known) / growth::LEAST_OF_ALLOWANCE } else { 0 };
        self.allowance.set(goal.saturating_sub(live.all).max(least));
    }

    /// What the last cycle found live, external bytes included.
    pub(super) fn live(&self) -> usize {
        self.live.get()
    }

    /// What may be live and garbage when the next cycle ends.
    pub(super) fn goal(&self) -> usize {
        self.goal.get()
    }

    /// What may be allocated between two cycles.
    pub(super) fn allowance(&self) -> usize {
        self.allowance.get()
    }

    /// What the runtime has in malloc. Nothing, where it has accounted for less than it freed: by
    /// mistake, or because one thread is ahead of another.
    pub(super) fn external(&self) -> usize {
        self.external.get().cast_signed().max(0).cast_unsigned()
    }

    /// The most that the heap ever had, in pages and in malloc.
    pub(super) fn peak(&self) -> usize {
        self.peak.get()
    }

    /// All bytes ever allocated, counted when a mutator takes a page.
    pub(super) fn allocated_ever(&self) -> usize {
        self.allocated_before.get().saturating_add(self.allocated.get())
    }

    /// Bytes allocated since the last cycle ended, in pages and in malloc.
    pub(super) fn used(&self) -> usize {
        self.allocated.get().saturating_add(self.external_added.get())
    }

    /// Bytes of slots that the last cycle found live: what there is to mark.
    pub(super) fn live_slots(&self) -> usize {
        self.live.get().saturating_sub(self.external_live.get())
    }

    /// Bytes of a heap whose pages have so many, what is in malloc included.
    pub(super) fn with_external(&self, pages: usize) -> usize {
        pages.saturating_add(self.external())
    }

    /// Returns whether a heap whose pages have so many bytes stays below `most` of them, where
    /// malloc's for dead objects do not count, and below `limit` with all of malloc's.
    pub(super) fn admits(&self, pages: usize, most: usize, limit: usize) -> bool {
        let external = self.external_live.get().saturating_add(self.external_added.get());
        pages.saturating_add(external) <= most && self.is_below(pages, limit)
    }

    /// Returns whether a heap whose pages have so many bytes does not exceed `limit`, malloc's
    /// included.
    pub(super) fn is_below(&self, pages: usize, limit: usize) -> bool {
        self.with_external(pages) <= limit
    }

    /// Notes how many bytes pages have, and the peak. Under the lock of the page lists.
    pub(super) fn note_pages(&self, pages: usize) {
        self.pages.set(pages);
        self.peak.set(self.peak.get().max(self.with_external(pages)));
    }

    /// So many bytes were allocated. By any thread.
    pub(super) fn add_allocated(&self, bytes: usize) {
        self.allocated.add_shared(bytes);
    }

    /// So many bytes were not allocated after all. By any thread.
    pub(super) fn sub_allocated(&self, bytes: usize) {
        self.allocated.sub_shared(bytes);
    }

    /// The runtime has `bytes` more in malloc, or less. By any thread.
    pub(super) fn add_external(&self, bytes: isize) {
        self.external.add_shared(bytes.cast_unsigned());
        if bytes > 0 {
            self.external_added.add_shared(bytes.unsigned_abs());
            self.note_pages(self.pages.get());
        } else if self.freeing.get() == 0 {
            self.external_added.sub_shared(bytes.unsigned_abs());
        }
    }

    /// Calls `free`, during which what the runtime frees in malloc belonged to dead objects.
    pub(super) fn while_freeing(&self, free: impl FnOnce()) {
        self.freeing.add_shared(1);
        free();
        self.freeing.sub_shared(1);
    }

    /// A cycle is due from now on.
    pub(super) fn ask(&self) {
        self.wanted.set(1);
    }

    /// Returns whether a cycle is to begin.
    pub(super) fn is_due(&self, target: &Target) -> bool {
        self.wanted.get() != 0
            || self.used() >= target.trigger(self.allowance.get()) && !self.is_in_vain(target)
    }

    /// Returns whether enough was allocated since the last cycle that another may find something.
    pub(super) fn is_worth_collecting(&self, target: &Target) -> bool {
        self.used() >= self.allowance.get() / 4 && !self.is_in_vain(target)
    }

    /// Returns whether another cycle would be in vain (see `overhead`).
    pub(super) fn is_in_vain(&self, target: &Target) -> bool {
        self.overhead.is_in_vain(target.most, self.used())
    }

    /// A cycle has found what lives. Of what counts as allocated, so much is `unused`. Before it is
    /// forgotten.
    pub(super) fn note_cycle(&self, target: &Target, unused: usize, minor: bool) {
        let allocated = self.used().saturating_sub(unused);
        self.overhead.note_cycle(target.most, allocated, self.live.get(), minor);
    }

    /// An allocation was refused, after which the runtime may have let go of something.
    pub(super) fn note_refusal(&self) {
        self.overhead.note_refusal();
    }

    /// The runtime has collected.
    pub(super) fn note_request(&self) {
        self.overhead.forget();
    }

    /// Marking begins.
    pub(super) fn note_begin(&self) {
        self.debt.set(0);
        self.unswept.set(0);
        self.wanted.set(0);
    }

    /// Marking has ended: the bytes that were allocated since the last time it did.
    pub(super) fn end_allocating(&self) -> usize {
        let allocated = self.allocated.take();
        self.allocated_before.add(allocated);
        self.debt.set(0);
        allocated
    }

    /// Estimates the external bytes that are live, if `slots` bytes of slots are, of those that
    /// were and the `allocated` ones. Returns what is live in all. What was live has kept its
    /// external bytes but for the share by which it has shrunk; of those that were added, what was
    /// allocated and lives has its share. (One share for both would take long-lived buffers for
    /// garbage, and garbage's for live.)
    pub(super) fn estimate_live(&self, slots: usize, allocated: usize) -> usize {
        let (was, external) = (self.live_slots(), self.external());
        let added = self.external_added.get().min(external);
        let share = |of: usize, part: usize, whole: usize| {
            (of as f64 * part.min(whole) as f64 / whole.max(1) as f64) as usize
        };
        let old = if was == 0 { external - added } else { share(external - added, slots, was) };
        let young = share(added, slots.saturating_sub(was), allocated);
        self.external_live.set(old.saturating_add(young));
        self.external_added.set(0);
        slots.saturating_add(self.external_live.get())
    }

    /// The sweep is over: what is left of external bytes is live, or was added since. Returns what
    /// is live in all.
    pub(super) fn know_live(&self) -> usize {
        let external = self.external().saturating_sub(self.external_added.get());
        let slots = self.live_slots();
        self.external_live.set(external);
        slots.saturating_add(external)
    }

    /// Forgets all.
    pub(super) fn end(&self) {
        clear! { self:
            wanted live goal allowance allocated allocated_before external external_live
            external_added freeing debt unswept pages peak
        }
        self.overhead.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Target = Target { factor: 200, least: 0, most: usize::MAX, incremental: false };

    #[test]
    fn external_bytes_are_estimated_when_marking_ends_and_known_when_the_sweep_does() {
        // SAFETY: zero has no accounts.
        let pacing: Pacing = unsafe { core::mem::zeroed() };
        pacing.add_external(100);
        pacing.add_allocated(300);
        assert_eq!((pacing.used(), pacing.peak()), (400, 100));
        // A third of the slots is live: so much is taken of the external bytes.
        let allocated = pacing.end_allocating();
        let live = pacing.estimate_live(100, allocated);
        assert_eq!((allocated, live, pacing.used()), (300, 133, 0));
        pacing.set_goal(&TARGET, Live { all: live, known: live, minor: false }, 1, None);
        assert_eq!((pacing.goal(), pacing.allowance(), pacing.live_slots()), (266, 133, 100));
        // What is freed belonged to dead objects, and frees nothing of what was added since.
        pacing.add_external(10);
        pacing.while_freeing(|| pacing.add_external(-60));
        assert_eq!((pacing.external(), pacing.used()), (50, 10));
        assert_eq!(pacing.know_live(), 140);
        // Of pages and malloc: what is dead there counts against the limit alone.
        assert!(pacing.admits(216, 266, usize::MAX) && !pacing.admits(217, 266, usize::MAX));
        assert!(pacing.is_below(950, 1000) && !pacing.is_below(951, 1000));
        pacing.end();
        assert_eq!((pacing.used(), pacing.external(), pacing.peak()), (0, 0, 0));
    }

    #[test]
    fn more_that_was_freed_than_was_ever_accounted_is_nothing_and_not_all_there_is() {
        // SAFETY: zero has no accounts.
        let pacing: Pacing = unsafe { core::mem::zeroed() };
        pacing.add_allocated(300);
        pacing.add_external(-50);
        assert_eq!((pacing.external(), pacing.used()), (0, 300));
        assert!(pacing.is_below(1000, 1000) && !pacing.is_below(1001, 1000));
        let allocated = pacing.end_allocating();
        assert_eq!(pacing.estimate_live(100, allocated), 100);
        assert_eq!(pacing.know_live(), 0);
        // Nor is a sum that no number holds.
        pacing.add_external(100);
        assert!(!pacing.is_below(usize::MAX, 1000));
        assert!(!pacing.admits(usize::MAX, 1000, usize::MAX - 1));
    }
}
