//! Limits that leave hardly any room: a heap refuses allocations, instead of collecting for ever.

extern crate std;

use core::ptr;

use super::super::TRACED;
use super::super::raw::{Heap, Mutator, Options, Runtime};
use super::{Head, alloc, attached, collect, leave_root, references, root, trace};

const MOST: usize = 8 << 20;
/// Bytes of an object's slot.
const SLOT: usize = 4096;

/// Makes an object with one reference. Returns null if the allocation was refused.
fn link(mutator: &Mutator, to: *mut u8) -> *mut u8 {
    let at = alloc(mutator, SLOT, TRACED);
    if !at.is_null() {
        // SAFETY: fresh, and large enough.
        unsafe { at.cast::<Head>().write(Head { serial: 0, count: 1 }) };
        // SAFETY: the object is fresh, and has a slot for one reference.
        unsafe { references(at).write(to) };
    }
    at
}

/// Makes a heap that is full of one list. A root leads to the list's first object.
fn full(generations: bool) -> (Heap, Mutator, *mut *mut u8) {
    let options = Options { most: MOST, least: MOST, generations, ..Options::new() };
    let (heap, mutator) = attached(options, Runtime { trace: Some(trace), ..Runtime::new() });
    let cell = root(&mutator, ptr::null_mut());
    loop {
        // SAFETY: the root's cell.
        let at = link(&mutator, unsafe { cell.read() });
        if at.is_null() {
            return (heap, mutator, cell);
        }
        // SAFETY: the root's cell.
        unsafe { cell.write(at) };
    }
}

fn let_go(cell: *mut *mut u8, bytes: usize) {
    for _ in 0..bytes / SLOT {
        // SAFETY: the root's cell; the list is longer.
        unsafe { cell.write(references(cell.read()).read()) };
    }
}

/// Allocates `bytes` of garbage. Returns whether nothing was refused.
fn churn(mutator: &Mutator, bytes: usize) -> bool {
    (0..bytes / SLOT).all(|_| !link(mutator, ptr::null_mut()).is_null())
}

#[test]
fn a_heap_whose_limit_is_too_tight_refuses_soon() {
    let (heap, mutator, cell) = full(false);
    // The program makes only garbage, so without a stop it would collect for ever.
    let_go(cell, MOST / 100);
    let before = heap.statistics().cycles;
    assert!(!churn(&mutator, 20 * MOST));
    let took = heap.statistics().cycles - before;
    assert!((100..200).contains(&took), "{took} collections");
    // Later allocations are refused sooner, but not without a collection.
    for _ in 0..5 {
        let before = heap.statistics().cycles;
        assert!(!churn(&mutator, 20 * MOST));
        let took = heap.statistics().cycles - before;
        assert!((1..6).contains(&took), "{took} collections");
    }
    // Once objects are dropped, the heap recovers.
    let_go(cell, MOST / 2);
    assert!(churn(&mutator, 4 * MOST));
    leave_root(mutator, cell);
}

#[test]
fn minor_collections_that_do_with_little_go_on() {
    let (heap, mutator, cell) = full(true);
    let_go(cell, MOST / 100);
    let before = heap.statistics();
    assert!(churn(&mutator, MOST));
    let after = heap.statistics();
    assert!(after.minor_cycles - before.minor_cycles > 20);
    leave_root(mutator, cell);
}

#[test]
fn a_heap_with_a_little_room_goes_on() {
    let (_heap, mutator, cell) = full(false);
    let_go(cell, MOST / 20);
    assert!(churn(&mutator, 20 * MOST));
    leave_root(mutator, cell);
}

#[test]
fn collections_that_the_runtime_asks_for_count_as_none() {
    let (_heap, mutator, cell) = full(false);
    let_go(cell, MOST / 100);
    for _ in 0..20 {
        // Makes garbage, but less than there is room for.
        assert!(churn(&mutator, MOST / 200));
        collect(&mutator);
    }
    assert!(churn(&mutator, MOST / 200));
    leave_root(mutator, cell);
}

#[test]
fn no_allocation_collects_while_collections_are_deferred() {
    for size in [SLOT, 300_000] {
        let (heap, mutator, cell) = full(false);
        let_go(cell, MOST / 2);
        collect(&mutator);
        mutator.defer();
        let cycles = heap.statistics().cycles;
        // No root leads to this object.
        let loose = alloc(&mutator, SLOT, TRACED);
        while !alloc(&mutator, size, TRACED).is_null() {}
        assert_eq!(heap.statistics().cycles, cycles);
        assert_eq!(heap.find(loose), Some(loose));
        mutator.resume();
        assert!(churn(&mutator, MOST), "{size}");
        leave_root(mutator, cell);
    }
}
