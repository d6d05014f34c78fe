//! Large objects: what they count, and which pages of dead ones are used again.

extern crate std;

use std::vec::Vec;

use super::super::large;
use super::super::raw::{Heap, Mutator, Options, Runtime};
use super::super::{FREED, LEAF, TRACED};

const UNIT: usize = 64 << 10;
/// A little more than the largest slot.
const WIDE: usize = 33_000;

fn heap(options: Options) -> (Heap, Mutator) {
    let heap = Heap::new(options, Runtime::new()).unwrap();
    let mutator = heap.attach().unwrap();
    (heap, mutator)
}

/// An object that nothing leads to.
fn garbage(mutator: &Mutator, size: usize, kind: u32) -> *mut u8 {
    // SAFETY: everything wanted is led to by handles.
    let at = unsafe { mutator.alloc(size, kind) };
    assert!(!at.is_null());
    at
}

/// An object that a handle keeps, or null.
fn kept(mutator: &Mutator, size: usize) -> *mut u8 {
    // SAFETY: everything wanted is led to by handles.
    let at = unsafe { mutator.alloc(size, LEAF) };
    if !at.is_null() {
        // SAFETY: it is live; the handle goes with the heap.
        assert!(unsafe { mutator.new_root(at) }.is_some());
    }
    at
}

fn collect(mutator: &Mutator) {
    // SAFETY: everything wanted is led to by handles.
    unsafe { mutator.collect() };
}

fn dirty(at: *mut u8, size: usize) {
    // SAFETY: an object of so many bytes, which nobody else uses.
    unsafe { at.write_bytes(0xa5, size) };
}

fn leave(mutator: Mutator) {
    // SAFETY: nothing of the heap is used any more.
    unsafe { mutator.detach() };
}

#[test]
fn what_is_not_touched_does_not_count() {
    let (heap, mutator) = heap(Options::new());
    for (size, kind) in [(WIDE, LEAF), (WIDE, TRACED), (70_000, TRACED), (3 * UNIT + 1, LEAF)] {
        let before = heap.statistics().large_bytes;
        garbage(&mutator, size, kind);
        let counted = (heap.statistics().large_bytes - before) as usize;
        // Memory that the chunk had used is given back only where it is much.
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
    let (heap, mutator) = heap(Options { most, ..Options::new() });
    let fits = (0..64).take_while(|_| !kept(&mutator, WIDE).is_null()).count();
    assert_eq!(fits, most / large::footprint(WIDE));
    assert!(heap.statistics().peak_bytes <= most as u64);
    leave(mutator);
}

#[test]
fn the_next_object_of_about_that_size_has_the_memory_of_a_dead_one() {
    let (heap, mutator) = heap(Options::new());
    let first = garbage(&mutator, 40_000, LEAF);
    dirty(first, 40_000);
    collect(&mutator);
    let statistics = heap.statistics();
    assert_eq!(statistics.large_bytes, 0);
    assert_eq!(statistics.empty_bytes as usize, large::footprint(40_000));
    // A dead one is none, whatever waits there.
    assert_eq!(heap.find(first), None);
    // An eighth less will do; it is zero, as far as it was not.
    let traced = garbage(&mutator, 36_800, TRACED);
    assert_eq!(traced, first);
    // SAFETY: an object of so many bytes.
    assert!((0..36_800).all(|n| unsafe { traced.wrapping_add(n).read() } == 0));
    assert_eq!(heap.statistics().empty_bytes, 0);
    collect(&mutator);
    // So will more, which it then has; but not much less.
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
    let (heap, mutator) = heap(Options { most, ..Options::new() });
    let wait = || {
        let count = most / large::footprint(60_000);
        let all: Vec<_> = (0..count).map(|_| garbage(&mutator, 60_000, LEAF)).collect();
        collect(&mutator);
        assert!(heap.statistics().empty_bytes as usize >= most - UNIT);
        all
    };
    // To an object of the same length that needs less memory.
    let all = wait();
    if large::footprint(WIDE) < large::footprint(60_000) {
        for _ in 0..all.len() {
            assert!(all.contains(&garbage(&mutator, WIDE, LEAF)));
        }
        collect(&mutator);
    }
    // To small ones, and to larger ones.
    wait();
    let before = heap.statistics().cycles;
    (0..6 * UNIT / 1024).for_each(|_| _ = garbage(&mutator, 1024, LEAF));
    assert_eq!(heap.statistics().cycles, before);
    collect(&mutator);
    heap.trim();
    wait();
    garbage(&mutator, 6 * UNIT, LEAF);
    collect(&mutator);
    // To anybody, on request.
    heap.trim();
    assert_eq!(heap.statistics().empty_bytes, 0);
    assert!(heap.statistics().peak_bytes <= most as u64);
    leave(mutator);
}

#[test]
fn one_that_grows_in_place_counts_what_it_has() {
    let most = 4 * UNIT - (8 << 10);
    let (heap, mutator) = heap(Options { most, ..Options::new() });
    let at = kept(&mutator, WIDE);
    // SAFETY: the object is live, and the test's to change.
    let resize = |size| unsafe { mutator.resize(at, size) };
    assert!(resize(50_000));
    assert_eq!(heap.statistics().large_bytes as usize, large::footprint(50_000));
    // What was touched is there.
    assert!(resize(WIDE));
    assert_eq!(heap.statistics().large_bytes as usize, large::footprint(50_000));
    assert!(!resize(UNIT + 1));
    // Where there is no room, it stays what it is.
    while !kept(&mutator, UNIT).is_null() {}
    while !kept(&mutator, 1024).is_null() {}
    if large::footprint(50_000) < UNIT {
        assert!(!resize(UNIT));
    }
    assert!(resize(50_000));
    assert!(heap.statistics().peak_bytes <= most as u64);
    leave(mutator);
}
