//! The scavenger: pages of partial slabs that nobody has wanted for a while.
//!
//! A slab with one slot out keeps its unit, but not the pages in which every
//! slot was returned. One pass over the partial slabs begins every purge delay;
//! each slow operation of the cache does a bounded step of it, so there is no
//! background thread and no long pause.
//!
//! ```text
//!   classes   0 .. done .. [this one] .. left ..  79
//!   its partial slabs      s -> s -> [next] -> s        purge if left alone
//! ```
//!
//! Before either, a few runs of the chunk that have waited too long are purged:
//! nobody else may be coming by there.
//!
//! Invariants: `next` is 0 or a slab of this class's partial list; a thread that takes
//! a slab out of that list moves `next` on first (`Cache::unlist`).
//!
//! In each tick of the clock, a thread's first slow operation also sees to runs that wait, to quiet
//! threads' caches (see `visit`), to the process's task (see `ticks`), and that the next operation
//! is a slow one too if there is more to do (see `forced_slow`).

use core::cell::Cell;

use super::forced_slow::Polls;
use super::{Cache, maintenance, visit};
use crate::address_map::MAP;
use crate::chunk;
use crate::os;
use crate::os::SYSTEM;
use crate::purge_delay;
use crate::size_class::CLASSES;
use crate::slab::Slab;
use crate::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use crate::ticks;

/// Slabs that the scavenger looks at in one step, and purges.
const LOOKS: usize = 64;
const PURGES: usize = 8;

const NOTHING: u8 = 0;
const THIS_PASS: u8 = 1;
const NEXT_PASS: u8 = 2;

/// A slow walk over the partial slabs, that gives pages back which nobody has
/// wanted for a while. One pass begins every purge delay; each slow operation
/// of the cache does a bounded step of it.
pub(super) struct Scavenger {
    /// The time of the last step, in milliseconds: the clock of all slow paths.
    pub(super) now: Cell<u32>,
    /// When the last pass began.
    pub(super) began: Cell<u32>,
    /// Classes still to be walked, this one included; 0 between passes.
    pub(super) classes_left: Cell<usize>,
    /// The next slab, or 0.
    pub(super) next: Cell<usize>,
    /// The thread's last slow operation, in milliseconds.
    pub(super) active: AtomicU32,
    /// What there is to do: `NOTHING`, only this pass, or the next one too.
    work: AtomicU8,
    /// See `forced_slow`.
    pub(super) polls: Polls,
    pub(super) are_forced_slow: Cell<bool>,
    /// Whether lists were forced slow in this tick, and whether at its start.
    pub(super) has_forced_slow: Cell<bool>,
    pub(super) were_forced_slow_first: Cell<bool>,
}

impl Scavenger {
    /// Whether there is something to do, now or when a purge delay has passed.
    pub(super) fn has_work(&self) -> bool {
        self.work.load(Ordering::Relaxed) != NOTHING
    }

    /// Notes that slots came home, or are too young for this pass.
    pub(super) fn note_work(&self) {
        self.work.store(NEXT_PASS, Ordering::Relaxed);
    }
}

impl Cache {
    /// A bounded step towards giving back the pages of partial slabs that have
    /// been left alone for a purge delay. Called by the slow paths.
    pub(crate) fn scavenge(&self) {
        let now = os::coarse_ms();
        let is_new_tick = self.scavenger.now.replace(now) != now;
        if is_new_tick {
            self.publish();
            self.scavenger.active.store(now, Ordering::Relaxed);
        }
        if is_new_tick || ticks::is_first() {
            ticks::pass(now);
            if ticks::is_to_trim() {
                maintenance::trim(Some(self));
            }
        }
        let Some(delay) = purge_delay::purge_delay() else {
            if is_new_tick && ticks::has_status() {
                self.force_all_slow();
                maintenance::ask_all(now, 0);
            }
            return;
        };
        self.scavenge_step(now, delay);
        if !is_new_tick {
            // Work that came up since the tick began: it may have been this program's last.
            if !self.scavenger.has_forced_slow.get()
                && (self.scavenger.has_work() || chunk::has_waiting())
            {
                self.force_all_slow();
                maintenance::ask_all(now, u64::MAX);
            }
            return;
        }
        self.scavenger.has_forced_slow.set(false);
        if self.is_quiet() {
            let until = os::now_ns() + visit::QUIET_PATIENCE;
            while self.scavenger.classes_left.get() > 0 && os::now_ns() < until {
                self.scavenge_step(now, delay);
            }
        }
        let others_wait = visit::look_after_others(self.id(), now, delay, self.is_quiet());
        let has_work = self.scavenger.has_work() || others_wait || ticks::has_status();
        self.scavenger.were_forced_slow_first.set(has_work);
        if has_work {
            self.force_all_slow();
            maintenance::ask_all(now, 0);
        }
    }

    /// Whether all of this thread's operations in the last tick were slow ones,
    /// and few: then it has time.
    fn is_quiet(&self) -> bool {
        self.scavenger.are_forced_slow.get()
            && self.scavenger.were_forced_slow_first.get()
            && self.scavenger.polls.left.get() > 0
    }

    /// A step for a thread that has been quiet for a purge delay: all that it has
    /// is old. Returns whether there is more to do now.
    pub(super) fn scavenge_quiet(&self, now: u32) -> bool {
        self.scavenger.now.set(now);
        if self.scavenger.classes_left.get() == 0 {
            self.release_unlisted();
            self.begin_pass(now);
        }
        self.walk(now, 0);
        self.scavenger.classes_left.get() > 0
    }

    fn scavenge_step(&self, now: u32, delay: i32) {
        if self.scavenger.classes_left.get() == 0 {
            if chunk::waited(self.scavenger.began.get(), now) < purge_delay::interval(delay) {
                return;
            }
            self.begin_pass(now);
            super::abandoned::cool_abandoned(now, delay);
        }
        self.walk(now, delay);
    }

    fn begin_pass(&self, now: u32) {
        let scavenger = &self.scavenger;
        scavenger.began.set(now);
        self.stash.pass();
        scavenger.classes_left.set(CLASSES);
        scavenger.next.set(self.bins[0].partial.first().unwrap_or(0));
        scavenger.work.store(THIS_PASS, Ordering::Relaxed);
        self.begin_rooms_anew();
    }

    /// Walks over some partial slabs; purges those left alone for `age`.
    fn walk(&self, now: u32, age: i32) {
        let scavenger = &self.scavenger;
        let mut purges = 0;
        for _ in 0..LOOKS {
            let class = CLASSES - scavenger.classes_left.get();
            let unit = scavenger.next.get();
            if unit == 0 {
                scavenger.classes_left.set(scavenger.classes_left.get() - 1);
                let Some(bin) = self.bins.get(class + 1) else {
                    let more = scavenger.work.load(Ordering::Relaxed) == NEXT_PASS;
                    let work = if more { NEXT_PASS } else { NOTHING };
                    scavenger.work.store(work, Ordering::Relaxed);
                    return;
                };
                scavenger.next.set(bin.partial.first().unwrap_or(0));
                continue;
            }
            scavenger.next.set(self.bins[class].partial.after(&MAP, unit).unwrap_or(0));
            let slab = Slab::at(&MAP, unit, class);
            let waited = chunk::waited(slab.stamp(), now);
            if waited >= age {
                let given = slab.purge(&SYSTEM);
                chunk::note_purged(given);
                purge_delay::note_given(given, now, waited);
                purges += usize::from(given > 0);
                if purges == PURGES {
                    return;
                }
            } else {
                scavenger.note_work();
            }
        }
    }
}
