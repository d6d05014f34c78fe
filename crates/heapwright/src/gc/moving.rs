//! Moving: objects of sparse pages go into the free slots of full ones, a few pages at a time.
//!
//! ```text
//!   IDLE --plan--> MARKING -------------------------> MOVING -----------------------> SWEEPING
//!     which pages    each slot that is reported and leads   a page of the plan at a time:     pages without
//!     are to go      to one of them is noted with it    copy its objects, change the      objects go
//!                    (references)                       slots that were noted with it     back
//!
//!   page that was evacuated   | to | ..... | to | ..... |      an object's first word: where it is now
//! ```
//!
//! **No barrier for reads.** Between two steps mutators run, and all they can lead to is where it was
//! when the step ended: an object and everything that leads to it change in one step. So what leads to
//! the page must be known before:
//!
//! - *slots in objects* were noted while marking; those stored to since then are reported by the write
//!   barrier ([`Heap::note_store`]), and objects made since then are looked through at the next step, a page
//!   at a time ([`Page::each_unscanned`](super::page::Page)).
//! - *roots* are looked at in each step, twice: what is reported by value, or lies on a stack that is
//!   scanned, cannot be changed, so its page *stays* (mostly-copying collection, Bartlett, 1988); cells and slots are
//!   changed when the step's objects have moved.
//! - What is *pinned* stays, and so does what a slot outside the heap leads to.
//!
//! The runtime's callbacks but for `free` are called while the world stands still: they take no lock that a
//! mutator may hold.
//!
//! A page that stays is swept like any other. Forwarding words are there until the last page is
//! through, because slots that were noted may lie in objects that have moved meanwhile; then the sweep
//! takes evacuated pages for empty, and they go back to the system's side.
//!
//! **Across pools.** The runtime may say how many bytes an object is to have
//! ([`wanted`](super::raw::Runtime#structfield.wanted)): it moves to the pool that suits, and the runtime
//! learns of it ([`moved`](super::raw::Runtime#structfield.moved)). A page in which something was resized is
//! always in the plan.
//!
//! **With generations** only major collections move. All they find is old, and what moves stays so.
//!
//! What the runtime must do is in [`raw`](super::raw); when this is done by itself, in [`plan`](super::plan).
//!
//! Called by `cycle` and `sweep`; noted in by `tracer` and stores.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use crate::address_map::MAP;
use crate::chunk::Side;
use crate::os;
use crate::sync::Lock;

use super::array::Array;
use super::cell::Num;
use super::heap::{Heap, Phase};
use super::held::{State, StickyMarks};
use super::layout::{self, KINDS, PAGE_LISTS};
use super::mutator::Mutator;
use super::page::{Evacuation, Page};
use super::plan::{self, Census, Choice};
use super::references::References;
use super::stored;
use super::tracer::{self, Slots, Tracer};

/// Pages that are looked at under one lock.
const AT_A_TIME: usize = 64;
/// Slots that lead to one page, for more of which it is left alone where steps have an end: each is a
/// cache miss or two.
const POPULAR: usize = 4096;

/// Bytes of an object above which it is left where it is, there.
const LONG: usize = 1 << 20;

/// The next major collection is to be a compacting one.
const DUE: usize = 1;
/// So it is, and soon: somebody asked.
const URGENT: usize = 2;
/// Somebody asked. What lives where must be known first: by a major collection that is to begin,
/// or has begun.
const ASKED: usize = 3;
const COUNTED: usize = 4;

/// How far the plan is.
const NO_PLAN: usize = 0;
const COUNTING: usize = 1;
const CHOOSING: usize = 2;
const READY: usize = 3;
/// All are through; some were passed by the sweep.
const SETTLING: usize = 4;

/// A heap's part in moving. Zero moves nothing.
pub(super) struct Moving {
    wanted: Num,
    /// How far the plan is. Changed under the plan's lock.
    stage: Num,
    plan: Lock<Plan>,
    /// Pages in which there may be objects that have not reported what they lead to.
    fresh: Lock<Fresh>,
    references: References,
    /// Bytes of pages that the last compaction left, and whether its sweep is over.
    left: Num,
    swept: Num,
    /// Objects moved, and their bytes, ever; pages that were evacuated; pages of plans that stayed.
    pub(super) objects: Num,
    pub(super) bytes: Num,
    pub(super) evacuated: Num,
    pub(super) stayed: Num,
    /// Compactions.
    pub(super) rounds: Num,
}

struct Plan {
    /// The next page to be counted, or chosen.
    next: usize,
    census: Side,
    pages: Array<u32>,
    /// Of these, how many are through.
    through: usize,
}

struct Fresh(Array<u32>);

// SAFETY: the census is the plan's, under its lock.
unsafe impl Send for Plan {}
// SAFETY: memory that is the heap's, under its lock.
unsafe impl Send for Fresh {}

/// What is known of a page list: first what it has, then what of it stays.
#[derive(Clone, Copy)]
struct Chosen {
    census: Census,
    choice: Choice,
}

impl Plan {
    const NONE: Self = Self { next: 0, census: Side::NONE, pages: Array::new(), through: 0 };

    fn page_lists(&mut self) -> &mut [Chosen] {
        // SAFETY: a side of so many, zeroed at first, which is a census of nothing.
        unsafe { core::slice::from_raw_parts_mut(self.census.at().cast(), PAGE_LISTS) }
    }

    fn end(&mut self) {
        self.census.give();
        self.pages.end();
        *self = Self::NONE;
    }
}

impl Moving {
    /// Whether references to pages of a plan are to be noted.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.stage.get() == READY
    }

    /// Whether there is a plan, or some of one.
    pub(super) fn is_begun(&self) -> bool {
        self.stage.get() != NO_PLAN
    }

    /// Whether the next collection is to be a major one, because of this.
    pub(super) fn wants_major(&self) -> bool {
        self.wanted.get() != 0
    }

    /// Whether the next major collection is to be a compacting one.
    fn is_wanted(&self) -> bool {
        matches!(self.wanted.get(), DUE | URGENT)
    }

    /// Whether somebody asked for it, and waits.
    pub(super) fn is_asked(&self) -> bool {
        self.wanted.get() > DUE
    }

    /// The heap is to be compacted.
    pub(super) fn ask(&self) {
        self.wanted.set(ASKED);
    }

    /// A major collection begins.
    pub(super) fn note_begin(&self) {
        if self.wanted.get() == ASKED {
            self.wanted.set(COUNTED);
        }
    }

    /// Gives all memory back.
    pub(super) fn end(&self) {
        self.plan.lock().end();
        self.fresh.lock().0.end();
        self.references.end();
        for number in [
            &self.wanted,
            &self.stage,
            &self.left,
            &self.swept,
            &self.objects,
            &self.bytes,
            &self.evacuated,
            &self.stayed,
            &self.rounds,
        ] {
            number.set(0);
        }
    }

    /// Holds the locks across a fork.
    pub(super) fn before_fork(&self) {
        self.plan.acquire();
        self.fresh.acquire();
        self.references.before_fork();
    }

    /// Gives them back on either side of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`Moving::before_fork`] in the forking thread or its copy.
    pub(super) unsafe fn after_fork(&self) {
        // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.references.after_fork() };
        // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
        unsafe { self.fresh.release() };
        // SAFETY: taken before the fork by this thread, or by the one that it is a copy of.
        unsafe { self.plan.release() };
    }
}

/// The plan.
impl Heap {
    /// The sweep of a major collection is over: whether the next is to be a compacting one.
    pub(super) fn choose_to_move(&self) {
        if self.moving.wanted.get() == COUNTED {
            self.moving.wanted.set(URGENT);
            self.pacing.ask();
        }
        if !self.options().compact || self.generations.is_minor() || self.moving.wants_major() {
            return;
        }
        let pages = self.supply.lists.lock().bytes();
        if self.moving.swept.replace(1) == 0 {
            self.moving.left.set(pages);
        }
        if plan::is_due(pages, self.pacing.goal(), self.moving.left.get()) {
            self.moving.wanted.set(DUE);
        }
    }

    /// Chooses the pages whose objects are to be moved, if that is wanted: a few at a time, until
    /// `deadline`; 0: no matter how late. Whether all that is to be done is. While nothing is marked.
    pub(super) fn plan(&self, deadline: u64) -> bool {
        let moving = &self.moving;
        let wanted = moving.is_wanted() || moving.is_begun();
        if !wanted || moving.is_on() || self.generations.sticky_marks() != StickyMarks::Nothing {
            return true;
        }
        let mut plan = moving.plan.lock();
        loop {
            match moving.stage.get() {
                NO_PLAN => {
                    let Some(census) = Side::take(PAGE_LISTS * size_of::<Chosen>()) else {
                        moving.wanted.set(0);
                        return true;
                    };
                    *plan = Plan { next: 1, census, ..Plan::NONE };
                    moving.stage.set(COUNTING);
                }
                COUNTING => {
                    let through = self.survey(&mut plan, |page_list, page| {
                        page_list.census.count(page.live.get(), page.slots(), page.pins.get() > 0);
                        true
                    });
                    if through {
                        let stressed = self.is_stressed();
                        for (number, page_list) in plan.page_lists().iter_mut().enumerate() {
                            let slots = layout::slots_in_page(self.slot(number).max(1));
                            page_list.choice = page_list.census.choose(slots).1;
                            if stressed {
                                page_list.choice = Choice::ALL;
                            }
                        }
                        moving.stage.set(CHOOSING);
                    }
                }
                CHOOSING => {
                    let mut pages = core::mem::replace(&mut plan.pages, Array::new());
                    let through = self.survey(&mut plan, |page_list, page| {
                        let goes = page_list.choice.goes(page.live.get(), page.slots());
                        if page.pins.get() > 0 || !(goes || page.resized.get() != 0) {
                            return true;
                        }
                        let chosen = pages.push(page.number.get() as u32);
                        if chosen {
                            page.incoming.forget();
                            page.set_evacuation(Evacuation::Candidate);
                        }
                        chosen
                    });
                    plan.pages = pages;
                    if through {
                        plan.census.give();
                        if moving.is_wanted() {
                            moving.wanted.set(0);
                        }
                        moving.stage.set(READY);
                        return true;
                    }
                }
                _ => return true,
            }
            if deadline != 0 && os::now_ns() >= deadline {
                return false;
            }
        }
    }

    /// Calls `with` for some of the pages that may be in a plan, with what is known of their
    /// page list. Whether the last one was among them; then it begins again.
    fn survey(&self, plan: &mut Plan, mut with: impl FnMut(&mut Chosen, &Page) -> bool) -> bool {
        // Under the lock pages neither come nor go. (Those that go later are nobody's candidates.)
        let _lists = self.supply.lists.lock();
        let end = self.supply.pages.made() + 1;
        let to = (plan.next + AT_A_TIME).min(end);
        for page in (plan.next..to).filter_map(|number| self.supply.pages.get(number)) {
            let large = page.is_large() && page.resized.get() == 0;
            if page.state() == State::InUse && !large {
                let page_list = &mut plan.page_lists()[page.page_list.get()];
                if !with(page_list, page) {
                    plan.next = 1;
                    return true;
                }
            }
        }
        plan.next = if to == end { 1 } else { to };
        to == end
    }
}

/// What is done with references meanwhile.
impl Heap {
    /// The page of the plan that an object lies in, and where it begins there.
    #[inline]
    fn candidate(&self, object: *mut u8) -> Option<(&Page, usize)> {
        let (unit, _) = tracer::list_of(object.addr(), self.tag())?;
        let page = self.supply.pages.at_unit(unit)?;
        (page.evacuation() == Evacuation::Candidate)
            .then(|| (page, object.addr() - MAP.address_of(unit).addr()))
    }

    /// What leads to this object cannot be changed: it stays, with its page.
    pub(super) fn stays_where_it_is(&self, object: *mut u8) {
        if let Some((page, _)) = self.candidate(object) {
            page.set_evacuation(Evacuation::No);
        }
    }

    /// A slot leads to an object.
    pub(super) fn note_slot(&self, tracer: &Tracer, slot: *mut *mut u8, object: *mut u8) {
        let Some((page, offset)) = self.candidate(object) else { return };
        // What is not the heap's may be gone before it is changed, or must not be by us.
        let noted = self.head_of(slot.addr()).is_some()
            && page.incoming.note(&self.moving.references, &tracer.room, slot, offset);
        if !noted {
            page.set_evacuation(Evacuation::No);
        }
    }

    /// A reference to `child` was stored into a slot of `parent`; null: who knows which.
    pub(super) fn note_store(
        &self,
        me: &Mutator,
        parent: *mut u8,
        slot: *mut *mut u8,
        child: *mut u8,
    ) {
        if self.candidate(child).is_none() {
            return;
        }
        if parent.is_null() {
            // In a root, whoever looks after that.
            return self.stays_where_it_is(child);
        }
        if slot.is_null() {
            return self.note_stored(me, parent, parent, stored::whole);
        }
        // While marking goes on, who has no mark has not reported anything yet.
        if self.phase() != Phase::Marking || self.is_marked(parent) {
            self.note_slot(&me.tracer, slot, child);
        }
    }

    /// Nothing moves any more.
    #[cold]
    pub(super) fn give_plan_up(&self) {
        for page in
            self.supply.pages.all().filter(|page| page.evacuation() == Evacuation::Candidate)
        {
            page.set_evacuation(Evacuation::No);
        }
    }

    /// A mutator is through with a page in which it has allocated, or has made a large object.
    pub(super) fn note_used(&self, page: &Page) {
        if self.phase() == Phase::Moving
            && layout::is_traced(page.page_list.get())
            && !self.moving.fresh.lock().0.push(page.number.get() as u32)
        {
            self.give_plan_up();
        }
    }
}

/// Moving.
impl Heap {
    /// Moves objects until `deadline`; 0: until all are where they are to be.
    pub(super) fn move_some(&self, me: &Mutator, deadline: u64) {
        me.note_stack();
        if !self.world.stop(&me.handshake) {
            return self.rest(me);
        }
        let (wall, cpu) = (os::now_ns(), os::thread_cpu_ns());
        if self.phase() == Phase::Moving {
            self.each_mutator(Mutator::settle);
            self.move_stopped(me, deadline);
        }
        self.pauses.add(os::now_ns().saturating_sub(wall), os::thread_cpu_ns().saturating_sub(cpu));
        self.world.go_on();
    }

    /// As [`Heap::move_some`], while the world stands still.
    pub(super) fn move_stopped(&self, me: &Mutator, deadline: u64) {
        let is_over = || deadline != 0 && os::now_ns() >= deadline;
        me.tracer.publish();
        if !self.ask_fresh(me, is_over) {
            return;
        }
        self.pin_roots(me);
        let mut plan = self.moving.plan.lock();
        let steps = deadline != 0;
        while let Some(&number) = plan.pages.get(plan.through) {
            plan.through += 1;
            if let Some(page) = self.supply.pages.get(number as usize) {
                self.evacuate(me, page, steps);
            }
            if is_over() {
                break;
            }
        }
        self.change_roots(me);
        let through = plan.through == plan.pages.len();
        drop(plan);
        if through {
            self.end_moving();
        }
        if self.options().verify & super::raw::VERIFY_HEAP != 0 {
            self.each_mutator(Mutator::settle);
            self.verify(me);
        }
    }

    /// Asks all objects what they lead to that were made, or stored into, since they reported. Whether
    /// there was time for all.
    fn ask_fresh(&self, me: &Mutator, is_over: impl Fn() -> bool) -> bool {
        let ask = |page: &Page| {
            let report = |tracer: &Tracer| page.each_unscanned(|object| tracer.trace(object));
            me.tracer.looking_at(Slots::Note, report, &mut |child| self.stays_where_it_is(child));
        };
        self.each_mutator(|mutator| mutator.tracer.give_notes());
        let stored = |tracer: &Tracer| self.ask_stored(tracer);
        me.tracer.looking_at(Slots::Note, stored, &mut |child| self.stays_where_it_is(child));
        loop {
            let Some(number) = self.moving.fresh.lock().0.pop() else { break };
            if let Some(page) = self.supply.pages.get(number as usize) {
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
            self.each_mutator(|mutator| mutator.scan_stack(tracer));
        };
        me.tracer.looking_at(Slots::PassOver, report, &mut |object| self.stays_where_it_is(object));
    }

    /// Roots lead to where objects are now.
    fn change_roots(&self, me: &Mutator) {
        let change = |cell: &super::handles::Cell| {
            if let Some(to) = self.forwarded(cell.load(Relaxed)) {
                cell.store(to, Relaxed);
            }
        };
        self.handles.each_cell(change);
        self.weak.handles.each_cell(change);
        self.finalizers.lock().each_object(|object| self.forwarded(object).unwrap_or(object));
        me.tracer.looking_at(Slots::Change, |tracer| self.runtime().roots(tracer), &mut |_| {});
    }

    /// Where an object is now, if it has moved since it was marked.
    pub(super) fn forwarded(&self, object: *mut u8) -> Option<*mut u8> {
        let page = self.page_of(object.addr())?;
        let offset = object.addr() - page.base().addr();
        let begins =
            page.evacuation() == Evacuation::Evacuated && page.slot_of(offset) == Some(offset);
        begins.then(|| page.moved_to(offset)).flatten()
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
            !page.is_marked(0) || self.is_large_of(size(), page.footprint())
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
            let page_list = match self.sizes().pool(wanted) {
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
            if self.generations.sticky_marks() == StickyMarks::Everything {
                into.put_old(at);
                old.add(into);
            }
            into.moved_in.add(1);
            self.moving.objects.add(1);
            self.moving.bytes.add(size);
            self.pacing.sub_allocated(into.footprint());
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
        let head = self.head_of(slot.addr())?;
        let (page, start) = self.slot_in(head, slot.addr())?;
        if page.evacuation() != Evacuation::Evacuated {
            return Some(slot);
        }
        let Some(to) = page.moved_to(start) else { return Some(slot) };
        let within = slot.addr() - page.base().addr() - start;
        let size = self.supply.pages.at_unit(MAP.unit_of(to.addr()))?.slot.get();
        (within + size_of::<usize>() <= size).then(|| to.wrapping_add(within).cast())
    }

    /// Everything is where it is to be.
    fn end_moving(&self) {
        // What is to be reported to the next minor collection is elsewhere.
        self.each_mutator(|mutator| mutator.tracer.give_notes());
        self.generations.remembered.change(|object| {
            let object = MAP.base().with_addr(object);
            self.forwarded(object).unwrap_or(object).addr()
        });
        self.moving.plan.lock().through = 0;
        self.moving.fresh.lock().0.end();
        self.moving.references.end();
        self.moving.stage.set(SETTLING);
        self.moving.rounds.add(1);
        self.moving.swept.set(0);
        self.set_barrier(self.barrier());
        self.phase.store(Phase::Sweeping as u32, Relaxed);
    }

    /// Sweeps a page that the sweep passed while objects were moved. False: there is none any more.
    pub(super) fn sweep_passed(&self) -> bool {
        if self.moving.stage.get() != SETTLING {
            return false;
        }
        let mut plan = self.moving.plan.lock();
        while let Some(&number) = plan.pages.get(plan.through) {
            plan.through += 1;
            let page =
                self.supply.pages.get(number as usize).filter(|page| page.passed.take() != 0);
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

    /// Whether objects can be moved while mutators run between steps: they report all stores.
    pub(super) fn moves_in_steps(&self) -> bool {
        self.options().incremental || self.options().generations
    }

    /// A compaction from its beginning to its end.
    pub(super) fn compact(&self, me: &Mutator) {
        self.collect(me);
        self.moving.wanted.set(URGENT);
        self.collect(me);
        self.supply.trim();
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
            self.heap.supply.lists.lock().add_old(self.page_list, count, bytes);
        }
    }
}
