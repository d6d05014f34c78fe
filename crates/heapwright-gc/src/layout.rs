//! Layouts: which slot sizes a heap's pools have, and which pool serves a request.
//!
//! ```text
//!   fine      16 32 48 .. 256 | 288 .. 512 | 576 .. 1024 | 1280 .. 32768     52 pools, the default
//!   ruby      40 80 160 320 640                              after Feature #18045
//!   powers    32 40 64 128 256 .. 32768                      proposed in that ticket
//!   single    40                                             as before #18045
//!
//!   request   --(size + 7) / 8--> table, two bytes an entry --> where its pool's regions are
//! ```
//!
//! The table makes the choice one load for any layout. An entry is a place in a mutator (see
//! `mutator`) instead of a pool's number, which saves an allocation two shifts. The table covers
//! all sizes up to 32 KiB. Sizes too large for a layout lead to the regions of large objects. These
//! regions are always empty, so the C interface needs no comparison to find a large object. A large
//! object gets a page of one slot (see `large`).
//!
//! A pool and a kind (traced or leaf, to be freed or not, and a bit of the runtime's) together are
//! a *page list*. So neither marking nor sweeping reads an object's type.
//!
//! Slots begin at a page's first byte. Sizes are multiples of 8 and at least 16. So no two slots
//! begin in the same granule of 16 bytes, which one mark bit stands for. Arithmetic alone; any
//! caller may use it.
#![forbid(unsafe_code)]

use heapwright_substrate::size_class::UNIT;

use super::{FREED, LEAF};

/// The most pools of a heap. The last is the pool of large objects.
pub(super) const POOLS: usize = 64;
pub(super) const LARGE: usize = POOLS - 1;
pub(super) const KINDS: usize = 8;
pub(super) const PAGE_LISTS: usize = POOLS * KINDS;
pub(super) const LARGEST_SLOT: usize = 32 << 10;
pub(super) const REGION_BYTES: usize = 32;
/// Entries of the table: requests in steps of 8 bytes.
pub(super) const STEPS: usize = LARGEST_SLOT / 8 + 1;

/// The slot sizes of a heap.
///
/// ```
/// use heapwright::gc::Layout;
/// assert_eq!(Layout::default(), Layout::Fine);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Layout {
    /// Steps of 16 bytes up to 256, then eight for each doubling up to 1 KiB, then four up to 32
    /// KiB.
    #[default]
    Fine = 0,
    /// 40, 80, 160, 320 and 640 bytes: Ruby's slots, when they became variable.
    Ruby = 1,
    /// Powers of two from 32 bytes to 32 KiB, and 40.
    Powers = 2,
    /// 40 bytes alone: Ruby's slots before they became variable. The runtime keeps larger data
    /// elsewhere.
    Single = 3,
}

/// Returns whether objects of a page list, or of a kind, may hold references.
pub(super) const fn is_traced(page_list: usize) -> bool {
    page_list & LEAF as usize == 0
}

/// Returns whether the sweep reports dead objects of a page list, or of a kind, to the runtime.
pub(super) const fn is_freed(page_list: usize) -> bool {
    page_list & FREED as usize != 0
}

pub(super) struct Sizes {
    slots: [u32; POOLS],
    pools: usize,
    table: [u16; STEPS],
}

impl Sizes {
    pub(super) fn of(layout: Layout) -> Self {
        let mut sizes = Self { slots: [0; POOLS], pools: 0, table: [0; STEPS] };
        match layout {
            Layout::Fine => {
                (1..=16).for_each(|n| sizes.push(16 * n));
                for doubling in [256, 512] {
                    (1..=8).for_each(|n| sizes.push(doubling + doubling / 8 * n));
                }
                for doubling in [1024, 2048, 4096, 8192, 16384] {
                    (1..=4).for_each(|n| sizes.push(doubling + doubling / 4 * n));
                }
            }
            Layout::Ruby => (0..5).for_each(|n| sizes.push(40 << n)),
            Layout::Powers => {
                [32, 40].into_iter().for_each(|size| sizes.push(size));
                (6..=15).for_each(|n| sizes.push(1 << n));
            }
            Layout::Single => sizes.push(40),
        }
        sizes.fill();
        sizes
    }

    fn push(&mut self, size: usize) {
        self.slots[self.pools] = size as u32;
        self.pools += 1;
    }

    fn fill(&mut self) {
        let mut pool = 0;
        for step in 0..STEPS {
            while pool != LARGE && self.slot(pool) < step * 8 {
                pool = if pool + 1 == self.pools { LARGE } else { pool + 1 };
            }
            self.table[step] = (pool * KINDS * REGION_BYTES) as u16;
        }
    }

    pub(super) fn pools(&self) -> usize {
        self.pools
    }

    /// Bytes of a slot of `pool`; 0 for a pool that the layout does not have.
    #[inline]
    pub(super) fn slot(&self, pool: usize) -> usize {
        self.slots[pool] as usize
    }

    pub(super) fn largest(&self) -> usize {
        self.slot(self.pools - 1)
    }

    /// The pool of a request. The pool of large objects if no slot is large enough.
    #[inline]
    pub(super) fn pool(&self, size: usize) -> usize {
        let place = self.table.get(size.div_ceil(8)).copied();
        place.map_or(LARGE, |place| usize::from(place) / (KINDS * REGION_BYTES))
    }

    /// The table. Each mutator has a copy of it, at a constant offset.
    pub(super) fn table(&self) -> &[u16; STEPS] {
        &self.table
    }
}

pub(super) const fn slots_in_page(size: usize) -> usize {
    UNIT / size
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: usize = if cfg!(miri) { 97 } else { 1 };
    const ALL: [Layout; 4] = [Layout::Fine, Layout::Ruby, Layout::Powers, Layout::Single];

    #[test]
    fn each_request_gets_the_smallest_slot_that_holds_it() {
        for layout in ALL {
            let sizes = Sizes::of(layout);
            for size in (0..=sizes.largest()).step_by(STEP) {
                let pool = sizes.pool(size);
                assert!(sizes.slot(pool) >= size, "{layout:?} {size}");
                assert!(pool == 0 || sizes.slot(pool - 1) < size, "{layout:?} {size}");
            }
        }
    }

    #[test]
    fn slots_suit_marks_and_pages() {
        for layout in ALL {
            let sizes = Sizes::of(layout);
            assert!(sizes.pools() < LARGE);
            for pool in 0..sizes.pools() {
                let size = sizes.slot(pool);
                assert!(size >= 16 && size.is_multiple_of(8) && slots_in_page(size) >= 2);
                assert!(pool == 0 || sizes.slot(pool - 1) < size);
            }
        }
    }

    #[test]
    fn the_fine_layout_wastes_little() {
        let sizes = Sizes::of(Layout::Fine);
        assert_eq!((sizes.pools(), sizes.largest()), (52, LARGEST_SLOT));
        assert_eq!((sizes.pool(LARGEST_SLOT), sizes.pool(LARGEST_SLOT + 1)), (51, LARGE));
        assert_eq!(Sizes::of(Layout::Single).pool(41), LARGE);
        for size in (257..=LARGEST_SLOT).step_by(STEP) {
            let slot = sizes.slot(sizes.pool(size));
            assert!((slot - size) * 5 <= slot, "{size} in {slot}");
        }
    }
}
