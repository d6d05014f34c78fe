//! A walk over every block of the process's heaps, in address order.

use crate::address_map::{Kind, MAP};
use crate::chunk::{self, large_block};
use crate::hardened::{self, Extent};
use crate::size_class;
use crate::slab::Slab;
use crate::sync::atomic::Ordering;

/// One block of a walk.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Block {
    /// The address of the first byte.
    pub address: usize,
    /// The bytes requested, for a block of the hardened heap or a guarded block; else the usable
    /// bytes.
    pub size: usize,
    /// The id of the block's cache or heap; 0 for large blocks of the process's heap.
    pub owner: u32,
    /// Whether the block is handed out: to the program or, except in the hardened heap, to a
    /// thread's cache, which the walk does not read.
    pub in_use: bool,
}

/// Calls `visit` with every block, except those of `mode=debug`, until a call returns false.
/// Returns true if the walk reached the end.
///
/// Other threads may allocate and free meanwhile; each block is reported as at some moment of the
/// walk. `visit` may allocate. Takes time in proportion to the heap.
///
/// ```
/// use heapwright::heap;
/// let block = heap::malloc(100);
/// let mut found = false;
/// heap::walk(&mut |b| {
///     found |= b.address == block as usize && b.size == 112 && b.in_use;
///     true
/// });
/// assert!(found);
/// # unsafe { heap::free(block) };
/// ```
pub fn walk(visit: &mut dyn FnMut(Block) -> bool) -> bool {
    let Some(chunk::Usage { frontier, .. }) = chunk::usage() else { return false };
    for unit in 0..frontier {
        // SAFETY: units below the frontier are below the map's limit.
        let entry = unsafe { MAP.entry(unit) };
        let address = MAP.address_of(unit).addr();
        match MAP.kind_of(unit, entry) {
            Kind::Slab(class) => {
                let slab = Slab::at(&MAP, unit, class);
                let step = size_class::size(class);
                for slot in 0..slab.carved() {
                    let (size, in_use) = if entry.is_hardened() {
                        let Extent { size, is_live, .. } =
                            hardened::in_slot(unit, entry, class, slot);
                        (size, is_live)
                    } else {
                        (step, !slab.is_returned(slot))
                    };
                    let address = address + slot * step;
                    let block = Block { address, size, owner: entry.owner(), in_use };
                    if !visit(block) {
                        return false;
                    }
                }
            }
            Kind::LargeHead => {
                let record = MAP.record(unit);
                let owner = record.heap.load(Ordering::Relaxed);
                let (size, in_use) = match hardened::extent(address) {
                    Some(Extent { size, is_live, .. }) => (size, is_live),
                    None => (large_block::usable(record), true),
                };
                if !visit(Block { address, size, owner, in_use }) {
                    return false;
                }
            }
            // The walk visits the guarded blocks in use.
            #[cfg(feature = "debug")]
            Kind::Debug => {
                let mut each =
                    |address, size, owner| visit(Block { address, size, owner, in_use: true });
                if !crate::debug::guards::each_live_at(unit, &mut each) {
                    return false;
                }
            }
            _ => {}
        }
    }
    true
}
