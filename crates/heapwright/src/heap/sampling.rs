//! Sampling: where the heap makes samples for a heap profile, and reports their frees.
//!
//! ```text
//!   a thread's own cache    says when a sample is due                    (`cache::sampling`)  --+
//!   a cache that is shared  each call comes here, and is counted  ------------------------------+--> sample
//!   a first-class heap      each call is counted; its sample stays in that heap                 |
//!                                                                                               v
//!   the block: from the samples' heap, a first-class heap of its own             its record: `samples`
//! ```
//!
//! A sample is known by its owner: samples have slabs and large blocks of their own, so each `free` of one, by any
//! thread, takes the slow path of first-class heaps' blocks, and other frees look nothing up.
//!
//! A signal handler that interrupted its thread in a slow operation makes no sample. A sample that it frees is *put
//! off*: linked into a list, and freed with the next sample that is made or freed.
//!
//! In a build without the feature `debug` there are no stacks, and nothing is ever sampled.
//!
//! Called by `door`, `resize` and `first_class`.

use crate::request::{Origin, Request};

#[cfg(feature = "debug")]
pub(super) use with_stacks::begun;
#[cfg(feature = "debug")]
pub(crate) use with_stacks::{By, begin_if_possible, by, end, end_if};
#[cfg(feature = "debug")]
pub(super) use with_stacks::{
    allocate, allocate_by_cpu, allocate_shared, free_slot, is_owner, note_destroyed, note_freed,
    note_grown, note_made, note_resized, put_back, puts_off, serve_watched, take,
};
#[cfg(not(feature = "debug"))]
pub(super) use without_stacks::{
    allocate, allocate_by_cpu, allocate_shared, free_slot, is_owner, note_destroyed, note_freed,
    note_grown, note_made, note_resized, put_back, puts_off, serve_watched, take,
};

/// Whether some calls are looked at, to be sampled or served with a guarded block.
#[inline(always)]
pub(super) fn is_watched() -> bool {
    cfg!(feature = "debug") && crate::cache::sampling::is_watched()
}

/// Whether blocks are sampled.
#[inline(always)]
pub(super) fn is_on() -> bool {
    cfg!(feature = "debug") && crate::cache::sampling::period() != 0
}

#[cfg(feature = "debug")]
mod with_stacks {
    use core::ptr;

    use super::super::door::{self, Found};
    use super::super::start::Mine;
    use super::super::{first_class, foreign, guards, large, per_cpu, shared, start};
    use super::{Origin, Request, is_on};
    use crate::address_map::{Kind, MAP};
    use crate::cache::arrays::Gate;
    use crate::cache::{CACHES, Cache, Hot, OwnCache, Use, magazines, sampling};
    use crate::hooks;
    use crate::misuse::Call;
    use crate::options::{self, Options};
    use crate::os;
    use crate::poisson;
    use crate::remote::Block;
    use crate::samples;
    use crate::size_class;
    use crate::sync;
    use crate::sync::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering,
    };
    use crate::ticks;

    /// The heap that samples are in, and its id: no cache has 0.
    static HEAP: AtomicPtr<Cache> = AtomicPtr::new(ptr::null_mut());
    static OWNER: AtomicU32 = AtomicU32::new(0);
    /// Whether first-class heaps have samples.
    static HEAPS_HAVE: AtomicBool = AtomicBool::new(false);
    /// Samples whose frees were put off.
    static PUT_OFF: AtomicPtr<Block> = AtomicPtr::new(ptr::null_mut());

    /// Counts the bytes of calls that are counted one by one: one for a CPU, or for some of the shared caches or threads, so that
    /// few threads use one at a time.
    #[repr(align(64))]
    struct Counter {
        left: AtomicI64,
        random: AtomicU64,
    }
    const COUNTERS: usize = 64;
    static COUNTED: [Counter; COUNTERS] =
        [const { Counter { left: AtomicI64::new(0), random: AtomicU64::new(0) } }; COUNTERS];

    /// Does what the options say. The heap has started, and the caller holds no lock.
    #[cold]
    pub(in crate::heap) fn begun(options: &Options) {
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

    /// On whose behalf blocks are sampled.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[repr(u8)]
    pub(crate) enum By {
        /// The program's own, by the options or by a call: nobody else ends that.
        Program = 1,
        /// `heapwright profile PID`.
        Order = 2,
        /// A tracer that is attached to the probes.
        Tracer = 3,
    }

    static BY: AtomicU8 = AtomicU8::new(0);
    /// Whether the program has begun or ended a profile by a call: then no tracer begins one, which would forget what that has.
    static PROGRAM_DECIDES: AtomicBool = AtomicBool::new(false);

    /// Whether blocks are sampled on this behalf.
    pub(crate) fn by(by: By) -> bool {
        is_on() && BY.load(Ordering::Relaxed) == by as u8
    }

    /// [`begin`], if the heap can be started and `malloc` is its own. False: it cannot, or the program decides.
    pub(crate) fn begin_if_possible(period: usize, by: By) -> bool {
        match by {
            By::Program => PROGRAM_DECIDES.store(true, Ordering::Relaxed),
            By::Tracer if PROGRAM_DECIDES.load(Ordering::Relaxed) => return false,
            // A tick must not wait for a fork to learn of the samples' lock.
            _ if !samples::has_joined() => return false,
            _ => {}
        }
        let has_started = !matches!(start::mine(), Mine::Nothing);
        let is_ours = foreign::peer().is_none() && !hooks::is_debugging();
        if has_started && is_ours {
            BY.store(by as u8, Ordering::Relaxed);
            begin(period);
        }
        has_started && is_ours
    }

    /// Samples a block every `period` bytes, on average, from now on. The heap has started.
    fn begin(period: usize) {
        // None is made meanwhile: it would count by the new distance.
        sampling::set_period(0);
        samples::begin(period);
        for counter in &COUNTED {
            counter.draw(period);
        }
        sampling::set_period(period);
        sample_runs();
    }

    /// Makes no samples from now on, because the program says so. Those that are live stay known.
    pub(crate) fn end() {
        PROGRAM_DECIDES.store(true, Ordering::Relaxed);
        end_all();
    }

    /// Makes no samples from now on, if they are made on this behalf.
    pub(crate) fn end_if(on_behalf: By) {
        if by(on_behalf) {
            end_all();
        }
    }

    fn end_all() {
        sampling::set_period(0);
        sample_runs();
    }

    /// Has runs of units sampled if blocks are. One thread may begin while another one ends: what was set last counts for both.
    fn sample_runs() {
        loop {
            let are_blocks = is_on();
            samples::sample_runs(are_blocks);
            if are_blocks == is_on() {
                return;
            }
        }
    }

    impl Counter {
        fn draw(&self, period: usize) {
            let mut random = self.random.load(Ordering::Relaxed);
            if random == 0 {
                random = os::now_ns().rotate_left(32) ^ ptr::from_ref(self).addr() as u64 | 1;
            }
            self.left.store(poisson::distance(&mut random, period) as i64, Ordering::Relaxed);
            self.random.store(random, Ordering::Relaxed);
        }

        /// Counts a block of `size` bytes. False: it is to be a sample.
        #[inline(always)]
        fn count(&self, size: usize) -> bool {
            // What another thread counts just now may be lost, which is seldom, and no block's fault.
            let left = self.left.load(Ordering::Relaxed);
            if left > size as i64 {
                self.left.store(left - size as i64, Ordering::Relaxed);
                return true;
            }
            self.draw(sampling::period().max(1));
            false
        }
    }

    fn counter() -> &'static Counter {
        let token = os::thread_token() as u64;
        &COUNTED[(token.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % COUNTERS]
    }

    /// Bytes that a request counts for.
    fn counted(request: Request) -> usize {
        request.class().map_or(request.size, size_class::size)
    }

    /// Serves a request of the calling thread's: with a sample, if it is to be one. Null: there is no memory.
    #[cold]
    #[inline(never)]
    pub(in crate::heap) fn allocate(
        size: usize,
        align: usize,
        zero: bool,
        origin: Origin,
    ) -> *mut u8 {
        // In registers up to here, so that a call that is not sampled need not store it.
        let request = Request { size, align, zero, origin };
        if size > isize::MAX as usize || align > isize::MAX as usize {
            return door::done(request, ptr::null_mut());
        }
        door::done(request, serve(request, start::mine()))
    }

    /// Serves a request for which the thread's own cache has given nothing, perhaps because a guarded block or a sample was
    /// due. Null: there is no memory.
    #[cold]
    #[inline(never)]
    pub(in crate::heap) fn serve_watched(request: Request, cache: OwnCache) -> *mut u8 {
        match guards::make_pending(request, cache) {
            Some(block) => block.as_ptr(),
            None => allocate_unsampled(request, cache),
        }
    }

    /// Serves a request from the thread's own cache without a sample, whatever is due. Null: there is no memory.
    #[cold]
    #[inline(never)]
    fn allocate_unsampled(request: Request, cache: OwnCache) -> *mut u8 {
        let _order = cache.enter();
        cache.pause_sampling();
        cache.guard_draw.skip(true);
        let block = door::allocate_from(cache.get(), request);
        cache.guard_draw.skip(false);
        block
    }

    #[inline(never)]
    fn uncounted(request: Request, mine: Mine) -> *mut u8 {
        door::allocate_from_mine(request, mine)
    }

    fn serve(request: Request, mine: Mine) -> *mut u8 {
        if !is_on() {
            // Then it is for the guards.
            return guards::serve(request, mine);
        }
        if let Some(block) = guards::draw_large(request, mine) {
            return block.as_ptr();
        }
        let mut is_sample = match mine {
            // What is due stays so for the next call.
            Mine::Cache(cache) if cache.guard_draw.is_pending() => false,
            Mine::Cache(cache) => {
                let _order = cache.enter();
                if cache.is_asked_to_follow_sampling() {
                    cache.follow_sampling();
                }
                match request.class() {
                    _ if !cache.sampling.is_on() => false,
                    Some(class) => cache.take_due(class),
                    None => !cache.sampling.count(request.size),
                }
            }
            _ => !counter().count(counted(request)),
        };
        loop {
            if let Mine::Cache(cache) = mine
                && let Some(block) = guards::make_pending(request, cache)
            {
                return block.as_ptr();
            }
            if is_sample {
                if let Some(block) = sample(request) {
                    return block;
                }
                // There can be none just now, and none may be due.
                if let Mine::Cache(cache) = mine {
                    return allocate_unsampled(request, cache);
                }
            }
            let block = uncounted(request, mine);
            if !block.is_null() {
                return block;
            }
            // There is no memory, or a sample became due while the list was filled.
            let (Mine::Cache(cache), Some(class)) = (mine, request.class()) else { return block };
            let _order = cache.enter();
            is_sample = cache.take_due(class);
            if !is_sample && !cache.guard_draw.is_pending() {
                return block;
            }
        }
    }

    /// Serves a request by its CPU's arrays, whose list is at `offset`, and counts it.
    pub(in crate::heap) fn allocate_by_cpu(
        request: Request,
        gate: &Gate,
        offset: usize,
    ) -> *mut u8 {
        if !is_on() || COUNTED[gate.cpu() % COUNTERS].count(counted(request)) {
            return per_cpu::malloc(request.size, gate, offset);
        }
        sample(request).unwrap_or_else(|| per_cpu::malloc(request.size, gate, offset))
    }

    /// Serves a request by the shared cache behind `hot`, whose list is at `offset`, and counts it.
    pub(in crate::heap) fn allocate_shared(request: Request, hot: &Hot, offset: usize) -> *mut u8 {
        let counter = &COUNTED[magazines::of(hot).number() % COUNTERS];
        if !is_on() || counter.count(counted(request)) {
            return shared::missed(request.size, hot, offset);
        }
        sample(request).unwrap_or_else(|| shared::missed(request.size, hot, offset))
    }

    /// A sample for a request. `None`: there can be none just now.
    fn sample(request: Request) -> Option<*mut u8> {
        if sync::is_interrupted() || sync::holds_all() {
            return None;
        }
        settle();
        let heap = heap()?;
        let order = heap.lock.lock();
        let block = door::allocate_from(heap, request);
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
        // SAFETY: null, or a cache, which is never freed.
        if let Some(heap) = unsafe { HEAP.load(Ordering::Acquire).as_ref() } {
            return Some(heap);
        }
        // Another thread makes it just now.
        if OWNER.load(Ordering::Relaxed) != 0 {
            return None;
        }
        let heap = CACHES.make_new(Cache::become_heap)?;
        let made = ptr::from_ref(heap).cast_mut();
        // Before anyone can have a block of it.
        match OWNER.compare_exchange(0, heap.id(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                HEAP.store(made, Ordering::Release);
                Some(heap)
            }
            // Another thread was faster: this one is never used.
            Err(_) => None,
        }
    }

    /// Whether the owner with that id is the samples' heap.
    #[inline(always)]
    pub(in crate::heap) fn is_owner(owner: u32) -> bool {
        owner != 0 && owner == OWNER.load(Ordering::Relaxed)
    }

    /// Frees a slot of the samples' heap.
    ///
    /// # Safety
    ///
    /// The block is of `class` and that heap, and in use.
    #[cold]
    pub(in crate::heap) unsafe fn free_slot(class: usize, block: *mut Block) {
        if sync::is_interrupted() {
            put_off(block);
            return;
        }
        settle();
        // SAFETY: as the caller promises.
        unsafe { free_settled(class, block) };
    }

    /// # Safety
    ///
    /// As [`free_slot`].
    unsafe fn free_settled(class: usize, block: *mut Block) {
        // First: its address is another block's from then on.
        samples::freed(block.cast());
        if let Some(heap) = heap() {
            // SAFETY: the block is of the class and this heap, as the caller promises.
            unsafe { first_class::free_slot(heap, class, block) };
        }
    }

    /// Puts a free of the large block at `unit`, a sample, off, if it must. False: the caller frees it.
    #[cold]
    pub(in crate::heap) fn puts_off(unit: usize) -> bool {
        if !sync::is_interrupted() {
            settle();
            return false;
        }
        put_off(MAP.address_of(unit).cast());
        true
    }

    fn put_off(block: *mut Block) {
        let mut next = PUT_OFF.load(Ordering::Relaxed);
        loop {
            // SAFETY: a block that the caller gives away.
            unsafe { Block::set_next(block, next) };
            match PUT_OFF.compare_exchange_weak(next, block, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => next = now,
            }
        }
    }

    /// Frees what was put off.
    fn settle() {
        if PUT_OFF.load(Ordering::Relaxed).is_null() {
            return;
        }
        let mut block = PUT_OFF.swap(ptr::null_mut(), Ordering::Acquire);
        while !block.is_null() {
            // SAFETY: a free block, which its freeing thread gave away.
            let next = unsafe { Block::next(block) };
            match door::find(Call::Free, block.addr()) {
                // SAFETY: a slot of the samples' heap, given away.
                Found::Slot { class, .. } => unsafe { free_settled(class, block) },
                // It was counted and traced when it was put off.
                Found::Large { unit } => _ = door::free_large(unit),
                Found::Foreign => {}
            }
            block = next;
        }
    }

    /// A block of a first-class heap was handed out, or none, if it is null.
    #[inline]
    pub(in crate::heap) fn note_made(block: *mut u8, request: Request) {
        if is_on()
            && !block.is_null()
            && !counter().count(counted(request))
            && !sync::is_interrupted()
        {
            HEAPS_HAVE.store(true, Ordering::Relaxed);
            samples::made(block, request.size, counted(request));
        }
    }

    /// A block of `owner`, a first-class heap, is about to be freed, or a large sample.
    #[inline]
    pub(in crate::heap) fn note_freed(owner: u32, block: *mut u8) {
        if (is_owner(owner) || HEAPS_HAVE.load(Ordering::Relaxed)) && !sync::is_interrupted() {
            samples::freed(block);
        }
    }

    /// A block of `owner`, a first-class heap or the samples', has another size now, where it is.
    #[inline]
    pub(in crate::heap) fn note_resized(owner: u32, block: *mut u8, size: usize) {
        let is_heap = || CACHES.get(owner).is_some_and(|heap| heap.owned_by() == Use::Heap);
        let may_be_one = is_owner(owner) || HEAPS_HAVE.load(Ordering::Relaxed) && is_heap();
        if may_be_one && !sync::is_interrupted() {
            samples::resized(block, size);
        }
    }

    /// The large block at `unit`, of no heap, has grown by so many bytes to `size`: it may be a sample from now on.
    #[cold]
    pub(in crate::heap) fn note_grown(unit: usize, block: *mut u8, size: usize, by: usize) {
        let is_sample = match start::mine() {
            Mine::Cache(cache) => {
                let _order = cache.enter();
                cache.sampling.is_on() && !cache.sampling.count(by)
            }
            _ => !counter().count(by),
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

    /// Takes a sample out whose block, of a first-class heap or the samples', may change its place.
    pub(in crate::heap) fn take(block: *mut u8) -> Option<samples::Moving> {
        let may_be_one = OWNER.load(Ordering::Relaxed) != 0 || HEAPS_HAVE.load(Ordering::Relaxed);
        if may_be_one && !sync::is_interrupted() { samples::take(block) } else { None }
    }

    /// Puts it back, where its block is now, with another size or without.
    pub(in crate::heap) fn put_back(
        sample: Option<samples::Moving>,
        block: *mut u8,
        size: Option<usize>,
    ) {
        if let Some(sample) = sample {
            samples::put_back(sample, block, size);
        }
    }

    /// A first-class heap is about to be destroyed.
    pub(in crate::heap) fn note_destroyed(owner: u32) {
        if HEAPS_HAVE.load(Ordering::Relaxed) {
            samples::forget(|address| owner_at(address) == owner);
        }
    }

    /// The owner of the block that begins at `address`.
    fn owner_at(address: usize) -> u32 {
        let (unit, entry) = MAP.lookup(address);
        match MAP.kind_of(unit, entry) {
            Kind::Slab(_) => entry.owner(),
            Kind::LargeHead => MAP.record(unit).heap.load(Ordering::Relaxed),
            _ => 0,
        }
    }
}

#[cfg(not(feature = "debug"))]
mod without_stacks {
    use super::super::{per_cpu, shared};
    use super::{Origin, Request};
    use crate::cache::arrays::Gate;
    use crate::cache::{Hot, OwnCache};
    use crate::remote::Block;

    pub(in crate::heap) fn allocate(
        _size: usize,
        _align: usize,
        _zero: bool,
        _origin: Origin,
    ) -> *mut u8 {
        core::ptr::null_mut()
    }

    pub(in crate::heap) fn serve_watched(_request: Request, _cache: OwnCache) -> *mut u8 {
        core::ptr::null_mut()
    }

    /// The heads of a gate's lists are never null here but for a moment, if at all.
    pub(in crate::heap) fn allocate_by_cpu(
        request: Request,
        gate: &Gate,
        offset: usize,
    ) -> *mut u8 {
        per_cpu::malloc(request.size, gate, offset)
    }

    pub(in crate::heap) fn allocate_shared(request: Request, hot: &Hot, offset: usize) -> *mut u8 {
        shared::missed(request.size, hot, offset)
    }

    #[inline(always)]
    pub(in crate::heap) fn is_owner(_owner: u32) -> bool {
        false
    }

    /// # Safety
    ///
    /// Never called: no owner is the samples'.
    pub(in crate::heap) unsafe fn free_slot(_class: usize, _block: *mut Block) {}

    pub(in crate::heap) fn puts_off(_unit: usize) -> bool {
        false
    }

    #[inline(always)]
    pub(in crate::heap) fn note_made(_block: *mut u8, _request: Request) {}

    #[inline(always)]
    pub(in crate::heap) fn note_freed(_owner: u32, _block: *mut u8) {}

    #[inline(always)]
    pub(in crate::heap) fn note_resized(_owner: u32, _block: *mut u8, _size: usize) {}

    #[inline(always)]
    pub(in crate::heap) fn note_grown(_unit: usize, _block: *mut u8, _size: usize, _by: usize) {}

    #[inline(always)]
    pub(in crate::heap) fn take(_block: *mut u8) -> Option<()> {
        None
    }

    #[inline(always)]
    pub(in crate::heap) fn put_back(_sample: Option<()>, _block: *mut u8, _size: Option<usize>) {}

    #[inline(always)]
    pub(in crate::heap) fn note_destroyed(_owner: u32) {}
}
