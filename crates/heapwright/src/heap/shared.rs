//! `malloc` and `free` with shared caches, each of which has a lock.
//!
//! ```text
//!   malloc, free    miss in the stub that the thread's fast word leads to
//!      v
//!   here            try the cache behind the stub: pop or push, unlock
//!      | held by another       | list empty, or too long
//!      v                       v
//!   registry::shared           cache::magazines
//!   another cache              a chain from, or to, the central lists
//! ```
//!
//! A thread owns nothing here. It ends without cleanup, and may allocate until the last moment.
//!
//! **Waiting.** If all caches stay locked for a long time, the calling thread is probably a signal
//! handler that interrupted a holder. Then `large::late` serves its allocations, and its frees are
//! deferred (`cache::deferred`).
//!
//! Called by the other files of `heap`.

use core::ptr;

use super::words::{self, Own};
use super::{cpu, foreign};
use crate::address_map::CLASS_STEP;
use crate::cache::arrays::{self, CpuEntry};
use crate::cache::central;
use crate::cache::large;
use crate::cache::magazines::{self, ALL, Magazines, SharedCache};
use crate::cache::maintenance;
use crate::cache::{self, Allocated, Hot, HotStub, Mismatch, Serve, Stash, deferred};
use crate::drawn;
use crate::options::{self, CacheModel};
use crate::os::{self, rseq};
use crate::registry::shared::Held;
use crate::registry::{self, Model, per_cpu};
use crate::remote::Block;
use crate::request::{Origin, Request, Return, Said};
use crate::size_class::{self, MIN_ALIGN, SLAB_MAX, UNIT};
use crate::sync;
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

pub(crate) struct Tables {
    pub(crate) shared: &'static Serve,
    pub(crate) by_cpu: &'static Serve,
    pub(crate) cpu_entry: &'static Serve,
}

static TABLES: AtomicPtr<Tables> = AtomicPtr::new(ptr::null_mut());

fn tables() -> Option<&'static Tables> {
    // SAFETY: null, or the static tables that `start` has stored.
    unsafe { TABLES.load(Ordering::Acquire).as_ref() }
}

/// Makes the caches, if the options ask for shared caches, before any thread gets a cache. Returns
/// false if there is no memory. Then each thread gets its own cache.
pub(super) fn start(tables: &'static Tables) -> bool {
    TABLES.store(ptr::from_ref(tables).cast_mut(), Ordering::Release);
    match registry::model() {
        Model::Exclusive => {
            // (If there are no sequences, a thread's own cache is faster than a locked CPU's.)
            if options::get().cache == CacheModel::Auto && arrays::prepare() {
                BESIDE.store(true, Ordering::Relaxed);
            }
            true
        }
        Model::Shared(count) => magazines::raise(count, tables.shared) > 0,
        Model::PerCpu(count) => {
            arrays::prepare();
            start_by_cpu(count, tables)
        }
    }
}

fn start_by_cpu(count: usize, tables: &'static Tables) -> bool {
    magazines::start_by_cpu(count, tables.by_cpu, tables.cpu_entry, cpu::malloc_sequence())
}

/// Whether some threads may have their own caches while other threads use their CPU's.
static BESIDE: AtomicBool = AtomicBool::new(false);

fn is_beside() -> bool {
    BESIDE.load(Ordering::Relaxed)
}

/// The per-CPU entry, if the thread can use its CPU's caches while other threads have their own.
/// Returns `None` if there are no sequences, or the options exclude this.
pub(super) fn cpu_entry_beside() -> Option<&'static CpuEntry> {
    if !is_beside() {
        return None;
    }
    // While a fork holds all locks, the forking thread must not make the caches.
    if arrays::cpu_entry().is_none()
        && !sync::holds_all()
        && let Some(tables) = tables()
    {
        // One thread makes the caches, and others wait for it.
        start_by_cpu(rseq::possible_cpus().min(registry::MOST), tables);
    }
    cpu::any_cpu_entry()
}

/// Makes the calling thread use its CPU's caches, if possible. The thread must not have a cache.
pub(super) fn join_beside() -> bool {
    let cpu_entry = cpu_entry_beside();
    if let Some(cpu_entry) = cpu_entry {
        words::set_cpu_entry(cpu_entry.stub());
    }
    cpu_entry.is_some()
}

/// At the thread's end: makes its later calls use the shared caches behind the arrays.
pub(super) fn leave_cpu_entry() {
    if words::uses_cpu_entry() {
        words::set_by_cpu(per_cpu::mine(&ALL));
    }
}

pub(super) fn is_for_all() -> bool {
    is_on() && !is_beside()
}

fn by_cpu() -> bool {
    registry::by_cpu() || is_beside()
}

pub(crate) fn is_on() -> bool {
    ALL.count() > 0
}

/// Raises the number of shared caches (`cache=shared:K`) to `count`, at most 1024, and never lowers
/// it. Returns their number now, or 0 in other modes.
///
/// ```
/// // Threads of this process share none.
/// assert_eq!(heapwright::heap::raise_shared_caches(8), 0);
/// ```
pub fn raise_shared_caches(count: usize) -> usize {
    // Pools' magazines follow this number, too.
    registry::raise_shared(count);
    match tables() {
        Some(tables) if is_on() && !by_cpu() => magazines::raise(count, tables.shared),
        _ => 0,
    }
}

/// The thread's shared cache, or its CPU's. `None` if the thread has none yet.
fn existing() -> Option<&'static SharedCache> {
    match words::get() {
        Own::Shared(shared) => Some(shared),
        Own::ByCpu => Some(per_cpu::mine(&ALL)),
        _ => is_beside().then(|| per_cpu::mine(&ALL)),
    }
}

/// Gives the calling thread a shared cache or the per-CPU entry. The thread must have nothing yet.
#[cold]
pub(super) fn first() -> &'static SharedCache {
    if !by_cpu() {
        let first = ALL.assign();
        words::set_shared(first);
        return first;
    }
    let first = per_cpu::mine(&ALL);
    match cpu::any_cpu_entry() {
        Some(cpu_entry) => words::set_cpu_entry(cpu_entry.stub()),
        None => words::set_by_cpu(first),
    }
    first
}

/// Locks the thread's cache, or another if that is held. `None` if all stayed locked too long.
pub(super) fn acquire() -> Option<Held<Magazines, HotStub>> {
    let current = existing().unwrap_or_else(first);
    let held = ALL.acquire(current)?;
    account(current, &held);
    Some(held)
}

/// Returns `None` if there is no memory, or no lock is available.
pub(super) fn alloc(class: usize) -> Option<Allocated> {
    if let Some(cpu_entry) = cpu::my_cpu_entry() {
        let block = cpu::take(cpu_entry, class);
        if !block.is_null() {
            return Some(Allocated { block: block.cast(), zero: false });
        }
    }
    let held = acquire()?;
    // The drop of `held` does not poll, so this operation tends the cache itself.
    held.tend();
    held.alloc(class)
}

/// Records which cache the thread got, and how often it failed and waited before.
fn account(current: &'static SharedCache, held: &Held<Magazines, HotStub>) {
    if !ptr::eq(held.slot(), current) && !by_cpu() {
        words::set_shared(held.slot());
    }
    if held.failed > 0 {
        let uses = &held.uses;
        // Only the lock's holder writes.
        let add = |counter: &AtomicU64, more: u64| {
            counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        };
        add(&uses.failed_tries, held.failed.into());
        add(&uses.waits, held.waited.into());
    }
}

/// Sets `errno` if there is no memory.
#[cold]
#[inline(never)]
pub(super) fn allocate_slowly(request: Request) -> *mut u8 {
    let block = serve(request);
    if block.is_null() {
        os::set_errno(os::ENOMEM);
    }
    block
}

#[cold]
#[inline(never)]
pub(super) fn malloc_slowly(size: usize) -> *mut u8 {
    allocate_slowly(Request::new(size, 1, false, Origin::Malloc))
}

/// Serves a request. Returns null if there is no memory, or for a large block in a signal handler.
pub(super) fn serve(request: Request) -> *mut u8 {
    if !request.is_possible() {
        return ptr::null_mut();
    }
    if let Some(class) = request.class()
        && let Some(given) = alloc(class)
    {
        return large::hand_over(request, given, size_class::size(class));
    }
    if sync::is_interrupted() {
        return allocate_interrupted(request);
    }
    match acquire() {
        Some(held) => large::allocate_from(&*held, request),
        None => {
            central::fill_reserves();
            large::allocate_late(request)
        }
    }
}

/// Serves a signal handler that interrupted a slow path. Returns null for large blocks, which need
/// a lock, and if the reserve is empty.
#[cold]
fn allocate_interrupted(request: Request) -> *mut u8 {
    let Some(class) = request.class() else { return ptr::null_mut() };
    let Some(block) = deferred::reserved(class) else { return ptr::null_mut() };
    let given = Allocated { block: block.cast(), zero: false };
    large::hand_over(request, given, size_class::size(class))
}

/// Serves a call of a thread that uses its CPU's caches, if no array serves the call.
pub(super) fn allocate_by_cpu(
    size: usize,
    align: usize,
    zero: bool,
    origin: Origin,
    hot: &Hot,
) -> *mut u8 {
    if drawn::is_watched() {
        return (hot.serve().drawn.allocate)(size, align, zero, origin, hot);
    }
    allocate_slowly(Request::new(size, align, zero, origin))
}

/// Serves a call of a thread with a shared cache, except `malloc` of small sizes.
pub(super) fn allocate(
    size: usize,
    align: usize,
    zero: bool,
    origin: Origin,
    hot: &Hot,
) -> *mut u8 {
    if size.wrapping_sub(1) < SLAB_MAX && align <= MIN_ALIGN && !zero {
        // The call goes through the table, which may count it.
        return (hot.serve().malloc)(size, hot, size_class::of(size) * CLASS_STEP);
    }
    allocate_by_cpu(size, align, zero, origin, hot)
}

pub(super) extern "C" fn malloc_by_cpu(size: usize, hot: &Hot, _offset: usize) -> *mut u8 {
    allocate_by_cpu(size, 1, false, Origin::Malloc, hot)
}

/// Serves a call without an alignment, for a large block (from a stash if possible) or no bytes.
pub(super) fn allocate_large(size: usize, hot: &Hot, origin: Origin) -> *mut u8 {
    // Calls for large blocks are counted if blocks are sampled or guarded.
    if Stash::LENGTHS.contains(&size)
        && !drawn::is_watched()
        && let Some(Some(block)) = with_stash(hot, |stash| large::quickly(size, stash))
    {
        return block;
    }
    allocate_by_cpu(size, 1, false, origin, hot)
}

/// Serves `malloc(size)` from the list at `offset` of the cache behind `hot`.
pub(super) extern "C" fn malloc(size: usize, hot: &Hot, offset: usize) -> *mut u8 {
    let slot = magazines::of(hot);
    if !slot.try_lock() {
        return malloc_contended(size, hot);
    }
    // SAFETY: this thread has just locked the cache.
    let magazines = unsafe { slot.value() };
    // SAFETY: the offset of a list.
    let block = unsafe { magazines.list_at(offset) }.pop();
    if block.is_null() {
        return refill(size, hot);
    }
    // SAFETY: this thread holds the cache's lock.
    if unsafe { slot.unlock_asks() } {
        return wake_and_return(block.cast(), hot);
    }
    block.cast()
}

#[cold]
#[inline(never)]
fn wake_and_return(block: *mut u8, hot: &Hot) -> *mut u8 {
    wake(hot);
    // If the compiler knew that the result is the argument, the caller would save it.
    core::hint::black_box(block)
}

#[cold]
#[inline(never)]
fn malloc_contended(size: usize, hot: &Hot) -> *mut u8 {
    let current = magazines::of(hot);
    let Some(held) = ALL.acquire_contended(current) else {
        return malloc_slowly(size);
    };
    account(current, &held);
    match held.alloc(size_class::of(size)) {
        Some(Allocated { block, .. }) => block,
        None => {
            drop(held);
            malloc_slowly(size)
        }
    }
}

/// Fills the empty list of a cache that the caller has locked.
#[cold]
#[inline(never)]
fn refill(size: usize, hot: &Hot) -> *mut u8 {
    let held = Held::of(magazines::of(hot));
    if drawn::is_guarding() {
        let blocks = held.chain_length(size_class::of(size));
        drop(held);
        return refill_guarded(size, hot, blocks);
    }
    match held.refill(size_class::of(size)) {
        Some(Allocated { block, .. }) => block,
        None => {
            drop(held);
            malloc_slowly(size)
        }
    }
}

/// A [`refill`] that may make a guarded block. The caller has no lock. `blocks` is roughly the
/// number of blocks that a refill brings.
#[cold]
#[inline(never)]
fn refill_guarded(size: usize, hot: &Hot, blocks: usize) -> *mut u8 {
    if let Some(block) = drawn::draw_for_shared(size, blocks) {
        return block.as_ptr();
    }
    let current = magazines::of(hot);
    let given = ALL.acquire(current).and_then(|held| {
        account(current, &held);
        held.alloc(size_class::of(size))
    });
    given.map_or_else(|| malloc_slowly(size), |Allocated { block, .. }| block)
}

/// Frees a block of a common slab, from a thread that shares caches.
///
/// # Safety
///
/// As `free`. The thread's fast word leads to `hot`, and `mismatch` is common.
#[inline(never)]
pub(super) unsafe fn free(block: *mut u8, hot: &Hot, mismatch: Mismatch) {
    // SAFETY: the caller gives the block of a common slab away; `hot` is the fast word's target.
    unsafe { free_common(block, hot, mismatch) }
}

/// [`free`], inlined into a function that the fast path jumps to.
///
/// # Safety
///
/// As [`free`].
#[inline(always)]
pub(super) unsafe fn free_common(block: *mut u8, hot: &Hot, mismatch: Mismatch) {
    // SAFETY: the caller gives away the block of a common slab; `hot` is the fast word's target.
    if unsafe { !free_here(block, hot, mismatch) } {
        // SAFETY: the caller gives the block away. No slot begins there, which the callee reports.
        unsafe { foreign::give_back(block, Return::PLAIN) }
    }
}

/// [`free`] with the block's size. The size stays in its register, so the fast path saves nothing.
///
/// # Safety
///
/// As [`free`].
#[inline(never)]
pub(super) unsafe fn free_sized(block: *mut u8, size: usize, hot: &Hot, mismatch: Mismatch) {
    // SAFETY: the caller gives away the block of a common slab; `hot` is the fast word's target.
    if unsafe { !free_here(block, hot, mismatch) } {
        // SAFETY: the caller gives the block away. No slot begins there, which the callee reports.
        unsafe { free_odd(block, size, hot) }
    }
}

/// # Safety
///
/// As [`free`].
#[cold]
#[inline(never)]
unsafe fn free_odd(block: *mut u8, size: usize, hot: &Hot) {
    let said = Said::free(Origin::Malloc, true, false);
    // The table's function takes the size, so the size stays in its register until here.
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { (hot.serve().give_back)(block, hot, hot.mismatch_by_map(block.addr()), said, size, 0) }
}

/// Frees a block of a common slab. Returns false if no slot begins there.
///
/// # Safety
///
/// As [`free`].
#[inline(always)]
unsafe fn free_here(block: *mut u8, hot: &Hot, mismatch: Mismatch) -> bool {
    let slot = magazines::of(hot);
    // SAFETY: the reciprocals never change, so any thread may read them.
    let magazines = unsafe { slot.value() };
    // SAFETY: the offset of a list.
    let list = unsafe { magazines.list_at(mismatch.shared_list()) };
    if !list.is_slot_start((block.addr() & (UNIT - 1)) as u32) {
        return false;
    }
    if !slot.try_lock() {
        // SAFETY: the caller gives the block away, and a slot of the class begins there.
        unsafe { free_contended(block.cast(), hot, mismatch) };
        return true;
    }
    // SAFETY: the cache is locked, and the block is of the list's class.
    if unsafe { list.push(block.cast()) } {
        overflow(hot, mismatch);
        return true;
    }
    // SAFETY: this thread holds the cache's lock.
    if unsafe { slot.unlock_asks() } {
        wake(hot);
    }
    true
}

#[cold]
#[inline(never)]
fn wake(hot: &Hot) {
    let slot = magazines::of(hot);
    if slot.wake() {
        maintenance::answer(slot);
    }
}

/// # Safety
///
/// As [`free_slot`], for the class in `mismatch`.
#[cold]
#[inline(never)]
unsafe fn free_contended(block: *mut Block, hot: &Hot, mismatch: Mismatch) {
    let (current, class) = (magazines::of(hot), mismatch.class());
    let Some(held) = ALL.acquire_contended(current) else {
        // SAFETY: the caller gives the block of a common slab away.
        return unsafe { deferred::defer(class, block) };
    };
    account(current, &held);
    // SAFETY: the caller gives the block of this class and a common slab away.
    unsafe { held.free(class, block) };
}

/// Frees a block that is not common.
///
/// # Safety
///
/// As `free`. The fast word leads to `hot`; `mismatch` is that of the block's entry with `hot`.
pub(super) unsafe extern "C" fn free_other(block: *mut u8, hot: &Hot, mismatch: Mismatch) {
    // SAFETY: the caller gives the block away.
    unsafe { free_with(block, hot, mismatch, Return::PLAIN) }
}

/// Serves `free` for null, and for addresses in unknown units or at which no slot begins.
///
/// # Safety
///
/// As `free`.
pub(super) unsafe extern "C" fn free_unknown(
    block: *mut u8,
    _hot: &Hot,
    _any: usize,
    _unit: usize,
) {
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { foreign::give_back(block, Return::PLAIN) }
}

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
    let what = Return::of(said, size, align);
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { free_with(block, hot, hot.known(mismatch, block.addr()), what) }
}

/// # Safety
///
/// As [`free_other`] and [`give_back`].
#[inline(always)]
unsafe fn free_with(block: *mut u8, hot: &Hot, mismatch: Mismatch, what: Return) {
    let is_large = hot.is_large_head(mismatch) && block.addr().is_multiple_of(UNIT);
    if !is_large || !keep_large(hot.unit_of(block.addr()), hot) {
        // SAFETY: the caller gives the block away, and its entry says what it is.
        unsafe { foreign::give_back(block, what) }
    }
}

/// Moves the run of a large block, which the caller gives away, to a stash. False if it stays.
pub(super) fn keep_large(unit: usize, hot: &Hot) -> bool {
    with_stash(hot, |stash| large::keep(unit, stash)).unwrap_or(false)
}

/// Passes the stash of the cache behind `hot`, or of the CPU's, to `use_it`. `None` if it is held.
#[inline(always)]
fn with_stash<R>(hot: &Hot, use_it: impl FnOnce(&Stash) -> R) -> Option<R> {
    let slot = if by_cpu() { per_cpu::mine(&ALL) } else { magazines::of(hot) };
    if !slot.try_lock() {
        return None;
    }
    // SAFETY: this thread has just locked the cache.
    let used = use_it(&unsafe { slot.value() }.stash);
    // SAFETY: this thread holds the cache's lock.
    unsafe { slot.unlock() };
    Some(used)
}

/// Sends a block from a thread without a cache to the cache that owns it. Drains that cache if much
/// waits there.
///
/// # Safety
///
/// The block is of `class`, of a slab of `owner`, and the caller gives it away.
pub(super) unsafe fn send_home(owner: u32, class: usize, block: *mut Block) {
    // SAFETY: the caller gives the block of this owner and class away.
    let cache = unsafe { cache::send(owner, class, block) };
    if let Some(cache) = cache.filter(|_| !sync::is_interrupted()) {
        cache.drain_if_much_waits();
    }
}

/// The caller must have locked the cache.
#[cold]
#[inline(never)]
fn overflow(hot: &Hot, mismatch: Mismatch) {
    Held::of(magazines::of(hot)).overflow(mismatch.class());
}

/// Frees a slot of a common slab, from any thread.
///
/// # Safety
///
/// The block is of `class`, of a common slab, and in use.
pub(super) unsafe fn free_slot(class: usize, block: *mut Block) {
    if let Some(cpu_entry) = cpu::any_cpu_entry() {
        // SAFETY: the caller gives the block of this class and a common slab away.
        return unsafe { cpu::give(cpu_entry, class, block) };
    }
    let Some(held) = acquire() else {
        // SAFETY: the caller gives the block of a common slab away.
        return unsafe { deferred::defer(class, block) };
    };
    held.tend();
    // SAFETY: the caller gives the block of this class and a common slab away.
    unsafe { held.free(class, block) };
}

pub(super) fn publish() {
    for slot in ALL.all() {
        if let Some(held) = ALL.acquire_this(slot) {
            held.publish();
        }
    }
}
