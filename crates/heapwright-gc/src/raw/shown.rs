//! Offsets of the fields that the C interface reads: see `heapwright_gc.h`.

pub use super::super::abi::GC_POOLS as POOLS;
use super::super::layout::PAGE_LISTS;
use super::super::mutator::Mutator;
use super::super::region::Region;
use super::Tracer;
use core::mem::offset_of;

const fn size_of_field<S, F>(_: fn(&S) -> &F) -> usize {
    size_of::<F>()
}

macro_rules! place {
    ($of:ty, $field:ident) => {
        (offset_of!($of, $field), size_of_field(|of: &$of| &of.$field))
    };
}

/// Regions of a mutator: pools times kinds.
pub const REGIONS: usize = PAGE_LISTS;
/// Offsets and sizes of a mutator's poll, barrier, heap, regions, places, marks, data, units and
/// first_list.
pub const MUTATOR: [(usize, usize); 9] = [
    place!(Mutator, poll),
    place!(Mutator, barrier),
    place!(Mutator, heap),
    place!(Mutator, regions),
    place!(Mutator, places),
    place!(Mutator, marks),
    place!(Mutator, data),
    place!(Mutator, units),
    place!(Mutator, first_list),
];
/// Offsets and sizes of a tracer's next, end and by_slot.
pub const TRACER: [(usize, usize); 3] =
    [place!(Tracer, next), place!(Tracer, end), place!(Tracer, by_slot)];
/// The bit of a mutator's barrier for all stores: objects are to be moved, or the heap is verified.
pub const MOVING: u32 = super::super::phase::MOVING;
/// Offsets and sizes of a region's next, end, hole, slot and page.
pub const REGION: [(usize, usize); 5] = [
    place!(Region, next),
    place!(Region, end),
    place!(Region, hole),
    place!(Region, slot),
    place!(Region, page),
];
/// The size of a region.
pub const REGION_SIZE: usize = size_of::<Region>();
