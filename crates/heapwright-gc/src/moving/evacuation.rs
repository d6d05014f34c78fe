//! Evacuation: a step that moves objects, and the end of the last step.
//!
//! ```text
//!   step    new objects are scanned --> roots that cannot be changed exclude pages -->
//!           page by page: copy, forward, change slots noted with the page --> roots are changed
//!
//!   last    the remembered set is changed; the sweep begins, and gives evacuated pages back
//! ```
//!
//! A step runs while the world is stopped. So mutators see an object either at its old place, with
//! all references leading there, or at the new place. Called by `cycle` and `sweep`.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use heapwright_substrate::address_map::MAP;
use heapwright_substrate::os;

use super::super::around::Around;
use super::super::handles::Cell;
use super::super::held::{State, StickyMarks};
use super::super::layout::{self, KINDS};
use super::super::page::{Evacuation, Page};
use super::super::space::Space;
use super::super::trace::Trace;
use super::super::tracer::{Slots, Tracer};
use super::{Moving, NO_PLAN, SETTLING};

/// In a step with a deadline, a page stays if more slots than this lead to it. Each slot costs a
/// cache miss or two.
const POPULAR: usize = 4096;
/// In a step with a deadline, an object with more bytes than this stays.
const LONG: usize = 1 << 20;

impl Moving {
    /// Moves objects until `deadline` (0: no limit). Returns whether all have moved. The world must
    /// be stopped, and the mutators' regions must be written to their pages.
    pub(crate) fn step(&self, tracer: &Tracer, deadline: u64, around: &impl Around) -> bool {
        let is_over = || deadline != 0 && os::now_ns() >= deadline;
        let step = Step { moving: self, space: tracer.space(), trace: tracer.of(), tracer, around };
        tracer.publish();
        if !step.trace_fresh(is_over) {
            return false;
        }
        step.pin_roots();
        step.pin_what_unprotected_lead_to();
        let mut plan = self.plan.lock();
        let steps = deadline != 0;
        while let Some(&number) = plan.pages.get(plan.through) {
            plan.through += 1;
            if let Some(page) = step.space.pages.get(number as usize) {
                step.evacuate(page, steps);
            }
            if is_over() {
                break;
            }
        }
        let through = plan.through == plan.pages.len();
        // The callbacks below run without the plan's lock, because they may visit the mutators.
        drop(plan);
        step.change_roots();
        if through {
            step.end();
        }
        through
    }

    /// Takes a page that the sweep passed over while objects moved, to sweep it now.
    pub(crate) fn next_passed<'a>(&self, space: &'a Space) -> Option<&'a Page> {
        let mut plan = self.plan.lock();
        // Checks under the lock: another thread may sweep the last page and begin the next plan.
        // That plan must not end here.
        if self.stage.get() != SETTLING {
            return None;
        }
        while let Some(&number) = plan.pages.get(plan.through) {
            plan.through += 1;
            let page = space.pages.get(number as usize).filter(|page| page.passed.take() != 0);
            if page.is_some() {
                return page;
            }
        }
        plan.end();
        self.stage.set(NO_PLAN);
        None
    }
}

struct Step<'a, A> {
    moving: &'a Moving,
    space: &'a Space,
    trace: &'a Trace,
    tracer: &'a Tracer,
    around: &'a A,
}

impl<A: Around> Step<'_, A> {
    /// Scans all objects that were made, or stored into, since they were traced. Returns whether
    /// there was time for all.
    fn trace_fresh(&self, is_over: impl Fn() -> bool) -> bool {
        let note = |report: &dyn Fn(&Tracer)| {
            let mut keep = |child| self.space.keep_in_place(child);
            self.tracer.looking_at(Slots::Note, report, &mut keep);
        };
        let ask = |page: &Page| {
            note(&|tracer: &Tracer| page.each_unscanned(|object| tracer.trace_all(object)));
        };
        self.around.each_tracer(&mut |tracer| tracer.give_notes());
        note(&Tracer::trace_dirty_slots);
        loop {
            let Some(number) = self.moving.fresh.lock().0.pop() else { break };
            if let Some(page) = self.space.pages.get(number as usize) {
                ask(page);
            }
            if is_over() && !self.moving.fresh.lock().0.is_empty() {
                return false;
            }
        }
        self.around.each_open_page(&mut |page| {
            if layout::is_traced(page.page_list.get()) {
                ask(page);
            }
        });
        true
    }

    fn pin_roots(&self) {
        let report = |tracer: &Tracer| {
            self.trace.runtime().roots(tracer);
            self.around.scan_stacks(tracer);
        };
        let mut keep = |object| self.space.keep_in_place(object);
        self.tracer.looking_at(Slots::PassOver, report, &mut keep);
    }

    fn pin_what_unprotected_lead_to(&self) {
        let report =
            |tracer: &Tracer| self.trace.unprotected.each(|object| tracer.trace_all(object));
        let mut keep = |child| self.space.keep_in_place(child);
        // (If the runtime changes references itself, no slots need to be known.)
        if !self.trace.runtime().updates() {
            self.tracer.looking_at(Slots::Plain, report, &mut keep);
        }
        // The look above shows no weak slots. They need no pins, because the heap changes them.
        // Stores into these objects were not reported, so all their slots are noted here.
        self.tracer.looking_at(Slots::Note, report, &mut keep);
    }

    fn change_roots(&self) {
        let change = |cell: &Cell| {
            if let Some(to) = self.space.forwarded(cell.load(Relaxed)) {
                cell.store(to, Relaxed);
            }
        };
        self.trace.handles.each_cell(change);
        self.trace.weak.cells.each_cell(change);
        let now = |object| self.space.forwarded(object).unwrap_or(object);
        self.trace.finalizers.lock().each_object(now);
        self.trace.guardians.each_object(now);
        self.trace.unprotected.each_object(now);
        if self.trace.runtime().updates() {
            self.have_references_updated();
        }
        self.trace.run_weak_passes(self.tracer);
        self.tracer.looking_at(
            Slots::Change,
            |tracer| self.trace.runtime().roots(tracer),
            &mut |_| {},
        );
    }

    fn have_references_updated(&self) {
        // Settles the mutators, because moved objects are in regions.
        self.around.settle();
        self.space.each_page(|page| {
            for offset in page.objects() {
                self.trace.runtime().update(page.base().wrapping_add(offset));
            }
            true
        });
        self.trace.runtime().update_roots();
    }

    fn evacuate(&self, page: &Page, steps: bool) {
        if page.state() != State::InUse || page.evacuation() != Evacuation::Candidate {
            return self.moving.stayed.add(1);
        }
        let long = steps && (page.incoming.count() > POPULAR || page.slot.get() > LONG);
        // A large object need not move if it is dead, or already has the right number of units.
        let suits = || {
            let size = || self.trace.runtime().wanted(page.base()).unwrap_or(page.slot.get());
            !page.is_marked(0) || self.space.is_large_of(size(), page.units.get())
        };
        if long || page.pins.get() > 0 || page.is_large() && suits() {
            page.set_evacuation(Evacuation::No);
            return self.moving.stayed.add(1);
        }
        page.begin_moving();
        let (slot, kind) = (page.slot.get(), page.kind());
        let mut old = Old { space: self.space, page_list: 0, count: 0, bytes: 0 };
        let mut moved = 0;
        page.each_marked(|offset| {
            let from = page.base().wrapping_add(offset);
            let wanted = self.trace.runtime().wanted(from).unwrap_or(slot);
            let page_list = match self.space.sizes().pool(wanted) {
                _ if wanted == slot => page.page_list.get(),
                pool => pool * KINDS + kind,
            };
            let Some((to, into, at)) = self.around.place(page_list, wanted) else {
                // No memory: the remaining objects stay.
                return false;
            };
            let size = slot.min(into.slot.get());
            // SAFETY: the object is live and the slot is free. Both have at least `size` bytes.
            unsafe { ptr::copy_nonoverlapping(from, to, size) };
            // SAFETY: the object was copied, and every slot has a word.
            unsafe { from.cast::<*mut u8>().write(to) };
            page.set_moved(offset);
            if self.trace.generations.sticky_marks() == StickyMarks::Everything {
                into.put_old(at);
                old.add(into);
            }
            into.moved_in.add(1);
            moved += 1;
            self.moving.objects.add(1);
            self.moving.bytes.add(size);
            self.space.pacing.sub_allocated(into.footprint());
            self.trace.runtime().moved(to, from, into.slot.get());
            true
        });
        old.flush();
        self.space.lists.lock().pool[page.pool()].claimed -= moved;
        page.set_evacuation(Evacuation::Evacuated);
        self.moving.evacuated.add(1);
        page.incoming.each(|slot, granule| self.change_slot(page, slot, granule));
        page.incoming.forget();
    }

    fn change_slot(&self, page: &Page, slot: *mut *mut u8, granule: usize) {
        let Some(slot) = self.slot_now(slot) else { return };
        let offset = page.start_at(granule);
        let from = page.base().wrapping_add(offset);
        // SAFETY: the slot is in an object that was marked, or made since. The object exists until
        // the next collection's sweep.
        if unsafe { slot.read() }.addr() != from.addr() {
            return;
        }
        if let Some(to) = page.moved_to(offset) {
            // SAFETY: the slot is in an existing object, and no mutator runs.
            unsafe { slot.write(to) };
        }
    }

    /// Returns where a slot is now. `None` if its object moved to a place too small for the slot.
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

    fn end(&self) {
        // Tracers still hold notes for the next minor collection.
        self.around.each_tracer(&mut |tracer| tracer.give_notes());
        self.trace.generations.remembered.change(|object| {
            let object = MAP.base().with_addr(object);
            self.space.forwarded(object).unwrap_or(object).addr()
        });
        self.trace.generations.remembered.change_places(|place| {
            self.slot_now(MAP.base().with_addr(place).cast()).map_or(0, |now| now.addr())
        });
        self.moving.plan.lock().through = 0;
        self.moving.fresh.lock().0.end();
        self.trace.references.end();
        self.trace.note_references(false);
        self.moving.stage.set(SETTLING);
        self.moving.rounds.add(1);
        self.moving.swept.set(0);
    }
}

/// Counts old objects that were put on one page list, until `flush` adds them to the lists' sums.
struct Old<'a> {
    space: &'a Space,
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
            self.space.lists.lock().add_old(self.page_list, count, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use core::ffi::c_void;
    extern crate std;
    use std::vec::Vec;

    use super::super::super::TRACED;
    use super::super::super::handles;
    use super::super::super::layout::PAGE_LISTS;
    use super::super::super::phase::Phase;
    use super::super::super::runtime::Runtime;
    use super::super::super::tests::ground::Ground;
    use super::super::super::tracer::Marks;
    use super::*;

    struct Into(&'static Ground, &'static Page);

    impl Around for Into {
        fn place(&self, page_list: usize, _: usize) -> Option<(*mut u8, &'static Page, usize)> {
            let Self(ground, page) = *self;
            assert_eq!(page_list, page.page_list.get());
            let object = ground.object(page);
            Some((object, page, object.addr() - page.base().addr()))
        }
    }

    unsafe extern "C" fn trace(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
        // SAFETY: every object of these tests has two slots.
        unsafe { tracer.mark_range(object.cast(), 2) };
    }

    #[test]
    fn what_has_its_mark_moves_and_what_leads_there_changes_without_any_marking() {
        let ground = Ground::new(Runtime { trace: Some(trace), ..Runtime::new() });
        let (space, trace) = (&ground.space, &ground.trace);
        let page_list = space.sizes().pool(16) * KINDS + TRACED as usize;
        // Objects of the first page go to the second. The third page, which is pinned, leads there.
        let [from, into, third] = [(); 3].map(|()| ground.page(page_list));
        [into, third].iter().for_each(|page| page.pins.add_shared(1));
        let objects: Vec<*mut u8> = (0..10).map(|_| ground.object(from)).collect();
        let leads: *mut *mut u8 = ground.object(third).cast();
        for (n, &object) in objects.iter().enumerate() {
            // SAFETY: the object has two words.
            unsafe { object.cast::<[usize; 2]>().write([8 * n + 1, 0]) };
        }
        // SAFETY: the slot is the first slot of an object.
        unsafe { leads.write(objects[5]) };
        // SAFETY: zero has no free cells.
        let own: handles::Own = unsafe { core::mem::zeroed() };
        let root = trace.handles.make(&own, objects[3]).unwrap();
        // SAFETY: zero moves nothing.
        let moving: Moving = unsafe { core::mem::zeroed() };
        moving.ask_now(true);
        assert!(moving.plan(trace, 0) && moving.is_on());
        let candidates = [from, into, third].map(|page| page.evacuation());
        assert_eq!(candidates, [Evacuation::Candidate, Evacuation::No, Evacuation::No]);

        // Sets marks and makes a note by hand, as marking would.
        let tracer = Tracer::new(trace);
        tracer.mark_as(Marks::Alone);
        [objects[3], objects[5], leads.cast()].iter().for_each(|&object| space.give_mark(object));
        tracer.note_slot(leads, objects[5]);
        space.cycle.enter(Phase::Moving);
        space.lists.lock().begin_sweep(&[0; PAGE_LISTS]);
        assert!(moving.step(&tracer, 0, &Into(ground, into)));

        assert_eq!((moving.objects.get(), from.evacuation()), (2, Evacuation::Evacuated));
        // SAFETY: the cell is the trace's.
        let root = unsafe { &*root }.load(Relaxed);
        // SAFETY: the slot is the first slot of an object.
        let led_to = unsafe { leads.read() };
        for (object, number) in [(root, 3), (led_to, 5)] {
            assert_eq!(MAP.unit_of(object.addr()), into.unit.get());
            assert_eq!(space.forwarded(objects[number]), Some(object));
            // SAFETY: the object has two words.
            assert_eq!(unsafe { object.cast::<[usize; 2]>().read() }, [8 * number + 1, 0]);
        }
        assert_eq!(space.forwarded(objects[4]), None, "it is dead");
        assert!(moving.next_passed(space).is_none() && !moving.is_begun());
    }
}
