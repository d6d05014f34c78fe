//! What is done around serving a call: blocks are drawn for samples and guards, calls are counted,
//! traced and tallied.
//!
//! ```text
//!   drawn      the tables of hot parts whose calls are drawn from (`Serve::drawn`)
//!                own       the cache's lists say when one is due, so only misses come here
//!                shared    each call is counted, then goes to the plain table's function
//!
//!   observed   a front: each call, whatever the thread has
//!                allocate    [what the thread has]   then: counted, traced, tallied
//!                give_back   traced, tallied, then [what the thread has], then counted
//!                resize      in two halves, between which the thread is quiet
//! ```
//!
//! A thread is observed where statistics or a trace are asked for (`options::detailed`), or while
//! it counts its calls (`tallies`). So no other way to serve asks for any of these.
//!
//! Called by the tables of `start`, and by the C layer.

use super::large;
use super::modes::{DEBUG_FRONT, Front, front};
use super::shared;
use super::words::{self, Own};
use crate::address_map::{Kind, MAP};
use crate::cache::{Counters, Hot, Residue, Serve, counters};
use crate::hardened;
use crate::hooks;
use crate::options;
use crate::request::{Origin, Request, Return, Said};
use crate::size_class;
use crate::slab::Slab;
use crate::sync;
#[cfg(feature = "debug")]
use crate::tallies;
use crate::trace;

#[cfg(feature = "debug")]
pub(super) use drawing::*;

static OBSERVED: Serve = front(allocate, give_back, resize, &OBSERVED);
/// Where threads come to whose calls are observed.
pub(super) static OBSERVED_FRONT: Front = Front::new(&OBSERVED);

/// Whether the calls of the calling thread are to be observed.
pub(super) fn is_asked_for() -> bool {
    #[cfg(feature = "debug")]
    if tallies::counts_here() {
        return true;
    }
    options::detailed()
}

/// What serves the calls of the calling thread, which are observed.
fn serves() -> &'static Hot {
    if hooks::is_debugging() { DEBUG_FRONT.get() } else { words::has() }
}

fn allocate(size: usize, align: usize, zero: bool, origin: Origin, _hot: &Hot) -> *mut u8 {
    let hot = serves();
    let block = (hot.serve().allocate)(size, align, zero, origin, hot);
    note_made(Request { size, align, zero, origin }, block);
    block
}

/// A block was got for a request of the calling thread, or none, if it is null.
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

unsafe fn give_back(
    block: *mut u8,
    _hot: &Hot,
    _residue: Residue,
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

unsafe fn resize(block: *mut u8, size: usize, _hot: &Hot, what: Return) -> *mut u8 {
    let is_traced = trace::realloc_begins(block);
    #[cfg(feature = "debug")]
    let is_tallied = tallies::realloc_begins(block);
    let hot = serves();
    // SAFETY: the block is in use, and afterwards only the returned one is, as the caller promises.
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

/// The bytes that may be used of a block of the fast heap, or were asked for of the hardened
/// heap's. `None`: it is no such block.
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

/// Counts a call with those of what the thread has.
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

/// Serves a call that comes with a token (`__alloc_token_*`) where blocks of different tokens lie
/// apart ([`keeps_tokens_apart`](super::keeps_tokens_apart)). Null: there is no memory, or they do
/// not; then the call is to be served as one without a token.
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

/// How a call is served that may have a block drawn.
#[cfg(feature = "debug")]
mod drawing {
    use core::ptr;

    use super::super::drawn::{self, COUNTED, counted, make_guarded, make_pending, sample};
    use super::super::modes::answer;
    use super::super::{cpu, large, own, shared, words};
    use crate::address_map::CLASS_STEP;
    use crate::cache::arrays::Gate;
    use crate::cache::draw::{self, Draw};
    use crate::cache::{Hot, OwnCache, magazines};
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
        // (Where a refill has just said that a block may be drawn, another refill would be served.)
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

    /// Serves a request from the thread's own cache, or with a block that is due instead. Null:
    /// there is no memory.
    fn serve_own(request: Request, cache: OwnCache) -> *mut u8 {
        if request.class().is_none()
            && drawn::is_guarding()
            && cache.guard_draw.count_one()
            && let Some(block) = make_guarded(request, Draw::Drawn)
        {
            return block.as_ptr();
        }
        // What is due stays so for the next call, where a guarded block may be made.
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
                // There can be none just now, and none may be due.
                return serve_undrawn(request, cache);
            }
            let block = own::serve(request, cache);
            cache.guard_draw.skip(false);
            if !block.is_null() {
                return block;
            }
            // There is no memory, or one became due while the list was filled.
            let Some(class) = request.class() else { return block };
            let _order = cache.enter();
            is_sample = cache.take_due(class);
            if !is_sample && !cache.guard_draw.is_pending() {
                return block;
            }
        }
    }

    /// Serves a request from the thread's own cache without drawing, whatever is due. Null: there
    /// is no memory.
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

    /// Serves `malloc(size)` by its CPU's arrays, whose list is at `offset`, and counts it.
    pub(in crate::heap) extern "C" fn malloc_by_gate(
        size: usize,
        hot: &Hot,
        offset: usize,
    ) -> *mut u8 {
        let gate = Gate::of(hot);
        let is_sample = drawn::is_sampling()
            && COUNTED.counts_out(
                gate.cpu(),
                size_class::size(offset / CLASS_STEP),
                draw::period(),
            );
        match is_sample.then(|| sample(small(size))).flatten() {
            Some(block) => block,
            None => cpu::malloc(size, gate, offset),
        }
    }

    /// Serves `malloc(size)` by the shared cache behind `hot`, whose list is at `offset`, and
    /// counts it.
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

    /// Serves `malloc(size)` of a thread that has no lists, and counts it.
    pub(in crate::heap) extern "C" fn malloc_apart(
        size: usize,
        hot: &Hot,
        _offset: usize,
    ) -> *mut u8 {
        allocate_apart(size, 1, false, Origin::Malloc, hot)
    }

    /// Serves any other call of a thread without a cache of its own, and counts it.
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
