//! A unit's record: 128 bytes, far from the unit.
//!
//! ```text
//!   0   by_size, by_owner                   links of two lists, 8 bytes each
//!   16  carved | free | purged | listed, absent    slab
//!   24  units | stamp                       run, slab
//!   32  usable | requested                  large block, pool segment
//!   48  summary | heap | zero, state, sampled    slab, large block, free run, sampled run
//!   64  bitmap                              slab
//! ```
//!
//! The unit's entry in the address map tells which fields have a meaning. All fields are relaxed
//! atomics, because `describe` and statistics read them from other threads. Only the unit's owner
//! writes; for free units, the holder of the chunk's lock (see also `chunk::large_block`).

use crate::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};

/// Words of bitmap in a record.
pub const INLINE_WORDS: usize = 8;

/// Two list links, by unit. 0 ends a list.
#[repr(C)]
pub struct Links {
    /// The unit behind, or 0.
    pub next: AtomicU32,
    /// The unit before, or 0.
    pub prev: AtomicU32,
}

/// The fields for a unit's owner. Zero is a fresh unit.
#[repr(C, align(64))]
pub struct Record {
    /// Links of a slab in its class's list of partial slabs, or of a free run in its size's list.
    pub by_size: Links,
    /// Links of a slab, large block or chunk in its owner's list, or of a dirty run in the queue.
    pub by_owner: Links,
    /// Slab: slots below the frontier.
    pub carved: AtomicU16,
    /// Slab: slots that count as returned, as many as bits in the bitmap.
    pub free: AtomicU16,
    /// Slab: pages of `CARVE` bytes that were given back and not used since.
    pub purged: AtomicU16,
    /// Slab: whether it is in its class's partial list.
    pub listed: AtomicU8,
    /// Slab of the hardened heap: a `chunk::Absent`, while it has no memory.
    pub absent: AtomicU8,
    /// Units of the run: in the record of its first unit, and of the last while the run is free.
    pub units: AtomicU32,
    /// The ms at which a slot of the slab last moved, or the oldest part of the run became dirty.
    pub stamp: AtomicU32,
    /// Large block: bytes that the program may use, and whether memory lies behind them (see
    /// `chunk::large_block`). Pool segment: bytes of a slot.
    pub usable: AtomicUsize,
    /// Large block: requested bytes, or [`Record::KEPT`]. Pool segment: where the first slot
    /// begins.
    pub requested: AtomicUsize,
    /// Slab: the words of the bitmap that are not zero.
    pub summary: AtomicU64,
    /// Large block: the owner (a first-class heap, `HARDENED`) or 0. Pool segment: its number.
    pub heap: AtomicU32,
    /// Slab: whether untouched slots read as zero. Large block of the hardened heap: the state of
    /// its run's guards (`hardened::warm`).
    pub zero: AtomicU8,
    /// Free run: its contents (a `chunk::runs::State`).
    pub state: AtomicU8,
    /// Run of a pool, an arena or a collected heap: whether it is a sample of the heap profile.
    pub sampled: AtomicU8,
    _spare_too: AtomicU8,
    /// Slab of at most 512 slots: the slots that were returned.
    pub bitmap: [AtomicU64; INLINE_WORDS],
}

impl Record {
    /// In `requested`: the large block was freed, and its run waits for the next block. (The entry
    /// does not tell this, because entries of many threads' runs share a cache line.)
    pub const KEPT: usize = usize::MAX;
}

const _: () = assert!(size_of::<Record>() == 128);
