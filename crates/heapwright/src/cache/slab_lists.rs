//! Functions on lists of slabs, for any owner: a cache (`slabs`) or the common owner (`central`).
//!
//! ```text
//!   to_spare   a slab that is partly free      gather   returned slots of slabs, as a chain
//!   Probe      the request for a new slab      put_run  returns blocks of a chain to one slab
//! ```
//!
//! The caller must own the slabs: it holds their owner's lock, or is the owner's thread.
//!
//! Called by `slabs`, `central`, `visit` and the refill of a list (`mod`).

use core::cell::Cell;
use core::ptr;

use super::depot::DepotChain;
use crate::address_map::{Entry, MAP};
use crate::chunk::Want;
use crate::misuse::{self, Call};
use crate::os::{self, Memory, SYSTEM};
use crate::remote::Block;
use crate::size_class::{self, UNIT};
use crate::slab::{Chain, Slab, WayBack};
use crate::unit_list::{BySize, UnitList};

/// A class with this many slabs probably fills the next slab, too. For large sizes the number is
/// the size divided by [`SIZE_A_SLAB`]. If the owner has [`LARGE_HEAP`] slabs of all classes, each
/// class has enough.
const FILLED: usize = 8;
const SIZE_A_SLAB: usize = 64;
const LARGE_HEAP: usize = (16 << 20) / UNIT;
/// A slab counts as filled if the bytes behind its last slot are at most its bytes divided by this.
const LEAVES: usize = 16;
/// After this many slabs with huge pages, the next slab has small pages, as a new [`Probe`].
const DENSE_A_PROBE: u32 = 32;
const LEAST_PAGE: usize = 4096;
/// Slabs that one search checks.
const SLABS_LOOKED_AT: usize = 16;

/// A slab with at least one slot in `share` free, among the first slabs of `partial`.
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

/// The newest slab of a class on small pages. If slots are longer than a page, this slab shows
/// whether the program touches whole slots. (A program may use only the first page of a read
/// buffer, but a huge page is resident as a whole.)
pub(super) struct Probe {
    unit: Cell<u32>,
    /// Slabs since `unit` that asked for huge pages.
    dense: Cell<u32>,
}

impl Probe {
    pub(super) const fn new() -> Self {
        Self { unit: Cell::new(0), dense: Cell::new(0) }
    }

    /// The request for a new slab, when all slots of the class's slabs were handed out. The owner
    /// has `slabs` slabs of the class, with the entry `mine`, and `all` slabs of any class. A class
    /// that has filled many slabs will probably fill the new one. Large sizes need more slabs,
    /// because programs leave the end of the last slab untouched. In a large heap these ends are a
    /// small part.
    pub(super) fn want_of_slab(&self, class: usize, slabs: usize, all: usize, mine: Entry) -> Want {
        let size = size_class::size(class);
        let many = (size / SIZE_A_SLAB).max(FILLED);
        let behind = UNIT - size_class::capacity(class) * size;
        let is_filled = behind <= UNIT / LEAVES && (slabs >= many || all >= LARGE_HEAP);
        if !is_filled {
            return Want::Any;
        }
        if size > SYSTEM.page_size() {
            if self.dense.get() >= DENSE_A_PROBE || !self.is_touched(class, mine) {
                return Want::Any;
            }
            self.dense.set(self.dense.get() + 1);
        }
        Want::Dense
    }

    pub(super) fn note(&self, unit: usize, want: Want) {
        if want != Want::Dense {
            self.unit.set(unit as u32);
            self.dense.set(0);
        }
    }

    /// Whether nearly all pages of the slab's slots are in memory. Also false if the slab has left
    /// its owner, or if a sandbox forbids the system call.
    fn is_touched(&self, class: usize, mine: Entry) -> bool {
        let unit = self.unit.get() as usize;
        if unit == 0 || MAP.lookup(MAP.address_of(unit).addr()).1 != mine {
            return false;
        }
        let mut pages = [0; UNIT / LEAST_PAGE];
        let bytes = size_class::capacity(class) * size_class::size(class);
        let page = os::kernel_page_size();
        let count = bytes / page;
        os::resident_pages(MAP.address_of(unit).addr(), count * page, &mut pages)
            && pages[..count].iter().filter(|page| **page & 1 != 0).count() * 8 >= count * 7
    }
}

/// Takes about `most` returned slots, at least one. `unlist` removes a slab that has no more.
pub(super) fn gather(
    partial: &UnitList<BySize>,
    class: usize,
    most: usize,
    now: u32,
    unlist: impl Fn(Slab<'_>),
) -> Option<Chain> {
    // (A slab that gives no slot would stay the first for ever.)
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

/// Returns the blocks of a chain to the slab of `class` at `unit`, up to the first block outside
/// the slab. Returns whether the slab must be settled.
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
        // This comes first: if the block is not in the CPU's cache, all else waits for this load.
        // SAFETY: the chain is the caller's, and this block is before its end.
        let next = unsafe { Block::next(*block) };
        if !visit.put(block.addr() & (UNIT - 1)) {
            misuse::double_free(Call::Free, block.addr(), size_class::size(class));
        }
        *block = next;
        *left -= 1;
    }
    visit.finish()
}

/// Makes the link at the chain's end null.
pub(super) fn terminated(chain: Chain) -> DepotChain {
    // SAFETY: the chain was taken from a slab, and is the caller's.
    unsafe { Block::set_next(chain.tail, ptr::null_mut()) };
    // SAFETY: the chain has this many linked slots of one slab, and a null link at the end.
    unsafe { DepotChain::of(chain.head, chain.count) }
}
