//! Helping: how helpers and stopped mutators mark together with a collector.
//!
//! ```text
//!   come --> mark with the gang --> give notes and counts --> go --> again, while the gang is open
//! ```
//!
//! Called by `mark`, which calls helpers, and by stopped mutators.

use core::ffi::c_void;
use core::ptr;

use heapwright_substrate::os;
use heapwright_substrate::sync::atomic::Ordering;

use super::trace::Trace;
use super::tracer::{Budget, Marks, Tracer};
use super::waiting::{Then, WaitLimit, wait};

/// By default, helpers are called until this many threads mark. More would wait for memory.
const MARKERS: usize = 4;
/// Helpers are called if at least this many bytes are to be marked, the work of a few milliseconds.
/// With fewer bytes, one thread is soon done, and a helper takes a processor from other work.
const WORTH: usize = 8 << 20;
const A_SECOND: WaitLimit = WaitLimit { looks: 0, then: Then::SleepFor(1_000_000_000) };
extern "C" fn run(trace: *mut c_void) -> *mut c_void {
    // SAFETY: `call_helpers` passed a trace, and traces are never freed.
    let trace: &'static Trace = unsafe { &*trace.cast::<Trace>() };
    os::name_thread(c"heapwright gc");
    let tracer = Tracer::new(trace);
    let helpers = &trace.marking.helpers;
    loop {
        // Acquired: `end` sets `ending` before it increments this.
        let seen = helpers.calls.load(Ordering::Acquire);
        if helpers.ending.load(Ordering::Relaxed) != 0 {
            break;
        }
        trace.help(&tracer, |tracer| {
            tracer.give_notes();
            tracer.give_counts();
        });
        wait(&helpers.calls, seen, A_SECOND);
        if helpers.calls.load(Ordering::Relaxed) == seen {
            break;
        }
    }
    helpers.leave();
    ptr::null_mut()
}

impl Trace {
    /// Returns how many helpers to call to mark `left` bytes, if `others` help already.
    pub(super) fn helpers_wanted(&self, others: usize, left: usize) -> usize {
        if left >= WORTH { self.markers().saturating_sub(1 + others) } else { 0 }
    }

    /// Returns how many threads mark if helpers are called: at most one for each processor that the
    /// caller may use. If more mutators are stopped, all of them mark.
    fn markers(&self) -> usize {
        match self.space().options().markers as usize {
            0 => os::cpus().min(MARKERS),
            1 => 1,
            markers => os::cpus().min(markers),
        }
    }

    /// Calls helpers. The gang must be open.
    pub(super) fn call_helpers(&self, wanted: usize) {
        if wanted > 0 {
            let of = ptr::from_ref(self).cast_mut().cast();
            self.marking.helpers.call(run, of, wanted);
        }
    }

    /// Marks with the gang while it is open. Calls `done` before each time it leaves the gang.
    pub(super) fn help(&self, tracer: &Tracer, done: impl Fn(&Tracer)) {
        while self.marking.gang.come() {
            tracer.mark_as(if self.marking.local_marks.is_used() {
                Marks::Second
            } else {
                Marks::Locked
            });
            let budget = Budget { deadline: self.marking.deadline(), ..Budget::NONE };
            if !tracer.drain(budget) {
                self.marking.gang.stop();
            }
            // Marks without local marks again: nobody merges later marks there.
            tracer.mark_as(Marks::Locked);
            tracer.publish();
            done(tracer);
            self.marking.gang.go();
        }
    }
}

// (Other systems start no threads.)
#[cfg(all(
    test,
    target_os = "linux",
    not(miri),
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod tests {
    use super::super::heap::Heap;
    use super::super::mutator::Mutator;
    use super::super::raw::{Options, Runtime};
    use super::super::{LEAF, TRACED};
    use super::*;
    use core::ffi::c_void;
    extern crate std;
    use std::time::{Duration, Instant};

    const WIDTH: usize = 32;

    unsafe extern "C" fn trace(tracer: &Tracer, object: *mut c_void, _data: *mut c_void) {
        let object: *mut *mut u8 = object.cast();
        for n in 0..WIDTH {
            // SAFETY: traced objects have `WIDTH` references.
            tracer.mark(unsafe { object.wrapping_add(n).read() });
        }
    }

    /// Makes a tree of three storeys, some 10 MiB, under a root. Returns the number of its objects.
    fn building(mutator: &Mutator) -> usize {
        let floor = |storey: &dyn Fn() -> *mut u8| {
            let at: *mut *mut u8 = mutator.alloc(8 * WIDTH, TRACED as usize).cast();
            for n in 0..WIDTH {
                // SAFETY: it has `WIDTH` references, and nothing is collected meanwhile.
                unsafe { at.wrapping_add(n).write(storey()) };
            }
            at.cast::<u8>()
        };
        mutator.deferred.add(1);
        let top = floor(&|| floor(&|| floor(&|| mutator.alloc(300, LEAF as usize))));
        mutator.deferred.sub(1);
        assert!(mutator.heap().trace.handles.make(&mutator.handles, top).is_some());
        1 + WIDTH + WIDTH * WIDTH + WIDTH * WIDTH * WIDTH
    }

    fn live(heap: &Heap) -> usize {
        heap.statistics().pool.iter().map(|pool| pool.live as usize).sum()
    }

    fn heap_with(markers: u32) -> &'static heapwright_substrate::ids::Slot<Heap> {
        let runtime = Runtime { trace: Some(trace), ..Runtime::new() };
        Heap::make(Options { markers, ..Options::new() }, runtime).unwrap()
    }

    #[test]
    fn helpers_come_where_there_is_much_to_mark_and_go_when_there_is_nothing() {
        let slot = heap_with(3);
        let heap = &slot.value;
        let mutator = Mutator::attach(heap).unwrap();
        let me = &mutator.value;
        let count = || heap.trace.marking.helpers.count.load(Ordering::Relaxed);
        heap.collect(me);
        assert_eq!(count(), 0, "for nothing");
        let objects = building(me);
        // After this collection the heap knows how many bytes there are to mark.
        heap.collect(me);
        let helpers = 2.min(os::cpus() as u32 - 1);
        for _ in 0..20 {
            heap.collect(me);
            assert_eq!((count(), live(heap)), (helpers, objects));
        }
        let until = Instant::now() + Duration::from_secs(20);
        while count() > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(count(), 0, "a second later");
        heap.collect(me);
        assert_eq!((count(), live(heap)), (helpers, objects), "again");
        Mutator::detach(mutator);
        Heap::end(slot);
        assert_eq!(count(), 0, "the heap has ended");
    }

    #[test]
    fn a_heap_with_one_marker_and_a_step_with_a_deadline_call_nobody() {
        for (markers, deadline) in [(1, 0), (4, u64::MAX)] {
            let slot = heap_with(markers);
            let heap = &slot.value;
            let mutator = Mutator::attach(heap).unwrap();
            let objects = building(&mutator.value);
            heap.advance(&mutator.value, Budget { deadline, ..Budget::NONE }, true);
            assert_eq!(live(heap), objects);
            assert_eq!(heap.trace.marking.helpers.count.load(Ordering::Relaxed), 0);
            Mutator::detach(mutator);
            Heap::end(slot);
        }
    }
}
