//! Weak references, guardians and finalizers: how many of them a step and a minor collection visit.

extern crate std;

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::Ordering;
use std::vec::Vec;

use super::super::raw::{Heap, Mutator, Options, Runtime, Tracer};
use super::super::{LEAF, TRACED};
use super::{alloc, collect, leave, root};

const LINKS: usize = if cfg!(miri) { 40 } else { 4000 };

unsafe extern "C" fn nothing(_: *mut c_void, _: *mut c_void) {}

/// Traces an ephemeron: a key, a value, and the next ephemeron.
unsafe extern "C" fn trace(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
    let slots = object.cast::<*mut u8>();
    // SAFETY: traced objects have three words here.
    unsafe { tracer.mark_ephemeron(slots, slots.wrapping_add(1)) };
    // SAFETY: the third word of such an object.
    unsafe { tracer.mark_slot(slots.wrapping_add(2)) };
}

fn heap(options: Options) -> (Heap, Mutator) {
    let runtime = Runtime { trace: Some(trace), ..Runtime::new() };
    let heap = Heap::new(Options { markers: 1, step_ns: 1, ..options }, runtime).unwrap();
    let mutator = heap.attach().unwrap();
    (heap, mutator)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chain {
    Contexts,
    Guardians,
    Ephemerons,
    Finalized,
}

/// Makes a chain whose first object a handle keeps. Returns the handle.
fn chain(mutator: &Mutator, what: Chain) -> *mut *mut u8 {
    let first = alloc(mutator, 24, TRACED);
    let (start, rest) = (root(mutator, first), root(mutator, ptr::null_mut()));
    // SAFETY: collections are deferred, and all objects are of this heap.
    unsafe {
        let mut last = first;
        let mut guardian = mutator.new_guardian(first).unwrap();
        for _ in 0..LINKS {
            let next = alloc(mutator, 24, TRACED);
            match what {
                Chain::Contexts => assert!(mutator.finalize_with(last, nothing, next, 0)),
                Chain::Guardians => {
                    assert!(mutator.guard(guardian, next, next));
                    guardian = mutator.new_guardian(next).unwrap();
                }
                Chain::Ephemerons => {
                    let pair = alloc(mutator, 24, TRACED);
                    pair.cast::<[*mut u8; 3]>().write([last, next, *rest]);
                    *rest = pair;
                }
                Chain::Finalized => assert!(mutator.finalize(next, nothing, ptr::null_mut())),
            }
            last = next;
        }
    }
    start
}

/// Runs one collection in steps. Returns the number of steps.
fn steps_of_a_collection(heap: &Heap, mutator: &Mutator) -> usize {
    let cycles = heap.inner().space.cycle.number();
    mutator.ask();
    let mut steps = 0;
    while heap.inner().space.cycle.number() == cycles {
        // SAFETY: handles lead to all objects in use.
        unsafe { mutator.step(1) };
        steps += 1;
        assert!(steps < 20_000, "marking does not end");
    }
    steps
}

#[test]
fn a_chain_takes_time_in_its_length_and_in_steps() {
    for what in [Chain::Contexts, Chain::Guardians, Chain::Ephemerons, Chain::Finalized] {
        for generations in [false, true] {
            let (heap, mutator) =
                heap(Options { incremental: true, generations, ..Options::new() });
            mutator.defer();
            chain(&mutator, what);
            mutator.resume();
            let inner = heap.inner();
            let visited = || {
                let guarded = inner.trace.guardians.with(|guardians| guardians.visited());
                guarded + inner.trace.finalizers.lock().visited()
            };
            let before = visited();
            let steps = steps_of_a_collection(&heap, &mutator);
            let case = (what, generations, steps, visited() - before);
            assert!(case.3 <= 20 * LINKS, "visits: {case:?}");
            assert!(cfg!(miri) || steps > LINKS / 1000, "steps: {case:?}");
            let (retrievable, _) = heap.guarded();
            let due = mutator.finalizers_due();
            match what {
                // Each guardian in the chain has retrieved the next one.
                Chain::Guardians => assert_eq!((retrievable, due), (LINKS, 0), "{case:?}"),
                Chain::Finalized => assert_eq!((retrievable, due), (0, LINKS), "{case:?}"),
                _ => {
                    assert_eq!((retrievable, due), (0, 0), "{case:?}");
                    let objects: u64 = heap.statistics().pool.iter().map(|pool| pool.live).sum();
                    assert!(objects as usize > LINKS, "the first one leads to all: {case:?}");
                }
            }
            leave(mutator);
        }
    }
}

#[test]
fn a_minor_collection_looks_at_what_is_young_alone() {
    let (heap, mutator) = heap(Options { generations: true, ..Options::new() });
    let inner = heap.inner();
    let guardian = root(&mutator, alloc(&mutator, 24, TRACED));
    // SAFETY: handles lead to all objects in use.
    unsafe {
        let number = mutator.new_guardian(*guardian).unwrap();
        let mut kept = Vec::new();
        let make = |kept: &mut Vec<*mut *mut u8>| {
            let object = root(&mutator, alloc(&mutator, 16, LEAF));
            kept.push(mutator.new_weak(*object).unwrap());
            assert!(mutator.guard(number, *object, *object));
            assert!(mutator.finalize(*object, nothing, ptr::null_mut()));
            object
        };
        let objects: Vec<_> = (0..LINKS).map(|_| make(&mut kept)).collect();
        // (Otherwise a major collection may be due.)
        mutator.defer_majors();
        collect(&mutator);
        assert!(mutator.collect_young() && mutator.collect_young());
        let visited = || {
            let guarded = inner.trace.guardians.with(|guardians| guardians.visited());
            let looked = inner.trace.weak.cells.looked.load(Ordering::Relaxed);
            guarded + inner.trace.finalizers.lock().visited() + looked
        };
        let before = visited();
        let young: Vec<_> = (0..3).map(|_| make(&mut kept)).collect();
        assert!(mutator.collect_young());
        let seen = visited() - before;
        assert!(seen < 200, "{seen} of {LINKS}");
        // An old and a young object become unreachable. A minor collection finds the young one.
        objects[1].write(ptr::null_mut());
        young[1].write(ptr::null_mut());
        assert!(mutator.collect_young());
        assert_eq!((mutator.finalizers_due(), heap.guarded().0), (0, 1));
        // (Weak handles still lead to both, because neither object counts as dead.)
        assert!(!kept[LINKS + 1].read().is_null() && !kept[1].read().is_null());
        mutator.resume_majors();
        collect(&mutator);
        mutator.defer_majors();
        assert_eq!(heap.guarded().0, 2);
        // A minor collection looks at a cell in which `set_weak` has replaced an old object.
        let fresh = alloc(&mutator, 16, LEAF);
        mutator.set_weak(kept[5], fresh);
        assert!(mutator.collect_young());
        assert!(kept[5].read().is_null() && kept[6].read() == *objects[6]);
    }
    leave(mutator);
}

#[test]
fn a_cell_that_held_nothing_may_be_stored_into_at_any_time() {
    for incremental in [false, true] {
        let (_heap, mutator) = heap(Options { generations: true, incremental, ..Options::new() });
        // SAFETY: handles lead to all objects in use.
        unsafe {
            let cells: Vec<_> =
                (0..2000).map(|_| mutator.new_weak(ptr::null_mut()).unwrap()).collect();
            for round in 0..6 {
                collect(&mutator);
                mutator.collect_young();
                let kept = root(&mutator, alloc(&mutator, 16, LEAF));
                let (dead, lives) = (cells[3 * round], cells[3 * round + 1]);
                dead.write(alloc(&mutator, 16, LEAF));
                lives.write(*kept);
                if round % 2 == 0 {
                    mutator.collect_young();
                } else {
                    collect(&mutator);
                }
                assert!((*dead).is_null() && *lives == *kept, "{round}");
            }
        }
        leave(mutator);
    }
}

#[test]
fn all_finalizers_of_an_object_are_cancelled_without_a_look_at_the_others() {
    let (heap, mutator) = heap(Options::new());
    let objects: Vec<_> = (0..LINKS).map(|_| root(&mutator, alloc(&mutator, 16, LEAF))).collect();
    // SAFETY: handles lead to all objects.
    unsafe {
        for &object in objects.iter().chain(&objects) {
            assert!(mutator.finalize(*object, nothing, ptr::null_mut()));
        }
        let before = heap.inner().trace.finalizers.lock().visited();
        for &object in &objects[1..] {
            assert_eq!(mutator.cancel_finalizers(*object), 2);
            assert_eq!(mutator.cancel_finalizers(*object), 0);
        }
        assert_eq!(heap.inner().trace.finalizers.lock().visited(), before);
        objects.iter().for_each(|&object| *object = ptr::null_mut());
        collect(&mutator);
        assert_eq!(mutator.finalizers_due(), 2);
    }
    leave(mutator);
}

/// Traces a key and a value, which lives as long as the key. The key's slot is weak, too.
unsafe extern "C" fn trace_weak_key(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
    let slots = object.cast::<*mut u8>();
    // SAFETY: the object has two slots.
    unsafe { tracer.mark_ephemeron(slots, slots.wrapping_add(1)) };
    // SAFETY: the object has two slots.
    unsafe { tracer.mark_weak(slots) };
}

#[test]
fn a_value_whose_key_is_in_a_weak_slot_dies_with_the_key() {
    let runtime = Runtime { trace: Some(trace_weak_key), ..Runtime::new() };
    let heap = Heap::new(Options::new(), runtime).unwrap();
    let mutator = heap.attach().unwrap();
    let pair = root(&mutator, alloc(&mutator, 16, TRACED));
    for lives in [true, false] {
        let key = root(&mutator, alloc(&mutator, 16, LEAF));
        // SAFETY: handles lead to all objects in use.
        unsafe {
            let value = alloc(&mutator, 16, LEAF);
            let weak = mutator.new_weak(value).unwrap();
            (*pair).cast::<[*mut u8; 2]>().write([*key, value]);
            if !lives {
                *key = ptr::null_mut();
            }
            collect(&mutator);
            let expected = if lives { [*key, value] } else { [ptr::null_mut(); 2] };
            assert_eq!((*pair).cast::<[*mut u8; 2]>().read(), expected);
            assert_eq!((*weak).is_null(), !lives);
            mutator.free_weak(weak);
        }
    }
    leave(mutator);
}

// (Under Miri the tests from here on take minutes.)
/// Traces an object of any number of ephemerons: a count, and then a key and a value each.
#[cfg(not(miri))]
unsafe extern "C" fn trace_table(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
    let words = object.cast::<*mut u8>();
    // SAFETY: traced objects begin with a count here, or with zeroes.
    let count = unsafe { *words.cast::<usize>() };
    for n in 0..count {
        let key = words.wrapping_add(1 + 2 * n);
        // SAFETY: the object has `count` pairs.
        unsafe { tracer.mark_ephemeron(key, key.wrapping_add(1)) };
    }
}

/// Each step traces an object without barriers again, so each step reports its ephemerons again.
#[cfg(not(miri))]
#[test]
fn a_table_that_each_step_traces_again_does_not_use_up_each_step() {
    let pairs = 3000;
    for same_key in [false, true] {
        let options = Options { incremental: true, markers: 1, step_ns: 1, ..Options::new() };
        let runtime = Runtime { trace: Some(trace_table), ..Runtime::new() };
        let heap = Heap::new(options, runtime).unwrap();
        let mutator = heap.attach().unwrap();
        mutator.defer();
        let table = root(&mutator, alloc(&mutator, 8 + 16 * pairs, TRACED));
        // SAFETY: the object has room for the pairs, and nothing is collected meanwhile.
        unsafe {
            assert!(mutator.unprotect(*table));
            let words = (*table).cast::<*mut u8>();
            let one = alloc(&mutator, 16, LEAF);
            for n in 1..=2 * pairs {
                let is_key = n % 2 == 1;
                let object = if is_key && same_key { one } else { alloc(&mutator, 16, LEAF) };
                words.wrapping_add(n).write(object);
            }
            words.cast::<usize>().write(pairs);
            mutator.resume();
            let steps = steps_of_a_collection(&heap, &mutator);
            assert!(steps < 400, "{steps}");
            for n in 1..=2 * pairs {
                assert!(words.wrapping_add(n).read().is_null(), "its key is dead: {n}");
            }
        }
        leave(mutator);
    }
}

#[cfg(not(miri))]
#[test]
fn a_guardian_that_each_step_traces_again_does_not_use_up_each_step() {
    let (heap, mutator) = heap(Options { incremental: true, ..Options::new() });
    mutator.defer();
    let guardian = root(&mutator, alloc(&mutator, 24, TRACED));
    // SAFETY: handles lead to all objects in use.
    unsafe {
        assert!(mutator.unprotect(*guardian));
        let number = mutator.new_guardian(*guardian).unwrap();
        for _ in 0..LINKS {
            let object = alloc(&mutator, 16, LEAF);
            assert!(mutator.guard(number, object, object));
        }
    }
    mutator.resume();
    steps_of_a_collection(&heap, &mutator);
    assert_eq!(heap.guarded().0, LINKS);
    leave(mutator);
}

#[cfg(not(miri))]
#[test]
fn many_roots_and_keys_without_memory_for_chunks_come_to_an_end() {
    let (heap, mutator) = heap(Options { incremental: true, ..Options::new() });
    mutator.defer();
    let (first, pair) = (alloc(&mutator, 16, LEAF), alloc(&mutator, 24, TRACED));
    // SAFETY: the object has three words.
    unsafe { pair.cast::<[*mut u8; 3]>().write([alloc(&mutator, 16, LEAF), first, first]) };
    let kept = root(&mutator, pair);
    // More roots than fit a chunk.
    (0..2 * LINKS).for_each(|_| _ = root(&mutator, first));
    mutator.resume();
    // The chunk with the waiting ephemeron is taken while there is memory.
    mutator.ask();
    while heap.inner().trace.weak.waiting.lock().count() == 0 {
        // SAFETY: handles lead to all objects in use.
        unsafe { mutator.step(1) };
    }
    heap.inner().trace.marking.chunks.starved.set(1);
    steps_of_a_collection(&heap, &mutator);
    heap.inner().trace.marking.chunks.starved.set(0);
    // SAFETY: a root.
    assert!(unsafe { (*kept).cast::<*mut u8>().read() }.is_null(), "its key is dead");
    leave(mutator);
}
