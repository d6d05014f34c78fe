//! Forks while several threads use a collected heap.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use core::ffi::c_void;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Once, mpsc};
use std::thread;

use common::in_a_child;
use heapwright::gc::TRACED;
use heapwright::gc::raw::{Heap, Mutator, Options, Runtime, Tracer};

fn collects(heap: &Heap, mutator: &Mutator) {
    let before = heap.statistics().cycles;
    // SAFETY: no object is in use.
    unsafe { mutator.collect() };
    assert!(heap.statistics().cycles > before, "nothing is collected any more");
    for _ in 0..1000 {
        // SAFETY: no object is in use.
        assert!(!unsafe { mutator.alloc(100, TRACED) }.is_null());
    }
}

#[test]
fn a_fork_in_the_midst_of_collections_tears_nothing() {
    let heap = Heap::new(Options::new(), Runtime::new()).unwrap();
    let mutator = heap.attach().unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mutator = heap.attach().unwrap();
                while !over.load(Ordering::Relaxed) {
                    // SAFETY: no object is in use.
                    unsafe { mutator.collect() };
                }
                // SAFETY: no object is in use.
                unsafe { mutator.detach() };
            });
        }
        for _ in 0..30 {
            in_a_child(|| {
                collects(&heap, &mutator);
                // The child collects, too.
                in_a_child(|| collects(&heap, &mutator));
            });
            collects(&heap, &mutator);
        }
        over.store(true, Ordering::Relaxed);
        // SAFETY: no object is in use.
        unsafe { mutator.detach() };
    });
}

unsafe extern "C" fn trace_a_list(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
    // SAFETY: every traced object begins with a reference.
    tracer.mark(unsafe { object.cast::<*mut u8>().read() });
}

#[test]
fn a_child_has_helpers_of_its_own() {
    let options = Options { markers: 2, ..Options::new() };
    let runtime = Runtime { trace: Some(trace_a_list), ..Runtime::new() };
    let heap = Heap::new(options, runtime).unwrap();
    let mutator = heap.attach().unwrap();
    // SAFETY: this root leads to all objects in use.
    let root = unsafe { mutator.new_root(core::ptr::null_mut()) }.unwrap();
    for _ in 0..40_000 {
        // SAFETY: this root leads to all objects in use.
        let at = unsafe { mutator.alloc(400, TRACED) };
        // SAFETY: the owner of a root may write it at any time.
        let next = unsafe { root.replace(at) };
        // SAFETY: the object is new, and large enough.
        unsafe { at.cast::<*mut u8>().write(next) };
    }
    collects(&heap, &mutator);
    for _ in 0..10 {
        in_a_child(|| {
            collects(&heap, &mutator);
            in_a_child(|| collects(&heap, &mutator));
            collects(&heap, &mutator);
        });
        collects(&heap, &mutator);
    }
    let live: u64 = heap.statistics().pool.iter().map(|pool| pool.live).sum();
    assert_eq!(live, 40_000);
    // SAFETY: no object is in use any more.
    unsafe { mutator.detach() };
}

#[test]
fn a_child_finds_what_other_threads_have_made() {
    let heap = Heap::new(Options::new(), Runtime::new()).unwrap();
    let ((to, from), (end, until)) = (mpsc::channel(), mpsc::channel::<()>());
    thread::scope(|scope| {
        let heap = &heap;
        scope.spawn(move || {
            let mutator = heap.attach().unwrap();
            // SAFETY: nothing is collected.
            let object = unsafe { mutator.alloc(100, TRACED) };
            to.send(object.addr()).unwrap();
            // SAFETY: nothing is collected, so the object stays although no root leads to it.
            let _ended = unsafe { mutator.away(|| until.recv()) };
            // SAFETY: no object of this mutator is used any more.
            unsafe { mutator.detach() };
        });
        let object = from.recv().unwrap();
        in_a_child(|| {
            let found = heap.find(std::ptr::without_provenance(object));
            assert_eq!(found.map(<*mut u8>::addr), Some(object));
        });
        end.send(()).unwrap();
    });
}

/// Calls `in_child` in a child, while another thread is attached, and `with` has run in it.
fn beside_another_thread(heap: &Heap, with: fn(&Mutator), in_child: impl FnOnce()) {
    let ((to, from), (end, until)) = (mpsc::channel(), mpsc::channel::<()>());
    // (The closure owns `end`: if it panics, the thread ends, too.)
    thread::scope(move |scope| {
        scope.spawn(move || {
            let mutator = heap.attach().unwrap();
            with(&mutator);
            to.send(()).unwrap();
            // SAFETY: no object is in use.
            let _ended = unsafe { mutator.away(|| until.recv()) };
            // SAFETY: no object is in use.
            unsafe { mutator.detach() };
        });
        from.recv().unwrap();
        in_a_child(in_child);
        end.send(()).unwrap();
    });
}

#[test]
fn a_child_keeps_the_mutators_that_belong_to_no_thread() {
    let heap = Heap::new(Options::new(), Runtime::new()).unwrap();
    let own = heap.attach().unwrap();
    let free = heap.attach_away().unwrap();
    beside_another_thread(
        &heap,
        |_| {},
        || {
            assert_eq!(heap.statistics().mutators, 2);
            for mutator in [&own, &free, &own, &free] {
                // SAFETY: no object is in use.
                unsafe { own.leave() };
                // SAFETY: the mutator is away, and this thread has left the other one.
                unsafe { mutator.enter() };
                collects(&heap, mutator);
                // SAFETY: no object is in use.
                unsafe { mutator.leave() };
                // SAFETY: this thread has left the heap.
                unsafe { own.enter() };
            }
        },
    );
    // SAFETY: no object is in use.
    unsafe { free.detach() };
    // SAFETY: no object is in use.
    unsafe { own.detach() };
}

#[test]
fn a_child_has_no_scopes_of_other_threads() {
    let heap = Heap::new(Options { generations: true, ..Options::new() }, Runtime::new()).unwrap();
    let mutator = heap.attach().unwrap();
    // SAFETY: no object is in use. (The first collection is always a major one.)
    (0..2).for_each(|_| unsafe { mutator.collect() });
    beside_another_thread(&heap, Mutator::defer_majors, || {
        let majors = || heap.statistics().cycles - heap.statistics().minor_cycles;
        let before = majors();
        // SAFETY: no object is in use.
        unsafe { mutator.collect() };
        assert!(majors() > before, "majors are deferred for good");
    });
    // SAFETY: no object is in use.
    unsafe { mutator.detach() };
}

struct Seats<'a> {
    heaps: &'a [Heap],
    mutators: Vec<Mutator>,
}

impl<'a> Seats<'a> {
    fn take(heaps: &'a [Heap]) -> Self {
        Self { heaps, mutators: heaps.iter().map(|heap| heap.attach().unwrap()).collect() }
    }

    fn collects(&self) {
        self.heaps.iter().zip(&self.mutators).for_each(|(heap, mutator)| collects(heap, mutator));
    }

    fn collects_one(&self, of: usize) {
        // SAFETY: no object is in use.
        unsafe { self.mutators[of].collect() };
        // SAFETY: no object is in use.
        self.mutators.iter().for_each(|mutator| unsafe { mutator.safepoint() });
    }

    fn forks(&self) {
        // SAFETY: the child uses the heaps, as this test requires, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            self.collects();
            // SAFETY: no preconditions.
            unsafe { libc::_exit(0) };
        }
        self.leave();
        let mut status = 0;
        // SAFETY: the place is valid.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        self.enter();
    }

    fn leave(&self) {
        // SAFETY: no object is in use.
        self.mutators.iter().for_each(|mutator| unsafe { mutator.leave() });
    }

    fn enter(&self) {
        // SAFETY: the thread has left each mutator.
        self.mutators.iter().for_each(|mutator| unsafe { mutator.enter() });
    }

    fn give(self) {
        // SAFETY: no object is in use.
        self.mutators.into_iter().for_each(|mutator| unsafe { mutator.detach() });
    }
}

/// Two threads fork, while two other threads collect. All this runs in a child process, which a
/// signal ends if it hangs.
fn fork_and_collect(heaps: usize, options: Options, forks: usize) {
    in_a_child(|| {
        let make = |_| Heap::new(options, Runtime::new()).unwrap();
        let heaps: Vec<_> = (0..heaps).map(make).collect();
        let under_way = AtomicUsize::new(2);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let seats = Seats::take(&heaps);
                    (0..forks).for_each(|_| seats.forks());
                    seats.give();
                    under_way.fetch_sub(1, Ordering::Relaxed);
                });
            }
            for of in 0..2 {
                let (heaps, under_way) = (&heaps, &under_way);
                scope.spawn(move || {
                    let seats = Seats::take(heaps);
                    while under_way.load(Ordering::Relaxed) > 0 {
                        seats.collects_one(of % heaps.len());
                        // Other threads attach and detach, and make heaps.
                        let heap = make(0);
                        let mutator = heap.attach().unwrap();
                        // SAFETY: no object is in use.
                        unsafe { mutator.detach() };
                    }
                    seats.give();
                });
            }
        });
    });
}

#[test]
fn threads_that_fork_and_threads_that_collect_wait_in_no_circle() {
    fork_and_collect(1, Options::new(), 100);
    fork_and_collect(1, Options { incremental: true, generations: true, ..Options::new() }, 30);
}

#[test]
fn nor_where_each_thread_has_a_mutator_in_several_heaps() {
    fork_and_collect(3, Options::new(), 30);
}

#[test]
fn collectors_of_two_heaps_do_not_wait_for_each_other() {
    in_a_child(|| {
        let heaps = [(); 2].map(|()| Heap::new(Options::new(), Runtime::new()).unwrap());
        thread::scope(|scope| {
            for of in 0..2 {
                let heaps = &heaps;
                scope.spawn(move || {
                    let seats = Seats::take(heaps);
                    for _ in 0..2000 {
                        seats.collects_one(of);
                    }
                    seats.give();
                });
            }
        });
    });
}

std::thread_local! {
    /// The mutator that this thread's fork handlers use.
    static USED: Cell<Option<*const Mutator>> = const { Cell::new(None) };
}

/// A fork handler of the program. It may use the heap, although the forking thread has stopped the
/// heap's mutators.
unsafe extern "C" fn uses_the_heap() {
    if let Some(mutator) = USED.get() {
        // SAFETY: the mutator is the test's, and exists while the test forks.
        let mutator = unsafe { &*mutator };
        for size in [16, 100, 4000, 100_000] {
            // SAFETY: no object is in use.
            assert!(!unsafe { mutator.alloc(size, TRACED) }.is_null());
        }
        // SAFETY: no object is in use.
        unsafe { mutator.collect() };
        // SAFETY: the function calls nothing.
        assert!(unsafe { mutator.walk(|_, _, _| true) });
        // SAFETY: the function returns at once.
        unsafe { mutator.away(|| {}) };
    }
}

#[test]
fn fork_handlers_of_the_program_may_use_the_heap() {
    in_a_child(|| {
        static REGISTERED: Once = Once::new();
        // SAFETY: in other tests, the function does nothing.
        REGISTERED.call_once(|| unsafe {
            libc::pthread_atfork(Some(uses_the_heap), Some(uses_the_heap), Some(uses_the_heap));
        });
        let heap = Heap::new(Options::new(), Runtime::new()).unwrap();
        // These handlers are registered after the heap's, so they run after the heap's.
        // SAFETY: in other tests, the function does nothing.
        unsafe { libc::pthread_atfork(None, Some(uses_the_heap), Some(uses_the_heap)) };
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mutator = heap.attach().unwrap();
                while !over.load(Ordering::Relaxed) {
                    // SAFETY: no object is in use.
                    unsafe { mutator.collect() };
                }
                // SAFETY: no object is in use.
                unsafe { mutator.detach() };
            });
            let mutator = heap.attach().unwrap();
            USED.set(Some(&raw const mutator));
            for _ in 0..20 {
                in_a_child(|| collects(&heap, &mutator));
            }
            USED.set(None);
            over.store(true, Ordering::Relaxed);
            // SAFETY: no object is in use.
            unsafe { mutator.detach() };
        });
    });
}
