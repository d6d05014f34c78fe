//! Caches that threads share: malloc and free under a lock that is hardly ever waited for.
//!
//! ```text
//!   malloc, free    miss in the stub that the thread's fast word leads to
//!      v
//!   here            try the cache behind it: pop or push, give the lock back
//!      | held by another       | list empty, or too long
//!      v                       v
//!   registry::shared           cache::magazines
//!   another cache              a chain from, or to, the central lists
//! ```
//!
//! A thread's fast word leads to its cache's stub (`own_word`), so a miss brings the cache along
//! in a register. Where every call is counted (`stats=exit`), the fast word stays at the sentinel,
//! and the door reads the own word.
//!
//! Nothing is the thread's: it ends without a trace, and after its last destructor it
//! allocates as before.
//!
//! **Waiting.** A cache that cannot be had in a long time is held by the caller itself,
//! which is then in a signal handler; it is served from the heap for late comers
//! (`start::late`), and what it frees is put aside (`central::defer`).
//!
//! Called by `fast` (misses), `door` (all else) and `start`.

use core::ptr;

#[cfg(all(target_os = "linux", not(miri), target_arch = "x86_64"))]
use super::assembly::malloc_sequence;
use super::own_word::{self, Own};
use super::{door, guards, large, sampling};
use crate::request::MALLOC;

use crate::address_map::{COMMON, Entry, Kind, MAP};
use crate::cache::arrays::Gate;
use crate::cache::magazines::{self, ALL, Magazines, SharedCache};
use crate::cache::maintenance;
use crate::cache::{
    self, Allocated, CACHES, Hot, HotStub, OnMiss, Residue, Stash, Use, arrays, central,
};
use crate::options::{self, CacheModel};
use crate::os::rseq;
use crate::registry::shared::Held;
use crate::registry::{self, Model, per_cpu};
use crate::remote::Block;
use crate::size_class::{self, UNIT};
use crate::sync;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Elsewhere the C layer has no `malloc` of its own.
#[cfg(not(all(target_os = "linux", not(miri), target_arch = "x86_64")))]
const fn malloc_sequence() -> Option<&'static [u64; 4]> {
    None
}

/// Makes the caches, if the options say that they are shared. Once, before threads get
/// any. False: there is no memory, and each thread gets its own.
pub(super) fn start() -> bool {
    match registry::model() {
        Model::Exclusive => {
            // Only where restartable sequences are to be had: threads are better off with caches of their own than
            // with locked ones.
            if options::get().cache == CacheModel::Auto && arrays::prepare() {
                BESIDE.store(true, Ordering::Relaxed);
            }
            true
        }
        Model::Shared(count) => magazines::raise(count, OnMiss::Shared) > 0,
        Model::PerCpu(count) => {
            arrays::prepare();
            magazines::start_by_cpu(count, malloc_sequence())
        }
    }
}

/// Whether some threads have caches of their own beside those that are shared, if there are any.
static BESIDE: AtomicBool = AtomicBool::new(false);

/// Whether threads that have a cache of their own, or none yet, come here only with blocks of others.
fn is_beside() -> bool {
    BESIDE.load(Ordering::Relaxed)
}

/// The way by which the calling thread can go by its CPU's caches, beside threads that have their own. `None`: that is
/// not to be had here, or not meant.
pub(super) fn gate_beside() -> Option<&'static Gate> {
    if !is_beside() {
        return None;
    }
    // While a fork holds all locks, the forking thread must make none.
    if arrays::gate().is_none() && !sync::holds_all() {
        // One thread makes them, and those that come meanwhile wait for it.
        magazines::start_by_cpu(rseq::possible_cpus().min(registry::MOST), malloc_sequence());
    }
    super::per_cpu::any_gate()
}

/// Lets the calling thread, which has no cache, go by its CPU's, if it can.
pub(super) fn join_beside() -> bool {
    let gate = gate_beside();
    if let Some(gate) = gate {
        own_word::set_gate(gate.stub());
    }
    gate.is_some()
}

/// The calling thread, which ends, goes by its CPU's arrays no more, if it did: what it still allocates comes from the shared
/// caches behind them.
pub(super) fn leave_gate() {
    if own_word::goes_by_gate() {
        own_word::set_by_cpu(per_cpu::mine(&ALL));
    }
}

/// Whether all threads of this process share caches.
pub(super) fn is_for_all() -> bool {
    is_on() && !is_beside()
}

/// Whether the caches are CPUs'.
fn by_cpu() -> bool {
    registry::by_cpu() || is_beside()
}

/// Whether threads of this process share caches.
pub(crate) fn is_on() -> bool {
    ALL.count() > 0
}

/// Raises the number of caches that threads share (`cache=shared:K`) to `count`, up to
/// 1024; it is never lowered. Returns how many there are now; 0: threads have caches of
/// their own.
///
/// Threads that run need no notice: a thread that finds its cache held looks among all.
///
/// ```
/// // Threads of this process share none.
/// assert_eq!(heapwright::heap::raise_shared_caches(8), 0);
/// ```
pub fn raise_shared_caches(count: usize) -> usize {
    // Magazines of pools, too.
    registry::raise_shared(count);
    if is_on() && !by_cpu() { magazines::raise(count, OnMiss::Shared) } else { 0 }
}

/// The calling thread's cache, by its own word, or that of its CPU; `None`: it has none yet.
fn existing() -> Option<&'static SharedCache> {
    match own_word::get() {
        Own::Shared(shared) => Some(shared),
        Own::ByCpu => Some(per_cpu::mine(&ALL)),
        _ => is_beside().then(|| per_cpu::mine(&ALL)),
    }
}

/// Gives the calling thread a cache, or the way to its CPU's.
#[cold]
fn first() -> &'static SharedCache {
    if !by_cpu() {
        let first = ALL.assign();
        own_word::set_shared(first);
        return first;
    }
    let first = per_cpu::mine(&ALL);
    match super::per_cpu::any_gate() {
        Some(gate) => own_word::set_gate(gate.stub()),
        None => own_word::set_by_cpu(first),
    }
    first
}

/// The calling thread's cache, locked; the thread gets another one if that is held.
/// `None`: none was to be had in a long time.
pub(super) fn acquire() -> Option<Held<Magazines, HotStub>> {
    let current = existing().unwrap_or_else(first);
    let held = ALL.acquire(current)?;
    account(current, &held);
    Some(held)
}

/// A block for a request of `class`. `None`: there is no memory, or no lock to be had.
pub(super) fn alloc(class: usize) -> Option<Allocated> {
    if let Some(gate) = super::per_cpu::my_gate() {
        let block = super::per_cpu::take(gate, class);
        if !block.is_null() {
            return Some(Allocated { block: block.cast(), zero: false });
        }
    }
    let held = acquire()?;
    // An operation that comes by the door does not poll.
    held.tend();
    held.alloc(class)
}

/// Notes what it took to get a cache.
fn account(current: &'static SharedCache, held: &Held<Magazines, HotStub>) {
    if !ptr::eq(held.slot(), current) && !by_cpu() {
        own_word::set_shared(held.slot());
    }
    if held.failed > 0 {
        let uses = &held.uses;
        // Only the holder writes.
        let add = |counter: &AtomicU64, more: u64| {
            counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        };
        add(&uses.failed_tries, held.failed.into());
        add(&uses.waits, held.waited.into());
    }
}

/// A request of `size` bytes, whose list in a stub, at `offset`, is empty, as all are.
#[inline(always)]
pub(super) fn missed(size: usize, hot: &Hot, offset: usize) -> *mut u8 {
    let slot = magazines::of(hot);
    if !slot.try_lock() {
        return malloc_contended(size, hot);
    }
    // SAFETY: just locked.
    let magazines = unsafe { slot.value() };
    // SAFETY: the offset of a list.
    let block = unsafe { magazines.list_at(offset) }.pop();
    if block.is_null() {
        return refill(size, hot);
    }
    // SAFETY: locked above.
    if unsafe { slot.unlock_asks() } {
        return wake_and_return(block.cast(), hot);
    }
    block.cast()
}

#[cold]
#[inline(never)]
fn wake_and_return(block: *mut u8, hot: &Hot) -> *mut u8 {
    wake(hot);
    // Hidden, for a caller that knew it to be its own argument would keep it for itself.
    core::hint::black_box(block)
}

#[cold]
#[inline(never)]
fn malloc_contended(size: usize, hot: &Hot) -> *mut u8 {
    let current = magazines::of(hot);
    let Some(held) = ALL.acquire_contended(current) else {
        return door::malloc_cold::<MALLOC>(size);
    };
    account(current, &held);
    match held.alloc(size_class::of(size)) {
        Some(Allocated { block, .. }) => block,
        None => {
            drop(held);
            door::malloc_cold::<MALLOC>(size)
        }
    }
}

/// Fills the empty list of a cache that the caller has locked.
#[cold]
#[inline(never)]
fn refill(size: usize, hot: &Hot) -> *mut u8 {
    let held = Held::of(magazines::of(hot));
    if guards::is_on() {
        let blocks = held.chain_length(size_class::of(size));
        drop(held);
        return refill_guarded(size, hot, blocks);
    }
    match held.refill(size_class::of(size)) {
        Some(Allocated { block, .. }) => block,
        None => {
            drop(held);
            door::malloc_cold::<MALLOC>(size)
        }
    }
}

/// [`refill`] where some blocks stand between guards: one may be made, without the lock of the cache, whose list brings about
/// `blocks` blocks.
#[cold]
#[inline(never)]
fn refill_guarded(size: usize, hot: &Hot, blocks: usize) -> *mut u8 {
    if let Some(block) = guards::draw_for_shared(size, blocks) {
        return block.as_ptr();
    }
    let current = magazines::of(hot);
    let given = ALL.acquire(current).and_then(|held| {
        account(current, &held);
        held.alloc(size_class::of(size))
    });
    given.map_or_else(|| door::malloc_cold::<MALLOC>(size), |Allocated { block, .. }| block)
}

/// Frees a block of the common owner's, by a thread that shares caches.
///
/// # Safety
///
/// As `free`; `hot` is what the thread's fast word leads to, and `residue` is common.
#[inline(never)]
pub(super) unsafe fn free(block: *mut u8, hot: &Hot, residue: Residue) {
    // SAFETY: the caller gives the block away, by its fast word and the entry of a common slab.
    if unsafe { !free_here(block, hot, residue) } {
        // SAFETY: the caller gives the block away, and no slot begins there: the door says so.
        unsafe { door::free_cold::<MALLOC>(block) }
    }
}

/// [`free`], for a caller whose second argument is the size: it stays in its register, so
/// that the fast path before this need not save it.
///
/// # Safety
///
/// As [`free`].
#[inline(never)]
pub(super) unsafe fn free_sized(block: *mut u8, size: usize, hot: &Hot, residue: Residue) {
    // SAFETY: the caller gives the block away, by its fast word and the entry of a common slab.
    if unsafe { !free_here(block, hot, residue) } {
        // SAFETY: the caller gives the block away, and no slot begins there: the door says so.
        unsafe { door::free_sized_cold::<MALLOC>(block, size) }
    }
}

/// [`free`], for a caller that is jumped to itself. False: no block begins there.
///
/// # Safety
///
/// As [`free`].
#[inline(always)]
pub(super) unsafe fn free_here(block: *mut u8, hot: &Hot, residue: Residue) -> bool {
    let slot = magazines::of(hot);
    // SAFETY: the reciprocals never change, so any thread may look.
    let magazines = unsafe { slot.value() };
    // SAFETY: the offset of a list.
    let list = unsafe { magazines.list_at(residue.shared_list()) };
    if !list.is_slot_start((block.addr() & (UNIT - 1)) as u32) {
        return false;
    }
    if !slot.try_lock() {
        // SAFETY: the caller gives the block away, and a slot of the class begins there.
        unsafe { free_contended(block.cast(), hot, residue) };
        return true;
    }
    // SAFETY: the cache is locked, and the block of the list's class.
    if unsafe { list.push(block.cast()) } {
        overflow(hot, residue);
        return true;
    }
    // SAFETY: locked above.
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
/// As [`free_slot`], for the class of the list that `residue` names.
#[cold]
#[inline(never)]
unsafe fn free_contended(block: *mut Block, hot: &Hot, residue: Residue) {
    let (current, class) = (magazines::of(hot), residue.class());
    let Some(held) = ALL.acquire_contended(current) else {
        // SAFETY: the caller gives the block of a common slab away.
        return unsafe { central::defer(class, block) };
    };
    account(current, &held);
    // SAFETY: the caller gives the block of this class and a common slab away.
    unsafe { held.free(class, block) };
}

/// A large block of `size` bytes from a run that the cache behind `hot`, a stub, or the CPU's keeps; else null.
#[inline(never)]
pub(super) fn large(size: usize, hot: &Hot) -> *mut u8 {
    // Where blocks are sampled or guarded, the door counts them.
    if !Stash::LENGTHS.contains(&size) || sampling::is_watched() {
        return ptr::null_mut();
    }
    if hot.on_miss() == OnMiss::PerCpu && arrays::RUN_SIZES.contains(&size) {
        return super::per_cpu::take_run(Gate::of(hot), size);
    }
    with_stash(hot, |stash| large::quickly(size, stash)).flatten().unwrap_or(ptr::null_mut())
}

/// Frees a block if there is a short way for it: a large one by a thread that shares caches, and one that goes between
/// threads with caches of their own and threads that go by their CPU's. False: there is none.
///
/// # Safety
///
/// As `free`; `hot` is what the thread's fast word leads to.
#[inline(never)]
pub(super) unsafe fn free_quickly(block: *mut u8, hot: &Hot) -> bool {
    if hot.on_miss() != OnMiss::Door && block.addr().is_multiple_of(UNIT) {
        // SAFETY: the caller gives the block away.
        return unsafe { free_large(block, hot) };
    }
    // SAFETY: the caller gives the block away.
    is_beside() && unsafe { free_between(block, hot) }
}

/// Frees a block if it is a large one of no first-class heap, and the cache behind `hot`, a stub, or the CPU's has
/// room for its run.
///
/// # Safety
///
/// As `free`; `hot` is what the thread's fast word leads to.
unsafe fn free_large(block: *mut u8, hot: &Hot) -> bool {
    let (unit, entry) = MAP.lookup(block.addr());
    if entry != Entry::LARGE_HEAD {
        return false;
    }
    if hot.on_miss() == OnMiss::PerCpu
        // SAFETY: the caller gives the large block away.
        && unsafe { super::per_cpu::give_run(Gate::of(hot), unit, block) }
    {
        return true;
    }
    with_stash(hot, |stash| large::keep(unit, stash)).unwrap_or(false)
}

/// What `use_it` makes of the stash of the cache behind `hot`, a stub, or of the CPU's. `None`: `hot` is no stub, or
/// the cache is held.
#[inline(always)]
fn with_stash<R>(hot: &Hot, use_it: impl FnOnce(&Stash) -> R) -> Option<R> {
    let slot = match hot.on_miss() {
        OnMiss::Door => return None,
        OnMiss::Shared => magazines::of(hot),
        OnMiss::ByCpu | OnMiss::PerCpu => per_cpu::mine(&ALL),
    };
    if !slot.try_lock() {
        return None;
    }
    // SAFETY: just locked.
    let used = use_it(&unsafe { slot.value() }.stash);
    // SAFETY: locked above.
    unsafe { slot.unlock() };
    Some(used)
}

/// Frees a common block by a thread with a cache of its own, or an owner's by a thread that goes by its CPU's.
///
/// # Safety
///
/// As `free`; `hot` is what the thread's fast word leads to.
unsafe fn free_between(block: *mut u8, hot: &Hot) -> bool {
    let (_, entry) = MAP.lookup(block.addr());
    let Kind::Slab(class) = entry.kind() else { return false };
    if !size_class::is_slot_start((block.addr() & (UNIT - 1)) as u32, size_class::reciprocal(class))
    {
        return false;
    }
    if entry.owner() == COMMON {
        // Not where calls are counted or passed on.
        let Some(cache) = own_word::cache_of(hot) else { return false };
        cache.note_handed_over(1);
        let Some(gate) = super::per_cpu::any_gate() else { return false };
        // SAFETY: the caller gives the block of this class and a common slab away.
        unsafe { super::per_cpu::give(gate, class, block.cast()) };
        return true;
    }
    let owner = CACHES.get(entry.owner()).filter(|cache| cache.owned_by() == Use::Thread);
    let Some(owner) = owner.filter(|_| hot.on_miss() == OnMiss::PerCpu) else { return false };
    // SAFETY: the caller gives the block of this owner and class away.
    unsafe { send_home(owner.id(), class, block.cast()) };
    true
}

/// Sends a block to the cache that owns it, from a thread that has none, and takes home what waits there if it is much.
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

/// Shortens a list of a cache that the caller has locked.
#[cold]
#[inline(never)]
fn overflow(hot: &Hot, residue: Residue) {
    Held::of(magazines::of(hot)).overflow(residue.class());
}

/// Frees a slot of a slab of the common owner's, from any thread.
///
/// # Safety
///
/// The block is of `class`, of a common slab, and in use.
pub(super) unsafe fn free_slot(class: usize, block: *mut Block) {
    if let Some(gate) = super::per_cpu::any_gate() {
        // SAFETY: the caller gives the block of this class and a common slab away.
        return unsafe { super::per_cpu::give(gate, class, block) };
    }
    let Some(held) = acquire() else {
        // SAFETY: the caller gives the block of a common slab away.
        return unsafe { central::defer(class, block) };
    };
    held.tend();
    // SAFETY: the caller gives the block of this class and a common slab away.
    unsafe { held.free(class, block) };
}

/// Publishes for statistics how much each cache holds just now.
pub(super) fn publish() {
    for slot in ALL.all() {
        if let Some(held) = ALL.acquire_this(slot) {
            held.publish();
        }
    }
}
