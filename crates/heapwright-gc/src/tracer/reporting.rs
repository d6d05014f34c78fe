//! Reporting: how the runtime's callbacks, and the collector itself, report references.
//!
//! ```text
//!   mark(object)         by its value: a store and an increment (see `stack`)
//!   mark_slot(slot)      by its slot: the same, unless objects are to be moved  --> Slots
//!   mark_movable(object) by its value; the runtime changes the reference if the object moves
//!   mark_range           many slots at once, read later
//!   mark_weak, mark_ephemeron       noted for `weak`
//!   mark_maybe, scan     words that may be anything
//! ```
//!
//! Reports by value and by slot differ only while objects are to be moved (see `moving`). A *slot*
//! can be noted and changed. An object that is reported by value stays where it is.
//!
//! A tracer may also *look*: then it hands each reported reference to a closure (heap dumps,
//! verifiers, walks) and marks nothing.
//!
//! Called by runtimes, `mark`, `settling`, `moving`, and by all callers that look.

use core::ptr;

use heapwright_substrate::size_class::UNIT;

use super::super::array::Array;
use super::super::ephemerons::Noted;
use super::super::guardians::Judge;
use super::super::stages::{HAS_CONTEXTS, HAS_GUARDED};
use super::{Look, MOVABLE, Slots, TAGS, TraceSlot, Tracer, Waiting};

/// References that are collected before they are handed to the closure that looks.
const LOOK: usize = 256;

/// The greatest depth of owned values at which a value is traced by recursion.
const DEEPEST: usize = 32;

impl Tracer {
    /// Calls `inside` to trace the values that the value at `place` owns outside of objects (of a
    /// `Box`, a `Vec`). Recursion is bounded: a value beyond `DEEPEST` is noted, and `trace` traces
    /// it when the outermost value is done. (Without memory for a note, the recursion continues.)
    /// All values are traced when the outermost call returns.
    ///
    /// # Safety
    ///
    /// `trace` may be called with `place` until the owner of the value has been traced.
    #[inline]
    pub unsafe fn owned(&self, place: *mut u8, trace: TraceSlot, inside: impl FnOnce(&Self)) {
        let depth = self.depth.get();
        if depth == 0 {
            return self.outermost(inside);
        }
        let waiting = self.waiting.get();
        // SAFETY: `outermost` has set `waiting` to its array on this thread's stack. Nothing
        // borrows the array meanwhile.
        if depth >= DEEPEST && unsafe { (*waiting).push(Waiting { place, trace }) } {
            return;
        }
        self.depth.set(depth + 1);
        inside(self);
        self.depth.set(depth);
    }

    /// Traces the values that an outermost value owns, and all values that were noted meanwhile.
    fn outermost(&self, inside: impl FnOnce(&Self)) {
        let mut waiting = Array::new();
        let waiting = &raw mut waiting;
        self.waiting.set(waiting);
        self.depth.set(1);
        inside(self);
        // SAFETY: `waiting` is the array above, and nobody borrows it meanwhile.
        while let Some(Waiting { place, trace }) = unsafe { (*waiting).pop() } {
            // SAFETY: by the contract of `owned`.
            unsafe { trace(place, self) };
        }
        self.depth.set(0);
        // SAFETY: `waiting` is the array above, and nobody borrows it meanwhile.
        unsafe { (*waiting).end() };
    }

    /// Reports a reference. Ignores null, and numbers that a runtime tags in their lowest bits.
    #[inline]
    pub fn mark(&self, object: *mut u8) {
        if !object.is_null() && object.addr() & TAGS == 0 {
            self.push(object);
        }
    }

    pub(super) fn set_slots(&self, slots: Slots) {
        self.by_slot.set(slots as usize);
    }

    pub(super) fn slots_are(&self) -> Slots {
        match self.by_slot.get() {
            0 => Slots::Plain,
            1 => Slots::Mark,
            2 => Slots::Note,
            3 => Slots::Root,
            4 => Slots::Change,
            _ => Slots::PassOver,
        }
    }

    /// Reports the reference in a slot. As [`Tracer::mark`], but the object may be moved: then the
    /// slot is changed, while the world is stopped.
    ///
    /// # Safety
    ///
    /// The slot can be read. It lies in the object that is being traced, or belongs to a root. In
    /// an object, it holds a reference, or a value that is no object of this heap, for as long as
    /// the object lives. Nobody writes a root's slot while the world is stopped. (An object whose
    /// slot lies in memory of another kind is not moved.)
    #[inline]
    pub unsafe fn mark_slot(&self, slot: *mut *mut u8) {
        // SAFETY: by the contract.
        let object = unsafe { slot.read() };
        if self.by_slot.get() == Slots::Plain as usize {
            return self.mark(object);
        }
        self.slot(slot, object);
    }

    /// Reports the reference in a slot, while objects are to be moved.
    #[cold]
    #[inline(never)]
    fn slot(&self, slot: *mut *mut u8, object: *mut u8) {
        if object.is_null() || object.addr() & TAGS != 0 {
            return;
        }
        match self.slots_are() {
            Slots::Plain => self.push(object),
            Slots::Mark => {
                self.note_slot(slot, object);
                self.push_movable(object);
            }
            Slots::Note => self.note_slot(slot, object),
            Slots::Root => self.push_movable(object),
            Slots::Change => {
                if let Some(to) = self.space().forwarded(object) {
                    // SAFETY: by the contract of `mark_slot`.
                    unsafe { slot.write(to) };
                }
            }
            Slots::PassOver => {}
        }
    }

    /// Reports a reference, wherever it is held. As [`Tracer::mark`], but the object may be moved.
    /// Then the runtime changes the reference, in
    /// [`Runtime::update`](super::super::raw::Runtime#structfield.update) or
    /// [`Runtime::update_roots`](super::super::raw::Runtime#structfield.update_roots). (For a
    /// runtime without these functions, the call does what [`Tracer::mark`] does.)
    #[inline]
    pub fn mark_movable(&self, object: *mut u8) {
        if self.by_slot.get() == Slots::Plain as usize {
            return self.mark(object);
        }
        self.movable(object);
    }

    #[cold]
    #[inline(never)]
    fn movable(&self, object: *mut u8) {
        if !self.of().runtime().updates() {
            return self.mark(object);
        }
        if matches!(self.slots_are(), Slots::Mark | Slots::Root) {
            self.push_movable(object);
        }
    }

    /// Reports a reference to an object that may move, while objects are to be moved.
    fn push_movable(&self, object: *mut u8) {
        if !object.is_null() && object.addr() & TAGS == 0 {
            self.push(object.map_addr(|at| at | MOVABLE));
        }
    }

    pub(crate) fn edge(&self, object: *mut u8) {
        if matches!(self.slots_are(), Slots::Mark | Slots::Root) {
            self.push_movable(object);
        } else {
            self.mark(object);
        }
    }

    /// Keeps an object in place that was reported by its value, while objects are to be moved.
    pub(super) fn edge_by_value(&self, object: *mut u8) {
        if self.by_slot.get() != Slots::Plain as usize {
            self.space().keep_in_place(object);
        }
    }

    /// Calls `trace`, which reports roots. Slots of roots lie anywhere.
    pub(crate) fn tracing_roots(&self, trace: impl FnOnce(&Self)) {
        let slots = self.slots_are();
        if slots == Slots::Mark {
            self.set_slots(Slots::Root);
        }
        trace(self);
        self.set_slots(slots);
    }

    /// Reports references to the objects that the `count` words at `slots` lead to.
    ///
    /// # Safety
    ///
    /// The slots lie in the object that is being traced. They are read later. So they stay readable
    /// for as long as the object lives, and hold what [`Tracer::mark_slot`] requires. (A root's
    /// slots may be gone by then. [`Tracer::mark_slot`] reports them, one by one.)
    pub unsafe fn mark_range(&self, slots: *mut *mut u8, count: usize) {
        // A range does not record that its slots are roots.
        let roots = self.slots_are() == Slots::Root;
        if count <= 8 || roots || !self.look.get().is_null() {
            for n in 0..count {
                // SAFETY: by the contract.
                unsafe { self.mark_slot(slots.wrapping_add(n)) };
            }
            return;
        }
        self.push_range(slots, count);
    }

    /// Returns the beginning of the part that `trace` is to report now: 0 at first, then the number
    /// that [`Tracer::trace_rest`] was given.
    #[inline]
    pub fn traced_to(&self) -> usize {
        self.from.get()
    }

    /// Reports that `object`, which is being traced, has more references than were reported now.
    /// `trace` is called again, maybe in a later step, and then [`Tracer::traced_to`] is `from`,
    /// any number but 0. Use this for objects with so many references that one call would take too
    /// long. Call it last.
    ///
    /// Between the calls, the program may move a reference from an unreported to a reported part.
    /// It must report this store, like any other store. Numbers above 2^60 are not kept.
    pub fn trace_rest(&self, object: *mut u8, from: usize) {
        if self.look.get().is_null() {
            self.push_rest(object, from);
        } else {
            self.next_part.set(from);
        }
    }

    /// Reports that the reference in a slot is weak: when the object dies, the slot becomes null.
    ///
    /// # Safety
    ///
    /// The slot lies in the object that is being traced.
    pub unsafe fn mark_weak(&self, slot: *mut *mut u8) {
        let trace = self.of();
        // SAFETY: by the contract.
        let object = unsafe { slot.read() };
        if !self.goes_on_with(slot, object) {
            return;
        }
        let resurrects = trace.weak.resurrects() && !object.is_null();
        if !self.look.get().is_null()
            || !(resurrects || self.space().is_unmarked(object))
            || self.slots.push(&trace.marking, trace.weak.slots(), slot)
        {
            return;
        }
        // Without memory for the note, the object is kept, unless its finalizer is due.
        let mut is_due = false;
        if resurrects {
            trace.finalizers.lock().each_fresh(|fresh| is_due |= fresh == object);
        }
        if is_due {
            // SAFETY: the slot is in the object that is traced, and no mutator runs.
            unsafe { slot.write(ptr::null_mut()) };
        } else {
            self.edge(object);
        }
    }

    /// Reports an ephemeron: the reference in `key` is weak. The value is kept for as long as the
    /// key lives. When the key dies, both slots become null. A key that is no object of the heap
    /// lives for ever. So does null, because the program may store the value before the key.
    ///
    /// # Safety
    ///
    /// `key` lies in the object that is being traced. `value` lies in the same object, or in static
    /// data. A value whose slot is in static data is kept for as long as the traced object.
    pub unsafe fn mark_ephemeron(&self, key: *mut *mut u8, value: *mut *mut u8) {
        let trace = self.of();
        // SAFETY: by the contract.
        let held_by = unsafe { key.read() };
        // SAFETY: by the contract.
        let held = unsafe { value.read() };
        let goes_on = [self.goes_on_with(key, held_by), self.goes_on_with(value, held)];
        if goes_on.contains(&false) {
            return;
        }
        // If the value's slot is in static data, the slot is not noted and the value is kept. (A
        // slot near the key's slot is in the same object.)
        let is_near = value.addr().abs_diff(key.addr()) < UNIT;
        let in_heap = is_near || self.space().head_of(value.addr()).is_some();
        let noted = if in_heap { Noted::new(key, value) } else { None };
        if noted.is_none() {
            self.edge(held);
        }
        if !self.look.get().is_null() || !self.space().is_unmarked(held_by) {
            return self.edge(held);
        }
        let noted = noted.unwrap_or(Noted::of_key(key));
        if !self.ephemerons.push(&trace.marking, trace.weak.ephemerons(), noted) {
            // Nobody would empty the slots, so the key lives this time.
            self.edge(held_by);
            self.edge(held);
        }
    }

    /// Marks the objects that are kept with `key`, an object that was marked. These are values of
    /// ephemerons with this key, contexts, representatives, and objects that a guardian keeps.
    pub(super) fn mark_values_of(&self, key: *mut u8) {
        let of = self.of();
        // Marks without the lock: without memory, marking may lead here again.
        let mut number = of.weak.waiting.lock().first(key);
        loop {
            let Some(entry) = of.weak.waiting.lock().entry(number) else { break };
            if entry.key() == key {
                self.edge(entry.value());
            }
            number = entry.next();
        }
        let among = of.settling.among();
        if among & HAS_CONTEXTS != 0 {
            of.finalizers.lock().contexts_of(key, |context| self.edge(context));
        }
        if among & HAS_GUARDED != 0 {
            let is_unmarked = |object| self.space().is_unmarked(object);
            let mark = |object| self.edge(object);
            of.guardians.with(|guardians| guardians.marked(key, &mut Judge { is_unmarked, mark }));
        }
    }

    /// Notes a slot, while objects are to be moved. Returns whether the slot needs more than that.
    fn goes_on_with(&self, slot: *mut *mut u8, object: *mut u8) -> bool {
        let slots = self.slots_are();
        let noted = matches!(slots, Slots::Mark | Slots::Note);
        if noted && !object.is_null() && object.addr() & TAGS == 0 {
            self.note_slot(slot, object);
        }
        matches!(slots, Slots::Plain | Slots::Mark)
    }

    /// Reports a word that may be an address within an object, or anything else.
    pub fn mark_maybe(&self, word: *mut u8) {
        if let Some(object) = self.space().find(word) {
            self.push(object);
        }
    }

    /// For a [weak pass](crate::raw::Heap::add_weak_pass): returns where an object is now, or null
    /// if the object is dead. Returns a value that is no object of the heap unchanged.
    #[must_use]
    pub fn where_is(&self, object: *mut u8) -> *mut u8 {
        self.space().where_is(object)
    }

    /// Reports every word of `[from, to)`, as [`Tracer::mark_maybe`].
    ///
    /// # Safety
    ///
    /// The range can be read.
    pub unsafe fn scan(&self, from: *const u8, to: *const u8) {
        let mut at = from.wrapping_add(from.align_offset(size_of::<usize>())).cast::<*mut u8>();
        while at.wrapping_add(1).addr() <= to.addr() {
            // SAFETY: the word is in the range, and aligned. Volatile: a stack may hold anything.
            self.mark_maybe(unsafe { at.read_volatile() });
            at = at.wrapping_add(1);
        }
    }

    /// Calls `look` for each reference that `trace`, or a callback of the runtime, reports. Marks
    /// nothing. The tracer must have no items.
    pub(crate) fn looking(&self, trace: impl FnOnce(&Self), look: Look<'_>) {
        self.looking_at(Slots::Plain, trace, look);
    }

    /// As [`Tracer::looking`], and treats slots as `slots` says.
    pub(crate) fn looking_at(&self, slots: Slots, trace: impl FnOnce(&Self), look: Look<'_>) {
        debug_assert!(self.chunk.get().is_null());
        let mut room = [ptr::null_mut::<u8>(); LOOK];
        let mut look: Look<'_> = look;
        self.look.set((&raw mut look).cast());
        self.chunk.set(ptr::null_mut());
        let start = room.as_mut_ptr();
        self.next.set(start);
        self.end.set(start.wrapping_add(LOOK));
        /// Forgets the array, which is in this frame, even if `look` panics.
        struct Forget<'a>(&'a Tracer, Slots);
        impl Drop for Forget<'_> {
            fn drop(&mut self) {
                self.0.set_slots(self.1);
                self.0.look.set(ptr::null_mut());
                self.0.next.set(ptr::null_mut());
                self.0.end.set(ptr::null_mut());
            }
        }
        let _forgotten = Forget(self, self.slots_are());
        self.set_slots(slots);
        trace(self);
        self.show();
    }

    pub(super) fn show(&self) {
        let start = self.end.get().wrapping_sub(LOOK);
        let count = (self.next.get().addr() - start.addr()) / size_of::<usize>();
        // SAFETY: `looking_at` has set `look`, which is on its stack, and calls this.
        let look = unsafe { &mut *self.look.get() };
        self.next.set(start);
        for n in 0..count {
            // SAFETY: the callback pushed this reference.
            let reference = unsafe { start.wrapping_add(n).read() };
            look(reference);
        }
    }
}
