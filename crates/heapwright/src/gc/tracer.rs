//! The tracer: what the runtime's callbacks tell references to, and what marks.
//!
//! ```text
//!   callback --mark(object)--> | item | item | ... | next ...... end |      the newest chunk
//!                                               pops ^
//!   item   object            an edge: whoever it leads to is to be marked, and then looked at
//!          object | 1        marked already (by a barrier): only to be looked at
//!          object | 4        an edge that was told by its slot, while objects are to be moved
//!          slots | 2, count  a range of slots within an object: edges, taken in slices; its count
//!                            is below it, in the same chunk, and a multiple of 8
//!
//!   drain    pop --> prefetch --> | ring of 16 | --> test and set the mark --> callback
//! ```
//!
//! Telling a reference is a store and an increment; all else happens when the item is
//! popped. Between its pop and its mark an edge waits in a *ring* while the lines that
//! it needs (its mark, its object) are fetched, because marking is nothing but cache misses (Cher,
//! Hosking, Vitek: "Software prefetching for mark-sweep garbage collection", 2004).
//!
//! An edge that does not lead to a page of this heap is passed over: null, small numbers,
//! static data, another heap's objects. An object's address is its slot's first byte.
//!
//! Each mutator and each helper has a tracer. While the world goes on it takes what barriers shade; while
//! the world stands still it works in the gang. What is marked it counts by shelf, so
//! when marking ends, what is live is known before a page is swept.
//!
//! A tracer may also *look*: then what a callback tells is handed to a closure (heap
//! dumps, verifiers, walks), and nothing is marked.
//!
//! A callback tells a reference by its value or by its *slot*. That is the same, but where objects are
//! to be moved (see `moving`): a slot can be noted, and changed; what a value leads to stays where it is.

use core::ptr::{self, NonNull};

use crate::address_map::{Entry, MAP};
use crate::os;
use crate::size_class::UNIT_SHIFT;
use crate::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use super::bits::{self, GRANULE};
use super::cell::{Num, Ptr};
use super::gang::{Chunk, ITEMS};
use super::heap::Heap;
use super::layout::{self, KINDS, LARGE, SHELVES};
use super::page;
use super::pile::{Buffer, Recent};
use super::references::Room;

/// The tag of an item that is marked already.
const MARKED: usize = 1;
/// The tag of a range.
const RANGE: usize = 2;
/// The tag of an edge that was told by its slot, while objects are to be moved.
const MOVABLE: usize = 4;
const TAGS: usize = 7;

/// Of what is marked, and young: some of it becomes old.
const YOUNG: usize = 1;
/// What is marked may be a key.
const KEYS: usize = 2;

/// Edges that wait for their lines.
const RING: usize = 16;
/// How far ahead of its pop an edge's mark is fetched.
const AHEAD: usize = 6;
/// Slots of a range that are looked at in one go.
const SLICE: usize = 256;
/// References that are told before they are handed to whoever looks.
const LOOK: usize = 256;
/// Edges between two looks at the clock.
const CHECK: usize = 64;

/// What looks at references instead of marking them.
type Look<'a> = &'a mut dyn FnMut(*mut u8);

/// What the runtime tells references to. Zero is one that has nothing.
///
/// The first three fields are part of the C interface: `heapwright_gc.h` pushes there.
#[repr(C)]
pub struct Tracer {
    pub(super) next: Ptr<*mut u8>,
    pub(super) end: Ptr<*mut u8>,
    /// What is done with slots: a [`Slots`].
    pub(super) by_slot: Num,
    heap: Ptr<Heap>,
    /// The newest chunk, and the ones behind it.
    chunk: Ptr<Chunk>,
    older: Ptr<Chunk>,
    /// The closure that looks, if one does.
    look: Ptr<Look<'static>>,
    /// How it marks: a [`Marks`].
    marks: Num,
    /// Of two, each with a lane: the second's marks, and where there are any (see `lanes`).
    lane: Ptr<AtomicU64>,
    dirty: Ptr<AtomicU8>,
    /// What else is to be done with what is marked: `YOUNG`, `KEYS`.
    notes: Num,
    /// Old objects that a store was told of, and objects that become old (see `remembered`).
    pub(super) stores: Recent,
    survivors: Buffer,
    /// Weak slots and ephemerons (see `weak`).
    slots: Buffer,
    ephemerons: Buffer,
    /// Places that were stored into (see `stored`), and where slots are noted (see `references`).
    pub(super) stored: Recent,
    pub(super) room: Room,
    /// Bytes of what was marked.
    pub(super) bytes: Num,
    /// Objects that were marked, by shelf.
    pub(super) marked: [Num; SHELVES],
}

/// How a tracer marks.
#[derive(Clone, Copy)]
pub(super) enum Marks {
    /// Nobody else does.
    Alone = 0,
    /// Others do at the same time: with locked instructions.
    Locked = 1,
    /// Another does, in a lane of its own.
    First = 2,
    /// The same, and this one has the lane.
    Second = 3,
}

/// What is done with slots that are told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Slots {
    /// What they lead to is told.
    Plain = 0,
    /// That, and it is noted that they lead there.
    Mark = 1,
    /// It is noted, and that is all.
    Note = 2,
    /// What they lead to is told, as something that may move all the same: these are roots.
    Root = 3,
    /// They lead to where their objects are now.
    Change = 4,
    /// Nothing.
    PassOver = 5,
}

/// When a drain ends before it is through.
#[derive(Clone, Copy)]
pub(super) struct Budget {
    /// Nanoseconds of the clock; 0: no matter how late.
    pub(super) deadline: u64,
    /// Bytes to mark.
    pub(super) bytes: usize,
}

impl Budget {
    /// No end.
    pub(super) const NONE: Self = Self { deadline: 0, bytes: usize::MAX };

    /// Little that is new, whatever time it takes to look at what is not.
    pub(super) const A_LITTLE: Self = Self { deadline: 0, bytes: 64 << 10 };

    /// Whether the time is over.
    pub(super) fn is_spent(self) -> bool {
        self.deadline != 0 && os::now_ns() >= self.deadline
    }

    /// Whether there is no end.
    pub(super) fn is_none(self) -> bool {
        self.deadline == 0 && self.bytes == usize::MAX
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn prefetch(at: *const u8) {
    // SAFETY: a prefetch reads nothing that anybody could see, whatever the address.
    unsafe { core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(at.cast()) };
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
fn prefetch(at: *const u8) {
    // SAFETY: a prefetch reads nothing that anybody could see, whatever the address.
    unsafe { core::arch::asm!("prfm pldl1keep, [{0}]", in(reg) at, options(nostack, readonly)) };
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
#[inline(always)]
fn prefetch(_at: *const u8) {}

/// Fetches an object: its first lines, of which most have no more.
#[inline(always)]
fn fetch(object: *const u8, size: usize) {
    prefetch(object);
    if size > 64 {
        prefetch(object.wrapping_add(64));
        if size > 128 {
            prefetch(object.wrapping_add(128));
        }
    }
}

/// The word of the mark of an address `offset` bytes into the window.
#[inline(always)]
fn mark_word(marks: *const AtomicU64, offset: usize) -> *const AtomicU64 {
    marks.wrapping_add(offset / GRANULE / 64)
}

impl Tracer {
    /// One of its own, for a helper.
    pub(super) fn new(heap: &'static Heap) -> Self {
        // SAFETY: zero is one that has nothing.
        let tracer: Self = unsafe { core::mem::zeroed() };
        tracer.belong(heap);
        tracer
    }

    /// Says whose it is.
    pub(super) fn belong(&self, heap: &'static Heap) {
        self.heap.set(ptr::from_ref(heap).cast_mut());
    }

    #[inline]
    fn heap(&self) -> &'static Heap {
        // SAFETY: set by `belong` before anything else; heaps are never freed.
        unsafe { &*self.heap.get() }
    }

    /// Chooses how it marks.
    pub(super) fn mark_as(&self, marks: Marks) {
        let lanes = &self.heap().lanes;
        self.marks.set(marks as usize);
        self.choose_notes();
        let noted = self.heap().moving.is_on();
        self.tell_slots(if noted { Slots::Mark } else { Slots::Plain });
        self.lane.set(lanes.words());
        self.dirty.set(lanes.dirty());
    }

    /// Whether others mark at the same time.
    #[inline]
    fn is_shared(&self) -> bool {
        self.marks.get() != Marks::Alone as usize
    }

    /// Tells a reference: to an object, or null, or what is no address of a word (numbers that
    /// a runtime tags in their lowest bits), which is passed over.
    #[inline]
    pub fn mark(&self, object: *mut u8) {
        if !object.is_null() && object.addr() & TAGS == 0 {
            self.push(object);
        }
    }

    /// Chooses what is done with slots.
    fn tell_slots(&self, slots: Slots) {
        self.by_slot.set(slots as usize);
    }

    /// What is done with slots.
    fn slots_are(&self) -> Slots {
        match self.by_slot.get() {
            0 => Slots::Plain,
            1 => Slots::Mark,
            2 => Slots::Note,
            3 => Slots::Root,
            4 => Slots::Change,
            _ => Slots::PassOver,
        }
    }

    /// Tells the reference in a slot. As [`Tracer::mark`], but what it leads to may be moved: then the
    /// slot is changed, with nobody at work.
    ///
    /// # Safety
    ///
    /// The slot can be read. It lies in the object that is being traced, and holds a reference, or
    /// something that is none of this heap, for as long as the object lives; or it is a root's, and
    /// nobody writes it while the world stands still. (If it is neither, but lies in memory of another
    /// kind, what it leads to is not moved.)
    #[inline]
    pub unsafe fn mark_slot(&self, slot: *mut *mut u8) {
        // SAFETY: by the contract.
        let object = unsafe { slot.read() };
        if self.by_slot.get() == Slots::Plain as usize {
            return self.mark(object);
        }
        self.slot(slot, object);
    }

    /// A slot, while objects are to be moved.
    #[cold]
    #[inline(never)]
    fn slot(&self, slot: *mut *mut u8, object: *mut u8) {
        if object.is_null() || object.addr() & TAGS != 0 {
            return;
        }
        match self.slots_are() {
            Slots::Plain => self.push(object),
            Slots::Mark => {
                self.heap().note_slot(self, slot, object);
                self.push(object.map_addr(|at| at | MOVABLE));
            }
            Slots::Note => self.heap().note_slot(self, slot, object),
            Slots::Root => self.push(object.map_addr(|at| at | MOVABLE)),
            Slots::Change => {
                if let Some(to) = self.heap().forwarded(object) {
                    // SAFETY: by the contract of `mark_slot`.
                    unsafe { slot.write(to) };
                }
            }
            Slots::PassOver => {}
        }
    }

    /// Tells a reference that whoever has it will change if its object moves.
    pub(super) fn edge(&self, object: *mut u8) {
        if matches!(self.slots_are(), Slots::Mark | Slots::Root) {
            if !object.is_null() && object.addr() & TAGS == 0 {
                self.push(object.map_addr(|at| at | MOVABLE));
            }
        } else {
            self.mark(object);
        }
    }

    /// Has roots told by `tell`: their slots lie anywhere.
    pub(super) fn telling_roots(&self, tell: impl FnOnce(&Self)) {
        let slots = self.slots_are();
        if slots == Slots::Mark {
            self.tell_slots(Slots::Root);
        }
        tell(self);
        self.tell_slots(slots);
    }

    #[inline]
    fn push(&self, item: *mut u8) {
        if self.next.get() == self.end.get() {
            self.make_room();
        }
        let next = self.next.get();
        // SAFETY: `make_room` leaves room for one item at least.
        unsafe { next.write(item) };
        self.next.set(next.wrapping_add(1));
    }

    /// Tells references to the objects that the `count` words at `slots` lead to.
    ///
    /// They are looked at later, so the slots lie in the object that is being traced.
    pub fn mark_range(&self, slots: *mut *mut u8, count: usize) {
        // A root's are told one by one: later nobody would know that they are roots.
        let roots = self.slots_are() == Slots::Root;
        if count <= 8 || roots || !self.look.get().is_null() {
            for n in 0..count {
                // SAFETY: by the contract of whoever traces, the slots can be read.
                unsafe { self.mark_slot(slots.wrapping_add(n)) };
            }
            return;
        }
        self.push_range(slots, count);
    }

    /// Tells that the reference in a slot is weak: the object that it leads to may die, and then the
    /// slot becomes null.
    ///
    /// # Safety
    ///
    /// The slot lies in the object that is being traced.
    pub unsafe fn mark_weak(&self, slot: *mut *mut u8) {
        let heap = self.heap();
        // SAFETY: by the contract.
        let object = unsafe { slot.read() };
        if !self.goes_on_with(slot, object) {
            return;
        }
        if self.look.get().is_null()
            && heap.is_unmarked(object)
            && !self.slots.push(heap, heap.weak.slots(), slot)
        {
            // No memory: this time it is kept.
            self.edge(object);
        }
    }

    /// Tells an ephemeron: the reference in `key` is weak, the one in `value` leads to its
    /// object for as long as the key's lives. When that dies, both become null. Keys that are no
    /// objects of the heap live for ever, but for null.
    ///
    /// # Safety
    ///
    /// Both lie in the object that is being traced.
    pub unsafe fn mark_ephemeron(&self, key: *mut *mut u8, value: *mut *mut u8) {
        let heap = self.heap();
        // SAFETY: by the contract.
        let held_by = unsafe { key.read() };
        // SAFETY: by the contract.
        let held = unsafe { value.read() };
        // Both are noted, whatever is in the other.
        let goes_on = [self.goes_on_with(key, held_by), self.goes_on_with(value, held)];
        if held_by.is_null() || goes_on.contains(&false) {
            return;
        }
        if !self.look.get().is_null()
            || !heap.is_unmarked(held_by)
            || !self.ephemerons.push(heap, heap.weak.ephemerons(), [key, value])
        {
            self.edge(held);
        }
    }

    /// A weak slot, or an ephemeron's: whether there is more to do with it than to note it.
    fn goes_on_with(&self, slot: *mut *mut u8, object: *mut u8) -> bool {
        let slots = self.slots_are();
        let noted = matches!(slots, Slots::Mark | Slots::Note);
        if noted && !object.is_null() && object.addr() & TAGS == 0 {
            self.heap().note_slot(self, slot, object);
        }
        matches!(slots, Slots::Plain | Slots::Mark)
    }

    /// Keeps a range to be looked at. The count is below it, so that the range is popped
    /// first, and in the same chunk, because chunks go to others one by one.
    fn push_range(&self, slots: *mut *mut u8, count: usize) {
        if self.end.get().addr() - self.next.get().addr() == size_of::<usize>() {
            // One place is left: nothing goes there, and both into the next chunk.
            self.push(ptr::null_mut());
        }
        // Shifted, so that a count is never taken for what has a tag.
        self.push(ptr::without_provenance_mut(count << TAGS.count_ones()));
        self.push(slots.cast::<u8>().map_addr(|at| at | RANGE));
    }

    /// The count of a range that was just popped.
    fn pop_count(&self) -> usize {
        self.pop().map_or(0, |count| count.addr() >> TAGS.count_ones())
    }

    /// Tells a word that may be an address within an object, or anything else.
    pub fn mark_maybe(&self, word: *mut u8) {
        if let Some(object) = self.heap().find(word) {
            self.push(object);
        }
    }

    /// Tells every word of `[from, to)`, as [`Tracer::mark_maybe`].
    ///
    /// # Safety
    ///
    /// The range can be read.
    pub unsafe fn scan(&self, from: *const u8, to: *const u8) {
        let mut at = from.wrapping_add(from.align_offset(size_of::<usize>())).cast::<*mut u8>();
        while at.wrapping_add(1).addr() <= to.addr() {
            // SAFETY: within the range, aligned. Volatile: a stack is anything.
            self.mark_maybe(unsafe { at.read_volatile() });
            at = at.wrapping_add(1);
        }
    }

    /// Makes room for an item: the callbacks' slow path.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room(&self) {
        if !self.look.get().is_null() {
            return self.show();
        }
        if !self.has_made_room() {
            let chunk = self.heap().last_resort();
            self.resume(chunk);
            self.overflow();
        }
    }

    /// Makes room for an item. False: it has no chunk, and there is none to be had.
    fn has_made_room(&self) -> bool {
        let chunk = self.chunk.get();
        let Some(fresh) = self.heap().take_chunk() else {
            if chunk.is_null() {
                return false;
            }
            self.overflow();
            return true;
        };
        if !chunk.is_null() {
            self.close_chunk();
            if self.is_shared() && self.heap().gang.is_hungry() {
                // SAFETY: closed above, and in no list.
                unsafe { self.heap().gang.give(chunk) };
            } else {
                // SAFETY: as above.
                unsafe { self.put_older(chunk) };
            }
        }
        self.open_chunk(fresh, 0);
        true
    }

    /// The items of a chunk.
    fn items(chunk: *mut Chunk) -> *mut *mut u8 {
        // SAFETY: in bounds of the chunk, and nothing is read.
        unsafe { &raw mut (*chunk).items }.cast()
    }

    fn open_chunk(&self, chunk: *mut Chunk, count: usize) {
        let items = Self::items(chunk);
        self.chunk.set(chunk);
        self.next.set(items.wrapping_add(count));
        self.end.set(items.wrapping_add(ITEMS));
    }

    /// The newest chunk is no longer open: says how many items it has.
    fn close_chunk(&self) {
        let chunk = self.chunk.get();
        let count = (self.next.get().addr() - Self::items(chunk).addr()) / size_of::<usize>();
        // SAFETY: the chunk is this tracer's.
        let place = unsafe { &raw mut (*chunk).count };
        // SAFETY: as above.
        unsafe { place.write(count) };
        self.chunk.set(ptr::null_mut());
        self.next.set(ptr::null_mut());
        self.end.set(ptr::null_mut());
    }

    /// # Safety
    ///
    /// The chunk is this tracer's, closed, and in no list.
    unsafe fn put_older(&self, chunk: *mut Chunk) {
        // SAFETY: by the contract.
        let next = unsafe { &raw mut (*chunk).next };
        // SAFETY: as above.
        unsafe { next.write(self.older.get()) };
        self.older.set(chunk);
    }

    fn take_older(&self) -> Option<NonNull<Chunk>> {
        let chunk = NonNull::new(self.older.get())?;
        // SAFETY: a chunk of this tracer's list.
        self.older.set(unsafe { chunk.as_ref() }.next);
        Some(chunk)
    }

    /// Opens a chunk that has items. False: there is none, of its own.
    fn reopen(&self) -> bool {
        if let Some(spent) = NonNull::new(self.chunk.get()) {
            if self.older.get().is_null() {
                return false;
            }
            self.close_chunk();
            // SAFETY: spent and in no list.
            unsafe { self.heap().gang.give_empty(spent.as_ptr()) };
        }
        let Some(chunk) = self.take_older() else { return false };
        self.resume(chunk.as_ptr());
        true
    }

    fn resume(&self, chunk: *mut Chunk) {
        // SAFETY: the chunk is this tracer's, and says how many items it has.
        let count = unsafe { (*chunk).count };
        // SAFETY: as above.
        let home = unsafe { &raw mut (*chunk).home };
        // SAFETY: as above.
        unsafe { home.write(0) };
        self.open_chunk(chunk, count);
    }

    /// The newest item, if any is its own.
    #[inline]
    fn pop(&self) -> Option<*mut u8> {
        let chunk = self.chunk.get();
        if (chunk.is_null() || self.next.get() == Self::items(chunk)) && !self.reopen() {
            return None;
        }
        let next = self.next.get().wrapping_sub(1);
        self.next.set(next);
        // What will be popped soon, unless other things come first. At a chunk's start this
        // is a word of its head, or of its neighbour, and the prefetch is for nothing.
        // SAFETY: in the run of side memory that chunks are cut from; the first chunk's
        // place has none. Volatile: the neighbour may be somebody else's, who writes it.
        let soon = unsafe { next.wrapping_sub(AHEAD).read_volatile() };
        let offset = soon.addr().wrapping_sub(MAP.base().addr());
        prefetch(mark_word(MAP.side_bitmap(0).cast(), offset).cast());
        if self.marks.get() >= Marks::First as usize {
            prefetch(mark_word(self.lane.get(), offset).cast());
        }
        // SAFETY: pushed before, and in this tracer's chunk.
        Some(unsafe { next.read() })
    }

    /// Where it is at home: which chunks it is to take first.
    fn home(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Gives everything it has to the gang.
    pub(super) fn publish(&self) {
        self.publish_at(0);
    }

    /// As [`Tracer::publish`], what was on the stack of the mutator that has `other`.
    pub(super) fn publish_for(&self, other: &Self) {
        self.publish_at(other.home());
    }

    fn publish_at(&self, home: usize) {
        if !self.chunk.get().is_null() {
            let chunk = self.chunk.get();
            self.close_chunk();
            // SAFETY: closed above, in no list.
            let count = unsafe { (*chunk).count };
            if count > 0 {
                // SAFETY: as above.
                unsafe { self.give_at(home, chunk) };
            } else {
                // SAFETY: as above.
                unsafe { self.heap().gang.give_empty(chunk) };
            }
        }
        while let Some(chunk) = self.take_older() {
            // SAFETY: taken from the list just now.
            unsafe { self.give_at(home, chunk.as_ptr()) };
        }
    }

    /// # Safety
    ///
    /// The chunk is this tracer's, closed, and in no list.
    unsafe fn give_at(&self, home: usize, chunk: *mut Chunk) {
        // SAFETY: by the contract.
        let place = unsafe { &raw mut (*chunk).home };
        // SAFETY: as above.
        unsafe { place.write(home) };
        // SAFETY: as above.
        unsafe { self.heap().gang.give(chunk) };
    }

    /// Gives half of what it has to those who have nothing, if that is worth it.
    #[cold]
    fn share(&self) {
        if let Some(chunk) = self.take_older() {
            // SAFETY: taken from the list just now.
            unsafe { self.heap().gang.give(chunk.as_ptr()) };
            return;
        }
        let chunk = self.chunk.get();
        if chunk.is_null() {
            return;
        }
        let items = Self::items(chunk);
        let count = (self.next.get().addr() - items.addr()) / size_of::<usize>();
        let mut keep = count.div_ceil(2);
        if count < 8 || keep >= count {
            return;
        }
        // SAFETY: an item of its own.
        let cut = unsafe { items.wrapping_add(keep).read() };
        // A range and its count stay together.
        if cut.addr() & TAGS == RANGE {
            keep += 1;
        }
        let Some(other) = self.heap().take_chunk() else { return };
        // The lower half: what was found first leads to more.
        // SAFETY: both have room for so many items, and are this tracer's.
        unsafe { ptr::copy_nonoverlapping(items, Self::items(other), keep) };
        // SAFETY: within the chunk, from its upper half to its start.
        unsafe { ptr::copy(items.wrapping_add(keep), items, count - keep) };
        self.next.set(items.wrapping_add(count - keep));
        // SAFETY: the chunk is this tracer's.
        let place = unsafe { &raw mut (*other).count };
        // SAFETY: as above.
        unsafe { place.write(keep) };
        // SAFETY: in no list, and says how many items it has.
        unsafe { self.heap().gang.give(other) };
    }

    /// No memory for another chunk: what the newest one has is marked, and the pages are
    /// noted, to be looked through later. Leaves room.
    ///
    /// A page is noted for what has become marked, and for what a barrier had marked: so
    /// looking through pages comes to an end. Ranges are looked at here, however long they
    /// are: to note their object would have it told again, and again find no room.
    #[cold]
    fn overflow(&self) {
        // Values of keys that are marked here are found when ephemerons are looked through again.
        let notes = self.notes.replace(self.notes.get() & !KEYS);
        let items = Self::items(self.chunk.get());
        let note = |object| {
            if self.set_mark(object, |_| {}) {
                self.heap().note_overflow(object);
            }
        };
        while self.next.get() != items {
            let Some(item) = self.pop() else { break };
            let at = item.map_addr(|at| at & !TAGS);
            match item.addr() & TAGS {
                RANGE => {
                    let slots: *mut *mut u8 = at.cast();
                    for n in 0..self.pop_count() {
                        // SAFETY: as in `special`.
                        let object = unsafe { slots.wrapping_add(n).read() };
                        if !object.is_null() && object.addr() & TAGS == 0 {
                            if self.slots_are() == Slots::Mark {
                                self.heap().note_slot(self, slots.wrapping_add(n), object);
                            }
                            note(object);
                        }
                    }
                }
                MARKED => self.heap().note_overflow(at),
                MOVABLE => note(at),
                _ => {
                    self.told_by_value(item);
                    note(item);
                }
            }
        }
        self.notes.set(notes);
    }

    /// An edge that was told by its value: while objects are to be moved, this one stays.
    fn told_by_value(&self, object: *mut u8) {
        if self.by_slot.get() != Slots::Plain as usize {
            self.heap().stays_where_it_is(object);
        }
    }

    /// Marks an object, if it is one of this heap's. Whether it is to be looked at: it was
    /// not marked before, and may hold references; then `fetch` is called with its size.
    #[inline(always)]
    fn set_mark(&self, object: *mut u8, fetch: impl FnOnce(usize)) -> bool {
        let heap = self.heap();
        let offset = object.addr().wrapping_sub(MAP.base().addr());
        let unit = offset >> UNIT_SHIFT;
        if unit >= MAP.limit() {
            return false;
        }
        // SAFETY: below the limit.
        let shelf = unsafe { MAP.entry_from(MAP.base(), unit) }.shelf(heap.tag());
        if shelf >= SHELVES {
            return false;
        }
        let word = mark_word(MAP.side_bitmap(0).cast(), offset);
        // SAFETY: the side bitmaps of all units below the limit are one array of words.
        let word = unsafe { &*word };
        let mask = bits::place(offset).1;
        let before = word.load(Ordering::Relaxed);
        if before & mask != 0 {
            return false;
        }
        let marks = self.marks.get();
        if marks == Marks::Alone as usize {
            word.store(before | mask, Ordering::Relaxed);
        } else if marks == Marks::Locked as usize {
            if word.fetch_or(mask, Ordering::Relaxed) & mask != 0 {
                return false;
            }
        } else {
            // SAFETY: as above: the lane has as many words.
            let lane = unsafe { &*mark_word(self.lane.get(), offset) };
            let there = lane.load(Ordering::Relaxed);
            if there & mask != 0 {
                return false;
            }
            if marks == Marks::First as usize {
                word.store(before | mask, Ordering::Relaxed);
            } else {
                lane.store(there | mask, Ordering::Relaxed);
                // SAFETY: there is a byte for each unit.
                unsafe { &*self.dirty.get().wrapping_add(unit) }.store(1, Ordering::Relaxed);
            }
        }
        self.marked[shelf].add(1);
        let size =
            if shelf / KINDS == LARGE { heap.large_footprint(unit) } else { heap.slot(shelf) };
        self.bytes.add(size);
        let traced = layout::is_traced(shelf);
        if traced {
            fetch(size);
        }
        if self.notes.get() != 0 {
            self.note(object, unit, traced);
        }
        traced
    }

    /// Chooses what is to be done with what is marked.
    fn choose_notes(&self) {
        let heap = self.heap();
        let young = if heap.is_minor() { YOUNG } else { 0 };
        self.notes.set(young | if heap.weak.is_watching() { KEYS } else { 0 });
    }

    /// An object was marked. If it is young and has survived before it becomes old, and what it
    /// leads to may stay young.
    #[cold]
    #[inline(never)]
    fn note(&self, object: *mut u8, unit: usize, traced: bool) {
        let heap = self.heap();
        if self.notes.get() & KEYS != 0 {
            heap.mark_values_of(object, self);
        }
        if self.notes.get() & YOUNG == 0 || !traced {
            return;
        }
        let offset = object.addr() - MAP.address_of(unit).addr();
        let page = heap.pages.at_unit(unit);
        if page.is_some_and(|page| page.has_survived(offset))
            && !self.survivors.push(heap, heap.remembered.survivors(), object.addr())
        {
            heap.remembered.lose();
        }
    }

    /// Gives what it has put down to the heap.
    pub(super) fn give_notes(&self) {
        let (remembered, weak) = (&self.heap().remembered, &self.heap().weak);
        self.stores.give(remembered.stores());
        self.survivors.give(remembered.survivors());
        self.slots.give(weak.slots());
        self.ephemerons.give(weak.ephemerons());
        self.stored.give(&self.heap().stored);
    }

    /// An old object is to be looked at once more, if it has no mark; it has its mark again. While nobody else marks.
    pub(super) fn look_again(&self, address: usize) {
        let object = MAP.base().with_addr(address);
        let unit = MAP.unit_of(address);
        if bits::set(page::marks(unit), address - MAP.address_of(unit).addr()) {
            self.push(object.map_addr(|at| at | MARKED));
        }
    }

    /// A barrier's part: marks an object at once, and keeps it to be looked at. By any
    /// number of threads, each with a tracer of its own.
    pub(super) fn shade(&self, object: *mut u8) {
        self.marks.set(Marks::Locked as usize);
        self.choose_notes();
        if self.set_mark(object, |_| {}) {
            // Without a chunk, and while others are at work, it must not wait for one.
            if self.next.get() == self.end.get() && !self.has_made_room() {
                self.heap().note_overflow(object);
            } else {
                self.push(object.map_addr(|at| at | MARKED));
            }
        }
    }

    /// Marks until nothing is left of its own, nor in the gang if it is one of several.
    /// False: the budget was used up.
    pub(super) fn drain(&self, budget: Budget) -> bool {
        let gang = &self.heap().gang;
        let until = self.bytes.get().saturating_add(budget.bytes);
        loop {
            if !self.drain_own(budget.deadline, until) {
                return false;
            }
            // Before it waits: there may be no more chunks than this one.
            let spent = self.chunk.get();
            if !spent.is_null() {
                self.close_chunk();
                // SAFETY: nothing is in it, and it is in no list.
                unsafe { gang.give_empty(spent) };
            }
            let more = if !self.is_shared() { gang.take_now() } else { gang.take(self.home()) };
            let Some(chunk) = more else { return !gang.is_stopped() || !self.is_shared() };
            self.resume(chunk);
        }
    }

    /// Marks until nothing is left of its own. False: the budget was used up.
    pub(super) fn drain_own(&self, deadline: u64, until: usize) -> bool {
        if self.by_slot.get() == Slots::Plain as usize {
            self.drain_items::<false>(deadline, until)
        } else {
            self.drain_items::<true>(deadline, until)
        }
    }

    /// As [`Tracer::drain_own`]; objects are to be moved, or not.
    fn drain_items<const MOVE: bool>(&self, deadline: u64, until: usize) -> bool {
        let mut ring = [ptr::null_mut(); RING];
        let mut at = 0;
        let mut edges = 0;
        // In stress mode a step may end after any edge.
        let check = if self.heap().is_stressed() { 1 } else { CHECK };
        loop {
            while let Some(mut item) = self.pop() {
                if MOVE && item.addr() & TAGS == MOVABLE {
                    item = item.map_addr(|at| at & !TAGS);
                } else if MOVE && item.addr() & TAGS == 0 {
                    self.heap().stays_where_it_is(item);
                }
                if item.addr() & TAGS != 0 {
                    self.special(item);
                } else if self.set_mark(item, |size| fetch(item, size)) {
                    let due = core::mem::replace(&mut ring[at], item);
                    at = (at + 1) % RING;
                    if !due.is_null() {
                        self.trace(due);
                    }
                }
                edges += 1;
                if edges < check {
                    continue;
                }
                edges = 0;
                if self.is_over(deadline, until) {
                    let left = ring.into_iter().filter(|object| !object.is_null());
                    left.for_each(|object| self.push(object.map_addr(|at| at | MARKED)));
                    return false;
                }
            }
            let mut any = false;
            for n in 0..RING {
                let due = core::mem::replace(&mut ring[(at + n) % RING], ptr::null_mut());
                if !due.is_null() {
                    any = true;
                    self.trace(due);
                }
            }
            if !any {
                return true;
            }
        }
    }

    /// Whether the budget is used up; shares what it has with those who have nothing.
    #[cold]
    #[inline(never)]
    fn is_over(&self, deadline: u64, until: usize) -> bool {
        if self.is_shared() {
            let gang = &self.heap().gang;
            if gang.is_stopped() {
                return true;
            }
            if gang.is_hungry() {
                self.share();
            }
        }
        self.bytes.get() >= until || (deadline != 0 && os::now_ns() >= deadline)
    }

    /// Has the runtime tell the references of an object.
    #[inline]
    pub(super) fn trace(&self, object: *mut u8) {
        self.heap().runtime().trace(self, object);
    }

    /// An item that is no plain edge.
    #[cold]
    #[inline(never)]
    fn special(&self, item: *mut u8) {
        let at = item.map_addr(|at| at & !TAGS);
        if item.addr() & TAGS == MARKED {
            return self.trace(at);
        }
        let count = self.pop_count();
        let slots: *mut *mut u8 = at.cast();
        let now = count.min(SLICE);
        if count > now {
            self.push_range(slots.wrapping_add(now), count - now);
        }
        for n in 0..now {
            // SAFETY: by the contract of `mark_range` the slots lie in an object that is
            // marked, and so is there until the sweep.
            unsafe { self.mark_slot(slots.wrapping_add(n)) };
        }
    }

    /// Looks through the pages of objects that were marked and not looked at. Whether there
    /// were any.
    pub(super) fn look_through(&self, page: &page::Page) {
        page.overflowed.set(0);
        for offset in page.objects().filter(|&offset| page.is_marked(offset)) {
            self.trace(page.base().wrapping_add(offset));
        }
    }

    /// Calls `look` for each reference that the runtime tells of an object, or that
    /// `tell` tells otherwise. Nothing is marked. The tracer has nothing to do meanwhile.
    pub(super) fn looking(&self, tell: impl FnOnce(&Self), look: Look<'_>) {
        self.looking_at(Slots::Plain, tell, look);
    }

    /// As [`Tracer::looking`], and does with slots what it is told to.
    pub(super) fn looking_at(&self, slots: Slots, tell: impl FnOnce(&Self), look: Look<'_>) {
        debug_assert!(self.chunk.get().is_null());
        let mut room = [ptr::null_mut::<u8>(); LOOK];
        let mut look: Look<'_> = look;
        self.look.set((&raw mut look).cast());
        self.chunk.set(ptr::null_mut());
        let start = room.as_mut_ptr();
        self.next.set(start);
        self.end.set(start.wrapping_add(LOOK));
        /// Forgets the room, also if `look` unwinds: it is in this frame.
        struct Forget<'a>(&'a Tracer, Slots);
        impl Drop for Forget<'_> {
            fn drop(&mut self) {
                self.0.tell_slots(self.1);
                self.0.look.set(ptr::null_mut());
                self.0.next.set(ptr::null_mut());
                self.0.end.set(ptr::null_mut());
            }
        }
        let _forgotten = Forget(self, self.slots_are());
        self.tell_slots(slots);
        tell(self);
        self.show();
    }

    /// Hands what was told to whoever looks.
    fn show(&self) {
        let start = self.end.get().wrapping_sub(LOOK);
        let count = (self.next.get().addr() - start.addr()) / size_of::<usize>();
        // SAFETY: set by `looking`, on whose stack it is, and whose callee this is.
        let look = unsafe { &mut *self.look.get() };
        self.next.set(start);
        for n in 0..count {
            // SAFETY: pushed by the callback.
            let reference = unsafe { start.wrapping_add(n).read() };
            look(reference);
        }
    }

    /// Forgets all counts. Returns bytes marked.
    pub(super) fn forget_counts(&self) -> usize {
        self.marked.iter().for_each(|count| count.set(0));
        self.bytes.take()
    }
}

/// Where the marks would be of address 0: those of an object are an eighth of a sixteenth of its
/// address further on.
pub(super) fn marks_of_nothing() -> *mut u8 {
    let skipped = MAP.base().addr() / GRANULE / 8;
    MAP.side_bitmap(0).wrapping_sub(skipped)
}

/// The shelf of an object's page, if it is an object of the heap whose entries have `tag`.
#[inline]
pub(super) fn shelf_of(address: usize, tag: u32) -> Option<(usize, usize)> {
    let (unit, entry): (usize, Entry) = MAP.lookup(address);
    let shelf = entry.shelf(tag);
    (shelf < SHELVES).then_some((unit, shelf))
}

#[cfg(test)]
mod tests {
    use super::super::mutator::Mutator;
    use super::super::raw::{Options, Runtime};
    use super::*;
    extern crate std;
    use std::vec::Vec;

    /// How many ranges there are, if each has its count below it.
    fn ranges(items: &[usize]) -> usize {
        let is_range = |item: &usize| item & TAGS == RANGE;
        for (n, _) in items.iter().enumerate().filter(|(_, item)| is_range(item)) {
            assert_eq!(items[n - 1] >> 3, items[n] >> 3);
        }
        items.iter().filter(|item| is_range(item)).count()
    }

    #[test]
    fn sharing_parts_no_range_from_its_count() {
        let heap = Heap::make(Options::new(), Runtime::new()).unwrap();
        let slot = Mutator::attach(&heap.value).unwrap();
        let tracer = &slot.value.tracer;
        // A range of n slots at address 8n; and every place that a half can end at.
        for before in 8..40 {
            (0..before).for_each(|_| tracer.push(ptr::null_mut()));
            (9..9 + before).for_each(|n| tracer.push_range(ptr::without_provenance_mut(8 * n), n));
            tracer.share();
            tracer.publish();
            let mut found = 0;
            while let Some(chunk) = heap.value.gang.take_now() {
                // SAFETY: taken from the gang just now.
                let items = unsafe { &*chunk };
                let items: Vec<usize> = items.items[..items.count].to_vec();
                found += ranges(&items);
                // SAFETY: nobody else knows it.
                unsafe { (*chunk).count = 0 };
                // SAFETY: as above.
                unsafe { heap.value.gang.give_empty(chunk) };
            }
            assert_eq!(found, before);
        }
        Mutator::detach(slot);
        Heap::end(heap);
    }
}
