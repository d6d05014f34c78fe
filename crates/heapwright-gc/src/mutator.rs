//! A mutator: a thread's access to one heap, and how it allocates.
//!
//! ```text
//!   public   poll | barrier | heap | regions: 512 x { next, end, hole, slot, page } | table | data
//!   private  handshake | tracer | which regions are in use | handles | stack | ...
//! ```
//!
//! A mutator has a region for every page list (see `region`): stretches of free slots, zeroed if their objects
//! are traced, of at most 8 KiB together, so that they are in the nearest cache when they are used.
//! When they are used up, the next stretches of the page become the
//! region; when the page is at its end, another is claimed (see `page_search`), and only then a lock
//! is taken. The first line of the picture is the C interface's; see `heapwright_gc.h`.
//!
use core::ptr;

use heapwright_substrate::address_map::Entry;
use heapwright_substrate::ids::{Recycled, Slot};
use heapwright_substrate::os::{self, Exit};
use heapwright_substrate::sync;
use heapwright_substrate::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use super::cell::{Num, Ptr};
use super::forks;
use super::handles;
use super::heap::{self, Heap};
use super::large;
use super::layout::{KINDS, LARGE, PAGE_LISTS, REGION_BYTES, STEPS};
use super::native_stack::NativeStack;
use super::page::Page;
use super::page_search::ATTEMPTS;
use super::region::{Hole, Region};
use super::tracer::{self, Tracer};
use super::world::{self, Handshake, World};

/// The mutator's thread came by itself, attached or entered: it is at work until it leaves.
const CAME: usize = 1;
/// The thread attached the mutator, and detaches it.
const ATTACHED: usize = 2;
/// The thread has ended without leaving.
const ENDED: usize = 4;

/// Rounds of destructors that the system runs at a thread's end (POSIX: at least four).
const ROUNDS: usize = 4;

/// Bytes of a region.
const REGION: usize = 8 << 10;
/// Bytes elsewhere that are paid for together.
const OWES: usize = 256 << 10;
const _: () = assert!(size_of::<Region>() == REGION_BYTES);

/// Zeroes the part of a page's bytes from `at` to `stop` that lies below `dirty`. They are free slots, of a page that the caller's
/// mutator has claimed.
#[inline]
fn clean(base: *mut u8, at: usize, stop: usize, dirty: usize) {
    /// Bytes that are cleared sooner than a function is called. (A plain loop is one again.)
    const FEW: usize = 256;
    let stop = stop.min(dirty);
    if stop.saturating_sub(at) > FEW {
        // SAFETY: free slots of a page that this mutator claimed.
        unsafe { ptr::write_bytes(base.wrapping_add(at), 0, stop - at) };
        return;
    }
    for word in (at..stop).step_by(8) {
        // SAFETY: free slots of a page that this mutator claimed; slots are multiples of 8.
        unsafe { base.wrapping_add(word).cast::<u64>().write_volatile(0) };
    }
}

/// A thread's access to a heap. Zero is one of no thread.
#[repr(C)]
pub(super) struct Mutator {
    pub(super) poll: AtomicU32,
    pub(super) barrier: AtomicU32,
    pub(super) heap: Ptr<Heap>,
    pub(super) regions: [Region; PAGE_LISTS],
    pub(super) places: [AtomicU16; STEPS],
    /// Where the marks would be of address 0: a bit for 16 bytes.
    pub(super) marks: Ptr<u8>,
    /// The runtime's word.
    pub(super) data: Ptr<core::ffi::c_void>,
    /// Where the entry of the unit at address 0 would be, and the entry of a page of the heap's first page list: for the C
    /// header, which finds an object's page list by them.
    pub(super) units: Ptr<u32>,
    pub(super) first_list: AtomicU32,

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
    /// Its C stack, which may be scanned.
    pub(super) stack: NativeStack,
    /// The mutator's thread, and how the thread got the mutator: `CAME`, `ATTACHED`, `ENDED`.
    pub(super) thread: Num,
    how: Num,
    /// Whether the thread has left its other mutators because it waits for this one's heap.
    left_others: Num,
    /// The system's number of it, and the process that was known in (see `fork`); 0: not known.
    system_thread: Num,
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

/// Runs at the end of a thread that has mutators. A mutator that the thread attached, and is still
/// at work with, is detached: else all collections would wait for it. A mutator that the thread
/// entered stays, because another thread detaches it; a collector that waits for such a mutator
/// says so. A mutator that the thread has left belongs to no thread any more. All this happens in
/// the last round, because destructors of the program may use a mutator.
pub(super) unsafe extern "C" fn thread_ends(round: *mut core::ffi::c_void) {
    if round.addr() < ROUNDS && os::watch_this_thread(Exit::Mutators, round.wrapping_byte_add(1)) {
        return;
    }
    let me = os::thread_token();
    for heap in heap::all().filter(|heap| heap.is_open()) {
        loop {
            let mut forgotten = None;
            heap.each_mutator(|mutator: &'static Mutator| {
                // In this order: if another thread is at work with the mutator, it is that
                // thread's.
                let (is_in, is_mine) = (mutator.handshake.is_in(), mutator.thread.get() == me);
                if is_in && is_mine && mutator.how.get() & ATTACHED != 0 {
                    forgotten = Some(mutator);
                } else if is_in && is_mine {
                    mutator.how.set(mutator.how.get() | ENDED);
                } else if !is_in {
                    mutator.thread.clear_if(me);
                }
            });
            let Some(mutator) = forgotten else { break };
            // SAFETY: a mutator of a heap's world is in a slot, which is never freed.
            let slot = unsafe { Slot::containing(mutator) };
            // SAFETY: the slot that the mutator is in, which is never freed.
            Mutator::detach(unsafe { &*slot });
        }
    }
}

impl Mutator {
    /// The calling thread joins a heap. `None` where there is no memory.
    pub(super) fn attach(heap: &'static Heap) -> Option<&'static Slot<Self>> {
        let slot = Self::join(heap)?;
        let me = &slot.value;
        me.note_thread();
        me.enter();
        Some(slot)
    }

    /// The mutator comes to work. Waits while the world stands still. (In the program's own fork
    /// handlers it does not wait: the world stands still for this thread's fork.)
    pub(super) fn enter(&self) {
        if !self.try_enter() {
            self.heap().world.come_later(&self.handshake);
            self.left_others.set(1);
            self.leave_elsewhere();
            self.come_back();
        }
    }

    /// The mutator comes to work, unless the world stands still. Whether it did.
    pub(super) fn try_enter(&self) -> bool {
        if sync::holds_all() {
            World::come_in(&self.handshake);
            return true;
        }
        self.heap().world.try_enter(&self.handshake)
    }

    /// The mutator of the calling thread in a heap. If the thread had several in turns (see
    /// `hw_gc_enter`), the one that it has not left.
    pub(super) fn of_this_thread(heap: &Heap) -> Option<&'static Self> {
        let me = os::thread_token();
        let mut found: Option<&'static Self> = None;
        heap.each_mutator(|mutator: &'static Self| {
            if mutator.thread.get() == me && found.is_none_or(|found| !found.handshake.is_present())
            {
                found = Some(mutator);
            }
        });
        found
    }

    /// Calls `with` for this mutator, and for its thread's mutators in other heaps.
    fn each_seat<'a>(&'a self, with: &mut dyn FnMut(&'a World, &'a Handshake)) {
        for heap in heap::all() {
            let seat = if ptr::eq(heap, self.heap()) {
                Some(self)
            } else if heap.is_open() {
                Self::of_this_thread(heap).filter(|other| other.how.get() & CAME != 0)
            } else {
                None
            };
            if let Some(seat) = seat {
                if seat.handshake.is_in() {
                    seat.stack.note();
                }
                with(&heap.world, &seat.handshake);
            }
        }
    }

    /// The thread is about to wait for this mutator's heap. Its mutators in other heaps leave, so
    /// that no collector waits for them.
    pub(super) fn leave_elsewhere(&self) {
        let left = world::leave_all(&|with| self.each_seat(with), Some(&self.handshake));
        self.left_others.set(self.left_others.get() | usize::from(left));
    }

    /// The thread has stopped waiting: its mutators in other heaps come back.
    pub(super) fn come_back(&self) {
        if self.left_others.take() != 0 {
            world::come_back(&|with| self.each_seat(with));
        }
    }

    /// The mutator is the calling thread's from now on, which comes to work.
    pub(super) fn note_coming(&self) {
        self.note_thread();
        if self.how.get() & (CAME | ENDED) != CAME {
            self.watch(CAME);
        }
    }

    /// The calling thread has attached the mutator.
    pub(super) fn note_attached(&self) {
        self.watch(CAME | ATTACHED);
    }

    /// Asks the system to call [`thread_ends`] at the thread's end.
    fn watch(&self, how: usize) {
        self.how.set(how);
        os::watch_this_thread(Exit::Mutators, ptr::without_provenance_mut(1));
    }

    /// Whether the mutator's thread has ended at work, and no other thread has come since.
    pub(super) fn is_forgotten(&self) -> bool {
        self.handshake.is_in() && self.how.get() & ENDED != 0
    }

    /// A mutator that is away, and no thread's: the next thread that enters gets it. Does not wait:
    /// the calling thread may be at work with another mutator, for which a collector waits. `None`
    /// where there is no memory.
    pub(super) fn join(heap: &'static Heap) -> Option<&'static Slot<Self>> {
        // SAFETY: zero is nobody's mutator.
        let slot = unsafe { MUTATORS.take_zeroed() }?;
        let me = &slot.value;
        me.heap.set(ptr::from_ref(heap).cast_mut());
        for (to, &place) in me.places.iter().zip(heap.space.sizes().table()) {
            to.store(place, Ordering::Relaxed);
        }
        me.number.set(slot.id() as usize);
        me.thread.set(0);
        me.marks.set(tracer::marks_of_nothing());
        me.units.set(tracer::entry_of_nothing());
        me.first_list.store(Entry::collected(heap.space.id(), 0).word(), Ordering::Relaxed);
        me.tracer.belong(&heap.trace);
        for (page_list, region) in me.regions.iter().enumerate() {
            // What is in no pool must not fit, though the region is empty.
            region.slot.set(heap.space.sizes().slot(page_list / KINDS).max(1));
        }
        // SAFETY: mutators are never freed.
        unsafe { heap.world.join(&me.handshake, &me.poll, ptr::from_ref(me).cast_mut().cast()) };
        // What a cycle under way announced to the others when it began. Under the lock of the list: where a collector announces something
        // else at the same time, it comes by afterwards, or what it announces is seen here.
        heap.world.each(|handshake| {
            let is_mine = ptr::eq(handshake, &me.handshake);
            if is_mine {
                me.barrier.store(heap.space.cycle.barrier(), Ordering::Relaxed);
            }
            !is_mine
        });
        Some(slot)
    }

    /// The calling thread leaves the heap.
    pub(super) fn detach(slot: &'static Slot<Self>) {
        let me = &slot.value;
        let heap = me.heap();
        heap.at_safepoint(me);
        me.drop_regions(true);
        heap.trace.handles.take_back(&me.handles);
        heap.trace.weak.handles.take_back(&me.weak);
        heap.forget_mutator(me);
        heap.world.leave(&me.handshake);
        heap.world.part(&me.handshake);
        MUTATORS.give(slot);
    }

    /// Makes it what zero is, for its next use.
    pub(super) fn clear(&self) {
        self.poll.store(0, Ordering::Relaxed);
        self.barrier.store(0, Ordering::Relaxed);
        self.regions.iter().for_each(Region::close);
        self.used.iter().for_each(|word| word.set(0));
        self.deferred.set(0);
        self.owed.set(0);
        self.unpaid.set(0);
        self.data.set(ptr::null_mut());
        self.system_thread.set(0);
        self.how.set(0);
        self.left_others.set(0);
        self.stack.clear();
        self.handles.balance.set(0);
        self.weak.balance.set(0);
        self.tracer.room.forget();
    }

    /// The calling thread has it from now on.
    pub(super) fn note_thread(&self) {
        let thread = os::thread_token();
        if self.thread.replace(thread) != thread {
            self.how.set(0);
            self.system_thread.set(0);
            // Another thread's frames are none of this one's.
            self.stack.clear();
        }
    }

    /// The system's number of the calling thread, whose it is.
    pub(super) fn system_thread(&self) -> u32 {
        let (known, process) = (self.system_thread.get(), forks::forks() + 1);
        if known >> 32 == process {
            return known as u32;
        }
        let thread = os::thread_id();
        self.system_thread.set(process << 32 | thread as usize);
        thread
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
            let object = self.regions[page_list].take();
            if !object.is_null() {
                return object;
            }
            if !self.refill(page_list) {
                return ptr::null_mut();
            }
        }
    }

    /// Gives a region more. False: there is no memory.
    #[cold]
    #[inline(never)]
    fn refill(&self, page_list: usize) -> bool {
        let _noted = self.stack.enter();
        let heap = self.heap();
        if heap.space.is_stressed() {
            heap.stress(self);
        }
        if self.owed.get() >= OWES {
            heap.pay(self, self.owed.take());
        }
        heap.pay_debts(self);
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
        let Some(page) = self.heap().space.pages.get(region.page.get()) else { return false };
        // Where it is used up that is its end; where objects were moved into it meanwhile, its slots are not.
        let from = region.next.get().addr() - page.base().addr();
        self.open_stretch(page_list, page, from) || self.leave_page(page_list, page)
    }

    /// The first stretch of a page that was claimed becomes the region. False: there is none.
    fn enter_page(&self, page_list: usize, page: &Page) -> bool {
        let region = &self.regions[page_list];
        // What was paid for this one may have been that objects moved, into a region of this page list.
        if let Some(other) = self.heap().space.pages.get(region.page.get()) {
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
        self.heap().moving.note_used(&self.heap().space, page);
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
            heap.moving.note_large(page);
            page.scanned_to.set(usize::MAX);
            return Some((page.base(), page, 0));
        }
        loop {
            let object = self.regions[page_list].take();
            if !object.is_null() {
                let page = heap.space.pages.get(self.regions[page_list].page.get())?;
                let offset = object.addr() - page.base().addr();
                page.scanned_to.set(offset + page.slot.get());
                return Some((object, page, offset));
            }
            if !self.next_stretch(page_list) {
                let page = self.page_to_move_to(page_list)?;
                heap.space.note_claimed(page);
                self.enter_page(page_list, page);
            }
        }
    }

    /// Makes the next free stretches of a page the region. False: there are none.
    fn open_stretch(&self, page_list: usize, page: &Page, from: usize) -> bool {
        let mut most = if self.heap().space.is_stressed() { 0 } else { REGION };
        let Some((at, mut stop)) = page.next_free(from, most) else { return false };
        let (base, dirty) = (page.base(), page.zero_from.get());
        let zero = if self.heap().space.clears(page_list) { dirty } else { 0 };
        clean(base, at, stop, zero);
        let (first, end) = (base.wrapping_add(at), base.wrapping_add(stop));
        most = most.saturating_sub(stop - at);
        let slot = page.slot.get();
        let (mut holes, mut last) = (ptr::null_mut(), ptr::null_mut::<Hole>());
        while most >= slot
            && let Some((at, until)) = page.next_free(stop, most)
        {
            clean(base, at, until, zero);
            let hole = base.wrapping_add(at).cast::<Hole>();
            // SAFETY: free slots of a page that this mutator claimed, at a multiple of 8, of two words at least.
            unsafe { hole.write(Hole { end: base.wrapping_add(until), next: ptr::null_mut() }) };
            match last.is_null() {
                true => holes = hole,
                // SAFETY: written here a moment ago; nobody else uses free slots of a claimed page.
                false => unsafe { (*last).next = hole },
            }
            last = hole;
            most = most.saturating_sub(until - at);
            stop = until;
        }
        // What was linked is not zero, even where nobody will have taken it.
        page.zero_from.set(dirty.max(stop));
        let region = &self.regions[page_list];
        region.open(first, end);
        region.hole.set(holes);
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
                if let Some(page) = self.heap().space.pages.get(self.regions[page_list].page.get())
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
            self.each_region(|_, region, _| region.cut_off());
        }
    }

    /// Writes to the pages of its regions how far it has come. While it stands still.
    pub(super) fn settle(&self) {
        self.each_region(|_, region, page| {
            page.held.settle(region.next.get().addr() - page.base().addr());
        });
    }

    /// Bytes that it has claimed and not allocated. While it stands still.
    pub(super) fn unused(&self) -> usize {
        let mut bytes = 0;
        self.each_region(|_, region, page| {
            bytes += page.free_from(region.next.get().addr() - page.base().addr());
        });
        bytes
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
        self.heap().moving.note_used(&self.heap().space, page);
        if available && page.next_free(next, 0).is_some() {
            self.heap().space.note_released(page, next);
            self.heap().space.lists.lock().put_available(page);
        }
        self.close_region(page_list);
    }

    /// Memory for an object that is larger than any slot.
    #[cold]
    #[inline(never)]
    fn alloc_large(&self, size: usize, kind: usize) -> *mut u8 {
        let _noted = self.stack.enter();
        let heap = self.heap();
        if heap.space.is_stressed() {
            heap.stress(self);
        }
        heap.at_safepoint(self);
        if large::is_too_large(size, heap.space.target().most) {
            return ptr::null_mut();
        }
        heap.pay(self, size);
        let page_list = LARGE * KINDS + kind;
        for attempt in 0..=ATTEMPTS {
            loop {
                if let Some(page) = heap.new_large(size, page_list) {
                    heap.large_begins(self, page);
                    return page.base();
                }
                if !heap.sweep_for(large::footprint(size)) {
                    break;
                }
            }
            if attempt == ATTEMPTS || heap.space.pacing.is_in_vain(&heap.space.target()) {
                break;
            }
            heap.collect(self);
        }
        heap.space.pacing.note_refusal();
        ptr::null_mut()
    }
}
