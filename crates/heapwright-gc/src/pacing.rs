//! Pacing: how much a heap may allocate before it collects, and what an allocation pays for that.
//!
//! ```text
//!   allocated + external_added              the part of the allowance used since the last cycle
//!                        ^ trigger       ^ goal (see `growth`)
//!
//!   while marking   debt += bytes allocated * (bytes left to mark / bytes left to allocate)
//!                   debt >= STEP: a step marks STEP bytes, or more beyond the goal (see `growth`);
//!                   the next slow path pays for the others
//!   while sweeping  unswept += a share of the pages (see `growth`), swept in pieces, by time
//! ```
//!
//! A heap of `live` bytes may grow to its goal. Once marking has begun, each allocated byte is paid
//! for with enough bytes of marking to finish at the goal. The debt is paid in steps, because each
//! stop of the world costs time. A step is limited, because it delays the mutator. A mutator pays
//! whenever it needs another stretch of free slots. A page that was in use has many stretches.
//!
//! External bytes are malloc blocks that the runtime holds for objects of the heap. They count like
//! bytes of slots. Only the end of the sweep tells how many of them belong to dead objects.
//!
//! [`Pacing`], part of `space`, keeps the accounts. The decisions are arithmetic, in `growth`.
//! `payment` has the payments of an allocation (a share of the sweep, a step).

use super::cell::{Num, clear};
use super::growth::{self, Rule, Target};
use super::overhead::Overhead;

/// The accounts of one heap, in bytes. All zero at first.
pub(super) struct Pacing {
    /// Whether a cycle is to begin, even if it is not due.
    wanted: Num,
    /// The bytes that the last cycle found live, external bytes included.
    live: Num,
    goal: Num,
    allowance: Num,
    /// Bytes that mutators allocated since the last cycle ended. `allocated_before`: bytes
    /// allocated in earlier cycles.
    pub(super) allocated: Num,
    allocated_before: Num,
    /// The bytes that the runtime has in malloc.
    external: Num,
    /// The part of `external` that belongs to live objects: estimated when marking ends, known when
    /// the sweep ends. `external_added`: the bytes that were added since marking ended.
    external_live: Num,
    external_added: Num,
    /// Threads that free dead objects now. They subtract only dead objects' bytes from `external`.
    freeing: Num,
    /// Bytes that mutators still have to mark for their allocations. `unswept`: pages to sweep.
    pub(super) debt: Num,
    pub(super) unswept: Num,
    /// Bytes of pages, for threads without the lists' lock. `peak`: the most bytes ever, external
    /// ones included.
    pages: Num,
    peak: Num,
    overhead: Overhead,
}

#[derive(Clone, Copy)]
pub(super) struct Live {
    pub(super) all: usize,
    /// Without garbage that may be old: the bytes that a major cycle found.
    pub(super) known: usize,
    /// Whether the cycle was a minor one.
    pub(super) minor: bool,
}

impl Pacing {
    /// Decides how much may be allocated before the next cycle ends. Old garbage gets no allowance.
    pub(super) fn set_goal(&self, target: &Target, live: Live, mutators: usize, rule: Rule) {
        let goal = target.goal(live.known, mutators, rule);
        self.goal.set(goal);
        let least = if live.minor { (goal - live.known) / growth::LEAST_OF_ALLOWANCE } else { 0 };
        self.allowance.set(goal.saturating_sub(live.all).max(least));
    }

    /// Notes how many bytes a cycle found live. Only the thread that ends the cycle calls this.
    pub(super) fn note_live(&self, live: usize) {
        self.live.set(live);
    }

    pub(super) fn live(&self) -> usize {
        self.live.get()
    }

    /// Returns how many live and garbage bytes there may be when the next cycle ends.
    pub(super) fn goal(&self) -> usize {
        self.goal.get()
    }

    pub(super) fn allowance(&self) -> usize {
        self.allowance.get()
    }

    /// Returns the external bytes, at least 0. (The sum is negative if the runtime has freed more
    /// bytes than it reported, by mistake or because one thread is ahead of another.)
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

    /// Bytes of slots that the last cycle found live: about as many as the next one has to mark.
    pub(super) fn live_slots(&self) -> usize {
        self.live.get().saturating_sub(self.external_live.get())
    }

    /// Returns the bytes of a heap whose pages have `pages` bytes, with the external bytes.
    pub(super) fn with_external(&self, pages: usize) -> usize {
        pages.saturating_add(self.external())
    }

    /// Returns whether a heap whose pages have `pages` bytes stays within two limits. `most` holds
    /// without the external bytes of dead objects, `limit` with all external bytes.
    pub(super) fn admits(&self, pages: usize, most: usize, limit: usize) -> bool {
        let external = self.external_live.get().saturating_add(self.external_added.get());
        pages.saturating_add(external) <= most && self.is_below(pages, limit)
    }

    /// Returns whether the pages' `pages` bytes and the external bytes do not exceed `limit`.
    pub(super) fn is_below(&self, pages: usize, limit: usize) -> bool {
        self.with_external(pages) <= limit
    }

    /// Notes how many bytes the pages have, and the peak. The caller holds the lock of the page
    /// lists.
    pub(super) fn note_pages(&self, pages: usize) {
        self.pages.set(pages);
        self.raise_peak();
    }

    fn raise_peak(&self) {
        self.peak.raise_shared(self.with_external(self.pages.get()));
    }

    /// Adds `bytes` allocated bytes. Any thread may call this.
    pub(super) fn add_allocated(&self, bytes: usize) {
        self.allocated.add_shared(bytes);
    }

    /// Subtracts bytes that were not allocated after all. Any thread may call this.
    pub(super) fn sub_allocated(&self, bytes: usize) {
        self.allocated.sub_shared(bytes);
    }

    /// Adds `bytes` external bytes, or subtracts them if negative. Any thread may call this.
    pub(super) fn add_external(&self, bytes: isize) {
        self.external.add_shared(bytes.cast_unsigned());
        if bytes > 0 {
            self.external_added.add_shared(bytes.unsigned_abs());
            self.raise_peak();
        } else if self.freeing.get() == 0 {
            self.external_added.sub_shared(bytes.unsigned_abs());
        }
    }

    /// Calls `free`. External bytes that the runtime frees meanwhile belonged to dead objects.
    pub(super) fn while_freeing(&self, free: impl FnOnce()) {
        self.freeing.add_shared(1);
        free();
        self.freeing.sub_shared(1);
    }

    pub(super) fn ask(&self) {
        self.wanted.set(1);
    }

    pub(super) fn is_due(&self, target: &Target) -> bool {
        self.wanted.get() != 0
            || self.used() >= target.trigger(self.allowance.get()) && !self.is_in_vain(target)
    }

    /// Returns whether enough was allocated that another cycle may find garbage.
    pub(super) fn is_worth_collecting(&self, target: &Target) -> bool {
        self.used() >= self.allowance.get() / 4 && !self.is_in_vain(target)
    }

    /// Returns whether another cycle would free too little (see `overhead`).
    pub(super) fn is_in_vain(&self, target: &Target) -> bool {
        self.overhead.is_in_vain(target.most, self.used())
    }

    /// Notes a cycle that has found the live objects. `unused` bytes count as allocated, but are
    /// not used. Call this before the counts are reset.
    pub(super) fn note_cycle(&self, target: &Target, unused: usize, minor: bool) {
        let allocated = self.used().saturating_sub(unused);
        self.overhead.note_cycle(target.most, allocated, self.live.get(), minor);
    }

    /// Notes a refused allocation. The runtime may have dropped references since.
    pub(super) fn note_refusal(&self) {
        self.overhead.note_refusal();
    }

    pub(super) fn note_request(&self) {
        self.overhead.forget();
    }

    pub(super) fn note_begin(&self) {
        self.debt.set(0);
        self.unswept.set(0);
        self.wanted.set(0);
    }

    /// Ends marking. Returns the bytes that were allocated since marking last ended.
    pub(super) fn end_allocating(&self) -> usize {
        let allocated = self.allocated.take();
        self.allocated_before.add(allocated);
        self.debt.set(0);
        allocated
    }

    /// Estimates the live external bytes, if `slots` bytes of slots are live and `allocated` bytes
    /// were allocated. Returns all live bytes. Older external bytes shrink in the same ratio as the
    /// older bytes of slots. External bytes added since the last cycle survive in the same ratio as
    /// allocated bytes.
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

    /// Counts the live external bytes when the sweep is over: all that are left, except those added
    /// since. Returns all live bytes.
    pub(super) fn know_live(&self) -> usize {
        let external = self.external().saturating_sub(self.external_added.get());
        let slots = self.live_slots();
        self.external_live.set(external);
        slots.saturating_add(external)
    }

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
    extern crate std;

    use super::*;

    const TARGET: Target = Target { factor: 200, least: 0, most: usize::MAX, incremental: false };

    #[test]
    fn external_bytes_are_estimated_when_marking_ends_and_known_when_the_sweep_does() {
        // SAFETY: zero has no accounts.
        let pacing: Pacing = unsafe { core::mem::zeroed() };
        pacing.add_external(100);
        pacing.add_allocated(300);
        assert_eq!((pacing.used(), pacing.peak()), (400, 100));
        // A third of the slots is live, so a third of the external bytes counts as live.
        let allocated = pacing.end_allocating();
        let live = pacing.estimate_live(100, allocated);
        assert_eq!((allocated, live, pacing.used()), (300, 133, 0));
        pacing.note_live(live);
        pacing.set_goal(&TARGET, Live { all: live, known: live, minor: false }, 1, Rule::Factor);
        assert_eq!((pacing.goal(), pacing.allowance(), pacing.live_slots()), (266, 133, 100));
        // Freed bytes belonged to dead objects, and are not subtracted from those added since.
        pacing.add_external(10);
        pacing.while_freeing(|| pacing.add_external(-60));
        assert_eq!((pacing.external(), pacing.used()), (50, 10));
        assert_eq!(pacing.know_live(), 140);
        // The external bytes of dead objects count against the limit alone.
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
        // A sum does not overflow either.
        pacing.add_external(100);
        assert!(!pacing.is_below(usize::MAX, 1000));
        assert!(!pacing.admits(usize::MAX, 1000, usize::MAX - 1));
    }

    #[test]
    fn the_peak_has_all_pages_while_other_threads_report_external_bytes() {
        const PAGES: usize = if cfg!(miri) { 50 } else { 1_000_000 };
        // SAFETY: zero has no accounts.
        let pacing: Pacing = unsafe { core::mem::zeroed() };
        std::thread::scope(|scope| {
            let pages = scope.spawn(|| {
                while pacing.peak() == 0 {
                    std::thread::yield_now();
                }
                for pages in 1..=PAGES {
                    pacing.note_pages(pages);
                    assert_eq!(pacing.pages.get(), pages);
                    assert!((pages..=pages + 1).contains(&pacing.peak()));
                }
            });
            while !pages.is_finished() {
                pacing.add_external(1);
                pacing.add_external(-1);
            }
        });
    }
}
