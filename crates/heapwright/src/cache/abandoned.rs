//! Abandoned caches: those whose threads have ended.
//!
//! ```text
//!   thread ends --abandon--> warm (its free blocks kept, if few)  --cool--> cool (all free given back)
//!                            |                                              |
//!                            +---------- begin: the next thread adopts it --+
//! ```
//!
//! An abandoned cache belongs to no thread: a thread that frees one of its blocks claims it for a
//! moment and takes the block home (`reclaim`); a thread in need of a slab takes a partial one from
//! it (`adopt_slab`). What arrives while a thread lets go is not lost: see `remote`.
//!
//! In a forked child the caches of all other threads rest, but nothing they say of free
//! blocks is believed: see `heap::start`.
//!
//! Called by `cache`, and by `heap` at a thread's beginning and end.

use super::{CACHES, Cache, FORWARD_SIZED, first_length, visit};
use crate::chunk;
use crate::os;
use crate::registry::exclusive::Member;
use crate::size_class::{self, CLASSES};
use crate::slab::Slab;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Caches that may rest with their blocks, and the bytes of them.
const WARM: usize = 4;
const WARM_BYTES: usize = 128 << 10;
/// Warm caches that one pass of a scavenger cools.
const COOLS: usize = 2;

/// How many caches are warm.
static WARM_NOW: AtomicUsize = AtomicUsize::new(0);

impl Cache {
    /// A thread begins to use it.
    pub(crate) fn begin(&self) {
        self.no_longer_warm();
        self.keeps_units.set(true);
        self.hand_over.begin();
        self.hot.forward_sized(FORWARD_SIZED.load(Ordering::Relaxed));
        self.restore_lists();
        let now = os::coarse_ms();
        self.scavenger.began.set(now);
        self.scavenger.active.store(now, Ordering::Relaxed);
        self.begin_guards();
        self.follow_sampling();
    }

    /// The thread has ended: gives back what is free and lets go of the rest, for
    /// others to reclaim and adopt. Of a few caches the next threads are to have
    /// the free blocks too, if these are few: then it costs little to be a thread.
    pub(crate) fn abandon(&self) {
        // Not as its owner: that may be another thread before this returns.
        let _order = self.lock.lock();
        self.end_sampling();
        // First: what comes home from now on is kept for no thread.
        self.keeps_units.set(false);
        self.stash.release();
        self.stash.give_extra_back();
        self.flush_outgoing();
        self.drain_home();
        self.publish();
        self.scavenger.now.set(os::coarse_ms());
        let is_light = self.has_slabs() && self.cached_bytes() <= WARM_BYTES;
        if is_light && WARM_NOW.fetch_add(1, Ordering::Relaxed) < WARM {
            self.is_warm.set(true);
        } else {
            if is_light {
                WARM_NOW.fetch_sub(1, Ordering::Relaxed);
            }
            self.cool();
        }
        self.is_abandoned.store(true, Ordering::Relaxed);
        CACHES.abandon(self);
        self.let_go();
    }

    /// Gives back what is free, of a cache that is no thread's.
    fn cool(&self) {
        self.release_free();
        for (class, bin) in self.bins.iter().enumerate() {
            // Nobody carves on, so that a slab goes as soon as its last slot does.
            bin.current.set(0);
            bin.want.set(first_length(class));
        }
    }

    /// Returns whether it was.
    fn no_longer_warm(&self) -> bool {
        let was_warm = self.is_warm.replace(false);
        if was_warm {
            WARM_NOW.fetch_sub(1, Ordering::Relaxed);
        }
        was_warm
    }

    /// Lets go of the ownership; takes what arrives at the last moment.
    pub(super) fn let_go(&self) {
        loop {
            if !self.ownership().let_go(self.remote()) || !self.ownership().try_claim() {
                return;
            }
            self.drain_home();
        }
    }

    /// After a push: if nobody owns the cache, takes the pushed blocks home.
    pub(super) fn reclaim(&self) {
        if self.ownership().needs_drainer() && self.ownership().try_claim() {
            self.drain_home();
            self.let_go();
        }
    }

    /// Takes over a slab of `class` with returned slots from a dead thread.
    pub(super) fn adopt_slab(&self, class: usize) -> bool {
        if self.is_heap() {
            return false;
        }
        visit::adopt(class, |dead, slab| self.take_over(dead, slab))
    }

    /// In a forked child, for the cache of a thread that is not here: keeps
    /// nothing but the identity. See `heap::start`.
    pub(crate) fn forget_after_fork(&self) {
        // SAFETY: the threads that may have been in are not in this process, which has one thread.
        unsafe { self.lock.forget_after_fork() };
        self.hot.raise_limit();
        self.forget_sampling_after_fork();
        for class in 0..CLASSES {
            self.bins[class].forced_slow.forget_after_fork();
            let _forgotten = self.empty(class);
            let bin = &self.bins[class];
            bin.depot.forget();
            bin.room.out.set(0);
            bin.current.set(0);
            bin.partial.forget();
            bin.slabs.set(0);
        }
        self.depot_bytes.store(0, Ordering::Relaxed);
        self.large_depot_bytes.set(0);
        self.depot_blocks.store(0, Ordering::Relaxed);
        self.hot.outgoing.forget();
        self.stash.forget_after_fork();
        self.keeps_units.set(false);
        self.scavenger.classes_left.set(0);
        self.scavenger.next.set(0);
        self.scavenger.are_forced_slow.set(false);
        self.slabs.forget();
        self.slab_count.set(0);
        self.remote().forget_after_fork();
        self.publish();
        self.no_longer_warm();
        self.is_abandoned.store(true, Ordering::Relaxed);
        self.ownership().orphan_after_fork();
    }

    /// In a forked child: gets a slab back, all of whose slots count as out.
    pub(crate) fn regain_after_fork(&self, slab: Slab<'_>) {
        slab.all_out_after_fork();
        self.bins[slab.class].room.count(size_class::capacity(slab.class) as i32);
        self.own(slab.unit, slab.class);
    }
}

/// In a forked child: no other thread's cache is warm.
pub(crate) fn none_warm_after_fork() {
    WARM_NOW.store(0, Ordering::Relaxed);
}

/// Cools a few of the caches that have rested for `delay` milliseconds and were
/// not adopted.
pub(super) fn cool_abandoned(now: u32, delay: i32) {
    if WARM_NOW.load(Ordering::Relaxed) == 0 {
        return;
    }
    let mut cooled = 0;
    CACHES.visit_abandoned(2 * WARM, |dead| {
        if dead.is_warm.get() && chunk::waited(dead.scavenger.now.get(), now) >= delay {
            dead.no_longer_warm();
            dead.cool();
            cooled += 1;
        }
        dead.let_go();
        cooled == COOLS
    });
}

/// Gives back what is free of the caches and slabs of ended threads, and the
/// pages that hold no block.
pub(crate) fn purge_abandoned() -> usize {
    let mut given = 0;
    CACHES.visit_abandoned(usize::MAX, |dead| {
        if dead.no_longer_warm() {
            dead.cool();
        }
        given += dead.purge_slabs();
        dead.let_go();
        false
    });
    given
}
