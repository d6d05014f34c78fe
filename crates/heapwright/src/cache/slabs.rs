//! A cache's slabs: how it comes by them, how blocks come back to them, and how they leave.
//!
//! ```text
//!   new_slab, receive --> own   --> current (being carved), partial (has returned slots)
//!                                     ^ distribute, put           | no slot out
//!                                                                 v
//!                                                               retire --> chunk
//! ```
//!
//! Invariants: every slab that carries the cache's tag is in the list of all; it is in the
//! list `partial` of its class if it has returned slots. The entry is set after
//! the slab is ready, and after the cache knows the window that far.
//!
//! Called by the rest of `cache`.

use super::depot::DepotChain;
use super::slab_lists::{gather, put_run, terminated, want_of_slab};
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
    /// Returned slots of slabs: about as many as are wanted.
    pub(super) fn take_returned(&self, class: usize) -> Option<DepotChain> {
        let bin = &self.bins[class];
        bin.partial.first()?;
        let most = self.wanted(class);
        let unlist = |slab: Slab<'_>| self.unlist(slab);
        let chain = gather(&bin.partial, class, most, self.scavenger.now.get(), unlist)?;
        bin.room.count(chain.count as i32);
        Some(terminated(chain))
    }

    /// A returned slot of a slab that is well filled, for a block that is moved there. `None`:
    /// there is none.
    pub(crate) fn alloc_dense(&self, class: usize) -> Option<*mut u8> {
        let (mine, bin) = (Entry::slab(self.id(), class), &self.bins[class]);
        let unlist = |slab: Slab<'_>| self.unlist(slab);
        let block = density::take(mine, &bin.partial, bin.slabs.get(), unlist)?;
        bin.room.count(1);
        Some(block)
    }

    /// Sends one block back to its slab, if that is this cache's now. (A caller that has only seen
    /// that it was may be late: another cache may have taken the slab over.) The cache's lock is
    /// held.
    ///
    /// # Safety
    ///
    /// The block is of `class` and free, and the caller gives it away if it is taken.
    pub(crate) unsafe fn put_if_mine(&self, class: usize, block: *mut Block) -> bool {
        let is_mine = MAP.lookup(block.addr()).1 == Entry::slab(self.id(), class);
        if is_mine {
            // SAFETY: a slab of the class and, while the lock is held, this cache's; the caller
            // gives the free block away.
            unsafe { self.put(class, block) };
        }
        is_mine
    }

    /// Takes a slab into the list of all.
    pub(super) fn own(&self, unit: usize, class: usize) {
        let slabs = &self.bins[class].slabs;
        slabs.set(slabs.get() + 1);
        self.slabs.push(&MAP, unit);
        self.slab_count.set(self.slab_count.get() + 1);
    }

    /// Takes a slab out of the list of all.
    pub(super) fn disown(&self, unit: usize, class: usize) {
        let slabs = &self.bins[class].slabs;
        slabs.set(slabs.get() - 1);
        self.slabs.remove(&MAP, unit);
        self.slab_count.set(self.slab_count.get() - 1);
    }

    /// Makes a slab of memory that other caches or the chunk have.
    pub(super) fn new_slab(&self, class: usize) -> Option<usize> {
        let (unit, zero) = match self.spared_unit() {
            Some(unit) => (unit, false),
            None => {
                let want = want_of_slab(class, self.bins[class].slabs.get(), self.slab_count.get());
                let run = chunk::take(1, 1, want, Entry::METADATA, Entry::large_rest)?;
                (run.unit, run.zero)
            }
        };
        Some(self.open_slab(unit, zero, class))
    }

    /// Makes a slab of a unit that was just taken, and that reads as zero if `zero`.
    pub(super) fn open_slab(&self, unit: usize, zero: bool, class: usize) -> usize {
        // The entry is set last: the record must be a slab's by then.
        Slab::at(&MAP, unit, class).open(zero);
        self.own(unit, class);
        // First: what has this cache's tag must be below its limit.
        self.hot.raise_limit();
        MAP.set_entry(unit, Entry::slab(self.id(), class));
        unit
    }

    /// A unit that comes free when the depot gives back what it holds beyond its share. If there is
    /// none, the stashes are given back where they may do.
    fn spared_unit(&self) -> Option<usize> {
        self.shrink_depot_of_large();
        let unit = self.kept_unit();
        if unit.is_none() {
            self.make_way(1);
        }
        unit
    }

    /// A unit that the stash keeps, with memory behind all of it.
    pub(super) fn kept_unit(&self) -> Option<usize> {
        let unit = self.stash.take_exactly(1)?;
        if large_block::set_usable(unit, UNIT) {
            return Some(unit);
        }
        chunk::give(unit, 1);
        None
    }

    /// Gives the unit of what was a slab back, or keeps it for the next one.
    fn give_unit(&self, unit: usize) {
        let is_kept =
            self.owned_by() == Use::Thread && self.keeps_units.get() && self.stash.keep(unit, 1);
        if is_kept {
            stash::mark_kept(unit);
        } else {
            chunk::give(unit, 1);
        }
    }

    /// Sends the blocks of a chain back to their slabs.
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
                // Its slab was taken over by another cache while it was in a list.
                // SAFETY: the chain is this cache's and has `count` linked blocks.
                let next = unsafe { Block::next(block) };
                // SAFETY: a free block of the chain's, which leaves the chain here.
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

    /// Sends one block back to its slab, which is this cache's.
    ///
    /// # Safety
    ///
    /// The slab is of `class` and this cache's; the block is free and the caller gives it away.
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

    /// Some of a slab's slots came back: lists it, or gives its unit back.
    pub(super) fn settle(&self, slab: Slab<'_>) {
        let bin = &self.bins[slab.class];
        if slab.is_empty() && bin.current.get() != slab.unit {
            self.retire(slab);
        } else if !slab.is_listed() {
            bin.partial.push(&MAP, slab.unit);
            slab.set_listed(true);
        }
    }

    /// Takes a slab out of its partial list.
    pub(super) fn unlist(&self, slab: Slab<'_>) {
        let partial = &self.bins[slab.class].partial;
        if self.scavenger.next.get() == slab.unit {
            self.scavenger.next.set(partial.after(&MAP, slab.unit).unwrap_or(0));
        }
        partial.remove(&MAP, slab.unit);
        slab.set_listed(false);
    }

    /// Gives a slab's unit back.
    pub(super) fn retire(&self, slab: Slab<'_>) {
        slab.clear();
        if slab.is_listed() {
            self.unlist(slab);
        }
        self.disown(slab.unit, slab.class);
        self.give_unit(slab.unit);
    }

    /// Gives the pages back that hold no block, of all slabs. Returns bytes.
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

    /// Takes over a slab with returned slots from another cache, whose slow
    /// operations are the caller's to do.
    pub(super) fn take_over(&self, from: &Cache, slab: Slab<'_>) {
        from.part_with(slab);
        self.receive(slab);
    }

    /// Takes over a slab with returned slots of the common owner's, of which one slot in `share` is
    /// free.
    pub(super) fn take_common(&self, class: usize, share: usize) -> bool {
        self.owned_by() == Use::Thread
            && central::part_with_one(class, share, |slab| self.receive(slab))
    }

    /// Makes a slab with returned slots this cache's, which is in no other owner's lists.
    fn receive(&self, slab: Slab<'_>) {
        let (unit, class) = (slab.unit, slab.class);
        self.own(unit, class);
        // First: what has this cache's tag must be below its limit.
        self.hot.raise_limit();
        MAP.set_entry(unit, Entry::slab(self.id(), class));
        self.bins[class].partial.push(&MAP, unit);
        slab.set_listed(true);
        if slab.has_untouched() && self.bins[class].current.get() == 0 {
            self.bins[class].current.set(unit);
        }
    }

    /// Gives every slab back, in use or not: the end of a first-class heap.
    pub(crate) fn give_all_slabs(&self) {
        for class in 0..CLASSES {
            let bin = &self.bins[class];
            let _forgotten = self.empty(class);
            bin.depot.forget();
            bin.room.out.set(0);
            bin.current.set(0);
            // Before the units go: free runs use the same links.
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

    /// Whether it has slabs.
    pub(crate) fn has_slabs(&self) -> bool {
        self.slabs.first().is_some()
    }
}
