//! The tracer: it takes references from the runtime's callbacks, and marks their objects.
//!
//! ```text
//!   callback --mark(object)--> | item | item | ... | next ...... end |      the newest chunk
//!                                               pops ^
//!   item   object            an edge: its object is to be marked, and then traced
//!          object | 1        marked already (by a barrier): only to be traced
//!          object | 4        an edge that was reported by its slot, while objects are to be moved
//!          slots | 2, count  a range of slots within an object: edges, taken in slices; its count
//!                            is below it, in the same chunk, and a multiple of 8
//!          object | 3, from  an object of which a part was traced: the next part begins at `from`,
//!                            which lies below it as a range's count does
//!
//!   drain    pop --> test and set the mark --> prefetch --> | ring | --> callback
//! ```
//!
//! Reporting a reference takes a store and an increment (`reporting`, `stack`). All other work is
//! done when the item is popped (`draining`).
//!
//! The tracer skips an edge that does not lead to a page of this heap: null, small numbers, static
//! data, another heap's objects. The runtime may hear of such edges (`outside`).
//!
//! Each mutator and each helper has a tracer. While the world goes on, the tracer takes objects
//! that barriers shade. While the world is stopped, the tracer works in the gang. It counts marked
//! objects by page list, so the live bytes are known when marking ends, before any page is swept.

use core::ptr;

use heapwright_substrate::address_map::MAP;
use heapwright_substrate::os::{self, prefetch};
use heapwright_substrate::size_class::{UNIT, UNIT_SHIFT};
use heapwright_substrate::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use super::array::Array;
use super::bag::{Buffer, Recent};
use super::bits::{self, GRANULE};
use super::cell::{Num, Ptr};
use super::gang::Chunk;
use super::layout::{self, KINDS, LARGE, PAGE_LISTS};
use super::page::{self, Evacuation};
use super::references::Room;
use super::space::Space;
use super::trace::Trace;

mod draining;
mod reporting;
mod stack;

const MARKED: usize = 1;
const RANGE: usize = 2;
const REST: usize = 3;
const MOVABLE: usize = 4;
const TAGS: usize = 7;

/// Some young objects become old when they are marked.
const YOUNG: usize = 1;
/// A marked object may be a key.
const KEYS: usize = 2;

/// The closure that looks at references instead of marking them.
type Look<'a> = &'a mut dyn FnMut(*mut u8);

/// Traces a value inside an object: reports its references.
pub type TraceSlot = unsafe fn(place: *mut u8, tracer: &Tracer);

/// The receiver of the runtime's references. All-zero bytes are a tracer without items.
///
/// The first three fields are part of the C interface: `heapwright_gc.h` pushes there.
#[repr(C)]
pub struct Tracer {
    pub(super) next: Ptr<*mut u8>,
    pub(super) end: Ptr<*mut u8>,
    /// How slots are treated: a [`Slots`].
    pub(super) by_slot: Num,
    trace: Ptr<Trace>,
    space: Ptr<Space>,
    /// The newest chunk. `older`: the chunks behind it.
    chunk: Ptr<Chunk>,
    older: Ptr<Chunk>,
    /// The closure that looks at references, or null.
    look: Ptr<Look<'static>>,
    /// How the tracer marks: a [`Marks`].
    marks: Num,
    /// The bitmap of the second tracer, if two tracers mark, each in its own bitmap. `dirty`: the
    /// units in which this bitmap has marks (see `local_marks`).
    local_bitmap: Ptr<AtomicU64>,
    dirty: Ptr<AtomicU8>,
    /// Further work for each marked object: `YOUNG`, `KEYS`.
    notes: Num,
    /// Old objects with a reported store. `places`: places of stores. `survivors`: objects that
    /// become old (see `remembered`).
    pub(super) stores: Recent,
    pub(super) places: Recent,
    survivors: Buffer,
    /// Weak slots and ephemerons (see `weak`).
    slots: Buffer,
    ephemerons: Buffer,
    /// Places that were stored into (see `dirty_slots`). `room`: memory for notes of slots (see
    /// `references`).
    pub(super) dirty_slots: Recent,
    pub(super) room: Room,
    /// The depth of nested owned values, and the values that wait (see [`Tracer::owned`]).
    depth: Num,
    waiting: Ptr<Array<Waiting>>,
    /// The beginning of the traced part in its object. `next_part`: the beginning of the next part,
    /// for a closure that looks, or 0 if there is none.
    from: Num,
    next_part: Num,
    /// Bytes of the objects that were marked.
    pub(super) bytes: Num,
    /// How many of these bytes belong to large objects that are traced. `counted`: how many of the
    /// other bytes are part of the work already.
    large: Num,
    counted: Num,
    /// The work so far, in bytes. Each piece of work counts as the larger of two numbers. The first
    /// number is the bytes of marked objects, without large objects that are traced. The second
    /// number is the bytes of slots that were read. So the slots of a large object count when they
    /// are read, even if they lead to nothing new.
    pub(super) work: Num,
    /// Objects that were marked, by page list.
    pub(super) marked: [Num; PAGE_LISTS],
}

/// A value that is traced after the values that own it.
#[derive(Clone, Copy)]
struct Waiting {
    place: *mut u8,
    trace: TraceSlot,
}

#[derive(Clone, Copy)]
pub(super) enum Marks {
    /// No other tracer marks.
    Alone = 0,
    /// Other tracers mark at the same time, with locked instructions.
    Locked = 1,
    /// Another tracer marks at the same time, in its local bitmap.
    First = 2,
    /// Another tracer marks at the same time. This tracer marks in its local bitmap.
    Second = 3,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Slots {
    /// Their references are reported.
    Plain = 0,
    /// Their references are reported, and the slots are noted.
    Mark = 1,
    /// The slots are noted, and nothing else.
    Note = 2,
    /// Their references are reported, and the objects may move: these slots are roots.
    Root = 3,
    /// Their references are changed to where the objects are now.
    Change = 4,
    /// They are ignored.
    PassOver = 5,
}

/// The limits at which a drain ends before its work is done.
#[derive(Clone, Copy)]
pub(super) struct Budget {
    /// Nanoseconds of the clock, or 0 for no deadline.
    pub(super) deadline: u64,
    /// Bytes of work (see [`Tracer`]).
    pub(super) bytes: usize,
}

impl Budget {
    pub(super) const NONE: Self = Self { deadline: 0, bytes: usize::MAX };

    /// As much work as `bytes` say, however long it takes.
    pub(super) fn of(bytes: usize) -> Self {
        Self { deadline: 0, bytes }
    }

    pub(super) fn is_spent(self) -> bool {
        self.deadline != 0 && os::now_ns() >= self.deadline
    }

    pub(super) fn is_none(self) -> bool {
        self.deadline == 0 && self.bytes == usize::MAX
    }
}

/// Prefetches the first lines of an object. Most objects have no more.
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
    pub(super) fn new(trace: &'static Trace) -> Self {
        // SAFETY: zero is a tracer without items.
        let tracer: Self = unsafe { core::mem::zeroed() };
        tracer.belong(trace);
        tracer
    }

    pub(super) fn belong(&self, trace: &'static Trace) {
        self.trace.set(ptr::from_ref(trace).cast_mut());
        self.space.set(ptr::from_ref(trace.space()).cast_mut());
    }

    #[inline]
    pub(super) fn of(&self) -> &'static Trace {
        // SAFETY: `belong` set the pointer before any use, and traces are never freed.
        unsafe { &*self.trace.get() }
    }

    #[inline]
    pub(super) fn space(&self) -> &'static Space {
        // SAFETY: `belong` set the pointer before any use, and spaces are never freed.
        unsafe { &*self.space.get() }
    }

    pub(super) fn mark_as(&self, marks: Marks) {
        let local_marks = &self.of().marking.local_marks;
        self.marks.set(marks as usize);
        self.choose_notes();
        let noted = self.of().is_noting();
        self.set_slots(if noted { Slots::Mark } else { Slots::Plain });
        self.local_bitmap.set(local_marks.words());
        self.dirty.set(local_marks.dirty());
    }

    #[inline]
    fn is_shared(&self) -> bool {
        self.marks.get() != Marks::Alone as usize
    }

    /// Marks an object, if it is in this heap. Returns whether the object must be traced, because
    /// it was not marked before and may hold references. If so, calls `fetch` with its size.
    #[inline(always)]
    fn set_mark(&self, object: *mut u8, fetch: impl FnOnce(usize)) -> bool {
        let space = self.space();
        let offset = object.addr().wrapping_sub(MAP.base().addr());
        let unit = offset >> UNIT_SHIFT;
        if unit >= MAP.limit() {
            return self.outside(object);
        }
        // SAFETY: the unit is below the limit.
        let page_list = unsafe { MAP.entry_from(MAP.base(), unit) }.page_list(space.tag());
        if page_list >= PAGE_LISTS {
            return self.outside(object);
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
            // SAFETY: the local bitmap has a word wherever the side bitmaps have one.
            let local_bitmap = unsafe { &*mark_word(self.local_bitmap.get(), offset) };
            let there = local_bitmap.load(Ordering::Relaxed);
            if there & mask != 0 {
                return false;
            }
            if marks == Marks::First as usize {
                word.store(before | mask, Ordering::Relaxed);
            } else {
                local_bitmap.store(there | mask, Ordering::Relaxed);
                // SAFETY: there is a byte for each unit.
                unsafe { &*self.dirty.get().wrapping_add(unit) }.store(1, Ordering::Relaxed);
            }
        }
        self.marked[page_list].add(1);
        let size = if page_list / KINDS == LARGE {
            self.large_size(unit, page_list)
        } else {
            space.slot(page_list)
        };
        self.bytes.add(size);
        let traced = layout::is_traced(page_list);
        if traced {
            fetch(size);
        }
        if self.notes.get() != 0 {
            self.note(object, unit, traced);
        }
        traced
    }

    #[cold]
    fn large_size(&self, unit: usize, page_list: usize) -> usize {
        let size = self.space().large_footprint(unit);
        if layout::is_traced(page_list) {
            self.large.add(size);
        }
        size
    }

    /// Adds to the work. `edges` edges were looked at since the last call.
    fn count_work(&self, edges: usize) {
        let marked = self.bytes.get().wrapping_sub(self.large.get());
        let fresh = marked.wrapping_sub(self.counted.replace(marked));
        self.work.add(fresh.max(edges * size_of::<usize>()));
    }

    #[cold]
    #[inline(never)]
    fn outside(&self, reference: *mut u8) -> bool {
        self.of().runtime().outside(self, reference);
        false
    }

    fn choose_notes(&self) {
        let trace = self.of();
        let young = if trace.generations.is_minor() { YOUNG } else { 0 };
        self.notes.set(young | if trace.weak.is_watching() { KEYS } else { 0 });
    }

    /// Does the further work for an object that was marked. If the object is young and has survived
    /// before, it becomes old, and the objects that it leads to may stay young.
    #[cold]
    #[inline(never)]
    fn note(&self, object: *mut u8, unit: usize, traced: bool) {
        if self.notes.get() & KEYS != 0 {
            self.mark_values_of(object);
        }
        if self.notes.get() & YOUNG == 0 || !traced {
            return;
        }
        let offset = object.addr() - MAP.address_of(unit).addr();
        let page = self.space().pages.at_unit(unit);
        let trace = self.of();
        let remembered = &trace.generations.remembered;
        if page.is_some_and(|page| page.has_survived(offset))
            && !self.survivors.push(&trace.marking, remembered.survivors(), object.addr())
        {
            remembered.lose();
        }
    }

    pub(super) fn give_notes(&self) {
        let (remembered, weak) = (&self.of().generations.remembered, &self.of().weak);
        self.stores.give(remembered.stores());
        self.places.give(remembered.places());
        self.survivors.give(remembered.survivors());
        self.slots.give(weak.slots());
        self.ephemerons.give(weak.ephemerons());
        self.dirty_slots.give(&self.of().dirty_slots);
    }

    /// If an old object has no mark, marks the object again, and keeps it to be traced once more.
    /// No other thread may mark meanwhile.
    pub(super) fn look_again(&self, address: usize) {
        let object = MAP.base().with_addr(address);
        let unit = MAP.unit_of(address);
        if bits::set(page::marks(unit), address - MAP.address_of(unit).addr()) {
            self.push(object.map_addr(|at| at | MARKED));
        }
    }

    /// Keeps a marked object to be traced once more. It was looked up when it was marked.
    pub(super) fn look_once_more(&self, object: *mut u8) {
        self.push_rest(object, 0);
    }

    /// Marks an object at once, for a barrier, and keeps it to be traced. Any number of threads may
    /// call this, each with a tracer of its own.
    pub(super) fn shade(&self, object: *mut u8) {
        self.marks.set(Marks::Locked as usize);
        self.choose_notes();
        // A key is looked up when the object is popped, while the world is stopped.
        let watching = self.notes.get() & KEYS != 0;
        self.notes.set(self.notes.get() & !KEYS);
        let is_key = watching && self.space().is_unmarked(object);
        if self.set_mark(object, |_| {}) || is_key {
            // Other mutators may run now, so a tracer must not wait for a chunk here.
            if self.next.get() == self.end.get() && !self.has_made_room() {
                if watching {
                    self.of().settling.miss();
                }
                self.note_overflow(object);
            } else {
                self.push(object.map_addr(|at| at | MARKED));
            }
        }
    }

    /// Notes that an object's page is to be looked through, because marking had no memory.
    #[cold]
    pub(super) fn note_overflow(&self, object: *mut u8) {
        if let Some(page) = self.space().page_of(object.addr()) {
            self.of().marking.note_overflow(page);
        }
    }

    /// As [`Tracer::note_overflow`], for the next part of the object. A large object is alone on
    /// its page, and its tracing goes on at `from`.
    #[cold]
    pub(super) fn note_rest(&self, object: *mut u8, from: usize) {
        if let Some(page) = self.space().page_of(object.addr()) {
            let before = page.overflowed.get();
            self.of().marking.note_overflow(page);
            if page.is_large() {
                // The same object may have been noted with an earlier part.
                page.overflowed.set(if before == 0 { 1 + from } else { before.min(1 + from) });
            }
        }
    }

    /// Notes that a slot leads to an object, if the object is to be moved.
    pub(super) fn note_slot(&self, slot: *mut *mut u8, object: *mut u8) {
        let space = self.space();
        let Some((page, offset)) = space.candidate(object) else { return };
        // A slot outside the heap may be gone before it is changed, or must not be changed here.
        let noted = space.head_of(slot.addr()).is_some()
            && page.incoming.note(&self.of().references, &self.room, slot, offset);
        if !noted {
            page.set_evacuation(Evacuation::No);
        }
    }

    /// Gives the counts to the heap, as a helper leaves, a mutator detaches, or marking ends.
    pub(super) fn give_counts(&self) {
        self.large.set(0);
        self.counted.set(0);
        self.of().marking.keep_counts(&self.marked, self.bytes.take(), self.work.take());
    }
}

/// Returns where the marks of address 0 would be. The mark of an object lies `address / GRANULE /
/// 8` bytes behind that place.
pub(super) fn marks_of_nothing() -> *mut u8 {
    let skipped = MAP.base().addr() / GRANULE / 8;
    MAP.side_bitmap(0).wrapping_sub(skipped)
}

/// Returns where the address map's entry for the unit at address 0 would be.
pub(super) fn entry_of_nothing() -> *mut u32 {
    MAP.entries().wrapping_sub(MAP.base().addr() / UNIT).cast()
}
