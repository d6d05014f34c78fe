//! Collected heaps: cases that end the program or need a process of their own.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a runtime is unsafe from end to end: each test says once what it promises"
)]

mod common;

use core::cell::Cell;
use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};
use std::os::unix::process::ExitStatusExt;

use common::{case, run_alone};
use heapwright::gc::raw::{Heap, Mutator, Options, Runtime, Tracer, VERIFY_BARRIERS, VERIFY_HEAP};
use heapwright::gc::{LEAF, TRACED};

type Pair = [*mut u8; 2];

unsafe extern "C" fn trace(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
    // SAFETY: every traced object of these tests is a pair.
    unsafe { *object.cast::<Pair>() }.into_iter().for_each(|reference| tracer.mark(reference));
}

unsafe extern "C" fn name(_: *const c_void, _: *mut c_void) -> *const c_char {
    c"Pair".as_ptr()
}

fn runtime() -> Runtime {
    Runtime { trace: Some(trace), type_name: Some(name), ..Runtime::new() }
}

unsafe fn pair(mutator: &Mutator, a: *mut u8, b: *mut u8) -> *mut u8 {
    // SAFETY: the caller promises that roots lead to all objects in use.
    let at = unsafe { mutator.alloc(16, TRACED) };
    assert!(!at.is_null());
    // SAFETY: the object is new, and a pair.
    unsafe { at.cast::<Pair>().write([a, b]) };
    at
}

/// The root leads to the list.
unsafe fn list(mutator: &Mutator, root: *mut *mut u8, length: usize) {
    for _ in 0..length {
        // SAFETY: the root leads to the list.
        unsafe { *root = pair(mutator, *root, core::ptr::null_mut()) };
    }
}

fn a_store_that_is_not_told() {
    let options = Options { incremental: true, verify: VERIFY_BARRIERS, ..Options::new() };
    let heap = Heap::new(options, runtime()).unwrap();
    let mutator = heap.attach().unwrap();
    // SAFETY: roots lead to all objects in use. The test is an unreported store.
    unsafe {
        let top = mutator.new_root(core::ptr::null_mut()).unwrap();
        let old = pair(&mutator, core::ptr::null_mut(), core::ptr::null_mut());
        *top = old;
        let long = mutator.new_root(core::ptr::null_mut()).unwrap();
        list(&mutator, long, 300_000);
        mutator.collect();
        mutator.ask();
        // One step marks the short path. The long list takes many steps.
        let before = heap.statistics().pauses;
        while heap.statistics().pauses < before + 2 {
            assert!(!mutator.step(20_000));
        }
        // Only an object that was already traced leads to the new object.
        let hidden = pair(&mutator, core::ptr::null_mut(), core::ptr::null_mut());
        (*old.cast::<Pair>())[1] = hidden;
        while !mutator.step(1_000_000) {}
    }
}

fn a_store_into_an_old_object_that_is_not_told() {
    let options = Options { generations: true, verify: VERIFY_BARRIERS, ..Options::new() };
    let heap = Heap::new(options, runtime()).unwrap();
    let mutator = heap.attach().unwrap();
    // SAFETY: roots lead to all objects in use. The test is an unreported store.
    unsafe {
        let top = mutator.new_root(core::ptr::null_mut()).unwrap();
        *top = pair(&mutator, core::ptr::null_mut(), core::ptr::null_mut());
        // The next collection must be minor, although minor collections free too little here.
        mutator.defer_majors();
        mutator.collect();
        (*(*top).cast::<Pair>())[1] = pair(&mutator, core::ptr::null_mut(), core::ptr::null_mut());
        mutator.ask();
        while !mutator.step(1_000_000) {}
    }
}

fn a_reference_to_what_was_freed() {
    let options = Options { verify: VERIFY_HEAP, ..Options::new() };
    let heap = Heap::new(options, runtime()).unwrap();
    let mutator = heap.attach().unwrap();
    // SAFETY: roots lead to all objects in use but one. The missing root is the test's mistake.
    unsafe {
        let root = mutator.new_root(core::ptr::null_mut()).unwrap();
        let dead = mutator.alloc(100, LEAF);
        list(&mutator, root, 3);
        mutator.collect();
        (*(*root).cast::<Pair>())[1] = dead;
        mutator.collect();
    }
}

/// Stores an object over an old object in a weak root, without a report to the heap.
fn a_store_into_a_weak_root(over_null: bool, kept: bool) {
    let options = Options { generations: true, verify: VERIFY_BARRIERS, ..Options::new() };
    let heap = Heap::new(options, runtime()).unwrap();
    let mutator = heap.attach().unwrap();
    // SAFETY: roots lead to all objects in use. The test is an unreported store.
    unsafe {
        let root = mutator.new_root(mutator.alloc(16, LEAF)).unwrap();
        let weak = mutator.new_weak(*root).unwrap();
        mutator.defer_majors();
        mutator.collect();
        // After a reported store, minor collections look at this cell. Another store to it is no
        // fault.
        let told = mutator.new_weak(*root).unwrap();
        mutator.set_weak(told, mutator.alloc(16, LEAF));
        assert!(mutator.collect_young() && (*told).is_null());
        *told = mutator.alloc(16, LEAF);
        assert!(mutator.collect_young() && (*told).is_null());
        if over_null {
            *weak = core::ptr::null_mut();
        }
        *weak = mutator.alloc(16, LEAF);
        if kept {
            *root = *weak;
        }
        mutator.collect_young();
    }
}

fn a_dead_object_in_a_weak_root() {
    a_store_into_a_weak_root(false, false);
}

fn a_young_object_in_a_weak_root() {
    a_store_into_a_weak_root(true, true);
}

fn verified() -> (Heap, Mutator) {
    let options = Options { verify: VERIFY_HEAP, ..Options::new() };
    let heap = Heap::new(options, runtime()).unwrap();
    let mutator = heap.attach().unwrap();
    (heap, mutator)
}

fn a_reference_in_a_leaf() {
    let (_heap, mutator) = verified();
    // SAFETY: nothing is collected. The test is a reference in a leaf.
    unsafe {
        let leaf = mutator.alloc(16, LEAF);
        let child = pair(&mutator, core::ptr::null_mut(), core::ptr::null_mut());
        mutator.write(child, child.cast(), leaf);
        mutator.write(leaf, leaf.cast(), core::ptr::null_mut());
        mutator.write(leaf, leaf.cast(), child);
    }
}

fn a_kind_that_does_not_exist() {
    let (_heap, mutator) = verified();
    // SAFETY: nothing is collected. The test is a wrong kind.
    _ = unsafe { mutator.alloc(16, 8) };
}

fn a_heap_that_ends_too_soon() {
    let (heap, _mutator) = verified();
    drop(heap);
}

/// A case: its name, its mistake, and the words of its lines.
type Case = (&'static str, fn(), &'static [&'static str]);

const UNTOLD: &[&str] = &[
    "(Pair) leads to 0x",
    "which is not marked: it was stored there without the write barrier",
    "found in 0x",
    "led to by a handle",
    "a store of a reference was not reported",
];

/// The end of the verifier's message about a store into a weak root. The object's age precedes it.
const UNTOLD_WEAK: &str = ": it was stored there without hw_gc_weak_set";

const ENDS: [Case; 8] = [
    ("leaf", a_reference_in_a_leaf, &["a leaf, leads to 0x", "stored into a leaf object"]),
    ("kind", a_kind_that_does_not_exist, &["an object of an unknown kind"]),
    ("destroyed", a_heap_that_ends_too_soon, &["was destroyed that a mutator is attached to"]),
    ("untold store", a_store_that_is_not_told, UNTOLD),
    ("untold store, old", a_store_into_an_old_object_that_is_not_told, UNTOLD),
    (
        "weak, dead",
        a_dead_object_in_a_weak_root,
        &["weak handle 0x", " leads to 0x", ", which is dead", UNTOLD_WEAK],
    ),
    (
        "weak, young",
        a_young_object_in_a_weak_root,
        &["weak handle 0x", " leads to 0x", ", which is young", UNTOLD_WEAK],
    ),
    (
        "dangling reference",
        a_reference_to_what_was_freed,
        &["which is no object: it was freed, or never allocated", "led to by a handle"],
    ),
];

#[test]
fn verifiers_name_what_is_wrong_and_the_way_to_it() {
    if let Some(case) = case() {
        ENDS.iter().find(|(name, ..)| *name == case).unwrap().1();
        return;
    }
    for (name, _, lines) in ENDS {
        let test = "verifiers_name_what_is_wrong_and_the_way_to_it";
        let output = run_alone(test, name, "");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{name}: {text}");
        for line in lines {
            assert!(text.contains(line), "{name}: no {line:?} in {text}");
        }
    }
}

#[test]
fn a_kind_that_does_not_exist_is_refused() {
    let heap = Heap::new(Options::new(), runtime()).unwrap();
    let mutator = heap.attach().unwrap();
    for kind in [8, 1 << 31, u32::MAX] {
        // SAFETY: nothing is collected. The test is a wrong kind.
        assert!(unsafe { mutator.alloc(16, kind) }.is_null());
    }
    // SAFETY: the mutator is not used any more.
    unsafe { mutator.detach() };
}

#[test]
fn describe_knows_objects() {
    let heap = Heap::new(Options::new(), runtime()).unwrap();
    let mutator = heap.attach().unwrap();
    // SAFETY: roots lead to all objects in use.
    unsafe {
        let root = mutator.new_root(core::ptr::null_mut()).unwrap();
        *root = mutator.alloc(100, LEAF);
        mutator.collect();
        let found = heapwright::describe(root.read().wrapping_add(50));
        assert_eq!(found.kind, heapwright::Kind::Collected);
        assert_eq!((found.block, found.offset, found.size), ((*root).addr(), 50, 112));
        assert_eq!((found.owner, found.state), (heap.id(), heapwright::BlockState::InUse));
        let large = mutator.alloc(1 << 20, LEAF);
        let found = heapwright::describe(large.wrapping_add(70_000));
        assert_eq!((found.block, found.offset, found.size), (large.addr(), 70_000, 1 << 20));
        mutator.free_root(root);
        mutator.detach();
    }
}

#[test]
fn a_forked_child_goes_on_collecting() {
    let heap = Heap::new(Options { least: 1 << 20, ..Options::new() }, runtime()).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mutator = heap.attach().unwrap();
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    // SAFETY: no object is in use.
                    assert!(!unsafe { mutator.alloc(64, TRACED) }.is_null());
                }
                // SAFETY: nothing is used any more.
                unsafe { mutator.detach() };
            });
        }
        let mutator = heap.attach().unwrap();
        // SAFETY: the root leads to all objects in use. The child only uses the heap, and ends.
        unsafe {
            let root = mutator.new_root(core::ptr::null_mut()).unwrap();
            list(&mutator, root, 10_000);
            for _ in 0..20 {
                let child = libc::fork();
                if child == 0 {
                    let before = heap.statistics().cycles;
                    list(&mutator, root, 100_000);
                    mutator.collect();
                    let mut length = 0;
                    let mut at = *root;
                    while !at.is_null() {
                        at = (*at.cast::<Pair>())[0];
                        length += 1;
                    }
                    let fine = length == 110_000 && heap.statistics().cycles > before;
                    libc::_exit(if fine && mutator.verify() == 0 { 0 } else { 1 });
                }
                let mut status = 0;
                mutator.away(|| libc::waitpid(child, &raw mut status, 0));
                assert_eq!(status, 0);
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            mutator.free_root(root);
            mutator.detach();
        }
    });
}

#[test]
fn a_thread_that_ends_at_work_with_what_it_entered_is_named() {
    let test = "a_thread_that_ends_at_work_with_what_it_entered_is_named";
    if case().is_none() {
        let text = run_alone(test, "waits", "").stderr;
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("a thread has ended at work in collected heap "), "{text}");
        return;
    }
    let heap: &Heap = Box::leak(Box::new(Heap::new(Options::new(), runtime()).unwrap()));
    let enters = || {
        let mutator = heap.attach_away().unwrap();
        // SAFETY: no object is in use.
        unsafe { mutator.enter() };
    };
    std::thread::spawn(enters).join().unwrap();
    std::thread::spawn(|| {
        let mutator = heap.attach().unwrap();
        // SAFETY: no object is in use.
        unsafe { mutator.collect() };
    });
    std::thread::sleep(core::time::Duration::from_secs(3));
    std::process::exit(0);
}

/// The program's destructor of a thread's data. It runs three times.
unsafe extern "C" fn uses_its_mutator(data: *mut c_void) {
    // SAFETY: the data is the test's, and exists until the thread has ended.
    let (key, rounds, mutator) =
        unsafe { &*data.cast::<(libc::pthread_key_t, Cell<u32>, Mutator)>() };
    // SAFETY: no object is in use.
    assert!(!unsafe { mutator.alloc(4000, TRACED) }.is_null());
    rounds.set(rounds.get() + 1);
    if rounds.get() < 3 {
        // SAFETY: this function is the destructor of this key.
        unsafe { libc::pthread_setspecific(*key, data) };
    }
}

#[test]
fn a_thread_that_ends_at_work_is_detached() {
    common::in_a_child(|| {
        let heap: &Heap = Box::leak(Box::new(Heap::new(Options::new(), runtime()).unwrap()));
        let mutator = heap.attach().unwrap();
        let attached = || heap.attached(|_, _| {});
        let ends = |life: fn(&'static Heap)| {
            // A join waits for the thread's destructors too, unlike the end of a scope.
            std::thread::spawn(move || life(heap)).join().unwrap();
            // SAFETY: no object is in use.
            unsafe { mutator.collect() };
        };
        ends(|heap| _ = heap.attach().unwrap());
        assert_eq!(attached(), 1);
        ends(|heap| {
            let mut key = 0;
            // SAFETY: the place is valid, and the function takes the data that is set below.
            let made = unsafe { libc::pthread_key_create(&raw mut key, Some(uses_its_mutator)) };
            assert_eq!(made, 0);
            let data = Box::leak(Box::new((key, Cell::new(0_u32), heap.attach().unwrap())));
            // SAFETY: the key was created above.
            unsafe { libc::pthread_setspecific(key, (&raw const *data).cast()) };
        });
        assert_eq!(attached(), 1);
        // A mutator that a thread has left may pass to another thread.
        static HANDED_OVER: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
        ends(|heap| {
            let mutator = heap.attach().unwrap();
            // SAFETY: no object is in use.
            unsafe { mutator.leave() };
            HANDED_OVER.store(mutator.into_ptr(), Ordering::Relaxed);
        });
        assert_eq!(attached(), 2);
        ends(|heap| {
            assert!(!heap.is_attached(), "as the thread that had this one's place");
            // SAFETY: the pointer is the mutator of the earlier thread, which has left it.
            let mutator = unsafe { Mutator::from_ptr(HANDED_OVER.load(Ordering::Relaxed)) };
            // SAFETY: the earlier thread has left the mutator, and no object is in use.
            unsafe {
                mutator.enter();
                assert!(!mutator.alloc(4000, TRACED).is_null());
                mutator.leave();
            }
        });
        assert_eq!(attached(), 2);
    });
}
