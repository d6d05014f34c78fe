//! Marking: what is reachable gets its mark, by all threads that stand still and by helpers.
//!
//! ```text
//!   mark    loop: drain | pages that overflowed | remembered set | roots, once a step | values of
//!           ephemerons; until none of these finds anything new: then weak references are cleared
//!
//!   drain   alone                    with a budget, or nobody else to mark
//!           two, local bitmaps       little to mark (see `local_marks`)
//!           several, locked marks    much to mark: helpers are called (see `helpers`)
//!
//!   counts  tracer.marked --leaves, or marking ends--> Marking.counted --finish--> live, by page list
//! ```
//!
//! [`Marking`] owns what the marking threads share: the gang, its helpers, the memory of its chunks, the
//! local bitmap, the step's deadline, and the counts of threads that have left. The mark of an object is a bit
//! of the map's side bitmap.
//!
//! Called by `cycle`; `tracer` does the work.

use heapwright_substrate::sync::atomic::{AtomicU32, Ordering};

use super::cell::Num;
use super::event::Span;
use super::gang::{Chunk, Gang};
use super::heap::Heap;
use super::helpers::Helpers;
use super::layout::PAGE_LISTS;
use super::local_marks::LocalMarks;
use super::mark_chunks::MarkChunks;
use super::mutator::Mutator;
use super::page::Page;
use super::tracer::{Budget, Marks, Tracer};

/// What the threads that mark one heap share. Zero has nothing to mark.
pub(super) struct Marking {
    pub(super) gang: Gang,
    pub(super) helpers: Helpers,
    pub(super) local_marks: LocalMarks,
    pub(super) chunks: MarkChunks,
    /// Whether a page is to be looked through, because there was no chunk for an object of it.
    overflowed: AtomicU32,
    /// The deadline of the step under way, for threads that help.
    deadline: Num,
    /// Objects marked in this cycle by helpers, and by mutators that have left, and their bytes.
    counted: [Num; PAGE_LISTS],
    counted_bytes: Num,
}

impl Marking {
    /// Takes memory for the first chunks. False: there is none.
    pub(super) fn begin(&self) -> bool {
        self.chunks.begin(&self.gang)
    }

    /// An empty chunk. `None` where there is no memory.
    pub(super) fn take_chunk(&self) -> Option<*mut Chunk> {
        self.chunks.take(&self.gang)
    }

    /// A chunk, although there is no memory: see [`MarkChunks::last_resort`].
    pub(super) fn last_resort(&self) -> *mut Chunk {
        self.chunks.last_resort(&self.gang)
    }

    /// The deadline of the step under way, nanoseconds of the clock; 0: none.
    pub(super) fn deadline(&self) -> u64 {
        self.deadline.get() as u64
    }

    /// A step begins.
    pub(super) fn set_deadline(&self, deadline: u64) {
        self.deadline.set(deadline as usize);
    }

    /// Gives chunks back that a heap of so many bytes is not likely to need. While nobody marks.
    pub(super) fn trim(&self, heap: usize) {
        self.chunks.trim(&self.gang, heap);
    }

    /// A page is to be looked through.
    fn note_overflow(&self, page: &Page) {
        page.overflowed.set(1);
        self.overflowed.store(1, Ordering::Release);
    }

    /// Adds what a tracer counted whose mutator or helper leaves, or whose cycle ends.
    pub(super) fn keep_counts(&self, tracer: &Tracer) {
        for (kept, count) in self.counted.iter().zip(&tracer.marked) {
            if count.get() != 0 {
                kept.add_shared(count.get());
            }
        }
        self.counted_bytes.add_shared(tracer.forget_counts());
    }

    /// Subtracts objects of a page that two counted.
    pub(super) fn uncount(&self, page: &Page, twice: usize) {
        self.counted[page.page_list.get()].add(twice.wrapping_neg());
        self.counted_bytes.add((twice * page.footprint()).wrapping_neg());
    }

    /// Adds the objects that were counted to `live`, by page list, and returns their bytes. The
    /// counts are zero again.
    pub(super) fn take_counts(&self, live: &mut [usize; PAGE_LISTS]) -> usize {
        for (live, kept) in live.iter_mut().zip(&self.counted) {
            *live += kept.take();
        }
        self.counted_bytes.take()
    }

    /// Gives all memory back. Nobody marks.
    pub(super) fn end(&self) {
        self.chunks.end();
        self.gang.forget();
        self.local_marks.end();
        self.overflowed.store(0, Ordering::Relaxed);
        self.deadline.set(0);
        self.counted.iter().for_each(|count| count.set(0));
        self.counted_bytes.set(0);
    }

    /// Holds the locks across a fork.
    pub(super) fn before_fork(&self) {
        self.chunks.before_fork();
        self.gang.before_fork();
    }

    /// Gives them back on either side of a fork.
    ///
    /// # Safety
    ///
    /// Follows [`Marking::before_fork`] in the forking thread or its copy.
    pub(super) unsafe fn after_fork(&self) {
        // SAFETY: its locks were taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.gang.after_fork() };
        // SAFETY: its lock was taken before the fork by this thread, or by the one that it is a
        // copy of.
        unsafe { self.chunks.after_fork() };
    }

    /// In a forked child, which has no other threads.
    pub(super) fn forget_others(&self) {
        self.helpers.forget();
        self.gang.forget_workers();
    }
}

impl Heap {
    /// Marks. Whether all is marked that roots lead to, now.
    pub(super) fn mark(&self, me: &Mutator, budget: Budget) -> bool {
        let (mut reported, mut passed) = (false, false);
        self.weak.stop_watching();
        me.tracer.mark_as(Marks::Alone);
        self.trace_dirty_slots(&me.tracer);
        loop {
            // Roots are reported again in each step that comes so far. If they lead to little that is new, the
            // step goes on however late it is: or one that is too short for them would never be the last.
            if !(self.drain(me, budget) || reported && self.drain(me, Budget::A_LITTLE)) {
                self.weak.stop_watching();
                return false;
            }
            if self.marking.overflowed.swap(0, Ordering::Relaxed) != 0 {
                for page in self.space.pages.all().filter(|page| page.overflowed.get() != 0) {
                    me.tracer.look_through(page);
                }
            } else if self.generations.is_minor() && self.trace_remembered(&me.tracer) {
                // And another chunk, when what these lead to is marked.
            } else if !reported {
                self.during(Span::Roots, me, || self.trace_roots(&me.tracer));
                reported = true;
            } else if self.during(Span::Weak, me, || self.settle_weak(me, &mut passed)) {
                return true;
            }
        }
    }

    /// What weak references lead to, ephemerons, guardians and finalizers, when nothing else is left to mark. Whether that is so
    /// still. The runtime's weak passes run once: `passed` says that they did.
    fn settle_weak(&self, me: &Mutator, passed: &mut bool) -> bool {
        if self.mark_values(me) || self.mark_contexts(&me.tracer) || self.ask_guardians(me) {
            return false;
        }
        if !core::mem::replace(passed, true) {
            self.run_weak_passes(&me.tracer);
        }
        self.clear_weak();
        if self.judge_finalizers(&me.tracer) != 0 {
            return false;
        }
        self.clear_ephemerons();
        self.sweep_guardians();
        self.sweep_unprotected();
        self.weak.set_resurrects(false);
        if self.finalizers.lock().end_marking() {
            self.due.note();
        }
        true
    }

    /// Marks what is known to be left, with all threads that stand still, and with helpers.
    fn drain(&self, me: &Mutator, budget: Budget) -> bool {
        let mut parked = 0;
        self.world.each(|handshake| {
            parked +=
                usize::from(!core::ptr::eq(handshake, &me.handshake) && handshake.is_parked());
            true
        });
        // A step with a budget marks little, often: not worth helpers or local marks.
        let left = budget.is_none().then(|| self.left());
        let helpers = left.map_or(0, |left| self.helpers_wanted(parked, left));
        if parked + helpers == 0 || self.weak.is_watching() {
            me.tracer.mark_as(Marks::Alone);
            let through = me.tracer.drain(budget);
            if !through {
                me.tracer.publish();
            }
            return through;
        }
        // What this one has is for all; nothing is not worth a call.
        me.tracer.publish();
        if self.marking.gang.is_empty() {
            return true;
        }
        let two = parked + helpers == 1 && left.is_some_and(|left| self.open_local_marks(left));
        me.tracer.mark_as(if two { Marks::First } else { Marks::Locked });
        self.marking.gang.open(1 + parked + helpers);
        self.world.call_for_help();
        self.call_helpers(helpers);
        let through = me.tracer.drain(budget);
        if !through {
            self.marking.gang.stop();
        }
        me.tracer.publish();
        self.marking.gang.close();
        if two {
            me.tracer.mark_as(Marks::Locked);
            self.merge_local_marks();
        }
        through && self.marking.gang.is_empty()
    }

    /// Reports all roots.
    pub(super) fn trace_roots(&self, tracer: &Tracer) {
        self.handles.each(|object| tracer.edge(object));
        self.finalizers.lock().each_due(|object| tracer.edge(object));
        self.trace_unprotected(tracer);
        tracer.tracing_roots(|tracer| self.runtime().roots(tracer));
        self.each_mutator(|mutator| {
            // Each stack's references in a chunk of its own: what one mutator made lies together, in its
            // processor's caches, and marking threads should not meet in the same lines of marks.
            tracer.publish();
            mutator.stack.scan(tracer);
            tracer.publish_for(&mutator.tracer);
        });
    }

    /// Finalizers whose object nothing leads to are due. How many.
    fn judge_finalizers(&self, tracer: &Tracer) -> usize {
        let due = self
            .finalizers
            .lock()
            .judge(|object| !self.space.is_marked(object), |object| tracer.edge(object));
        if due > 0 {
            self.weak.set_resurrects(true);
        }
        due
    }

    /// Marks the contexts of finalizers whose objects are marked. Whether there were any.
    fn mark_contexts(&self, tracer: &Tracer) -> bool {
        let is_unmarked = |object| self.space.is_unmarked(object);
        self.finalizers.lock().mark_contexts(is_unmarked, |context| tracer.edge(context))
    }

    /// Bytes marked in this cycle.
    pub(super) fn marked_so_far(&self) -> usize {
        let mut bytes = self.marking.counted_bytes.get();
        self.each_mutator(|mutator| bytes = mutator.tracer.bytes.get().wrapping_add(bytes));
        bytes
    }

    /// Marking had no memory: the object's page is to be looked through.
    #[cold]
    pub(super) fn note_overflow(&self, object: *mut u8) {
        if let Some(page) = self.space.page_of(object.addr()) {
            self.marking.note_overflow(page);
        }
    }
}
