//! Slow paths of a thread with a cache of its own, and how the thread gives the cache up.
//!
//! ```text
//!   malloc    list empty         Cache::refill: depot, remote frees, slabs
//!             large              a run of the stash, else `large`
//!   free      another thread's   into the outgoing batch, if that is for the same owner
//!                                (`cache::send_along`); else it begins the next batch, here
//!             large              its run to the stash
//!             anything else      `foreign`, by the unit's entry
//! ```
//!
//! Invariant: only hot parts of threads' own caches lead to tables with these functions. So `hot`
//! begins the calling thread's cache, and no function here checks the process's mode.
//!
//! Called by the tables of `start` and by `modes` (both through such hot parts), and by `fast`.

use core::ptr;

use super::words;
use super::{cpu, foreign, shared};
use crate::address_map::{CLASS_STEP, COMMON, Entry, Kind};
use crate::cache::large;
use crate::cache::{self, Allocated, CACHES, Hot, Mismatch, OwnCache, Stash, Use};
use crate::os::{self, Exit, rseq};
use crate::request::{Origin, Request, Return, Said};
use crate::size_class::{self, UNIT};
use crate::sync;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Threads with a cache of their own.
pub(super) static LIVE: AtomicUsize = AtomicUsize::new(0);

#[inline(always)]
pub(super) fn cache_of(hot: &Hot) -> OwnCache {
    // SAFETY: only hot parts of threads' own caches lead here, each from its own thread.
    unsafe { OwnCache::of_hot(hot) }
}

/// Serves `malloc(size)`, whose class's list, at `offset` in `hot`, is empty.
pub(super) extern "C" fn malloc(size: usize, hot: &Hot, offset: usize) -> *mut u8 {
    let cache = cache_of(hot);
    if !cache.is_asked() {
        let _order = cache.enter();
        if let Some(Allocated { block, .. }) = cache.refill(offset / CLASS_STEP) {
            return block;
        }
    }
    malloc_otherwise(size, hot)
}

/// [`malloc`] if a request to this thread is pending, memory is short, or this call gets a sample
/// or a guarded block.
#[cold]
#[inline(never)]
fn malloc_otherwise(size: usize, hot: &Hot) -> *mut u8 {
    (hot.serve().allocate)(size, 1, false, Origin::Malloc, hot)
}

/// Serves a call for a large block or for no bytes, without an alignment.
pub(super) fn allocate_large(size: usize, hot: &Hot, origin: Origin) -> *mut u8 {
    match quick_large(size, hot, large::quickly) {
        Some(block) => block,
        None => (hot.serve().allocate)(size, 1, false, origin, hot),
    }
}

/// A large block of `size` bytes that `take` finds in the stash. Also returns `None` while a
/// request to begin sampling is pending, or a visitor is in the cache.
#[inline(always)]
fn quick_large(
    size: usize,
    hot: &Hot,
    take: impl FnOnce(usize, &Stash) -> Option<*mut u8>,
) -> Option<*mut u8> {
    let cache = cache_of(hot);
    if Stash::LENGTHS.contains(&size)
        // The slow path serves a pending request to begin sampling. (While calls are counted,
        // `take` finds nothing: `Stash::count_fetches`.)
        && !cache.is_asked_to_follow_sampling()
        && let Some(_order) = cache.try_enter()
    {
        return take(size, &cache.stash);
    }
    None
}

/// Serves any other call for memory. (It makes only tail calls, so it saves no registers.)
pub(super) fn allocate(
    size: usize,
    align: usize,
    zero: bool,
    origin: Origin,
    hot: &Hot,
) -> *mut u8 {
    if zero {
        return allocate_slowly(size, align, zero, origin, hot);
    }
    if !Stash::LENGTHS.contains(&size) {
        return allocate_slot(size, align, origin, hot);
    }
    if align <= UNIT
        && let Some(block) = quick_large(size, hot, large::quickly)
    {
        return block;
    }
    allocate_fitting(size, align, zero, origin, hot)
}

/// [`allocate`] if the stash has no run of just this length.
#[inline(never)]
fn allocate_fitting(size: usize, align: usize, zero: bool, origin: Origin, hot: &Hot) -> *mut u8 {
    if align <= UNIT
        && let Some(block) = quick_large(size, hot, large::quickly_fitting)
    {
        return block;
    }
    allocate_slowly(size, align, zero, origin, hot)
}

/// [`allocate`] for a block that need not be zeroed and may fit a size class.
#[inline(never)]
fn allocate_slot(size: usize, align: usize, origin: Origin, hot: &Hot) -> *mut u8 {
    match allocate_quickly(size, align, hot) {
        Some(block) => block,
        None => allocate_slowly(size, align, false, origin, hot),
    }
}

/// A block of a size class that need not be zeroed. Returns `None` if no class fits, memory is
/// short, a request to this thread is pending, or this call gets a sample or a guarded block.
#[inline(always)]
pub(super) fn allocate_quickly(size: usize, align: usize, hot: &Hot) -> Option<*mut u8> {
    let class = Request::new(size, align, false, Origin::Malloc).class()?;
    let cache = cache_of(hot);
    if cache.is_asked() {
        return None;
    }
    let _order = cache.enter();
    cache.alloc(class).map(|given| given.block)
}

#[inline(never)]
fn allocate_slowly(size: usize, align: usize, zero: bool, origin: Origin, hot: &Hot) -> *mut u8 {
    let (cache, before) = (cache_of(hot), hot.serve());
    if cache.is_asked() {
        let now = ask(cache);
        if !ptr::eq(now, hot) || !ptr::eq(hot.serve(), before) {
            return (now.serve().allocate)(size, align, zero, origin, now);
        }
    }
    let block = serve(Request::new(size, align, zero, origin), cache);
    if !block.is_null() {
        return block;
    }
    // Sampling may have begun in the meantime.
    if !ptr::eq(hot.serve(), before) {
        return (hot.serve().allocate)(size, align, zero, origin, hot);
    }
    os::set_errno(os::ENOMEM);
    block
}

/// Serves the pending request to the thread. Returns its hot part afterwards.
#[cold]
#[inline(never)]
pub(super) fn ask(cache: OwnCache) -> &'static Hot {
    if cache.should_be_given_up() {
        give_up(cache);
    } else {
        let _order = cache.enter();
        cache.follow_sampling();
    }
    words::has()
}

/// Returns null if there is no memory, or if this call gets a sample or a guarded block.
#[inline(always)]
pub(super) fn serve(request: Request, cache: OwnCache) -> *mut u8 {
    if !request.is_possible() {
        return ptr::null_mut();
    }
    let _order = cache.enter();
    large::allocate_from(cache.get(), request)
}

#[cold]
#[inline(never)]
pub(super) extern "C" fn overflow(class: usize) {
    if let Some(cache) = words::cache() {
        let _order = cache.enter();
        cache.overflow(class);
    }
}

/// Frees a block that neither the thread's cache nor the outgoing batch's owner owns.
///
/// # Safety
///
/// As `free`. `mismatch` is the tag mismatch of the block's entry with the thread's own `hot`.
pub(super) unsafe extern "C" fn free(block: *mut u8, hot: &Hot, mismatch: Mismatch) {
    // SAFETY: the caller gives the block away.
    unsafe { free_with(block, hot, mismatch, Return::PLAIN) }
}

/// # Safety
///
/// As [`free`].
#[inline(always)]
unsafe fn free_with(block: *mut u8, hot: &Hot, mismatch: Mismatch, what: Return) {
    let entry = hot.entry(mismatch);
    if entry == Entry::LARGE_HEAD {
        if free_large(block, hot) {
            return;
        }
    } else if let Kind::Slab(class) = entry.kind() {
        let offset = (block.addr() & (UNIT - 1)) as u32;
        if size_class::is_slot_start(offset, size_class::reciprocal(class)) {
            // SAFETY: a slot of the class and owner begins here; the caller gives it away.
            return unsafe { free_others(block, hot, entry.owner(), class) };
        }
    }
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { foreign::give_back(block, what) }
}

/// Frees a slot of another owner. If that owner is a thread's cache, the slot begins a batch.
///
/// # Safety
///
/// The block is of `class`, of a slab of `owner`, and the caller gives it away.
#[inline(always)]
unsafe fn free_others(block: *mut u8, hot: &Hot, owner: u32, class: usize) {
    let cache = cache_of(hot);
    if !cache.should_be_given_up()
        && CACHES.get(owner).is_some_and(|other| other.owned_by() == Use::Thread)
        && cache.id() != owner
    {
        // SAFETY: the caller gives the block of this owner and class away.
        return unsafe { cache.free_remote(owner, class, block.cast()) };
    }
    // SAFETY: the caller gives the block of this owner and class away.
    unsafe { free_others_slowly(block, cache, owner, class) };
}

/// # Safety
///
/// As [`free_others`].
#[cold]
#[inline(never)]
unsafe fn free_others_slowly(block: *mut u8, cache: OwnCache, owner: u32, class: usize) {
    if owner == COMMON {
        cache.note_handed_over(1);
        // SAFETY: the caller gives the block of this class and a common slab away.
        return unsafe { shared::free_slot(class, block.cast()) };
    }
    if cache.should_be_given_up() && cache.id() != owner {
        give_up(cache);
    }
    // SAFETY: the caller gives the block away.
    unsafe { foreign::give_back(block, Return::PLAIN) }
}

/// Moves a large block's run to the stash. Returns false if nothing was done.
#[inline(always)]
fn free_large(block: *mut u8, hot: &Hot) -> bool {
    if !block.addr().is_multiple_of(UNIT) {
        return false;
    }
    let cache = cache_of(hot);
    let Some(_order) = cache.try_enter() else { return false };
    large::keep(hot.unit_of(block.addr()), &cache.stash)
}

/// Frees a block beyond the hot part's limit, an address at which no slot begins, or null.
///
/// # Safety
///
/// As `free`.
pub(super) unsafe extern "C" fn free_unknown(block: *mut u8, hot: &Hot, _any: usize, _unit: usize) {
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { free_any(block, hot, Said::PLAIN, 0, 0) }
}

/// Frees a block, or null, with its size, alignment or kind. The entry may be unread.
///
/// # Safety
///
/// As `free`.
pub(super) unsafe fn give_back(
    block: *mut u8,
    hot: &Hot,
    mismatch: Mismatch,
    said: Said,
    size: usize,
    align: usize,
) {
    if !hot.is_large_head(mismatch) || !free_large(block, hot) {
        // SAFETY: the caller gives the block away, if it is one.
        unsafe { free_any(block, hot, said, size, align) }
    }
}

/// # Safety
///
/// As `free`.
#[inline(never)]
unsafe fn free_any(block: *mut u8, hot: &Hot, said: Said, size: usize, align: usize) {
    let (mismatch, what) = (hot.mismatch_by_map(block.addr()), Return::of(said, size, align));
    if hot.is_large_head(mismatch) && free_large(block, hot) {
        return;
    }
    if !mismatch.is_mine() {
        // SAFETY: the caller gives the block away; the mismatch is that of its entry.
        if let Err(mismatch) = unsafe { cache::send_along(hot, mismatch, block) } {
            // SAFETY: the caller gives the block away, and `send_along` has not taken it.
            unsafe { free_with(block, hot, mismatch, what) }
        }
        return;
    }
    // SAFETY: the mismatch is the thread's own, so it is a list's offset.
    let list = unsafe { hot.list_of(mismatch) };
    if !list.is_slot_start((block.addr() & (UNIT - 1)) as u32) {
        // SAFETY: the caller gives the block away. No slot begins there, which `give_back` reports.
        return unsafe { foreign::give_back(block, what) };
    }
    // (If blocks are sampled, all blocks of the thread's own cache come here.)
    // SAFETY: a slot of the class begins here, in a slab of the cache; the caller gives it away.
    if unsafe { cache_of(hot).put_listed(mismatch.class(), block.cast()) } {
        overflow(mismatch.class());
    }
}

/// Gives the cache up if the thread can use its CPU's arrays from now on.
#[cold]
#[inline(never)]
fn give_up(cache: OwnCache) {
    // A fork holds this cache's owner lock, and the locks that this function would take.
    if sync::holds_all() {
        return;
    }
    let order = cache.enter();
    let Some(cpu_entry) = shared::cpu_entry_beside() else {
        cache.stays_in_use();
        return;
    };
    cache.hand_slabs_over();
    drop(order);
    words::set_cpu_entry(cpu_entry.stub());
    LIVE.fetch_sub(1, Ordering::Relaxed);
    let token = if rseq::is_ours() { cpu::NO_CACHE } else { ptr::null_mut() };
    os::watch_this_thread(Exit::Cache, token);
    cache.abandon();
}
