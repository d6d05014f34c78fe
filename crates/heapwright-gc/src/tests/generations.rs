//! Minor collections, and the references that must be remembered for them.

extern crate std;

use std::vec::Vec;

use super::super::heap;
use super::super::raw::{Heap, Mutator, Options, Runtime, VERIFY_BARRIERS, VERIFY_HEAP};
use super::{collect, leave_root, node, references, root, serial, trace};

const WIDTH: usize = if cfg!(miri) { 4 } else { 500 };
const ROUNDS: usize = if cfg!(miri) { 8 } else { 300 };

fn options(incremental: bool) -> Options {
    Options {
        incremental,
        generations: true,
        least: if cfg!(miri) { 64 << 10 } else { 512 << 10 },
        step_ns: 5_000,
        verify: VERIFY_HEAP | VERIFY_BARRIERS,
        ..Options::new()
    }
}

fn heap_of(options: Options) -> Heap {
    Heap::new(options, Runtime { trace: Some(trace), ..Runtime::new() }).unwrap()
}

fn store(mutator: &Mutator, parent: *mut u8, place: usize, child: *mut u8) {
    // SAFETY: the parent is live and has this reference.
    unsafe { mutator.write(parent, references(parent).wrapping_add(place), child) };
}

fn load(parent: *mut u8, place: usize) -> *mut u8 {
    // SAFETY: the parent is live and has this reference.
    unsafe { references(parent).wrapping_add(place).read() }
}

/// Makes garbage, enough for about one collection. Under Miri it makes few objects, to save time.
fn churn(mutator: &Mutator) {
    let (count, width) = if cfg!(miri) { (8, 1800) } else { (400, 60) };
    for n in 0..count {
        node(mutator, n, width);
    }
}

fn old_table(mutator: &Mutator) -> (*mut u8, *mut *mut u8) {
    let table = node(mutator, 0, WIDTH);
    let root = root(mutator, table);
    collect(mutator);
    (table, root)
}

#[test]
fn what_only_old_objects_lead_to_lives() {
    for incremental in [false, true] {
        let heap = heap_of(options(incremental));
        let mutator = heap.attach().unwrap();
        let (table, root) = old_table(&mutator);
        let mut expected: Vec<Option<usize>> = std::vec![None; WIDTH];
        for round in 0..ROUNDS {
            // Pairs at one or more places of the table: only the first object of a pair leads to
            // the second. The second object of a pair at the next place gets a third object.
            for n in 0..1 + round % 5 {
                let place = (round * 31 + n * 7) % WIDTH;
                let first = node(&mutator, round, 2);
                store(&mutator, table, place, first);
                let second = node(&mutator, round + 1, 2);
                store(&mutator, first, 1, second);
                let first = load(table, (place + 1) % WIDTH);
                if !first.is_null() {
                    let third = node(&mutator, round + 2, 2);
                    store(&mutator, load(first, 1), 0, third);
                }
                expected[place] = Some(round);
            }
            churn(&mutator);
            for (place, expected) in expected.iter().enumerate() {
                let Some(round) = *expected else { continue };
                let first = load(table, place);
                assert_eq!((serial(first), serial(load(first, 1))), (round, round + 1));
                let third = load(load(first, 1), 0);
                assert!(third.is_null() || serial(third) > round);
                assert_eq!(heap.find(first), Some(first));
            }
        }
        let statistics = heap.statistics();
        let (cycles, minors) = (statistics.cycles, statistics.minor_cycles);
        assert!(minors >= 2 && (cfg!(miri) || minors > cycles / 2), "{minors} of {cycles}");
        leave_root(mutator, root);
    }
}

#[test]
fn what_was_old_and_dies_goes_with_a_major_collection() {
    let heap = heap_of(Options { verify: 0, ..options(false) });
    let mutator = heap.attach().unwrap();
    let (table, root) = old_table(&mutator);
    for round in 0..20 * ROUNDS {
        // Each large object lives long enough to become old, and then dies.
        let large = node(&mutator, round, 300);
        store(&mutator, table, round % WIDTH, large);
        churn(&mutator);
    }
    let statistics = heap.statistics();
    assert!(statistics.cycles > statistics.minor_cycles, "no major one of {}", statistics.cycles);
    assert!(cfg!(miri) || statistics.peak_bytes < 6 << 20, "{}", statistics.peak_bytes);
    collect(&mutator);
    assert!(heap.statistics().live_bytes < (WIDTH as u64 + 1) * 2560 + 10_000);
    leave_root(mutator, root);
}

#[test]
#[cfg(not(miri))]
fn within_a_scope_collections_are_minor() {
    for incremental in [false, true] {
        let heap = heap_of(Options { verify: 0, ..options(incremental) });
        let mutator = heap.attach().unwrap();
        // A first deferral tells the heap from the beginning that the program defers majors.
        mutator.defer_majors();
        mutator.resume_majors();
        let (table, root) = old_table(&mutator);
        let majors = || heap.statistics().cycles - heap.statistics().minor_cycles;
        let before = majors();
        mutator.defer_majors();
        let mut round = 0;
        while !mutator.is_major_owed() {
            let large = node(&mutator, round, 300);
            store(&mutator, table, round % WIDTH, large);
            churn(&mutator);
            round += 1;
        }
        (0..20).for_each(|_| churn(&mutator));
        assert_eq!(majors(), before, "of {} cycles", heap.statistics().cycles);
        assert!(heap.statistics().minor_cycles > 0);
        mutator.resume_majors();
        mutator.ask();
        // SAFETY: handles lead to all objects in use.
        while !unsafe { mutator.step(10_000) } {}
        assert_eq!(majors(), before + 1);
        assert!(!mutator.is_major_owed());
        leave_root(mutator, root);
    }
}

#[test]
fn what_could_not_be_remembered_is_looked_for() {
    let heap = heap_of(options(false));
    let mutator = heap.attach().unwrap();
    let (table, root) = old_table(&mutator);
    let inner: &heap::Heap = heap::of(heap.id()).unwrap();
    let mut places = Vec::new();
    for round in 0..20 {
        let young = node(&mutator, round, 1);
        inner.trace.marking.chunks.starved.set(1);
        store(&mutator, table, round % WIDTH, young);
        inner.trace.marking.chunks.starved.set(0);
        places.push(round % WIDTH);
        churn(&mutator);
        for &place in &places {
            assert_eq!(serial(load(table, place)) % WIDTH, place);
        }
    }
    leave_root(mutator, root);
}

#[cfg(not(miri))]
#[test]
fn a_second_store_into_a_slot_is_remembered_though_the_first_one_remembered_the_whole_object() {
    // A single page holds one object of this size, for which no place is remembered alone.
    let layout = crate::Layout::Single;
    let heap = heap_of(Options { layout, verify: 0, ..options(false) });
    let mutator = heap.attach().unwrap();
    // SAFETY: handles lead to all objects in use, and stores are reported.
    unsafe {
        mutator.collect();
        mutator.defer_majors();
        let parent = node(&mutator, 0, 10);
        let root = root(&mutator, parent);
        assert!(mutator.collect_young() && mutator.collect_young() && mutator.is_old(parent));
        for round in 1..4 {
            let child = node(&mutator, round, 0);
            store(&mutator, parent, 3, child);
            for _ in 0..3 {
                assert!(mutator.collect_young());
                assert_eq!((heap.find(child), load(parent, 3)), (Some(child), child), "{round}");
            }
        }
        leave_root(mutator, root);
    }
}
