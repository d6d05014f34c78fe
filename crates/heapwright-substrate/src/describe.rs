//! Describes an address in constant time, without touching its memory. One load gives the kind of
//! its unit. Arithmetic and one record give the block.
//!
//! This module describes slabs, large blocks and pools, from the unit's record. Debug heaps,
//! collected heaps and the hardened heap register their own readers ([`read_with`]).
//!
//! Called by `misuse` (reports about bad pointers), by programs, and by the front ends.

use core::ptr;

use crate::address_map::{HARDENED, Kind as UnitKind, MAP};
use crate::chunk::large_block;
use crate::size_class::{self, UNIT};
use crate::slab::Slab;
use crate::sync::atomic::{AtomicPtr, Ordering};

/// The kind of memory at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Memory that is not heapwright's: a stack, a library, another allocator, nothing.
    Foreign = 0,
    /// A part of the heap's address space that holds no block now.
    Free = 1,
    /// A slab of small blocks.
    Small = 2,
    /// A large block.
    Large = 3,
    /// heapwright's own records.
    Metadata = 4,
    /// A segment of a pool's slots.
    Pool = 5,
    /// A chunk of an arena.
    Arena = 6,
    /// A block of a debug heap: live, freed, or only remembered.
    Debug = 7,
    /// A page of a collected heap.
    Collected = 8,
}

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum BlockState {
    /// There is no block at the address.
    Unknown = 0,
    /// Allocated, or free in a thread's cache. (To tell which would take longer.)
    InUse = 1,
    /// Given back to its slab, or never handed out.
    Free = 2,
}

/// The description of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Description {
    /// The kind of memory at the address.
    pub kind: Kind,
    /// The state of the block that contains the address.
    pub state: BlockState,
    /// Address of the block's first byte; 0: there is no block.
    pub block: usize,
    /// Bytes the program may use of the block.
    pub size: usize,
    /// Bytes from the block's start to the address.
    pub offset: usize,
    /// Id of the thread cache, heap, pool or collected heap that owns the block; 0 for large blocks
    /// of the process's heap, and for arenas.
    pub owner: u32,
    /// Size class of a small block.
    pub class: u32,
    /// Whether the byte at the address is poisoned (`__asan_poison_memory_region`).
    pub is_poisoned: bool,
}

/// A description without a block. (A function, because heapwright would export a method.)
#[must_use]
pub const fn nothing(kind: Kind) -> Description {
    let state = BlockState::Unknown;
    Description {
        kind,
        state,
        block: 0,
        size: 0,
        offset: 0,
        owner: 0,
        class: 0,
        is_poisoned: false,
    }
}

/// Describes any address in constant time, without touching it. `heapwright::describe` tells more.
#[must_use]
pub fn describe(address: *const u8) -> Description {
    let (unit, entry) = MAP.lookup(address.addr());
    match MAP.kind_of(unit, entry) {
        UnitKind::Foreign => nothing(Kind::Foreign),
        UnitKind::Free | UnitKind::Kept | UnitKind::Guard => nothing(Kind::Free),
        UnitKind::Metadata => nothing(Kind::Metadata),
        UnitKind::Arena => nothing(Kind::Arena),
        UnitKind::Debug => read(Front::Debug, Kind::Debug, unit, address),
        UnitKind::DebugRest(head) => read(Front::Debug, Kind::Debug, head, address),
        UnitKind::PoolHead => in_pool(address.addr(), unit),
        UnitKind::PoolRest(head) => in_pool(address.addr(), head),
        UnitKind::Collected(_) => read(Front::Collected, Kind::Collected, unit, address),
        UnitKind::CollectedRest(head) => read(Front::Collected, Kind::Collected, head, address),
        UnitKind::Slab(_) if entry.is_hardened() => {
            read(Front::Hardened, Kind::Small, unit, address)
        }
        UnitKind::Slab(class) => {
            let slab = Slab::at(&MAP, unit, class);
            let mut found =
                Description { owner: entry.owner(), class: class as u32, ..nothing(Kind::Small) };
            if let Some((slot, offset)) = slab.locate(address.addr()) {
                let out = slot < slab.carved() && !slab.is_returned(slot);
                found.state = if out { BlockState::InUse } else { BlockState::Free };
                found.block = address.addr() - offset;
                found.size = size_class::size(class);
                found.offset = offset;
            }
            found
        }
        UnitKind::LargeHead | UnitKind::LargeRest(_) => {
            let head = if let UnitKind::LargeRest(head) = entry.kind() { head } else { unit };
            if MAP.kind(head) == UnitKind::Kept {
                return nothing(Kind::Free);
            }
            let record = MAP.record(head);
            let block = MAP.address_of(head).addr();
            let owner = record.heap.load(Ordering::Relaxed);
            let size = if owner == HARDENED {
                record.requested.load(Ordering::Relaxed)
            } else {
                large_block::usable(record)
            };
            let offset = address.addr() - block;
            if offset >= size {
                return nothing(Kind::Large);
            }
            Description {
                state: BlockState::InUse,
                block,
                size,
                offset,
                owner,
                ..nothing(Kind::Large)
            }
        }
    }
}

/// A front end with a reader of its own, without which its units cannot be described.
#[derive(Clone, Copy)]
pub enum Front {
    /// Debug heaps: their records also describe freed blocks.
    #[allow(dead_code, reason = "a part of the feature `debug`")]
    Debug,
    /// Collected heaps. Objects in a mutator's present region that are not recorded yet count as
    /// free.
    Collected,
    /// The hardened heap, which knows the live blocks and their sizes.
    Hardened,
}

/// A front end's reader of addresses in its units.
pub struct Reader {
    /// Describes an address. The arguments are the first unit of the run, and the address.
    pub read: fn(usize, *const u8) -> Description,
}

static READERS: [AtomicPtr<Reader>; 3] = [const { AtomicPtr::new(ptr::null_mut()) }; 3];

/// Registers a front end's reader. Call this before the front end has any units.
pub fn read_with(front: Front, reader: &'static Reader) {
    READERS[front as usize].store(ptr::from_ref(reader).cast_mut(), Ordering::Release);
}

fn read(front: Front, kind: Kind, head: usize, address: *const u8) -> Description {
    // SAFETY: null, or a reader that lives as long as the process.
    let reader = unsafe { READERS[front as usize].load(Ordering::Acquire).as_ref() };
    reader.map_or(nothing(kind), |reader| (reader.read)(head, address))
}

/// Leaves the state unknown, because only the pool knows which slots are in use.
fn in_pool(address: usize, head: usize) -> Description {
    let (_, entry) = MAP.lookup(MAP.address_of(head).addr());
    let owner = if entry.kind() == UnitKind::PoolHead { entry.owner() } else { 0 };
    let mut found = Description { owner, ..nothing(Kind::Pool) };
    let record = MAP.record(head);
    let size = large_block::usable(record);
    let before = record.requested.load(Ordering::Relaxed);
    let end = record.units.load(Ordering::Relaxed) as usize * UNIT;
    let into = address - MAP.address_of(head).addr();
    if size > 0 && into >= before && before + ((into - before) / size + 1) * size <= end {
        found.size = size;
        found.offset = (into - before) % size;
        found.block = address - found.offset;
    }
    found
}
