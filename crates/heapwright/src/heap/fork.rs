//! Fork: a child with one thread and the memory of many.
//!
//! The handlers take every lock before the fork and give it back on both
//! sides, so no lock is held by a thread that the child does not have, and what
//! the locks protect (runs, metadata, the registry, first-class heaps) is whole.
//!
//! Threads that own a cache take no lock, and the kernel copies page by page
//! while they run: the child may see one page from before a store and another
//! from after it. Even a cache that looks the same before and after may list a
//! block that its thread handed out in between, and whose page was copied
//! later. So in the child nothing such a cache says of *free* blocks is
//! believed:
//!
//! ```text
//!   what the child finds of another thread's cache       what it does
//!   lists, depot, outgoing, remote stack, bitmaps        forgets them
//!   which slabs it owned (the address map)               keeps it
//!   every slot of those slabs                            counts as in use
//!   runs that it kept                                    count as in use
//! ```
//!
//! The caches then rest, like those of threads that ended: what the child frees
//! of their blocks is used again, the next thread adopts them. Lost is what was
//! free in other threads' slabs at the fork, once; the parent loses nothing.
//!
//! Handlers of others that were registered before ours run while the locks are
//! held, in the same thread, and may allocate: see `sync::hold_all`.
//!
//! A child of `vfork` runs none of this and shares the parent's memory until
//! it execs, as with any allocator.

use core::ptr;

use crate::address_map::{Entry, Kind, MAP};
use crate::cache::{self, CACHES, Cache, Use};
use crate::chunk;
use crate::os;
use crate::slab::Slab;
use crate::sync;
use crate::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use super::first_class;
use super::start::{self, Mine};

/// Registers the handlers. Once, when the heap is ready.
pub(super) fn register() {
    os::around_fork(before, in_parent, in_child);
}

/// The fork under way took no lock.
static UNLOCKED: AtomicBool = AtomicBool::new(false);
/// The forking thread's cache, whose lock was taken.
static MINE: AtomicPtr<Cache> = AtomicPtr::new(ptr::null_mut());

unsafe extern "C" fn before() {
    // One thread: nobody else can hold a lock, and if this is a signal handler
    // that interrupted the heap, this thread does. The child goes on where the
    // handler returns, and gives the lock back itself.
    UNLOCKED.store(os::is_single_threaded(), Ordering::Relaxed);
    if UNLOCKED.load(Ordering::Relaxed) {
        return;
    }
    // It gets its cache now if it has none, because handlers that allocate run
    // while the locks are held.
    let mine = match start::mine() {
        Mine::Cache(mine) => Some(mine),
        Mine::Late(_) | Mine::Nothing => None,
    };
    // The order in which the heap itself takes these locks.
    start::before_fork();
    first_class::before_fork();
    if let Some(mine) = mine {
        // So that nobody is on a visit in it.
        mine.lock.acquire();
    }
    MINE.store(
        mine.map_or(ptr::null_mut(), |mine| ptr::from_ref(mine).cast_mut()),
        Ordering::Relaxed,
    );
    CACHES.before_fork();
    for cache in CACHES.all() {
        if cache.owned_by() == Use::Heap {
            cache.lock.acquire();
        }
    }
    chunk::metadata::before_fork();
    chunk::before_fork();
    sync::hold_all();
}

/// Gives the locks back.
///
/// # Safety
///
/// Follows [`before`] in the forking thread or its copy in the child.
unsafe fn unlock() {
    if UNLOCKED.load(Ordering::Relaxed) {
        return;
    }
    sync::hold_all_no_more();
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
    // SAFETY: null, or a cache, which is never freed.
    if let Some(mine) = unsafe { MINE.load(Ordering::Relaxed).as_ref() } {
        // SAFETY: as above.
        unsafe { mine.lock.release() };
    }
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
    if UNLOCKED.load(Ordering::Relaxed) {
        // No other thread was changing anything; what threads that ended left
        // behind is as it should be.
        return;
    }
    let mine = start::existing();
    let is_gone = |cache: &Cache| {
        cache.owned_by() == Use::Thread && !mine.is_some_and(|mine| ptr::eq(mine, cache))
    };
    if let Some(mine) = mine {
        mine.remote().forget_after_fork();
    }
    if !CACHES.all().any(is_gone) {
        return;
    }
    if let Some(mine) = mine {
        mine.stash.release();
    }
    for cache in CACHES.all().filter(|cache| is_gone(cache)) {
        cache.forget_after_fork();
    }
    cache::none_warm_after_fork();
    let frontier = chunk::usage().map_or(0, |usage| usage.frontier);
    for unit in 0..frontier {
        // SAFETY: units below the frontier are below the map's limit.
        let entry = unsafe { MAP.entry(unit) };
        if entry.kind() == Kind::Kept {
            // Not this thread's own: those were given back before.
            MAP.set_entries(unit, 1, Entry::LARGE_HEAD);
        }
        if let Kind::Slab(class) = entry.kind()
            && let Some(cache) = CACHES.get(entry.owner()).filter(|cache| is_gone(cache))
        {
            cache.regain_after_fork(Slab::at(&MAP, unit, class));
        }
    }
    CACHES.rest_after_fork(is_gone);
}
