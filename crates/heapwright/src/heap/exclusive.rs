//! A thread's own cache: what `malloc` does where its list is empty.
//!
//! ```text
//!   malloc --> list empty --> here --> Cache::refill, under the cache's lock
//!                              | no memory, or the hot part is not that of the thread's cache
//!                              v
//!                             the door
//! ```
//!
//! The fast word leads to a cache of the thread's own only where no call is counted, traced or
//! passed on, and the process does not debug (`own_word`). So nothing of that is asked here.
//!
//! Called by `fast`.

use core::ptr;

use super::{door, own_word};
use crate::address_map::CLASS_STEP;
use crate::cache::{Allocated, Hot};
use crate::request::MALLOC;

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
    let cache = own_word::cache().filter(|cache| ptr::eq(&raw const cache.hot, hot))?;
    let _order = cache.lock.lock();
    cache.refill(offset / CLASS_STEP)
}
