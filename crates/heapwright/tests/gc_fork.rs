//! Fork while a collected heap is at work in several threads.
//!
//! What only this finds: a heap that nobody collects any more, in the parent or in the
//! child, because somebody was collecting as the process forked; and objects of other
//! threads that the child does not know.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use core::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use common::in_a_child;
use heapwright::gc::TRACED;
use heapwright::gc::raw::{Heap, Mutator, Options, Runtime, Tracer};

fn collects(heap: &Heap, mutator: &Mutator) {
    let before = heap.statistics().cycles;
    // SAFETY: nothing is wanted.
    unsafe { mutator.collect() };
    assert!(heap.statistics().cycles > before, "nothing is collected any more");
    for _ in 0..1000 {
        // SAFETY: nothing is wanted.
        assert!(!unsafe { mutator.alloc(100, TRACED) }.is_null());
    }
}

#[test]
fn a_fork_in_the_midst_of_collections_tears_nothing() {
    let heap = Heap::new(Options::new(), Runtime::new()).unwrap();
    let mutator = heap.attach().unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mutator = heap.attach().unwrap();
                while !over.load(Ordering::Relaxed) {
                    // SAFETY: nothing is wanted.
                    unsafe { mutator.collect() };
                }
                // SAFETY: nothing is wanted.
                unsafe { mutator.detach() };
            });
        }
        for _ in 0..30 {
            in_a_child(|| {
                collects(&heap, &mutator);
                // Its child, too.
                in_a_child(|| collects(&heap, &mutator));
            });
            collects(&heap, &mutator);
        }
        over.store(true, Ordering::Relaxed);
        // SAFETY: nothing is wanted; the others need not wait.
        unsafe { mutator.detach() };
    });
}

/// Every traced object begins with a reference.
unsafe extern "C" fn trace_a_list(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
    // SAFETY: so it does.
    tracer.mark(unsafe { object.cast::<*mut u8>().read() });
}

#[test]
fn a_child_has_helpers_of_its_own() {
    let options = Options { markers: 2, ..Options::new() };
    let runtime = Runtime { trace: Some(trace_a_list), ..Runtime::new() };
    let heap = Heap::new(options, runtime).unwrap();
    let mutator = heap.attach().unwrap();
    // SAFETY: all that is wanted is led to by this root.
    let root = unsafe { mutator.new_root(core::ptr::null_mut()) }.unwrap();
    for _ in 0..40_000 {
        // SAFETY: all that is wanted is led to by this root.
        let at = unsafe { mutator.alloc(400, TRACED) };
        // SAFETY: a root is written as its owner likes.
        let next = unsafe { root.replace(at) };
        // SAFETY: fresh, and large enough.
        unsafe { at.cast::<*mut u8>().write(next) };
    }
    collects(&heap, &mutator);
    for _ in 0..10 {
        in_a_child(|| {
            collects(&heap, &mutator);
            in_a_child(|| collects(&heap, &mutator));
            collects(&heap, &mutator);
        });
        collects(&heap, &mutator);
    }
    let live: u64 = heap.statistics().pool.iter().map(|pool| pool.live).sum();
    assert_eq!(live, 40_000);
    // SAFETY: nothing is wanted any more.
    unsafe { mutator.detach() };
}

#[test]
fn a_child_finds_what_other_threads_have_made() {
    let heap = Heap::new(Options::new(), Runtime::new()).unwrap();
    let ((to, from), (end, until)) = (mpsc::channel(), mpsc::channel::<()>());
    thread::scope(|scope| {
        let heap = &heap;
        scope.spawn(move || {
            let mutator = heap.attach().unwrap();
            // SAFETY: nothing is collected.
            let object = unsafe { mutator.alloc(100, TRACED) };
            to.send(object.addr()).unwrap();
            // SAFETY: nothing is collected, so the object stays though nothing leads to it.
            let _ended = unsafe { mutator.away(|| until.recv()) };
            // SAFETY: nothing of this mutator's is used any more.
            unsafe { mutator.detach() };
        });
        let object = from.recv().unwrap();
        in_a_child(|| {
            let found = heap.find(std::ptr::without_provenance(object));
            assert_eq!(found.map(<*mut u8>::addr), Some(object));
        });
        end.send(()).unwrap();
    });
}
