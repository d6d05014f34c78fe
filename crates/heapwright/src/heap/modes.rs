//! Calls that the plain fast heap does not serve: observed calls, drawn blocks, the hardened and
//! the debug heap, and threads without a cache.
//!
//! ```text
//!   drawn      tables of hot parts whose calls may get a sample or guarded block (`Serve::drawn`)
//!                own       gets only misses, because a list ends before a block that is due
//!                shared    counts each call, then calls the plain table's function
//!   observed   counts, traces and tallies each call; passes it to the cache or to the debug heap
//!   hardened   the thread's hot part is a stub of its cache: rings, else the slow path
//!   debug      passes each call to the debug heap; if that refuses it, to the thread's cache
//!   passed on  passes each call to the preloaded copy of heapwright
//!   late       one locked heap for threads without a cache, or the hardened heap
//! ```
//!
//! All but `drawn` and `hardened` are *fronts*: constant hot parts without lists and owner.
//!
//! Calls are observed if the options ask for statistics or a trace (`options::detailed`), or while
//! the thread counts its calls (`tallies`). Called by `start`, and by the C layer (tokens).

use super::words::{self, Own};
use super::{foreign, resize, shared};
use crate::address_map::{Kind, MAP};
use crate::cache::{Counters, Hot, Mismatch, Serve, counters, large};
use crate::drawn;
use crate::hardened;
use crate::hooks;
use crate::options;
use crate::os;
use crate::request::{MALLOC, NEW, NEW_ARRAY, Origin, RUST, Request, Return, Said};
use crate::size_class::{self, LINEAR_MAX, SLAB_MAX};
use crate::slab::Slab;
use crate::sync;
#[cfg(feature = "debug")]
use crate::tallies;
use crate::trace;

/// A hot part that leads every call to a table. Never written to.
#[repr(transparent)]
pub(crate) struct Front(Hot);

// SAFETY: its lists are empty and its tag is no owner's, so no path writes to it.
unsafe impl Sync for Front {}

impl Front {
    pub(super) const fn new(serve: &'static Serve) -> Self {
        Self(Hot::sentinel(serve))
    }

    pub(super) const fn get(&'static self) -> &'static Hot {
        &self.0
    }
}

type Allocate = fn(size: usize, align: usize, zero: bool, origin: Origin, hot: &Hot) -> *mut u8;
type GiveBack =
    unsafe fn(block: *mut u8, hot: &Hot, mismatch: Mismatch, said: Said, size: usize, align: usize);
type Resize = unsafe fn(block: *mut u8, size: usize, hot: &Hot, what: Return) -> *mut u8;

/// The table of a front, in which three functions serve all calls.
pub(super) const fn front(
    allocate: Allocate,
    give_back: GiveBack,
    resize: Resize,
    this: &'static Serve,
) -> Serve {
    extern "C" fn malloc(size: usize, hot: &Hot, _offset: usize) -> *mut u8 {
        large(size, hot, Origin::Malloc)
    }
    fn large(size: usize, hot: &Hot, origin: Origin) -> *mut u8 {
        (hot.serve().allocate)(size, 1, false, origin, hot)
    }
    unsafe extern "C" fn free(block: *mut u8, hot: &Hot, _mismatch: Mismatch) {
        // SAFETY: the caller gives the block away, if it is one.
        unsafe { hot.serve().take_back(block, hot, Return::PLAIN) }
    }
    unsafe extern "C" fn unknown(block: *mut u8, hot: &Hot, _any: usize, _unit: usize) {
        // SAFETY: the caller gives the block away, if it is one.
        unsafe { hot.serve().take_back(block, hot, Return::PLAIN) }
    }
    Serve { malloc, free, unknown, large, allocate, give_back, resize, drawn: this, plain: this }
}

/// Returns `block`. If it is null, sets `errno`.
#[inline(always)]
pub(super) fn answer(block: *mut u8) -> *mut u8 {
    if block.is_null() {
        os::set_errno(os::ENOMEM);
    }
    block
}

// The hardened heap. ------------------------------------------------------------------------------

pub(super) static HARDENED: Serve = hardened_table::<false>(&HARDENED);
/// For `mode=hardened:full`.
pub(super) static HARDENED_FULL: Serve = hardened_table::<true>(&HARDENED_FULL);

const fn hardened_table<const FULL: bool>(this: &'static Serve) -> Serve {
    Serve {
        malloc: malloc_hardened::<FULL>,
        free: free_hardened::<FULL>,
        unknown: free_hardened_in::<FULL>,
        large: |size, _, origin| allocate_hardened(size, 1, false, origin),
        allocate: allocate_hardened_by::<FULL>,
        give_back: give_back_hardened_by::<FULL>,
        resize: resize_hardened,
        drawn: this,
        plain: this,
    }
}

extern "C" fn malloc_hardened<const FULL: bool>(size: usize, hot: &Hot, _offset: usize) -> *mut u8 {
    // The hardened heap's own fast path is for sizes whose class needs no table.
    if size > LINEAR_MAX {
        return hardened::malloc_medium::<MALLOC>(size, hot);
    }
    hardened::malloc::<MALLOC, FULL>(size, hot)
}

fn allocate_hardened_by<const FULL: bool>(
    size: usize,
    align: usize,
    zero: bool,
    origin: Origin,
    hot: &Hot,
) -> *mut u8 {
    if size.wrapping_sub(1) < SLAB_MAX && !zero && hardened::is_plain(origin, align) {
        return match origin {
            Origin::New => small_hardened::<NEW, FULL>(size, hot),
            Origin::NewArray => small_hardened::<NEW_ARRAY, FULL>(size, hot),
            Origin::Rust => small_hardened::<RUST, FULL>(size, hot),
            _ => small_hardened::<MALLOC, FULL>(size, hot),
        };
    }
    allocate_hardened(size, align, zero, origin)
}

#[inline(always)]
fn small_hardened<const FROM: u8, const FULL: bool>(size: usize, hot: &Hot) -> *mut u8 {
    if size > LINEAR_MAX {
        return hardened::malloc_medium::<FROM>(size, hot);
    }
    hardened::malloc::<FROM, FULL>(size, hot)
}

fn allocate_hardened(size: usize, align: usize, zero: bool, origin: Origin) -> *mut u8 {
    let request = Request::new(size, align, zero, origin);
    answer(hardened::allocate(words::hardened(), request))
}

unsafe extern "C" fn free_hardened<const FULL: bool>(
    block: *mut u8,
    hot: &Hot,
    _mismatch: Mismatch,
) {
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { free_hardened_in::<FULL>(block, hot, 0, MAP.unit_of(block.addr())) }
}

unsafe extern "C" fn free_hardened_in<const FULL: bool>(
    block: *mut u8,
    hot: &Hot,
    _any: usize,
    unit: usize,
) {
    // SAFETY: the caller gives the block away, if it is one.
    if unsafe { !hardened::free::<MALLOC, FULL>(block, hot, unit, None) } {
        // SAFETY: the caller gives the block away, if it is one.
        unsafe { free_hardened_slowly::<MALLOC>(block, hot, Said::PLAIN, 0, 0) }
    }
}

unsafe fn give_back_hardened_by<const FULL: bool>(
    block: *mut u8,
    hot: &Hot,
    _mismatch: Mismatch,
    said: Said,
    size: usize,
    align: usize,
) {
    if said.origin == Origin::New {
        // SAFETY: the caller gives the block away, if it is one.
        return unsafe { told_hardened::<NEW, FULL>(block, hot, said, size, align) };
    }
    let told = match said.origin {
        Origin::Rust => told_hardened_apart::<RUST, FULL>,
        Origin::NewArray => told_hardened_apart::<NEW_ARRAY, FULL>,
        _ => told_hardened_apart::<MALLOC, FULL>,
    };
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { told(block, hot, said, size, align) }
}

/// # Safety
///
/// As `free`.
#[inline(never)]
unsafe fn told_hardened_apart<const FROM: u8, const FULL: bool>(
    block: *mut u8,
    hot: &Hot,
    said: Said,
    size: usize,
    align: usize,
) {
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { told_hardened::<FROM, FULL>(block, hot, said, size, align) }
}

/// # Safety
///
/// As `free`.
#[inline(always)]
unsafe fn told_hardened<const FROM: u8, const FULL: bool>(
    block: *mut u8,
    hot: &Hot,
    said: Said,
    size: usize,
    align: usize,
) {
    let (unit, told) = (MAP.unit_of(block.addr()), said.size.then_some(size));
    // The slow path compares the call's alignment.
    // SAFETY: the caller gives the block away, if it is one.
    if said.align || unsafe { !hardened::free::<FROM, FULL>(block, hot, unit, told) } {
        // SAFETY: the caller gives the block away, if it is one.
        unsafe { free_hardened_slowly::<FROM>(block, hot, said, size, align) }
    }
}

/// Frees a block that the short path refuses, or null.
///
/// # Safety
///
/// As `free`.
#[cold]
#[inline(never)]
unsafe fn free_hardened_slowly<const FROM: u8>(
    block: *mut u8,
    hot: &Hot,
    said: Said,
    size: usize,
    align: usize,
) {
    let (unit, what) = (MAP.unit_of(block.addr()), Return::of(said, size, align));
    // SAFETY: the caller gives the block away, if it is one.
    if said.align || unsafe { !hardened::free_slowly::<FROM>(block, hot, unit, what.size) } {
        // SAFETY: the caller gives the block away, if it is one.
        unsafe { take_back_hardened(block, what) }
    }
}

/// # Safety
///
/// As `free`.
unsafe fn give_back_hardened(
    block: *mut u8,
    _hot: &Hot,
    _mismatch: Mismatch,
    said: Said,
    size: usize,
    align: usize,
) {
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { take_back_hardened(block, Return::of(said, size, align)) }
}

/// # Safety
///
/// As `free`.
#[inline(never)]
unsafe fn take_back_hardened(block: *mut u8, what: Return) {
    // SAFETY: the caller gives the block away, if it is one.
    if block.is_null() || unsafe { hardened::give_back(words::hardened(), block, what) } {
        return;
    }
    drawn::compare(block.addr(), what);
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { foreign::give_back(block, what) }
}

unsafe fn resize_hardened(block: *mut u8, size: usize, hot: &Hot, what: Return) -> *mut u8 {
    // SAFETY: as the caller promises, the block is in use, and afterwards only the result is.
    if let Some(new) = unsafe { hardened::realloc(words::hardened(), block, size, what) } {
        return answer(new);
    }
    drawn::compare(block.addr(), what);
    // SAFETY: as the caller promises, the block is in use, and afterwards only the result is.
    unsafe { resize::resize(block, size, hot, what) }
}

// The debug heap. ---------------------------------------------------------------------------------

static DEBUG: Serve = front(allocate_debug, give_back_debug, resize_debug, &DEBUG);
pub(super) static DEBUG_FRONT: Front = Front::new(&DEBUG);

fn allocate_debug(size: usize, align: usize, zero: bool, origin: Origin, _hot: &Hot) -> *mut u8 {
    let request = Request::new(size, align, zero, origin);
    if !request.is_possible() {
        return answer(core::ptr::null_mut());
    }
    match hooks::allocate(request) {
        Some(block) => answer(block),
        None => {
            let has = words::has();
            (has.serve().allocate)(size, align, zero, origin, has)
        }
    }
}

unsafe fn give_back_debug(
    block: *mut u8,
    _hot: &Hot,
    _mismatch: Mismatch,
    said: Said,
    size: usize,
    align: usize,
) {
    let what = Return::of(said, size, align);
    // SAFETY: the caller gives the block away, if it is one of the debug heap's.
    if block.is_null() || unsafe { hooks::free(block, what) } {
        return;
    }
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { foreign::give_back(block, what) }
}

unsafe fn resize_debug(block: *mut u8, size: usize, hot: &Hot, what: Return) -> *mut u8 {
    // SAFETY: as the caller promises, the block is in use, and afterwards only the result is.
    match unsafe { hooks::realloc(block, size, what) } {
        Some(new) => answer(new),
        // SAFETY: as the caller promises, the block is in use, and afterwards only the result is.
        None => unsafe { resize::resize(block, size, hot, what) },
    }
}

// Another copy. -----------------------------------------------------------------------------------

static PASSED_ON: Serve = front(allocate_elsewhere, give_back_anything, resize::resize, &PASSED_ON);
/// The front of threads in a process that another copy of the library serves.
pub(super) static PASSED_ON_FRONT: Front = Front::new(&PASSED_ON);

fn allocate_elsewhere(
    size: usize,
    align: usize,
    zero: bool,
    origin: Origin,
    _hot: &Hot,
) -> *mut u8 {
    let request = Request::new(size, align, zero, origin);
    let Some(peer) = foreign::peer().filter(|_| request.is_possible()) else {
        return answer(core::ptr::null_mut());
    };
    if request.align > size_class::MIN_ALIGN {
        // SAFETY: the peer's functions are those of a C library's allocator.
        let block = unsafe { (peer.memalign)(request.align, size) };
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

/// # Safety
///
/// As `free`.
unsafe fn give_back_anything(
    block: *mut u8,
    _hot: &Hot,
    _mismatch: Mismatch,
    said: Said,
    size: usize,
    align: usize,
) {
    let what = Return::of(said, size, align);
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { foreign::give_back(block, what) }
}

// Threads without a cache. ------------------------------------------------------------------------

static LATE: Serve = front(allocate_late, give_back_anything, resize::resize, &LATE);
/// The front of threads whose cache is gone, or that get none for lack of memory.
pub(super) static LATE_FRONT: Front = Front::new(&LATE);

fn allocate_late(size: usize, align: usize, zero: bool, origin: Origin, _hot: &Hot) -> *mut u8 {
    let request = Request::new(size, align, zero, origin);
    if !request.is_possible() {
        return answer(core::ptr::null_mut());
    }
    answer(large::allocate_late(request))
}

static LATE_HARDENED: Serve =
    front(allocate_late_hardened, give_back_hardened, resize_hardened, &LATE_HARDENED);
pub(super) static LATE_HARDENED_FRONT: Front = Front::new(&LATE_HARDENED);

fn allocate_late_hardened(
    size: usize,
    align: usize,
    zero: bool,
    origin: Origin,
    _hot: &Hot,
) -> *mut u8 {
    allocate_hardened(size, align, zero, origin)
}

// Observed calls. ---------------------------------------------------------------------------------

#[cfg(feature = "debug")]
pub(super) use drawing::*;

static OBSERVED: Serve = front(allocate_observed, give_back_observed, resize_observed, &OBSERVED);
pub(super) static OBSERVED_FRONT: Front = Front::new(&OBSERVED);

pub(super) fn is_asked_for() -> bool {
    #[cfg(feature = "debug")]
    if tallies::counts_here() {
        return true;
    }
    options::detailed()
}

/// The hot part that serves the calling thread's observed calls.
fn serves() -> &'static Hot {
    if hooks::is_debugging() { DEBUG_FRONT.get() } else { words::has() }
}

fn allocate_observed(size: usize, align: usize, zero: bool, origin: Origin, _hot: &Hot) -> *mut u8 {
    let hot = serves();
    let block = (hot.serve().allocate)(size, align, zero, origin, hot);
    note_made(Request { size, align, zero, origin }, block);
    block
}

/// `block` is null if the request failed.
pub(super) fn note_made(request: Request, block: *mut u8) {
    if !block.is_null()
        && options::detailed()
        && let Some(usable) = known_size(block)
    {
        count(|counters| counters::allocation(counters, request.size, usable));
    }
    trace::allocated(request, block);
    #[cfg(feature = "debug")]
    tallies::allocated(request, block);
}

unsafe fn give_back_observed(
    block: *mut u8,
    _hot: &Hot,
    _mismatch: Mismatch,
    said: Said,
    size: usize,
    align: usize,
) {
    let what = Return::of(said, size, align);
    if block.is_null() {
        return;
    }
    let usable = if options::detailed() { known_size(block) } else { None };
    trace::freed(block);
    #[cfg(feature = "debug")]
    tallies::freed(block);
    let hot = serves();
    // SAFETY: the caller gives the block away, if it is one.
    unsafe { hot.serve().take_back(block, hot, what) };
    if let Some(usable) = usable {
        count(|counters| counters::free(counters, usable));
    }
}

unsafe fn resize_observed(block: *mut u8, size: usize, _hot: &Hot, what: Return) -> *mut u8 {
    let is_traced = trace::realloc_begins(block);
    #[cfg(feature = "debug")]
    let is_tallied = tallies::realloc_begins(block);
    let hot = serves();
    // SAFETY: as the caller promises, the block is in use, and afterwards only the result is.
    let new = unsafe { (hot.serve().resize)(block, size, hot, what) };
    #[cfg(feature = "debug")]
    if is_tallied {
        tallies::realloc_ends(block, new, size);
    }
    if is_traced {
        trace::realloc_ends(new, size);
    }
    new
}

/// The usable size of a block of the fast heap, or the requested size of a hardened block.
fn known_size(block: *mut u8) -> Option<usize> {
    if hardened::is_on()
        && let Some(extent) = hardened::extent(block.addr())
    {
        return extent.is_live.then_some(extent.size);
    }
    let (unit, entry) = MAP.lookup(block.addr());
    match MAP.kind_of(unit, entry) {
        Kind::Slab(class) => {
            let place = Slab::at(&MAP, unit, class).locate(block.addr());
            matches!(place, Some((_, 0))).then(|| size_class::size(class))
        }
        Kind::LargeHead => Some(large::usable(unit)),
        _ => None,
    }
}

fn count(count: impl FnOnce(&Counters)) {
    match words::get() {
        Own::Cache(cache) => count(&cache.counters),
        Own::Shared(_) | Own::ByCpu => {
            if let Some(held) = shared::acquire() {
                count(&held.counters);
            }
        }
        Own::Hardened(_) | Own::Exited | Own::Nothing => {
            if !sync::is_interrupted()
                && let Some(cache) = large::late()
            {
                let _order = cache.lock.lock();
                count(&cache.counters);
            }
        }
    }
}

/// Serves a call with a token (`__alloc_token_*`) if blocks of different tokens lie apart
/// ([`keeps_tokens_apart`](super::keeps_tokens_apart)). Returns null if they do not, or if there is
/// no memory. The caller then serves the call without the token.
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
    note_made(request, block);
    block
}

/// Functions for calls that may get a sample or a guarded block.
#[cfg(feature = "debug")]
mod drawing {
    use core::ptr;

    use super::super::{cpu, own, shared, words};
    use super::answer;
    use crate::address_map::CLASS_STEP;
    use crate::cache::arrays::CpuEntry;
    use crate::cache::draw::{self, Draw};
    use crate::cache::{Hot, OwnCache, large, magazines};
    use crate::drawn::{self, COUNTED, counted, make_guarded, make_pending, sample};
    use crate::request::{Origin, Request};
    use crate::size_class;

    /// Serves a call of a thread with a cache of its own.
    pub(in crate::heap) fn allocate_own(
        size: usize,
        align: usize,
        zero: bool,
        origin: Origin,
        hot: &Hot,
    ) -> *mut u8 {
        // (If a refill has just made a guarded block due, the next refill would not make one due.)
        let is_quick = !zero && !own::cache_of(hot).guard_draw.is_pending();
        let block = if is_quick { own::allocate_quickly(size, align, hot) } else { None };
        block.unwrap_or_else(|| draw_own(Request::new(size, align, zero, origin), hot))
    }

    #[cold]
    #[inline(never)]
    fn draw_own(request: Request, hot: &Hot) -> *mut u8 {
        let (cache, before) = (own::cache_of(hot), hot.serve());
        if cache.is_asked() {
            let now = own::ask(cache);
            if !ptr::eq(now, hot) || !ptr::eq(hot.serve(), before) {
                let Request { size, align, zero, origin } = request;
                return (now.serve().allocate)(size, align, zero, origin, now);
            }
        }
        if !request.is_possible() {
            return answer(ptr::null_mut());
        }
        answer(serve_own(request, cache))
    }

    /// Returns a block from the thread's own cache, or a sample or guarded block that is due.
    /// Returns null if there is no memory.
    fn serve_own(request: Request, cache: OwnCache) -> *mut u8 {
        if request.class().is_none()
            && drawn::is_guarding()
            && cache.guard_draw.count_one()
            && let Some(block) = make_guarded(request, Draw::Drawn)
        {
            return block.as_ptr();
        }
        // A due sample waits for the next call if this call may make a guarded block.
        let mut is_sample = !cache.guard_draw.is_pending() && {
            let _order = cache.enter();
            match request.class() {
                _ if !cache.sampling.is_on() => false,
                Some(class) => cache.take_due(class),
                None => !cache.sampling.count(request.size),
            }
        };
        loop {
            if let Some(block) = make_pending(request, cache) {
                return block.as_ptr();
            }
            if is_sample {
                if drawn::is_sampling()
                    && let Some(block) = sample(request)
                {
                    return block;
                }
                // No sample is possible now.
                return serve_undrawn(request, cache);
            }
            let block = own::serve(request, cache);
            cache.guard_draw.skip(false);
            if !block.is_null() {
                return block;
            }
            // There is no memory, or a block became due during the refill.
            let Some(class) = request.class() else { return block };
            let _order = cache.enter();
            is_sample = cache.take_due(class);
            if !is_sample && !cache.guard_draw.is_pending() {
                return block;
            }
        }
    }

    /// Serves a request from the thread's own cache, even if a sample or guarded block is due.
    #[cold]
    #[inline(never)]
    fn serve_undrawn(request: Request, cache: OwnCache) -> *mut u8 {
        let _order = cache.enter();
        cache.pause_sampling();
        cache.guard_draw.skip(true);
        let block = large::allocate_from(cache.get(), request);
        cache.guard_draw.skip(false);
        block
    }

    /// Serves `malloc(size)` from the CPU's array, and counts the call.
    pub(in crate::heap) extern "C" fn malloc_by_cpu_entry(
        size: usize,
        hot: &Hot,
        offset: usize,
    ) -> *mut u8 {
        let cpu_entry = CpuEntry::of(hot);
        let is_sample = drawn::is_sampling()
            && COUNTED.counts_out(
                cpu_entry.cpu(),
                size_class::size(offset / CLASS_STEP),
                draw::period(),
            );
        match is_sample.then(|| sample(small(size))).flatten() {
            Some(block) => block,
            None => cpu::malloc(size, cpu_entry, offset),
        }
    }

    /// Serves `malloc(size)` from the shared cache behind `hot`, and counts the call.
    pub(in crate::heap) extern "C" fn malloc_shared(
        size: usize,
        hot: &Hot,
        offset: usize,
    ) -> *mut u8 {
        let (number, bytes) = (magazines::of(hot).number(), size_class::size(offset / CLASS_STEP));
        let is_sample = drawn::is_sampling() && COUNTED.counts_out(number, bytes, draw::period());
        match is_sample.then(|| sample(small(size))).flatten() {
            Some(block) => block,
            None => shared::malloc(size, hot, offset),
        }
    }

    fn small(size: usize) -> Request {
        Request { size, align: 1, zero: false, origin: Origin::Malloc }
    }

    pub(in crate::heap) extern "C" fn malloc_apart(
        size: usize,
        hot: &Hot,
        _offset: usize,
    ) -> *mut u8 {
        allocate_apart(size, 1, false, Origin::Malloc, hot)
    }

    /// Serves and counts any call of a thread without a cache of its own.
    pub(in crate::heap) fn allocate_apart(
        size: usize,
        align: usize,
        zero: bool,
        origin: Origin,
        _hot: &Hot,
    ) -> *mut u8 {
        let request = Request::new(size, align, zero, origin);
        if !request.is_possible() {
            return answer(ptr::null_mut());
        }
        let shares = words::shares();
        if request.class().is_none()
            && shares
            && drawn::is_guarding()
            && draw::draws_shared(1)
            && let Some(block) = make_guarded(request, Draw::Drawn)
        {
            return block.as_ptr();
        }
        if drawn::is_sampling()
            && drawn::counts_out(counted(request))
            && let Some(block) = sample(request)
        {
            return block;
        }
        answer(if shares { shared::serve(request) } else { large::allocate_late(request) })
    }
}
