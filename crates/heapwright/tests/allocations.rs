//! `testing::allocations`: exact counts, bytes and peaks of the calling thread.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "the test counts what std allocates"
)]

use heapwright::testing::{Allocations, Counting, allocations};
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

fn figures(used: &Allocations) -> (u64, u64, u64, u64, u64, i64) {
    let Allocations { allocations, reallocations, frees, bytes, peak_bytes, kept_bytes, .. } =
        *used;
    (allocations, reallocations, frees, bytes, peak_bytes, kept_bytes)
}

#[test]
fn every_call_is_counted() {
    let ((), nothing) = allocations(|| ());
    assert_eq!(nothing, Allocations::default());
    let (kept, used) = allocations(|| {
        let one = black_box(vec![1_u8; 100]);
        let two = black_box(vec![0_u8; 50]);
        drop(one);
        let mut three: Vec<u8> = black_box(Vec::with_capacity(30));
        three.reserve_exact(70);
        three.shrink_to(10);
        drop(three);
        two
    });
    // Live bytes: 100 and 50; then 50 and 30; the 30 grow to 70, then shrink to 10. At most 150.
    assert_eq!(figures(&used), (3, 2, 2, 100 + 50 + 30 + 40, 150, 50));
    let ((), used) = allocations(|| drop(kept));
    assert_eq!(figures(&used), (0, 0, 1, 0, 0, -50));
}

#[test]
fn nested_counts_add_up() {
    let ((inner, _kept), outer) = allocations(|| {
        let kept = black_box(vec![0_u8; 1000]);
        let ((), inner) = allocations(|| drop(black_box(vec![0_u8; 500])));
        (inner, kept)
    });
    assert_eq!(figures(&inner), (1, 0, 1, 500, 500, 0));
    assert_eq!(figures(&outer), (2, 0, 1, 1500, 1500, 1000));
}

#[test]
fn other_threads_are_not_counted() {
    let (to_worker, from_test) = std::sync::mpsc::channel::<()>();
    let (to_test, from_worker) = std::sync::mpsc::channel::<()>();
    let worker = std::thread::spawn(move || {
        from_test.recv().expect("is sent");
        drop(black_box(vec![0_u8; 12345]));
        to_test.send(()).expect("is received");
    });
    let ((), used) = allocations(|| {
        to_worker.send(()).expect("is received");
        from_worker.recv().expect("is sent");
    });
    worker.join().expect("ends");
    // The channels' own blocks belong to this thread, and are small.
    assert!(used.bytes < 12345, "{used:?}");
}

#[test]
fn a_panic_ends_the_count() {
    let outer = std::panic::catch_unwind(|| {
        allocations(|| {
            let _block = black_box(vec![0_u8; 64]);
            std::panic::resume_unwind(Box::new("on purpose"));
        })
    });
    assert!(outer.is_err());
    let (block, used) = allocations(|| black_box(vec![0_u8; 8]));
    assert_eq!((figures(&used), block.len()), ((1, 0, 0, 8, 8, 8), 8));
}
