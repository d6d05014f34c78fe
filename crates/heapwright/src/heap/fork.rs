//! The heap's part in a fork: a child with one thread and the memory of many.
//!
//! What locks protect is whole in the child (see `fork`, which calls this).
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
//!   runs that it kept, or was about to keep              count as in use
//! ```
//!
//! The caches then rest, like those of threads that ended: what the child frees
//! of their blocks is used again, the next thread adopts them. Lost is what was
//! free in other threads' slabs at the fork, once; the parent loses nothing.

use core::ptr;

use crate::address_map::{Entry, Kind, MAP};
use crate::cache::{self, CACHES, Cache, Use, arrays, magazines};
use crate::chunk;
use crate::fork;
use crate::hardened;
use crate::slab::Slab;
use crate::sync::atomic::{AtomicPtr, Ordering};

use super::{control, large, start, words};

/// What the heap does around a fork.
pub(super) static HANDLERS: fork::Handlers = fork::Handlers { before, unlock, in_child };

/// The forking thread's cache, whose lock was taken.
static MINE: AtomicPtr<Cache> = AtomicPtr::new(ptr::null_mut());

fn before() {
    // It gets its cache now if it has none, because handlers that allocate run
    // while the locks are held.
    start::begin_thread();
    let mine = words::cache();
    // See `fork`: while slots are waited for, no other lock of the heap is held.
    magazines::hold_slots();
    // The order in which the heap itself takes these locks.
    start::before_fork();
    hardened::before_fork();
    control::before_fork();
    if let Some(mine) = mine {
        // So that nobody is on a visit in it.
        mine.lock.acquire();
    }
    MINE.store(
        mine.map_or(ptr::null_mut(), |mine| ptr::from_ref(mine.get()).cast_mut()),
        Ordering::Relaxed,
    );
    CACHES.before_fork();
    for cache in CACHES.all() {
        if cache.is_heap() {
            cache.lock.acquire();
        }
    }
    magazines::before_fork();
}

/// # Safety
///
/// Follows [`before`] in the forking thread or its copy in the child.
unsafe fn unlock() {
    // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
    // copy of.
    unsafe { magazines::after_fork() };
    for cache in CACHES.all() {
        if cache.is_heap() {
            // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
            unsafe { cache.lock.release() };
        }
    }
    // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
    // copy of.
    unsafe { CACHES.after_fork() };
    // SAFETY: null, or a cache, which is never freed.
    if let Some(mine) = unsafe { MINE.load(Ordering::Relaxed).as_ref() } {
        // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
        unsafe { mine.lock.release() };
    }
    // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
    // copy of.
    unsafe { control::after_fork() };
    // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
    // copy of.
    unsafe { hardened::after_fork() };
    // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
    // copy of.
    unsafe { start::after_fork() };
    // SAFETY: the slots were held before the fork by this thread, or by the one that it is a copy
    // of.
    unsafe { magazines::let_slots_go() };
}

fn in_child(alone: bool) {
    start::forget_after_fork(words::cache().is_some());
    hardened::choose_anew_after_fork();
    #[cfg(feature = "debug")]
    crate::tallies::forget_after_fork();
    if alone {
        // No other thread was changing anything; what threads that ended left
        // behind is as it should be.
        return;
    }
    magazines::forget_after_fork();
    hardened::forget_after_fork(words::hardened());
    let mine = words::cache();
    let is_gone = |cache: &Cache| {
        cache.owned_by() == Use::Thread && !mine.is_some_and(|mine| ptr::eq(mine.get(), cache))
    };
    if let Some(mine) = mine {
        mine.remote().forget_after_fork();
    }
    // Where CPUs have arrays a thread may have been on its way there with a run that it freed, or
    // from there.
    if !CACHES.all().any(is_gone) && arrays::gate().is_none() {
        return;
    }
    if let Some(mine) = mine {
        mine.stash.release();
    }
    magazines::release_stashes_after_fork();
    for cache in CACHES.all().filter(|cache| is_gone(cache)) {
        cache.forget_after_fork();
    }
    cache::none_warm_after_fork();
    let frontier = chunk::usage().map_or(0, |usage| usage.frontier);
    for unit in 0..frontier {
        // SAFETY: units below the frontier are below the map's limit.
        let entry = unsafe { MAP.entry(unit) };
        if MAP.kind_of(unit, entry) == Kind::Kept {
            // Not this thread's own, nor those of caches that threads share: these were given back
            // before.
            MAP.set_entry(unit, Entry::LARGE_HEAD);
            large::revive(unit);
        }
        if let Kind::Slab(class) = entry.kind()
            && let Some(cache) = CACHES.get(entry.owner()).filter(|cache| is_gone(cache))
        {
            cache.regain_after_fork(Slab::at(&MAP, unit, class));
        }
    }
    CACHES.abandon_after_fork(is_gone);
}
