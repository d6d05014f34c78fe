//! Settling: weak references, ephemerons, guardians, finalizers, when nothing else is left to mark.
//!
//! ```text
//!   CONTEXTS  GUARDIANS  REGISTERED    objects that are kept with marked objects
//!   CLOSED    CELLS      WEAK          weak handles are visited, weak references cleared
//!   JUDGE     DUE                      finalizers, a priority at a time
//!   DYING     EMPTY                    ephemerons with dead keys
//!   SWEEP     AGE_...                  dead guardians; entries that minor collections pass over
//!   LAST                               weak references again
//!
//!   each call  reported ephemerons | registrations of guardians | then the stage's next entries
//!              if one of these marks an object: marking goes on, and comes back here
//! ```
//!
//! `weak` describes the order and its reasons. A stage visits a few entries at a time, and a step
//! may end after any of them. Before a stage continues, all roots are reported again, and all that
//! they lead to is marked. No stage misses an object between two visits:
//!
//! - From the first stage on, each newly marked object is *looked up*: values of ephemerons,
//!   contexts, representatives, registrations of guardians. So chains of these take time in
//!   proportion to their length.
//! - An object that a mutator registers meanwhile lives this time
//!   ([`keep_this_time`](super::mutator::Mutator::keep_this_time)).
//! - WEAK is one pause, because mutators read weak references without a barrier. From then on no
//!   mutator reaches an object without a mark, except by an ephemeron. EMPTY ends this exception.
//! - LAST clears weak references that were stored meanwhile, to objects that died young.
//!
//! If memory is short, marks may be set without a lookup. Then the first stages are repeated.
//! `trace_unprotected` traces objects without barriers again. Called by `mark` and `moving`.

use core::ptr;

use heapwright_substrate::misuse;
use heapwright_substrate::sync::atomic::Ordering;
use heapwright_substrate::text::Line;

use super::around::Around;
use super::bag;
use super::ephemerons::Noted;
use super::finalizers::PRIORITIES;
use super::guardians::Judge;
use super::options;
use super::stages::{
    AGE_FINALIZERS, AGE_GUARDIANS, AGE_REGISTERED, CELLS, CLOSED, CONTEXTS, DUE, DYING, EMPTY,
    GUARDIANS, HAS_CONTEXTS, HAS_GUARDED, JUDGE, LAST, NOT_BEGUN, REGISTERED, SWEEP, WEAK,
};
use super::trace::Trace;
use super::tracer::{Budget, Marks, Tracer};

const VISITS: usize = 256;
const REPORTED: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    All,
    More,
    Over,
}

impl Trace {
    /// Settles, within the budget. `passed`: whether the runtime's weak passes ran in this step.
    pub(super) fn settle(
        &self,
        tracer: &Tracer,
        budget: Budget,
        around: &impl Around,
        passed: &mut bool,
    ) -> Settled {
        around.each_tracer(&mut |tracer| tracer.give_notes());
        tracer.give_notes();
        if self.settling.stage.get() == NOT_BEGUN {
            self.begin_settling(tracer);
        }
        if self.settling.missed.take() != 0 {
            let stage = self.settling.stage.get();
            if stage > CLOSED {
                self.settling.next.set(stage);
            }
            self.settling.enter(CONTEXTS);
            if self.visit_ephemerons(tracer) {
                return Settled::More;
            }
        }
        // Counts (twice) ephemerons that objects without barriers report again in each step. They do
        // not use up the step's budget. Otherwise the step might visit nothing else.
        let mut again = 0;
        loop {
            if let Some(known) = self.add_ephemerons(tracer) {
                again += 2 * known;
            } else {
                match self.settling.stage.get() {
                    CONTEXTS..=REGISTERED => self.visit_first(tracer),
                    _ if self.follow_guardians(tracer) => {}
                    stage => {
                        if stage == LAST && self.has_cleared_ephemerons(tracer) {
                            self.end_settling(tracer, passed);
                            return Settled::All;
                        }
                        self.visit_later(tracer, passed);
                    }
                }
            }
            if budget.is_spent() {
                if again < VISITS {
                    return Settled::Over;
                }
                again -= VISITS;
            }
            if tracer.has_items() {
                return Settled::More;
            }
        }
    }

    /// Begins to settle. From now on marked objects are looked up, if there are lists to look in.
    fn begin_settling(&self, tracer: &Tracer) {
        let settling = &self.settling;
        settling.next.set(CELLS);
        let contexts = if self.finalizers.lock().has_contexts() { HAS_CONTEXTS } else { 0 };
        let guarded = if self.guardians.has_any() { HAS_GUARDED } else { 0 };
        settling.among.set(contexts | guarded);
        let any = settling.among.get() != 0;
        settling.enter(if any { CONTEXTS } else { CLOSED });
        self.weak.watch(any);
        tracer.mark_as(Marks::Alone);
    }

    /// Takes a chunk of reported ephemerons. Marks the values of ephemerons with marked keys. The
    /// other ephemerons wait. Returns how many of these waited already, or `None` without a chunk.
    fn add_ephemerons(&self, tracer: &Tracer) -> Option<usize> {
        let bag = self.weak.ephemerons();
        let chunk = bag.take()?;
        let mut waiting = self.weak.waiting.lock();
        if waiting.count() == 0 {
            waiting.expect(bag.words() / 4);
        }
        if !self.weak.is_watching() {
            self.weak.watch(true);
            tracer.mark_as(Marks::Alone);
        }
        let space = self.space();
        let keep = |object: *mut u8| {
            if space.is_unmarked(object) {
                tracer.edge(object);
            }
        };
        let waits = |ephemeron: Noted| {
            let waits = space.is_unmarked(ephemeron.key());
            if !waits {
                keep(ephemeron.value());
            }
            waits
        };
        // Without a note, nothing would clear the ephemeron. So its key and value are kept.
        let refused = |ephemeron: Noted| {
            keep(ephemeron.key());
            keep(ephemeron.value());
        };
        // Only a later step reports ephemerons again.
        let again = self.settling.resumed.get() != 0;
        let (kept, known) = waiting.add(chunk, again, waits, refused);
        if !kept {
            self.marking.give_back(chunk);
        }
        if !waiting.index() {
            // Without a table no lookup finds anything: all ephemerons are visited again.
            self.settling.miss();
        }
        Some(known)
    }

    /// Marks the value of an ephemeron whose key lives. Returns whether the value had no mark. The
    /// mark of the key does not show that the value has one: the program may have replaced the key.
    fn keep_value(&self, tracer: &Tracer, ephemeron: Noted) -> bool {
        let value = ephemeron.value();
        let kept = !self.has_dead_key(ephemeron) && self.space().is_unmarked(value);
        if kept {
            tracer.edge(value);
        }
        kept
    }

    /// Returns whether the key of a waiting ephemeron is dead. No null key began to wait. If the
    /// program has not run since, the key's slot is also a weak slot, which was cleared.
    fn has_dead_key(&self, ephemeron: Noted) -> bool {
        let key = ephemeron.key();
        if key.is_null() { self.settling.resumed.get() == 0 } else { self.space().is_unmarked(key) }
    }

    /// Visits all waiting ephemerons, after marks without a lookup. Returns whether it marked any.
    fn visit_ephemerons(&self, tracer: &Tracer) -> bool {
        let mut found = false;
        let waiting = self.weak.waiting.lock();
        waiting.each(|ephemeron| found |= self.keep_value(tracer, ephemeron));
        if found && !waiting.is_indexed() {
            self.settling.miss();
        }
        found
    }

    fn is_unmarked(&self) -> impl Fn(*mut u8) -> bool + '_ {
        |object| self.space().is_unmarked(object)
    }

    /// Calls `with` with the number of the last visited entry, which `with` advances.
    fn visiting(&self, with: impl FnOnce(&mut u32) -> bool) -> bool {
        let mut at = self.settling.at.get() as u32;
        let through = with(&mut at);
        self.settling.at.set(at as usize);
        through
    }

    fn visit_first(&self, tracer: &Tracer) {
        let minor = self.generations.is_minor();
        let stage = self.settling.stage.get();
        let mut judge =
            Judge { is_unmarked: self.is_unmarked(), mark: |object| tracer.edge(object) };
        let through = self.visiting(|at| match stage {
            CONTEXTS => self.finalizers.lock().visit(at, minor, VISITS, |_, _, entry| {
                if let Some(context) = entry.traced_context()
                    && !(judge.is_unmarked)(entry.object())
                    && (judge.is_unmarked)(context)
                {
                    tracer.edge(context);
                }
            }),
            GUARDIANS => self
                .guardians
                .with(|guardians| guardians.visit_guardians(at, minor, VISITS, &mut judge)),
            _ => self
                .guardians
                .with(|guardians| guardians.visit_registered(at, minor, VISITS, &mut judge)),
        });
        if through {
            self.settling.enter(stage + 1);
        }
    }

    /// Visits registrations of guardians that were marked late. When nothing is left to mark,
    /// retrieves dead objects, or judges queued registrations. Returns whether there was work.
    fn follow_guardians(&self, tracer: &Tracer) -> bool {
        let mut judge =
            Judge { is_unmarked: self.is_unmarked(), mark: |object| tracer.edge(object) };
        let (busy, retrieved) = self.guardians.with(|guardians| {
            if !guardians.visit_late(VISITS, &mut judge) {
                return (true, 0);
            }
            if tracer.has_items() {
                return (true, 0);
            }
            // Nothing else is left to mark.
            let retrieved = guardians.retrieve_some(VISITS, &mut judge);
            if retrieved > 0 {
                return (true, retrieved);
            }
            let queued = guardians.is_queued();
            if queued {
                guardians.judge_some(VISITS, &judge.is_unmarked);
            }
            (queued, 0)
        });
        if retrieved > 0 {
            self.due.note();
        }
        busy
    }

    fn visit_later(&self, tracer: &Tracer, passed: &mut bool) {
        let (settling, minor) = (&self.settling, self.generations.is_minor());
        let stage = settling.stage.get();
        let priority = settling.priority.get();
        let through = match stage {
            CLOSED => {
                settling.enter(settling.next.get());
                return;
            }
            // A minor collection visits no cell here: later it looks at cells whose byte is set.
            CELLS => {
                let cells = &self.weak.cells;
                minor || self.visiting(|at| cells.visit(at, VISITS, self.is_unmarked()))
            }
            WEAK => {
                self.clear_weak(tracer, passed);
                settling.priority.set(0);
                true
            }
            JUDGE => {
                self.judge_priority(priority, minor);
                return;
            }
            DUE => {
                let mark = |object| tracer.edge(object);
                if self.finalizers.lock().mark_due(priority, VISITS, mark) {
                    settling.priority.set(priority + 1);
                    settling.enter(JUDGE);
                }
                return;
            }
            DYING => self.weak.waiting.lock().find_dying(VISITS, |ephemeron| {
                self.keep_value(tracer, ephemeron);
                self.has_dead_key(ephemeron)
            }),
            EMPTY => self.has_cleared_ephemerons(tracer),
            SWEEP => self.visiting(|at| {
                self.guardians
                    .with(|guardians| guardians.sweep_some(at, minor, VISITS, self.is_unmarked()))
            }),
            NOT_BEGUN..=REGISTERED => true,
            LAST => return,
            _ if !self.space().options().generations => true,
            AGE_FINALIZERS => self.visiting(|at| {
                self.finalizers.lock().visit(at, true, VISITS, |finalizers, number, entry| {
                    let context = entry.traced_context();
                    if self.is_old(entry.object())
                        && context.is_none_or(|context| self.is_old(context))
                    {
                        finalizers.make_old(number);
                    }
                })
            }),
            AGE_GUARDIANS => self.visiting(|at| {
                self.guardians.with(|of| of.age_guardians(at, VISITS, |object| self.is_old(object)))
            }),
            AGE_REGISTERED.. => self.visiting(|at| {
                self.guardians
                    .with(|of| of.age_registered(at, VISITS, |object| self.is_old(object)))
            }),
        };
        if through {
            settling.enter(stage + 1);
        }
    }

    /// Judges some finalizers of a priority. They become due if their objects are inaccessible. The
    /// next priority follows when all objects that the due finalizers lead to are marked.
    fn judge_priority(&self, priority: usize, minor: bool) {
        let settling = &self.settling;
        if priority == PRIORITIES {
            return settling.enter(DYING);
        }
        let mut finalizers = self.finalizers.lock();
        let through = !finalizers.has_priority(priority)
            || self.visiting(|at| {
                finalizers.visit(at, minor, VISITS, |finalizers, number, entry| {
                    if !self.space().is_marked(entry.object()) {
                        finalizers.make_due(number, priority);
                    }
                })
            });
        if !through {
            return;
        }
        if finalizers.end_priority(priority) {
            self.weak.set_resurrects(true);
            settling.enter(DUE);
        } else {
            settling.priority.set(priority + 1);
            settling.enter(JUDGE);
        }
    }

    /// Returns whether a marked object is old when this collection is over: it has survived a
    /// collection before, or this collection is a major one.
    fn is_old(&self, object: *mut u8) -> bool {
        let Some(page) = self.space().page_of(object.addr()) else { return true };
        let offset = object.addr() - page.base().addr();
        page.is_marked(offset) && (!self.generations.is_minor() || page.has_survived(offset))
    }

    /// Runs the runtime's weak passes. The world must be stopped.
    pub(super) fn run_weak_passes(&self, tracer: &Tracer) {
        self.weak_passes.each(|pass, context| {
            // SAFETY: the runtime promised a valid weak pass and context.
            unsafe { pass(tracer, context) };
        });
    }

    /// Runs the weak passes, and makes weak references to dead objects null. Call this only after
    /// all live objects were marked, except those that only finalizers keep.
    fn clear_weak(&self, tracer: &Tracer, passed: &mut bool) {
        if !core::mem::replace(passed, true) {
            self.run_weak_passes(tracer);
        }
        let space = self.space();
        if space.options().verify & options::VERIFY_BARRIERS != 0 {
            self.verify_weak_cells();
        }
        let mut cleared = 0;
        let mut slots = self.weak.slots().take();
        if slots.is_some() {
            self.finalizers.lock().each_fresh(|object| _ = space.take_mark(object));
        }
        while let Some(chunk) = slots {
            bag::each(chunk, |slot: *mut *mut u8| {
                // SAFETY: `trace` of a marked object reported the slot, so it exists.
                if space.is_unmarked(unsafe { slot.read() }) {
                    // SAFETY: `trace` of a marked object reported the slot. Nobody reads it,
                    // because the world is stopped.
                    unsafe { slot.write(ptr::null_mut()) };
                    cleared += 1;
                }
            });
            self.marking.give_back(chunk);
            slots = self.weak.slots().take();
            if slots.is_none() {
                self.finalizers.lock().each_fresh(|object| space.give_mark(object));
            }
        }
        let generations = space.options().generations;
        self.weak.cells.each_looked_at(|cell| {
            let object = cell.load(Ordering::Relaxed);
            if space.is_unmarked(object) {
                cell.store(ptr::null_mut(), Ordering::Relaxed);
                cleared += 1;
                return true;
            }
            generations && !self.is_old(object) || !space.is_object(object)
        });
        self.weak.cleared.add(cleared);
    }

    /// Ends the program if minor collections would skip a weak handle whose object is not old. In
    /// a heap with few weak handles no collection skips one, but the check runs all the same.
    fn verify_weak_cells(&self) {
        let (space, mut found) = (self.space(), 0);
        self.weak.cells.each_passed_over(|cell| {
            let object = cell.load(Ordering::Relaxed);
            if self.is_old(object) {
                return;
            }
            found += 1;
            if found <= REPORTED {
                let line = Line::new().text("collected heap ").number(space.id() as usize);
                let line = line.text(": weak handle ").address(ptr::from_ref(cell).addr());
                let line = line.text(" leads to ").address(object.addr());
                let age = if space.is_unmarked(object) { "dead" } else { "young" };
                let line = line.text(", which is ").text(age);
                line.text(": it was stored there without hw_gc_weak_set").write();
            }
        });
        if found > 0 {
            misuse::collected_heap("a store into a weak handle was not reported (hw_gc_weak_set)");
        }
    }

    /// Makes ephemerons with dead keys null. Call this only after all live objects were marked.
    /// Returns false if the program has replaced a dead key by a live one. Then this has marked the
    /// value, and cleared nothing.
    fn has_cleared_ephemerons(&self, tracer: &Tracer) -> bool {
        let mut waiting = self.weak.waiting.lock();
        let (mut cleared, mut found) = (0, false);
        // (Only between steps does the program replace keys.)
        if self.settling.resumed.get() != 0 {
            waiting.each_dying(|ephemeron| found |= self.keep_value(tracer, ephemeron));
        }
        if found {
            return false;
        }
        waiting.each_dying(|ephemeron| {
            if self.has_dead_key(ephemeron) {
                ephemeron.clear();
                cleared += 1;
            }
        });
        self.weak.cleared.add(cleared);
        waiting.empty(|chunk| self.marking.give_back(chunk));
        true
    }

    /// Ends settling, in the pause that ends marking.
    fn end_settling(&self, tracer: &Tracer, passed: &mut bool) {
        self.clear_weak(tracer, passed);
        self.weak.waiting.lock().end();
        self.weak.stop_watching();
        self.unprotected.retain(|object| !self.space().is_unmarked(object));
        self.weak.set_resurrects(false);
        if self.finalizers.lock().end_marking() {
            self.due.note();
        }
        self.settling.clear();
    }

    /// Traces marked objects without barriers again, with the roots. Returns their bytes.
    pub(super) fn trace_unprotected(&self, tracer: &Tracer) -> usize {
        let mut bytes = 0;
        self.unprotected.each(|object| {
            if self.space().is_marked(object) {
                bytes += self.space().size_of(object);
                tracer.look_once_more(object);
            }
        });
        bytes
    }
}
