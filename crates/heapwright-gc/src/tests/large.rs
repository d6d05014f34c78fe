//! Large objects: which bytes count, and which pages of dead objects are used again.

extern crate std;

use std::vec::Vec;

use super::super::large;
use super::super::raw::{Heap, Mutator, Options, Runtime};
use super::super::{FREED, LEAF, TRACED};
use super::{alloc, attached, collect, leave};

const UNIT: usize = 64 << 10;
/// A little more than the largest slot.
const WIDE: usize = 33_000;

fn garbage(mutator: &Mutator, size: usize, kind: u32) -> *mut u8 {
    let at = alloc(mutator, size, kind);
    assert!(!at.is_null());
    at
}

/// Makes an object that a handle keeps. Returns null without memory.
fn kept(mutator: &Mutator, size: usize) -> *mut u8 {
    let at = alloc(mutator, size, LEAF);
    if !at.is_null() {
        // SAFETY: it is live; the handle goes with the heap.
        assert!(unsafe { mutator.new_root(at) }.is_some());
    }
    at
}

fn dirty(at: *mut u8, size: usize) {
    // SAFETY: an object of `size` bytes, which nobody else uses.
    unsafe { at.write_bytes(0xa5, size) };
}

#[test]
fn what_is_not_touched_does_not_count() {
    let (heap, mutator) = attached(Options::new(), Runtime::new());
    for (size, kind) in [(WIDE, LEAF), (WIDE, TRACED), (70_000, TRACED), (3 * UNIT + 1, LEAF)] {
        let before = heap.statistics().large_bytes;
        garbage(&mutator, size, kind);
        let counted = (heap.statistics().large_bytes - before) as usize;
        // A little dirty memory behind the object stays, so some more bytes may count.
        assert!(
            counted >= size && counted <= large::footprint(size) + size / 8,
            "{size} {counted}"
        );
    }
    leave(mutator);
}

#[test]
fn a_limit_holds_as_many_as_there_is_memory_for() {
    let most = 16 * UNIT;
    let (heap, mutator) = attached(Options { most, ..Options::new() }, Runtime::new());
    let fits = (0..64).take_while(|_| !kept(&mutator, WIDE).is_null()).count();
    assert_eq!(fits, most / large::footprint(WIDE));
    assert!(heap.statistics().peak_bytes <= most as u64);
    leave(mutator);
}

#[test]
fn the_next_object_of_about_that_size_has_the_memory_of_a_dead_one() {
    let (heap, mutator) = attached(Options::new(), Runtime::new());
    let first = garbage(&mutator, 40_000, LEAF);
    dirty(first, 40_000);
    collect(&mutator);
    let statistics = heap.statistics();
    assert_eq!(statistics.large_bytes, 0);
    assert_eq!(statistics.empty_bytes as usize, large::footprint(40_000));
    // A dead object is not found, though its page waits.
    assert_eq!(heap.find(first), None);
    // A slightly smaller request takes the page, and its object is zeroed.
    let traced = garbage(&mutator, 36_800, TRACED);
    assert_eq!(traced, first);
    // SAFETY: within the bytes of the object.
    assert!((0..36_800).all(|n| unsafe { traced.wrapping_add(n).read() } == 0));
    assert_eq!(heap.statistics().empty_bytes, 0);
    collect(&mutator);
    // A larger request also takes the page, which grows. A much smaller request does not.
    assert_eq!(garbage(&mutator, 60_000, FREED | LEAF), first);
    assert_eq!(heap.statistics().large_bytes as usize, large::footprint(60_000));
    collect(&mutator);
    if large::footprint(WIDE) < large::footprint(60_000) {
        assert_ne!(garbage(&mutator, WIDE, LEAF), first);
    }
    assert_ne!(garbage(&mutator, 70_000, LEAF), first);
    leave(mutator);
}

#[test]
fn memory_that_waits_gives_way() {
    let most = 8 * UNIT;
    let (heap, mutator) = attached(Options { most, ..Options::new() }, Runtime::new());
    let wait = || {
        let count = most / large::footprint(60_000);
        let all: Vec<_> = (0..count).map(|_| garbage(&mutator, 60_000, LEAF)).collect();
        collect(&mutator);
        assert!(heap.statistics().empty_bytes as usize >= most - UNIT);
        all
    };
    // Waiting pages serve objects that take the same number of units and need less memory.
    let all = wait();
    if large::footprint(WIDE) < large::footprint(60_000) {
        for _ in 0..all.len() {
            assert!(all.contains(&garbage(&mutator, WIDE, LEAF)));
        }
        collect(&mutator);
    }
    // Waiting pages also serve small objects, and larger objects.
    wait();
    let before = heap.statistics().cycles;
    (0..6 * UNIT / 1024).for_each(|_| _ = garbage(&mutator, 1024, LEAF));
    assert_eq!(heap.statistics().cycles, before);
    collect(&mutator);
    heap.trim();
    wait();
    garbage(&mutator, 6 * UNIT, LEAF);
    collect(&mutator);
    heap.trim();
    assert_eq!(heap.statistics().empty_bytes, 0);
    assert!(heap.statistics().peak_bytes <= most as u64);
    leave(mutator);
}

#[test]
fn one_that_grows_in_place_counts_what_it_has() {
    let most = 4 * UNIT - (8 << 10);
    let (heap, mutator) = attached(Options { most, ..Options::new() }, Runtime::new());
    let at = kept(&mutator, WIDE);
    // SAFETY: the object is live, and only the test changes it.
    let resize = |size| unsafe { mutator.resize(at, size) };
    assert!(resize(50_000));
    assert_eq!(heap.statistics().large_bytes as usize, large::footprint(50_000));
    assert!(resize(WIDE));
    assert_eq!(heap.statistics().large_bytes as usize, large::footprint(50_000));
    assert!(!resize(UNIT + 1));
    // Without room, the object keeps its size.
    while !kept(&mutator, UNIT).is_null() {}
    while !kept(&mutator, 1024).is_null() {}
    if large::footprint(50_000) < UNIT {
        assert!(!resize(UNIT));
    }
    assert!(resize(50_000));
    assert!(heap.statistics().peak_bytes <= most as u64);
    leave(mutator);
}

#[test]
fn one_that_grows_in_place_is_zero_where_it_grows_if_it_is_traced() {
    let (_heap, mutator) = attached(Options::new(), Runtime::new());
    let first = garbage(&mutator, 36_800, LEAF);
    dirty(first, 36_800);
    collect(&mutator);
    let at = garbage(&mutator, WIDE, TRACED);
    assert_eq!(at, first, "the memory of the dead one");
    let behind_are_zero = |size: usize, from: usize| {
        // SAFETY: nothing collects, so the object is live; only the test changes it.
        assert!(unsafe { mutator.resize(at, size) });
        // SAFETY: within the bytes of the object.
        (from..size).all(|n| unsafe { at.wrapping_add(n).read() } == 0)
    };
    assert!(behind_are_zero(36_800, WIDE));
    // The object shrinks and grows again. The bytes that were written before are zero then.
    dirty(at, 36_800);
    assert!(behind_are_zero(WIDE, WIDE));
    assert!(behind_are_zero(60_000, WIDE));
    leave(mutator);
}

#[test]
fn a_size_that_no_memory_has_is_refused_at_once() {
    let (heap, mutator) = attached(Options::new(), Runtime::new());
    heap.account(100);
    // There are waiting pages, of small and of large objects.
    garbage(&mutator, 100, LEAF);
    garbage(&mutator, WIDE, LEAF);
    collect(&mutator);
    assert!(heap.statistics().empty_bytes > 0);
    let cycles = heap.statistics().cycles;
    for size in [usize::MAX, usize::MAX - 7, usize::MAX - UNIT + 1, usize::MAX / 2, 1 << 60] {
        assert!(alloc(&mutator, size, TRACED).is_null());
    }
    // Nothing is collected or given back for an impossible request.
    assert_eq!(heap.statistics().cycles, cycles);
    assert!(heap.statistics().empty_bytes > 0);
    // The same holds for a request above the limit.
    heap.set_target(0, 0, 4 * UNIT);
    assert!(alloc(&mutator, 4 * UNIT + 1, TRACED).is_null());
    assert_eq!(heap.statistics().cycles, cycles);
    leave(mutator);
}

/// Leaves dirty memory of a heap of objects of `units` units in the chunk.
fn leave_dirty(units: usize) {
    let (heap, mutator) = attached(Options::new(), Runtime::new());
    // (Under Miri the window has 8 MiB.)
    let count = if cfg!(miri) { 5 } else { 16 };
    // Kept until all are written: memory freed in between may go to another test.
    let all: Vec<_> = (0..count).map(|_| kept(&mutator, units * UNIT)).collect();
    all.into_iter().for_each(|at| dirty(at, units * UNIT));
    leave(mutator);
    drop(heap);
}

#[test]
fn a_limit_holds_on_memory_that_was_used() {
    // Slightly less than 6 units, so that little is left behind the object.
    let size = 6 * UNIT - (4 << 10);
    leave_dirty(6);
    let most = 4 * 6 * UNIT + large::footprint(size);
    let (heap, mutator) = attached(Options { most, ..Options::new() }, Runtime::new());
    let fits = (0..64).take_while(|_| !kept(&mutator, size).is_null()).count();
    assert_eq!(fits, 5);
    let peak = heap.statistics().peak_bytes as usize;
    assert!(peak <= most, "{peak} of {most}");
    leave(mutator);
}

#[test]
fn a_limit_holds_for_several_mutators() {
    const OBJECTS: usize = if cfg!(miri) { 2 } else { 400 };
    // A page of this size is too large to wait with the heap. Dirty memory takes long to zero.
    let size = 8 * UNIT;
    leave_dirty(8);
    let most = 5 * size;
    let heap = &Heap::new(Options { most, ..Options::new() }, Runtime::new()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                let mutator = heap.attach().unwrap();
                for _ in 0..OBJECTS {
                    let at = alloc(&mutator, size, TRACED);
                    if !at.is_null() {
                        // SAFETY: the last byte of an object of `size` bytes.
                        assert_eq!(unsafe { at.wrapping_add(size - 1).read() }, 0);
                        dirty(at, size);
                    }
                }
                leave(mutator);
            });
        }
    });
    let peak = heap.statistics().peak_bytes as usize;
    assert!(peak <= most, "{peak} of {most}");
}

#[test]
fn the_peak_has_no_pages_that_are_gone() {
    let options = Options { least: 64 << 20, ..Options::new() };
    let (heap, mutator) = attached(options, Runtime::new());
    // Pages of small objects, pages of large objects that would wait, and a page that would not.
    for size in [1 << 10, 2 * UNIT, 32 * UNIT] {
        for _ in 0..32 * UNIT / size {
            assert!(!alloc(&mutator, size, LEAF).is_null());
        }
    }
    collect(&mutator);
    heap.trim();
    let peak = heap.statistics().peak_bytes;
    assert!(peak >= 96 * UNIT as u64);
    mutator.external(peak as isize);
    let now = heap.statistics();
    assert_eq!(now.peak_bytes - peak, now.in_use_bytes + now.empty_bytes + now.large_bytes);
    leave(mutator);
}
