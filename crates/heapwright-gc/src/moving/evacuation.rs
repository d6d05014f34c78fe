//! Evacuation: a step that moves objects, and how the last one ends.
//!
//! ```text
//!   step    objects that are fresh report what they lead to --> roots that cannot be changed pin --> a page
//!           at a time: copy, forward, change the slots that were noted with it --> roots are changed
//!
//!   last    what is remembered is changed; the sweep begins, and gives evacuated pages back
//! ```
//!
//! All of a step happens while the world stands still, so mutators see an object either where it was, with
//! all that leads to it, or where it is.
//!
//! Called by `cycle`, `pacing` and `sweep`.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use heapwright_substrate::address_map::MAP;
use heapwright_substrate::os;

use super::super::event::Span;
use super::super::handles::Cell;
use super::super::heap::Heap;
use super::super::held::{State, StickyMarks};
use super::super::layout::{self, KINDS};
use super::super::mutator::Mutator;
use super::super::options::VERIFY_HEAP;
use super::super::page::{Evacuation, Page};
use super::super::pauses::Began;
use super::super::phase::Phase;
use super::super::tracer::{Slots, Tracer};
use super::{ALL, NO_PLAN, SETTLING, URGENT};

/// Slots that lead to one page, for more of which it is left alone where steps have an end: each is a
/// cache miss or two.
const POPULAR: usize = 4096;
/// Bytes of an object above which it is left where it is, there.
const LONG: usize = 1 << 20;

impl Heap {
    /// Moves objects until `deadline`; 0: until all are where they are to be.
    pub(crate) fn move_some(&self, me: &Mutator, deadline: u64) {
        me.stack.note();
        let asked = os::now_ns();
        if !self.stop_world(me) {
            return;
        }
        let began = Began::now(asked);
        self.pause_begins(me, &began);
        if self.space.cycle.phase() == Phase::Moving {
            self.each_mutator(Mutator::settle);
            self.during(Span::Move, me, || self.move_stopped(me, deadline));
        }
        let (pause, _) = self.pauses.add(&began);
        self.go_on(me);
        self.pause_ends(me, &began, pause);
    }

    /// As [`Heap::move_some`], while the world stands still.
    pub(crate) fn move_stopped(&self, me: &Mutator, deadline: u64) {
        let is_over = || deadline != 0 && os::now_ns() >= deadline;
        me.tracer.publish();
        if !self.trace_fresh(me, is_over) {
            return;
        }
        self.pin_roots(me);
        self.pin_what_unprotected_lead_to(&me.tracer);
        let mut plan = self.moving.plan.lock();
        let steps = deadline != 0;
        while let Some(&number) = plan.pages.get(plan.through) {
            plan.through += 1;
            if let Some(page) = self.space.pages.get(number as usize) {
                self.evacuate(me, page, steps);
            }
            if is_over() {
                break;
            }
        }
        let through = plan.through == plan.pages.len();
        // The runtime is asked with no lock held: it may look at the mutators.
        drop(plan);
        self.change_roots(me);
        while let Some(number) = self.moving.next_large() {
            if let Some(page) = self.space.pages.get(number as usize) {
                self.large_was_moved(me, page);
            }
        }
        if through {
            self.end_moving();
        }
        if self.space.options().verify & VERIFY_HEAP != 0 {
            self.each_mutator(Mutator::settle);
            self.verify(me);
        }
    }

    /// Asks all objects what they lead to that were made, or stored into, since they reported. Whether
    /// there was time for all.
    fn trace_fresh(&self, me: &Mutator, is_over: impl Fn() -> bool) -> bool {
        let ask = |page: &Page| {
            let report = |tracer: &Tracer| page.each_unscanned(|object| tracer.trace(object));
            me.tracer.looking_at(Slots::Note, report, &mut |child| self.space.keep_in_place(child));
        };
        self.give_notes();
        let dirty = |tracer: &Tracer| tracer.trace_dirty_slots();
        me.tracer.looking_at(Slots::Note, dirty, &mut |child| self.space.keep_in_place(child));
        loop {
            let Some(number) = self.moving.fresh.lock().0.pop() else { break };
            if let Some(page) = self.space.pages.get(number as usize) {
                ask(page);
            }
            if is_over() && !self.moving.fresh.lock().0.is_empty() {
                return false;
            }
        }
        self.each_mutator(|mutator| {
            mutator.each_page_in_use(|page| {
                if layout::is_traced(page.page_list.get()) {
                    ask(page);
                }
            });
        });
        true
    }

    /// What roots report by value, and what stacks may lead to, stays.
    fn pin_roots(&self, me: &Mutator) {
        let report = |tracer: &Tracer| {
            self.runtime().roots(tracer);
            self.each_mutator(|mutator| mutator.stack.scan(tracer));
        };
        me.tracer
            .looking_at(Slots::PassOver, report, &mut |object| self.space.keep_in_place(object));
    }

    /// What objects without barriers lead to stays where it is.
    fn pin_what_unprotected_lead_to(&self, tracer: &Tracer) {
        let report = |tracer: &Tracer| self.trace.unprotected.each(|object| tracer.trace(object));
        let mut keep = |child| self.space.keep_in_place(child);
        // (A runtime that changes references itself needs no slots to be known.)
        if !self.runtime().updates() {
            tracer.looking_at(Slots::Plain, report, &mut keep);
        }
        // What is weak shows nothing to a look, and follows its objects: nobody else has noted what was stored there since.
        tracer.looking_at(Slots::Note, report, &mut keep);
    }

    /// Roots lead to where objects are now.
    fn change_roots(&self, me: &Mutator) {
        let change = |cell: &Cell| {
            if let Some(to) = self.space.forwarded(cell.load(Relaxed)) {
                cell.store(to, Relaxed);
            }
        };
        self.trace.handles.each_cell(change);
        self.trace.weak.handles.each_cell(change);
        let now = |object| self.space.forwarded(object).unwrap_or(object);
        self.trace.finalizers.lock().each_object(now);
        self.trace.guardians.each_object(now);
        self.trace.unprotected.each_object(now);
        if self.runtime().updates() {
            self.have_references_updated();
        }
        self.trace.run_weak_passes(&me.tracer);
        me.tracer.looking_at(Slots::Change, |tracer| self.runtime().roots(tracer), &mut |_| {});
    }

    /// The runtime changes references to what has moved: those of each object that is there, and of the roots.
    fn have_references_updated(&self) {
        // What was moved is in regions.
        self.each_mutator(Mutator::settle);
        self.space.each_page(|page| {
            for offset in page.objects() {
                self.runtime().update(page.base().wrapping_add(offset));
            }
            true
        });
        self.runtime().update_roots();
    }

    /// Moves the objects of a page, and changes what leads to them.
    fn evacuate(&self, me: &Mutator, page: &Page, steps: bool) {
        if page.state() != State::InUse || page.evacuation() != Evacuation::Candidate {
            return self.moving.stayed.add(1);
        }
        let long = steps && (page.incoming.count() > POPULAR || page.slot.get() > LONG);
        // A large object that is dead, or has the units that it is to have.
        let suits = || {
            let size = || self.runtime().wanted(page.base()).unwrap_or(page.slot.get());
            !page.is_marked(0) || self.space.is_large_of(size(), page.units.get())
        };
        if long || page.pins.get() > 0 || page.is_large() && suits() {
            page.set_evacuation(Evacuation::No);
            return self.moving.stayed.add(1);
        }
        page.begin_moving();
        let (slot, kind) = (page.slot.get(), page.kind());
        let mut old = Old { heap: self, page_list: 0, count: 0, bytes: 0 };
        page.each_marked(|offset| {
            let from = page.base().wrapping_add(offset);
            let wanted = self.runtime().wanted(from).unwrap_or(slot);
            let page_list = match self.space.sizes().pool(wanted) {
                _ if wanted == slot => page.page_list.get(),
                pool => pool * KINDS + kind,
            };
            let Some((to, into, at)) = me.place(page_list, wanted) else {
                // No memory: what is left stays.
                return false;
            };
            let size = slot.min(into.slot.get());
            // SAFETY: an object that lives, and a slot of its own for it; both have so many bytes.
            unsafe { ptr::copy_nonoverlapping(from, to, size) };
            // SAFETY: the object is elsewhere, and every slot has a word.
            unsafe { from.cast::<*mut u8>().write(to) };
            page.set_moved(offset);
            if self.trace.generations.sticky_marks() == StickyMarks::Everything {
                into.put_old(at);
                old.add(into);
            }
            into.moved_in.add(1);
            self.moving.objects.add(1);
            self.moving.bytes.add(size);
            self.space.pacing.sub_allocated(into.footprint());
            self.runtime().moved(to, from, into.slot.get());
            true
        });
        old.flush();
        page.set_evacuation(Evacuation::Evacuated);
        self.moving.evacuated.add(1);
        page.incoming.each(|slot, granule| self.change_slot(page, slot, granule));
        page.incoming.forget();
    }

    /// Changes a slot that led to an object of a page whose objects have moved.
    fn change_slot(&self, page: &Page, slot: *mut *mut u8, granule: usize) {
        let Some(slot) = self.slot_now(slot) else { return };
        let offset = page.start_at(granule);
        let from = page.base().wrapping_add(offset);
        // SAFETY: within an object that was marked, or has been made since: it is there until the
        // sweep of the next collection.
        if unsafe { slot.read() }.addr() != from.addr() {
            return;
        }
        if let Some(to) = page.moved_to(offset) {
            // SAFETY: a slot of an object that is there, and nobody else looks, for the world
            // stands still.
            unsafe { slot.write(to) };
        }
    }

    /// Where a slot is now, if its object has moved. `None`: the object has become smaller.
    fn slot_now(&self, slot: *mut *mut u8) -> Option<*mut *mut u8> {
        let head = self.space.head_of(slot.addr())?;
        let (page, start) = self.space.slot_in(head, slot.addr())?;
        if page.evacuation() != Evacuation::Evacuated {
            return Some(slot);
        }
        let Some(to) = page.moved_to(start) else { return Some(slot) };
        let within = slot.addr() - page.base().addr() - start;
        let size = self.space.pages.at_unit(MAP.unit_of(to.addr()))?.slot.get();
        (within + size_of::<usize>() <= size).then(|| to.wrapping_add(within).cast())
    }

    /// Everything is where it is to be.
    fn end_moving(&self) {
        // What is to be reported to the next minor collection is elsewhere.
        self.give_notes();
        self.trace.generations.remembered.change(|object| {
            let object = MAP.base().with_addr(object);
            self.space.forwarded(object).unwrap_or(object).addr()
        });
        self.moving.plan.lock().through = 0;
        self.moving.fresh.lock().0.end();
        self.trace.references.end();
        self.trace.note_references(false);
        self.moving.stage.set(SETTLING);
        self.moving.rounds.add(1);
        self.moving.swept.set(0);
        self.set_barrier(self.space.cycle.barrier());
        self.space.cycle.enter(Phase::Sweeping);
    }

    /// Sweeps a page that the sweep passed while objects were moved. False: there is none any more.
    pub(crate) fn sweep_passed(&self) -> bool {
        let mut plan = self.moving.plan.lock();
        // Under the lock: another thread may sweep the last page and begin the next plan, which is
        // not to be ended here.
        if self.moving.stage.get() != SETTLING {
            return false;
        }
        while let Some(&number) = plan.pages.get(plan.through) {
            plan.through += 1;
            let page = self.space.pages.get(number as usize).filter(|page| page.passed.take() != 0);
            if let Some(page) = page {
                drop(plan);
                let found = self.sweep_page(page);
                self.put_swept(page, found);
                return true;
            }
        }
        plan.end();
        self.moving.stage.set(NO_PLAN);
        false
    }

    /// Whether objects can be moved while mutators run between steps: they report all stores, and what leads to a page is known. (A
    /// runtime that changes references itself goes through all objects, once.)
    pub(crate) fn moves_in_steps(&self) -> bool {
        (self.space.options().incremental || self.space.options().generations)
            && !self.runtime().updates()
    }

    /// A compaction from its beginning to its end; of `all` that may move, or of sparse pages.
    pub(crate) fn compact(&self, me: &Mutator, all: bool) {
        self.collect(me);
        self.moving.wanted.set(if all { ALL } else { URGENT });
        self.collect(me);
        self.space.trim();
    }
}

/// Old objects that were put on a page list, to be added to its sum.
struct Old<'a> {
    heap: &'a Heap,
    page_list: usize,
    count: usize,
    bytes: usize,
}

impl Old<'_> {
    fn add(&mut self, page: &Page) {
        if page.page_list.get() != self.page_list {
            self.flush();
            self.page_list = page.page_list.get();
        }
        self.count += 1;
        self.bytes += page.footprint();
    }

    fn flush(&mut self) {
        let (count, bytes) = (core::mem::take(&mut self.count), core::mem::take(&mut self.bytes));
        if count > 0 {
            self.heap.space.lists.lock().add_old(self.page_list, count, bytes);
        }
    }
}
