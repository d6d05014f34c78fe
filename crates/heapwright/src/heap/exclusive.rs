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

use core::ptr;

use super::{door, large, own_word, start};
use crate::address_map::{CLASS_STEP, Entry, MAP};
use crate::cache::{Allocated, Hot, Stash};
use crate::request::MALLOC;
use crate::size_class::UNIT;

/// A request of `size` bytes whose list, at `offset` in what the fast word leads to, is empty.
#[inline(never)]
pub(super) fn missed(size: usize, hot: &Hot, offset: usize) -> *mut u8 {
    match refill(hot, offset) {
        Some(Allocated { block, .. }) => block,
        None => door::malloc_cold::<MALLOC>(size),
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
        None => door::malloc_aligned_cold::<FROM>(size, align),
    }
}

/// Fills the list. `None`: there is no memory, or the thread has no cache whose hot part this is.
#[inline(always)]
fn refill(hot: &Hot, offset: usize) -> Option<Allocated> {
    let cache = own_word::cache_of(hot)?;
    if cache.should_be_given_up() {
        start::give_up(cache);
        return None;
    }
    let _order = cache.enter();
    cache.refill(offset / CLASS_STEP)
}

/// A large block of `size` bytes from a run that the cache keeps; else null: it keeps none of that
/// length, or the thread has no cache whose hot part this is.
#[inline(always)]
pub(super) fn large(size: usize, hot: &Hot) -> *mut u8 {
    if Stash::LENGTHS.contains(&size)
        && let Some(cache) = own_word::cache_of(hot)
        && let Some(_order) = cache.try_enter()
    {
        return large::quickly(size, &cache.stash);
    }
    ptr::null_mut()
}

/// Frees a block if it is a large one of no first-class heap, and the cache has room for its run.
///
/// # Safety
///
/// As `free`; `hot` is what the thread's fast word leads to.
#[inline(always)]
pub(super) unsafe fn free_large(block: *mut u8, hot: &Hot) -> bool {
    if !block.addr().is_multiple_of(UNIT) {
        return false;
    }
    let Some(cache) = own_word::cache_of(hot) else { return false };
    let (unit, entry) = MAP.lookup(block.addr());
    if entry != Entry::LARGE_HEAD {
        return false;
    }
    let Some(_order) = cache.try_enter() else { return false };
    large::keep(unit, &cache.stash)
}
