//! Requests for minor collections, queries of an object's age, objects without barriers and without
//! `trace`, and sizing.

extern crate std;

use core::ffi::c_void;
use core::ptr;
use std::sync::Mutex;
use std::vec::Vec;

use super::super::raw::{Heap, Mutator, Options, Runtime, VERIFY_BARRIERS, VERIFY_HEAP};
use super::super::{Outcome, TRACED};
use super::{attached, leave, node, references, serial, trace};

fn verified(options: Options) -> (Heap, Mutator) {
    let options = Options { verify: VERIFY_HEAP | VERIFY_BARRIERS, ..options };
    attached(options, Runtime { trace: Some(trace), ..Runtime::new() })
}

#[test]
fn a_minor_collection_can_be_asked_for_and_ages_be_seen() {
    let options = Options { generations: true, least: 1 << 20, ..Options::new() };
    let (heap, mutator) = verified(options);
    // SAFETY: handles lead to all objects in use.
    unsafe {
        let old = mutator.new_root(node(&mutator, 1, 1)).unwrap();
        assert!(!mutator.is_old(*old));
        assert!(!mutator.collect_young(), "nothing is old yet: a major one");
        // Makes garbage until the heap has seen that minor collections pay.
        let kept = mutator.new_root(node(&mutator, 3, 8_000)).unwrap();
        let churn =
            || (0..if cfg!(miri) { 4 } else { 200 }).for_each(|n| _ = node(&mutator, n, 60));
        let tries = (0..20).take_while(|_| (churn(), !mutator.collect_young()).1).count();
        assert!(tries < 20 && mutator.is_old(*old) && mutator.is_old(*kept));
        let minors = heap.statistics().minor_cycles;
        churn();
        let young = mutator.new_root(node(&mutator, 2, 0)).unwrap();
        assert!(!mutator.is_old(*young));
        assert!(mutator.collect_young());
        assert_eq!(heap.statistics().minor_cycles, minors + 1);
        assert!(!mutator.is_old(*young), "it has survived once");
        mutator.write(*old, references(*old), *young);
        assert!(mutator.is_old(*old), "though it is remembered, and its mark is taken");
        churn();
        assert!(mutator.collect_young());
        assert!(mutator.is_old(*young) && mutator.is_old(*old));
        assert!(!mutator.is_old((*old).wrapping_add(8)), "within");
        assert!(!mutator.is_old(ptr::null_mut()));
        let minors = heap.statistics().minor_cycles;
        mutator.collect();
        assert_eq!(heap.statistics().minor_cycles, minors);
        assert!(mutator.pin(*young) && mutator.is_pinned(*young) && !mutator.is_pinned(*kept));
        mutator.unpin(*young);
        assert!(!mutator.is_pinned(*young));
        [old, young, kept].into_iter().for_each(|root| mutator.free_root(root));
        mutator.detach();
    }
    let (_heap, mutator) = verified(Options::new());
    // SAFETY: no object is in use.
    unsafe {
        assert!(!mutator.collect_young() && !mutator.collect_young(), "there are no generations");
        mutator.detach();
    }
}

fn check_unprotected(options: Options) {
    let in_steps = options.incremental;
    let (heap, mutator) = verified(options);
    let rounds = if cfg!(miri) { 5 } else { 200 };
    // SAFETY: handles lead to all objects in use.
    unsafe {
        let table = mutator.new_root(node(&mutator, 0, 8)).unwrap();
        assert!(mutator.unprotect(*table));
        mutator.collect();
        let mut expected = [0; 8];
        for round in 1..=rounds {
            let place = round % 8;
            let child = node(&mutator, round, 0);
            references(*table).wrapping_add(place).write(child);
            expected[place] = round;
            match (in_steps, round % 5) {
                (true, 0..4) => {
                    mutator.ask();
                    mutator.step(1_000);
                }
                (_, 0) => mutator.collect(),
                _ => _ = mutator.collect_young(),
            }
            for (place, &round) in expected.iter().enumerate().filter(|(_, round)| **round != 0) {
                assert_eq!(serial(references(*table).wrapping_add(place).read()), round);
            }
        }
        assert_eq!(heap.guarded().1, 1);
        table.write(ptr::null_mut());
        mutator.collect();
        assert_eq!(heap.guarded().1, 0, "it is forgotten when it has died");
        mutator.free_root(table);
        mutator.detach();
    }
}

#[test]
fn what_an_object_without_barriers_leads_to_is_kept() {
    for (incremental, generations) in [(false, false), (false, true), (true, false), (true, true)] {
        check_unprotected(Options { incremental, generations, ..Options::new() });
    }
}

#[test]
fn what_an_object_without_barriers_leads_to_stays_in_place_while_others_move() {
    for steps in [false, true] {
        let (heap, mutator) = verified(Options { incremental: true, ..Options::new() });
        let count = if cfg!(miri) { 60 } else { 20_000 };
        // SAFETY: handles lead to all objects in use.
        unsafe {
            let table = mutator.new_root(node(&mutator, 0, 4)).unwrap();
            assert!(mutator.unprotect(*table));
            let mut roots = Vec::new();
            for n in 0..count {
                let object = node(&mutator, n, 1);
                if n % 50 == 0 {
                    roots.push(mutator.new_root(object).unwrap());
                }
            }
            let middle = *roots[roots.len() / 2];
            if steps {
                mutator.ask_compact();
                let mut steps = 0;
                while !mutator.step(10_000) {
                    references(*table).wrapping_add(steps % 4).write(middle);
                    steps += 1;
                }
            } else {
                references(*table).write(middle);
                mutator.compact();
            }
            for n in 0..4 {
                let child = references(*table).wrapping_add(n).read();
                assert!(child.is_null() || child == *roots[roots.len() / 2], "{steps} {n}");
            }
            assert!(cfg!(miri) || heap.statistics().moved_objects > 10);
            mutator.detach();
        }
    }
}

#[test]
fn objects_without_a_trace_are_looked_through_word_for_word() {
    let options = Options { conservative: true, compact: true, ..Options::new() };
    let (heap, mutator) = attached(options, Runtime::new());
    let count = if cfg!(miri) { 40 } else { 3_000 };
    // SAFETY: the handle leads to all objects in use, by words of objects.
    unsafe {
        let root = mutator.new_root(ptr::null_mut()).unwrap();
        for n in 0..count {
            let at = mutator.alloc(48, TRACED).cast::<usize>();
            let words = [n, usize::MAX, (*root).addr() + if n == 0 { 0 } else { 24 }, 77];
            at.cast::<[usize; 4]>().write(words);
            *root = at.cast();
        }
        let weak = mutator.new_weak(mutator.alloc(48, TRACED)).unwrap();
        mutator.collect();
        mutator.compact();
        assert!((*weak).is_null(), "nothing leads there");
        let mut at = *root;
        for n in (0..count).rev() {
            let words = at.cast::<[usize; 4]>().read();
            assert_eq!([words[0], words[1], words[3]], [n, usize::MAX, 77], "where it was");
            if n > 0 {
                at = heap.find(at.with_addr(words[2])).expect("it is kept");
            }
        }
        mutator.free_root(root);
        mutator.detach();
    }
    // Without the option such objects hold no references.
    let (_heap, mutator) = attached(Options::new(), Runtime::new());
    // SAFETY: the handle leads to all objects in use.
    unsafe {
        let inner = mutator.alloc(48, TRACED);
        let root = mutator.new_root(mutator.alloc(48, TRACED)).unwrap();
        (*root).cast::<*mut u8>().write(inner);
        let weak = mutator.new_weak(inner).unwrap();
        mutator.collect();
        assert!((*weak).is_null());
        mutator.free_weak(weak);
        mutator.free_root(root);
        mutator.detach();
    }
}

type Outcomes = Mutex<(Vec<Outcome>, usize)>;

unsafe extern "C" fn policy(outcome: *const Outcome, context: *mut c_void) -> usize {
    // SAFETY: the test's list, which outlives its heap.
    let mut list = unsafe { &*context.cast::<Outcomes>() }.lock().unwrap();
    // SAFETY: the library passes a valid outcome.
    list.0.push(unsafe { outcome.read() });
    list.1
}

#[test]
fn a_policy_decides_how_much_a_heap_may_grow() {
    let least = 64 << 10;
    let options = Options { least, verify: 0, ..Options::new() };
    let (heap, mutator) = attached(options, Runtime { trace: Some(trace), ..Runtime::new() });
    let outcomes = Outcomes::default();
    let context = (&raw const outcomes).cast_mut().cast();
    // SAFETY: the handle leads to all objects in use.
    unsafe {
        let kept = mutator.new_root(node(&mutator, 0, 8_000)).unwrap();
        mutator.collect();
        heap.set_policy(Some(policy), context);
        mutator.collect();
        let own = heap.statistics();
        let last = *outcomes.lock().unwrap().0.last().unwrap();
        assert_eq!((last.live_bytes, last.cycles, last.minor), (own.live_bytes as usize, 2, false));
        assert_eq!(last.goal_bytes, own.goal_bytes as usize, "0: as the heap itself would");
        assert!(last.marked_bytes >= 64_000 && last.mutator_ns > 0);
        outcomes.lock().unwrap().1 = 10 << 20;
        mutator.collect();
        assert_eq!(heap.statistics().goal_bytes, 10 << 20);
        heap.set_target(0, least, 5 << 20);
        assert_eq!(heap.statistics().goal_bytes, 5 << 20);
        outcomes.lock().unwrap().1 = 1;
        mutator.collect();
        assert_eq!(heap.statistics().goal_bytes, own.live_bytes + least as u64);
        heap.set_policy(None, ptr::null_mut());
        heap.set_target(0, least, 0);
        mutator.collect();
        assert_eq!(heap.statistics().goal_bytes, own.goal_bytes);
        // By the square-root rule an idle heap gets nothing.
        heap.balance(64 << 20);
        mutator.collect();
        let idle = heap.statistics().goal_bytes;
        let busy = (0..40).map(|_| {
            for n in 0..if cfg!(miri) { 4 } else { 400 } {
                node(&mutator, n, 60);
            }
            mutator.collect();
            heap.statistics().goal_bytes
        });
        assert!(busy.max() > Some(idle), "more for a heap that allocates");
        mutator.free_root(kept);
        mutator.detach();
    }
}

#[test]
fn a_policy_is_told_what_the_heap_would_do_without_it() {
    let options = Options { least: 64 << 10, generations: true, ..Options::new() };
    let (heap, mutator) = attached(options, Runtime { trace: Some(trace), ..Runtime::new() });
    let others: Vec<_> = (0..3).map(|_| heap.attach_away().unwrap()).collect();
    let outcomes = Outcomes::default();
    // SAFETY: the list outlives the policy. The handle leads to all objects in use.
    unsafe {
        heap.set_policy(Some(policy), (&raw const outcomes).cast_mut().cast());
        let kept = mutator.new_root(node(&mutator, 0, 8_000)).unwrap();
        mutator.defer_majors();
        mutator.collect();
        for n in 0..6 {
            let next = node(&mutator, n, 8_000);
            references(next).write(*kept);
            *kept = next;
            assert!(mutator.collect_young());
            let told = outcomes.lock().unwrap().0.last().unwrap().goal_bytes;
            assert_eq!(told, heap.statistics().goal_bytes as usize);
        }
        // The answer is in force after minor collections, and the heap's own rule does not know it.
        outcomes.lock().unwrap().1 = 100 << 20;
        for n in 0..3 {
            let next = node(&mutator, n, 8_000);
            references(next).write(*kept);
            *kept = next;
            assert!(mutator.collect_young());
            assert_eq!(heap.statistics().goal_bytes, 100 << 20);
            assert!(outcomes.lock().unwrap().0.last().unwrap().goal_bytes < 2 << 20);
        }
        mutator.resume_majors();
        mutator.free_root(kept);
    }
    others.into_iter().for_each(leave);
    leave(mutator);
}
