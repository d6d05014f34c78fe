//! Visits: slow work of a thread in another thread's cache.
//!
//! A thread that takes no slow path cannot look after its cache, so other threads do this work.
//! Every slow operation of the owner holds the cache's owner lock (`OwnerLock`), and a visitor
//! enters if the lock is free:
//!
//! ```text
//!   the thread    fast paths: lists          no lock
//!                 slow paths: all but lists  own
//!                 outgoing batch, limit      no lock
//!   a visitor     all but lists, outgoing    try_visit, and the ownership is held
//! ```
//!
//! A visit costs a fence in every thread, so a visitor checks first whether there is work.
//! Visitors:
//!
//! - *drain*: a thread that sends blocks to a cache with many remote frees drains these itself;
//! - *steal*: before a cache or a central list takes a new slab, it searches for a partly free slab
//!   of the class: in the central lists and in some caches. The slab's slots in the lists of the
//!   cache that loses the slab are sent on when they leave the lists;
//! - *make way*: a cache that is about to take unused memory gives back another stash's runs;
//! - *help*: a thread does the scavenger's steps in caches that have been quiet for long;
//! - *adopt*: a cache or a central list takes a slab of an abandoned cache.
//!
//! A visitor on a slow path never waits for the lock, so there is no order of locks to keep.
//! (`malloc_trim` waits, and has no other lock.)
//!
//! Called by the slow paths of `cache` and `heap`.

use core::cell::Cell;

use super::slab_lists::to_spare;
use super::{ASKS, CACHES, Cache, Use, stash};
use crate::address_map::MAP;
use crate::chunk;
use crate::os;
use crate::registry::exclusive::Member;
use crate::slab::Slab;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::{self, Visit};

/// A thread that pushes remote frees drains them above this many bytes. The second bound holds if
/// the cache's own thread had a slow operation in the last [`ACTIVE_MS`] milliseconds.
const BACKLOG: usize = 256 << 10;
const BACKLOG_OF_ACTIVE: usize = 1 << 20;
const ACTIVE_MS: i32 = 10;
/// A slab is worth taking over if at least one slot in this many is free. The second number is for
/// times when the chunk has dirty units.
const SHARE_FREE: usize = 8;
const SHARE_MOSTLY_FREE: usize = 2;
/// Slabs that one visit steals, and slabs to take elsewhere before the next search.
const STEALS: usize = 4;
const SKIPS: u8 = 1;
/// Caches that one call of [`help`] checks, and visits.
const LOOKS: usize = 64;
const VISITS: usize = 8;
/// Nanoseconds for which a busy thread helps others in a tick.
const BUSY_PATIENCE: u64 = 200_000;
/// Nanoseconds for a quiet thread, for its own cache and for others.
pub(super) const QUIET_PATIENCE: u64 = 1_000_000;
/// The last tick in which a thread looked after free memory.
static LAST_TICK: AtomicU32 = AtomicU32::new(0);
/// Whether more free memory was left then.
static SOMEBODY_WAITS: AtomicBool = AtomicBool::new(false);
static HELP_NEXT: AtomicU32 = AtomicU32::new(0);

impl Cache {
    pub(crate) fn lives(&self) -> bool {
        self.ownership().is_held() && self.owned_by() == Use::Thread
    }

    /// Enters the cache for slow work, if its thread lives and does no slow work now.
    pub(super) fn visit(&self) -> Option<Visit<'_>> {
        // In a forked child the cache's thread may be gone.
        if sync::holds_all() || !self.lives() {
            return None;
        }
        let order = self.lock.try_visit()?;
        // A thread takes the lock when it ends, so it lives as long as the visitor holds the lock.
        self.lives().then_some(order)
    }

    fn has_work(&self) -> bool {
        self.scavenger.has_work()
            || !self.remote().is_empty()
            || self.depot_bytes.load(Ordering::Relaxed) > 0
            || !self.stash.is_empty()
    }

    /// After a push: drains the remote frees if they are many. The bound is higher if the cache's
    /// thread is active.
    pub(crate) fn drain_if_much_waits(&self) {
        let waits = self.remote().bytes();
        if waits <= BACKLOG {
            return;
        }
        if (waits > BACKLOG_OF_ACTIVE || !self.is_active())
            && let Some(_order) = self.visit()
        {
            self.scavenger.now.set(os::coarse_ms());
            self.drain_home();
        }
    }

    fn is_active(&self) -> bool {
        let active = self.scavenger.active.load(Ordering::Relaxed);
        chunk::waited(active, os::coarse_ms()) <= ACTIVE_MS
    }

    /// Takes over some partly free slabs of `class`, from the common owner or from a live thread.
    pub(super) fn steal_slabs(&self, class: usize) -> bool {
        self.take_common(class, share_worth_taking())
            || self.owned_by() == Use::Thread
                && self.thief.steal(self.id(), class, |other, slab| self.take_over(other, slab))
    }

    /// Gives back this stash's runs and another's, if a run of `units` units may use them.
    pub(crate) fn make_way(&self, units: usize) {
        self.stash.make_way(units);
        self.thief.make_way(self.id(), units);
    }

    /// A slab with returned slots of this abandoned cache, whose ownership is the caller's.
    pub(super) fn left_over(&self, class: usize) -> Option<Slab<'_>> {
        // A warm cache, whose lists may have slots of the slab, gives only one with enough free
        // slots.
        let unit = if self.is_warm.get() {
            self.to_spare(class, SHARE_FREE)
        } else {
            self.bins[class].partial.first()
        };
        Some(Slab::at(&MAP, unit?, class))
    }

    /// A slab with at least one slot in `share` free, for another cache. This cache stays in use.
    pub(super) fn to_spare(&self, class: usize, share: usize) -> Option<usize> {
        to_spare(&self.bins[class].partial, class, share)
    }
}

/// A slab is worth taking over at this moment if at least one slot in this many is free.
fn share_worth_taking() -> usize {
    if chunk::has_dirty(1) { SHARE_MOSTLY_FREE } else { SHARE_FREE }
}

/// The cursor with which a cache, or a class's central lists, searches the other caches.
pub(super) struct Thief {
    /// The cache that was checked last.
    victim: Cell<u32>,
    /// Slabs to take elsewhere before the next search.
    skips: Cell<u8>,
}

impl Thief {
    pub(super) const fn new() -> Self {
        Self { victim: Cell::new(0), skips: Cell::new(0) }
    }

    /// The next of the `made` caches, or `None` if that is `me`, the searching cache.
    fn next(&self, me: u32, made: u32) -> Option<&'static Cache> {
        let id = self.victim.get() % made + 1;
        self.victim.set(id);
        CACHES.get(id).filter(|_| id != me)
    }

    /// Passes some partly free slabs of `class` in a live thread's cache to `take`, with the cache.
    /// `take` may do slow work in that cache. If the chunk has dirty units, only mostly free slabs
    /// are worth a visit. `me` is the searching cache, or 0. Returns whether `take` got a slab.
    pub(super) fn steal(&self, me: u32, class: usize, take: impl Fn(&Cache, Slab<'_>)) -> bool {
        let made = CACHES.made() as u32;
        if made == 0 {
            return false;
        }
        if let Some(fewer) = self.skips.get().checked_sub(1) {
            self.skips.set(fewer);
            return false;
        }
        let share = share_worth_taking();
        // (The searching cache may be among them.)
        for _ in 0..(ASKS + 1).min(made as usize) {
            let Some(other) = self.next(me, made) else { continue };
            // This check before the visit may read changing data, but only of some unit's record.
            if other.to_spare(class, share).is_none() {
                continue;
            }
            self.skips.set(SKIPS);
            let Some(_order) = other.visit() else { continue };
            let mut stolen = 0;
            while stolen < STEALS
                && let Some(unit) = other.to_spare(class, share)
            {
                take(other, Slab::at(&MAP, unit, class));
                stolen += 1;
            }
            if stolen > 0 {
                return true;
            }
        }
        false
    }

    /// Gives back the runs of one thread's stash, if a run of `units` units would otherwise take
    /// unused memory. If the run is long and all stashes hold a good part of it, does so with
    /// further stashes, until as many units went back. `me` is the searching cache, or 0.
    pub(super) fn make_way(&self, me: u32, units: usize) {
        let made = CACHES.made() as u32;
        let all = stash::keep_plenty(CACHES.all(), units);
        let asks = if all { made as usize } else { ASKS.min(made as usize) };
        let mut wanted = if all { units } else { 1 };
        for _ in 0..asks {
            if let Some(other) = self.next(me, made)
                && other.stash.has_plenty(units)
                && !chunk::has_dirty(units)
                && let Some(_order) = other.visit()
            {
                wanted = wanted.saturating_sub(other.stash.units());
                other.stash.release();
                if wanted == 0 {
                    return;
                }
            }
        }
    }
}

/// Gives back the runs in threads' stashes except that of `me`, because memory is short.
pub(super) fn release_stashes(me: u32) {
    for other in CACHES.all().filter(|other| other.id() != me) {
        if !other.stash.is_empty()
            && let Some(_order) = other.visit()
        {
            other.stash.release();
        }
    }
}

/// Scavenges for about `patience` nanoseconds in caches that have been quiet for a purge delay.
/// Skips the cache `me` (or 0). Returns whether other caches may have work left.
pub(super) fn help(me: u32, now: u32, delay: i32, patience: u64) -> bool {
    let made = CACHES.made() as u32;
    let (mut visits, mut until, mut some_have_work) = (0, 0, false);
    for _ in 0..LOOKS.min(made as usize) {
        let next = HELP_NEXT.load(Ordering::Relaxed);
        let Some(other) = CACHES.get(next % made + 1) else { break };
        let quiet = chunk::waited(other.scavenger.active.load(Ordering::Relaxed), now) >= delay;
        let has_work = other.has_work() && other.id() != me && other.lives();
        some_have_work |= has_work;
        if quiet
            && has_work
            && let Some(_order) = other.visit()
        {
            if until == 0 {
                until = os::now_ns() + patience;
            }
            while other.scavenge_quiet(now) {
                if os::now_ns() > until {
                    return true;
                }
            }
            visits += 1;
            if visits == VISITS {
                return true;
            }
        }
        HELP_NEXT.store(next.wrapping_add(1), Ordering::Relaxed);
    }
    some_have_work
}

/// Passes a slab of `class` with returned slots from an abandoned cache to `take`, if there is one.
pub(super) fn adopt(class: usize, take: impl Fn(&Cache, Slab<'_>)) -> bool {
    CACHES.visit_abandoned(ASKS, |dead| {
        let found = dead.left_over(class);
        if let Some(slab) = found {
            take(dead, slab);
        }
        let is_found = found.is_some();
        dead.let_go();
        is_found
    })
}

/// Looks after free memory that no thread owns, and after quiet threads' caches, once a tick. `me`
/// is the thread's cache, or 0. `is_quiet`: the thread has time. Returns whether more is left.
pub(super) fn look_after_others(me: u32, now: u32, delay: i32, is_quiet: bool) -> bool {
    if LAST_TICK.swap(now, Ordering::Relaxed) != now {
        let runs_wait = chunk::purge_waiting(now);
        let patience = if is_quiet { QUIET_PATIENCE } else { BUSY_PATIENCE };
        let others_wait = help(me, now, delay, patience);
        SOMEBODY_WAITS.store(runs_wait || others_wait, Ordering::Relaxed);
    }
    SOMEBODY_WAITS.load(Ordering::Relaxed)
}
