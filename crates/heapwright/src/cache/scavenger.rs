//! The scavenger: gives back pages of partial slabs that have been unused for a while.
//!
//! A slab with one slot in use keeps its unit, but not the pages whose slots were all returned. A
//! pass over the partial slabs begins after each `purge_delay::interval`. Each slow operation of
//! the cache does a bounded step of the pass.
//!
//! ```text
//!   classes   0 .. done .. [this one] .. left ..  79
//!   its partial slabs      s -> s -> [next] -> s        purge if left alone
//! ```
//!
//! Invariants: `next` is 0 or a slab in this class's partial list. A thread that removes a slab
//! from that list first moves `next` on (`Cache::unlist`).
//!
//! A thread's first slow operation in a tick also looks after waiting runs, quiet threads' caches
//! (`visit`) and the tasks of `ticks`. If work is left, the next operation becomes slow, too
//! (`forced_slow`).

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

/// Slabs that a step checks, and purges.
const LOOKS: usize = 64;
const PURGES: usize = 8;

const NOTHING: u8 = 0;
const THIS_PASS: u8 = 1;
const NEXT_PASS: u8 = 2;

/// A cache's pass: a walk over its partial slabs.
pub(super) struct Scavenger {
    /// The time of the last step, in milliseconds. All slow paths read this clock.
    pub(super) now: Cell<u32>,
    pub(super) began: Cell<u32>,
    /// Classes that are still to be walked, with the present class. 0 between passes.
    pub(super) classes_left: Cell<usize>,
    pub(super) next: Cell<usize>,
    /// The thread's last slow operation, in milliseconds.
    pub(super) active: AtomicU32,
    /// Whether there is work: for no pass, for this pass, or also for the next pass.
    work: AtomicU8,
    pub(super) polls: Polls,
    pub(super) are_forced_slow: Cell<bool>,
    /// Whether lists were forced slow in this tick, and at its start.
    pub(super) has_forced_slow: Cell<bool>,
    pub(super) were_forced_slow_first: Cell<bool>,
}

impl Scavenger {
    /// Whether there is work, now or after a purge delay.
    pub(super) fn has_work(&self) -> bool {
        self.work.load(Ordering::Relaxed) != NOTHING
    }

    /// Notes that slots have come back, perhaps too recently for this pass.
    pub(super) fn note_work(&self) {
        self.work.store(NEXT_PASS, Ordering::Relaxed);
    }
}

impl Cache {
    /// A bounded step of a slow path: gives back pages that have been unused for a purge delay.
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
            // Work may have come up after the start of the tick, and the program may be quiet from
            // now on.
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

    /// Whether all operations of this thread in the last tick were slow and few.
    fn is_quiet(&self) -> bool {
        self.scavenger.are_forced_slow.get()
            && self.scavenger.were_forced_slow_first.get()
            && self.scavenger.polls.left.get() > 0
    }

    /// A step for a thread that has been quiet for a purge delay, so that all its free memory is
    /// old. Returns whether more is left.
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

    /// Purges some partial slabs that have been unused for `age` milliseconds.
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
