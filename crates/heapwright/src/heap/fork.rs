//! Fork: a child with one thread and the memory of many.
//!
//! The handlers take every lock before the fork and give it back on both
//! sides, so no lock is held by a thread that the child does not have. But
//! threads that own a cache take no lock, and the kernel copies page by page
//! while they run: the child may see one page from before a store and another
//! from after it. So what other threads' caches look like in the child cannot
//! be trusted as it is.
//!
//! Every operation on a cache changes its *stamp* (list heads, list lengths,
//! the busy flag). The handler notes each cache's stamp before the fork; the
//! child computes it again. Equal: no operation was made in between, the cache
//! was at rest, and the child may adopt it, with all its free blocks. Not
//! equal: the cache is *lost*: its lists are never used, and what the child
//! frees of its blocks is not used again. That is bounded by what those
//! threads held at the fork.
//!
//! A child of `vfork` runs none of this and shares the parent's memory until
//! it execs, as with any allocator.

use core::ptr;

use crate::cache::{CACHES, Cache, Use};
use crate::chunk;
use crate::os;
use crate::registry::Member;
use crate::sync::atomic::Ordering;

use super::{first_class, start};

/// Registers the handlers. Once, when the heap is ready.
pub(super) fn register() {
    os::around_fork(before, in_parent, in_child);
}

unsafe extern "C" fn before() {
    // The order in which the heap itself takes these locks.
    start::before_fork();
    first_class::before_fork();
    CACHES.before_fork();
    for cache in CACHES.all() {
        if cache.owned_by() == Use::Heap {
            cache.lock.acquire();
        }
    }
    chunk::metadata::before_fork();
    chunk::before_fork();
    for cache in CACHES.all() {
        cache.fork_stamp.store(cache.stamp(), Ordering::Relaxed);
    }
}

/// Gives the locks back.
///
/// # Safety
///
/// Follows [`before`] in the forking thread or its copy in the child.
unsafe fn unlock() {
    // SAFETY: the same contract, as for all that follow.
    unsafe { chunk::after_fork() };
    // SAFETY: as above.
    unsafe { chunk::metadata::after_fork() };
    for cache in CACHES.all() {
        if cache.owned_by() == Use::Heap {
            // SAFETY: as above.
            unsafe { cache.lock.release() };
        }
    }
    // SAFETY: as above.
    unsafe { CACHES.after_fork() };
    // SAFETY: as above.
    unsafe { first_class::after_fork() };
    // SAFETY: as above.
    unsafe { start::after_fork() };
}

unsafe extern "C" fn in_parent() {
    // SAFETY: the C library runs this after `before`, in the same thread.
    unsafe { unlock() };
}

unsafe extern "C" fn in_child() {
    // SAFETY: the C library runs this after `before`, in the copy of the thread.
    unsafe { unlock() };
    start::note_process();
    let mine = start::existing();
    for cache in CACHES.all() {
        let is_mine = mine.is_some_and(|mine| ptr::eq(mine, cache));
        if !is_mine && cache.owned_by() == Use::Thread {
            take_over(cache);
        }
    }
}

/// Lets the child adopt a cache whose thread it does not have, or gives it up.
fn take_over(cache: &Cache) {
    let at_rest = cache.stamp() == cache.fork_stamp.load(Ordering::Relaxed)
        && !cache.busy.load(Ordering::Relaxed);
    if !at_rest {
        cache.tenure().lose_after_fork();
        return;
    }
    if !cache.is_resting.load(Ordering::Relaxed) {
        cache.is_resting.store(true, Ordering::Relaxed);
        CACHES.rest(cache);
    }
    cache.tenure().orphan_after_fork();
}
