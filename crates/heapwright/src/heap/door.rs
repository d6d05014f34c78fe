//! The cold door: every `malloc` and `free` that the fast paths do not finish. (`resize` and
//! `control` have the other calls.)
//!
//! Allocation asks what the *thread* has (a cache, the heap of threads whose
//! cache is gone, nothing yet); everything else asks what the *block* is. This
//! is the only place that makes those choices. Where the process debugs, the debug
//! heap is asked first (`hooks`), with what the call says (`request`).

use crate::address_map::{COMMON, Kind, MAP};
use crate::cache::{self, Allocated, CACHES, Cache, Counters, Hardness, Use, central, counters};
use crate::hardened;
use crate::hooks;
use crate::misuse::{self, Call};
use crate::options;
use crate::os;
use crate::remote::Block;
use crate::size_class::{self, SLAB_MAX, UNIT};
use crate::slab::Slab;
use crate::sync;
use crate::sync::atomic::Ordering;

use super::guards;
use super::source::Source;
use super::start::{self, Mine};
use super::{exclusive, fast, first_class, foreign, large, own_word, sampling, shared, tallies};
use crate::request::{MALLOC, Origin, Request, Return};
use crate::trace;

impl Request {
    /// The class that serves it; `None` for a large block.
    pub(super) fn class(self) -> Option<usize> {
        if self.align <= size_class::MIN_ALIGN {
            (self.size <= SLAB_MAX).then(|| size_class::of(self.size.max(1)))
        } else {
            size_class::of_aligned(self.size, self.align)
        }
    }
}

// One function for each origin (see `request`) and for what its callers say.

#[cold]
#[inline(never)]
pub(super) fn malloc_cold<const FROM: u8>(size: usize) -> *mut u8 {
    allocate(Request { size, align: 1, zero: false, origin: Origin::of::<FROM>() })
}

#[inline(never)]
pub(super) fn malloc_aligned_cold<const FROM: u8>(size: usize, align: usize) -> *mut u8 {
    allocate(Request::new(size, align, false, Origin::of::<FROM>()))
}

#[inline(never)]
pub(super) fn calloc_aligned_cold<const FROM: u8>(size: usize, align: usize) -> *mut u8 {
    allocate(Request::new(size, align, true, Origin::of::<FROM>()))
}

/// Serves a request, or says in `errno` that there is no memory.
fn allocate(request: Request) -> *mut u8 {
    // Then nothing is debugged or passed on.
    if sampling::is_watched() {
        return sampling::allocate(request.size, request.align, request.zero, request.origin);
    }
    let block = if request.size > isize::MAX as usize || request.align > isize::MAX as usize {
        core::ptr::null_mut()
    } else {
        let knew = hooks::is_debugging();
        if knew && let Some(block) = hooks::allocate(request) {
            return done(request, block);
        }
        let mine = start::mine();
        if let Some(peer) = foreign::peer() {
            return from_peer(peer, request);
        }
        // The first call of all is what found out that the process debugs.
        if !knew
            && hooks::is_debugging()
            && let Some(block) = hooks::allocate(request)
        {
            return done(request, block);
        }
        let block = allocate_from_mine(request, mine);
        if block.is_null()
            && let Mine::Cache(cache) = mine
            && cache.sampling.is_watched()
        {
            // Sampling has just ended, and a sample was due; or guards have just begun.
            return done(request, sampling::serve_watched(request, cache));
        }
        block
    };
    done(request, block)
}

/// Serves a request from what the thread has. Null: there is no memory, or a sample is due.
#[inline(always)]
pub(super) fn allocate_from_mine(request: Request, mine: Mine) -> *mut u8 {
    match mine {
        Mine::Cache(cache) => {
            let _order = cache.enter();
            allocate_from(cache.get(), request)
        }
        Mine::Late(cache) => {
            let _order = cache.lock.lock();
            allocate_from(cache, request)
        }
        Mine::Shared => allocate_shared(request),
        Mine::Hardened(cache) => allocate_hardened(request, cache),
        Mine::Nothing => core::ptr::null_mut(),
    }
}

/// Serves a request of a thread whose calls are the hardened heap's.
fn allocate_hardened(request: Request, cache: Option<&'static hardened::Cache>) -> *mut u8 {
    let block = hardened::allocate(cache, request);
    if options::detailed() && !block.is_null() {
        counted_apart(|counters| counters::allocation(counters, request.size, request.size));
    }
    block
}

/// Serves a call that comes with a token (`__alloc_token_*`) where blocks of different tokens lie apart
/// ([`keeps_tokens_apart`](super::keeps_tokens_apart)). Null: there is no memory, or they do not; then the call is to be served
/// as one without a token.
///
/// ```
/// use heapwright::heap::{self, MALLOC};
/// assert!(heap::allocate_of_token::<MALLOC>(100, 1, false, 3).is_null());
/// ```
#[must_use]
pub fn allocate_of_token<const FROM: u8>(
    size: usize,
    align: usize,
    zero: bool,
    token: usize,
) -> *mut u8 {
    if !hardened::has_groups() {
        return core::ptr::null_mut();
    }
    let request = Request::new(size, align, zero, Origin::of::<FROM>());
    let block = hardened::allocate_grouped(request, token);
    if options::detailed() && !block.is_null() {
        counted_apart(|counters| counters::allocation(counters, size, size));
    }
    if block.is_null() { block } else { done(request, block) }
}

/// Counts a call of a thread that has no cache of the fast heap: with those of threads whose cache is gone.
#[cold]
fn counted_apart(count: impl FnOnce(&Counters)) {
    if !sync::is_interrupted()
        && let Some(cache) = start::late()
    {
        let _order = cache.lock.lock();
        count(&cache.counters);
    }
}

/// Serves a request of a thread that shares caches.
fn allocate_shared(request: Request) -> *mut u8 {
    if let Some(class) = request.class()
        && let Some(given) = shared::alloc(class)
    {
        let usable = size_class::size(class);
        if options::detailed()
            && let Some(held) = shared::acquire()
        {
            counters::allocation(&held.counters, request.size, usable);
        }
        return hand_out(request, given, usable);
    }
    if sync::is_interrupted() {
        return allocate_interrupted(request);
    }
    match shared::acquire() {
        Some(held) => allocate_from(&*held, request),
        None => allocate_late(request),
    }
}

/// Serves a request of a signal handler that has interrupted its thread in the middle of
/// something slow, and found no cache. Null for large blocks: they need a lock.
#[cold]
fn allocate_interrupted(request: Request) -> *mut u8 {
    let Some(class) = request.class() else { return core::ptr::null_mut() };
    let Some(block) = central::reserved(class) else { return core::ptr::null_mut() };
    hand_out(request, Allocated { block: block.cast(), zero: false }, size_class::size(class))
}

/// Serves a request of a thread that has no cache, and cannot have one.
#[cold]
fn allocate_late(request: Request) -> *mut u8 {
    if shared::is_on() {
        central::fill_reserves();
    }
    let Some(cache) = start::late() else { return core::ptr::null_mut() };
    let _order = cache.lock.lock();
    allocate_from(cache, request)
}

/// What a call is answered with.
#[inline(always)]
pub(super) fn done(request: Request, block: *mut u8) -> *mut u8 {
    trace::allocated(request, block);
    tallies::allocated(request, block);
    if block.is_null() {
        os::set_errno(os::ENOMEM);
    }
    block
}

fn from_peer(peer: &foreign::Peer, Request { size, align, zero, .. }: Request) -> *mut u8 {
    if align > size_class::MIN_ALIGN {
        // SAFETY: the peer's functions are those of a C library's allocator.
        let block = unsafe { (peer.memalign)(align, size) };
        if zero && !block.is_null() {
            // SAFETY: the block has room for `size` bytes.
            unsafe { block.write_bytes(0, size) };
        }
        block
    } else if zero {
        // SAFETY: the peer's own function, for any size.
        unsafe { (peer.calloc)(1, size) }
    } else {
        // SAFETY: the peer's own function, for any size.
        unsafe { (peer.malloc)(size) }
    }
}

/// Serves a request from a source that the caller holds. Null: no memory, or a sample is due.
#[inline(always)]
pub(super) fn allocate_from(source: &impl Source, request: Request) -> *mut u8 {
    let served = serve(source, request).or_else(|| {
        if request.class().is_some_and(|class| source.is_sample_due(class)) {
            return None;
        }
        // What the cache keeps of other classes may be what is missing.
        source.release();
        serve(source, request)
    });
    let Some((given, usable)) = served else { return core::ptr::null_mut() };
    if options::detailed() {
        counters::allocation(source.counters(), request.size, usable);
    }
    hand_out(request, given, usable)
}

/// Makes a block as the caller wants it.
fn hand_out(request: Request, given: Allocated, usable: usize) -> *mut u8 {
    if request.zero {
        if given.zero && usable <= SLAB_MAX {
            // Fresh memory, but a slot's first word may have been a link.
            // SAFETY: a slot has room for a word, and it is the caller's.
            unsafe { given.block.cast::<usize>().write(0) };
        } else if !given.zero {
            // SAFETY: the block has room for `size` bytes.
            unsafe { given.block.write_bytes(0, request.size) };
        }
    }
    given.block
}

/// A block for a request, and how many bytes of it may be used.
fn serve(source: &impl Source, request: Request) -> Option<(Allocated, usize)> {
    if let Some(class) = request.class() {
        return Some((source.alloc(class)?, size_class::size(class)));
    }
    let large = large::alloc(request.size, request.align, request.zero, source)?;
    if let Some(heap) = source.heap() {
        large::join_heap(large.unit, heap);
    }
    Some((Allocated { block: large.block, zero: true }, large.usable))
}

/// The calling thread's list of `class` is too long.
#[cold]
#[inline(never)]
pub(super) fn overflow(class: usize) {
    if let Some(cache) = own_word::cache() {
        let _order = cache.enter();
        cache.overflow(class);
    }
}

/// A block of the heap, found by its address.
#[derive(Clone, Copy)]
pub(super) enum Found {
    /// A slot.
    Slot { owner: u32, class: usize },
    /// The large block at a unit.
    Large { unit: usize },
    /// No block of the fast heap's: between guards, another allocator's, or nobody's. What it is `foreign` finds out.
    Foreign,
}

/// Finds the block that begins at `address`; ends the process where the
/// address is in a slab but no block begins there.
#[inline(always)]
pub(super) fn find(call: Call, address: usize) -> Found {
    let (unit, entry) = MAP.lookup(address);
    match MAP.kind_of(unit, entry) {
        Kind::Slab(class) => {
            // Arithmetic alone: the slab's record is its owner's to touch. A slot
            // that is not out is noticed when it comes back to its slab.
            match Slab::at(&MAP, unit, class).locate(address) {
                Some((_, 0)) => Found::Slot { owner: entry.owner(), class },
                _ => misuse::not_a_block(call, address),
            }
        }
        Kind::LargeHead if address.is_multiple_of(UNIT) => Found::Large { unit },
        _ => Found::Foreign,
    }
}

/// Frees a block, whatever it is.
///
/// # Safety
///
/// As `free`.
#[cold]
#[inline(never)]
pub(super) unsafe fn free_cold<const FROM: u8>(block: *mut u8) {
    if fast::hot().hardness() != Hardness::None {
        // SAFETY: the caller gives the block away, if it is one.
        return unsafe { free_hardened::<FROM>(block, None) };
    }
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { free_found::<FROM>(Call::Free, block, None, None) }
}

/// Frees a block, whatever it is, for a thread whose calls are the hardened heap's; `told` is what the call says of its size.
///
/// # Safety
///
/// As `free`.
#[inline(never)]
unsafe fn free_hardened<const FROM: u8>(block: *mut u8, told: Option<usize>) {
    // SAFETY: the caller gives the block away, if it is one.
    if unsafe { !hardened::free::<FROM>(block, fast::hot(), MAP.unit_of(block.addr()), told) } {
        // SAFETY: the caller gives the block away, if it is one.
        unsafe { free_hardened_slowly::<FROM>(block, told) }
    }
}

/// [`free_hardened`] of a block that is not as the short way wants it.
///
/// # Safety
///
/// As `free`.
#[cold]
#[inline(never)]
unsafe fn free_hardened_slowly<const FROM: u8>(block: *mut u8, told: Option<usize>) {
    let unit = MAP.unit_of(block.addr());
    // SAFETY: the caller gives the block away, if it is one.
    if unsafe { !hardened::free_slowly::<FROM>(block, fast::hot(), unit, told) } {
        let call = if told.is_some() { Call::FreeSized } else { Call::Free };
        // SAFETY: the caller gives the block away, if it is one.
        unsafe { free_found::<FROM>(call, block, told, None) };
    }
}

/// Frees a block, whatever it is, for a caller that knows its size.
///
/// # Safety
///
/// As `free`.
#[cold]
#[inline(never)]
pub(super) unsafe fn free_sized_cold<const FROM: u8>(block: *mut u8, size: usize) {
    if fast::hot().hardness() != Hardness::None {
        // SAFETY: the caller gives the block away, if it is one.
        return unsafe { free_hardened::<FROM>(block, Some(size)) };
    }
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { free_found::<FROM>(Call::FreeSized, block, Some(size), None) }
}

/// Frees a block, whatever it is, for a caller that knows its alignment.
///
/// # Safety
///
/// As `free`.
#[cold]
#[inline(never)]
pub(super) unsafe fn free_aligned_cold<const FROM: u8>(block: *mut u8, align: usize) {
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { free_found::<FROM>(Call::Free, block, None, Some(align)) }
}

/// Frees a block, whatever it is, for a caller that knows all of it.
///
/// # Safety
///
/// As `free`.
#[cold]
#[inline(never)]
pub(super) unsafe fn free_sized_aligned_cold<const FROM: u8>(
    block: *mut u8,
    size: usize,
    align: usize,
) {
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { free_found::<FROM>(Call::FreeSized, block, Some(size), Some(align)) }
}

/// Frees a block, whatever it is.
///
/// # Safety
///
/// As `free`.
#[inline(always)]
unsafe fn free_found<const FROM: u8>(
    call: Call,
    block: *mut u8,
    size: Option<usize>,
    align: Option<usize>,
) {
    if block.is_null() {
        return;
    }
    // SAFETY: the caller gives the block away, if it is one.
    if sampling::is_on() && unsafe { exclusive::free_sampled(block, fast::hot()) } {
        return;
    }
    // SAFETY: the caller gives the block away, if it is one.
    if shared::is_on() && unsafe { shared::free_quickly(block, fast::hot()) } {
        return;
    }
    trace::freed(block);
    tallies::freed(block);
    let what = Return::new(call, Origin::of::<FROM>(), size, align);
    // SAFETY: the caller gives the block away, if it is one of the debug heap's.
    if hooks::is_debugging() && unsafe { hooks::free(block, what) } {
        return;
    }
    // SAFETY: the caller gives the block away, if it is one.
    if hardened::is_on() && unsafe { give_back_hardened(block, what) } {
        return;
    }
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { free_other(call, block) }
}

/// Frees a block of the hardened heap. False: it is not that heap's.
///
/// # Safety
///
/// As `free`.
#[inline(never)]
unsafe fn give_back_hardened(block: *mut u8, what: Return) -> bool {
    let had = if options::detailed() { hardened::extent(block.addr()) } else { None };
    // SAFETY: the caller gives the block away, if it is one of the hardened heap's.
    let is_done = unsafe { hardened::give_back(own_word::hardened(), block, what) };
    if is_done && let Some(extent) = had.filter(|extent| extent.is_live) {
        counted_apart(|counters| counters::free(counters, extent.size));
    }
    if !is_done {
        guards::compare(block.addr(), what);
    }
    is_done
}

/// # Safety
///
/// As `free`.
#[inline(never)]
unsafe fn free_other(call: Call, block: *mut u8) {
    let found = find(call, block.addr());
    let usable = match found {
        Found::Slot { owner, class } => {
            // SAFETY: `find` says what the block is; it is in use by contract.
            unsafe { free_slot(owner, class, block.cast()) };
            size_class::size(class)
        }
        Found::Large { unit } => {
            let usable = large::usable(unit);
            if !free_large(unit) {
                misuse::double_free(call, block.addr(), usable);
            }
            usable
        }
        // SAFETY: the caller gives the block away, if it is one.
        Found::Foreign => return unsafe { foreign::free(call, block) },
    };
    if options::detailed() {
        match start::mine() {
            Mine::Cache(cache) => counters::free(&cache.counters, usable),
            Mine::Late(cache) => counters::free(&cache.counters, usable),
            Mine::Shared => {
                if let Some(held) = shared::acquire() {
                    counters::free(&held.counters, usable);
                }
            }
            Mine::Hardened(_) | Mine::Nothing => {}
        }
    }
}

/// # Safety
///
/// The block is of `class`, of a slab of `owner`, and in use.
unsafe fn free_slot(owner: u32, class: usize, block: *mut Block) {
    if owner == COMMON {
        // SAFETY: the caller gives the block of this class and a common slab away.
        return unsafe { shared::free_slot(class, block) };
    }
    if sampling::is_owner(owner) {
        // SAFETY: the caller gives the block of this class and the samples' heap away.
        return unsafe { sampling::free_slot(class, block) };
    }
    if let Mine::Cache(cache) = start::mine()
        && cache.should_be_given_up()
        && cache.id() != owner
    {
        start::give_up(cache);
    }
    match start::mine() {
        Mine::Cache(cache) if cache.id() == owner => {
            let _order = cache.enter();
            // SAFETY: the caller gives away the block of this class; the cache is its owner, and
            // locked.
            unsafe { cache.free(class, block) };
        }
        mine => match (CACHES.get(owner), mine) {
            // The heap takes it home when it looks next.
            (Some(_), Mine::Shared) if sync::is_interrupted() => {
                // SAFETY: the caller gives the block of this owner and class away.
                unsafe { cache::send(owner, class, block) };
            }
            // SAFETY: the caller gives away the block of this class; the heap is its owner.
            (Some(heap), _) if heap.owned_by() == Use::Heap => unsafe {
                sampling::note_freed(owner, block.cast());
                first_class::free_slot(heap, class, block);
            },
            (_, Mine::Cache(cache)) => {
                // SAFETY: the caller gives away the block of this class and owner.
                unsafe { cache.free_remote(owner, class, block) };
            }
            // A thread without a cache sends blocks one by one.
            // SAFETY: the caller gives the block of this owner and class away.
            _ => unsafe { shared::send_home(owner, class, block) },
        },
    }
}

#[inline(always)]
pub(super) fn free_large(unit: usize) -> bool {
    match large::heap_of(unit) {
        Some(heap) if sampling::is_owner(heap.id()) && sampling::puts_off(unit) => true,
        Some(heap) => {
            sampling::note_freed(heap.id(), MAP.address_of(unit));
            let _order = heap.lock.lock();
            // Looked at again under the lock: two threads may free it at once.
            let is_there = MAP.record(unit).heap.load(Ordering::Relaxed) == heap.id()
                && MAP.kind(unit) == Kind::LargeHead;
            if is_there {
                heap.large.remove(&MAP, unit);
            }
            is_there && large::free(unit, |_, _| false)
        }
        None => large::free(unit, keep),
    }
}

/// Keeps a run for the next large block, if the calling thread has a cache with room.
fn keep(unit: usize, units: usize) -> bool {
    if let Some(cache) = own_word::cache() {
        let _order = cache.enter();
        return cache.stash.keep(unit, units);
    }
    if !shared::is_on() {
        return false;
    }
    if sync::is_interrupted() {
        // SAFETY: the caller gives the block away, whose run this is, and its record says kept.
        unsafe { central::defer_run(unit) };
        return true;
    }
    shared::acquire().is_some_and(|held| held.stash.keep(unit, units))
}

/// Frees a block that must be of `heap`.
///
/// # Safety
///
/// The block is in use, and nobody uses it afterwards.
pub(super) unsafe fn free_of_heap(heap: &'static Cache, block: *mut u8) {
    if block.is_null() {
        return;
    }
    let address = block.addr();
    let (owner, usable) = match find(Call::HeapFree, address) {
        Found::Slot { owner, class } => (owner, size_class::size(class)),
        Found::Large { unit } => {
            (MAP.record(unit).heap.load(Ordering::Relaxed), large::usable(unit))
        }
        Found::Foreign => foreign::refuse(Call::HeapFree, address),
    };
    if owner != heap.id() {
        misuse::wrong_heap(Call::HeapFree, address, usable);
    }
    // SAFETY: the block is in use, and nobody uses it afterwards, as the caller promises.
    unsafe { free_cold::<MALLOC>(block) };
}

/// Frees a block for `realloc(block, 0)`.
///
/// # Safety
///
/// As `free`.
///
/// ```
/// let block = heapwright::heap::malloc(10);
/// // SAFETY: allocated above, freed once.
/// unsafe { heapwright::heap::realloc_to_nothing(block) };
/// ```
pub unsafe fn realloc_to_nothing(block: *mut u8) {
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { free_found::<MALLOC>(Call::Realloc, block, None, None) }
}

/// The bytes that may be used of a block: at least those asked for.
///
/// 0 for null. Constant time.
///
/// # Safety
///
/// The block is in use.
///
/// ```
/// use heapwright::heap;
/// let block = heap::malloc(100);
/// // SAFETY: the block is in use.
/// assert_eq!(unsafe { heap::usable_size(block) }, 112);
/// # unsafe { heap::free(block) };
/// ```
#[must_use]
pub unsafe fn usable_size(block: *const u8) -> usize {
    if block.is_null() {
        return 0;
    }
    if hooks::is_debugging()
        && let Some(usable) = hooks::usable_size(block)
    {
        return usable;
    }
    if hardened::is_on() {
        let what = Return::new(Call::UsableSize, Origin::Malloc, None, None);
        if let Some(usable) = hardened::usable_size(block, what) {
            return usable;
        }
    }
    match find(Call::UsableSize, block.addr()) {
        Found::Slot { class, .. } => size_class::size(class),
        Found::Large { unit } => large::usable(unit),
        Found::Foreign => foreign::usable_size(block),
    }
}
