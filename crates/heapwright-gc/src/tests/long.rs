//! Objects with many references: how many slots one step looks at, and which slots a minor
//! collection looks at after a store.

extern crate std;

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::vec::Vec;

use super::super::phase::Phase;
use super::super::raw::{Heap, Mutator, Options, Runtime, Tracer};
use super::super::{LEAF, TRACED};
use super::{alloc, leave};

const SLOTS: usize = if cfg!(miri) { 5_000 } else { 200_000 };
/// References that one call of `trace` reports, if it reports parts.
const PART: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
enum By {
    Range,
    Slot,
    Parts,
}

struct Said {
    by: By,
    most: AtomicUsize,
}

unsafe extern "C" fn trace(tracer: &Tracer, object: *mut c_void, said: *mut c_void) {
    let (object, slots) = (object.cast::<u8>(), object.cast::<*mut u8>().wrapping_add(1));
    // SAFETY: each test gives its heap such data, which outlives it.
    let said = unsafe { &*said.cast::<Said>() };
    // SAFETY: objects begin with the number of their slots.
    let count = unsafe { object.cast::<usize>().read() };
    let (from, to) = match said.by {
        // SAFETY: the object has so many slots.
        By::Range => return unsafe { tracer.mark_range(slots, count) },
        By::Slot => (0, count),
        By::Parts => (tracer.traced_to(), count.min(tracer.traced_to() + PART)),
    };
    said.most.fetch_max(to - from, Ordering::Relaxed);
    for n in from..to {
        // SAFETY: a slot of the object.
        unsafe { tracer.mark_slot(slots.wrapping_add(n)) };
    }
    if to < count {
        tracer.trace_rest(object, to);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Null,
    Numbers,
    One,
    Two,
    Many,
}

fn slots(object: *mut u8) -> *mut *mut u8 {
    object.cast::<*mut u8>().wrapping_add(1)
}

fn vector(mutator: &Mutator, count: usize) -> *mut u8 {
    let at = alloc(mutator, 8 + 8 * count, TRACED);
    assert!(!at.is_null());
    // SAFETY: fresh, and large enough.
    unsafe { at.cast::<usize>().write(count) };
    at
}

fn heap(said: &Said, options: Options) -> (Heap, Mutator) {
    let data = ptr::from_ref(said).cast_mut().cast();
    let runtime = Runtime { trace: Some(trace), data, ..Runtime::new() };
    let heap = Heap::new(Options { markers: 1, ..options }, runtime).unwrap();
    let mutator = heap.attach().unwrap();
    (heap, mutator)
}

/// Makes vectors of `each` slots, `SLOTS` in all, and one vector that leads to them. Collections
/// are deferred meanwhile.
fn fill(mutator: &Mutator, each: usize, content: Content) -> *mut u8 {
    let top = vector(mutator, SLOTS / each);
    let others = [(); 2].map(|()| alloc(mutator, 16, LEAF));
    for n in 0..SLOTS / each {
        let at = vector(mutator, each);
        // SAFETY: a slot of an object that was just made; nothing is collected meanwhile.
        unsafe { slots(top).wrapping_add(n).write(at) };
        for slot in 0..each {
            let held = match content {
                Content::Null => ptr::null_mut(),
                Content::Numbers => ptr::without_provenance_mut(2 * slot + 1),
                Content::One => others[0],
                Content::Two => others[slot % 2],
                Content::Many => alloc(mutator, 16, LEAF),
            };
            // SAFETY: a handle leads to all objects in use.
            unsafe { slots(at).wrapping_add(slot).write(held) };
        }
    }
    top
}

#[test]
fn a_step_looks_at_few_slots_whatever_they_hold_and_however_they_are_reported() {
    let each_content = [Content::Null, Content::Numbers, Content::One, Content::Two, Content::Many];
    // (Vectors that report slots one by one are short, because one step traces a whole vector.)
    let ways = [(By::Range, SLOTS), (By::Parts, SLOTS), (By::Slot, 500)];
    for generations in [false, true] {
        for (by, each) in ways {
            for content in each_content {
                let said = Said { by, most: AtomicUsize::new(0) };
                let options =
                    Options { incremental: true, generations, step_ns: 1, ..Options::new() };
                let (heap, mutator) = heap(&said, options);
                mutator.defer();
                // SAFETY: the object was just made.
                let root = unsafe { mutator.new_root(fill(&mutator, each, content)) }.unwrap();
                mutator.resume();
                mutator.ask();
                let inner = heap.inner();
                let (mut steps, mut most, mut before) = (0, 0, 0);
                let cycles = inner.space.cycle.number();
                while inner.space.cycle.number() == cycles {
                    // SAFETY: a handle leads to all objects in use.
                    unsafe { mutator.step(1) };
                    if inner.space.cycle.phase() == Phase::Marking {
                        let now = inner.work_so_far();
                        most = most.max(now.saturating_sub(before));
                        before = now;
                    }
                    steps += 1;
                }
                let case = (by, content, generations, steps, most);
                assert!(most <= 200_000, "bytes of work in one step: {case:?}");
                assert!(cfg!(miri) || steps > SLOTS / 20_000, "{case:?}");
                assert!(by != By::Parts || said.most.load(Ordering::Relaxed) <= PART, "{case:?}");
                // SAFETY: made above.
                unsafe { mutator.free_root(root) };
                leave(mutator);
            }
        }
    }
}

#[test]
fn a_vector_in_parts_keeps_all_it_leads_to_also_without_memory_and_for_those_that_look() {
    let said = Said { by: By::Parts, most: AtomicUsize::new(0) };
    let (heap, mutator) = heap(&said, Options::new());
    mutator.defer();
    let top = fill(&mutator, SLOTS / 4, Content::Many);
    // SAFETY: the object was just made.
    let root = unsafe { mutator.new_root(top) }.unwrap();
    mutator.resume();
    let objects = |heap: &Heap| {
        let pools = heap.statistics().pool;
        pools.iter().map(|pool| pool.live).sum::<u64>()
    };
    // SAFETY: a handle leads to all objects in use.
    unsafe { mutator.collect() };
    let live = objects(&heap);
    assert!(live >= SLOTS as u64, "{live}");
    // SAFETY: a handle leads to all objects in use.
    assert_eq!(unsafe { mutator.verify() }, 0);
    heap.inner().trace.marking.chunks.starved.set(1);
    // SAFETY: a handle leads to all objects in use.
    unsafe { mutator.collect() };
    heap.inner().trace.marking.chunks.starved.set(0);
    assert_eq!(objects(&heap), live, "without memory for the mark stack");
    let all: Vec<*mut u8> = (0..SLOTS / 4)
        // SAFETY: slots of live objects.
        .map(|n| unsafe { slots(slots(top).read()).wrapping_add(n).read() })
        .collect();
    // SAFETY: a handle leads to all objects in use.
    unsafe { mutator.compact_all() };
    assert_eq!(objects(&heap), live);
    // SAFETY: a handle, whose object may have moved.
    let first = unsafe { slots((*root).cast()).read() };
    let moved = |&(n, before): &(usize, &*mut u8)| {
        // SAFETY: slots of live objects.
        unsafe { slots(first).wrapping_add(n).read() != *before }
    };
    assert!(all.iter().enumerate().filter(moved).count() > 0, "by slots that parts reported");
    // SAFETY: made above.
    unsafe { mutator.free_root(root) };
    leave(mutator);
}

#[test]
fn a_minor_collection_looks_at_the_slot_that_was_stored_into_and_not_at_its_vector() {
    for incremental in [false, true] {
        let said = Said { by: By::Slot, most: AtomicUsize::new(0) };
        let (heap, mutator) =
            heap(&said, Options { generations: true, incremental, ..Options::new() });
        mutator.defer();
        // SAFETY: the object was just made.
        let root = unsafe { mutator.new_root(vector(&mutator, SLOTS)) }.unwrap();
        mutator.resume();
        // SAFETY: a handle leads to all objects in use.
        unsafe {
            // (Otherwise a major collection may be due.)
            mutator.defer_majors();
            mutator.collect();
            assert!(mutator.collect_young() && heap.inner().space.is_marked(*root));
            for round in 0..6 {
                said.most.store(0, Ordering::Relaxed);
                let slot = slots(*root).wrapping_add(7 + 1000 * round);
                let child = alloc(&mutator, 16, LEAF);
                match round % 3 {
                    0 => mutator.write(*root, slot, child),
                    1 => {
                        slot.write(child);
                        mutator.touch_slot(*root, slot);
                    }
                    // Stores into the same slot over and over: the slot is noted once.
                    _ => (0..SLOTS).for_each(|_| mutator.write(*root, slot, child)),
                }
                for _ in 0..3 {
                    assert!(mutator.collect_young());
                    assert!(heap.inner().space.object_at(child).is_some(), "{round}");
                }
                assert_eq!(said.most.load(Ordering::Relaxed), 0, "{round}");
            }
            // One store that names no slot, then very many that name theirs.
            let children = [(); 2].map(|()| alloc(&mutator, 16, LEAF));
            slots(*root).write(children[0]);
            mutator.shade(*root, children[0]);
            assert!(mutator.collect_young());
            assert_eq!(said.most.load(Ordering::Relaxed), SLOTS);
            said.most.store(0, Ordering::Relaxed);
            let child = root_of(&mutator);
            for n in 0..SLOTS {
                mutator.write(*root, slots(*root).wrapping_add(n), *child);
            }
            assert!(mutator.collect_young() && mutator.collect_young());
            assert_eq!(said.most.load(Ordering::Relaxed), SLOTS);
            assert!(heap.inner().space.object_at(*child).is_some());
            mutator.free_root(child);
            mutator.free_root(root);
        }
        leave(mutator);
    }
}

fn root_of(mutator: &Mutator) -> *mut *mut u8 {
    let object = alloc(mutator, 16, LEAF);
    // SAFETY: the object was just made.
    unsafe { mutator.new_root(object) }.unwrap()
}

/// Traces an object of 48 bytes in two parts, or a vector of its children.
#[cfg(not(miri))]
unsafe extern "C" fn trace_halves(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
    let slots = object.cast::<*mut u8>();
    // SAFETY: traced objects begin with a count, or with zeroes.
    let count = unsafe { *slots.cast::<usize>() };
    if count > 1 {
        for n in 1..=count {
            // SAFETY: the vector has `count` slots behind its count.
            unsafe { tracer.mark_slot(slots.wrapping_add(n)) };
        }
        return;
    }
    if tracer.traced_to() == 0 {
        return tracer.trace_rest(object.cast(), 1);
    }
    // SAFETY: the object has a second word.
    unsafe { tracer.mark_slot(slots.wrapping_add(1)) };
}

#[cfg(not(miri))]
#[test]
fn small_objects_in_parts_come_to_an_end_without_memory() {
    // A page has more objects than a chunk has pairs.
    const MANY: usize = 4000;
    let options = Options { least: 64 << 20, ..Options::new() };
    let runtime = Runtime { trace: Some(trace_halves), ..Runtime::new() };
    let heap = Heap::new(options, runtime).unwrap();
    let mutator = heap.attach().unwrap();
    mutator.defer();
    // SAFETY: a handle leads to all objects, and nothing is collected meanwhile.
    unsafe {
        let top = mutator.new_root(mutator.alloc(8 + 8 * MANY, TRACED)).unwrap();
        let words = (*top).cast::<*mut u8>();
        for n in 1..=MANY {
            let object = mutator.alloc(32, TRACED);
            object.cast::<*mut u8>().wrapping_add(1).write(mutator.alloc(16, LEAF));
            words.wrapping_add(n).write(object);
        }
        words.cast::<usize>().write(MANY);
        mutator.resume();
        heap.inner().trace.marking.chunks.starved.set(1);
        mutator.collect();
        heap.inner().trace.marking.chunks.starved.set(0);
        for n in 1..=MANY {
            let leaf = words.wrapping_add(n).read().cast::<*mut u8>().wrapping_add(1).read();
            assert_eq!(heap.find(leaf), Some(leaf));
        }
        mutator.detach();
    }
}

#[cfg(not(miri))]
#[test]
fn an_object_noted_twice_for_want_of_memory_is_traced_from_the_earlier_part() {
    let said = Said { by: By::Parts, most: AtomicUsize::new(0) };
    let (heap, mutator) = heap(&said, Options::new());
    let large = alloc(&mutator, 1 << 20, TRACED);
    let page = heap.inner().space.page_of(large.addr()).unwrap();
    let slot = super::super::mutator::Mutator::attach(heap.inner()).unwrap();
    let tracer = &slot.value.tracer;
    for (from, then) in [(5000, 5001), (100, 101), (300, 101)] {
        tracer.note_rest(large, from);
        assert_eq!(page.overflowed.get(), then);
    }
    tracer.note_overflow(large);
    tracer.note_rest(large, 200);
    assert_eq!(page.overflowed.take(), 1);
    heap.inner().trace.marking.overflowed.store(0, Ordering::Relaxed);
    super::super::mutator::Mutator::detach(slot);
    leave(mutator);
}
