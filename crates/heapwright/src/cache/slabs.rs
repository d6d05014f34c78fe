//! A cache's slabs: how a cache gets slabs, how blocks return to slabs, and how slabs leave.
//!
//! ```text
//!   new_slab, receive --> own   --> current (with untouched slots), partial (with returned slots)
//!                                     ^ distribute, put           | no slot in use
//!                                                                 v
//!                                                               retire --> chunk
//! ```
//!
//! Invariants: the list of all slabs has every slab with the cache's tag. A slab with returned
//! slots is also in the list `partial` of its class. The entry is set after the slab is ready and
//! below the cache's limit.
//!
//! Called by the other files of `cache`, by `heap::control` and by statistics.

use super::depot::DepotChain;
use super::slab_lists::{gather, put_run, terminated};
use super::{Cache, Use, central, density, outgoing, stash};
use crate::address_map::{Entry, Kind, MAP};
use crate::chunk::{self, large_block};
use crate::misuse::{self, Call};
use crate::os::SYSTEM;
use crate::remote::Block;
use crate::size_class::{self, CLASSES, UNIT};
use crate::slab::{Slab, WayBack};
use crate::sync::atomic::Ordering;

impl Cache {
    /// About as many returned slots as the next refill wants.
    pub(super) fn take_returned(&self, class: usize) -> Option<DepotChain> {
        let bin = &self.bins[class];
        bin.partial.first()?;
        let most = self.wanted(class);
        let unlist = |slab: Slab<'_>| self.unlist(slab);
        let chain = gather(&bin.partial, class, most, self.scavenger.now.get(), unlist)?;
        bin.room.count(chain.count as i32);
        Some(terminated(chain))
    }

    /// A returned slot of a well-filled slab, for a block that moves there.
    pub(crate) fn alloc_dense(&self, class: usize) -> Option<*mut u8> {
        let (mine, bin) = (Entry::slab(self.id(), class), &self.bins[class]);
        let unlist = |slab: Slab<'_>| self.unlist(slab);
        let block = density::take(mine, &bin.partial, bin.slabs.get(), unlist)?;
        bin.room.count(1);
        Some(block)
    }

    /// Returns one block to its slab, if the slab is still this cache's (the caller's lookup may be
    /// out of date). The caller must hold the cache's lock.
    ///
    /// # Safety
    ///
    /// The block is of `class` and free, and the caller gives it away if this returns true.
    pub(crate) unsafe fn put_if_mine(&self, class: usize, block: *mut Block) -> bool {
        let is_mine = MAP.lookup(block.addr()).1 == Entry::slab(self.id(), class);
        if is_mine {
            // SAFETY: a slab of the class, this cache's while the lock is held; the caller gives
            // the free block away.
            unsafe { self.put(class, block) };
        }
        is_mine
    }

    pub(super) fn own(&self, unit: usize, class: usize) {
        let slabs = &self.bins[class].slabs;
        slabs.set(slabs.get() + 1);
        self.slabs.push(&MAP, unit);
        self.slab_count.set(self.slab_count.get() + 1);
    }

    pub(super) fn disown(&self, unit: usize, class: usize) {
        let slabs = &self.bins[class].slabs;
        slabs.set(slabs.get() - 1);
        self.slabs.remove(&MAP, unit);
        self.slab_count.set(self.slab_count.get() - 1);
    }

    /// Makes a slab of a unit from the stash or the chunk.
    pub(super) fn new_slab(&self, class: usize) -> Option<usize> {
        let (unit, zero) = match self.spared_unit() {
            Some(unit) => (unit, false),
            None => {
                let (bin, mine) = (&self.bins[class], Entry::slab(self.id(), class));
                let all = self.slab_count.get();
                let want = bin.probe.want_of_slab(class, bin.slabs.get(), all, mine);
                let run = chunk::take(1, 1, want, Entry::METADATA, Entry::large_rest)?;
                bin.probe.note(run.unit, want);
                (run.unit, run.zero)
            }
        };
        Some(self.open_slab(unit, zero, class))
    }

    /// Makes a slab of a new unit. `zero` says that the unit reads as zero.
    pub(super) fn open_slab(&self, unit: usize, zero: bool, class: usize) -> usize {
        // The entry is set last: by then the record must be a slab's.
        Slab::at(&MAP, unit, class).open(zero);
        self.own(unit, class);
        // Slabs with this cache's tag must be below its limit.
        self.hot.raise_limit();
        MAP.set_entry(unit, Entry::slab(self.id(), class));
        unit
    }

    /// A unit that comes free when the depot gives up blocks over [`LARGE`](super::LARGE). If none
    /// comes free, stashes give back runs that the chunk can serve the request from.
    fn spared_unit(&self) -> Option<usize> {
        self.shrink_depot_of_large();
        let unit = self.kept_unit();
        if unit.is_none() {
            self.make_way(1);
        }
        unit
    }

    /// A unit of the stash, usable to its end.
    pub(super) fn kept_unit(&self) -> Option<usize> {
        let unit = self.stash.take_exactly(1)?;
        if large_block::set_usable(unit, UNIT) {
            return Some(unit);
        }
        chunk::give(unit, 1);
        None
    }

    /// Gives a former slab's unit to the stash or the chunk.
    fn give_unit(&self, unit: usize) {
        let is_kept =
            self.owned_by() == Use::Thread && self.keeps_units.get() && self.stash.keep(unit, 1);
        if is_kept {
            stash::mark_kept(unit);
        } else {
            chunk::give(unit, 1);
        }
    }

    pub(super) fn distribute(&self, class: usize, chain: DepotChain) {
        let way = WayBack::of(&MAP, class, self.scavenger.now.get());
        let mine = Entry::slab(self.id(), class);
        let mut block = chain.head();
        let mut left = chain.count();
        let mut home = chain.count() as i32;
        self.scavenger.note_work();
        while left > 0 {
            let unit = self.hot.unit_of(block.addr());
            // SAFETY: the unit of a block is below the map's limit.
            if unsafe { MAP.entry(unit) } != mine {
                // Another cache took the slab over while the block was in a list.
                // SAFETY: the chain is this cache's and has `count` linked blocks.
                let next = unsafe { Block::next(block) };
                // SAFETY: a free block of the chain, which leaves the chain here.
                unsafe { outgoing::forward(block) };
                home -= 1;
                block = next;
                left -= 1;
                continue;
            }
            let unit_of = |address| self.hot.unit_of(address);
            // SAFETY: the chain is of this cache's blocks of the class, `left` of them.
            if unsafe { put_run(&way, unit, class, &mut block, &mut left, unit_of) } {
                self.settle(Slab::at(&MAP, unit, class));
            }
        }
        self.bins[class].room.count(-home);
    }

    /// # Safety
    ///
    /// The slab is of `class` and this cache's. The block is free, and the caller gives it away.
    #[inline]
    pub(super) unsafe fn put(&self, class: usize, block: *mut Block) {
        let unit = self.hot.unit_of(block.addr());
        let way = WayBack::of(&MAP, class, self.scavenger.now.get());
        // SAFETY: by the contract the unit is a slab of the class, and this cache's.
        let mut visit = unsafe { way.visit(unit) };
        if !visit.put(block.addr() & (UNIT - 1)) {
            misuse::double_free(Call::Free, block.addr(), size_class::size(class));
        }
        if visit.finish() {
            self.settle(Slab::at(&MAP, unit, class));
        }
        self.bins[class].room.count(-1);
        self.scavenger.note_work();
    }

    /// Lists a slab to which slots came back, or gives its unit up.
    pub(super) fn settle(&self, slab: Slab<'_>) {
        let bin = &self.bins[slab.class];
        if slab.is_empty() && bin.current.get() != slab.unit {
            self.retire(slab);
        } else if !slab.is_listed() {
            bin.partial.push(&MAP, slab.unit);
            slab.set_listed(true);
        }
    }

    pub(super) fn unlist(&self, slab: Slab<'_>) {
        let partial = &self.bins[slab.class].partial;
        if self.scavenger.next.get() == slab.unit {
            self.scavenger.next.set(partial.after(&MAP, slab.unit).unwrap_or(0));
        }
        partial.remove(&MAP, slab.unit);
        slab.set_listed(false);
    }

    pub(super) fn retire(&self, slab: Slab<'_>) {
        slab.clear();
        if slab.is_listed() {
            self.unlist(slab);
        }
        self.disown(slab.unit, slab.class);
        self.give_unit(slab.unit);
    }

    /// Gives back free memory outside lists, then pages: see [`Cache::purge_slabs`].
    pub(crate) fn give_back_unlisted(&self) -> usize {
        self.release_unlisted();
        self.purge_slabs()
    }

    /// Gives back the pages without a block. Returns the bytes that went to the kernel.
    pub(crate) fn purge_slabs(&self) -> usize {
        let mut given = 0;
        for class in 0..CLASSES {
            let mut at = self.bins[class].partial.first();
            while let Some(unit) = at {
                given += Slab::at(&MAP, unit, class).purge(&SYSTEM);
                at = self.bins[class].partial.after(&MAP, unit);
            }
        }
        chunk::note_purged(given);
        given
    }

    /// The slab must have returned slots, and the caller must have entered `from`.
    pub(super) fn take_over(&self, from: &Cache, slab: Slab<'_>) {
        from.part_with(slab);
        self.receive(slab);
    }

    /// Takes over a common slab to which at least one slot in `share` has returned, if any.
    pub(super) fn take_common(&self, class: usize, share: usize) -> bool {
        self.owned_by() == Use::Thread
            && central::part_with_one(class, share, |slab| self.receive(slab))
    }

    /// The slab must have returned slots, and be in no other owner's lists.
    fn receive(&self, slab: Slab<'_>) {
        let (unit, class) = (slab.unit, slab.class);
        self.own(unit, class);
        // Slabs with this cache's tag must be below its limit.
        self.hot.raise_limit();
        MAP.set_entry(unit, Entry::slab(self.id(), class));
        self.bins[class].partial.push(&MAP, unit);
        slab.set_listed(true);
        if slab.has_untouched() && self.bins[class].current.get() == 0 {
            self.bins[class].current.set(unit);
        }
    }

    /// Gives up every slab, in use or not, at the end of a first-class heap.
    pub(crate) fn give_all_slabs(&self) {
        for class in 0..CLASSES {
            let bin = &self.bins[class];
            let _forgotten = self.empty(class);
            bin.depot.forget();
            bin.room.out.set(0);
            bin.current.set(0);
            // This comes before the slabs' units go, because free runs use the same links.
            while let Some(unit) = bin.partial.first() {
                self.unlist(Slab::at(&MAP, unit, class));
            }
        }
        self.depot_bytes.store(0, Ordering::Relaxed);
        self.large_depot_bytes.set(0);
        self.depot_blocks.store(0, Ordering::Relaxed);
        self.publish();
        while let Some(unit) = self.slabs.first() {
            let Kind::Slab(class) = MAP.kind(unit) else { break };
            self.disown(unit, class);
            Slab::at(&MAP, unit, class).clear();
            chunk::give(unit, 1);
        }
    }

    pub(crate) fn has_slabs(&self) -> bool {
        self.slabs.first().is_some()
    }
}
