//! The distance from an address to the end of its block, for bounds checks before copies.
//!
//! ```text
//!   address - base >> 16 -> unit -> limit?  no: not the heap's
//!                                -> entry: a slab's class -> its slot, by multiplication -> end
//!                                -> a large block's -> its head's record -> the block's end
//!                                -> any other: by its record (`describe`)
//! ```
//!
//! An address outside of the window costs a subtraction and a compare. An address in a slab costs
//! two more loads and two multiplications. The copy does not wait for these loads.
//!
//! The end is as exact as the block's heap knows it. The fast heap knows a slot's size, but neither
//! the requested size nor whether the slot is free. The hardened heap and the debug heap know both.
//!
//! Any caller may pass any address at any time, also in a signal handler. No lock is taken, nothing
//! is allocated, and the memory is not touched.

use crate::address_map::{Entry, HARDENED, Kind, MAP};
use crate::chunk::large_block;
use crate::describe::{BlockState, describe};
use crate::hardened;
use crate::hooks;
use crate::misuse;
pub use crate::misuse::Access;
use crate::options;
use crate::size_class::{self, UNIT};
use crate::sync::atomic::Ordering;
use crate::unit_record::Record;

/// The result of [`room`] for memory that is not the heap's.
pub const UNBOUNDED: usize = usize::MAX;

/// Returns the bytes from `address` to its block's end or next [poisoned](crate::heap::poison)
/// byte. Returns 0 if the block was freed or no block is there; the fast heap does not know which
/// slots are free. Returns [`UNBOUNDED`] if the memory is not the heap's, or is an arena's, whose
/// blocks are not known. Takes constant time.
///
/// ```
/// use heapwright::heap;
///
/// let block = heap::malloc(48);
/// assert_eq!(heap::room(block.addr() + 40), 8);
/// assert_eq!(heap::room(&raw const block as usize), usize::MAX);
/// // SAFETY: the block is ours, and freed once.
/// unsafe { heap::free(block) };
/// ```
#[inline(always)]
#[must_use]
pub fn room(address: usize) -> usize {
    let (unit, entry) = MAP.lookup(address);
    if entry == Entry::FOREIGN {
        return UNBOUNDED;
    }
    match entry.kind() {
        Kind::Slab(class) => room_in_slab(unit, entry, class, address),
        Kind::Debug | Kind::DebugRest(_) => hooks::room(unit, entry, address),
        _ => room_elsewhere(unit, entry, address),
    }
}

/// Returns whether `bytes` bytes at `address` are certainly in bounds, in the frequent and fast
/// cases of [`room`]. False proves nothing.
#[inline(always)]
#[must_use]
pub fn has_room(address: usize, bytes: usize) -> bool {
    let (unit, entry) = MAP.lookup(address);
    if entry == Entry::FOREIGN {
        return true;
    }
    match entry.kind() {
        Kind::Slab(class) => bytes <= room_in_slab(unit, entry, class, address),
        Kind::LargeHead => bytes <= room_in_large(unit, address),
        Kind::LargeRest(head) => bytes <= room_in_large(head, address),
        _ => false,
    }
}

/// Like [`has_room`], for debug mode, where nearly all blocks are the debug heap's.
#[inline(always)]
#[must_use]
pub fn has_debugged_room(address: usize, bytes: usize) -> bool {
    let (unit, entry) = MAP.lookup(address);
    entry == Entry::FOREIGN || hooks::holds(unit, entry, address, bytes)
}

/// Returns whether `address` is outside of the heap's window.
#[inline(always)]
#[must_use]
pub fn is_outside(address: usize) -> bool {
    MAP.unit_of(address) >= MAP.limit()
}

#[inline(always)]
fn room_in_slab(unit: usize, entry: Entry, class: usize, address: usize) -> usize {
    if entry.is_hardened() {
        hardened::room(unit, entry, class, address)
    } else {
        room_in_slot(class, address)
    }
}

/// Returns the room in a slot of a slab, or 0 behind the last slot.
#[inline(always)]
fn room_in_slot(class: usize, address: usize) -> usize {
    let offset = address & (UNIT - 1);
    let size = size_class::size(class);
    let end = (size_class::slot_of(class, offset) + 1) * size;
    if end > UNIT { 0 } else { end - offset }
}

#[cold]
#[inline(never)]
fn room_elsewhere(unit: usize, entry: Entry, address: usize) -> usize {
    match entry.kind() {
        Kind::LargeHead => return room_in_large(unit, address),
        Kind::LargeRest(head) => return room_in_large(head, address),
        _ => (),
    }
    let found = describe(core::ptr::without_provenance(address));
    let is_block = found.block != 0 && found.offset <= found.size;
    match MAP.kind_of(unit, entry) {
        Kind::Foreign | Kind::Arena => UNBOUNDED,
        // The state of a pool's slots and of a mutator's new objects is not known here.
        Kind::PoolHead | Kind::PoolRest(_) if is_block => found.size - found.offset,
        Kind::Collected(_) | Kind::CollectedRest(_) if is_block => found.size - found.offset,
        _ if is_block && found.state == BlockState::InUse => found.size - found.offset,
        _ => 0,
    }
}

/// Returns the room in the large block that begins at a unit, or 0 if it was freed.
#[inline(always)]
fn room_in_large(head: usize, address: usize) -> usize {
    let record = MAP.record(head);
    let asked = record.requested.load(Ordering::Relaxed);
    if asked == Record::KEPT {
        return 0;
    }
    // The fast heap knows only the end of a block's memory.
    let is_exact = record.heap.load(Ordering::Relaxed) == HARDENED;
    let size = if is_exact { asked } else { large_block::usable(record) };
    (MAP.address_of(head).addr() + size).saturating_sub(address)
}

/// Returns whether functions of the C library are checked (not with `detect=-bounds`).
#[must_use]
pub fn checks_bounds() -> bool {
    options::get().detect.bounds
}

/// Returns whether a limit beyond a block's end is reported (not with `detect=-limit`).
#[must_use]
pub fn checks_limits() -> bool {
    options::get().detect.limit
}

/// Reports that a function of the C library would access more bytes than [`room`]. Returns only if
/// the program continues (`on_misuse=report`, `mode=debug`).
#[cold]
#[inline(never)]
pub fn out_of_bounds(function: &str, access: Access, address: usize, bytes: usize) {
    if hooks::out_of_bounds(function, access, address, bytes) {
        return;
    }
    let line = misuse::out_of_bounds(function, access, address, bytes, room(address));
    if hardened::reports_misuse() {
        return line.write();
    }
    misuse::end(line)
}
