//! What is done with objects to which nothing leads: finalizers with contexts and priorities, guardians, weak passes.

extern crate std;

use core::ffi::c_void;
use core::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::vec::Vec;

use super::super::TRACED;
use super::super::WeakPass;
use super::super::raw::{Heap, Mutator, Options, Runtime, Tracer, VERIFY_HEAP};

/// Objects of these tests are two references and a number.
#[repr(C)]
struct Pair {
    to: [*mut u8; 2],
    serial: usize,
}

unsafe extern "C" fn trace(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
    let pair = object.cast::<Pair>();
    // SAFETY: every object of these tests is a pair, or zero.
    let slots = unsafe { &raw mut (*pair).to }.cast::<*mut u8>();
    for n in 0..2 {
        // SAFETY: a slot of the pair.
        unsafe { tracer.mark_slot(slots.wrapping_add(n)) };
    }
}

fn heap(options: Options) -> (Heap, Mutator) {
    let options = Options { verify: VERIFY_HEAP, ..options };
    let heap = Heap::new(options, Runtime { trace: Some(trace), ..Runtime::new() }).unwrap();
    let mutator = heap.attach().unwrap();
    (heap, mutator)
}

fn pair(mutator: &Mutator, serial: usize, first: *mut u8) -> *mut u8 {
    // SAFETY: no collection comes before the object is led to: the heaps are small.
    let at = unsafe { mutator.alloc(size_of::<Pair>(), TRACED) };
    // SAFETY: fresh, and a pair.
    unsafe { at.cast::<Pair>().write(Pair { to: [first, ptr::null_mut()], serial }) };
    at
}

fn serial(object: *mut u8) -> usize {
    // SAFETY: the object is live.
    unsafe { (*object.cast::<Pair>()).serial }
}

fn root(mutator: &Mutator, object: *mut u8) -> *mut *mut u8 {
    // SAFETY: the object is live.
    unsafe { mutator.new_root(object) }.unwrap()
}

fn collect(mutator: &Mutator) {
    // SAFETY: what is wanted is led to by roots.
    unsafe { mutator.collect() };
}

fn retrieved(mutator: &Mutator, guardian: u32) -> Vec<usize> {
    // SAFETY: the guardian's object lives.
    core::iter::from_fn(|| unsafe { mutator.retrieve(guardian) }).map(serial).collect()
}

/// Puts the serials of the object and the context down in the context's second object: for one thread.
unsafe extern "C" fn note(object: *mut c_void, context: *mut c_void) {
    let context = context.cast::<Pair>();
    // SAFETY: both are pairs, kept while this runs; the context's first reference is another.
    unsafe {
        let log = (*context).to[1].cast::<Pair>();
        (*log).serial = (*log).serial * 10 + serial(object.cast());
    }
}

#[test]
fn a_context_lives_as_long_as_its_object_and_keeps_it_not() {
    let (heap, mutator) = heap(Options::new());
    let log = root(&mutator, pair(&mutator, 0, ptr::null_mut()));
    let kept = root(&mutator, pair(&mutator, 1, ptr::null_mut()));
    // SAFETY: roots lead to all that is wanted; objects are pairs.
    unsafe {
        // The context leads to the object.
        let context = pair(&mutator, 5, *kept);
        (*context.cast::<Pair>()).to[1] = *log;
        let weak = mutator.new_weak(context).unwrap();
        assert!(mutator.finalize_with(*kept, note, context, 0));
        collect(&mutator);
        assert!(!(*weak).is_null(), "kept by the object");
        *kept = ptr::null_mut();
        collect(&mutator);
        assert!((*weak).is_null(), "its object is not alive, though it is due");
        assert_eq!(heap.statistics().finalizers_pending, 1);
        collect(&mutator);
        assert_eq!(mutator.run_finalizers(9), 1);
        assert_eq!(serial(*log), 1);
        assert!(!mutator.finalize_with(*log, note, ptr::null_mut(), 4), "no such priority");
        mutator.free_weak(weak);
        mutator.free_root(log);
        mutator.free_root(kept);
        mutator.detach();
    }
}

#[test]
fn priorities_order_what_is_due_together() {
    let (heap, mutator) = heap(Options::new());
    let log = root(&mutator, pair(&mutator, 0, ptr::null_mut()));
    // SAFETY: roots lead to all that is wanted; objects are pairs.
    unsafe {
        let context = root(&mutator, pair(&mutator, 9, ptr::null_mut()));
        (*(*context).cast::<Pair>()).to[1] = *log;
        // 2 leads to 1, and is of a lower priority; 3 of a higher leads to 4 of a lower.
        let objects = root(&mutator, ptr::null_mut());
        *objects = pair(&mutator, 1, ptr::null_mut());
        assert!(mutator.finalize_with(*objects, note, *context, 1));
        *objects = pair(&mutator, 2, *objects);
        assert!(mutator.finalize_with(*objects, note, *context, 3));
        let four = pair(&mutator, 4, *objects);
        assert!(mutator.finalize_with(four, note, *context, 2));
        *objects = pair(&mutator, 3, four);
        assert!(mutator.finalize_with(*objects, note, *context, 0));
        *objects = ptr::null_mut();
        collect(&mutator);
        assert_eq!(heap.statistics().finalizers_pending, 1, "all else is led to by the first");
        assert_eq!(mutator.run_finalizers(9), 1);
        assert_eq!(serial(*log), 3);
        collect(&mutator);
        // 1 is of a higher priority than 4, which leads to it, and is due with it; 4 keeps 2.
        assert_eq!(mutator.run_finalizers(9), 2);
        collect(&mutator);
        assert_eq!(mutator.run_finalizers(9), 1);
        assert_eq!(serial(*log), 3142);
        for root in [log, context, objects] {
            mutator.free_root(root);
        }
        mutator.detach();
    }
}

#[test]
fn a_guardian_retrieves_what_has_become_inaccessible() {
    let (heap, mutator) = heap(Options::new());
    let guardian = root(&mutator, pair(&mutator, 100, ptr::null_mut()));
    // SAFETY: roots lead to all that is wanted; objects are pairs.
    unsafe {
        let number = mutator.new_guardian(*guardian).unwrap();
        let kept = root(&mutator, pair(&mutator, 1, ptr::null_mut()));
        let second = pair(&mutator, 2, *kept);
        *kept = pair(&mutator, 3, second);
        let weak = mutator.new_weak(*kept).unwrap();
        assert!(mutator.guard(number, *kept, *kept));
        assert!(mutator.guard(number, second, second));
        assert!(!mutator.guard(number + 7, second, second), "no such guardian");
        collect(&mutator);
        assert_eq!(retrieved(&mutator, number), []);
        *kept = ptr::null_mut();
        collect(&mutator);
        assert!(!(*weak).is_null(), "it was never dead");
        collect(&mutator);
        let mut found = retrieved(&mutator, number);
        found.sort_unstable();
        assert_eq!(found, [2, 3], "both, though one leads to the other");
        collect(&mutator);
        assert!((*weak).is_null());
        assert_eq!(retrieved(&mutator, number), [], "once");

        // Another in its stead, and twice with one guardian.
        *kept = pair(&mutator, 4, ptr::null_mut());
        let stead = pair(&mutator, 5, ptr::null_mut());
        weak.write(*kept);
        assert!(mutator.guard(number, *kept, stead));
        assert!(mutator.guard(number, *kept, stead));
        collect(&mutator);
        *kept = ptr::null_mut();
        collect(&mutator);
        assert!((*weak).is_null(), "the object itself goes");
        assert_eq!(heap.guarded().0, 2);
        assert_eq!(retrieved(&mutator, number), [5, 5]);
        mutator.free_weak(weak);
        mutator.free_root(kept);
        mutator.free_root(guardian);
        mutator.detach();
    }
}

#[test]
fn a_guardian_goes_with_its_object_and_its_number_is_used_again() {
    let (heap, mutator) = heap(Options::new());
    // SAFETY: roots lead to all that is wanted; objects are pairs.
    unsafe {
        let first = root(&mutator, pair(&mutator, 1, ptr::null_mut()));
        let number = mutator.new_guardian(*first).unwrap();
        let object = pair(&mutator, 2, ptr::null_mut());
        let weak = mutator.new_weak(object).unwrap();
        assert!(mutator.guard(number, object, object));
        collect(&mutator);
        assert_eq!(heap.guarded().0, 1);
        *first = ptr::null_mut();
        collect(&mutator);
        assert!((*weak).is_null(), "what it had retrieved goes with it");
        assert_eq!(heap.guarded().0, 0);

        // A guardian to which another's object leads, which is retrieved: it lives, and retrieves.
        *first = pair(&mutator, 3, ptr::null_mut());
        assert_eq!(mutator.new_guardian(*first), Some(number));
        let inner = pair(&mutator, 4, ptr::null_mut());
        let inner_number = mutator.new_guardian(inner).unwrap();
        assert_ne!(inner_number, number);
        let holder = pair(&mutator, 5, inner);
        let last = pair(&mutator, 6, ptr::null_mut());
        assert!(mutator.guard(number, holder, holder) && mutator.guard(inner_number, last, last));
        collect(&mutator);
        assert_eq!(retrieved(&mutator, inner_number), [6]);
        assert_eq!(retrieved(&mutator, number), [5]);
        collect(&mutator);
        assert_eq!(heap.guarded().0, 0);
        mutator.free_weak(weak);
        mutator.free_root(first);
        mutator.detach();
    }
}

#[test]
fn guardians_and_contexts_move() {
    let (_heap, mutator) = heap(Options { compact: true, ..Options::new() });
    // SAFETY: roots lead to all that is wanted; objects are pairs.
    unsafe {
        let guardian = root(&mutator, ptr::null_mut());
        let log = root(&mutator, ptr::null_mut());
        let kept = root(&mutator, ptr::null_mut());
        let stead = root(&mutator, ptr::null_mut());
        let context = root(&mutator, ptr::null_mut());
        // Sparse pages, of which these are in one that goes.
        let spread = if cfg!(miri) { 100 } else { 60_000 };
        let mut roots = Vec::new();
        for n in 0..spread {
            let at = pair(&mutator, n + 10, ptr::null_mut());
            if n % (spread / 10) == 3 {
                roots.push(root(&mutator, at));
            }
            for (when, cell) in [guardian, log, kept, stead, context].into_iter().enumerate() {
                if n == spread / 2 + when {
                    *cell = at;
                }
            }
        }
        let number = mutator.new_guardian(*guardian).unwrap();
        assert!(mutator.guard(number, *kept, *stead));
        (*(*log).cast::<Pair>()).serial = 0;
        (*(*kept).cast::<Pair>()).serial = 7;
        (*(*stead).cast::<Pair>()).serial = 8;
        (*(*context).cast::<Pair>()).to[1] = *log;
        assert!(mutator.finalize_with(*kept, note, *context, 0));
        assert!(mutator.unprotect(*guardian));
        let before = [*guardian, *kept, *stead, *context];
        *stead = ptr::null_mut();
        *context = ptr::null_mut();
        mutator.compact();
        mutator.compact();
        assert!(cfg!(miri) || (*guardian != before[0] && *kept != before[1]), "they moved");
        *kept = ptr::null_mut();
        collect(&mutator);
        assert_eq!(mutator.run_finalizers(1), 1);
        assert_eq!(serial(*log), 7);
        assert_eq!(retrieved(&mutator, number), [8]);
        mutator.detach();
    }
}

static TOLD: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn told(context: *mut c_void) {
    assert!(context.is_null());
    TOLD.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn nothing(_: *mut c_void, _: *mut c_void) {}

#[test]
fn the_runtime_is_told_that_some_are_due() {
    let (heap, mutator) = heap(Options::new());
    // SAFETY: roots lead to all that is wanted; objects are pairs.
    unsafe {
        heap.tell_when_due(Some(told), ptr::null_mut());
        collect(&mutator);
        assert_eq!(TOLD.load(Ordering::Relaxed), 0);
        for _ in 0..3 {
            let object = pair(&mutator, 1, ptr::null_mut());
            assert!(mutator.finalize(object, nothing, ptr::null_mut()));
        }
        collect(&mutator);
        assert_eq!(TOLD.load(Ordering::Relaxed), 1, "once a collection");
        assert_eq!(mutator.run_finalizers(9), 3);
        let guardian = root(&mutator, pair(&mutator, 1, ptr::null_mut()));
        let number = mutator.new_guardian(*guardian).unwrap();
        let object = pair(&mutator, 1, ptr::null_mut());
        assert!(mutator.guard(number, object, object));
        collect(&mutator);
        assert_eq!(TOLD.load(Ordering::Relaxed), 2);
        heap.tell_when_due(None, ptr::null_mut());
        let object = pair(&mutator, 1, ptr::null_mut());
        assert!(mutator.finalize(object, nothing, ptr::null_mut()));
        collect(&mutator);
        assert_eq!(TOLD.load(Ordering::Relaxed), 2);
        mutator.free_root(guardian);
        mutator.detach();
    }
}

/// A table of the runtime's own.
type Table = std::sync::Mutex<Vec<(*mut u8, usize)>>;

unsafe extern "C" fn look_through(tracer: &Tracer, context: *mut c_void) {
    // SAFETY: the test's table, which outlives its heap.
    let mut table = unsafe { &*context.cast::<Table>() }.lock().unwrap();
    table.retain_mut(|(object, _)| {
        *object = tracer.where_is(*object);
        !object.is_null()
    });
}

fn check_table(options: Options) {
    let in_steps = options.incremental;
    let (heap, mutator) = heap(options);
    let table = Table::default();
    let context = (&raw const table).cast_mut().cast::<c_void>();
    // One pointer: a function may have an address for each place that makes one of it.
    let pass: WeakPass = look_through;
    let count = if cfg!(miri) { 60 } else { 20_000 };
    // SAFETY: roots lead to all that is wanted; objects are pairs.
    unsafe {
        assert!(heap.add_weak_pass(pass, context));
        let mut roots = Vec::new();
        for n in 0..count {
            let object = pair(&mutator, n, ptr::null_mut());
            table.lock().unwrap().push((object, n));
            if n % 20 == 0 {
                roots.push(root(&mutator, object));
            }
        }
        if in_steps {
            mutator.ask_compact();
            let mut n = count;
            while !mutator.step(20_000) {
                // What is made while objects move is not dead, though it has no mark.
                let object = pair(&mutator, n, ptr::null_mut());
                table.lock().unwrap().push((object, n));
                roots.push(root(&mutator, object));
                n += 20;
            }
        } else {
            mutator.compact();
        }
        let check = || {
            let table = table.lock().unwrap();
            assert_eq!(table.len(), roots.len());
            for (&(object, n), root) in table.iter().zip(&roots) {
                assert_eq!((object, serial(object)), (**root, n));
            }
        };
        check();
        assert!(cfg!(miri) || heap.statistics().moved_objects > 100);
        collect(&mutator);
        check();
        assert!(heap.remove_weak_pass(pass, context));
        assert!(!heap.remove_weak_pass(pass, context));
        mutator.detach();
    }
}

#[test]
fn a_table_drops_what_is_dead_and_follows_what_moves() {
    check_table(Options::new());
    check_table(Options { generations: true, ..Options::new() });
    check_table(Options { incremental: true, ..Options::new() });
    check_table(Options { incremental: true, generations: true, ..Options::new() });
}
