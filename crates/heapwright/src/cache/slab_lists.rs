//! Lists of slabs, for whichever owner has them: a cache (`slabs`), or all (`central`).
//!
//! ```text
//!   to_spare   a slab that is in part free          gather   returned slots of the first slabs, as a chain
//!   want       what to ask the chunk for            put_run  a chain's blocks of one slab, back into it
//! ```
//!
//! The caller owns the slabs: it holds the lock of their owner, or is its thread.
//!
//! Called by `slabs`, `central` and `visit`.

use core::ptr;

use super::depot::DepotChain;
use crate::address_map::MAP;
use crate::chunk::Want;
use crate::misuse::{self, Call};
use crate::remote::Block;
use crate::size_class::{self, UNIT};
use crate::slab::{Chain, Slab, WayBack};
use crate::unit_list::{BySize, UnitList};

/// A class with so many slabs, and one for so many bytes of its size, is expected
/// to fill the next one too; so is any class of a cache with so many slabs.
const FILLED: usize = 8;
const SIZE_A_SLAB: usize = 64;
const LARGE_HEAP: usize = (16 << 20) / UNIT;
/// A slab is filled although at most one of so many parts is left behind its last slot.
const LEAVES: usize = 16;
/// Slabs of an owner that are looked at before one is taken over.
const SLABS_LOOKED_AT: usize = 16;

/// A slab of `class` in `partial` of which one slot in `share` is free, if there is one among the
/// first.
pub(super) fn to_spare(partial: &UnitList<BySize>, class: usize, share: usize) -> Option<usize> {
    let mut at = partial.first();
    for _ in 0..SLABS_LOOKED_AT {
        let unit = at?;
        if Slab::at(&MAP, unit, class).free() * share >= size_class::capacity(class) {
            return Some(unit);
        }
        at = partial.after(&MAP, unit);
    }
    None
}

/// What to ask for a new slab of `class`, whose owner has so many of the class and so many
/// in all. It will be filled if the class has filled many, the more the larger its blocks
/// are, for programs leave the end of large ones untouched; or if the heap is so large that
/// the ends of all classes' last slabs are a small part of it.
pub(super) fn want_of_slab(class: usize, slabs: usize, all: usize) -> Want {
    let size = size_class::size(class);
    let many = (size / SIZE_A_SLAB).max(FILLED);
    let behind = UNIT - size_class::capacity(class) * size;
    let is_filled = behind <= UNIT / LEAVES && (slabs >= many || all >= LARGE_HEAP);
    if is_filled { Want::Dense } else { Want::Any }
}

/// Returned slots of the slabs of `class` in `partial`, about `most`, at least one; `unlist` takes
/// a slab out that has no more.
pub(super) fn gather(
    partial: &UnitList<BySize>,
    class: usize,
    most: usize,
    now: u32,
    unlist: impl Fn(Slab<'_>),
) -> Option<Chain> {
    // A slab that gave nothing would stay the first for ever.
    let most = most.max(1);
    let mut all: Option<Chain> = None;
    while let Some(unit) = partial.first() {
        let slab = Slab::at(&MAP, unit, class);
        let have = all.map_or(0, |chain| chain.count);
        let more = slab.take(most - have, now);
        if slab.free() == 0 {
            unlist(slab);
        }
        all = match (all, more) {
            (Some(all), Some(more)) => {
                // SAFETY: both chains were just taken and are the caller's.
                unsafe { Block::set_next(all.tail, more.head) };
                Some(Chain { tail: more.tail, count: all.count + more.count, ..all })
            }
            (all, more) => all.or(more),
        };
        if all.is_some_and(|chain| chain.count * 2 >= most) {
            break;
        }
    }
    all
}

/// Puts the blocks of a chain of `left` blocks back that lie in the slab of `class` at
/// `unit`, up to the first that does not. Returns whether the slab is now to be settled.
///
/// # Safety
///
/// The slab is the caller's, and so is the chain.
#[inline(always)]
pub(super) unsafe fn put_run(
    way: &WayBack,
    unit: usize,
    class: usize,
    block: &mut *mut Block,
    left: &mut usize,
    unit_of: impl Fn(usize) -> usize,
) -> bool {
    // SAFETY: the unit is a slab of the class and the caller's.
    let mut visit = unsafe { way.visit(unit) };
    while *left > 0 && unit_of(block.addr()) == unit {
        // First, because all else waits for it where the block is cold.
        // SAFETY: the chain is the caller's, and this is not behind its end.
        let next = unsafe { Block::next(*block) };
        if !visit.put(block.addr() & (UNIT - 1)) {
            misuse::double_free(Call::Free, block.addr(), size_class::size(class));
        }
        *block = next;
        *left -= 1;
    }
    visit.finish()
}

/// A chain that was just taken from a slab, with an end.
pub(super) fn terminated(chain: Chain) -> DepotChain {
    // SAFETY: a chain that was taken from a slab is the caller's, which gives this one away.
    unsafe { Block::set_next(chain.tail, ptr::null_mut()) };
    // SAFETY: as many slots of one slab, linked and with an end.
    unsafe { DepotChain::of(chain.head, chain.count) }
}
