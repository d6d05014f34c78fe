//! Marking: reachable objects get their marks, from all stopped threads and from helpers.
//!
//! ```text
//!   mark    loop: drain | pages that overflowed | remembered set | roots, once a step | values of
//!           ephemerons; until none of these finds anything new: then weak references are cleared
//!
//!   drain   alone                    no other thread is stopped or called, or marked objects are
//!                                    looked up (see `settling`)
//!           two, local bitmaps       little to mark, and no budget (see `local_marks`)
//!           several, locked marks    otherwise; much to mark: helpers are called (see `helpers`)
//!
//!   counts  tracer.marked --detach, or marking ends--> Marking.counted --finish--> live, by list
//! ```
//!
//! Marking needs a trace, a tracer and its [surroundings](Around), but no heap and no mutator.
//! Called by `cycle`. `settling` follows when nothing else is left.

use heapwright_substrate::sync::atomic::Ordering;

use super::around::Around;
use super::bits;
use super::event::Span;
use super::settling::Settled;
use super::trace::Trace;
use super::tracer::{Budget, Marks, Tracer};

/// Bytes of work that a step may do past its deadline, once all roots are reported.
const LITTLE: usize = 32 << 10;
/// After this many steps that report all roots but do not trace all, later steps may do more.
const ATTEMPTS: usize = 4;

impl Trace {
    /// Marks. Returns whether everything that roots lead to now is marked.
    pub(super) fn mark(&self, tracer: &Tracer, budget: Budget, around: &impl Around) -> bool {
        let (mut reported, mut passed, mut roots) = (false, false, 0);
        tracer.mark_as(Marks::Alone);
        self.settling.resumed.set(usize::from(self.settling.is_begun()));
        tracer.trace_dirty_slots();
        loop {
            // Each step that gets here reports the roots again. If they lead to little work, the
            // step continues past its deadline. If it always ended there, and steps were too short
            // for the roots, no step would ever be the last.
            if !(self.drain(tracer, budget, around)
                || reported && self.drain(tracer, Budget::of(self.little(roots)), around))
            {
                if reported {
                    self.marking.attempts.add(1);
                }
                return false;
            }
            if self.marking.overflowed.swap(0, Ordering::Relaxed) != 0 {
                for page in self.space().pages.all().filter(|page| page.overflowed.get() != 0) {
                    tracer.look_through(page);
                }
            } else if self.generations.is_minor() && tracer.trace_remembered() {
                // The next chunk follows when the objects of this chunk are marked.
            } else if !reported {
                let mut report = || {
                    roots = self.report_roots(tracer, around);
                    true
                };
                reported = around.during(Span::Roots, &mut report);
            } else {
                let mut settled = Settled::All;
                let mut settle = || {
                    settled = self.settle(tracer, budget, around, &mut passed);
                    settled == Settled::All
                };
                around.during(Span::Weak, &mut settle);
                match settled {
                    Settled::All => return true,
                    Settled::Over => {
                        tracer.publish();
                        return false;
                    }
                    Settled::More => {}
                }
            }
        }
    }

    fn drain(&self, tracer: &Tracer, budget: Budget, around: &impl Around) -> bool {
        let parked = around.parked();
        // A step with a budget marks little, and often. Helpers and local marks would not pay.
        let left = budget.is_none().then(|| around.left());
        let helpers = left.map_or(0, |left| self.helpers_wanted(parked, left));
        if parked + helpers == 0 || self.weak.is_watching() {
            tracer.mark_as(Marks::Alone);
            let through = tracer.drain(budget);
            if !through {
                tracer.publish();
            }
            return through;
        }
        // Gives the tracer's items to all. Without items, helpers are not called.
        tracer.publish();
        let gang = &self.marking.gang;
        if gang.is_empty() {
            return true;
        }
        let two =
            parked + helpers == 1 && left.is_some_and(|left| self.marking.local_marks.open(left));
        tracer.mark_as(if two { Marks::First } else { Marks::Locked });
        gang.open(1 + parked + helpers);
        around.call();
        self.call_helpers(helpers);
        let through = tracer.drain(budget);
        if !through {
            gang.stop();
        }
        tracer.publish();
        gang.close();
        if two {
            tracer.mark_as(Marks::Locked);
            self.merge_local_marks();
        }
        through && gang.is_empty()
    }

    /// Merges the local bitmap into the map's, and uncounts objects that both threads marked.
    pub(super) fn merge_local_marks(&self) {
        self.marking.local_marks.close();
        for page in self.space().pages.all() {
            let Some(local_bitmap) = self.marking.local_marks.take(page) else { continue };
            let twice = bits::merge(local_bitmap, page.marks());
            if twice > 0 {
                self.marking.uncount(page, twice);
            }
        }
    }

    /// Returns how much work a step may do past its deadline, if it has reported `roots` bytes of
    /// roots. Each step that got so far, but did not trace all, allows later steps more.
    fn little(&self, roots: usize) -> usize {
        let more = self.marking.attempts.get().saturating_sub(ATTEMPTS).min(16);
        (LITTLE << more).saturating_add(roots)
    }

    /// Reports all roots. Returns about how many bytes of work these are.
    fn report_roots(&self, tracer: &Tracer, around: &impl Around) -> usize {
        let mut roots = 0;
        self.handles.each(|object| {
            roots += size_of::<usize>();
            tracer.edge(object);
        });
        self.finalizers.lock().each_due(|object| {
            roots += size_of::<usize>();
            tracer.edge(object);
        });
        if self.generations.is_minor() || self.space().options().incremental {
            roots += self.trace_unprotected(tracer);
        }
        tracer.tracing_roots(|tracer| self.runtime().roots(tracer));
        roots += tracer.held_bytes();
        around.scan_stacks(tracer);
        roots
    }
}

#[cfg(test)]
mod tests {
    use core::ffi::c_void;
    use core::ptr;
    extern crate std;
    use std::vec::Vec;

    use super::super::TRACED;
    use super::super::handles;
    use super::super::layout::{KINDS, PAGE_LISTS};
    use super::super::runtime::Runtime;
    use super::super::tests::ground::Ground;
    use super::*;

    struct Nobody;

    impl Around for Nobody {}

    unsafe extern "C" fn trace(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
        // SAFETY: every object of these tests has two words.
        unsafe { *object.cast::<[*mut u8; 2]>() }.into_iter().for_each(|to| tracer.mark(to));
    }

    #[test]
    fn what_handles_lead_to_is_marked_without_a_heap_and_a_mutator() {
        let ground = Ground::new(Runtime { trace: Some(trace), ..Runtime::new() });
        let (space, trace) = (&ground.space, &ground.trace);
        let page_list = space.sizes().pool(16) * KINDS + TRACED as usize;
        let page = ground.page(page_list);
        // A ring of a hundred objects. Each third also leads to an object beside the ring.
        let ring: Vec<*mut u8> = (0..100).map(|_| ground.object(page)).collect();
        let beside: Vec<*mut u8> = (0..100).map(|_| ground.object(page)).collect();
        for (n, &object) in ring.iter().enumerate() {
            let other = if n % 3 == 0 { beside[n] } else { ptr::null_mut() };
            // SAFETY: an object of two words.
            unsafe { object.cast::<[*mut u8; 2]>().write([ring[(n + 1) % 100], other]) };
        }
        // SAFETY: zero has no free cells.
        let own: handles::Own = unsafe { core::mem::zeroed() };
        assert!(trace.handles.make(&own, ring[40]).is_some());
        let tracer = Tracer::new(trace);
        assert!(trace.mark(&tracer, Budget::NONE, &Nobody));
        assert!(ring.iter().all(|&object| space.is_marked(object)));
        for (n, &object) in beside.iter().enumerate() {
            assert_eq!(space.is_marked(object), n % 3 == 0);
        }
        tracer.give_counts();
        let mut live = [0; PAGE_LISTS];
        assert_eq!(trace.marking.take_counts(&mut live), 134 * space.slot(page_list));
        assert_eq!(live[page_list], 134);
    }
}
