//! Handing over: how a thread gives its cache up, because threads hand blocks to each other.
//!
//! ```text
//!   blocks sent and received, tick by tick --> many, in several ticks --> the thread gives its cache up
//!                                                                     --> threads that start get none
//!
//!   cache    slab, slab, slab ..      each: out of the cache's lists, entry of the common owner,
//!     |                                     into the central lists, under the lock of its class
//!     v
//!   abandoned, without a slab; what others send it still goes on to the central lists
//! ```
//!
//! A block that another thread frees travels home to an exclusive cache: a batch, a push, a pull,
//! and meanwhile it is memory that nobody uses. What a CPU's arrays take in, the next `malloc` on
//! that CPU hands out. So where `cache=auto` a thread whose blocks travel goes by its CPU's arrays,
//! and one whose blocks stay keeps its cache, whose paths are shorter.
//!
//! The blocks that are in use become the common owner's with their slabs, so that they are freed by
//! the short path, too, whoever does it.
//!
//! Invariants: a slab changes owners under its class's lock. A thread that has read the old entry
//! sends its block to the old owner, where it is found to be another's, and goes on; so do blocks
//! that were in a list of the old owner's when a slab was stolen (`visit`).
//!
//! Called by `heap` (giving up) and by `outgoing` (counting).

use super::{Cache, central};
use crate::address_map::{Kind, MAP};
use crate::os;
use crate::slab::Slab;
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Blocks handed over, both ways, per millisecond of CPU time from which a thread should use its
/// CPU's arrays. (CPU time, because wall time would hide threads that work in bursts or share a
/// CPU.)
const BLOCKS_A_MS: u64 = 250;
/// Blocks between two looks at the clock.
const LOOK: u32 = 256;
/// Excess of ticks over the rate, to those below, that makes a thread give its cache up.
const TICKS: u32 = 2;

/// What a thread is asked for: to give its cache up, and to look whether its blocks are to be
/// sampled.
const GIVE_UP: u8 = 1;
const FOLLOW_SAMPLING: u8 = 2;

/// Whether threads of this process hand over much.
static IS_MUCH: AtomicBool = AtomicBool::new(false);

/// Whether threads of this process hand over so much that a new one should have no cache of its
/// own.
pub(crate) fn is_much_handed_over() -> bool {
    IS_MUCH.load(Ordering::Relaxed)
}

/// A cache's hand-over counters. Zero: none.
///
/// Atomics, because visitors add what they take home. A lost update does not matter.
pub(super) struct HandOver {
    /// Blocks that came or went since the clock was looked at.
    new: AtomicU32,
    /// The tick that it was in then, the CPU time that the thread had had, and the blocks since.
    tick: AtomicU32,
    cpu_ns: AtomicU64,
    blocks: AtomicU64,
    /// Ticks with many, less those without.
    ticks: AtomicU32,
    /// What its thread is asked for: `GIVE_UP`, `FOLLOW_SAMPLING`.
    asked: AtomicU8,
}

impl HandOver {
    /// A thread begins to use the cache. (Earlier threads' ticks count: some threads live only for
    /// a few.)
    pub(super) fn begin(&self) {
        self.cpu_ns.store(0, Ordering::Relaxed);
    }

    /// Adds blocks that came, on behalf of the cache's thread.
    pub(super) fn add(&self, blocks: usize) {
        let new = self.new.load(Ordering::Relaxed).saturating_add(blocks as u32);
        self.new.store(new, Ordering::Relaxed);
    }

    /// Counts blocks that came or went. The calling thread is the cache's.
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

    /// A tick of the clock ended.
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
            IS_MUCH.store(true, Ordering::Relaxed);
        }
    }
}

impl Cache {
    /// Whether its thread should give it up, if it can have anything else.
    #[inline(always)]
    pub(crate) fn should_be_given_up(&self) -> bool {
        self.hand_over.asked.load(Ordering::Relaxed) & GIVE_UP != 0
    }

    /// Whether its thread is asked for anything.
    #[inline(always)]
    pub(crate) fn is_asked(&self) -> bool {
        self.hand_over.asked.load(Ordering::Relaxed) != 0
    }

    /// Whether its thread is asked to begin to sample, or to end.
    #[inline(always)]
    pub(crate) fn is_asked_to_follow_sampling(&self) -> bool {
        self.hand_over.asked.load(Ordering::Relaxed) & FOLLOW_SAMPLING != 0
    }

    /// Asks its thread to begin to sample, or to end (`sampling`).
    #[cfg_attr(
        not(feature = "debug"),
        allow(dead_code, reason = "nothing is sampled without stacks")
    )]
    pub(super) fn ask_to_follow_sampling(&self) {
        self.hand_over.asked.fetch_or(FOLLOW_SAMPLING, Ordering::Relaxed);
    }

    /// It does.
    pub(super) fn no_longer_asked_to_follow_sampling(&self) {
        // What is read then is what it was set for.
        self.hand_over.asked.fetch_and(!FOLLOW_SAMPLING, Ordering::Acquire);
    }

    /// Its thread has freed so many blocks of the common owner's.
    pub(crate) fn note_handed_over(&self, blocks: usize) {
        self.hand_over.count(blocks);
    }

    /// Its thread cannot have anything else.
    pub(crate) fn stays_in_use(&self) {
        self.hand_over.asked.fetch_and(!GIVE_UP, Ordering::Relaxed);
    }

    /// Hands all slabs to the common owner. The caller has entered the cache and allocates no more
    /// from it.
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

    /// Forgets a slab, which becomes another owner's.
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
