//! Handing over: a thread that exchanges many blocks with other threads gives its cache up.
//!
//! ```text
//!   blocks sent and received, by tick --> many, in several ticks --> the thread gives its cache up
//!                                                                --> new threads get none for 1 s
//!
//!   cache    slab, slab, slab ..      each: out of the cache's lists, entry of the common owner,
//!     |                                     into the central lists, under the lock of its class
//!     v
//!   abandoned, without a slab; later remote frees go on to the central lists
//! ```
//!
//! If another thread frees a block, the block reaches an exclusive cache by a batch, a push and a
//! drain. Until then no thread uses the block's memory. A CPU's arrays would hand the block out at
//! the next `malloc`. So with `cache=auto`, a thread that hands over many blocks uses its CPU's
//! arrays. Any other thread keeps its cache, whose paths are shorter.
//!
//! Invariants: a slab becomes common under its class's lock. A thread that has read the old entry
//! sends its block to the old owner, which sends it on. Blocks of a stolen slab in the old owner's
//! lists go the same way (`visit`).
//!
//! Called by `heap` (giving up), `outgoing` (counting), `sampling` and `magazines` (requests).

use super::{Cache, central};
use crate::address_map::{Kind, MAP};
use crate::chunk;
use crate::os;
use crate::slab::Slab;
use crate::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// A thread that sends and receives this many blocks in a millisecond of CPU time should use its
/// CPU's arrays. (In wall time, threads that work in bursts or share a CPU would seem slow.)
const BLOCKS_A_MS: u64 = 250;
/// Blocks between two readings of the clock.
const LOOK: u32 = 256;
/// A thread gives its cache up when its ticks above the rate, less those below, reach this.
const TICKS: u32 = 2;

/// Requests to a thread: to give the cache up, and to check whether its blocks are sampled.
const GIVE_UP: u8 = 1;
const FOLLOW_SAMPLING: u8 = 2;

/// The tick in which a thread last reached [`TICKS`], or 0 if none did.
static LAST_MUCH: AtomicU32 = AtomicU32::new(0);
/// For this long after [`LAST_MUCH`], new threads get no cache of their own.
const MUCH_MS: i32 = 1000;

/// Whether so many blocks are handed over that new threads should get no cache of their own.
pub(crate) fn is_much_handed_over() -> bool {
    let last = LAST_MUCH.load(Ordering::Relaxed);
    last != 0 && chunk::waited(last, os::coarse_ms()) <= MUCH_MS
}

/// The fields are atomics, because visitors add the blocks that they drain. Lost updates are rare,
/// and do not matter.
pub(super) struct HandOver {
    /// Blocks that came or went since the last reading of the clock.
    new: AtomicU32,
    /// The tick of that reading, the CPU time at the tick's start, and the blocks since.
    tick: AtomicU32,
    cpu_ns: AtomicU64,
    blocks: AtomicU64,
    /// Ticks with many blocks, less ticks with few.
    ticks: AtomicU32,
    asked: AtomicU8,
}

impl HandOver {
    /// Call this when a thread begins to use the cache. (Earlier threads' ticks count, too.)
    pub(super) fn begin(&self) {
        self.cpu_ns.store(0, Ordering::Relaxed);
    }

    /// Adds blocks that came, on behalf of the cache's thread.
    pub(super) fn add(&self, blocks: usize) {
        let new = self.new.load(Ordering::Relaxed).saturating_add(blocks as u32);
        self.new.store(new, Ordering::Relaxed);
    }

    /// Counts blocks that came or went. The calling thread must own the cache.
    pub(super) fn count(&self, blocks: usize) {
        self.add(blocks);
        let new = self.new.load(Ordering::Relaxed);
        if new < LOOK {
            return;
        }
        self.new.store(0, Ordering::Relaxed);
        let blocks = self.blocks.load(Ordering::Relaxed) + u64::from(new);
        self.blocks.store(blocks, Ordering::Relaxed);
        let now = os::coarse_ms();
        if self.tick.load(Ordering::Relaxed) != now {
            self.tick.store(now, Ordering::Relaxed);
            self.end_tick();
        }
    }

    fn end_tick(&self) {
        let (now, before) = (os::thread_cpu_ns(), self.cpu_ns.load(Ordering::Relaxed));
        self.cpu_ns.store(now, Ordering::Relaxed);
        let blocks = self.blocks.load(Ordering::Relaxed);
        self.blocks.store(0, Ordering::Relaxed);
        let ticks = self.ticks.load(Ordering::Relaxed);
        let is_much = blocks * 1_000_000 >= BLOCKS_A_MS * now.saturating_sub(before);
        let ticks = if is_much { ticks + 1 } else { ticks.saturating_sub(1) };
        self.ticks.store(ticks % TICKS, Ordering::Relaxed);
        if ticks == TICKS {
            self.asked.fetch_or(GIVE_UP, Ordering::Relaxed);
            LAST_MUCH.store(os::coarse_ms().max(1), Ordering::Relaxed);
        }
    }
}

impl Cache {
    #[inline(always)]
    pub(crate) fn should_be_given_up(&self) -> bool {
        self.hand_over.asked.load(Ordering::Relaxed) & GIVE_UP != 0
    }

    #[inline(always)]
    pub(crate) fn is_asked(&self) -> bool {
        self.hand_over.asked.load(Ordering::Relaxed) != 0
    }

    #[inline(always)]
    pub(crate) fn is_asked_to_follow_sampling(&self) -> bool {
        self.hand_over.asked.load(Ordering::Relaxed) & FOLLOW_SAMPLING != 0
    }

    #[cfg_attr(
        not(feature = "debug"),
        allow(dead_code, reason = "nothing is sampled without stacks")
    )]
    pub(super) fn ask_to_follow_sampling(&self) {
        self.hand_over.asked.fetch_or(FOLLOW_SAMPLING, Ordering::Relaxed);
    }

    pub(super) fn no_longer_asked_to_follow_sampling(&self) {
        // Acquire: later reads see the stores before the request.
        self.hand_over.asked.fetch_and(!FOLLOW_SAMPLING, Ordering::Acquire);
    }

    /// Counts blocks of common slabs that the cache's thread has freed.
    pub(crate) fn note_handed_over(&self, blocks: usize) {
        self.hand_over.count(blocks);
    }

    /// Withdraws the request to give the cache up.
    pub(crate) fn stays_in_use(&self) {
        self.hand_over.asked.fetch_and(!GIVE_UP, Ordering::Relaxed);
    }

    /// Hands all slabs to the common owner. The caller must have entered the cache, and abandon it
    /// afterwards.
    pub(crate) fn hand_slabs_over(&self) {
        self.stays_in_use();
        self.keeps_units.set(false);
        self.release_free();
        while let Some(unit) = self.slabs.first() {
            let Kind::Slab(class) = MAP.kind(unit) else { break };
            let slab = Slab::at(&MAP, unit, class);
            central::take_in(slab, || self.part_with(slab));
        }
    }

    /// Takes a slab, which becomes another owner's, out of this cache's lists.
    pub(super) fn part_with(&self, slab: Slab<'_>) {
        let bin = &self.bins[slab.class];
        if slab.is_listed() {
            self.unlist(slab);
        }
        if bin.current.get() == slab.unit {
            bin.current.set(0);
        }
        self.disown(slab.unit, slab.class);
        bin.room.count(slab.free() as i32 - slab.carved() as i32);
    }
}
