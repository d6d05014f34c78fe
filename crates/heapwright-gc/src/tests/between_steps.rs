//! Regression tests of a runtime's work between two steps of marking or moving. (Tests that search
//! for a certain step would take minutes under Miri, and do not run there.)

extern crate std;

use core::ffi::c_void;
use core::ptr;
#[cfg(not(miri))]
use core::sync::atomic::{AtomicUsize, Ordering};
#[cfg(not(miri))]
use std::vec::Vec;

#[cfg(not(miri))]
use super::super::FREED;
#[cfg(not(miri))]
use super::super::page::Evacuation;
#[cfg(not(miri))]
use super::super::phase::Phase;
#[cfg(not(miri))]
use super::super::raw::Mutator;
use super::super::raw::{Heap, Options, Runtime, Tracer};
use super::super::{LEAF, TRACED};
#[cfg(not(miri))]
use super::alloc;

#[cfg(not(miri))]
type Root = *mut *mut u8;

/// The number of small objects. One in [`KEPT`] is kept, so pages become sparse.
#[cfg(not(miri))]
const MANY: usize = 40_000;
#[cfg(not(miri))]
const KEPT: usize = 25;

#[cfg(not(miri))]
unsafe extern "C" fn trace_slots(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
    for n in 0..7 {
        // SAFETY: traced objects have 64 bytes here.
        unsafe { tracer.mark_slot(object.cast::<*mut u8>().wrapping_add(n)) };
    }
}

#[cfg(not(miri))]
unsafe extern "C" fn count(_: *mut c_void, _: usize, counter: *mut c_void) {
    // SAFETY: each test gives its heap a counter that outlives it.
    unsafe { &*counter.cast::<AtomicUsize>() }.fetch_add(1, Ordering::Relaxed);
}

/// Makes many small objects, keeps a few, and stops while the heap moves them together.
#[cfg(not(miri))]
fn half_moved(heap: &Heap, mutator: &Mutator, kind: u32) -> Vec<Root> {
    let mut roots = Vec::new();
    mutator.defer();
    for n in 0..MANY {
        let object = alloc(mutator, 64, kind);
        if n % KEPT == 0 {
            // SAFETY: just allocated.
            roots.push(unsafe { mutator.new_root(object) }.unwrap());
        }
    }
    mutator.resume();
    // SAFETY: handles lead to all objects in use.
    unsafe { mutator.ask_compact() };
    let inner = heap.inner();
    while inner.space.cycle.phase() != Phase::Moving || inner.moving.evacuated.get() == 0 {
        // SAFETY: handles lead to all objects in use.
        unsafe { mutator.step(1) };
    }
    roots
}

#[cfg(not(miri))]
fn in_steps(runtime: Runtime) -> Heap {
    let options = Options { incremental: true, compact: true, step_ns: 1, ..Options::new() };
    Heap::new(options, runtime).unwrap()
}

#[cfg(not(miri))]
#[test]
fn a_slot_that_was_touched_and_its_object_are_two_places() {
    let freed = AtomicUsize::new(0);
    let data = ptr::from_ref(&freed).cast_mut().cast();
    let runtime = Runtime { trace: Some(trace_slots), free: Some(count), data, ..Runtime::new() };
    let heap = Heap::new(Options { incremental: true, ..Options::new() }, runtime).unwrap();
    let inner = heap.inner();
    // SAFETY: handles lead to the parent and to all objects in use, and stores are reported.
    unsafe {
        let mutator = heap.attach().unwrap();
        let list = mutator.new_root(ptr::null_mut()).unwrap();
        let parent = mutator.new_root(mutator.alloc(64, TRACED)).unwrap();
        for _ in 0..MANY / 2 {
            let object = mutator.alloc(64, TRACED).cast::<*mut u8>();
            object.write(*list);
            *list = object.cast();
        }
        mutator.collect();
        mutator.ask();
        while inner.space.cycle.phase() != Phase::Marking || !inner.space.is_marked(*parent) {
            mutator.step(1);
        }
        mutator.defer();
        let child = mutator.alloc(64, LEAF | FREED);
        mutator.resume();
        let slots = (*parent).cast::<*mut u8>();
        mutator.touch_slot(*parent, slots);
        slots.write(ptr::null_mut());
        mutator.touch(*parent);
        slots.add(1).write(child);
        let cycles = inner.space.cycle.number();
        while inner.space.cycle.number() == cycles || !mutator.step(1_000_000) {
            mutator.step(1_000_000);
        }
        assert_eq!(freed.load(Ordering::Relaxed), 0, "it is led to");
        mutator.detach();
    }
}

/// While a minor collection marks, a store into a young large object remembers the place alone. If
/// the remembered place makes the object old in the next minor collection, the collection after
/// that one traces the whole object.
#[cfg(not(miri))]
#[test]
fn a_large_object_that_becomes_old_by_a_remembered_place_is_looked_at() {
    let freed = AtomicUsize::new(0);
    let data = ptr::from_ref(&freed).cast_mut().cast();
    let runtime = Runtime { trace: Some(trace_slots), free: Some(count), data, ..Runtime::new() };
    let options = Options { incremental: true, generations: true, ..Options::new() };
    let heap = Heap::new(options, runtime).unwrap();
    let inner = heap.inner();
    // SAFETY: handles lead to all objects in use, and stores are reported.
    unsafe {
        let mutator = heap.attach().unwrap();
        mutator.collect();
        mutator.defer_majors();
        mutator.defer();
        let large = mutator.new_root(mutator.alloc(100_000, TRACED)).unwrap();
        let list = mutator.new_root(ptr::null_mut()).unwrap();
        for _ in 0..500 {
            let object = mutator.alloc(64, TRACED).cast::<*mut u8>();
            object.write(*list);
            *list = object.cast();
        }
        let cycles = inner.space.cycle.number();
        mutator.resume();
        mutator.ask();
        while inner.space.cycle.phase() != Phase::Marking || !inner.space.is_marked(*large) {
            mutator.step(1);
        }
        assert!(inner.trace.generations.is_minor() && inner.space.cycle.number() == cycles);
        let slots = (*large).cast::<*mut u8>();
        mutator.write(*large, slots.add(2), *large);
        while !mutator.step(1_000_000) {}
        let child = mutator.new_root(mutator.alloc(64, LEAF | FREED)).unwrap();
        mutator.write(*large, slots.add(1), *child);
        assert!(mutator.collect_young());
        *child = ptr::null_mut();
        assert!(mutator.collect_young() && mutator.collect_young());
        assert_eq!(freed.load(Ordering::Relaxed), 0, "it is led to");
        mutator.detach();
    }
}

#[cfg(not(miri))]
#[test]
fn a_slot_that_was_never_handed_out_is_no_object() {
    let freed = AtomicUsize::new(0);
    let data = ptr::from_ref(&freed).cast_mut().cast();
    let heap = in_steps(Runtime { free: Some(count), data, ..Runtime::new() });
    // SAFETY: handles lead to all objects in use.
    unsafe {
        let mutator = heap.attach().unwrap();
        let mut roots = half_moved(&heap, &mutator, LEAF | FREED);
        let mut allocated = MANY;
        for _ in 0..5 {
            // The next allocation moves objects to pay for these bytes, perhaps into the region
            // that it allocates from.
            mutator.external(300 << 10);
            let object = mutator.alloc(64, LEAF | FREED);
            allocated += 1;
            roots.push(mutator.new_root(object).unwrap());
        }
        while !mutator.step(1_000_000) {}
        roots.into_iter().for_each(|root| mutator.free_root(root));
        (0..3).for_each(|_| mutator.collect());
        assert_eq!(freed.load(Ordering::Relaxed), allocated);
        mutator.detach();
    }
}

#[cfg(not(miri))]
unsafe extern "C" fn trace_weak(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
    // SAFETY: traced objects begin with a weak slot here.
    unsafe { tracer.mark_weak(object.cast()) };
}

#[cfg(not(miri))]
#[test]
fn a_weak_slot_of_an_object_without_barriers_follows_and_nothing_that_was_free_has_moved() {
    let heap = in_steps(Runtime { trace: Some(trace_weak), ..Runtime::new() });
    let inner = heap.inner();
    // SAFETY: handles lead to all objects in use. All stores are reported, or need no report.
    unsafe {
        let mutator = heap.attach().unwrap();
        let holder = mutator.new_root(mutator.alloc(128, TRACED)).unwrap();
        assert!(mutator.unprotect(*holder) && mutator.pin(*holder));
        let roots = half_moved(&heap, &mutator, LEAF);
        let is_to_move = |root: &Root| {
            inner.space.page_of((**root).addr()).unwrap().evacuation() == Evacuation::Candidate
        };
        let target = roots.iter().copied().find(is_to_move).unwrap();
        let slot = (*holder).cast::<*mut u8>();
        slot.write(*target);
        while inner.space.cycle.phase() == Phase::Moving {
            mutator.step(1);
        }
        assert!(slot.read() == *target || slot.read().is_null());
        let evacuated =
            |page: &&super::super::page::Page| page.evacuation() == Evacuation::Evacuated;
        let mut moved = 0;
        for page in inner.space.pages.all().filter(evacuated) {
            for n in 0..page.slots() {
                let from = page.base().wrapping_add(n * page.slot.get());
                if let Some(to) = mutator.moved(from) {
                    assert!(roots.iter().any(|&root| *root == to), "{from:p} is not at {to:p}");
                    moved += 1;
                }
            }
        }
        assert!(moved > 0);
        mutator.detach();
    }
}

/// The value is in static data. (Not under Miri, whose addresses all lie close together.)
#[cfg(not(miri))]
unsafe extern "C" fn trace_far(tracer: &Tracer, object: *mut c_void, value: *mut c_void) {
    // SAFETY: traced objects begin with a key here, and the value's slot outlives the heap.
    unsafe { tracer.mark_ephemeron(object.cast(), value.cast()) };
}

#[cfg(not(miri))]
#[test]
fn an_ephemeron_whose_value_is_far_from_its_key_loses_its_key_and_keeps_its_value() {
    let mut value: *mut u8 = ptr::null_mut();
    let data = (&raw mut value).cast();
    let heap =
        Heap::new(Options::new(), Runtime { trace: Some(trace_far), data, ..Runtime::new() });
    let heap = heap.unwrap();
    // SAFETY: a handle leads to the ephemeron.
    unsafe {
        let mutator = heap.attach().unwrap();
        let ephemeron = mutator.new_root(mutator.alloc(64, TRACED)).unwrap();
        mutator.defer();
        let slot = (*ephemeron).cast::<*mut u8>();
        slot.write(mutator.alloc(64, LEAF));
        data.cast::<*mut u8>().write(mutator.alloc(64, LEAF));
        mutator.resume();
        (0..3).for_each(|_| mutator.collect());
        assert!(slot.read().is_null(), "its key is dead");
        let value = data.cast::<*mut u8>().read();
        assert_eq!(heap.find(value), Some(value));
        mutator.detach();
    }
}

unsafe extern "C" fn trace_ephemeron(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
    let key = object.cast::<*mut u8>();
    // SAFETY: traced objects begin with a key and a value here.
    unsafe { tracer.mark_ephemeron(key, key.wrapping_add(1)) };
}

#[test]
fn an_ephemeron_for_which_there_is_no_memory_keeps_its_key_this_time() {
    let heap =
        Heap::new(Options::new(), Runtime { trace: Some(trace_ephemeron), ..Runtime::new() });
    let heap = heap.unwrap();
    // SAFETY: a handle leads to the ephemeron.
    unsafe {
        let mutator = heap.attach().unwrap();
        let ephemeron = mutator.new_root(mutator.alloc(64, TRACED)).unwrap();
        mutator.defer();
        let (key, value) = (mutator.alloc(64, LEAF), mutator.alloc(64, LEAF));
        let slots = (*ephemeron).cast::<*mut u8>();
        slots.write(key);
        slots.add(1).write(value);
        mutator.resume();
        heap.inner().trace.marking.chunks.starved.set(1);
        mutator.collect();
        heap.inner().trace.marking.chunks.starved.set(0);
        assert_eq!(
            (heap.find(slots.read()), heap.find(slots.add(1).read())),
            (Some(key), Some(value))
        );
        mutator.collect();
        assert!(slots.read().is_null(), "its key is dead");
        mutator.detach();
    }
}

/// Makes an ephemeron, and a value that only the ephemeron leads to. A handle keeps the ephemeron.
/// Returns the handle.
#[cfg(not(miri))]
fn ephemeron(mutator: &Mutator, key: *mut u8) -> Root {
    // SAFETY: collections are deferred. The object has room for a key and a value.
    unsafe {
        let ephemeron = mutator.new_root(mutator.alloc(64, TRACED)).unwrap();
        let slots = (*ephemeron).cast::<*mut u8>();
        slots.write(key);
        slots.add(1).write(mutator.alloc(64, LEAF));
        ephemeron
    }
}

/// Between any two steps, the program replaces a dead key, or null, by a live key.
#[cfg(not(miri))]
#[test]
fn a_key_that_is_replaced_while_it_waits_keeps_its_value() {
    for null in [false, true] {
        let (mut steps, mut ended) = (0, false);
        while !ended {
            let runtime = Runtime { trace: Some(trace_ephemeron), ..Runtime::new() };
            let options = Options { incremental: true, step_ns: 1, ..Options::new() };
            let heap = Heap::new(options, runtime).unwrap();
            let mutator = heap.attach().unwrap();
            mutator.defer();
            let dead = if null { ptr::null_mut() } else { alloc(&mutator, 64, LEAF) };
            let made = ephemeron(&mutator, dead);
            // SAFETY: a handle leads to the key.
            unsafe {
                let key = mutator.new_root(alloc(&mutator, 64, LEAF)).unwrap();
                mutator.resume();
                mutator.ask();
                let cycles = heap.inner().space.cycle.number();
                for _ in 0..steps {
                    mutator.step(1);
                }
                ended = heap.inner().space.cycle.number() != cycles;
                let slots = (*made).cast::<*mut u8>();
                // Once the ephemeron was cleared, there is no value.
                let value = slots.add(1).read();
                assert!(ended || !null || !value.is_null());
                mutator.write(*made, slots, *key);
                while !mutator.step(1) {}
                assert_eq!(slots.read(), *key);
                assert_eq!(slots.add(1).read(), value, "after {steps} steps");
                assert!(value.is_null() || heap.find(value) == Some(value), "after {steps} steps");
                mutator.detach();
            }
            steps += 1;
        }
        assert!(steps > 8, "{steps}");
    }
}
