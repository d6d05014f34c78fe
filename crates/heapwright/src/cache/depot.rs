//! The depot: chains of free blocks that are neither in a list nor in a slab.
//!
//! ```text
//!   a class     top -> chain -> chain -> chain        newest first
//!                        |  the head block's second word: the chain below,
//!                        |  and how many blocks the chain has (top 16 bits)
//!                        +--> block -> block -> ... -> null
//! ```
//!
//! The depot is small: it may hold a share of the bytes of the cache's slabs, between two bounds. A
//! larger depot would use the slabs less often, but would scatter the program's blocks. Slabs hand
//! out returned slots by address, but chains hand out blocks in the order of their frees.
//!
//! Blocks over 2 KiB have a bound of their own. Most of them return to their slabs before the
//! process grows.
//!
//! Invariants: a chain has at least one block, and fewer than 2^16. Addresses of blocks fit 48
//! bits: the kernel guarantees this unless a mapping asks for more.
//!
//! Called by the other files of `cache`.

use core::cell::Cell;
use core::ptr;

use super::{Cache, LARGE, stash};
use crate::remote::Block;
use crate::size_class::{self, CLASSES, UNIT};
use crate::sync::atomic::Ordering;

/// The bytes of blocks up to [`LARGE`] that a depot may always hold, and may hold at most.
const FEW_BYTES: usize = 256 << 10;
const MANY_BYTES: usize = 1 << 20;
/// Between the two bounds, the depot may hold the bytes of the cache's slabs divided by this.
const SHARE: usize = 64;

/// Blocks over [`LARGE`] in the depot may take the stash's bound divided by this.
const SHARE_OF_STASH: usize = 4;
const LARGE_CLASSES: u128 = !0 << size_class::of(LARGE + 1);

/// Two chains of at most this many blocks become one.
const SHORT: usize = 8;

/// A chain of free blocks of one class. Its holder owns the blocks, so other files make chains only
/// by [`DepotChain::of`], and a chain cannot be copied.
#[must_use]
pub(super) struct DepotChain {
    head: *mut Block,
    count: usize,
}

const COUNT_SHIFT: u32 = 48;
const ADDRESS: usize = (1 << COUNT_SHIFT) - 1;

/// The chains of one class. If both fields are zero, the depot is empty.
pub(super) struct Depot {
    top: Cell<*mut Block>,
    blocks: Cell<usize>,
}

impl DepotChain {
    pub(super) const EMPTY: Self = Self { head: ptr::null_mut(), count: 0 };

    /// # Safety
    ///
    /// The blocks are of one class and one owner, linked, free, and the caller's: in no other chain
    /// or list, and out of their slabs.
    pub(super) unsafe fn of(head: *mut Block, count: usize) -> Self {
        Self { head, count }
    }

    /// Returns null if the chain is empty.
    pub(super) fn head(&self) -> *mut Block {
        self.head
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The block with the number `count`, counted from 1. Walks the chain to that block.
    fn block(&self, count: usize) -> *mut Block {
        let mut block = self.head;
        for _ in 1..count {
            // SAFETY: the chain is the caller's and has `self.count` linked blocks.
            block = unsafe { Block::next(block) };
        }
        block
    }

    /// Joins the chains. The blocks of `other` come last.
    pub(super) fn before(self, other: Self) -> Self {
        // SAFETY: the last block of a chain that is the caller's.
        unsafe { Block::set_next(self.block(self.count), other.head) };
        Self { head: self.head, count: self.count + other.count }
    }

    /// Splits the chain behind its first `count` blocks. It must have more blocks.
    pub(super) fn cut(self, count: usize) -> (Self, Self) {
        let last = self.block(count);
        // SAFETY: the chain is the caller's, and longer than `count`.
        let rest = unsafe { Block::next(last) };
        // SAFETY: a block of the chain, which is the caller's.
        unsafe { Block::set_next(last, ptr::null_mut()) };
        (Self { head: self.head, count }, Self { head: rest, count: self.count - count })
    }
}

impl Depot {
    pub(super) const fn new() -> Self {
        Self { top: Cell::new(ptr::null_mut()), blocks: Cell::new(0) }
    }

    /// The newest chain, if it has at most `most` blocks.
    fn pop_short(&self, most: usize) -> Option<DepotChain> {
        let head = self.top.get();
        // SAFETY: written when the chain was pushed.
        let short = !head.is_null() && unsafe { Block::below(head) }.addr() >> COUNT_SHIFT <= most;
        if short { self.pop() } else { None }
    }

    pub(super) fn push(&self, chain: DepotChain) {
        debug_assert!(chain.count > 0 && chain.count >> 16 == 0);
        let below = self.top.get().map_addr(|address| address | chain.count << COUNT_SHIFT);
        // SAFETY: the chain is the caller's, and its blocks have two words.
        unsafe { Block::set_below(chain.head, below) };
        self.top.set(chain.head);
        self.blocks.set(self.blocks.get() + chain.count);
    }

    pub(super) fn blocks(&self) -> usize {
        self.blocks.get()
    }

    pub(super) fn pop(&self) -> Option<DepotChain> {
        let head = self.top.get();
        if head.is_null() {
            return None;
        }
        // SAFETY: written when the chain was pushed.
        let below = unsafe { Block::below(head) };
        self.top.set(below.map_addr(|address| address & ADDRESS));
        let count = below.addr() >> COUNT_SHIFT;
        self.blocks.set(self.blocks.get() - count);
        Some(DepotChain { head, count })
    }

    pub(super) fn forget(&self) {
        self.top.set(ptr::null_mut());
        self.blocks.set(0);
    }
}

impl Cache {
    /// Keeps a chain, and evicts others for it. If there is no room, its blocks go to their slabs.
    pub(super) fn keep(&self, class: usize, chain: DepotChain) {
        let bytes = chain.count * size_class::size(class);
        let is_large = size_class::size(class) > LARGE;
        let room = if is_large { self.depot_room_of_large() } else { self.depot_room() };
        if self.shrink_depot(is_large, room.saturating_sub(bytes)) {
            self.account(class, chain.count as isize);
            let depot = &self.bins[class].depot;
            let top = if chain.count <= SHORT { depot.pop_short(SHORT) } else { None };
            depot.push(match top {
                Some(top) => chain.before(top),
                None => chain,
            });
            self.kept.set(self.kept.get() | 1 << class);
        } else {
            self.distribute(class, chain);
        }
    }

    fn depot_room(&self) -> usize {
        (self.slab_count.get() * UNIT / SHARE).clamp(FEW_BYTES, MANY_BYTES)
    }

    /// (The lists alone hold too few such blocks for programs that free many and allocate again.)
    fn depot_room_of_large(&self) -> usize {
        (stash::room_bytes() / SHARE_OF_STASH).max(FEW_BYTES)
    }

    /// Returns blocks over [`LARGE`] to slabs, down to [`FEW_BYTES`], before the process grows.
    pub(super) fn shrink_depot_of_large(&self) {
        if self.large_depot_bytes.get() > FEW_BYTES {
            self.shrink_depot(true, FEW_BYTES);
        }
    }

    /// Returns chains to slabs, until `most` bytes of the kind are left. False if more are left.
    fn shrink_depot(&self, is_large: bool, most: usize) -> bool {
        loop {
            let large = self.large_depot_bytes.get();
            let bytes =
                if is_large { large } else { self.depot_bytes.load(Ordering::Relaxed) - large };
            if bytes <= most {
                return true;
            }
            if !self.evict_any(if is_large { LARGE_CLASSES } else { !LARGE_CLASSES }) {
                return false;
            }
        }
    }

    pub(super) fn undepot(&self, class: usize) -> Option<DepotChain> {
        let chain = self.bins[class].depot.pop()?;
        self.account(class, -(chain.count as isize));
        Some(chain)
    }

    /// Returns a chain's blocks to their slabs. False if there is no chain.
    pub(super) fn evict(&self, class: usize) -> bool {
        let Some(chain) = self.undepot(class) else { return false };
        self.distribute(class, chain);
        true
    }

    /// Returns the blocks of a chain to their slabs. `classes` take turns. False if none is left.
    fn evict_any(&self, classes: u128) -> bool {
        loop {
            let kept = self.kept.get() & classes;
            if kept == 0 {
                return false;
            }
            let from = self.evict_next.get();
            let (behind, first) = ((kept >> from).trailing_zeros(), kept.trailing_zeros());
            let class = if kept >> from == 0 { first } else { from + behind };
            if self.evict(class as usize) {
                self.evict_next.set((class + 1) % CLASSES as u32);
                return true;
            }
            self.kept.set(self.kept.get() & !(1 << class));
        }
    }

    fn account(&self, class: usize, blocks: isize) {
        let size = size_class::size(class) as isize;
        if size as usize > LARGE {
            let bytes = self.large_depot_bytes.get().wrapping_add_signed(blocks * size);
            self.large_depot_bytes.set(bytes);
        }
        for (total, change) in [(&self.depot_blocks, blocks), (&self.depot_bytes, blocks * size)] {
            let now = total.load(Ordering::Relaxed).wrapping_add_signed(change);
            total.store(now, Ordering::Relaxed);
        }
    }
}
