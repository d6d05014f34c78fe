//! `heapwright::debug::check` in a program whose allocator is a debug heap. Blocks that std keeps
//! are no leaks, and concurrent tests do not see each other's blocks.
#![cfg(all(feature = "debug", target_os = "linux"))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "an ordinary program may do all that this crate itself may not"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::RefCell;
use std::collections::HashMap;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock, mpsc};
use std::thread;

use heapwright::debug::{Checked, Config, DebugHeap, check};

#[global_allocator]
static HEAP: DebugHeap = DebugHeap::new(Config { quiet: true, ..Config::DEFAULT });

/// Even in tests, the compiler would leave out a block that nothing uses.
fn forget<T>(value: T) {
    std::mem::forget(black_box(value));
}

fn verdict(closure: impl FnOnce()) -> Option<String> {
    let caught = catch_unwind(AssertUnwindSafe(|| check(closure)));
    caught.err().map(|said| match said.downcast::<String>() {
        Ok(text) => *text,
        Err(said) => (*said.downcast::<&str>().unwrap()).to_string(),
    })
}

fn free_twice() {
    let layout = Layout::new::<[u64; 5]>();
    // SAFETY: the size is not zero.
    let block = unsafe { HEAP.alloc(layout) };
    // SAFETY: the block is ours.
    unsafe { HEAP.dealloc(block, layout) };
    // SAFETY: the call is a mistake, which is reported and not executed.
    unsafe { HEAP.dealloc(block, layout) };
}

#[test]
fn what_is_right_passes() {
    let made = check(|| {
        println!("something, which is kept as long as the test");
        let map: HashMap<u32, String> = (0..1000).map(|n| (n, n.to_string())).collect();
        let sum = thread::spawn(move || map.values().map(String::len).sum::<usize>()).join();
        let mut numbers = vec![0; 1000];
        thread::scope(|scope| {
            for part in numbers.chunks_mut(300) {
                scope.spawn(|| {
                    println!("in a thread");
                    let _some = vec![1u8; 5000];
                    part.fill(7);
                });
            }
        });
        (sum.unwrap(), numbers)
    });
    assert_eq!((made.0, made.1[999]), (2890, 7));
}

#[test]
fn many_scoped_threads_that_are_not_joined_pass() {
    for _ in 0..50 {
        check(|| {
            thread::scope(|scope| {
                for n in 0..4 {
                    scope.spawn(move || Some(vec![n; 100]));
                }
            });
        });
    }
}

#[test]
fn a_leak_is_found_wherever_it_is_made() {
    let said = verdict(|| forget(vec![1u8; 100])).unwrap();
    assert!(said.ends_with("1 block of 100 bytes was not freed"), "{said}");
    let said = verdict(|| {
        thread::spawn(|| thread::spawn(|| forget(Box::new([7u64; 9]))).join().unwrap())
            .join()
            .unwrap();
    });
    assert!(said.unwrap().contains("1 block of 72 bytes"));
    let said = verdict(|| {
        thread::scope(|scope| {
            scope.spawn(|| forget(String::from("lost")));
        });
    });
    assert!(said.unwrap().contains("1 block of 4 bytes"));
    // Each value leads to another, and all are lost.
    struct Ring(Mutex<Option<Arc<Ring>>>);
    let said = verdict(|| {
        let one = Arc::new(Ring(Mutex::new(None)));
        let other = Arc::new(Ring(Mutex::new(Some(Arc::clone(&one)))));
        *one.0.lock().unwrap() = Some(other);
    });
    assert!(said.unwrap().contains("2 blocks"));
}

#[test]
fn what_is_still_reached_is_no_leak() {
    static KEPT: OnceLock<Vec<String>> = OnceLock::new();
    thread_local! {
        static OWN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }
    let mut outside = Vec::new();
    let boxed = Mutex::new(HashMap::new());
    let result = check(|| {
        KEPT.get_or_init(|| vec!["a".into(), "b".into()]);
        OWN.with(|own| own.borrow_mut().push("own".into()));
        outside.push(vec![1, 2, 3]);
        boxed.lock().unwrap().insert(5, String::from("five"));
        Box::new(Box::new(5))
    });
    assert_eq!((**result, outside.len(), boxed.lock().unwrap().len()), (5, 1, 1));
}

#[test]
fn a_misuse_is_found_in_every_thread() {
    let said = verdict(free_twice).unwrap();
    assert!(said.ends_with("1 mistake was found: double-free"), "{said}");
    assert!(verdict(|| thread::spawn(free_twice).join().unwrap()).unwrap().contains("double-free"));
    let said = verdict(|| {
        free_twice();
        forget(Box::new(1u8));
    });
    assert!(said.unwrap().contains("1 mistake was found, and 1 block of 1 bytes"));
}

#[test]
fn damage_is_found_before_anybody_runs_into_it() {
    let layout = Layout::from_size_align(40, 8).unwrap();
    static CHECKED: Checked<System> =
        Checked::with(System, Config { quiet: true, ..Config::DEFAULT });
    let said = verdict(|| {
        // SAFETY: the size is not zero.
        let block = unsafe { CHECKED.alloc(layout) };
        let behind = block.wrapping_add(41);
        // SAFETY: the write is a mistake, but there is room for it.
        unsafe { behind.write(1) };
        // SAFETY: the block is ours.
        unsafe { CHECKED.dealloc(block, layout) };
    });
    assert!(said.unwrap().contains("buffer-overflow"));
    let said = verdict(|| {
        // SAFETY: the size is not zero.
        let block = unsafe { CHECKED.alloc(layout) };
        // SAFETY: the block is ours.
        unsafe { CHECKED.dealloc(block, layout) };
        let inside = block.wrapping_add(4);
        // SAFETY: the write is a mistake. The block is in the quarantine.
        unsafe { inside.write(1) };
    });
    assert!(said.unwrap().contains("write-after-free"));
    let said = verdict(|| {
        // SAFETY: the size is not zero.
        unsafe { CHECKED.alloc(layout) };
    });
    assert!(said.unwrap().contains("1 block of 40 bytes"));
}

#[test]
fn a_heap_made_inside_counts_too() {
    let said = verdict(|| {
        let inner = DebugHeap::new(Config { quiet: true, ..Config::DEFAULT });
        // SAFETY: the size is not zero.
        unsafe { inner.alloc(Layout::new::<u64>()) };
        inner.deinit();
    });
    assert!(said.unwrap().contains("1 mistake was found: leak"));
}

#[test]
fn other_threads_do_not_count() {
    let stop = Arc::new(AtomicBool::new(false));
    let noise = thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let mut kept = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                free_twice();
                forget(vec![1u8; 10]);
                kept.push(Box::new(1));
                kept.truncate(100);
                thread::yield_now();
            }
        }
    });
    for _ in 0..30 {
        check(|| thread::spawn(|| vec![String::from("x"); 100]).join().unwrap().len());
    }
    stop.store(true, Ordering::Relaxed);
    noise.join().unwrap();
}

#[test]
fn blocks_from_before_may_go_and_others_may_take_what_is_made() {
    let before = vec![5; 100];
    let (send, receive) = mpsc::channel::<Vec<u8>>();
    let other = thread::spawn(move || receive.iter().map(|part| part.len()).sum::<usize>());
    check(move || {
        drop(before);
        for _ in 0..20 {
            send.send(vec![1; 50]).unwrap();
        }
    });
    assert_eq!(other.join().unwrap(), 1000);
}

#[test]
fn checks_are_nested_and_panics_pass_through() {
    check(|| {
        let inner = check(|| Box::new(5));
        drop(inner);
    });
    // The outer check sees the findings of the inner check.
    let mut inner = None;
    let outer = verdict(|| inner = verdict(|| forget(vec![1u8; 33])));
    assert!(inner.unwrap().contains("33 bytes") && outer.is_some());
    let said = verdict(|| panic!("my own {}", "words"));
    assert_eq!(said.unwrap(), "my own words");
    let said = verdict(|| {
        thread::spawn(|| panic!("in a thread")).join().unwrap_err();
    });
    assert_eq!(said, None);
    forget(vec![1u8; 11]);
    check(|| vec![1u8; 12].len());
}

#[test]
fn checks_that_run_at_once_are_apart() {
    let barrier = Barrier::new(6);
    let barrier = &barrier;
    thread::scope(|scope| {
        let tests: Vec<_> = (0..6usize)
            .map(|n| {
                scope.spawn(move || {
                    (0..8).all(|_| {
                        let said = verdict(|| {
                            barrier.wait();
                            if n.is_multiple_of(2) {
                                thread::spawn(move || forget(vec![1u8; 1000 + n])).join().unwrap();
                            }
                            barrier.wait();
                        });
                        match n % 2 {
                            0 => said.unwrap().contains(&format!("1 block of {} bytes", 1000 + n)),
                            _ => said.is_none(),
                        }
                    })
                })
            })
            .collect();
        assert!(tests.into_iter().all(|test| test.join().unwrap()));
    });
}
