//! Moving objects: which move, which stay, and the reports to the runtime. (See also `model`.)

extern crate std;

use core::ffi::c_void;
use core::ptr;
use std::sync::Mutex;
use std::vec::Vec;

#[cfg(not(miri))]
use super::super::heap;
use super::super::raw::{
    Heap, Mutator, Options, Runtime, STRESS, Tracer, VERIFY_BARRIERS, VERIFY_HEAP,
};
use super::super::{LEAF, TRACED};
use super::{alloc, attached, leave_root, root};
#[cfg(not(miri))]
use super::{collect, leave};

mod model;

#[repr(C)]
#[derive(Clone, Copy)]
struct Node {
    serial: usize,
    count: u32,
    /// Whether the object reports its references by value.
    rigid: u32,
    /// The bytes that the object is to have when it moves. 0: as many as now.
    wanted: usize,
}

#[derive(Default)]
struct Seen {
    /// A mutator of the heap, for a runtime that changes references itself.
    mutator: Option<ptr::NonNull<Mutator>>,
    /// An object that a root of such a runtime leads to, and its serial.
    kept: Option<(*mut u8, usize)>,
    freed: Vec<usize>,
    moved: usize,
    finalized: Vec<usize>,
}

type Shared = Mutex<Seen>;

fn node(object: *mut u8) -> Node {
    // SAFETY: an object of these tests, which is live.
    unsafe { object.cast::<Node>().read() }
}

fn slots(object: *mut u8) -> *mut *mut u8 {
    object.cast::<Node>().wrapping_add(1).cast()
}

fn load(object: *mut u8, place: usize) -> *mut u8 {
    // SAFETY: the object is live and has this reference.
    unsafe { slots(object).wrapping_add(place).read() }
}

unsafe extern "C" fn trace(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
    let Node { count, rigid, .. } = node(object.cast());
    let slots = slots(object.cast());
    if rigid == 0 && count > 40 {
        // SAFETY: within the slots of the object.
        return unsafe { tracer.mark_range(slots, count as usize) };
    }
    for n in 0..count as usize {
        if rigid == 0 {
            // SAFETY: a slot of the object.
            unsafe { tracer.mark_slot(slots.wrapping_add(n)) };
        } else {
            tracer.mark(load(object.cast(), n));
        }
    }
}

/// As `trace`, for a runtime that changes references itself. Every second slot of an object that is
/// not rigid is still reported as a slot.
unsafe extern "C" fn trace_movable(tracer: &Tracer, object: *mut c_void, data: *mut c_void) {
    let Node { count, rigid, .. } = node(object.cast());
    if rigid != 0 || count > 40 {
        // SAFETY: the collector's own arguments, unchanged.
        return unsafe { trace(tracer, object, data) };
    }
    for n in 0..count as usize {
        if n.is_multiple_of(2) {
            tracer.mark_movable(load(object.cast(), n));
        } else {
            // SAFETY: a slot of the object.
            unsafe { tracer.mark_slot(slots(object.cast()).wrapping_add(n)) };
        }
    }
}

unsafe extern "C" fn roots(tracer: &Tracer, data: *mut c_void) {
    // SAFETY: the test's data, which outlives its heap.
    if let Some((kept, _)) = unsafe { &*data.cast::<Shared>() }.lock().unwrap().kept {
        tracer.mark_movable(kept);
    }
}

unsafe extern "C" fn update(object: *mut c_void, data: *mut c_void) {
    let object = object.cast();
    // SAFETY: the test's data, which outlives its heap.
    let mutator = unsafe { &*data.cast::<Shared>() }.lock().unwrap().mutator.unwrap();
    if super::super::raw::object_kind(object).is_some_and(|kind| kind & LEAF != 0) {
        return;
    }
    for n in 0..node(object).count as usize {
        // SAFETY: the test's mutator, which is attached.
        if let Some(to) = unsafe { mutator.as_ref() }.moved(load(object, n)) {
            // SAFETY: a slot of the object.
            unsafe { slots(object).wrapping_add(n).write(to) };
        }
    }
}

unsafe extern "C" fn update_roots(data: *mut c_void) {
    // SAFETY: the test's data, which outlives its heap.
    let mut seen = unsafe { &*data.cast::<Shared>() }.lock().unwrap();
    let mutator = seen.mutator.unwrap();
    if let Some((kept, _)) = &mut seen.kept {
        // SAFETY: the test's mutator, which is attached.
        *kept = unsafe { mutator.as_ref() }.moved(*kept).unwrap_or(*kept);
    }
}

unsafe extern "C" fn free(object: *mut c_void, _: usize, data: *mut c_void) {
    let serial = node(object.cast()).serial;
    // SAFETY: the test's data, which outlives its heap.
    unsafe { &*data.cast::<Shared>() }.lock().unwrap().freed.push(serial);
}

unsafe extern "C" fn wanted(object: *const c_void, _: *mut c_void) -> usize {
    node(object.cast_mut().cast()).wanted
}

unsafe extern "C" fn moved(to: *mut c_void, from: *const c_void, size: usize, data: *mut c_void) {
    assert!(to.cast_const() != from && size >= node(to.cast()).wanted.min(200));
    // SAFETY: the test's data, which outlives its heap.
    unsafe { &*data.cast::<Shared>() }.lock().unwrap().moved += 1;
}

fn runtime(seen: &Shared) -> Runtime {
    Runtime {
        data: ptr::from_ref(seen).cast_mut().cast(),
        trace: Some(trace),
        free: Some(free),
        wanted: Some(wanted),
        moved: Some(moved),
        ..Runtime::new()
    }
}

fn updating_runtime(seen: &Shared) -> Runtime {
    Runtime {
        trace: Some(trace_movable),
        roots: Some(roots),
        update: Some(update),
        update_roots: Some(update_roots),
        ..runtime(seen)
    }
}

/// Makes a heap with a table of nodes of several sizes. `keep` percent of the nodes live.
fn sparse(
    options: Options,
    seen: &Shared,
    count: usize,
    keep: usize,
) -> (Heap, Mutator, *mut *mut u8) {
    sparse_of(options, runtime(seen), count, keep)
}

fn sparse_of(
    options: Options,
    runtime: Runtime,
    count: usize,
    keep: usize,
) -> (Heap, Mutator, *mut *mut u8) {
    let (heap, mutator) = attached(options, runtime);
    let make = |size: usize, kind, count| {
        let at = alloc(&mutator, size, kind);
        // SAFETY: fresh, and large enough.
        unsafe { at.cast::<Node>().write(Node { serial: size, count, rigid: 0, wanted: 0 }) };
        at
    };
    let table = make(24 + 8 * count, TRACED, count as u32);
    let root = root(&mutator, table);
    for n in 0..count {
        let size = 32 + n * 7 % 13 * 24;
        let at = make(size, if n % 3 == 0 { LEAF } else { TRACED }, 0);
        // SAFETY: the root is in use, and its table live.
        let table = unsafe { root.read() };
        // SAFETY: a slot of the table.
        unsafe { mutator.write(table, slots(table).wrapping_add(n), at) };
    }
    // SAFETY: the root is in use, and its table live.
    let table = unsafe { root.read() };
    for n in (0..count).filter(|n| n * 2_654_435_761 % 100 >= keep) {
        // SAFETY: a slot of the table.
        unsafe { mutator.write(table, slots(table).wrapping_add(n), ptr::null_mut()) };
    }
    (heap, mutator, root)
}

#[cfg(not(miri))]
fn bytes(heap: &Heap) -> u64 {
    let statistics = heap.statistics();
    statistics.in_use_bytes + statistics.empty_bytes + statistics.large_bytes
}

/// Bytes of partly full pages: one for each page list.
#[cfg(not(miri))]
const PARTLY: u64 = 26 << 16;
#[cfg(not(miri))]
const COUNT: usize = 40_000;

/// In stress mode every page is evacuated, so few objects suffice, for Miri.
#[test]
fn a_few_objects_move_and_lead_to_each_other() {
    for generations in [false, true] {
        let seen = Shared::default();
        let options = Options { generations, verify: STRESS | VERIFY_HEAP, ..Options::new() };
        let (heap, mutator, root) = sparse(options, &seen, 12, 50);
        // SAFETY: handles lead to all objects in use.
        unsafe { mutator.compact() };
        assert!(heap.statistics().moved_objects > 4);
        // SAFETY: handles lead to all objects in use.
        assert_eq!(unsafe { mutator.verify() }, 0);
        leave_root(mutator, root);
    }
}

#[test]
#[cfg(not(miri))]
fn pages_of_a_sparse_heap_go_back() {
    for (generations, updates) in [(false, false), (true, false), (false, true), (true, true)] {
        let seen = Shared::default();
        let options = Options { generations, incremental: updates, ..Options::new() };
        let runtime = if updates { updating_runtime(&seen) } else { runtime(&seen) };
        let (heap, mutator, root) = sparse_of(options, runtime, COUNT, 10);
        seen.lock().unwrap().mutator = Some(ptr::NonNull::from(&mutator));
        collect(&mutator);
        let before = bytes(&heap);
        // SAFETY: handles lead to all objects in use.
        unsafe { mutator.compact() };
        let (after, live) = (bytes(&heap), heap.statistics().live_bytes);
        let most = live * 12 / 10 + PARTLY;
        assert!(after * 3 < before && after < most, "{before} to {after} of {live}");
        assert_eq!(heap.statistics().moved_objects as usize, seen.lock().unwrap().moved);
        // SAFETY: handles lead to all objects in use.
        assert_eq!(unsafe { mutator.verify() }, 0);
        leave_root(mutator, root);
    }
}

#[test]
#[cfg(not(miri))]
fn steps_compact_as_far_and_mutators_run_between_them() {
    let seen = Shared::default();
    let options =
        Options { incremental: true, generations: true, verify: VERIFY_BARRIERS, ..Options::new() };
    let (heap, mutator, root) = sparse(options, &seen, COUNT, 10);
    // SAFETY: handles lead to all objects in use.
    unsafe { mutator.ask_compact() };
    let mut steps = 0;
    // SAFETY: handles lead to all objects in use.
    while !unsafe { mutator.step(20_000) } {
        steps += 1;
        // SAFETY: the root is in use, and its table live.
        let table = unsafe { root.read() };
        for n in 0..20 {
            let (one, two) = ((steps * 37 + n * 11) % COUNT, (steps * 53 + n * 17) % COUNT);
            let (first, second) = (load(table, one), load(table, two));
            // SAFETY: slots of the table.
            unsafe { mutator.write(table, slots(table).wrapping_add(one), second) };
            // SAFETY: slots of a live table, and a live object.
            unsafe { mutator.write(table, slots(table).wrapping_add(two), first) };
        }
    }
    heap.trim();
    assert!(steps > 5, "{steps}");
    let (after, live) = (bytes(&heap), heap.statistics().live_bytes);
    let statistics = heap.statistics();
    assert!(after < live * 12 / 10 + PARTLY, "{after} of {live}: {statistics:?}");
    // SAFETY: handles lead to all objects in use.
    assert_eq!(unsafe { mutator.verify() }, 0);
    assert!(heap.statistics().compactions == 1 && heap.statistics().moved_objects > 0);
    leave_root(mutator, root);
}

#[test]
#[cfg(not(miri))]
fn a_heap_with_far_too_many_pages_compacts_itself() {
    let seen = Shared::default();
    let options = Options { compact: true, least: 1 << 20, ..Options::new() };
    let (heap, mutator, root) = sparse(options, &seen, COUNT, 5);
    for _ in 0..4 {
        collect(&mutator);
    }
    assert!(heap.statistics().compactions == 1);
    leave_root(mutator, root);
}

#[test]
#[cfg(not(miri))]
fn what_was_resized_goes_to_the_pool_that_suits() {
    let seen = Shared::default();
    let (heap, mutator) = attached(Options::new(), runtime(&seen));
    // For each pair of these sizes, an object moves to a slot of the second size.
    let sizes = [40, 400, 4_000, 20_000, 40_000, 200_000];
    for from in sizes {
        for to in sizes {
            let at = alloc(&mutator, from, TRACED);
            let count = ((from.min(to) - 24) / 8) as u32;
            // SAFETY: fresh, and large enough.
            unsafe { at.cast::<Node>().write(Node { serial: from, count, rigid: 0, wanted: to }) };
            let root = root(&mutator, at);
            // SAFETY: a slot of the object, which leads to itself.
            unsafe { mutator.write(at, slots(at).wrapping_add(count as usize - 1), at) };
            // SAFETY: a live object, which only the test changes.
            assert_eq!(unsafe { mutator.resize(at, to) }, to <= heap.slot_size(from));
            // SAFETY: handles lead to all objects in use.
            unsafe { mutator.compact() };
            // SAFETY: the root is in use.
            let now = unsafe { root.read() };
            assert_eq!(super::super::raw::object_size(now), heap.slot_size(to));
            assert_eq!(load(now, count as usize - 1), now);
            assert_eq!(node(now).serial, from);
            // SAFETY: freed once.
            unsafe { mutator.free_root(root) };
        }
    }
    leave(mutator);
}

#[test]
#[cfg(not(miri))]
fn what_is_on_a_stack_or_told_by_value_stays() {
    let seen = Shared::default();
    let (heap, mutator, root) = sparse(Options::new(), &seen, COUNT, 10);
    // SAFETY: the table is live.
    let table = unsafe { root.read() };
    let all: Vec<*mut u8> = (0..COUNT).map(|n| load(table, n)).filter(|at| !at.is_null()).collect();
    let rigid = alloc(&mutator, 24 + 8 * 16, TRACED);
    // SAFETY: fresh, and large enough.
    unsafe { rigid.cast::<Node>().write(Node { serial: 0, count: 16, rigid: 1, wanted: 0 }) };
    for n in 0..16 {
        // SAFETY: a slot of a fresh object, which is large enough.
        unsafe { mutator.write(rigid, slots(rigid).wrapping_add(n), all[n * 233 % all.len()]) };
    }
    let rigid = super::root(&mutator, rigid);
    // SAFETY: handles lead to all objects in use.
    unsafe { mutator.compact() };
    for n in 0..16 {
        // SAFETY: the root is in use.
        assert_eq!(load(unsafe { rigid.read() }, n), all[n * 233 % all.len()]);
    }
    let reported = heap.statistics();
    assert!(
        reported.kept_pages > 0 && reported.moved_objects > 0,
        "{} {}",
        reported.kept_pages,
        reported.moved_objects
    );
    // SAFETY: freed once.
    unsafe { mutator.free_root(rigid) };
    leave_root(mutator, root);
}

#[test]
#[cfg(not(miri))]
fn without_memory_for_what_leads_there_nothing_moves() {
    let seen = Shared::default();
    let options = Options { incremental: true, ..Options::new() };
    let (heap, mutator, root) = sparse(options, &seen, COUNT / 10, 10);
    let inner: &heap::Heap = heap::of(heap.id()).unwrap();
    // SAFETY: handles lead to all objects in use.
    unsafe { mutator.ask_compact() };
    // SAFETY: handles lead to all objects in use.
    while heap.statistics().phase != 3 && !unsafe { mutator.step(10_000) } {}
    // A store cannot be noted. The stored object must stay where it is.
    inner.trace.marking.chunks.starved.set(1);
    // SAFETY: the root is in use.
    let table = unsafe { root.read() };
    let first = (0..COUNT / 10).find(|&n| !load(table, n).is_null()).unwrap();
    // SAFETY: a slot of the table.
    unsafe { slots(table).wrapping_add(first + 1).write(load(table, first)) };
    // SAFETY: objects of the mutator's heap.
    unsafe { mutator.shade(table, load(table, first)) };
    inner.trace.marking.chunks.starved.set(0);
    // SAFETY: handles lead to all objects in use.
    while !unsafe { mutator.step(100_000) } {}
    // SAFETY: the root is in use.
    let table = unsafe { root.read() };
    assert_eq!(load(table, first), load(table, first + 1));
    // SAFETY: handles lead to all objects in use.
    assert_eq!(unsafe { mutator.verify() }, 0);
    leave_root(mutator, root);
}

/// Steps until some objects have moved, and others have not.
#[cfg(not(miri))]
fn begin_moving(heap: &Heap, mutator: &Mutator) {
    // SAFETY: handles lead to all objects in use.
    unsafe { mutator.ask_compact() };
    let before = heap.statistics().evacuated_pages;
    while heap.statistics().evacuated_pages == before {
        // SAFETY: handles lead to all objects in use.
        assert!(!unsafe { mutator.step(1) }, "something is to be moved");
    }
    assert_eq!(heap.statistics().phase, 3);
}

#[cfg(not(miri))]
fn end_moving(mutator: &Mutator) {
    // SAFETY: handles lead to all objects in use.
    while !unsafe { mutator.step(50_000) } {}
}

/// Returns the places of the table that hold objects. Some of these objects have moved.
#[cfg(not(miri))]
fn all_of(table: *mut u8) -> Vec<usize> {
    (0..COUNT / 10).filter(|&n| !load(table, n).is_null()).collect()
}

#[test]
#[cfg(not(miri))]
fn whatever_is_made_between_two_steps_leads_to_where_things_are_then() {
    unsafe extern "C" fn trace_all(tracer: &Tracer, object: *mut c_void, data: *mut c_void) {
        if node(object.cast()).wanted == 77 {
            let slots = slots(object.cast());
            // SAFETY: the two slots of an ephemeron.
            return unsafe { tracer.mark_ephemeron(slots, slots.wrapping_add(1)) };
        }
        // SAFETY: any other object of these tests.
        unsafe { trace(tracer, object, data) };
    }
    let seen = Shared::default();
    let options = Options { incremental: true, ..Options::new() };
    let runtime = Runtime { trace: Some(trace_all), wanted: None, ..runtime(&seen) };
    let (heap, mutator, root) = sparse_of(options, runtime, COUNT / 10, 10);
    begin_moving(&heap, &mutator);
    // SAFETY: the table is live.
    let all = all_of(unsafe { root.read() });
    let mut made = Vec::new();
    for (n, pair) in all.windows(2).enumerate().step_by(3) {
        // Makes a new object, which is an ephemeron or has two plain references.
        let at = alloc(&mutator, 40, TRACED);
        // SAFETY: the root is in use.
        let table = unsafe { root.read() };
        let [key, value] = [pair[0], pair[1]].map(|n| load(table, n));
        let wanted = if n % 2 == 0 { 77 } else { 0 };
        // SAFETY: fresh, and large enough.
        unsafe { at.cast::<Node>().write(Node { serial: n, count: 2, rigid: 0, wanted }) };
        // SAFETY: two slots of a fresh object, which is large enough.
        unsafe { slots(at).cast::<[*mut u8; 2]>().write([key, value]) };
        // SAFETY: it is live.
        made.push((unsafe { mutator.new_root(at) }.unwrap(), pair[0], pair[1]));
        if n % 30 == 0 {
            // SAFETY: handles lead to all objects in use.
            unsafe { mutator.step(1) };
        }
    }
    // SAFETY: the table is live.
    let kept = load(unsafe { root.read() }, all[all.len() / 2]);
    // SAFETY: an object of the mutator's heap.
    unsafe { mutator.shade(ptr::null_mut(), kept) };
    end_moving(&mutator);
    // SAFETY: the root is in use.
    let table = unsafe { root.read() };
    for (cell, key, value) in made {
        // SAFETY: a root.
        let at = unsafe { cell.read() };
        assert_eq!([load(at, 0), load(at, 1)], [load(table, key), load(table, value)]);
        // SAFETY: freed once.
        unsafe { mutator.free_root(cell) };
    }
    assert_eq!(load(table, all[all.len() / 2]), kept, "what was shaded for a root stays");
    leave_root(mutator, root);
}

#[test]
#[cfg(not(miri))]
fn a_large_object_may_be_resized_just_after_it_was_made() {
    let seen = Shared::default();
    let options = Options { incremental: true, ..Options::new() };
    let (heap, mutator, root) = sparse(options, &seen, COUNT / 10, 10);
    begin_moving(&heap, &mutator);
    let large = alloc(&mutator, 70_000, TRACED);
    // SAFETY: fresh, and large enough.
    unsafe { large.cast::<Node>().write(Node { serial: 0, count: 0, rigid: 0, wanted: 0 }) };
    let cell = super::root(&mutator, large);
    // SAFETY: handles lead to all objects in use.
    unsafe { mutator.step(1) };
    // SAFETY: the object is live, and only the test changes it.
    assert!(unsafe { mutator.resize(large, 131_000) });
    end_moving(&mutator);
    // SAFETY: a root that is in use.
    assert_eq!(unsafe { cell.read() }, large);
    // SAFETY: freed once.
    unsafe { mutator.free_root(cell) };
    leave_root(mutator, root);
}

#[test]
#[cfg(not(miri))]
fn a_large_object_of_few_bytes_is_looked_at_as_one_slot() {
    let seen = Shared::default();
    // Every object longer than the only pool's slots is large, and may have any size.
    let options = Options { layout: crate::Layout::Single, compact: true, ..Options::new() };
    let (_heap, mutator) = attached(options, runtime(&seen));
    for size in 25..600 {
        let at = alloc(&mutator, size, LEAF);
        let bytes = size - size_of::<Node>();
        // SAFETY: fresh, and large enough.
        unsafe { at.cast::<Node>().write(Node { serial: size, count: 0, rigid: 0, wanted: 24 }) };
        // SAFETY: the bytes are the rest of the object.
        unsafe { at.wrapping_add(size_of::<Node>()).write_bytes(0x5a, bytes) };
        let root = root(&mutator, at);
        // The object stays first, and then moves to a slot of the pool.
        for wanted in [size, 24] {
            // SAFETY: the root is in use.
            unsafe { (*root.read().cast::<Node>()).wanted = wanted };
            // SAFETY: a live object, which only the test changes.
            unsafe { mutator.resize(root.read(), wanted) };
            // SAFETY: handles lead to all objects in use.
            unsafe { mutator.compact_all() };
            // SAFETY: the root is in use.
            let now = unsafe { root.read() };
            assert_eq!(node(now).serial, size);
            // SAFETY: within the object, and within its slot.
            let left = unsafe {
                core::slice::from_raw_parts(
                    now.wrapping_add(size_of::<Node>()),
                    bytes.min(super::super::raw::object_size(now) - size_of::<Node>()),
                )
            };
            assert!(
                left.iter().all(|&byte| byte == 0x5a),
                "{size} bytes, {wanted} wanted: {left:?}"
            );
        }
        // SAFETY: freed once.
        unsafe { mutator.free_root(root) };
    }
    leave(mutator);
}

#[test]
#[cfg(not(miri))]
fn who_asks_again_in_the_midst_of_a_plan_has_both() {
    let seen = Shared::default();
    let options = Options { incremental: true, ..Options::new() };
    let (heap, mutator, root) = sparse(options, &seen, COUNT, 10);
    // SAFETY: handles lead to all objects in use.
    unsafe { mutator.ask_compact() };
    let inner: &heap::Heap = heap::of(heap.id()).unwrap();
    while !inner.moving.is_begun() {
        // SAFETY: handles lead to all objects in use.
        unsafe { mutator.step(1) };
    }
    // SAFETY: handles lead to all objects in use.
    unsafe { mutator.ask_compact() };
    heap.trim();
    end_moving(&mutator);
    assert_eq!(heap.statistics().compactions, 2);
    // SAFETY: handles lead to all objects in use.
    assert_eq!(unsafe { mutator.verify() }, 0);
    leave_root(mutator, root);
}

#[test]
#[cfg(not(miri))]
fn a_mutator_that_had_another_heap_notes_nothing_there() {
    let seen = Shared::default();
    for round in 0..6 {
        let options = Options { incremental: round % 2 == 0, ..Options::new() };
        let (heap, mutator, root) = sparse(options, &seen, COUNT / 10, 10);
        let (other, second, other_root) = sparse(options, &seen, COUNT / 20, 10);
        for mutator in [&mutator, &second] {
            // SAFETY: handles lead to all objects in use.
            unsafe { mutator.compact() };
        }
        // Detaches the first mutator first, so the next mutator gets the other mutator's record.
        leave_root(mutator, root);
        leave_root(second, other_root);
        drop((heap, other));
    }
}
