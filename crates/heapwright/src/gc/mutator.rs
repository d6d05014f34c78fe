//! A mutator: a thread's way into one heap, and how it allocates.
//!
//! ```text
//!   public   poll | barrier | heap | regions: 256 x { next, end, slot, page } | table
//!   private  handshake | tracer | which regions are in use | handles | stack | ...
//!
//!   region   page  | object | object | object | free ...... |  taken  | free | ...
//!                                             ^ next        ^ end      the next stretch
//! ```
//!
//! A mutator has a region for every page list: a stretch of free slots, zeroed if its objects
//! are traced, of at most 8 KiB, so that it is in the nearest cache when it is used.
//! Allocating moves `next`. When it meets `end`, the next stretch of the page becomes the
//! region; when the page is at its end, another is claimed (`acquire`), and only then a lock
//! is taken. The first two lines of the picture are the C interface's; see `heapwright_gc.h`.
//!
//! The order in which a page is looked for is the policy of the heap:
//!
//! ```text
//!   1  swept, with free slots     2  sweep some of the page list's, claim the first with a free slot
//!   3  the empty pages                   4  a new page, as far as the goal or the pool's grant goes
//!   5  on credit, while the pool's sweep is under way; the free slots of a larger pool
//!   6  a collection, if enough was allocated since the last     7  a new page, up to the limit
//! ```
//!
//! Each page that is claimed is paid for: a little sweeping of every pool, and, while the
//! heap marks, marking.

use core::ptr;

use crate::ids::{Recycled, Slot};
use crate::size_class::UNIT;
use crate::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use super::cell::{Num, Ptr};
use super::cycle::Phase;
use super::growth;
use super::handles;
use super::heap::Heap;
use super::layout::{self, KINDS, LARGE, PAGE_LISTS, REGION_BYTES, STEPS};
use super::page::{self, Evacuation, Page};
use super::raw::Sweep;
use super::region::Region;
use super::tracer::{self, Tracer};
use super::world::Handshake;

/// Bytes of a region.
const REGION: usize = 8 << 10;
/// Collections before an allocation is refused: what one of them frees other mutators may
/// take first.
const ATTEMPTS: usize = 4;
/// Bytes elsewhere that are paid for together.
const OWES: usize = 256 << 10;
/// Pages of its own page list that a mutator sweeps before it looks elsewhere.
const OWN_SWEEPS: usize = 16;

const _: () = assert!(size_of::<Region>() == REGION_BYTES);

/// A thread's way into a heap. Zero is nobody's.
#[repr(C)]
pub(super) struct Mutator {
    pub(super) poll: AtomicU32,
    pub(super) barrier: AtomicU32,
    pub(super) heap: Ptr<Heap>,
    pub(super) regions: [Region; PAGE_LISTS],
    pub(super) places: [AtomicU16; STEPS],
    /// Where the marks would be of address 0: a bit for 16 bytes.
    pub(super) marks: Ptr<u8>,

    pub(super) handshake: Handshake,
    pub(super) tracer: Tracer,
    /// Page lists whose region is in use, as bits.
    used: [Num; PAGE_LISTS / 64],
    pub(super) handles: handles::Own,
    pub(super) weak: handles::Own,
    /// Regions within which nothing is collected.
    pub(super) deferred: Num,
    /// Bytes allocated while collecting was put off.
    pub(super) unpaid: Num,
    /// Bytes that the runtime took elsewhere, and that are not paid for.
    owed: Num,
    /// The end of the C stack that is scanned; null: none is.
    pub(super) stack_base: Ptr<u8>,
    pub(super) stack_top: Ptr<u8>,
    /// Whether the top was noted where the thread came in, and holds until it goes.
    noted: Num,
    pub(super) registers: [Num; crate::os::SAVED_REGISTERS],
    /// The thread it is of.
    pub(super) thread: Num,
    /// Its number among all mutators.
    pub(super) number: Num,
}

static MUTATORS: Recycled<Mutator> = Recycled::new();

/// Holds the lock across a fork.
pub(super) fn before_fork() {
    MUTATORS.before_fork();
}

/// Gives it back on either side of a fork.
///
/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy.
pub(super) unsafe fn after_fork() {
    // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
    // copy of.
    unsafe { MUTATORS.after_fork() };
}

impl Mutator {
    /// The calling thread joins a heap. `None` where there is no memory.
    pub(super) fn attach(heap: &'static Heap) -> Option<&'static Slot<Self>> {
        // SAFETY: zero is nobody's mutator.
        let slot = unsafe { MUTATORS.take_zeroed() }?;
        let me = &slot.value;
        me.heap.set(ptr::from_ref(heap).cast_mut());
        for (to, &place) in me.places.iter().zip(heap.sizes().table()) {
            to.store(place, Ordering::Relaxed);
        }
        me.number.set(slot.id() as usize);
        me.thread.set(crate::os::thread_token());
        me.marks.set(tracer::marks_of_nothing());
        me.tracer.belong(heap);
        for (page_list, region) in me.regions.iter().enumerate() {
            // What is in no pool must not fit, though the region is empty.
            region.slot.set(heap.sizes().slot(page_list / KINDS).max(1));
        }
        // SAFETY: mutators are never freed.
        unsafe { heap.world.join(&me.handshake, &me.poll, ptr::from_ref(me).cast_mut().cast()) };
        heap.world.enter(&me.handshake);
        // What a cycle under way announced to the others when it began.
        me.barrier.store(heap.cycle.barrier(), Ordering::Relaxed);
        Some(slot)
    }

    /// The calling thread leaves the heap.
    pub(super) fn detach(slot: &'static Slot<Self>) {
        let me = &slot.value;
        let heap = me.heap();
        heap.at_safepoint(me);
        me.drop_regions(true);
        heap.handles.take_back(&me.handles);
        heap.weak.handles.take_back(&me.weak);
        heap.forget_mutator(me);
        heap.world.leave(&me.handshake);
        heap.world.part(&me.handshake);
        MUTATORS.give(slot);
    }

    /// Makes it what zero is, for who has it next.
    pub(super) fn clear(&self) {
        self.poll.store(0, Ordering::Relaxed);
        self.barrier.store(0, Ordering::Relaxed);
        self.regions.iter().for_each(Region::close);
        self.used.iter().for_each(|word| word.set(0));
        self.deferred.set(0);
        self.owed.set(0);
        self.unpaid.set(0);
        self.stack_base.set(ptr::null_mut());
        self.stack_top.set(ptr::null_mut());
        self.noted.set(0);
        self.handles.balance.set(0);
        self.weak.balance.set(0);
        self.tracer.room.forget();
    }

    /// The mutator of a handshake.
    ///
    /// # Safety
    ///
    /// The handshake is a mutator's.
    pub(super) unsafe fn of(handshake: &Handshake) -> &'static Self {
        // SAFETY: by the contract, `attach` said so; mutators are never freed.
        unsafe { &*handshake.owner().cast() }
    }

    /// The heap it is of.
    #[inline]
    pub(super) fn heap(&self) -> &'static Heap {
        // SAFETY: set by `attach`; heaps are never freed.
        unsafe { &*self.heap.get() }
    }

    /// Memory for an object. Null: there is none.
    #[inline]
    pub(super) fn alloc(&self, size: usize, kind: usize) -> *mut u8 {
        let Some(place) = self.places.get(size.div_ceil(8)) else {
            return self.alloc_large(size, kind);
        };
        let page_list = usize::from(place.load(Ordering::Relaxed)) / REGION_BYTES + kind;
        if page_list / KINDS == LARGE {
            return self.alloc_large(size, kind);
        }
        loop {
            let object = self.bump(page_list);
            if !object.is_null() {
                return object;
            }
            if !self.refill(page_list) {
                return ptr::null_mut();
            }
        }
    }

    /// The next slot of a region. Null: it is used up.
    #[inline(always)]
    fn bump(&self, page_list: usize) -> *mut u8 {
        let region = &self.regions[page_list];
        let object = region.next.get();
        let next = object.wrapping_add(region.slot.get());
        if next.addr() > region.end.get().addr() {
            return ptr::null_mut();
        }
        region.next.set(next);
        object
    }

    /// Gives a region more. False: there is no memory.
    #[cold]
    #[inline(never)]
    fn refill(&self, page_list: usize) -> bool {
        let _noted = self.at_the_door();
        let heap = self.heap();
        if heap.is_stressed() {
            heap.stress(self);
        }
        if self.owed.get() >= OWES {
            heap.pay(self, self.owed.take());
        }
        loop {
            heap.at_safepoint(self);
            if self.next_stretch(page_list) {
                return true;
            }
            let Some(page) = self.acquire(page_list) else { return false };
            if self.enter_page(page_list, page) {
                return true;
            }
        }
    }

    /// The next stretch of the page at hand becomes the region. False: there is none.
    fn next_stretch(&self, page_list: usize) -> bool {
        let region = &self.regions[page_list];
        let Some(page) = self.heap().supply.pages.get(region.page.get()) else { return false };
        let from = region.end.get().addr() - page.base().addr();
        self.open_stretch(page_list, page, from) || self.leave_page(page_list, page)
    }

    /// The first stretch of a page that was claimed becomes the region. False: there is none.
    fn enter_page(&self, page_list: usize, page: &Page) -> bool {
        let region = &self.regions[page_list];
        // What was paid for this one may have been that objects moved, into a region of this page list.
        if let Some(other) = self.heap().supply.pages.get(region.page.get()) {
            self.drop_region(page_list, region, other, true);
        }
        region.page.set(page.number.get());
        region.slot.set(page.slot.get());
        self.used[page_list / 64].set(self.used[page_list / 64].get() | 1 << (page_list % 64));
        self.open_stretch(page_list, page, page.held.cursor()) || self.leave_page(page_list, page)
    }

    /// Is through with a page. False.
    fn leave_page(&self, page_list: usize, page: &Page) -> bool {
        page.held.settle(page.end());
        self.close_region(page_list);
        self.heap().note_used(page);
        false
    }

    /// A slot for an object of `size` bytes that is to be moved to a page list, its page, and its place
    /// there. While the world stands still, all mutators are settled, and have reported what is fresh.
    pub(super) fn place(
        &self,
        page_list: usize,
        size: usize,
    ) -> Option<(*mut u8, &'static Page, usize)> {
        let heap = self.heap();
        if page_list / KINDS == LARGE {
            let page = heap.new_large(size, page_list)?;
            page.scanned_to.set(usize::MAX);
            return Some((page.base(), page, 0));
        }
        loop {
            let object = self.bump(page_list);
            if !object.is_null() {
                let page = heap.supply.pages.get(self.regions[page_list].page.get())?;
                let offset = object.addr() - page.base().addr();
                page.scanned_to.set(offset + page.slot.get());
                return Some((object, page, offset));
            }
            if !self.next_stretch(page_list) {
                let page = self.page_to_move_to(page_list)?;
                heap.note_claimed(page);
                self.enter_page(page_list, page);
            }
        }
    }

    /// Claims a page of a page list that has free slots, for objects that move.
    fn page_to_move_to(&self, page_list: usize) -> Option<&'static Page> {
        let heap = self.heap();
        // Nothing is freed while the world stands still: whoever has a lock that it takes may stand, too.
        let page = if layout::is_freed(page_list) {
            heap.supply.lists.lock().take_available(&heap.supply.pages, page_list)
        } else {
            self.take_page(page_list, &mut 0)
        };
        page.or_else(|| heap.take_empty(page_list)).or_else(|| heap.new_page(page_list, usize::MAX))
    }

    /// Claims a page of a page list that has free slots and was swept, or is now: a few are, and counted.
    fn take_page(&self, page_list: usize, swept: &mut usize) -> Option<&'static Page> {
        let heap = self.heap();
        let mut lists = heap.supply.lists.lock();
        if let Some(page) = lists.take_available(&heap.supply.pages, page_list) {
            return Some(page);
        }
        while *swept < OWN_SWEEPS {
            let page = lists.take_unswept(&heap.supply.pages, page_list)?;
            drop(lists);
            // What is passed because its objects are to be moved costs nothing.
            *swept += usize::from(page.evacuation() == Evacuation::No);
            let found = heap.sweep_page(page);
            lists = heap.supply.lists.lock();
            lists.note_swept(page, found, heap.pacing.allowance());
            if found.live < page.slots() {
                lists.pool[page_list / KINDS].taken += 1;
                return Some(page);
            }
        }
        None
    }

    /// Makes the next free stretch of a page the region. False: there is none.
    fn open_stretch(&self, page_list: usize, page: &Page, from: usize) -> bool {
        let most = if self.heap().is_stressed() { 0 } else { REGION };
        let Some((at, stop)) = page.next_free(from, most) else { return false };
        let dirty = page.zero_from.get();
        if layout::is_traced(page_list) && at < dirty {
            // SAFETY: free slots of a page that this mutator claimed.
            unsafe { ptr::write_bytes(page.base().wrapping_add(at), 0, stop.min(dirty) - at) };
        }
        page.zero_from.set(dirty.max(stop));
        self.regions[page_list].open(page.base().wrapping_add(at), page.base().wrapping_add(stop));
        true
    }

    fn close_region(&self, page_list: usize) {
        self.regions[page_list].close();
        self.used[page_list / 64].set(self.used[page_list / 64].get() & !(1 << (page_list % 64)));
    }

    /// Calls `with` for each region in use and its page.
    fn each_region(&self, mut with: impl FnMut(usize, &Region, &Page)) {
        for (word, used) in self.used.iter().enumerate() {
            let mut rest = used.get();
            while rest != 0 {
                let page_list = word * 64 + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                if let Some(page) = self.heap().supply.pages.get(self.regions[page_list].page.get())
                {
                    with(page_list, &self.regions[page_list], page);
                }
            }
        }
    }

    /// Calls `with` for each page that it allocates from.
    pub(super) fn each_page_in_use(&self, mut with: impl FnMut(&Page)) {
        self.each_region(|_, _, page| with(page));
    }

    /// Whether it has allocated the slot of a page that begins at `start`, from a region that it
    /// is still at.
    pub(super) fn has_used(&self, page: &Page, start: *mut u8) -> bool {
        let (number, end) = (page.number.get(), page.base().addr() + page.end());
        let mut used = false;
        self.each_region(|_, region, _| {
            used |= region.has_handed_out(number, start.addr(), end);
        });
        used
    }

    /// The runtime has `bytes` more elsewhere. From time to time this is paid for like a page: the
    /// regions are cut off where they are, so that the next allocation comes by.
    pub(super) fn owe(&self, bytes: usize) {
        self.owed.add(bytes);
        if self.owed.get() >= OWES {
            self.each_region(|_, region, _| region.end.set(region.next.get()));
        }
    }

    /// Writes to the pages of its regions how far it has come. While it stands still.
    pub(super) fn settle(&self) {
        self.each_region(|_, region, page| {
            page.held.settle(region.next.get().addr() - page.base().addr());
        });
    }

    /// Lets go of all regions; of their pages as well, if they are to be `available`.
    pub(super) fn drop_regions(&self, available: bool) {
        self.each_region(|page_list, region, page| {
            self.drop_region(page_list, region, page, available)
        });
    }

    fn drop_region(&self, page_list: usize, region: &Region, page: &Page, available: bool) {
        let next = region.next.get().addr() - page.base().addr();
        page.held.settle(next);
        self.heap().note_used(page);
        if available && page.next_free(next, 0).is_some() {
            self.heap().note_released(page, next);
            self.heap().supply.lists.lock().put_available(page);
        }
        self.close_region(page_list);
    }

    /// Claims a page of a page list that has free slots, and pays for it. `None`: there is no memory.
    fn acquire(&self, page_list: usize) -> Option<&'static Page> {
        let heap = self.heap();
        if heap.fork.is_poisoned() {
            return heap.new_page(page_list, usize::MAX);
        }
        heap.pay(self, UNIT);
        let page = self.look_for_page(page_list)?;
        heap.note_claimed(page);
        Some(page)
    }

    /// Steps 1 to 7.
    fn look_for_page(&self, page_list: usize) -> Option<&'static Page> {
        let heap = self.heap();
        for attempt in 0..ATTEMPTS {
            if let Some(page) = self.find_page(page_list) {
                return Some(page);
            }
            // While the sweep is under way, what it frees comes first, and then a new page:
            // never a collection, which would have to finish it.
            if attempt == 0 && heap.cycle.phase() == Phase::Sweeping {
                heap.sweep_more();
                let page =
                    self.find_page(page_list).or_else(|| heap.new_page(page_list, usize::MAX));
                if page.is_some() {
                    return page;
                }
            }
            let worth =
                attempt == 0 && self.deferred.get() == 0 && heap.pacing.is_worth_collecting();
            if worth {
                heap.collect_or_begin(self);
                continue;
            }
            if let Some(page) = heap.new_page(page_list, usize::MAX) {
                return Some(page);
            }
            // The limit, or no memory: everything that is to be had.
            heap.collect(self);
        }
        None
    }

    /// Steps 1 to 5.
    fn find_page(&self, page_list: usize) -> Option<&'static Page> {
        let heap = self.heap();
        let pool = page_list / KINDS;
        loop {
            let mut swept = 0;
            if let Some(page) = self.take_page(page_list, &mut swept) {
                return Some(page);
            }
            let lists = heap.supply.lists.lock();
            let unswept = lists.pool[pool].unswept > 0;
            let granted = lists.pool[pool].granted > 0;
            let borrows = unswept && lists.debt < growth::credit(heap.pacing.allowance());
            drop(lists);
            if let Some(page) = heap.take_empty(page_list) {
                return Some(page);
            }
            let busy = matches!(heap.cycle.phase(), Phase::Marking | Phase::Moving);
            let most = if granted || borrows || busy { usize::MAX } else { heap.pacing.goal() };
            if let Some(page) = heap.new_page(page_list, most) {
                let mut lists = heap.supply.lists.lock();
                if most == usize::MAX && granted {
                    lists.pool[pool].granted = lists.pool[pool].granted.saturating_sub(1);
                    lists.pool[pool].grown += 1;
                } else if most == usize::MAX && borrows {
                    lists.debt += 1;
                    lists.pool[pool].borrowed += 1;
                }
                return Some(page);
            }
            if heap.sweep_policy() == Sweep::ToTheEnd && heap.sweep_all() > 0 {
                continue;
            }
            if swept == 0 {
                return self.find_larger(page_list);
            }
            // Its own sweep is not over: goes on with it, a bounded number of pages at a time.
        }
    }

    /// Claims a page with free slots of a larger pool, whose slots are at most twice as large:
    /// rather than collecting while much of the heap is free.
    fn find_larger(&self, page_list: usize) -> Option<&'static Page> {
        let heap = self.heap();
        if heap.pacing.used() >= heap.pacing.allowance() / 8 * 7 {
            return None;
        }
        let most = 2 * heap.slot(page_list);
        let mut lists = heap.supply.lists.lock();
        (page_list + KINDS..LARGE * KINDS)
            .step_by(KINDS)
            .take_while(|&other| (1..=most).contains(&heap.slot(other)))
            .find_map(|other| lists.take_available(&heap.supply.pages, other))
    }

    /// Memory for an object that is larger than any slot.
    #[cold]
    #[inline(never)]
    fn alloc_large(&self, size: usize, kind: usize) -> *mut u8 {
        let _noted = self.at_the_door();
        let heap = self.heap();
        if heap.is_stressed() {
            heap.stress(self);
        }
        heap.at_safepoint(self);
        heap.pay(self, size);
        let page_list = LARGE * KINDS + kind;
        for _ in 0..ATTEMPTS {
            loop {
                if let Some(page) = heap.new_large(size, page_list) {
                    return page.base();
                }
                if !heap.sweep_for(page::large_footprint(size)) {
                    break;
                }
            }
            heap.collect(self);
        }
        ptr::null_mut()
    }

    /// Notes where its stack is now, if it is scanned, and nobody below has noted it.
    ///
    /// Inlined: what it notes holds for as long as the caller's frame is there.
    #[inline(always)]
    pub(super) fn note_stack(&self) {
        if self.stack_base.get().is_null() || self.noted.get() != 0 {
            return;
        }
        let mut registers = [0; crate::os::SAVED_REGISTERS];
        let top = crate::os::save_registers(&mut registers);
        for (to, from) in self.registers.iter().zip(registers) {
            to.set(from);
        }
        self.stack_top.set(self.stack_base.get().with_addr(top));
    }

    /// As [`Mutator::note_stack`], for as long as the guard is there: who is called meanwhile notes
    /// nothing, so what its frames hold of things that were there before keeps no object.
    #[inline(always)]
    pub(super) fn at_the_door(&self) -> Noted<'_> {
        self.note_stack();
        Noted { mutator: self, outer: self.noted.replace(1) }
    }

    /// Reports what its stack and registers may lead to.
    pub(super) fn scan_stack(&self, tracer: &Tracer) {
        let (top, base) = (self.stack_top.get(), self.stack_base.get());
        if base.is_null() || top.is_null() {
            return;
        }
        for register in &self.registers {
            tracer.mark_maybe(crate::address_map::MAP.base().with_addr(register.get()));
        }
        // SAFETY: the thread stands still below `top`, or is away with its frames above it
        // as they were; `base` is the end of its stack, by the contract of `scan_stack`.
        unsafe { tracer.scan(top, base) };
    }
}

/// Its stack was noted: see [`Mutator::at_the_door`].
pub(super) struct Noted<'a> {
    mutator: &'a Mutator,
    outer: usize,
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.mutator.noted.set(self.outer);
    }
}
