//! Guards: where fast mode makes a block that stands between guard pages (`guard=sample`), and takes it back.
//!
//! ```text
//!   a thread's own cache    a refill says that a block is drawn      (`cache::guard_draw`)  --+
//!   a cache that is shared  a refill is counted here  ----------------------------------------+--> sample
//!   a large block           is counted here  -------------------------------------------------+
//!                                                                                             v
//!   the block: of the heap of guarded blocks, with its records: `debug::guards`
//! ```
//!
//! A guarded block is known by its unit's entry, which is a debug heap's: each `free` of one, by any thread, takes the cold
//! door, and other frees look nothing up.
//!
//! No block is made by a signal handler that interrupted its thread in a slow operation, in a fork, or in a sandbox. A block
//! that such a handler frees is *put off*, and freed with the next one that is made or freed.
//!
//! The hardened heap has them, too: it asks where a thread's ring has to be refilled (`draw_for_hardened`). Large
//! blocks have guards there in any case.
//!
//! In a build without the feature `debug` there are no stacks, and nothing is ever guarded.
//!
//! Called by `door`, `foreign`, `sampling`, `shared`, `per_cpu` and `walk`.

#[cfg(feature = "debug")]
pub(super) use with_stacks::{
    compare, draw_for_hardened, draw_for_shared, draw_large, free, has, make_pending, realloc,
    serve, size, start,
};
#[cfg(not(feature = "debug"))]
pub(super) use without_stacks::{
    compare, draw_for_hardened, draw_for_shared, free, has, realloc, size,
};

/// Whether some blocks stand between guards.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    cfg!(feature = "debug") && crate::cache::guard_draw::rate() != 0
}

#[cfg(feature = "debug")]
mod with_stacks {
    use core::ptr::{self, NonNull};

    use super::super::door;
    use super::super::start::Mine;
    use crate::cache::OwnCache;
    use crate::cache::guard_draw::{self, Draw};
    use crate::debug::guards::{self, Made};
    use crate::hardened;
    use crate::memory_limit;
    use crate::misuse::Call;
    use crate::options::{GUARDS_PACED, Hardening, Options};
    use crate::request::{Origin, Request, Return};
    use crate::sync;
    use crate::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
    use crate::ticks;

    pub(in crate::heap) use guards::has;

    /// Blocks whose frees were put off. Where there is no place, a block is never freed.
    static PUT_OFF: [AtomicPtr<u8>; 64] = [const { AtomicPtr::new(ptr::null_mut()) }; 64];
    static HAS_PUT_OFF: AtomicBool = AtomicBool::new(false);

    /// Does what the options say. The heap starts, and no thread has a cache yet.
    #[cold]
    pub(in crate::heap) fn start(options: &Options) {
        if options.guards != 0 {
            guards::start(options);
            crate::stacks::prepare();
            let every = (options.guards != GUARDS_PACED).then_some(options.guards);
            if options.hardening == Hardening::Off {
                guard_draw::begin(every);
            } else {
                guard_draw::begin_apart(every);
                // The hardened heap must manage with 4 KiB of stack.
                crate::stacks::spare_foreign_stacks();
            }
        }
    }

    /// A guarded block for a request of the hardened heap's, whose refill is about to bring `blocks` blocks. `None`: it is not
    /// drawn, or there can be none.
    #[cold]
    pub(in crate::heap) fn draw_for_hardened(
        request: Request,
        blocks: usize,
    ) -> Option<NonNull<u8>> {
        let draw = guard_draw::draws_apart(blocks)?;
        let block = make(request, draw);
        if draw == Draw::IfNew {
            guard_draw::looked_apart(block.is_some());
        }
        block
    }

    /// A block between guards. `None`: there can be none just now, because too many are live, this one is too large, there is
    /// no memory, or the caller must not wait; or its stack is not new and had to be.
    fn make(request: Request, draw: Draw) -> Option<NonNull<u8>> {
        if sync::is_interrupted() || sync::holds_all() || memory_limit::is_in_sandbox() {
            return None;
        }
        settle();
        let block = guards::sample(request, draw)?;
        // Memory may have been taken while locks were held.
        ticks::catch_up();
        Some(block)
    }

    /// Serves a request by the door: with a guarded block, if it is drawn. Null: there is no memory.
    pub(in crate::heap) fn serve(request: Request, mine: Mine) -> *mut u8 {
        if let Some(block) = draw_large(request, mine) {
            return block.as_ptr();
        }
        let Mine::Cache(cache) = mine else { return door::allocate_from_mine(request, mine) };
        if cache.guard_draw.is_pending() {
            return serve_pending(request, cache);
        }
        let block = door::allocate_from_mine(request, mine);
        if block.is_null() && cache.guard_draw.is_pending() {
            return serve_pending(request, cache);
        }
        block
    }

    /// A guarded block for a request of a large block, which comes from no list. `None`: it is none, it is not drawn, or there
    /// can be none.
    #[inline]
    pub(in crate::heap) fn draw_large(request: Request, mine: Mine) -> Option<NonNull<u8>> {
        if request.class().is_some() || !super::is_on() {
            return None;
        }
        let is_drawn = match mine {
            Mine::Cache(cache) => cache.guard_draw.count_one(),
            Mine::Shared => guard_draw::draws_shared(1),
            _ => false,
        };
        if is_drawn { make(request, Draw::Drawn) } else { None }
    }

    /// Serves a request whose refill has failed because a guarded block may be made for it. Null: there is no memory.
    #[cold]
    fn serve_pending(request: Request, cache: OwnCache) -> *mut u8 {
        if let Some(block) = make_pending(request, cache) {
            return block.as_ptr();
        }
        let block = door::allocate_from_mine(request, Mine::Cache(cache));
        cache.guard_draw.skip(false);
        block
    }

    /// The guarded block for a request whose refill has failed because one may be made. `None`: there is none, and the next
    /// refill does not ask for one.
    #[cold]
    pub(in crate::heap) fn make_pending(request: Request, cache: OwnCache) -> Option<NonNull<u8>> {
        let draw = &cache.guard_draw;
        let why = draw.take_pending()?;
        let block = make(request, why);
        if why == Draw::IfNew {
            draw.looked(block.is_some());
        }
        draw.skip(block.is_none());
        block
    }

    /// A guarded block for a request that a refill of caches that threads share is about to serve, and that brings about
    /// `blocks` blocks. `None`: it is not drawn, or there can be none.
    #[cold]
    pub(in crate::heap) fn draw_for_shared(size: usize, blocks: usize) -> Option<NonNull<u8>> {
        if sync::is_interrupted() || !guard_draw::draws_shared(blocks) {
            return None;
        }
        make(Request { size, align: 1, zero: false, origin: Origin::Malloc }, Draw::Drawn)
    }

    /// Looks, for the hardened heap, whether what a call says of a guarded block is so. Nothing is done with other blocks.
    pub(in crate::heap) fn compare(address: usize, what: Return) {
        if let Some(Made { origin, align, size }) = guards::made(address) {
            hardened::compare_guarded(origin, align, size, address, what);
        }
    }

    /// Frees a guarded block. What is wrong with it is reported, and ends the process.
    ///
    /// # Safety
    ///
    /// [`has`]; if the block is in use, nobody uses it afterwards.
    #[cold]
    pub(in crate::heap) unsafe fn free(call: Call, block: *mut u8) {
        if sync::is_interrupted() {
            put_off(block);
            return;
        }
        settle();
        // SAFETY: if the block is in use, nobody uses it afterwards, as the caller promises.
        unsafe { guards::free(block, plain(call)) };
    }

    /// The bytes that were asked for of a guarded block. What is no block in use is reported, and ends the process.
    #[cold]
    #[inline(never)]
    pub(in crate::heap) fn size(call: Call, block: *const u8) -> usize {
        guards::size(block, plain(call))
    }

    /// A call that says nothing but the block: what else it may know is not judged, as in the rest of fast mode.
    const fn plain(call: Call) -> Return {
        Return::new(call, Origin::Malloc, None, None)
    }

    /// Moves a guarded block to a new one of any kind. Null: there is no memory, and the old one is as it was.
    ///
    /// # Safety
    ///
    /// As `realloc`; [`has`].
    #[cold]
    pub(in crate::heap) unsafe fn realloc<const FROM: u8>(
        block: *mut u8,
        size: usize,
        align: usize,
    ) -> *mut u8 {
        let old = self::size(Call::Realloc, block);
        // (By the same maker: what is given back is compared with it.)
        let new = super::super::malloc_aligned_for::<FROM>(size, align);
        if !new.is_null() {
            // SAFETY: both blocks have as many bytes, and the new one is ours alone.
            unsafe { ptr::copy_nonoverlapping(block, new, old.min(size)) };
            // SAFETY: the old block is in use, or its size would have ended the process; nobody uses it afterwards, as the
            // caller promises.
            unsafe { free(Call::Realloc, block) };
        }
        new
    }

    fn put_off(block: *mut u8) {
        for place in &PUT_OFF {
            let null = ptr::null_mut();
            if place.compare_exchange(null, block, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                HAS_PUT_OFF.store(true, Ordering::Release);
                return;
            }
        }
    }

    /// Frees what was put off.
    fn settle() {
        if !HAS_PUT_OFF.load(Ordering::Relaxed) || !HAS_PUT_OFF.swap(false, Ordering::Acquire) {
            return;
        }
        for place in &PUT_OFF {
            let block = place.swap(ptr::null_mut(), Ordering::Acquire);
            if !block.is_null() {
                // SAFETY: a guarded block, which was given away.
                unsafe { guards::free(block, plain(Call::Free)) };
            }
        }
    }
}

#[cfg(not(feature = "debug"))]
mod without_stacks {
    use core::ptr::NonNull;

    use crate::misuse::Call;

    pub(in crate::heap) fn draw_for_hardened(
        _request: crate::request::Request,
        _blocks: usize,
    ) -> Option<NonNull<u8>> {
        None
    }

    #[inline(always)]
    pub(in crate::heap) fn draw_for_shared(_size: usize, _blocks: usize) -> Option<NonNull<u8>> {
        None
    }

    #[inline(always)]
    pub(in crate::heap) fn compare(_address: usize, _what: crate::request::Return) {}

    #[inline(always)]
    pub(in crate::heap) fn has(_address: usize) -> bool {
        false
    }

    /// # Safety
    ///
    /// Never called: no block is guarded.
    pub(in crate::heap) unsafe fn free(_call: Call, _block: *mut u8) {}

    /// # Safety
    ///
    /// Never called: no block is guarded.
    pub(in crate::heap) unsafe fn realloc<const FROM: u8>(
        _block: *mut u8,
        _size: usize,
        _align: usize,
    ) -> *mut u8 {
        core::ptr::null_mut()
    }

    pub(in crate::heap) fn size(_call: Call, _block: *const u8) -> usize {
        0
    }
}
