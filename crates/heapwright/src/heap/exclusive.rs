//! A thread's own cache: what `malloc` does where its list is empty, and large blocks.
//!
//! ```text
//!   malloc --> list empty -----> here --> Cache::refill           as the cache's owner
//!          --> a large block --> here --> a run of the stash
//!   free ----> a large block --> here --> its run to the stash
//!                                 | no memory, no run, no room, or the hot part is not that
//!                                 v of the thread's cache
//!                                the door
//! ```
//!
//! The fast word leads to a cache of the thread's own only where no call is counted, traced or
//! passed on, and the process does not debug (`own_word`). So nothing of that is asked here.
//!
//! Called by `fast`.

use super::{door, fast, large, own_word, sampling, start};
use crate::address_map::CLASS_STEP;
use crate::cache::arrays::Gate;
use crate::cache::{self, Allocated, Hot, OnMiss, Residue, Stash};
use crate::request::{MALLOC, Origin, Request};
use crate::size_class::{self, MIN_ALIGN, UNIT};

/// A request of `size` bytes whose list, at `offset` in what the fast word leads to, is empty.
#[inline(never)]
pub(super) fn missed(size: usize, hot: &Hot, offset: usize) -> *mut u8 {
    match refill(hot, offset) {
        Some(Allocated { block, .. }) => block,
        None => missed_elsewhere::<MALLOC>(size, 1),
    }
}

/// [`missed_from`] where the thread has no cache whose hot part this is, or no memory, or a sample is due.
#[cold]
#[inline(never)]
fn missed_elsewhere<const FROM: u8>(size: usize, align: usize) -> *mut u8 {
    // The arrays, and shared caches, go by the size alone.
    if align > MIN_ALIGN {
        return door::malloc_aligned_cold::<FROM>(size, align);
    }
    // Looked up again, so that a miss need not keep it.
    let (hot, offset) = (fast::hot(), size_class::of(size) * CLASS_STEP);
    let request = Request::new(size, align, false, Origin::of::<FROM>());
    match hot.on_miss() {
        OnMiss::PerCpu => sampling::allocate_by_cpu(request, Gate::of(hot), offset),
        OnMiss::Shared => sampling::allocate_shared(request, hot, offset),
        OnMiss::Door | OnMiss::ByCpu => door::malloc_aligned_cold::<FROM>(size, align),
    }
}

/// [`missed`] for a call that gives a small alignment, or none (1).
#[inline(never)]
pub(super) fn missed_from<const FROM: u8>(
    size: usize,
    align: usize,
    hot: &Hot,
    offset: usize,
) -> *mut u8 {
    match refill(hot, offset) {
        Some(Allocated { block, .. }) => block,
        None => missed_elsewhere::<FROM>(size, align),
    }
}

/// Fills the list. `None`: there is no memory, or the thread has no cache whose hot part this is.
#[inline(always)]
fn refill(hot: &Hot, offset: usize) -> Option<Allocated> {
    let cache = own_word::cache_of(hot)?;
    if cache.is_asked() {
        // The door serves this call: with the cache, if the thread has it still.
        start::do_as_asked(cache);
        return None;
    }
    let _order = cache.enter();
    cache.refill(offset / CLASS_STEP)
}

/// A large block of `size` bytes from a run that the cache keeps. `None`: it keeps none of that
/// length, or the thread has no cache whose hot part this is.
#[inline(always)]
pub(super) fn large(size: usize, hot: &Hot) -> Option<*mut u8> {
    if Stash::LENGTHS.contains(&size)
        && let Some(cache) = own_word::cache_of(hot)
        // Where blocks are sampled or guarded (then the stash gives none here), or are to be, the door counts them.
        && !cache.is_asked_to_follow_sampling()
        && let Some(_order) = cache.try_enter()
    {
        return large::quickly(size, &cache.stash);
    }
    None
}

/// Whether `hot`, which the thread's fast word leads to, is that of a cache of its own whose blocks are sampled.
pub(super) fn is_sampled(hot: &Hot) -> bool {
    own_word::cache_of(hot).is_some_and(|cache| cache.sampling.is_on())
}

/// Frees a block if the thread's blocks are sampled, so that its hot part knows none, and it is one of the thread's
/// own or of the outgoing batch's owner. False: it is something else.
///
/// # Safety
///
/// As `free`; `hot` is what the thread's fast word leads to.
#[inline]
pub(super) unsafe fn free_sampled(block: *mut u8, hot: &Hot) -> bool {
    let Some(cache) = own_word::cache_of(hot).filter(|cache| cache.sampling.is_on()) else {
        return false;
    };
    let residue = hot.residue_by_map(block.addr());
    if !residue.is_mine() {
        // SAFETY: the caller gives the block away, and this is what is left of its entry.
        if unsafe { cache::send_along(hot, residue, block) }.is_ok() {
            return true;
        }
        // SAFETY: the caller gives the block away, which nobody has taken.
        return unsafe { free_large(block, hot, residue) };
    }
    // SAFETY: just checked.
    let list = unsafe { hot.list_of(residue) };
    if !list.is_slot_start((block.addr() & (UNIT - 1)) as u32) {
        return false;
    }
    // SAFETY: a slot of the class begins here, in a slab of the cache, whose thread's blocks are sampled; the caller
    // gives it away.
    if unsafe { cache.put_sampled(residue.bits(), block.cast()) } {
        door::overflow(residue.class());
    }
    true
}

/// Frees a block if it is a large one of no first-class heap, and the cache has room for its run.
///
/// # Safety
///
/// As `free`; `hot` is what the thread's fast word leads to, and `residue` what it left of the block's entry.
#[inline(always)]
pub(super) unsafe fn free_large(block: *mut u8, hot: &Hot, residue: Residue) -> bool {
    if !block.addr().is_multiple_of(UNIT) || !hot.is_large_head(residue) {
        return false;
    }
    let Some(cache) = own_word::cache_of(hot) else { return false };
    let Some(_order) = cache.try_enter() else { return false };
    large::keep(hot.unit_of(block.addr()), &cache.stash)
}
