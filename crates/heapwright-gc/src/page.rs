//! A page: a unit of equal slots, its record, and its sweep.
//!
//! ```text
//!   unit    | slot 0 | slot 1 | slot 2 | ...        of one page list: equal slots, one kind
//!
//!   record  | unit, slot, page list, state | cursor | links | taken: 4096 bits |  704 bytes, apart
//!   marks   4096 bits, in the address map's side bitmap
//! ```
//!
//! A large object has its own page, of one or more units and one slot (see `large`).
//!
//! A slot holds an object exactly if it lies below the *cursor*, or its bit in *taken* is set. A
//! mutator that has the page allocates from its clear stretches in the order of addresses, and
//! never goes back. So allocation moves the cursor and writes no bit. [`Held::settle`] moves the
//! cursor, when the world is stopped or the mutator gives the page up. Until then only the
//! mutator's region knows its newest objects.
//!
//! A sweep makes exactly the marked slots taken, and resets the cursor. It copies 64 words for 64
//! KiB, makes no free list, and touches no object unless the runtime must free it.
//!
//! Any thread may query which objects a page holds (see `held`). Any thread may also pin a page,
//! exclude it from a move, or note that marking had no memory for its objects. Links change under
//! the lock of the page lists. Two threads may change the rest of a record: the thread that claimed
//! the page, and the collector while the world is stopped.

use heapwright_substrate::address_map::{Kind, MAP};
use heapwright_substrate::os;
use heapwright_substrate::size_class::UNIT;

use super::bits::{self, Bits, WORDS, Words};
use super::cell::Num;
use super::held::{Held, State, StickyMarks};
use super::layout::{KINDS, LARGE};
use super::references::Incoming;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evacuation {
    /// The page takes no part.
    No = 0,
    /// Its objects are to be moved elsewhere.
    Candidate = 1,
    /// Its objects were moved. The first word of a slot that is not taken is the new address, or 0.
    Evacuated = 2,
}

#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) live: usize,
    /// How many of these are old.
    pub(super) old: usize,
    /// How many of these survived for the first time.
    pub(super) young: usize,
    /// Whether the page's objects were moved elsewhere, except those that are left.
    pub(super) evacuated: bool,
}

/// The record of a page. All-zero bytes: a record without a page.
#[repr(C, align(64))]
pub(super) struct Page {
    /// Its number in the heap, from 1.
    pub(super) number: Num,
    pub(super) unit: Num,
    pub(super) units: Num,
    /// Bytes of a slot; for a large object, the requested size.
    pub(super) slot: Num,
    /// Pool times kinds plus kind.
    pub(super) page_list: Num,
    /// Objects that the last sweep found, or slots that were not free when a mutator released the
    /// page. In a claimed page: all slots.
    pub(super) live: Num,
    /// The first byte of the memory that is still zero. A large object's memory ends there.
    pub(super) zero_from: Num,
    /// The next and the previous page of its page list, or the next record without a page.
    pub(super) next: Num,
    pub(super) prev: Num,
    /// The next page of its page list that has free slots.
    pub(super) next_available: Num,
    /// Not 0 if some of its objects were marked but not traced, because memory was short. For a
    /// large object, 1 plus the place where its next part begins.
    pub(super) overflowed: Num,
    /// Bytes from its start to the end of its last slot.
    end: Num,
    /// Objects that are old: their marks stayed when it was swept.
    old: Num,
    /// Its part in moving objects: an [`Evacuation`].
    evacuation: Num,
    /// The number of pins of its objects.
    pub(super) pins: Num,
    /// Whether the runtime resized one of its objects, which may fit a page elsewhere better.
    pub(super) resized: Num,
    /// Objects allocated since the last sweep have been scanned up to here.
    pub(super) scanned_to: Num,
    /// Whether the sweep passed the page over while objects moved. Then it is swept after the move.
    pub(super) passed: Num,
    /// Objects that were moved into it since it was put on its page list.
    pub(super) moved_in: Num,
    /// Slots that lead to objects of it (see `references`).
    pub(super) incoming: Incoming,
    /// Its state and its objects: for any thread.
    pub(super) held: Held,
}

const _: () = assert!(size_of::<Page>() == 192 + 8 * WORDS);

/// Returns the kind of an object of any collected heap, as it was given to `alloc`. For any other
/// address in the first unit of a page, returns the kind of the page's objects. `None` for all
/// other addresses. Takes constant time.
#[must_use]
pub fn object_kind(object: *const u8) -> Option<u32> {
    match MAP.lookup(object.addr()).1.kind() {
        Kind::Collected(page_list) => Some((page_list % KINDS) as u32),
        _ => None,
    }
}

#[inline]
pub(super) fn marks(unit: usize) -> &'static Bits {
    let bits: *const Bits = MAP.side_bitmap(unit).cast();
    // SAFETY: every unit below the map's limit has a side bitmap of this size and alignment. All of
    // it is atomics, and it is never freed.
    unsafe { &*bits }
}

impl Page {
    /// Makes this the record of a fresh page on a page list. The page counts as swept in `cycle`.
    pub(super) fn open(
        &self,
        unit: usize,
        units: usize,
        page_list: usize,
        slot: usize,
        zero: bool,
        cycle: usize,
    ) {
        self.make(unit, page_list, slot, cycle, || {
            self.unit.set(unit);
            self.units.set(units);
            self.zero_from.set(if zero { 0 } else { usize::MAX });
        });
    }

    /// Puts a page that is wholly free on a page list. The page counts as swept in `cycle`.
    pub(super) fn assign(&self, page_list: usize, slot: usize, cycle: usize) {
        self.make(self.unit.get(), page_list, slot, cycle, || {});
    }

    fn make(&self, unit: usize, page_list: usize, slot: usize, cycle: usize, place: impl FnOnce()) {
        self.held.open(marks(unit), Words::of(slot), cycle, || {
            place();
            self.page_list.set(page_list);
            self.slot.set(slot);
            self.end.set(self.slots() * slot);
            self.live.set(0);
            self.old.set(0);
            self.overflowed.set(0);
            self.set_evacuation(Evacuation::No);
            for number in
                [&self.pins, &self.resized, &self.scanned_to, &self.passed, &self.moved_in]
            {
                number.set(0);
            }
        });
    }

    pub(super) fn state(&self) -> State {
        self.held.state()
    }

    #[inline]
    pub(super) fn evacuation(&self) -> Evacuation {
        match self.evacuation.get() {
            0 => Evacuation::No,
            1 => Evacuation::Candidate,
            _ => Evacuation::Evacuated,
        }
    }

    /// Sets the page's state in a move. Any thread may exclude a page from the move.
    pub(super) fn set_evacuation(&self, evacuation: Evacuation) {
        self.evacuation.set(evacuation as usize);
    }

    #[inline]
    pub(super) fn marks(&self) -> &'static Bits {
        marks(self.unit.get())
    }

    #[inline]
    pub(super) fn base(&self) -> *mut u8 {
        MAP.address_of(self.unit.get())
    }

    pub(super) fn pool(&self) -> usize {
        self.page_list.get() / KINDS
    }

    /// The kind of the page's objects, as a number.
    pub(super) fn kind(&self) -> usize {
        self.page_list.get() % KINDS
    }

    pub(super) fn is_large(&self) -> bool {
        self.pool() == LARGE
    }

    pub(super) fn footprint(&self) -> usize {
        if self.is_large() {
            self.zero_from.get().min(self.units.get() * UNIT)
        } else {
            self.slot.get()
        }
    }

    pub(super) fn slots(&self) -> usize {
        if self.is_large() { 1 } else { UNIT / self.slot.get().max(1) }
    }

    /// Returns how many slots had no object when `live` was last set.
    pub(super) fn free_slots(&self) -> isize {
        (self.slots() - self.live.get()).cast_signed()
    }

    pub(super) fn words(&self) -> Words {
        Words::of(self.slot.get())
    }

    pub(super) fn end(&self) -> usize {
        self.end.get()
    }

    /// Returns the first stretch of free slots at or behind byte `from`, of at most `most` bytes.
    pub(super) fn next_free(&self, from: usize, most: usize) -> Option<(usize, usize)> {
        bits::next_clear(self.held.taken(), from, self.slot.get(), self.end(), most)
    }

    pub(super) fn free_from(&self, mut from: usize) -> usize {
        let mut free = 0;
        while let Some((at, stop)) = self.next_free(from, usize::MAX / 2) {
            free += stop - at;
            from = stop;
        }
        free
    }

    /// Returns the start of the slot that byte `offset` lies in. `None` in the tail behind the last
    /// slot. The result is within a unit, even if the page changes meanwhile.
    pub(super) fn slot_of(&self, offset: usize) -> Option<usize> {
        let slot = self.slot.get();
        if self.is_large() {
            return (offset < slot).then_some(0);
        }
        let start = offset - offset.checked_rem(slot)?;
        (start < UNIT / slot * slot).then_some(start)
    }

    pub(super) fn objects(&self) -> impl Iterator<Item = usize> + '_ {
        let slot = self.slot.get();
        (0..self.slots()).map(move |n| n * slot).filter(|&offset| self.held.is_taken(offset))
    }

    /// Calls `with` for each object that died. Call this before [`Page::sweep`].
    pub(super) fn each_dead(&self, mut with: impl FnMut(*mut u8)) {
        let held = (self.held.taken(), self.held.cursor());
        let slots = (self.slot.get(), self.end());
        let base = self.base();
        let soon = |at| os::prefetch(base.wrapping_add(at));
        bits::each_dead(held, self.marks(), slots, soon, |at| with(base.wrapping_add(at)));
    }

    /// Calls `with` for each object that was allocated since the last sweep and has not been
    /// scanned. These objects count as scanned from now on.
    pub(super) fn each_unscanned(&self, mut with: impl FnMut(*mut u8)) {
        let (from, to) = (self.scanned_to.get(), self.held.cursor());
        if from >= to {
            return;
        }
        // A large object counts as scanned, even if it is resized later.
        self.scanned_to.set(if self.is_large() { usize::MAX } else { to });
        let slot = self.slot.get().max(1);
        for offset in (from..to).step_by(slot).filter(|&at| !bits::is_set(self.held.taken(), at)) {
            with(self.base().wrapping_add(offset));
        }
    }

    pub(super) fn each_marked(&self, with: impl FnMut(usize) -> bool) {
        bits::each_set(self.marks(), self.slot.get(), with);
    }

    /// Prepares the move of its objects: from now on only `taken` records them. The first word of
    /// each free slot becomes zero, so that nobody reads it as a forwarding address.
    pub(super) fn begin_moving(&self) {
        self.held.forget_cursor(self.slot.get());
        let mut from = 0;
        while let Some((at, stop)) = self.next_free(from, usize::MAX / 2) {
            for offset in (at..stop).step_by(self.slot.get().max(1)) {
                // SAFETY: a free slot of a page that the collector has while the world is stopped:
                // no mutator has claimed it.
                unsafe { self.base().wrapping_add(offset).cast::<usize>().write(0) };
            }
            from = stop;
        }
    }

    /// Notes that an object has moved: clears its slot's bit in `taken` and its mark. (A dead
    /// object stays taken until the sweep. An object that stays is taken, and has a mark.)
    pub(super) fn set_moved(&self, offset: usize) {
        bits::reset(self.marks(), offset);
        bits::reset(self.held.taken(), offset);
    }

    /// Returns the new address of an object that was marked at byte `offset`, if it has moved. Call
    /// this only after [`Page::begin_moving`].
    pub(super) fn moved_to(&self, offset: usize) -> Option<*mut u8> {
        let first = self.base().wrapping_add(offset).cast::<*mut u8>();
        if bits::is_set(self.held.taken(), offset) {
            return None;
        }
        // SAFETY: the collector wrote the word, and nothing was allocated here since.
        let to = unsafe { first.read() };
        (!to.is_null()).then_some(to)
    }

    /// Returns the start of the slot that has the bit of `granule`.
    pub(super) fn start_at(&self, granule: usize) -> usize {
        bits::start(granule, self.slot.get())
    }

    /// Notes that an old object was put into a slot.
    pub(super) fn put_old(&self, offset: usize) {
        bits::set(self.held.taken(), offset);
        bits::set(self.marks(), offset);
        self.old.add(1);
    }

    pub(super) fn old(&self) -> usize {
        self.old.get()
    }

    /// Sets the number of old objects. The caller holds the lock of the lists, which have the sum.
    pub(super) fn set_old(&self, old: usize) {
        self.old.set(old);
    }

    /// Returns whether all objects are old. Then nothing was allocated here since the sweep.
    pub(super) fn is_settled(&self) -> bool {
        self.live.get() == self.old.get()
    }

    /// Passes the page over in the sweep of a minor collection, which frees nothing here.
    pub(super) fn pass(&self, cycle: usize) -> Found {
        self.held.set_swept(cycle);
        Found { live: self.live.get(), old: self.old.get(), young: 0, evacuated: false }
    }

    /// Returns whether the object at byte `offset` has survived a sweep.
    pub(super) fn has_survived(&self, offset: usize) -> bool {
        bits::is_set(self.held.taken(), offset)
    }

    pub(super) fn is_marked(&self, offset: usize) -> bool {
        bits::is_set(self.marks(), offset)
    }

    /// Makes exactly the marked slots taken, and leaves the marks that stay. Afterwards the page
    /// counts as swept in `cycle`, and takes no part in moving.
    pub(super) fn sweep(&self, cycle: usize, sticky: StickyMarks) -> Found {
        let found = self.held.sweep(self.marks(), self.words(), cycle, sticky);
        self.scanned_to.set(0);
        self.live.set(found.live);
        let evacuated = self.evacuation() == Evacuation::Evacuated;
        self.set_evacuation(Evacuation::No);
        let young = found.live - found.survivors;
        Found { live: found.live, old: found.old, young, evacuated }
    }

    /// Resizes the page's large object to `size` bytes. The number of units stays.
    pub(super) fn resize_large(&self, size: usize) {
        self.slot.set(size);
        self.end.set(size);
        if self.held.cursor() != 0 {
            self.held.settle(size);
        }
    }

    /// Takes the first and only slot of a large page.
    pub(super) fn take_large(&self) {
        self.held.settle(self.slot.get());
        self.live.set(1);
    }
}
