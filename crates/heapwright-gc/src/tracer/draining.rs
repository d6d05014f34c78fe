//! Draining: marks objects from the stack and traces them, until nothing is left.
//!
//! ```text
//!   pop --> test and set the mark --> prefetch --> | ring of 16 | --> callback --> push
//! ```
//!
//! A marked object waits in a *ring* while the lines that its callback needs are fetched. The mark
//! of an edge is fetched some pops ahead (`stack`). Marking spends most of its time on cache misses
//! (Cher, Hosking, Vitek: "Software prefetching for mark-sweep garbage collection", 2004).
//!
//! Called by `mark` and `help`. `moving`, `dirty_slots`, `dump` and `verify` trace objects by it.

use core::ptr;

use heapwright_substrate::os;

use super::super::find;
use super::super::layout;
use super::super::page;
use super::{Budget, KEYS, MARKED, MOVABLE, RANGE, REST, Slots, TAGS, Tracer, fetch};

/// Objects that wait for their lines.
const RING: usize = 16;
/// Slots of a range that are traced in one go.
const SLICE: usize = 256;
/// For each of this many bytes, an object counts as one more edge, because its slots are read.
const SLOTS_AN_EDGE: usize = 512;
/// Edges, or slots of a range, between two checks of the clock.
const CHECK: usize = 64;

impl Tracer {
    /// Marks until nothing is left on the tracer's own stack and in the gang. If other tracers
    /// mark, waits for their items. Returns false if the budget was used up.
    pub(crate) fn drain(&self, budget: Budget) -> bool {
        let gang = &self.of().marking.gang;
        let until = self.work.get().saturating_add(budget.bytes);
        loop {
            if !self.drain_own(budget.deadline, until) {
                return false;
            }
            // Gives the empty chunk back before the wait, because there may be no other chunk.
            let spent = self.chunk.get();
            if !spent.is_null() {
                self.close_chunk();
                // SAFETY: the chunk is empty, and in no list.
                unsafe { gang.give_empty(spent) };
            }
            let more = if !self.is_shared() { gang.take_now() } else { gang.take(self.home()) };
            let Some(chunk) = more else { return !gang.is_stopped() || !self.is_shared() };
            self.resume(chunk);
        }
    }

    /// Marks until the tracer's own stack is empty. Returns false if the budget was used up.
    pub(crate) fn drain_own(&self, deadline: u64, until: usize) -> bool {
        if self.by_slot.get() == Slots::Plain as usize {
            self.drain_items::<false>(deadline, until)
        } else {
            self.drain_items::<true>(deadline, until)
        }
    }

    /// As [`Tracer::drain_own`]. `MOVE`: objects are to be moved.
    fn drain_items<const MOVE: bool>(&self, deadline: u64, until: usize) -> bool {
        let mut ring = [ptr::null_mut(); RING];
        let mut at = 0;
        let mut edges = 0;
        // In stress mode a step may end after any edge.
        let check = if self.space().is_stressed() { 1 } else { CHECK };
        loop {
            while let Some(mut item) = self.pop() {
                if MOVE && item.addr() & TAGS == MOVABLE {
                    item = item.map_addr(|at| at & !TAGS);
                } else if MOVE && item.addr() & TAGS == 0 {
                    self.space().keep_in_place(item);
                }
                if item.addr() & TAGS != 0 {
                    edges += self.special(item);
                } else if self.set_mark(item, |size| {
                    fetch(item, size);
                    edges += (size / SLOTS_AN_EDGE).min(check);
                }) {
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
                self.count_work(core::mem::take(&mut edges));
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
                self.count_work(edges);
                return true;
            }
        }
    }

    /// Returns whether the budget is used up. Also shares items with tracers that have none.
    #[cold]
    #[inline(never)]
    fn is_over(&self, deadline: u64, until: usize) -> bool {
        if self.is_shared() {
            let gang = &self.of().marking.gang;
            if gang.is_stopped() {
                return true;
            }
            if gang.has_idle() {
                self.share();
            }
        }
        self.work.get() >= until || (deadline != 0 && os::now_ns() >= deadline)
    }

    #[inline]
    pub(crate) fn trace(&self, object: *mut u8) {
        if !self.of().runtime().trace(self, object) && self.space().options().conservative {
            self.trace_words(object);
        }
    }

    #[cold]
    fn trace_words(&self, object: *mut u8) {
        let size = self.space().size_of(object);
        // SAFETY: the object is the heap's, and has `size` bytes.
        unsafe { self.scan(object, object.wrapping_add(size)) };
    }

    /// Traces an object that has its mark. If a barrier marked the object, the barrier did not look
    /// it up among keys, and the object may have no references.
    fn trace_marked(&self, object: *mut u8) {
        if self.notes.get() & KEYS != 0 {
            self.mark_values_of(object);
            let traced = |(_, page_list)| layout::is_traced(page_list);
            if !find::list_of(object.addr(), self.space().tag()).is_some_and(traced) {
                return;
            }
        }
        self.trace(object);
    }

    fn trace_part(&self, object: *mut u8, from: usize) {
        self.from.set(from);
        self.trace(object);
        self.from.set(0);
    }

    /// As [`Tracer::trace`], for a closure that looks. Traces all parts of the object.
    pub(crate) fn trace_all(&self, object: *mut u8) {
        debug_assert!(!self.look.get().is_null());
        self.trace(object);
        loop {
            match self.next_part.take() {
                0 => break,
                from => self.trace_part(object, from),
            }
        }
    }

    pub(crate) fn trace_whole(&self, object: *mut u8) {
        if self.look.get().is_null() { self.trace(object) } else { self.trace_all(object) }
    }

    /// Processes an item that is no plain edge. Returns how many edges the item counts as.
    #[cold]
    #[inline(never)]
    fn special(&self, item: *mut u8) -> usize {
        let at = item.map_addr(|at| at & !TAGS);
        match item.addr() & TAGS {
            MARKED => {
                self.trace_marked(at);
                return 0;
            }
            REST => {
                let from = self.pop_count();
                self.trace_part(at, from);
                return if from == 0 { 0 } else { SLICE };
            }
            _ => {}
        }
        let count = self.pop_count();
        let slots: *mut *mut u8 = at.cast();
        let now = count.min(SLICE);
        if count > now {
            self.push_range(slots.wrapping_add(now), count - now);
        }
        for n in 0..now {
            // SAFETY: by the contract of `mark_range` the slots lie in an object that is marked, so
            // it exists until the sweep.
            unsafe { self.mark_slot(slots.wrapping_add(n)) };
        }
        now
    }

    /// Makes room when there is no memory for another chunk. Marks the items of the newest chunk,
    /// and notes their pages, to be looked through later.
    ///
    /// A page is noted only for objects that become marked here, and for objects that a barrier had
    /// marked. So looking through pages comes to an end. Ranges are traced here, however long they
    /// are. If their object were noted instead, it would report them again, and find no room again.
    #[cold]
    pub(super) fn overflow(&self) {
        let notes = self.notes.replace(self.notes.get() & !KEYS);
        let (before, mut was_shaded) = (self.bytes.get(), false);
        let items = Self::items(self.chunk.get());
        let note = |object| {
            if self.set_mark(object, |_| {}) {
                self.note_overflow(object);
            }
        };
        while self.next.get() != items {
            let Some(item) = self.pop() else { break };
            let at = item.map_addr(|at| at & !TAGS);
            match item.addr() & TAGS {
                RANGE => {
                    let slots: *mut *mut u8 = at.cast();
                    for n in 0..self.pop_count() {
                        // SAFETY: the slot is in the range, which lies in a marked object.
                        let object = unsafe { slots.wrapping_add(n).read() };
                        if !object.is_null() && object.addr() & TAGS == 0 {
                            if self.slots_are() == Slots::Mark {
                                self.note_slot(slots.wrapping_add(n), object);
                            }
                            note(object);
                        }
                    }
                }
                MARKED => {
                    was_shaded = true;
                    self.note_overflow(at);
                }
                REST => self.note_rest(at, self.pop_count()),
                MOVABLE => note(at),
                _ => {
                    self.edge_by_value(item);
                    note(item);
                }
            }
        }
        // Objects that are kept with objects marked here are found when all are visited again. If
        // nothing was marked, nothing is visited: otherwise settling would never end.
        if notes & KEYS != 0 && (was_shaded || self.bytes.get() != before) {
            self.of().settling.miss();
        }
        self.notes.set(notes);
    }

    /// Traces the marked objects of a page, because some were not traced while memory was short.
    /// Marks all that an object leads to before the next one. Otherwise the rests of the objects of
    /// one page might find no room again, and would be noted for ever.
    pub(crate) fn look_through(&self, page: &page::Page) {
        // The tracing of a large object goes on where it stopped.
        let from = page.overflowed.take() - 1;
        if !layout::is_traced(page.page_list.get()) {
            return;
        }
        for offset in page.objects().filter(|&offset| page.is_marked(offset)) {
            self.trace_part(page.base().wrapping_add(offset), from);
            self.drain_own(0, usize::MAX);
        }
    }
}
