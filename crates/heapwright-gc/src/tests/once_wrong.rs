//! Regression tests, each in the smallest setting that shows the error.

extern crate std;

use core::ffi::c_void;
use std::vec::Vec;

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use super::super::raw::{Heap, Mutator, Options, Runtime, Tracer, VERIFY_BARRIERS, VERIFY_HEAP};
use super::super::{LEAF, TRACED, heap};
use super::{Head, alloc, attached, collect, leave, leave_root, node, references, root, trace};

const LENGTH: usize = if cfg!(miri) { 12 } else { 3000 };

/// Runs a whole collection in the shortest possible steps.
fn collect_in_steps(heap: &Heap, mutator: &Mutator) {
    mutator.defer();
    while !mutator.is_owed() {
        assert!(!alloc(mutator, 1000, LEAF).is_null());
    }
    let before = heap.statistics().cycles;
    // SAFETY: handles lead to all objects in use.
    while heap.statistics().cycles == before || !unsafe { mutator.step(1) } {
        // SAFETY: handles lead to all objects in use.
        unsafe { mutator.step(1) };
    }
    mutator.resume();
}

/// Makes an object with `count` references to leaves, and a root that keeps the object.
fn parent(mutator: &Mutator, count: usize) -> (*mut u8, *mut *mut u8, Vec<*mut u8>) {
    let at = alloc(mutator, size_of::<Head>() + 8 * count, TRACED);
    let root = root(mutator, at);
    let leaves = (0..count)
        .map(|n| {
            let leaf = alloc(mutator, 16, LEAF);
            // SAFETY: the parent has room for it.
            unsafe { references(at).wrapping_add(n).write(leaf) };
            leaf
        })
        .collect();
    // SAFETY: the parent is complete now.
    unsafe { at.cast::<Head>().write(Head { serial: 0, count }) };
    (at, root, leaves)
}

/// Reports `data` references, then a range, and then some more references.
unsafe extern "C" fn trace_with_a_range(tracer: &Tracer, object: *mut c_void, data: *mut c_void) {
    let object = object.cast::<u8>();
    // SAFETY: made by `parent`.
    let count = unsafe { (*object.cast::<Head>()).count };
    (0..data.addr()).for_each(|_| tracer.mark(object));
    // SAFETY: the head says how many follow.
    unsafe { tracer.mark_range(references(object), count) };
    (0..400).for_each(|_| tracer.mark(object));
}

#[test]
fn a_range_and_its_count_stay_together_where_a_chunk_ends() {
    for before in if cfg!(miri) { 1016..1021 } else { 1010..1030 } {
        let runtime = Runtime {
            trace: Some(trace_with_a_range),
            data: core::ptr::without_provenance_mut(before),
            ..Runtime::new()
        };
        let options = Options { incremental: true, least: 256 << 10, ..Options::new() };
        let (heap, mutator) = attached(options, runtime);
        mutator.defer();
        let (_, root, leaves) = parent(&mutator, 100);
        mutator.resume();
        collect_in_steps(&heap, &mutator);
        for leaf in leaves {
            assert_eq!(heap.find(leaf), Some(leaf), "{before}");
        }
        leave_root(mutator, root);
    }
}

/// Puts an object in front of the list. The object leads to leaves, and to the old first object.
fn link(mutator: &Mutator, root: *mut *mut u8, width: usize) {
    let at = alloc(mutator, size_of::<Head>() + 8 * width, TRACED);
    // SAFETY: an owner may read and write its root.
    let next = unsafe { root.replace(at) };
    // SAFETY: fresh, and large enough.
    unsafe { at.cast::<Head>().write(Head { serial: 0, count: width }) };
    // SAFETY: within the references of the object.
    unsafe { mutator.write(at, references(at).wrapping_add(width - 1), next) };
    for n in 0..width - 1 {
        let leaf = alloc(mutator, 16, LEAF);
        // SAFETY: the root leads to the object; within its references.
        unsafe { mutator.write(at, references(at).wrapping_add(n), leaf) };
    }
}

fn list(mutator: &Mutator, length: usize, width: usize) -> *mut *mut u8 {
    let root = root(mutator, core::ptr::null_mut());
    (0..length).for_each(|_| link(mutator, root, width));
    root
}

/// Checks that all of a list is there. The heap finds objects that it has swept and kept.
fn is_whole(heap: &Heap, mut at: *mut u8, length: usize) {
    for _ in 0..length {
        assert_eq!(heap.find(at), Some(at));
        // SAFETY: the object is live.
        let count = unsafe { (*at.cast::<Head>()).count };
        let mut next = at;
        for n in 0..count {
            // SAFETY: the object is live; within its references.
            next = unsafe { references(at).wrapping_add(n).read() };
            assert!(next.is_null() || heap.find(next) == Some(next));
        }
        at = next;
    }
    assert!(at.is_null());
}

/// Reports all references as a range, however few they are.
unsafe extern "C" fn trace_ranges(tracer: &Tracer, object: *mut c_void, _data: *mut c_void) {
    // SAFETY: made by `list`, or zero.
    let count = unsafe { (*object.cast::<Head>()).count };
    // SAFETY: the head says how many follow.
    unsafe { tracer.mark_range(references(object.cast()), count) };
}

#[test]
fn marking_comes_to_its_end_without_memory_for_chunks() {
    // A page has more ranges than fit a chunk.
    for (length, width) in [(LENGTH, 4), (LENGTH, 10)] {
        let trace: unsafe extern "C" fn(&Tracer, *mut c_void, *mut c_void) =
            if width == 4 { trace } else { trace_ranges };
        for incremental in [false, true] {
            let options = Options {
                incremental,
                least: 64 << 20,
                verify: VERIFY_HEAP | VERIFY_BARRIERS,
                ..Options::new()
            };
            let heap =
                Heap::new(options, Runtime { trace: Some(trace), ..Runtime::new() }).unwrap();
            let mutator = heap.attach().unwrap();
            let root = list(&mutator, length, width);
            // More roots than fit a chunk, all reported at once.
            let mut more = Vec::new();
            // SAFETY: the root is live.
            let mut at = unsafe { *root };
            while !at.is_null() {
                // SAFETY: the list is live.
                more.push(unsafe { mutator.new_root(at) }.unwrap());
                // SAFETY: the list is live; within the references of its objects.
                at = unsafe { references(at).wrapping_add(width - 1).read() };
            }
            let inner: &heap::Heap = heap::of(heap.id()).unwrap();
            inner.trace.marking.chunks.starved.set(1);
            for _ in 0..2 {
                collect(&mutator);
                // SAFETY: the root is live.
                is_whole(&heap, unsafe { *root }, length);
            }
            inner.trace.marking.chunks.starved.set(0);
            for cell in more.into_iter().chain([root]) {
                // SAFETY: made above.
                unsafe { mutator.free_root(cell) };
            }
            leave(mutator);
        }
    }
}

#[test]
fn barriers_shade_without_memory_for_chunks() {
    let options = Options {
        incremental: true,
        least: 256 << 10,
        verify: VERIFY_HEAP | VERIFY_BARRIERS,
        ..Options::new()
    };
    let (heap, mutator) = attached(options, Runtime { trace: Some(trace), ..Runtime::new() });
    mutator.defer();
    let root = list(&mutator, LENGTH, 4);
    // SAFETY: made above.
    let first = unsafe { *root };
    heap::of(heap.id()).unwrap().trace.marking.chunks.starved.set(1);
    let before = heap.statistics().cycles;
    let mut made = 0;
    while heap.statistics().cycles == before {
        let leaf = alloc(&mutator, 16, LEAF);
        // SAFETY: the first of the list is live.
        unsafe { mutator.write(first, references(first), leaf) };
        made += 1;
        if made % 50 == 0 {
            // SAFETY: the root leads to the list.
            unsafe { mutator.step(1) };
        }
    }
    heap::of(heap.id()).unwrap().trace.marking.chunks.starved.set(0);
    mutator.resume();
    collect(&mutator);
    is_whole(&heap, first, LENGTH);
    leave(mutator);
}

#[test]
fn an_object_is_found_while_its_page_is_swept() {
    let (heap, mutator) =
        attached(Options::new(), Runtime { trace: Some(trace), ..Runtime::new() });
    let (_, root, leaves) = parent(&mutator, if cfg!(miri) { 50 } else { 20_000 });
    let places: Vec<usize> = leaves.iter().map(|leaf| leaf.addr()).collect();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for &place in &places {
                    let found = heap.find(core::ptr::without_provenance(place));
                    assert_eq!(found.map(<*mut u8>::addr), Some(place));
                }
            }
        });
        for _ in 0..if cfg!(miri) { 3 } else { 300 } {
            collect(&mutator);
        }
        over.store(true, Ordering::Relaxed);
    });
    leave_root(mutator, root);
}

/// The error: the object was in a region during the search of pages, and in a page afterwards.
#[test]
fn an_object_is_found_while_its_region_is_let_go_of() {
    // The third object fills a page, which releases the region; so does a collection.
    for (size, collects) in [(20 << 10, false), (48, true)] {
        let (heap, mutator) = attached(Options::new(), Runtime::new());
        mutator.defer();
        let (newest, over) = (AtomicUsize::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let place = newest.load(Ordering::Acquire);
                    let found = heap.find(core::ptr::without_provenance(place));
                    assert_eq!(found.map_or(0, <*mut u8>::addr), place);
                }
            });
            for _ in 0..if cfg!(miri) { 20 } else { 4000 } {
                let object = alloc(&mutator, size, LEAF);
                // SAFETY: it is live.
                assert!(unsafe { mutator.new_root(object) }.is_some());
                newest.store(object.addr(), Ordering::Release);
                if collects {
                    collect(&mutator);
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        mutator.resume();
        leave(mutator);
    }
}

/// The error: each step that was too short for all roots reported all of them again.
#[test]
fn steps_too_short_for_all_roots_come_to_an_end() {
    for generations in [false, true] {
        let options = Options { incremental: true, generations, ..Options::new() };
        let (_heap, mutator) = attached(options, Runtime { trace: Some(trace), ..Runtime::new() });
        for _ in 0..if cfg!(miri) { 300 } else { 20_000 } {
            let leaf = alloc(&mutator, 16, LEAF);
            // SAFETY: it is live.
            assert!(unsafe { mutator.new_root(leaf) }.is_some());
        }
        for _ in 0..3 {
            mutator.ask();
            let mut steps = 0;
            // SAFETY: handles lead to all objects in use.
            while !unsafe { mutator.step(1) } {
                steps += 1;
                assert!(steps < 100_000, "no end");
            }
        }
        leave(mutator);
    }
}

#[test]
fn a_heap_does_not_wait_for_a_mutator_of_who_had_it_before() {
    for _ in 0..4 {
        let heap = Heap::new(Options::new(), Runtime::new()).unwrap();
        // The mutator is never detached, and has not left the heap when the heap ends.
        let _left = heap.attach().unwrap();
    }
    let heaps: Vec<_> =
        (0..8).map(|_| Heap::new(Options::new(), Runtime::new()).unwrap()).collect();
    for heap in heaps {
        let mutator = heap.attach().unwrap();
        collect(&mutator);
        leave(mutator);
    }
}

#[test]
fn a_page_that_is_let_go_of_and_claimed_again_is_not_allocated_twice() {
    let heap = Heap::new(Options::new(), Runtime::new()).unwrap();
    for _ in 0..if cfg!(miri) { 5 } else { 100 } {
        let mutator = heap.attach().unwrap();
        assert!(!alloc(&mutator, 48, LEAF).is_null());
        leave(mutator);
    }
    let statistics = heap.statistics();
    assert!(statistics.allocated_bytes <= 128 << 10, "{}", statistics.allocated_bytes);
}

#[test]
fn what_roots_two_mutators_make_and_each_others_they_free_is_counted() {
    type Root = AtomicPtr<*mut u8>;
    let heap = Heap::new(Options::new(), Runtime::new()).unwrap();
    let rounds = if cfg!(miri) { 3 } else { 300 };
    let (there, here) = (mpsc::channel::<Root>(), mpsc::channel::<Root>());
    let pass = |to: mpsc::Sender<Root>, from: mpsc::Receiver<Root>| {
        for _ in 0..rounds {
            let mutator = heap.attach().unwrap();
            for _ in 0..70 {
                let cell = root(&mutator, core::ptr::null_mut());
                to.send(Root::new(cell)).unwrap();
            }
            for _ in 0..70 {
                // SAFETY: the other thread makes as many.
                let cell = unsafe { mutator.away(|| from.recv()) }.unwrap();
                // SAFETY: made by the other thread.
                unsafe { mutator.free_root(cell.into_inner()) };
            }
            leave(mutator);
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| pass(there.0, here.1));
        pass(here.0, there.1);
    });
    assert_eq!(heap.statistics().handles, 0);
}

type Context = (*const Mutator, AtomicUsize);

/// Counts, allocates and collects, while only the library keeps the finalized object.
unsafe extern "C" fn finalizer(_object: *mut c_void, context: *mut c_void) {
    // SAFETY: the test's data, which outlives its heap.
    let (mutator, count) = unsafe { &*context.cast::<Context>() };
    // SAFETY: the test's mutator, which outlives its heap.
    let mutator = unsafe { &**mutator };
    for _ in 0..if cfg!(miri) { 70 } else { 200 } {
        assert!(!alloc(mutator, 1000, LEAF).is_null());
    }
    collect(mutator);
    count.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn a_finalizer_may_allocate_and_collect() {
    let options = Options { verify: VERIFY_HEAP, least: 64 << 10, ..Options::new() };
    let (_heap, mutator) = attached(options, Runtime { trace: Some(trace), ..Runtime::new() });
    let context: Context = (&raw const mutator, AtomicUsize::new(0));
    let count = if cfg!(miri) { 3 } else { 20 };
    for _ in 0..count {
        let (at, root, _) = parent(&mutator, 10);
        let context = &raw const context;
        // SAFETY: the object is live, and the context outlives the heap.
        assert!(unsafe { mutator.finalize(at, finalizer, context.cast_mut().cast()) });
        // SAFETY: made by `parent`.
        unsafe { mutator.free_root(root) };
    }
    collect(&mutator);
    // SAFETY: no object is in use.
    assert_eq!(unsafe { mutator.run_finalizers(usize::MAX) }, count);
    assert_eq!(context.1.load(Ordering::Relaxed), count);
    leave(mutator);
}

#[test]
fn a_new_target_leaves_the_live_bytes_as_they_are() {
    let (heap, mutator) = attached(Options::new(), Runtime::new());
    let cell = root(&mutator, core::ptr::null_mut());
    let (done, mut wrong) = (AtomicBool::new(false), 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                heap.set_target(0, 0, 0);
            }
        });
        for n in 0..if cfg!(miri) { 4 } else { 10_000 } {
            let large = n % 2 == 0;
            let object = alloc(&mutator, if large { 200_000 } else { 16 }, LEAF);
            // SAFETY: the root's cell.
            unsafe { cell.write(object) };
            collect(&mutator);
            wrong += usize::from((heap.statistics().live_bytes >= 200_000) != large);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(wrong, 0);
    leave_root(mutator, cell);
}

#[test]
fn free_slots_are_those_without_an_object() {
    const COUNT: usize = if cfg!(miri) { 40 } else { 10_000 };
    let runtime = Runtime { trace: Some(trace), ..Runtime::new() };
    let (heap, mutator) = attached(Options { least: 1 << 30, ..Options::new() }, runtime);
    let cell = root(&mutator, node(&mutator, 0, 4 * COUNT));
    leave(mutator);
    let taken = || {
        let now = heap.statistics();
        now.pool.iter().map(|pool| pool.slots - pool.free_slots).sum::<u64>() as usize
    };
    for round in 0..4 {
        let mutator = heap.attach().unwrap();
        // Half of the small objects are garbage, and so is the large object.
        for n in round * COUNT..(round + 1) * COUNT {
            // SAFETY: the root's table, which has this reference.
            unsafe { references(cell.read()).wrapping_add(n).write(alloc(&mutator, 24, LEAF)) };
            alloc(&mutator, 24, LEAF);
        }
        assert!(!alloc(&mutator, 100_000, LEAF).is_null());
        // A mutator that leaves gives its pages back.
        leave(mutator);
        assert_eq!(taken(), 1 + (round + 2) * COUNT + 1);
        let mutator = heap.attach().unwrap();
        match round % 2 {
            0 => collect(&mutator),
            // SAFETY: the root leads to all objects in use.
            _ => unsafe { mutator.compact() },
        }
        leave(mutator);
        assert_eq!(taken(), 1 + (round + 1) * COUNT);
    }
    assert!(cfg!(miri) || heap.statistics().moved_objects > 0);
    leave_root(heap.attach().unwrap(), cell);
}
