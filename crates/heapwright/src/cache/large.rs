//! Slow allocation from any source, and large blocks, which are runs of whole units.
//!
//! ```text
//!   source   a thread's cache, a heap's cache ([`Use`]), or a shared cache. The caller
//!            holds the source: it has entered its own cache, or has locked the source
//!
//!   | used, in whole pages ....... | never touched | (room to grow) |      a large block
//!   unit 0       unit 1       ...                   unit n-1
//! ```
//!
//! A run's tail behind the last page in use is only address space. So a block of 33 KiB costs 36
//! KiB of memory, although its unit has 64 KiB.
//!
//! A block grows within its run's own units at no cost. If they do not suffice, it grows into a
//! free run behind it, or moves to a new run. The kernel moves many pages (`mremap`); few pages are
//! copied. A block that grew once tends to grow again, so the new run gets a quarter more address
//! space than it needs.
//!
//! Invariants: the first unit's record holds the run's length, the usable bytes (whole pages) and
//! the requested size. A block starts at its first unit.
//!
//! Called by `heap` and `drawn`.

use core::ptr;

use super::magazines::{self, Magazines};
use super::{Allocated, CACHES, Cache, Stash, Use, deferred};
use crate::address_map::{Entry, Kind, MAP};
use crate::chunk::{self, Run, Want, large_block};
use crate::memory_limit;
use crate::os::{self, Memory, SYSTEM};
use crate::remote::Block;
use crate::request::Request;
use crate::size_class::{self, SLAB_MAX, UNIT};
use crate::sync;
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use crate::unit_record::Record;

static LATE: AtomicPtr<Cache> = AtomicPtr::new(ptr::null_mut());

/// Blocks of at least this size move by pages. Shorter blocks are copied.
const MOVE_PAGES: usize = 1 << 20;

/// A block that shrinks by at most its run's units divided by this keeps the run, to grow again.
const STAYS: usize = 8;
/// The most units that a block keeps in this way: 1 MiB.
const STAYS_AT_MOST: usize = (1 << 20) / UNIT;

/// A cache that serves a request.
pub(crate) trait Source {
    /// A block of `class`. `None` if there is no memory, or if [`Source::is_sample_due`].
    fn alloc(&self, class: usize) -> Option<Allocated>;
    /// Whether [`Source::alloc`] failed because a sample, or perhaps a guarded block, is due now.
    fn is_sample_due(&self, class: usize) -> bool;
    /// Runs for the next large block.
    fn stash(&self) -> &Stash;
    /// Does a bounded step that gives back memory that no one has used for a while.
    fn tend(&self);
    /// Gives back runs that may serve instead, before a run of `units` units takes unused memory.
    fn make_way(&self, units: usize);
    fn release(&self);
    /// This source, if it is a heap that lists its large blocks. (The late heap and threads' caches
    /// list none, so a free of such a block need not wait for the late heap.)
    fn heap(&self) -> Option<&Cache>;
}

impl Source for Cache {
    fn alloc(&self, class: usize) -> Option<Allocated> {
        self.alloc(class)
    }

    fn is_sample_due(&self, class: usize) -> bool {
        self.sampling.is_due(class) || self.guard_draw.is_pending()
    }

    fn stash(&self) -> &Stash {
        &self.stash
    }

    fn tend(&self) {
        self.scavenge();
        // A thread that allocates only large blocks has no other slow path.
        if self.is_asked_to_follow_sampling() {
            self.follow_sampling();
        }
    }

    fn make_way(&self, units: usize) {
        self.make_way(units);
    }

    fn release(&self) {
        self.release_free();
        self.purge_slabs();
        magazines::release_all(self.id());
    }

    fn heap(&self) -> Option<&Cache> {
        matches!(self.owned_by(), Use::Heap | Use::Samples).then_some(self)
    }
}

impl Source for Magazines {
    fn alloc(&self, class: usize) -> Option<Allocated> {
        self.alloc(class)
    }

    fn is_sample_due(&self, _class: usize) -> bool {
        false
    }

    fn stash(&self) -> &Stash {
        &self.stash
    }

    fn tend(&self) {
        self.tend();
    }

    fn make_way(&self, units: usize) {
        self.make_way(units);
    }

    fn release(&self) {
        self.release();
        magazines::release_all(0);
    }

    fn heap(&self) -> Option<&Cache> {
        None
    }
}

/// The caller must hold the source. Returns null if there is no memory, or a sample is due.
#[inline(always)]
pub(crate) fn allocate_from(source: &impl Source, request: Request) -> *mut u8 {
    let served = serve(source, request).or_else(|| {
        if request.class().is_some_and(|class| source.is_sample_due(class)) {
            return None;
        }
        // Memory of other classes in the cache may suffice.
        source.release();
        serve(source, request)
    });
    let Some((given, usable)) = served else { return core::ptr::null_mut() };
    hand_over(request, given, usable)
}

/// Makes the block read as zero if the request says so.
pub(crate) fn hand_over(request: Request, given: Allocated, usable: usize) -> *mut u8 {
    if request.zero {
        if given.zero && usable <= SLAB_MAX {
            // Fresh memory, except that a slot's first word may have been a link.
            // SAFETY: a slot has room for a word, and it is the caller's.
            unsafe { given.block.cast::<usize>().write(0) };
        } else if !given.zero {
            // SAFETY: the block has room for `size` bytes.
            unsafe { given.block.write_bytes(0, request.size) };
        }
    }
    given.block
}

/// The block, and its usable bytes.
fn serve(source: &impl Source, request: Request) -> Option<(Allocated, usize)> {
    if let Some(class) = request.class() {
        return Some((source.alloc(class)?, size_class::size(class)));
    }
    let large = alloc(request.size, request.align, request.zero, source)?;
    if let Some(heap) = source.heap() {
        join_heap(large.unit, heap);
    }
    Some((Allocated { block: large.block, zero: true }, large.usable))
}

/// The heap of threads that have no cache, or cannot wait for a shared cache.
#[cold]
pub(crate) fn late() -> Option<&'static Cache> {
    // SAFETY: null, or a cache, which is never freed.
    if let Some(cache) = unsafe { LATE.load(Ordering::Acquire).as_ref() } {
        return Some(cache);
    }
    let cache = CACHES.make_new(|cache| cache.become_heap(Use::Late))?;
    let made = ptr::from_ref(cache).cast_mut();
    // If two threads get here at once, one of them leaves an empty cache behind.
    match LATE.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(cache),
        // SAFETY: a cache, which is never freed.
        Err(first) => Some(unsafe { &*first }),
    }
}

/// Serves a thread without a cache. Returns null if there is no memory.
#[cold]
pub(crate) fn allocate_late(request: Request) -> *mut u8 {
    let Some(cache) = late() else { return ptr::null_mut() };
    let _order = cache.lock.lock();
    allocate_from(cache, request)
}

pub(crate) struct Large {
    pub(crate) unit: usize,
    pub(crate) block: *mut u8,
    pub(crate) usable: usize,
}

fn whole_pages(size: usize) -> usize {
    // `size` is at most `isize::MAX`, so the sum does not overflow.
    let last = SYSTEM.page_size() - 1;
    (size + last) & !last
}

/// A block of `size` bytes (at most `isize::MAX`), from the stash of `keeper` if possible.
pub(crate) fn alloc(size: usize, align: usize, zero: bool, keeper: &impl Source) -> Option<Large> {
    if align <= UNIT
        && let Some(given) = from_kept(size, zero, keeper)
    {
        return Some(given);
    }
    let usable = whole_pages(size.max(1));
    let units = usable.div_ceil(UNIT);
    if os::is_more_than_there_is(usable) {
        return None;
    }
    keeper.tend();
    keeper.make_way(units);
    make_way_at_limit(usable, keeper);
    let want = if zero { Want::Zero } else { Want::Any };
    let run = chunk::take(units, align.div_ceil(UNIT), want, Entry::LARGE_HEAD, Entry::large_rest)?;
    hand_out(run, size, usable, zero)
}

/// Gives all free memory back if a block of `size` bytes, at least 1 MiB, would take fresh memory
/// and may exceed the memory limit. Does so at most once in a tick of the clock.
fn make_way_at_limit(size: usize, keeper: &impl Source) {
    static LAST: AtomicU32 = AtomicU32::new(0);
    if size < MOVE_PAGES
        || !memory_limit::is_short_of(size)
        || chunk::has_dirty(size.div_ceil(UNIT))
    {
        return;
    }
    let now = os::coarse_ms();
    if LAST.swap(now, Ordering::Relaxed) != now {
        keeper.release();
    }
}

fn from_kept(size: usize, zero: bool, keeper: &impl Source) -> Option<Large> {
    let usable = whole_pages(size.max(1));
    let units = usable.div_ceil(UNIT);
    let (unit, units) = keeper.stash().take(units)?;
    keeper.tend();
    keeper.stash().note_step();
    MAP.set_entry(unit, Entry::LARGE_HEAD);
    // Usable bytes stay usable: the run's next block may be longer again.
    let record = MAP.record(unit);
    let usable =
        if large_block::is_usable(record, size) { large_block::usable(record) } else { usable };
    let given = hand_out(Run { unit, zero: false, dense: false }, size, usable, zero);
    if given.is_none() {
        chunk::give(unit, units);
    }
    given
}

/// A block from a kept run. `size` is in [`Stash::LENGTHS`]. Only the run's requested size changes.
#[inline(always)]
pub(crate) fn quickly(size: usize, stash: &Stash) -> Option<*mut u8> {
    stash.take_ready(size.div_ceil(UNIT), size, |unit, record| {
        record.requested.store(size, Ordering::Relaxed);
        MAP.address_of(unit)
    })
}

/// [`quickly`], from a run that may be slightly longer.
pub(crate) fn quickly_fitting(size: usize, stash: &Stash) -> Option<*mut u8> {
    let (unit, record) = stash.take_fitting_ready(size)?;
    record.requested.store(size, Ordering::Relaxed);
    Some(MAP.address_of(unit))
}

/// Turns a kept run, which is the caller's now, into a large block of `size` bytes. Returns null,
/// and gives the run back, if a part of it is lost or a signal handler would have to wait.
#[inline(always)]
pub(crate) fn reuse(block: *mut u8, units: usize, size: usize) -> *mut u8 {
    let unit = MAP.unit_of(block.addr());
    let record = MAP.record(unit);
    if !large_block::is_usable_as_long(record, size) {
        return reuse_otherwise(unit, units, size);
    }
    record.requested.store(size, Ordering::Relaxed);
    block
}

/// [`reuse`] if the usable bytes of the run have to change.
#[cold]
#[inline(never)]
fn reuse_otherwise(unit: usize, units: usize, size: usize) -> *mut u8 {
    if sync::is_interrupted() {
        // The interrupted code may hold the lock.
        // SAFETY: the caller gives the run away, which was a block before.
        unsafe { deferred::defer_run(unit) };
        return ptr::null_mut();
    }
    let run = Run { unit, zero: false, dense: false };
    if let Some(given) = hand_out(run, size, whole_pages(size), false) {
        return given.block;
    }
    chunk::give(unit, units);
    ptr::null_mut()
}

/// Turns the run of the large block at `unit` into a kept run, and returns the length. `None` if
/// that is above `longest`, a first-class heap owns the block, or the block was freed before.
#[inline(always)]
pub(crate) fn give_up(unit: usize, longest: usize) -> Option<usize> {
    let record = MAP.record(unit);
    // Read once: another thread may have the run now if the program frees the block twice at once.
    let units = record.units.load(Ordering::Relaxed) as usize;
    if units.wrapping_sub(1) >= longest
        || record.heap.load(Ordering::Relaxed) != 0
        || record.requested.load(Ordering::Relaxed) == Record::KEPT
    {
        return None;
    }
    record.requested.store(Record::KEPT, Ordering::Relaxed);
    Some(units)
}

/// Moves the run of the large block at `unit`, which the caller gives away, to the stash. Changes
/// nothing, and returns false, if a first-class heap owns the block, the stash has no room, or the
/// block was freed before. (Another thread's free may be too recent to be seen.)
#[inline(always)]
pub(crate) fn keep(unit: usize, stash: &Stash) -> bool {
    let record = MAP.record(unit);
    if record.heap.load(Ordering::Relaxed) != 0
        || record.requested.load(Ordering::Relaxed) == Record::KEPT
    {
        return false;
    }
    let units = record.units.load(Ordering::Relaxed) as usize;
    let kept = stash.keep_ready(unit, record, units);
    if kept {
        record.requested.store(Record::KEPT, Ordering::Relaxed);
    }
    kept
}

/// Turns a run into a large block. `None` if a part of the run is lost (never in a fresh run).
fn hand_out(run: Run, size: usize, usable: usize, zero: bool) -> Option<Large> {
    // This comes first, because it may have to bring the memory back.
    if !large_block::set_usable(run.unit, usable) {
        return None;
    }
    let block = MAP.address_of(run.unit);
    if zero && !run.zero {
        // SAFETY: the run was just taken, is committed, and no other thread knows it.
        if size < chunk::ZERO_BY_KERNEL || !unsafe { SYSTEM.decommit(block, usable) } {
            // SAFETY: the run was just taken, has room for `size` bytes, and is unknown to others.
            unsafe { ptr::write_bytes(block, 0, size) };
        }
    }
    let record = MAP.record(run.unit);
    record.requested.store(size, Ordering::Relaxed);
    record.heap.store(0, Ordering::Relaxed);
    Some(Large { unit: run.unit, block, usable: large_block::usable(record) })
}

pub(crate) fn usable(unit: usize) -> usize {
    large_block::usable(MAP.record(unit))
}

/// The caller must hold the heap's lock.
pub(crate) fn join_heap(unit: usize, heap: &Cache) {
    MAP.record(unit).heap.store(heap.id(), Ordering::Relaxed);
    heap.large.push(&MAP, unit);
}

pub(crate) fn heap_of(unit: usize) -> Option<&'static Cache> {
    CACHES.get(MAP.record(unit).heap.load(Ordering::Relaxed))
}

/// Frees a slot of a heap's slab, from any thread.
///
/// # Safety
///
/// The block is of `class`, of a slab of `heap`, and in use.
pub(crate) unsafe fn free_slot(heap: &Cache, class: usize, block: *mut Block) {
    let _order = heap.lock.lock();
    // SAFETY: the block is of this class and heap, and the lock makes this thread its owner.
    unsafe { heap.free(class, block) };
}

/// Frees the large block at `unit` of `heap`. Returns false if the block was freed before.
#[must_use]
pub(crate) fn free_of_heap(unit: usize, heap: &Cache) -> bool {
    let _order = heap.lock.lock();
    // Checked again under the lock: two threads may free the block at once.
    let is_there = MAP.record(unit).heap.load(Ordering::Relaxed) == heap.id()
        && MAP.kind(unit) == Kind::LargeHead;
    if is_there {
        heap.large.remove(&MAP, unit);
    }
    is_there && free(unit, |_, _| false)
}

/// Frees the large block at `unit`, which is in no heap's list any more. `keep` gets the run's
/// first unit and length, and may keep the run. Returns false if the block was freed before.
#[must_use]
pub(crate) fn free(unit: usize, keep: impl FnOnce(usize, usize) -> bool) -> bool {
    let record = MAP.record(unit);
    if record.requested.swap(Record::KEPT, Ordering::Acquire) == Record::KEPT {
        return false;
    }
    let units = record.units.load(Ordering::Relaxed) as usize;
    if !keep(unit, units) {
        chunk::give(unit, units);
    }
    true
}

/// Turns a run that another thread had kept into a block in use, in a forked child.
pub(crate) fn revive(unit: usize) {
    MAP.record(unit).requested.store(usable(unit), Ordering::Relaxed);
}

/// `release` gives back the runs in the calling thread's stash.
pub(crate) fn resize_in_place(unit: usize, size: usize, release: impl Fn()) -> bool {
    let record = MAP.record(unit);
    let have = record.units.load(Ordering::Relaxed) as usize;
    let usable = whole_pages(size.max(1));
    let need = usable.div_ceil(UNIT);
    if need > have {
        // (The present units were granted before.)
        if os::is_more_than_there_is((need - have) * UNIT) {
            return false;
        }
        if memory_limit::is_short_of((need - have) * UNIT) {
            release();
        }
        let rest = Entry::large_rest(unit);
        let extend = || chunk::extend(unit, have, need - have, rest, usable).is_some();
        if !extend() {
            // A run in this thread's stash may be in the way.
            if MAP.kind(unit + have) != Kind::Kept {
                return false;
            }
            release();
            if !extend() {
                return false;
            }
        }
    } else if need < have - (have / STAYS).min(STAYS_AT_MOST)
        && usable < large_block::usable(record)
    {
        chunk::shorten(unit, have, need, usable);
    } else if !large_block::set_usable(unit, usable) {
        return false;
    }
    record.requested.store(size, Ordering::Relaxed);
    true
}

/// Moves the large block, which is in no heap's list, to a longer run. `None` if the block stays.
pub(crate) fn move_to_grow(unit: usize, size: usize) -> Option<Large> {
    let old = MAP.address_of(unit);
    let old_usable = usable(unit);
    let old_units = MAP.record(unit).units.load(Ordering::Relaxed) as usize;
    let usable = whole_pages(size);
    if os::is_more_than_there_is(usable.saturating_sub(old_usable)) {
        return None;
    }
    let take = |room: usize| {
        chunk::take(room.div_ceil(UNIT), 1, Want::Any, Entry::LARGE_HEAD, Entry::large_rest)
    };
    let run = take(usable.saturating_add(size / 4)).or_else(|| take(usable))?;
    let new = hand_out(run, size, usable, false)?;
    let length = old_usable.min(new.usable);
    // If pages could not be moved, the new block may have a hole, so its units stay lost.
    // SAFETY: both blocks have `length` bytes, are committed, distinct, and the caller's. The new
    // block holds nothing.
    let moved = unsafe { os::move_bytes(old, new.block, length, MOVE_PAGES) }?;
    chunk::give_moved(unit, old_units, moved);
    Some(new)
}

/// [`move_to_grow`] for a block of a first-class heap, whose lock is held.
pub(crate) fn move_in_heap(unit: usize, size: usize, heap: &Cache) -> Option<Large> {
    heap.large.remove(&MAP, unit);
    let new = move_to_grow(unit, size);
    join_heap(new.as_ref().map_or(unit, |new| new.unit), heap);
    new
}
