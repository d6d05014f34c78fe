//! Weak references and ephemerons, against a model.
//!
//! ```text
//!   object   | serial | counts | strong ... | key, value ... | weak ... |
//! ```

extern crate std;

use core::ffi::c_void;
use std::collections::HashSet;
use std::vec::Vec;

use proptest::prelude::*;

use super::super::raw::{Heap, Mutator, Options, Runtime, Tracer, VERIFY_BARRIERS, VERIFY_HEAP};
use super::super::{LEAF, TRACED, heap};
use super::{alloc, attached, collect, leave, root};

const EACH: usize = 3;
const STRONG: usize = 0;
const PAIRS: usize = EACH;
const WEAK: usize = 3 * EACH;
const WORDS: usize = 4 * EACH;

#[repr(C)]
struct Node {
    serial: usize,
    words: [*mut u8; WORDS],
}

unsafe extern "C" fn trace(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
    let node = object.cast::<Node>();
    // SAFETY: every traced object of these tests is a node, or zero.
    let words = unsafe { &raw mut (*node).words }.cast::<*mut u8>();
    for n in 0..EACH {
        // SAFETY: a word of the node.
        tracer.mark(unsafe { words.wrapping_add(STRONG + n).read() });
        let pair = words.wrapping_add(PAIRS + 2 * n);
        // SAFETY: key and value are words of the node, which is marked.
        unsafe { tracer.mark_ephemeron(pair, pair.wrapping_add(1)) };
        // SAFETY: a word of the node, which is marked.
        unsafe { tracer.mark_weak(words.wrapping_add(WEAK + n)) };
    }
}

fn heap_of(options: Options) -> Heap {
    let verify = VERIFY_HEAP | VERIFY_BARRIERS;
    let options = Options { verify, least: 256 << 10, ..options };
    Heap::new(options, Runtime { trace: Some(trace), ..Runtime::new() }).unwrap()
}

fn node(mutator: &Mutator, serial: usize) -> *mut u8 {
    let at = alloc(mutator, size_of::<Node>(), TRACED);
    assert!(!at.is_null());
    // SAFETY: fresh, and a node.
    unsafe { (*at.cast::<Node>()).serial = serial };
    at
}

fn slot(object: *mut u8, word: usize) -> *mut *mut u8 {
    // SAFETY: a live node.
    unsafe { &raw mut (*object.cast::<Node>()).words }.cast::<*mut u8>().wrapping_add(word)
}

fn store(mutator: &Mutator, parent: *mut u8, word: usize, child: *mut u8) {
    // SAFETY: a live node, and its word.
    unsafe { mutator.write(parent, slot(parent, word), child) };
}

fn load(object: *mut u8, word: usize) -> *mut u8 {
    // SAFETY: a live node's word.
    unsafe { slot(object, word).read() }
}

type Edge = (usize, usize, usize);

/// Returns which objects live, by the definition.
fn living(roots: &HashSet<usize>, words: &[[Option<usize>; WORDS]]) -> HashSet<usize> {
    let mut live = roots.clone();
    loop {
        let before = live.len();
        for at in live.clone() {
            let words = &words[at];
            live.extend(words[STRONG..STRONG + EACH].iter().flatten());
            for pair in words[PAIRS..PAIRS + 2 * EACH].chunks(2) {
                if let [key, Some(value)] = *pair
                    && key.is_none_or(|key| live.contains(&key))
                {
                    live.insert(value);
                }
            }
        }
        if live.len() == before {
            return live;
        }
    }
}

const NODES: usize = if cfg!(miri) { 8 } else { 40 };

fn check(options: Options, edges: &[Vec<Edge>], kept: &[Vec<usize>], in_steps: bool) {
    let heap = heap_of(options);
    let mutator = heap.attach().unwrap();
    let roots: Vec<_> = (0..NODES).map(|n| root(&mutator, node(&mutator, n))).collect();
    // SAFETY: an owner may read and write its roots.
    let mut places: Vec<_> = roots.iter().map(|root| unsafe { root.read() }).collect();
    let mut words = std::vec![[None; WORDS]; NODES];
    for (edges, kept) in edges.iter().zip(kept) {
        for &(from, word, to) in edges {
            let [from, to] = [from % NODES, to % NODES];
            if !places[from].is_null() && !places[to].is_null() {
                store(&mutator, places[from], word, places[to]);
                words[from][word] = Some(to);
            }
        }
        // Only the kept objects are roots for a while.
        let kept: HashSet<_> =
            kept.iter().map(|n| n % NODES).filter(|&n| !places[n].is_null()).collect();
        for (n, root) in roots.iter().enumerate() {
            // SAFETY: an owner may write its root.
            unsafe {
                root.write(if kept.contains(&n) { places[n] } else { core::ptr::null_mut() })
            };
        }
        if in_steps {
            mutator.ask();
            // SAFETY: roots lead to all objects in use.
            while !unsafe { mutator.step(1) } {}
        }
        // Objects that were marked before the stores or before roots went die in the second one.
        collect(&mutator);
        collect(&mutator);
        let live = living(&kept, &words);
        for n in 0..NODES {
            if !live.contains(&n) {
                places[n] = core::ptr::null_mut();
                continue;
            }
            for pair in 0..EACH {
                let [key, value] = [PAIRS + 2 * pair, PAIRS + 2 * pair + 1];
                if words[n][key].is_some_and(|key| !live.contains(&key)) {
                    (words[n][key], words[n][value]) = (None, None);
                }
            }
            for to in &mut words[n][WEAK..WEAK + EACH] {
                *to = to.filter(|to| live.contains(to));
            }
        }
        for &n in &live {
            for (word, to) in words[n].iter().enumerate() {
                let expected = to.map_or(core::ptr::null_mut(), |to| places[to]);
                assert_eq!(load(places[n], word), expected, "{n}, word {word}");
            }
        }
        let mut found = 0;
        // SAFETY: the closure calls nothing of the heap.
        assert!(unsafe {
            mutator.walk(|_, _, _| {
                found += 1;
                true
            })
        });
        assert_eq!(found, live.len());
        // All live objects become roots again, so that more can be stored.
        for (root, place) in roots.iter().zip(&places) {
            // SAFETY: an owner may write its root.
            unsafe { root.write(*place) };
        }
    }
    leave(mutator);
}

proptest! {
    #![proptest_config(crate::testing::cases(64))]
    #[test]
    fn what_lives_is_what_the_definition_says(
        incremental in any::<bool>(),
        generations in any::<bool>(),
        in_steps in any::<bool>(),
        edges in proptest::collection::vec(
            proptest::collection::vec((any::<usize>(), 0..WORDS, any::<usize>()), 0..3 * NODES),
            if cfg!(miri) { 1..2 } else { 1..4 },
        ),
        kept in proptest::collection::vec(proptest::collection::vec(any::<usize>(), 0..8), 4),
    ) {
        check(Options { incremental, generations, ..Options::new() }, &edges, &kept, in_steps);
    }
}

/// The value of each ephemeron is the key of the next. Holders are made in `order`.
fn chain(order: impl Iterator<Item = usize>, length: usize, starved: bool) {
    let heap = heap_of(Options { verify: 0, ..Options::new() });
    let mutator = heap.attach().unwrap();
    // A list leads to the holders. Only holders' pairs lead to the keys, except the first.
    let holders = root(&mutator, core::ptr::null_mut());
    let keys: Vec<_> = (0..=length).map(|n| root(&mutator, node(&mutator, n))).collect();
    // SAFETY: an owner may read and write its roots.
    let key = |n: usize| unsafe { keys[n].read() };
    for n in order {
        let holder = node(&mutator, n);
        // SAFETY: an owner may read and write its root.
        store(&mutator, holder, STRONG, unsafe { holders.replace(holder) });
        store(&mutator, holder, PAIRS, key(n));
        store(&mutator, holder, PAIRS + 1, key(n + 1));
    }
    let first = keys[0];
    for &root in &keys[1..] {
        // SAFETY: made here, and freed once.
        unsafe { mutator.free_root(root) };
    }
    let inner: &heap::Heap = heap::of(heap.id()).unwrap();
    inner.trace.marking.chunks.starved.set(usize::from(starved));
    collect(&mutator);
    inner.trace.marking.chunks.starved.set(0);
    let count = || {
        let mut count = 0;
        // SAFETY: the closure calls nothing of the heap.
        assert!(unsafe {
            mutator.walk(|_, _, _| {
                count += 1;
                true
            })
        });
        count
    };
    assert_eq!(count(), 2 * length + 1);
    // SAFETY: an owner may write its root.
    unsafe { first.write(core::ptr::null_mut()) };
    collect(&mutator);
    assert_eq!(count(), length, "holders alone");
    assert_eq!(heap.statistics().cleared, length as u64);
    leave(mutator);
}

#[test]
fn chains_of_ephemerons_are_followed_in_any_order() {
    // In quadratic time this would take hours.
    let length = if cfg!(miri) { 10 } else { 60_000 };
    chain(0..length, length, false);
    chain((0..length).rev(), length, false);
    chain((0..length).map(|n| (n * 7919 + 13) % length), length, false);
}

#[test]
fn without_memory_ephemerons_keep_what_they_lead_to() {
    let length = if cfg!(miri) { 5 } else { 3000 };
    chain(0..length, length, true);
}

#[test]
#[cfg(not(miri))]
fn memory_may_end_in_the_midst_of_ephemerons() {
    for steps in 0..60 {
        let heap = heap_of(Options { incremental: true, ..Options::new() });
        let mutator = heap.attach().unwrap();
        let holders = root(&mutator, core::ptr::null_mut());
        let first = root(&mutator, node(&mutator, 0));
        // SAFETY: an owner may read and write its roots.
        let last = root(&mutator, unsafe { first.read() });
        for serial in 1..400 {
            let next = node(&mutator, serial);
            // SAFETY: an owner may read and write its root.
            let last = unsafe { last.replace(next) };
            let holder = node(&mutator, serial);
            // SAFETY: an owner may read and write its root.
            store(&mutator, holder, STRONG, unsafe { holders.replace(holder) });
            store(&mutator, holder, PAIRS, last);
            store(&mutator, holder, PAIRS + 1, next);
        }
        // SAFETY: an owner may write its root.
        unsafe { last.write(core::ptr::null_mut()) };
        mutator.ask();
        let inner: &heap::Heap = heap::of(heap.id()).unwrap();
        for _ in 0..steps {
            // SAFETY: roots lead to all objects in use.
            unsafe { mutator.step(1) };
        }
        inner.trace.marking.chunks.starved.set(1);
        collect(&mutator);
        inner.trace.marking.chunks.starved.set(0);
        collect(&mutator);
        let mut count = 0;
        // SAFETY: the closure calls nothing of the heap.
        assert!(unsafe {
            mutator.walk(|_, _, _| {
                count += 1;
                true
            })
        });
        assert_eq!(count, 799);
        leave(mutator);
    }
}

#[test]
fn a_key_that_only_its_own_value_leads_to_dies() {
    let heap = heap_of(Options::new());
    let mutator = heap.attach().unwrap();
    let holder = root(&mutator, node(&mutator, 0));
    // SAFETY: a root.
    let holder = unsafe { holder.read() };
    let (key, value) = (node(&mutator, 1), node(&mutator, 2));
    store(&mutator, value, STRONG, key);
    store(&mutator, holder, PAIRS, key);
    store(&mutator, holder, PAIRS + 1, value);
    collect(&mutator);
    assert!(load(holder, PAIRS).is_null() && load(holder, PAIRS + 1).is_null());
    // A key that is no object of the heap lives for ever.
    store(&mutator, holder, PAIRS, core::ptr::without_provenance_mut(41));
    store(&mutator, holder, PAIRS + 1, node(&mutator, 3));
    collect(&mutator);
    assert_eq!(heap.find(load(holder, PAIRS + 1)), Some(load(holder, PAIRS + 1)));
    leave(mutator);
}

unsafe extern "C" fn note(object: *mut c_void, context: *mut c_void) {
    // SAFETY: the test's data, which outlives the heap.
    let seen = unsafe { &mut *context.cast::<Vec<usize>>() };
    // SAFETY: the object is a node, whole.
    seen.push(unsafe { (*object.cast::<Node>()).serial });
}

#[test]
fn weak_references_go_before_finalizers_which_run_in_the_order_of_asking() {
    let heap = heap_of(Options::new());
    let mutator = heap.attach().unwrap();
    let mut seen: Vec<usize> = Vec::new();
    let context: *mut Vec<usize> = &raw mut seen;
    let mut weak = Vec::new();
    let keep = root(&mutator, core::ptr::null_mut());
    for serial in 0..5 {
        let object = node(&mutator, serial);
        // SAFETY: a root.
        store(&mutator, object, STRONG, unsafe { keep.replace(object) });
        // A leaf that only the object leads to, and an ephemeron whose key is the object.
        let leaf = alloc(&mutator, 40, LEAF);
        store(&mutator, object, STRONG + 1, leaf);
        // SAFETY: the objects are live.
        unsafe {
            weak.push(mutator.new_weak(object).unwrap());
            weak.push(mutator.new_weak(leaf).unwrap());
            assert!(mutator.finalize(object, note, context.cast()));
            assert!(mutator.finalize(leaf, note, context.cast()));
            assert_eq!(mutator.cancel_finalizers(leaf), 1);
        }
    }
    // SAFETY: roots.
    let all_null = |null: bool| weak.iter().all(|cell| unsafe { cell.read().is_null() } == null);
    collect(&mutator);
    assert!(all_null(false) && seen.is_empty());
    // SAFETY: an owner may write its root.
    unsafe { keep.write(core::ptr::null_mut()) };
    collect(&mutator);
    assert!(all_null(true), "also to what finalizers keep for a while");
    // SAFETY: roots lead to all objects in use.
    assert_eq!(unsafe { mutator.run_finalizers(9) }, 5);
    assert_eq!(seen, [0, 1, 2, 3, 4]);
    assert_eq!(heap.statistics().cleared, 10);
    for cell in weak {
        // SAFETY: made above.
        unsafe { mutator.free_weak(cell) };
    }
    leave(mutator);
}

unsafe extern "C" fn note_weak(object: *mut c_void, context: *mut c_void) {
    // SAFETY: the test's data, which outlives the heap.
    let seen = unsafe { &mut *context.cast::<Vec<bool>>() };
    seen.push(load(object.cast(), WEAK).is_null());
}

#[test]
fn weak_references_in_what_finalizers_keep_go_before_any_of_them_runs() {
    for incremental in [false, true] {
        for generations in [false, true] {
            keep_weak_places(Options { incremental, generations, ..Options::new() }, false);
            keep_weak_places(Options { incremental, generations, ..Options::new() }, true);
        }
    }
}

/// Two nodes lead to each other weakly. Each leads to a long list that its own finalizer keeps.
fn keep_weak_places(options: Options, starved: bool) {
    const LONG: usize = if cfg!(miri) { 4 } else { 2000 };
    let heap = heap_of(Options { verify: 0, least: 64 << 20, ..options });
    let mutator = heap.attach().unwrap();
    let mut seen: Vec<bool> = Vec::new();
    let context = (&raw mut seen).cast::<c_void>();
    let both = [0, 1].map(|serial| root(&mutator, node(&mutator, serial)));
    // SAFETY: an owner may read and write its roots.
    let [first, second] = both.map(|root| unsafe { root.read() });
    for (from, to) in [(first, second), (second, first)] {
        for _ in 0..LONG {
            let next = node(&mutator, 2);
            store(&mutator, next, STRONG, load(from, STRONG));
            store(&mutator, next, WEAK, to);
            store(&mutator, from, STRONG, next);
        }
        store(&mutator, from, WEAK, to);
        // SAFETY: the object is live; the list outlives the heap.
        assert!(unsafe { mutator.finalize(from, note_weak, context) });
    }
    for root in both {
        // SAFETY: made here, and freed once.
        unsafe { mutator.free_root(root) };
    }
    let inner: &heap::Heap = heap::of(heap.id()).unwrap();
    inner.trace.marking.chunks.starved.set(usize::from(starved));
    mutator.ask();
    let mut run = 0;
    // SAFETY: finalizers lead to all objects in use.
    while !unsafe { mutator.step(1) } {
        // SAFETY: finalizers lead to all objects in use.
        run += unsafe { mutator.run_finalizers(9) };
    }
    // SAFETY: finalizers lead to all objects in use.
    run += unsafe { mutator.run_finalizers(9) };
    inner.trace.marking.chunks.starved.set(0);
    assert_eq!((run, seen), (2, std::vec![true, true]));
    leave(mutator);
}

#[test]
fn what_ephemerons_cost_while_marking_goes_back_and_is_little() {
    const COUNT: usize = if cfg!(miri) { 600 } else { 60_000 };
    let options = Options { least: 1 << 30, markers: 1, ..Options::new() };
    let (heap, mutator) = attached(options, Runtime { trace: Some(trace), ..Runtime::new() });
    let list = root(&mutator, core::ptr::null_mut());
    for n in 0..COUNT {
        let [owner, key, value] = core::array::from_fn(|_| node(&mutator, n));
        store(&mutator, owner, PAIRS, key);
        store(&mutator, owner, PAIRS + 1, value);
        // SAFETY: an owner may read and write its roots.
        unsafe {
            store(&mutator, owner, STRONG, *list);
            *list = owner;
        }
    }
    collect(&mutator);
    let now = heap.statistics();
    assert_eq!(now.cleared as usize, COUNT);
    if !cfg!(miri) {
        assert!(
            (now.lists_peak_bytes as usize) < 18 * COUNT + (600 << 10),
            "{}",
            now.lists_peak_bytes
        );
        assert!(now.lists_peak_bytes as usize > 16 * COUNT);
        assert!(now.lists_bytes <= 256 << 10, "{}", now.lists_bytes);
    }
    leave(mutator);
}
