//! Central lists: the slabs of the common owner, class by class.
//!
//! ```text
//!   magazines (see `magazines`), K of them or one a CPU
//!      | a chain too many          ^ an empty list
//!      v                           |
//!   rows, depot of the class  blocks of CPUs' arrays; chains         O(1) both ways
//!      | too many                  ^ empty
//!      v                           |
//!   slabs of the class  bits, lowest address first; then untouched slots
//!      | no slot in use            ^
//!      v                           |
//!   chunk               runs of units
//! ```
//!
//! Slabs of shared caches cannot belong to one cache: if a thread moved to another cache, each free
//! of an earlier block would be a remote free. So all slabs belong to one *common owner*, an id
//! (`address_map::COMMON`) without an object. Threads share magazines, which own no slab.
//!
//! **Signal handlers** that interrupted their thread under a lock (`sync::is_interrupted`) must not
//! wait for a lock. So the functions that they reach take none. If no cache can take a block, the
//! block goes to [`DEFERRED`]. If no cache has a block, it comes from a reserve: a few blocks of
//! two sizes. The next thread that takes a chain refills a reserve that is less than half full.
//!
//! Invariants: threads access everything except the statistics under the class's lock. The order of
//! locks: a magazine's, a class's, the chunk's.
//!
//! Called by `magazines`, other files of `cache`, `heap` and statistics.

use core::cell::Cell;
use core::ptr;

use super::Cache;
use super::deferred::{DEFERRED, RESERVE, RESERVED};
use super::density;
use super::depot::{Depot, DepotChain};
use super::outgoing;
use super::slab_lists::{Probe, gather, put_run, terminated, to_spare};
use super::visit::{self, Thief};
use crate::address_map::{COMMON, Entry, Kind, MAP};
use crate::chunk;
use crate::misuse::{self, Call};
use crate::os;
use crate::os::SYSTEM;
use crate::purge_delay;
use crate::remote::{Block, RemoteStack};
use crate::size_class::{self, CLASSES, UNIT};
use crate::slab::{Slab, WayBack};
use crate::sync::Lock;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use crate::unit_list::{BySize, UnitList};

/// A class's depot may hold the bytes of its slabs divided by this. A cache's spare chains may hold
/// the bytes of all slabs divided by this.
const SHARE: usize = 64;
/// Chains that a depot may always hold, and bytes that it may hold at most.
const FEW_CHAINS: usize = 4;
const MANY_BYTES: usize = 256 << 10;
/// The depots of busy classes may hold this many bytes of blocks over [`MIDDLE`] for each shared
/// cache, up to [`MIDDLE_CACHES`] caches.
const MIDDLE_BYTES: usize = 1 << 20;
const MIDDLE_CACHES: usize = 16;
/// The most blocks in a row, and rows of a class.
pub(crate) const ROW: usize = 32;
const ROWS: usize = 8;
/// Partial slabs that a pass checks, and purges, while it holds a lock.
const LOOKS: usize = 64;
const PURGES: usize = 8;

/// Half the bytes of an exclusive cache's chain of small blocks: many threads share a magazine.
const CHAIN_BYTES: usize = 8 << 10;
/// The same for a busy class of blocks over [`MIDDLE`].
const CHAIN_BYTES_OF_BUSY: usize = 32 << 10;
/// Blocks over this size are *middle* blocks.
pub(super) const MIDDLE: usize = 1 << 10;
const CHAIN_BLOCKS: usize = 128;

pub(super) const fn chain_length(class: usize, is_busy: bool) -> usize {
    let size = size_class::size(class);
    let blocks = if is_busy && size > MIDDLE { CHAIN_BYTES_OF_BUSY } else { CHAIN_BYTES } / size;
    if blocks > CHAIN_BLOCKS {
        CHAIN_BLOCKS
    } else if blocks < 2 {
        2
    } else {
        blocks
    }
}

#[repr(align(128))]
pub(crate) struct Central {
    lock: Lock<()>,
    depot: Depot,
    rows: [Row; ROWS],
    row_count: Cell<usize>,
    row_blocks: Cell<usize>,
    /// Slabs with returned slots.
    partial: UnitList<BySize>,
    /// The slab whose untouched slots are handed out, or 0.
    current: Cell<usize>,
    slabs: Cell<usize>,
    probe: Probe,
    /// The slab that [`pass`] checks next, or 0.
    next: Cell<usize>,
    /// Whether a chain or a row was asked for after the last pass.
    was_wanted: Cell<bool>,
    /// Whether blocks over [`MIDDLE`] come and go fast: see `Magazines::is_busy`.
    is_busy: Cell<bool>,
    thief: Thief,
    /// Blocks in rows and depot.
    depot_blocks: AtomicUsize,
}

/// Free blocks that came from one CPU's arrays, mostly for another's. A row holds pointers,
/// because a walk along a chain that another CPU has just freed misses the cache at each block.
struct Row {
    blocks: [Cell<*mut Block>; ROW],
    count: Cell<usize>,
}

impl Row {
    const fn new() -> Self {
        Self { blocks: [const { Cell::new(ptr::null_mut()) }; ROW], count: Cell::new(0) }
    }
}

// SAFETY: everything except the atomics is accessed under the lock.
unsafe impl Sync for Central {}

static CENTRALS: [Central; CLASSES] = [const {
    Central {
        lock: Lock::new(()),
        depot: Depot::new(),
        rows: [const { Row::new() }; ROWS],
        row_count: Cell::new(0),
        row_blocks: Cell::new(0),
        partial: UnitList::new(),
        current: Cell::new(0),
        slabs: Cell::new(0),
        probe: Probe::new(),
        next: Cell::new(0),
        was_wanted: Cell::new(false),
        is_busy: Cell::new(false),
        thief: Thief::new(),
        depot_blocks: AtomicUsize::new(0),
    }
}; CLASSES];

static SHARING: AtomicUsize = AtomicUsize::new(0);
static SLABS: AtomicUsize = AtomicUsize::new(0);
/// Bytes of blocks over [`MIDDLE`] in all depots.
static MIDDLE_WAITING: AtomicUsize = AtomicUsize::new(0);
/// Whether any row or depot has ever held a block.
static HAVE_WAITED: AtomicBool = AtomicBool::new(false);
/// The time of the last pass in milliseconds.
static NOW: AtomicU32 = AtomicU32::new(0);
/// Whether slots came back to slabs after the last pass, or too late for it to purge the slabs.
static HAS_WORK: AtomicBool = AtomicBool::new(false);

pub(super) fn note_sharing(caches: usize) {
    SHARING.store(caches, Ordering::Relaxed);
}

pub(super) fn sharing() -> usize {
    SHARING.load(Ordering::Relaxed)
}

pub(super) fn has_work() -> bool {
    HAS_WORK.load(Ordering::Relaxed)
}

/// (Reads before it writes: all threads read the flag, and it is mostly true.)
fn note_work() {
    if !has_work() {
        HAS_WORK.store(true, Ordering::Relaxed);
    }
}

pub(super) fn begin_pass() {
    HAS_WORK.store(false, Ordering::Relaxed);
    if !DEFERRED.is_empty() {
        gather_deferred();
    }
}

/// Bytes that each cache may keep in spare chains.
pub(super) fn share() -> usize {
    SLABS.load(Ordering::Relaxed) * UNIT / SHARE
}

pub(super) struct Supply {
    pub(super) chain: DepotChain,
    /// Whether the chain is one block that reads as zero.
    pub(super) zero: bool,
}

/// About `most` blocks of `class`, at least one. `None` if there is no memory.
pub(super) fn take(class: usize, most: usize) -> Option<Supply> {
    if !DEFERRED.is_empty() {
        gather_deferred();
    }
    fill_reserves();
    take_chain(class, most)
}

#[inline]
pub(crate) fn fill_reserves() {
    for (reserve, (size, count)) in RESERVE.iter().zip(RESERVED) {
        if reserve.len() < count / 2 {
            fill_reserve(reserve, size, count);
        }
    }
}

/// [`take`] without the reserves.
fn take_chain(class: usize, most: usize) -> Option<Supply> {
    let central = &CENTRALS[class];
    let _order = central.lock.lock();
    central.was_wanted.set(true);
    if let Some(chain) = central.undepot(class) {
        return Some(Supply { chain, zero: false });
    }
    if let Some(chain) = central.take_returned(class, most) {
        return Some(Supply { chain, zero: false });
    }
    if central.current.get() == 0 {
        if MIDDLE_WAITING.load(Ordering::Relaxed) > 0 && !chunk::has_dirty(1) {
            release_middle(class);
        }
        let take = |owner: &Cache, slab: Slab<'_>| central.receive(slab, || owner.part_with(slab));
        if (visit::adopt(class, take) || central.thief.steal(0, class, take))
            && let Some(chain) = central.take_returned(class, most)
        {
            return Some(Supply { chain, zero: false });
        }
        if central.current.get() == 0 {
            central.current.set(central.new_slab(class)?);
        }
    }
    let slab = Slab::at(&MAP, central.current.get(), class);
    let chain = slab.carve(most)?;
    if !slab.has_untouched() {
        central.current.set(0);
    }
    if chain.count == 1 {
        // `carve` writes no link into a single slot, but the caller reads the link.
        return Some(Supply { chain: terminated(chain), zero: slab.is_zero() });
    }
    Some(Supply { chain: terminated(chain), zero: false })
}

pub(super) fn give(class: usize, chain: DepotChain) {
    if chain.count() == 0 {
        return;
    }
    let central = &CENTRALS[class];
    let _order = central.lock.lock();
    if central.has_room(class, chain.count()) {
        central.depot.push(chain);
        central.publish(class);
    } else {
        central.distribute(class, chain);
    }
}

pub(super) fn note_busy(class: usize) {
    let central = &CENTRALS[class];
    let _order = central.lock.lock();
    central.is_busy.set(true);
}

/// Takes at most [`ROW`] blocks of `class` from a CPU's arrays. Returns false without room.
///
/// # Safety
///
/// The blocks are free, of the class and of common slabs. If true, the caller has given them away.
pub(crate) unsafe fn give_row(class: usize, blocks: &[*mut Block]) -> bool {
    let central = &CENTRALS[class];
    let _order = central.lock.lock();
    let count = central.row_count.get();
    let Some(row) = central.rows.get(count).filter(|_| central.has_room(class, blocks.len()))
    else {
        return false;
    };
    for (place, &block) in row.blocks.iter().zip(blocks) {
        place.set(block);
    }
    row.count.set(blocks.len());
    central.row_count.set(count + 1);
    central.row_blocks.set(central.row_blocks.get() + blocks.len());
    central.publish(class);
    true
}

/// Returns the number of blocks, or 0 if there is no row.
pub(crate) fn take_row(class: usize, into: &mut [*mut Block; ROW]) -> usize {
    let central = &CENTRALS[class];
    if central.depot_blocks.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    let _order = central.lock.lock();
    central.was_wanted.set(true);
    central.pop_row(class, into)
}

/// Makes a slab of an exclusive cache a common slab. `part` takes it out of that cache's lists.
pub(super) fn take_in(slab: Slab<'_>, part: impl FnOnce()) {
    let central = &CENTRALS[slab.class];
    let _order = central.lock.lock();
    central.receive(slab, part);
}

/// Passes a slab of `class`, to which at least one slot in `share` has returned, to `take`, which
/// gives it to a cache. Returns false if there is no such slab, or another thread holds the class's
/// lock. (The slab's blocks in arrays, rows and chains are sent to the cache later.)
pub(super) fn part_with_one(class: usize, share: usize, take: impl FnOnce(Slab<'_>)) -> bool {
    if SLABS.load(Ordering::Relaxed) == 0 {
        return false;
    }
    let central = &CENTRALS[class];
    let Some(_order) = central.lock.try_lock() else { return false };
    let Some(unit) = to_spare(&central.partial, class, share) else { return false };
    let slab = Slab::at(&MAP, unit, class);
    central.unlist(slab);
    if central.current.get() == unit {
        central.current.set(0);
    }
    central.slabs.set(central.slabs.get() - 1);
    SLABS.fetch_sub(1, Ordering::Relaxed);
    take(slab);
    true
}

/// A returned slot of a well-filled common slab, for a block that moves there. `None` if there is
/// no such slab, or another thread holds the class's lock.
pub(crate) fn alloc_dense(class: usize) -> Option<*mut u8> {
    let central = &CENTRALS[class];
    let _order = central.lock.try_lock()?;
    let mine = Entry::slab(COMMON, class);
    density::take(mine, &central.partial, central.slabs.get(), |slab| central.unlist(slab))
}

/// Returns one block to its slab. False if another thread holds the class's lock.
///
/// # Safety
///
/// The block is of `class`, of a common slab, and the caller gives it away, if this returns true.
pub(crate) unsafe fn put(class: usize, block: *mut Block) -> bool {
    let central = &CENTRALS[class];
    let Some(_order) = central.lock.try_lock() else { return false };
    // SAFETY: the caller gives the block away.
    unsafe { Block::set_next(block, ptr::null_mut()) };
    // SAFETY: one block of the class and the common owner, whose link is null.
    central.distribute(class, unsafe { DepotChain::of(block, 1) });
    true
}

/// Returns the middle blocks in depots to their slabs, before the process grows for a slab of
/// `class`, whose lock is held. Skips classes that other threads hold.
#[cold]
fn release_middle(class: usize) {
    for other in (size_class::of(MIDDLE + 1)..CLASSES).filter(|&other| other != class) {
        let central = &CENTRALS[other];
        if central.depot_blocks.load(Ordering::Relaxed) > 0
            && let Some(_order) = central.lock.try_lock()
        {
            central.release(other);
        }
    }
}

#[cold]
fn fill_reserve(reserve: &RemoteStack, size: usize, count: usize) {
    let class = size_class::of(size);
    loop {
        // (Other threads fill and empty the reserve in the meantime.)
        let missing = count.saturating_sub(reserve.len());
        if missing == 0 {
            return;
        }
        let Some(Supply { chain, .. }) = take_chain(class, missing) else { return };
        let mut tail = chain.head();
        for _ in 1..chain.count() {
            // SAFETY: the chain is ours, and has that many blocks.
            tail = unsafe { Block::next(tail) };
        }
        // SAFETY: a linked chain that no other thread knows.
        unsafe { reserve.push(chain.head(), tail, chain.count(), chain.count() * size) };
    }
}

#[cold]
fn gather_deferred() {
    let (mut block, bound) = DEFERRED.take();
    let (mut found, mut bytes) = (0, 0);
    while !block.is_null() {
        found += 1;
        if found > bound {
            misuse::double_free(Call::Free, block.addr(), 0);
        }
        // SAFETY: the chain was taken whole.
        let next = unsafe { Block::next(block) };
        let (unit, entry) = MAP.lookup(block.addr());
        if let Kind::Slab(class) = entry.kind() {
            bytes += size_class::size(class);
            // SAFETY: the block was taken from the stack, and no other code has it.
            unsafe { Block::set_next(block, ptr::null_mut()) };
            // SAFETY: one free block of the class and the common owner, whose link is null.
            give(class, unsafe { DepotChain::of(block, 1) });
        } else {
            // The block is a run: see `defer_run`.
            bytes += UNIT;
            chunk::give(unit, MAP.record(unit).units.load(Ordering::Relaxed) as usize);
        }
        block = next;
    }
    DEFERRED.taken(found, bytes);
}

/// Gives back free memory outside magazines. Returns the bytes that went to the kernel.
pub(crate) fn purge_all() -> usize {
    let mut given = 0;
    if !DEFERRED.is_empty() {
        gather_deferred();
    }
    for (class, central) in CENTRALS.iter().enumerate() {
        let _order = central.lock.lock();
        central.release(class);
        let mut at = central.partial.first();
        while let Some(unit) = at {
            given += Slab::at(&MAP, unit, class).purge(&SYSTEM);
            at = central.partial.after(&MAP, unit);
        }
    }
    chunk::note_purged(given);
    given
}

/// Gives back memory of a class that was unused for `age` ms. Returns whether the class is done.
pub(super) fn pass(class: usize, begins: bool, now: u32, age: i32) -> bool {
    NOW.store(now, Ordering::Relaxed);
    let central = &CENTRALS[class];
    let Some(_order) = central.lock.try_lock() else {
        note_work();
        return true;
    };
    if begins {
        if !central.was_wanted.replace(false) {
            central.is_busy.set(false);
            central.release(class);
        }
        central.next.set(central.partial.first().unwrap_or(0));
    }
    let mut purges = 0;
    for _ in 0..LOOKS {
        let unit = central.next.get();
        if unit == 0 {
            return true;
        }
        central.next.set(central.partial.after(&MAP, unit).unwrap_or(0));
        let slab = Slab::at(&MAP, unit, class);
        let waited = chunk::waited(slab.stamp(), now);
        if waited >= age {
            let given = slab.purge(&SYSTEM);
            chunk::note_purged(given);
            purge_delay::note_given(given, now, waited);
            purges += usize::from(given > 0);
            if purges == PURGES {
                return false;
            }
        } else {
            note_work();
        }
    }
    false
}

/// Blocks and bytes in depots, reserves and deferred frees.
pub(crate) fn waiting() -> (usize, usize) {
    let mut total = (DEFERRED.len(), DEFERRED.bytes());
    for reserve in &RESERVE {
        total.0 += reserve.len();
        total.1 += reserve.bytes();
    }
    // (If no block ever waited, a process that ends need not touch the pages of all lists.)
    if HAVE_WAITED.load(Ordering::Relaxed) {
        for (class, central) in CENTRALS.iter().enumerate() {
            let blocks = central.depot_blocks.load(Ordering::Relaxed);
            total.0 += blocks;
            total.1 += blocks * size_class::size(class);
        }
    }
    total
}

pub(crate) fn before_fork() {
    for central in &CENTRALS {
        central.lock.acquire();
    }
}

/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy in the child.
pub(crate) unsafe fn after_fork() {
    for central in CENTRALS.iter().rev() {
        // SAFETY: by the contract this thread, or the thread that it is a copy of, holds the lock.
        unsafe { central.lock.release() };
    }
}

// The caller of each method holds the class's lock.
impl Central {
    fn publish(&self, class: usize) {
        let (now, size) = (self.waiting(), size_class::size(class));
        let before = self.depot_blocks.load(Ordering::Relaxed);
        self.depot_blocks.store(now, Ordering::Relaxed);
        if !HAVE_WAITED.load(Ordering::Relaxed) {
            HAVE_WAITED.store(true, Ordering::Relaxed);
        }
        if size > MIDDLE {
            MIDDLE_WAITING
                .fetch_add(now.wrapping_sub(before).wrapping_mul(size), Ordering::Relaxed);
        }
    }

    fn waiting(&self) -> usize {
        self.depot.blocks() + self.row_blocks.get()
    }

    fn pop_row(&self, class: usize, into: &mut [*mut Block; ROW]) -> usize {
        let Some(last) = self.row_count.get().checked_sub(1) else { return 0 };
        let row = &self.rows[last];
        let count = row.count.get();
        for (block, place) in into.iter_mut().zip(&row.blocks[..count]) {
            *block = place.get();
        }
        self.row_count.set(last);
        self.row_blocks.set(self.row_blocks.get() - count);
        self.publish(class);
        count
    }

    /// The newest chain of the depot, or a row as a chain.
    fn undepot(&self, class: usize) -> Option<DepotChain> {
        if let Some(chain) = self.depot.pop() {
            self.publish(class);
            return Some(chain);
        }
        let mut row = [ptr::null_mut(); ROW];
        let count = self.pop_row(class, &mut row);
        let mut head = ptr::null_mut();
        for &block in row[..count].iter().rev() {
            // SAFETY: a free block from the row, which is in no other list.
            unsafe { Block::set_next(block, head) };
            head = block;
        }
        // SAFETY: just linked; blocks in rows are of the class and the common owner.
        (count > 0).then(|| unsafe { DepotChain::of(head, count) })
    }

    /// Whether rows and depot may hold `count` blocks more.
    fn has_room(&self, class: usize, count: usize) -> bool {
        let size = size_class::size(class);
        if self.is_busy.get() {
            let caches = SHARING.load(Ordering::Relaxed).clamp(1, MIDDLE_CACHES);
            return MIDDLE_WAITING.load(Ordering::Relaxed) + count * size <= caches * MIDDLE_BYTES;
        }
        let share = self.slabs.get() * UNIT / SHARE;
        let few = FEW_CHAINS * chain_length(class, false) * size;
        (self.waiting() + count) * size <= share.clamp(few, MANY_BYTES.max(few))
    }

    fn take_returned(&self, class: usize, most: usize) -> Option<DepotChain> {
        let now = NOW.load(Ordering::Relaxed);
        gather(&self.partial, class, most, now, |slab| self.unlist(slab)).map(terminated)
    }

    fn new_slab(&self, class: usize) -> Option<usize> {
        let mine = Entry::slab(COMMON, class);
        let all = SLABS.load(Ordering::Relaxed);
        let want = self.probe.want_of_slab(class, self.slabs.get(), all, mine);
        // The entry is set last: by then the record must be a slab's.
        let run = chunk::take(1, 1, want, Entry::METADATA, Entry::large_rest)?;
        self.probe.note(run.unit, want);
        Slab::at(&MAP, run.unit, class).open(run.zero);
        self.slabs.set(self.slabs.get() + 1);
        SLABS.fetch_add(1, Ordering::Relaxed);
        MAP.set_entry(run.unit, mine);
        Some(run.unit)
    }

    fn receive(&self, slab: Slab<'_>, part: impl FnOnce()) {
        part();
        self.slabs.set(self.slabs.get() + 1);
        SLABS.fetch_add(1, Ordering::Relaxed);
        MAP.set_entry(slab.unit, Entry::slab(COMMON, slab.class));
        if slab.free() > 0 {
            self.partial.push(&MAP, slab.unit);
            slab.set_listed(true);
            note_work();
        }
        if slab.has_untouched() && self.current.get() == 0 {
            self.current.set(slab.unit);
        }
    }

    fn distribute(&self, class: usize, chain: DepotChain) {
        let way = WayBack::of(&MAP, class, os::coarse_ms());
        note_work();
        let mine = Entry::slab(COMMON, class);
        let mut block = chain.head();
        let mut left = chain.count();
        while left > 0 {
            let unit = MAP.unit_of(block.addr());
            if block.is_null() {
                misuse::double_free(Call::Free, block.addr(), size_class::size(class));
            }
            // SAFETY: the unit of a block is below the map's limit.
            if unsafe { MAP.entry(unit) } != mine {
                // A cache has taken the block's slab over in the meantime.
                // SAFETY: the chain is the caller's and has `left` linked blocks.
                let next = unsafe { Block::next(block) };
                // SAFETY: a free block of the chain, which leaves the chain here.
                unsafe { outgoing::forward(block) };
                block = next;
                left -= 1;
                continue;
            }
            let unit_of = |address| MAP.unit_of(address);
            // SAFETY: common blocks of the class; this thread holds the class's lock.
            if unsafe { put_run(&way, unit, class, &mut block, &mut left, unit_of) } {
                self.settle(Slab::at(&MAP, unit, class));
            }
        }
    }

    /// Lists a slab to which slots came back, or returns its unit to the chunk.
    fn settle(&self, slab: Slab<'_>) {
        if slab.is_empty() && self.current.get() != slab.unit {
            self.retire(slab);
        } else if !slab.is_listed() {
            self.partial.push(&MAP, slab.unit);
            slab.set_listed(true);
        }
    }

    fn unlist(&self, slab: Slab<'_>) {
        if self.next.get() == slab.unit {
            self.next.set(self.partial.after(&MAP, slab.unit).unwrap_or(0));
        }
        self.partial.remove(&MAP, slab.unit);
        slab.set_listed(false);
    }

    fn retire(&self, slab: Slab<'_>) {
        slab.clear();
        if slab.is_listed() {
            self.unlist(slab);
        }
        self.slabs.set(self.slabs.get() - 1);
        SLABS.fetch_sub(1, Ordering::Relaxed);
        chunk::give(slab.unit, 1);
    }

    fn release(&self, class: usize) {
        while let Some(chain) = self.undepot(class) {
            self.distribute(class, chain);
        }
        let current = self.current.get();
        if current != 0 {
            let slab = Slab::at(&MAP, current, class);
            if slab.is_empty() {
                self.current.set(0);
                self.retire(slab);
            }
        }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::super::deferred::{defer, reserved};
    use super::*;
    use crate::size_class::SLAB_MAX;

    #[test]
    fn the_reserve_serves_so_many_and_is_filled_by_what_comes_back() {
        assert!(crate::substrate::open_and_begin());
        fill_reserves();
        let class = |size: usize| size_class::of(size);
        let all = || -> Vec<*mut Block> { core::iter::from_fn(|| reserved(class(24))).collect() };
        let blocks = all();
        // The small blocks come first, although a large block would do.
        let size = |&block: &*mut Block| match MAP.lookup(block.addr()).1.kind() {
            Kind::Slab(class) => size_class::size(class),
            kind => panic!("a reserved block in {kind:?}"),
        };
        let sizes: Vec<usize> = blocks.iter().map(size).collect();
        assert_eq!(sizes, [[1 << 10; 64].as_slice(), &[SLAB_MAX; 4]].concat());
        assert!(reserved(class(24)).is_none() && reserved(class(SLAB_MAX)).is_none());
        // The reserve takes the blocks that handlers free, before a thread refills it.
        for block in &blocks {
            // SAFETY: a reserved block, of a common slab of this class, given back once.
            unsafe { defer(class(size(block)), *block) };
        }
        assert!(DEFERRED.is_empty());
        assert_eq!(all().len(), blocks.len());
        let taken = take(class(48), 1).expect("there is memory");
        give(class(48), taken.chain);
        assert_eq!(all().len(), blocks.len());
    }

    /// Such a request must not loop for ever over returned slots.
    #[test]
    fn a_request_for_none_gets_one() {
        assert!(crate::substrate::open_and_begin());
        let class = size_class::of(200);
        let first = take_chain(class, 100).expect("there is memory").chain;
        let kept = take_chain(class, 1).expect("there is memory").chain;
        give(class, first);
        purge_all();
        assert!(CENTRALS[class].partial.first().is_some(), "its slots came back to their slab");
        let one = take_chain(class, 0).expect("there is memory").chain;
        assert!(one.count() >= 1);
        give(class, one);
        give(class, kept);
    }
}
