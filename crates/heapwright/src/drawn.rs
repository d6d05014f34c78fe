//! Drawn blocks: the samples of a heap profile, and blocks that stand between guards
//! (`guard=sample`).
//!
//! ```text
//!   a thread's own cache    tells when one is due  (`cache::sampling`, `cache::guard_draw`) --+
//!   a cache that is shared  its refills and calls are counted  -------------------------------+
//!   a first-class heap      each call is counted; its sample stays in that heap               |
//!                                                                                             v
//!   a sample          of the samples' heap, which is a first-class one; its record: `samples`
//!   a guarded block   of the heap of guarded blocks, with its records: `debug::guards`
//! ```
//!
//! The entry of a block's unit tells whether the block may be drawn. Each `free` of a drawn block
//! takes the slow path of remote frees, so other frees look nothing up.
//!
//! A signal handler that interrupted its thread in a slow operation draws no block, nor does a
//! thread that holds all locks for a fork. If such a handler frees a drawn block, the free is *put
//! off* until the next drawn block is made or freed.
//!
//! The hardened heap asks for guarded blocks when it refills a thread's ring, or serves a grouped
//! request. In a build without the feature `debug` there are no stacks, and nothing is ever drawn.
//! Called by `heap`, where `modes` decides which call gets a drawn block, and by `profile`,
//! `status` and `limit`, which begin or end sampling.

#[cfg(feature = "debug")]
pub(crate) use with_stacks::*;
#[cfg(not(feature = "debug"))]
pub(crate) use without_stacks::*;

#[inline(always)]
pub(crate) fn is_watched() -> bool {
    cfg!(feature = "debug") && crate::cache::draw::is_watched()
}

#[inline(always)]
pub(crate) fn is_sampling() -> bool {
    cfg!(feature = "debug") && crate::cache::draw::period() != 0
}

#[inline(always)]
pub(crate) fn is_guarding() -> bool {
    cfg!(feature = "debug") && crate::cache::draw::rate() != 0
}

#[cfg(feature = "debug")]
mod with_stacks {
    use core::ptr::{self, NonNull};

    use super::is_sampling;
    use crate::address_map::{Kind, MAP};
    use crate::cache::draw::{self, Draw, Shared};
    use crate::cache::{CACHES, Cache, OwnCache, Use, large, magazines};
    use crate::debug::guards::{self, Made};
    use crate::hardened;
    use crate::memory_limit;
    use crate::misuse::Call;
    use crate::options::{self, GUARDS_PACED, Hardening, Options};
    use crate::remote::Block;
    use crate::request::{Origin, Request, Return};
    use crate::samples;
    use crate::size_class;
    use crate::sync;
    use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, Ordering};
    use crate::ticks;

    pub(crate) use guards::has;

    static HEAP: AtomicPtr<Cache> = AtomicPtr::new(ptr::null_mut());
    static OWNER: AtomicU32 = AtomicU32::new(0);
    static HEAPS_HAVE: AtomicBool = AtomicBool::new(false);
    /// Blocks whose frees were put off. While all places are taken, a further block is never freed.
    static PUT_OFF: [AtomicPtr<u8>; 64] = [const { AtomicPtr::new(ptr::null_mut()) }; 64];
    static HAS_PUT_OFF: AtomicBool = AtomicBool::new(false);

    pub(crate) static COUNTED: Shared = Shared::new();

    /// Starts guards as the options say. Call this before any thread has a cache.
    #[cold]
    pub(crate) fn start(options: &Options) {
        if options.guards != 0 {
            guards::start(options);
            crate::stacks::prepare();
            let every = (options.guards != GUARDS_PACED).then_some(options.guards);
            if options.hardening == Hardening::Off {
                draw::begin(every);
            } else {
                draw::begin_apart(every);
                // The hardened heap must manage with 4 KiB of stack.
                crate::stacks::spare_foreign_stacks();
            }
        }
    }

    #[cold]
    pub(crate) fn begun(options: &Options) {
        if options.sample == 0 {
            return;
        }
        if let Some(prefix) = options::profile_file() {
            samples::save_in(prefix.to_bytes());
        }
        BY.store(By::Program as u8, Ordering::Relaxed);
        crate::stacks::prepare();
        begin(options.sample);
    }

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[repr(u8)]
    pub(crate) enum By {
        /// The program, by its options or a call. No other party ends that profile.
        Program = 1,
        /// `heapwright profile PID`.
        Order = 2,
        /// A tracer that is attached to the probes.
        Tracer = 3,
    }

    static BY: AtomicU8 = AtomicU8::new(0);
    /// Whether the program began or ended a profile by a call. No tracer may then change that.
    static PROGRAM_DECIDES: AtomicBool = AtomicBool::new(false);

    pub(crate) fn samples_by(by: By) -> bool {
        is_sampling() && BY.load(Ordering::Relaxed) == by as u8
    }

    /// Calls [`begin`] if `is_possible`, and returns whether it did. Refuses a tracer if the
    /// program decides. Before the handlers of forks know the samples' lock, refuses all but the
    /// program.
    pub(crate) fn begin_if(is_possible: impl FnOnce() -> bool, period: usize, by: By) -> bool {
        match by {
            By::Program => PROGRAM_DECIDES.store(true, Ordering::Relaxed),
            By::Tracer if PROGRAM_DECIDES.load(Ordering::Relaxed) => return false,
            // `begin` would join the forks' handlers, and a tick must not wait for a fork.
            _ if !samples::has_joined() => return false,
            _ => {}
        }
        if is_possible() {
            BY.store(by as u8, Ordering::Relaxed);
            begin(period);
            return true;
        }
        false
    }

    /// Samples a block every `period` bytes, on average, from now on. The heap must have started.
    fn begin(period: usize) {
        // No sample is made meanwhile, because a sample would count by the new period.
        magazines::sample_every(0);
        samples::begin(period);
        COUNTED.begin(period);
        magazines::sample_every(period);
        sample_runs();
    }

    /// Ends sampling, because the program says so. Live samples stay known.
    pub(crate) fn end_sampling() {
        PROGRAM_DECIDES.store(true, Ordering::Relaxed);
        end_all();
    }

    pub(crate) fn end_sampling_by(on_behalf: By) {
        if samples_by(on_behalf) {
            end_all();
        }
    }

    fn end_all() {
        magazines::sample_every(0);
        sample_runs();
    }

    /// Samples runs of units if blocks are sampled, also if threads begin and end sampling at once.
    fn sample_runs() {
        loop {
            let are_blocks = is_sampling();
            samples::sample_runs(are_blocks);
            if are_blocks == is_sampling() {
                return;
            }
        }
    }

    /// Counts `bytes` for a call of the calling thread. Returns whether its block must be a sample.
    pub(crate) fn counts_out(bytes: usize) -> bool {
        COUNTED.counts_out_here(bytes, draw::period())
    }

    pub(crate) fn counted(request: Request) -> usize {
        request.class().map_or(request.size, size_class::size)
    }

    /// Returns a sample for a request, or `None` if none is possible now.
    pub(crate) fn sample(request: Request) -> Option<*mut u8> {
        if sync::is_interrupted() || sync::holds_all() {
            return None;
        }
        settle();
        let heap = heap()?;
        let order = heap.lock.lock();
        let block = large::allocate_from(heap, request);
        drop(order);
        if block.is_null() {
            return None;
        }
        samples::made(block, request.size, counted(request));
        // The heap may have grown while its lock was held.
        ticks::catch_up();
        Some(block)
    }

    fn heap() -> Option<&'static Cache> {
        // SAFETY: the pointer is null or a cache, which is never freed.
        if let Some(heap) = unsafe { HEAP.load(Ordering::Acquire).as_ref() } {
            return Some(heap);
        }
        // Another thread is making the heap.
        if OWNER.load(Ordering::Relaxed) != 0 {
            return None;
        }
        let heap = CACHES.make_new(|cache| cache.become_heap(Use::Samples))?;
        let made = ptr::from_ref(heap).cast_mut();
        // The id is set before any thread can have a block of this heap.
        match OWNER.compare_exchange(0, heap.id(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                HEAP.store(made, Ordering::Release);
                Some(heap)
            }
            // Another thread was faster; this heap is never used.
            Err(_) => None,
        }
    }

    /// # Safety
    ///
    /// The block is of `class` and the samples' heap, and in use.
    #[cold]
    pub(crate) unsafe fn free_slot(class: usize, block: *mut Block) {
        if sync::is_interrupted() {
            return put_off(block.cast());
        }
        settle();
        // SAFETY: the block is of `class` and the samples' heap, and in use.
        unsafe { free_settled(class, block) };
    }

    /// # Safety
    ///
    /// As [`free_slot`].
    unsafe fn free_settled(class: usize, block: *mut Block) {
        // The record goes first: after the free the address may be another block's.
        samples::freed(block.cast());
        if let Some(heap) = heap() {
            // SAFETY: the block is of the class and this heap, as the caller promises.
            unsafe { large::free_slot(heap, class, block) };
        }
    }

    /// Frees the large block at `unit`, a sample. Returns false if another thread freed it first.
    #[cold]
    pub(crate) fn free_large(unit: usize, heap: &Cache) -> bool {
        if sync::is_interrupted() {
            put_off(MAP.address_of(unit));
            return true;
        }
        settle();
        samples::freed(MAP.address_of(unit));
        large::free_of_heap(unit, heap)
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

    /// Frees the blocks whose frees were put off.
    fn settle() {
        if !HAS_PUT_OFF.load(Ordering::Relaxed) || !HAS_PUT_OFF.swap(false, Ordering::Acquire) {
            return;
        }
        for place in &PUT_OFF {
            let block = place.swap(ptr::null_mut(), Ordering::Acquire);
            if block.is_null() {
                continue;
            }
            let (unit, entry) = MAP.lookup(block.addr());
            match (MAP.kind_of(unit, entry), heap()) {
                // SAFETY: a slot of the samples' heap, whose free was put off, so it is in use.
                (Kind::Slab(class), _) => unsafe { free_settled(class, block.cast()) },
                (Kind::LargeHead, Some(heap)) => {
                    samples::freed(block);
                    _ = large::free_of_heap(unit, heap);
                }
                // SAFETY: a guarded block that the program has given up.
                _ => unsafe { guards::free(block, Return::PLAIN) },
            }
        }
    }

    /// Notes a new block of a first-class heap, or null.
    #[inline]
    pub(crate) fn note_made(block: *mut u8, request: Request) {
        if is_sampling()
            && !block.is_null()
            && counts_out(counted(request))
            && !sync::is_interrupted()
        {
            HEAPS_HAVE.store(true, Ordering::Relaxed);
            samples::made(block, request.size, counted(request));
        }
    }

    /// Notes the coming free of a block of `owner`, a first-class heap or the samples' heap.
    #[inline]
    pub(crate) fn note_freed(owner: u32, block: *mut u8) {
        if (OWNER.load(Ordering::Relaxed) == owner || HEAPS_HAVE.load(Ordering::Relaxed))
            && !sync::is_interrupted()
        {
            samples::freed(block);
        }
    }

    /// Notes the resize in place of a block of `owner`, a first-class heap or the samples' heap.
    #[inline]
    pub(crate) fn note_resized(owner: u32, block: *mut u8, size: usize) {
        let is_heap = || CACHES.get(owner).is_some_and(Cache::is_heap);
        let is_sample = owner == OWNER.load(Ordering::Relaxed);
        let may_be_one = is_sample || HEAPS_HAVE.load(Ordering::Relaxed) && is_heap();
        if may_be_one && !sync::is_interrupted() {
            samples::resized(block, size);
        }
    }

    /// Notes that the large block at `unit`, of no heap, has grown. It may become a sample.
    #[cold]
    pub(crate) fn note_grown(
        unit: usize,
        block: *mut u8,
        size: usize,
        by: usize,
        cache: Option<OwnCache>,
    ) {
        let is_sample = match cache {
            Some(cache) => {
                let _order = cache.enter();
                cache.sampling.is_on() && !cache.sampling.count(by)
            }
            None => counts_out(by),
        };
        if !is_sample || sync::is_interrupted() || sync::holds_all() {
            return;
        }
        let Some(heap) = heap() else { return };
        let order = heap.lock.lock();
        large::join_heap(unit, heap);
        drop(order);
        samples::made(block, size, size);
    }

    /// Takes out the sample of a block that may move, of a first-class heap or the samples' heap.
    pub(crate) fn take(block: *mut u8) -> Option<samples::Moving> {
        let may_be_one = OWNER.load(Ordering::Relaxed) != 0 || HEAPS_HAVE.load(Ordering::Relaxed);
        if may_be_one && !sync::is_interrupted() { samples::take(block) } else { None }
    }

    pub(crate) fn put_back(sample: Option<samples::Moving>, block: *mut u8, size: Option<usize>) {
        if let Some(sample) = sample {
            samples::put_back(sample, block, size);
        }
    }

    pub(crate) fn note_destroyed(owner: u32) {
        if HEAPS_HAVE.load(Ordering::Relaxed) {
            samples::forget(|address| owner_at(address) == owner);
        }
    }

    fn owner_at(address: usize) -> u32 {
        let (unit, entry) = MAP.lookup(address);
        match MAP.kind_of(unit, entry) {
            Kind::Slab(_) => entry.owner(),
            Kind::LargeHead => MAP.record(unit).heap.load(Ordering::Relaxed),
            _ => 0,
        }
    }

    /// Returns a guarded block, if one is drawn, for a hardened refill by about `blocks` blocks.
    #[cold]
    pub(crate) fn draw_for_hardened(request: Request, blocks: usize) -> Option<NonNull<u8>> {
        let draw = draw::draws_apart(blocks)?;
        let block = make_guarded(request, draw);
        if draw == Draw::IfNew {
            draw::looked_apart(block.is_some());
        }
        block
    }

    /// Returns a block between guards. Returns `None` without memory, if too many are live, or if
    /// the request is too large. Also returns `None` if the stack must be new and is not, or if the
    /// caller must not wait.
    pub(crate) fn make_guarded(request: Request, draw: Draw) -> Option<NonNull<u8>> {
        if sync::is_interrupted() || sync::holds_all() || memory_limit::is_in_sandbox() {
            return None;
        }
        settle();
        let block = guards::sample(request, draw)?;
        // Memory may have been taken while locks were held.
        ticks::catch_up();
        Some(block)
    }

    /// Serves a request with the guarded block that is due in a thread's own cache. If none can be
    /// made, the next refill skips the draw.
    #[cold]
    pub(crate) fn make_pending(request: Request, cache: OwnCache) -> Option<NonNull<u8>> {
        let draw = &cache.guard_draw;
        let why = draw.take_pending()?;
        let block = make_guarded(request, why);
        if why == Draw::IfNew {
            draw.looked(block.is_some());
        }
        draw.skip(block.is_none());
        block
    }

    /// Returns a guarded block, if one is drawn, for a shared cache's refill by `blocks` blocks.
    #[cold]
    pub(crate) fn draw_for_shared(size: usize, blocks: usize) -> Option<NonNull<u8>> {
        if sync::is_interrupted() || !draw::draws_shared(blocks) {
            return None;
        }
        make_guarded(Request { size, align: 1, zero: false, origin: Origin::Malloc }, Draw::Drawn)
    }

    /// Checks, for the hardened heap, the claims of a call about a guarded block.
    pub(crate) fn compare(address: usize, what: Return) {
        if let Some(Made { origin, align, size }) = guards::made(address) {
            hardened::compare_guarded(origin, align, size, address, what);
        }
    }

    /// Frees a guarded block. Misuse is reported, and may end the process.
    ///
    /// # Safety
    ///
    /// [`has`] is true of the block. If the block is in use, no code uses it afterwards.
    #[cold]
    pub(crate) unsafe fn free_guarded(call: Call, block: *mut u8) {
        if sync::is_interrupted() {
            return put_off(block);
        }
        settle();
        // SAFETY: if the block is in use, it is not used afterwards, as the caller promises.
        unsafe { guards::free(block, plain(call)) };
    }

    /// Returns the bytes requested for a guarded block. Reports a pointer to no block in use.
    #[cold]
    #[inline(never)]
    pub(crate) fn size_of_guarded(call: Call, block: *const u8) -> usize {
        guards::size(block, plain(call))
    }

    /// Fast mode checks no claims of calls, so the call names only the block.
    const fn plain(call: Call) -> Return {
        Return::new(call, Origin::Malloc, None, None)
    }
}

#[cfg(not(feature = "debug"))]
mod without_stacks {
    use core::ptr::NonNull;

    use crate::cache::{Cache, OwnCache};
    use crate::misuse::Call;
    use crate::remote::Block;
    use crate::request::{Request, Return};

    pub(crate) fn draw_for_hardened(_request: Request, _blocks: usize) -> Option<NonNull<u8>> {
        None
    }

    #[inline(always)]
    pub(crate) fn draw_for_shared(_size: usize, _blocks: usize) -> Option<NonNull<u8>> {
        None
    }

    #[inline(always)]
    pub(crate) fn compare(_address: usize, _what: Return) {}

    #[inline(always)]
    pub(crate) fn has(_address: usize) -> bool {
        false
    }

    /// # Safety
    ///
    /// Never called: no block is guarded.
    pub(crate) unsafe fn free_guarded(_call: Call, _block: *mut u8) {}

    pub(crate) fn size_of_guarded(_call: Call, _block: *const u8) -> usize {
        0
    }

    /// # Safety
    ///
    /// Never called: no heap is the samples'.
    pub(crate) unsafe fn free_slot(_class: usize, _block: *mut Block) {}

    pub(crate) fn free_large(_unit: usize, _heap: &Cache) -> bool {
        false
    }

    #[inline(always)]
    pub(crate) fn note_made(_block: *mut u8, _request: Request) {}

    #[inline(always)]
    pub(crate) fn note_freed(_owner: u32, _block: *mut u8) {}

    #[inline(always)]
    pub(crate) fn note_resized(_owner: u32, _block: *mut u8, _size: usize) {}

    #[inline(always)]
    pub(crate) fn note_grown(
        _unit: usize,
        _block: *mut u8,
        _size: usize,
        _by: usize,
        _cache: Option<OwnCache>,
    ) {
    }

    #[inline(always)]
    pub(crate) fn take(_block: *mut u8) -> Option<()> {
        None
    }

    #[inline(always)]
    pub(crate) fn put_back(_sample: Option<()>, _block: *mut u8, _size: Option<usize>) {}

    #[inline(always)]
    pub(crate) fn note_destroyed(_owner: u32) {}
}
