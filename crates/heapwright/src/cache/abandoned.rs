//! Abandoned caches: caches whose threads have ended.
//!
//! ```text
//!   thread ends --abandon--> warm (keeps its free blocks, if few) --cool--> cool (all given back)
//!                            |                                              |
//!                            +---------- begin: the next thread adopts it --+
//! ```
//!
//! No thread owns an abandoned cache. A thread that frees a block of the cache claims the cache for
//! a moment, and drains it (`reclaim`). A thread that needs a slab takes a partial slab from it
//! (`adopt_slab`). A block that arrives while a thread lets the cache go is not lost (`remote`).
//!
//! In a forked child all other threads' caches are abandoned: see `heap::start`.
//!
//! Called by `cache`, and by `heap` at a thread's beginning and end, on a trim and at a fork.

use super::{CACHES, Cache, FORWARD_SIZED, first_length, visit};
use crate::chunk;
use crate::os;
use crate::registry::exclusive::Member;
use crate::size_class::{self, CLASSES};
use crate::slab::Slab;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// The most warm caches, and the most bytes of free blocks in a warm cache.
const WARM: usize = 4;
const WARM_BYTES: usize = 128 << 10;
/// Warm caches that one pass of a scavenger cools.
const COOLS: usize = 2;

static WARM_NOW: AtomicUsize = AtomicUsize::new(0);

impl Cache {
    /// Readies the cache for a thread that begins to use it.
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

    /// Ends the thread's use: gives back free memory, and lets go of the cache. A few caches with
    /// few free blocks keep these for the next threads, so that a short-lived thread costs little.
    pub(crate) fn abandon(&self) {
        // This takes the lock in full: another thread may own the cache before the function ends.
        let _order = self.lock.lock();
        self.end_sampling();
        // Units that come back from now on must not go to the stash.
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

    /// Gives back the free memory of a cache that no thread owns.
    fn cool(&self) {
        self.release_free();
        for (class, bin) in self.bins.iter().enumerate() {
            // The current slab would stay when its last slot returns, so there is none.
            bin.current.set(0);
            bin.want.set(first_length(class));
        }
    }

    fn no_longer_warm(&self) -> bool {
        let was_warm = self.is_warm.replace(false);
        if was_warm {
            WARM_NOW.fetch_sub(1, Ordering::Relaxed);
        }
        was_warm
    }

    /// Gives the ownership up. Drains blocks that arrive at the last moment.
    pub(super) fn let_go(&self) {
        loop {
            if !self.ownership().let_go(self.remote()) || !self.ownership().try_claim() {
                return;
            }
            self.drain_home();
        }
    }

    /// Drains the cache after a push, if it has no owner.
    pub(super) fn reclaim(&self) {
        if self.ownership().needs_drainer() && self.ownership().try_claim() {
            self.drain_home();
            self.let_go();
        }
    }

    /// Takes over a slab of `class` from an abandoned cache.
    pub(super) fn adopt_slab(&self, class: usize) -> bool {
        if self.is_heap() {
            return false;
        }
        visit::adopt(class, |dead, slab| self.take_over(dead, slab))
    }

    /// For another thread's cache in a forked child: forgets all but its identity (`heap::start`).
    pub(crate) fn forget_after_fork(&self) {
        // SAFETY: threads that may have held the lock do not exist in this process of one thread.
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

    /// Lists a slab again in a forked child. All its slots count as in use.
    pub(crate) fn regain_after_fork(&self, slab: Slab<'_>) {
        slab.all_out_after_fork();
        self.bins[slab.class].room.count(size_class::capacity(slab.class) as i32);
        self.own(slab.unit, slab.class);
    }
}

pub(crate) fn none_warm_after_fork() {
    WARM_NOW.store(0, Ordering::Relaxed);
}

/// Cools a few of the caches that have been abandoned for `delay` milliseconds.
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

/// Gives back the free memory of abandoned caches. Returns the bytes of purged slabs.
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
