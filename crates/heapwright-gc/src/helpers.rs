//! Helpers: threads that do nothing but mark, where a processor has nothing better to do.
//!
//! ```text
//!   collector   drain: is there much to mark, and a processor idle?  --call--> calls + 1, wake
//!                                                                                 |
//!   helper      asleep at `calls` --> come, mark with the gang, go, asleep again  <
//!                    |
//!                    +-- nobody called for a second, or the heap ends: the thread is over
//! ```
//!
//! Mutators that stand still mark with their collector; but a program with one mutator has
//! none. So a heap that has a whole marking before it, of some size, calls helpers: as many as
//! there are processors beyond those that mark already, up to the limit its options name.
//! They are made when they are first called and are gone when they have slept for a second: a program
//! that collects nothing has no thread of heapwright's, nor has the child of a fork. Steps with a
//! deadline are over before a thread is awake, and do without.
//!
//! A helper is no mutator: it has a tracer, and is in the gang while that is open, which is only
//! while the world stands still. All signals are blocked in it, but those of faults: what a runtime
//! does about them it does on a helper as well.
//!
//! Called by `cycle`.

use core::ffi::c_void;
use core::ptr;

use heapwright_substrate::os;
use heapwright_substrate::sync::atomic::{AtomicU32, Ordering};

use super::heap::Heap;
use super::tracer::{Budget, Marks, Tracer};
use super::waiting::{Patience, Then, wait, wake};

/// Threads that mark at most, where the options do not say: more of them wait for memory.
const MARKERS: usize = 4;
/// Bytes that must be expected to be marked, a few milliseconds' work: for less, a thread that marks alone
/// is soon through, and a thread that comes takes a processor from somebody (two processes of
/// 4 MiB each on two processors: 1.15 of the time).
const WORTH: usize = 8 << 20;
/// How long a helper waits for a call.
const A_SECOND: Patience = Patience { looks: 0, then: Then::SleepFor(1_000_000_000) };
/// How long the heap waits for a helper to end.
const UNTIL_ONE_ENDS: Patience = Patience { looks: 100, then: Then::SleepFor(1_000_000) };

/// The helpers of one heap. Zero has none.
pub(super) struct Helpers {
    /// Threads there are.
    count: AtomicU32,
    /// Moves when they are called, or are to end: where they sleep.
    calls: AtomicU32,
    /// Whether they are to end.
    ending: AtomicU32,
    /// The process they are of: a child made behind the back of `fork` has none of them.
    process: AtomicU32,
}

impl Helpers {
    /// Calls helpers, and makes those of `wanted` that there are not.
    fn call(&self, heap: &'static Heap, wanted: usize) {
        self.process.store(os::process_id(), Ordering::Relaxed);
        while (self.count.load(Ordering::Relaxed) as usize) < wanted {
            self.count.fetch_add(1, Ordering::Relaxed);
            if !os::spawn(run, ptr::from_ref(heap).cast_mut().cast()) {
                self.leave();
                break;
            }
        }
        self.calls.fetch_add(1, Ordering::Release);
        wake(&self.calls);
    }

    fn leave(&self) {
        self.count.fetch_sub(1, Ordering::Release);
        wake(&self.count);
    }

    /// Ends all, and waits until they have gone.
    pub(super) fn end(&self) {
        self.ending.store(1, Ordering::Relaxed);
        self.calls.fetch_add(1, Ordering::Release);
        wake(&self.calls);
        loop {
            // Acquire: they touch nothing of the heap any more.
            let count = self.count.load(Ordering::Acquire);
            if count == 0 || self.process.load(Ordering::Relaxed) != os::process_id() {
                break;
            }
            wait(&self.count, count, UNTIL_ONE_ENDS);
        }
        self.ending.store(0, Ordering::Relaxed);
        self.forget();
    }

    /// In a forked child, which has no other threads.
    pub(super) fn forget(&self) {
        self.count.store(0, Ordering::Relaxed);
    }
}

/// A helper's life.
extern "C" fn run(heap: *mut c_void) -> *mut c_void {
    // SAFETY: `call` passed a heap, and heaps are never freed.
    let heap = unsafe { &*heap.cast::<Heap>() };
    os::name_thread(c"heapwright gc");
    let tracer = Tracer::new(heap);
    let helpers = &heap.marking.helpers;
    loop {
        // Acquire: `end` sets `ending` before it moves this.
        let seen = helpers.calls.load(Ordering::Acquire);
        if helpers.ending.load(Ordering::Relaxed) != 0 {
            break;
        }
        heap.help(&tracer, |tracer| {
            tracer.give_notes();
            heap.marking.keep_counts(tracer);
        });
        wait(&helpers.calls, seen, A_SECOND);
        if helpers.calls.load(Ordering::Relaxed) == seen {
            break;
        }
    }
    helpers.leave();
    ptr::null_mut()
}

impl Heap {
    /// How many helpers it is worth to mark `left` bytes, if so many others help already.
    pub(super) fn helpers_wanted(&self, others: usize, left: usize) -> usize {
        if left >= WORTH { self.markers().saturating_sub(1 + others) } else { 0 }
    }

    /// Threads that mark at most: never more than the processors that the caller may use.
    fn markers(&self) -> usize {
        match self.space.options().markers as usize {
            0 => os::cpus().min(MARKERS),
            1 => 1,
            markers => os::cpus().min(markers),
        }
    }

    /// Calls them, when the gang is open.
    pub(super) fn call_helpers(&self, wanted: usize) {
        if wanted > 0 {
            self.marking.helpers.call(self.whole(), wanted);
        }
    }

    /// Marks with the gang as long as it is open. `done` is called before it goes, each time.
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
            // Without local marks again: nobody merges what would be marked there later.
            tracer.mark_as(Marks::Locked);
            tracer.publish();
            done(tracer);
            self.marking.gang.go();
        }
    }
}

// (No threads are started elsewhere.)
#[cfg(all(
    test,
    target_os = "linux",
    not(miri),
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod tests {
    use super::super::mutator::Mutator;
    use super::super::raw::{Options, Runtime};
    use super::super::{LEAF, TRACED};
    use super::*;
    use core::ffi::c_void;
    extern crate std;
    use std::time::{Duration, Instant};

    const WIDTH: usize = 32;

    /// Every traced object is so many references.
    unsafe extern "C" fn trace(tracer: &Tracer, object: *mut c_void, _data: *mut c_void) {
        let object: *mut *mut u8 = object.cast();
        for n in 0..WIDTH {
            // SAFETY: traced objects have so many.
            tracer.mark(unsafe { object.wrapping_add(n).read() });
        }
    }

    /// Objects of three storeys, some 10 MiB: a root's, and how many there are.
    fn building(mutator: &Mutator) -> usize {
        let floor = |storey: &dyn Fn() -> *mut u8| {
            let at: *mut *mut u8 = mutator.alloc(8 * WIDTH, TRACED as usize).cast();
            for n in 0..WIDTH {
                // SAFETY: it has so many, and nothing is collected meanwhile.
                unsafe { at.wrapping_add(n).write(storey()) };
            }
            at.cast::<u8>()
        };
        mutator.deferred.add(1);
        let top = floor(&|| floor(&|| floor(&|| mutator.alloc(300, LEAF as usize))));
        mutator.deferred.sub(1);
        assert!(mutator.heap().handles.make(&mutator.handles, top).is_some());
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
        let count = || heap.marking.helpers.count.load(Ordering::Relaxed);
        heap.collect(me);
        assert_eq!(count(), 0, "for nothing");
        let objects = building(me);
        // How much there is the heap knows when it has marked it once.
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
            assert_eq!(heap.marking.helpers.count.load(Ordering::Relaxed), 0);
            Mutator::detach(mutator);
            Heap::end(slot);
        }
    }
}
