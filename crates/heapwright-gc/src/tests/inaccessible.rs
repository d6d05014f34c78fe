//! Inaccessible objects: finalizers with contexts and priorities, guardians, weak passes.

extern crate std;

use core::ffi::c_void;
use core::ptr;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::vec::Vec;

use proptest::prelude::*;

use super::super::TRACED;
use super::super::WeakPass;
use super::super::raw::{Heap, Mutator, Options, Runtime, Tracer, VERIFY_BARRIERS, VERIFY_HEAP};
use super::{alloc, attached, collect, root};

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
    attached(options, Runtime { trace: Some(trace), ..Runtime::new() })
}

fn pair(mutator: &Mutator, serial: usize, first: *mut u8) -> *mut u8 {
    let at = alloc(mutator, size_of::<Pair>(), TRACED);
    // SAFETY: fresh, and a pair.
    unsafe { at.cast::<Pair>().write(Pair { to: [first, ptr::null_mut()], serial }) };
    at
}

fn serial(object: *mut u8) -> usize {
    // SAFETY: the object is live.
    unsafe { (*object.cast::<Pair>()).serial }
}

fn retrieved(mutator: &Mutator, guardian: u32) -> Vec<usize> {
    retrieved_with(mutator, guardian, serial)
}

fn retrieved_with<T>(mutator: &Mutator, guardian: u32, with: fn(*mut u8) -> T) -> Vec<T> {
    // SAFETY: the guardian's object lives.
    core::iter::from_fn(|| unsafe { mutator.retrieve(guardian) }).map(with).collect()
}

/// Appends the object's serial, as a digit, to the serial of the context's second object.
unsafe extern "C" fn note(object: *mut c_void, context: *mut c_void) {
    let context = context.cast::<Pair>();
    // SAFETY: both are pairs, kept while this runs. The context's second reference is another pair.
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
    // SAFETY: roots lead to all objects in use; objects are pairs.
    unsafe {
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
    // SAFETY: roots lead to all objects in use; objects are pairs.
    unsafe {
        let context = root(&mutator, pair(&mutator, 9, ptr::null_mut()));
        (*(*context).cast::<Pair>()).to[1] = *log;
        // 2 leads to 1, and has a lower priority; 3 leads to 4, and has a higher priority.
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
        // Object 1 is due with object 4, which leads to it, because object 1 has the higher
        // priority. Object 2 waits for object 4.
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
    // SAFETY: roots lead to all objects in use; objects are pairs.
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

        // A representative, registered twice with one guardian.
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
    // SAFETY: roots lead to all objects in use; objects are pairs.
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

        // A guardian lives, and retrieves, if a retrieved object leads to it.
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
fn what_dead_guardians_numbers_led_to_goes() {
    let (_heap, mutator) = heap(Options::new());
    // SAFETY: roots lead to all objects in use; objects are pairs.
    unsafe {
        let roots: Vec<_> =
            (0..5).map(|n| root(&mutator, pair(&mutator, n, ptr::null_mut()))).collect();
        let numbers: Vec<_> = (0..4).map(|n| mutator.new_guardian(*roots[n]).unwrap()).collect();
        // The third guardian watches the second. The second watches another object, with the third
        // as the representative.
        assert!(mutator.guard(numbers[2], *roots[1], *roots[1]));
        assert!(mutator.guard(numbers[1], *roots[4], *roots[2]));
        for dies in [0, 1, 3] {
            roots[dies].write(ptr::null_mut());
        }
        collect(&mutator);
        for dies in [2, 4] {
            roots[dies].write(ptr::null_mut());
        }
        collect(&mutator);
        assert_eq!(objects(&mutator), []);
        roots.into_iter().for_each(|root| mutator.free_root(root));
        mutator.detach();
    }
}

fn objects(mutator: &Mutator) -> Vec<*mut u8> {
    let mut all = Vec::new();
    // SAFETY: the closure calls nothing of the heap.
    unsafe {
        mutator.walk(|object, _, _| {
            all.push(object);
            true
        })
    };
    all
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Node {
    strong: [*mut u8; 2],
    weak: *mut u8,
    serial: usize,
}

unsafe extern "C" fn trace_node(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
    let slots = object.cast::<*mut u8>();
    // SAFETY: a slot of the node that is traced.
    unsafe { tracer.mark_slot(slots) };
    // SAFETY: a slot of the node that is traced.
    unsafe { tracer.mark_slot(slots.wrapping_add(1)) };
    // SAFETY: the weak slot of the node that is traced.
    unsafe { tracer.mark_weak(slots.wrapping_add(2)) };
}

unsafe extern "C" fn node_ends(object: *mut c_void, context: *mut c_void) {
    // SAFETY: the model's list, which outlives its heap.
    let ended = unsafe { &mut *context.cast::<Vec<usize>>() };
    // SAFETY: the object is a node, whole.
    ended.push(unsafe { (*object.cast::<Node>()).serial } - 1);
}

const NODES: usize = if cfg!(miri) { 8 } else { 24 };

#[derive(Default)]
struct Model {
    strong: [[Option<usize>; 2]; NODES],
    weak: [Option<usize>; NODES],
    /// Whether a weak handle leads to the node.
    seen: [bool; NODES],
    guardians: HashMap<usize, u32>,
    /// Guardian, object, representative.
    registered: Vec<[usize; 3]>,
    retrieved: Vec<[usize; 2]>,
    waiting: Vec<usize>,
    due: Vec<usize>,
}

impl Model {
    /// Collects by the definition. Returns the nodes that live.
    fn collect(&mut self, kept: &[usize]) -> HashSet<usize> {
        let mut live: HashSet<usize> = kept.iter().chain(&self.due).copied().collect();
        let mut fresh: HashSet<usize> = HashSet::new();
        loop {
            let before = live.len();
            for at in live.clone() {
                live.extend(self.strong[at].iter().flatten());
            }
            for &[guardian, object, representative] in &self.registered {
                if live.contains(&guardian) && live.contains(&object) {
                    live.insert(representative);
                }
            }
            for &[guardian, representative] in &self.retrieved {
                if live.contains(&guardian) {
                    live.insert(representative);
                }
            }
            if live.len() > before {
                continue;
            }
            let (found, rest): (Vec<_>, Vec<_>) =
                self.registered.iter().partition(|[guardian, object, _]| {
                    live.contains(guardian) && !live.contains(object)
                });
            self.registered = rest;
            if !found.is_empty() {
                for [guardian, _, representative] in found {
                    self.retrieved.push([guardian, representative]);
                    live.insert(representative);
                }
                continue;
            }
            let lives = |node: &usize| live.contains(node) && !fresh.contains(node);
            for &at in &live {
                self.weak[at] = self.weak[at].filter(lives);
            }
            for (node, seen) in self.seen.iter_mut().enumerate() {
                *seen &= lives(&node);
            }
            let (found, rest): (Vec<_>, _) =
                self.waiting.iter().partition(|node| !live.contains(node));
            self.waiting = rest;
            if found.is_empty() {
                break;
            }
            live.extend(&found);
            fresh.extend(&found);
            self.due.extend(found);
        }
        self.guardians.retain(|node, _| live.contains(node));
        self.registered.retain(|[guardian, ..]| live.contains(guardian));
        self.retrieved.retain(|[guardian, _]| live.contains(guardian));
        live
    }
}

/// Operations on nodes, with any numbers. Each list has an entry for each call of its operation.
#[derive(Clone, Debug)]
struct Round {
    /// From, slot (the third is weak), to.
    stores: Vec<(usize, usize, usize)>,
    guardians: Vec<usize>,
    /// Guardian, object, representative.
    registers: Vec<(usize, usize, usize)>,
    finalizers: Vec<usize>,
    kept: Vec<usize>,
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    use proptest::collection::vec as some;
    let any = any::<usize>;
    let round = (
        some((any(), 0..3_usize, any()), 0..2 * NODES),
        some(any(), 0..4),
        some((any(), any(), any()), 0..8),
        some(any(), 0..6),
        some(any(), 0..4),
    );
    let round = round.prop_map(|(stores, guardians, registers, finalizers, kept)| Round {
        stores,
        guardians,
        registers,
        finalizers,
        kept,
    });
    some(round, 1..5)
}

/// At the start of each round every number has a node, an old or a new one.
fn check(options: Options, rounds: &[Round], in_steps: bool) {
    let options = Options { verify: VERIFY_HEAP | VERIFY_BARRIERS, ..options };
    let runtime = Runtime { trace: Some(trace_node), ..Runtime::new() };
    let (_heap, mutator) = attached(options, runtime);
    let mut ended: Vec<usize> = Vec::new();
    let context = (&raw mut ended).cast::<c_void>();
    let mut model = Model::default();
    // SAFETY: roots lead to all objects in use while stores are made; objects are nodes.
    unsafe {
        let roots: Vec<_> = (0..NODES).map(|_| root(&mutator, ptr::null_mut())).collect();
        let handles: Vec<_> =
            (0..NODES).map(|_| mutator.new_weak(ptr::null_mut()).unwrap()).collect();
        for round in rounds {
            for (node, root) in roots.iter().enumerate() {
                if (**root).is_null() {
                    let at = mutator.alloc(size_of::<Node>(), TRACED);
                    (*at.cast::<Node>()).serial = node + 1;
                    **root = at;
                    mutator.set_weak(handles[node], at);
                    model.strong[node] = [None; 2];
                    model.weak[node] = None;
                    model.seen[node] = true;
                }
            }
            let at = |node: usize| *roots[node % NODES];
            for &(from, slot, to) in &round.stores {
                let place = at(from).cast::<*mut u8>().wrapping_add(slot);
                mutator.write(at(from), place, at(to));
                let to = Some(to % NODES);
                match slot {
                    2 => model.weak[from % NODES] = to,
                    _ => model.strong[from % NODES][slot] = to,
                }
            }
            for &node in &round.guardians {
                let number = mutator.new_guardian(at(node)).unwrap();
                // One guardian for each node: the model knows guardians by their nodes.
                if model.guardians.contains_key(&(node % NODES)) {
                    continue;
                }
                model.guardians.insert(node % NODES, number);
            }
            for &(guardian, object, representative) in &round.registers {
                let all: BTreeSet<_> = model.guardians.keys().copied().collect();
                if let Some(&guardian) = all.iter().nth(guardian % all.len().max(1)) {
                    let number = model.guardians[&guardian];
                    assert!(mutator.guard(number, at(object), at(representative)));
                    model.registered.push([guardian, object % NODES, representative % NODES]);
                }
            }
            for &node in &round.finalizers {
                assert!(mutator.finalize(at(node), node_ends, context));
                model.waiting.push(node % NODES);
            }
            let kept: Vec<_> = round.kept.iter().map(|node| node % NODES).collect();
            for (node, root) in roots.iter().enumerate() {
                if !kept.contains(&node) {
                    **root = ptr::null_mut();
                }
            }
            if in_steps {
                mutator.ask();
                while !mutator.step(1) {}
                model.collect(&kept);
            }
            collect(&mutator);
            let live = model.collect(&kept);
            for at in objects(&mutator) {
                roots[(*at.cast::<Node>()).serial - 1].write(at);
            }
            let address = |node: Option<usize>| node.map_or(ptr::null_mut(), |node| *roots[node]);
            for node in 0..NODES {
                let at = *roots[node];
                assert_eq!(!at.is_null(), live.contains(&node), "{node}");
                assert_eq!(*handles[node], address(Some(node).filter(|&node| model.seen[node])));
                if !at.is_null() {
                    let Node { strong, weak, .. } = at.cast::<Node>().read();
                    assert_eq!(strong, model.strong[node].map(address), "{node}");
                    assert_eq!(weak, address(model.weak[node]), "{node}, its weak slot");
                }
            }
            for (&guardian, &number) in &model.guardians {
                let mut found: Vec<_> =
                    retrieved_with(&mutator, number, |node| (*node.cast::<Node>()).serial - 1);
                found.sort_unstable();
                let mut expected: Vec<_> = model
                    .retrieved
                    .iter()
                    .filter(|[of, _]| *of == guardian)
                    .map(|of| of[1])
                    .collect();
                expected.sort_unstable();
                assert_eq!(found, expected);
            }
            model.retrieved.clear();
            assert_eq!(mutator.run_finalizers(usize::MAX), model.due.len());
            assert_eq!(core::mem::take(&mut ended), core::mem::take(&mut model.due));
        }
        mutator.detach();
    }
}

proptest! {
    #![proptest_config(crate::testing::cases(96))]
    #[test]
    fn what_is_done_with_the_inaccessible_is_what_the_definition_says(
        incremental in any::<bool>(),
        generations in any::<bool>(),
        compact in any::<bool>(),
        // (A minor collection may judge some nodes before others.)
        in_steps in any::<bool>(),
        rounds in rounds(),
    ) {
        let options = Options { incremental, generations, compact, ..Options::new() };
        check(options, &rounds, in_steps && !generations);
    }
}

#[test]
fn guardians_and_contexts_move() {
    let (_heap, mutator) = heap(Options { compact: true, ..Options::new() });
    // SAFETY: roots lead to all objects in use; objects are pairs.
    unsafe {
        let guardian = root(&mutator, ptr::null_mut());
        let log = root(&mutator, ptr::null_mut());
        let kept = root(&mutator, ptr::null_mut());
        let stead = root(&mutator, ptr::null_mut());
        let context = root(&mutator, ptr::null_mut());
        // Pages are sparse, and the page of these objects is evacuated.
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
    // SAFETY: roots lead to all objects in use; objects are pairs.
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
    // Kept in one variable, because the compiler may give a function several addresses.
    let pass: WeakPass = look_through;
    let count = if cfg!(miri) { 60 } else { 20_000 };
    // SAFETY: roots lead to all objects in use; objects are pairs.
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
                // An object that is made during moving lives, though it has no mark.
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
