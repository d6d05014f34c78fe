//! Checked builds of pools report each mistake at its call.
//!
//! Each case is a process of its own. It dies of SIGABRT with the case's line, or, if the mistake
//! is only reported, prints the line and exits normally.
//!
//! ```text
//! cargo test -p heapwright --features checked --test checked_pools
//! ```
#![cfg(feature = "checked")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use std::alloc::Layout;
use std::process::ExitStatus;
use std::ptr::NonNull;

use common::{case, run_alone};
use heapwright::heap;
use heapwright::pool::{Pool, RawPool, Reset, SharedPool};

#[derive(Clone, Copy)]
struct Node {
    _value: [u64; 4],
}

const NODE: Node = Node { _value: [7; 4] };

/// A case: its name, its mistake, and the words of its line.
type Case = (&'static str, fn(), &'static [&'static str]);

fn destroy<T>(pool: &Pool<T>, object: NonNull<T>) {
    // SAFETY: if the call is not safe, it is expected to end the process.
    unsafe { pool.destroy(object) };
}

fn write_stray(object: NonNull<u8>, offset: usize) {
    // SAFETY: the write is a mistake, which the pool must notice. The memory is still the pool's.
    unsafe { object.as_ptr().wrapping_add(offset).write(1) };
}

const DEADLY: [Case; 12] = [
    (
        "twice",
        || {
            let pool = Pool::new();
            let node = pool.create(NODE);
            destroy(&pool, node);
            destroy(&pool, node);
        },
        &["this object of pool `Node` was given back before"],
    ),
    (
        "to another pool",
        || {
            let (nodes, others) = (Pool::new(), Pool::<Node>::builder().name("others").build());
            let _one = others.create(NODE);
            destroy(&others, nodes.create(NODE));
        },
        &["it was given to pool `others`, but this 32-byte object belongs to pool `Node`"],
    ),
    (
        "to a pool without an object",
        || destroy(&Pool::new(), Pool::new().create(NODE)),
        &["free to a pool(0x", "belongs to pool `Node`"],
    ),
    (
        "an interior pointer",
        || {
            let pool = Pool::new();
            let node = pool.create(NODE);
            destroy(&pool, node.map_addr(|at| at.saturating_add(8)));
        },
        &["the pointer is 8 bytes into the 32-byte object at 0x", "of pool `Node`"],
    ),
    (
        "a block of malloc",
        || {
            let pool: Pool<Node> = Pool::new();
            let _one = pool.create(NODE);
            destroy(&pool, NonNull::new(heap::malloc(32).cast()).unwrap());
        },
        &["this 32-byte block is malloc's; free it with free"],
    ),
    (
        "a local",
        || {
            let pool: Pool<Node> = Pool::new();
            let _one = pool.create(NODE);
            let mut local = NODE;
            destroy(&pool, NonNull::from(&mut local));
        },
        &["the pointer is not heapwright's"],
    ),
    (
        "written after its end",
        || {
            let pool = Pool::new();
            let node = pool.create([0u8; 32]);
            destroy(&pool, node);
            write_stray(node.cast(), 5);
            let _ = pool.create([0u8; 32]);
        },
        &["was written to after it was given back, 5 bytes into it"],
    ),
    (
        "written after a reset",
        || {
            let mut pool = Pool::new();
            let node = pool.create([0u8; 32]);
            pool.reset(Reset::RetainCapacity);
            write_stray(node.cast(), 9);
            let _ = pool.create([0u8; 32]);
        },
        &["was written to after it was given back, 9 bytes into it"],
    ),
    (
        "written after its end, and not used again",
        || {
            let pool = Pool::new();
            let node = pool.create([0u8; 32]);
            destroy(&pool, node);
            write_stray(node.cast(), 0);
        },
        &["was written to after it was given back, 0 bytes into it"],
    ),
    (
        "to a pool that never had an object",
        || {
            let empty = Pool::<Node>::builder().name("empty").build();
            destroy(&empty, Pool::new().create(NODE));
        },
        &["it was given to pool `empty`, but this 32-byte object belongs to pool `Node`"],
    ),
    (
        "twice to a shared pool",
        || {
            let pool = SharedPool::new();
            let node = pool.create(NODE);
            for _ in 0..2 {
                // SAFETY: the second call is not safe. It is expected to end the process.
                unsafe { pool.destroy(node) };
            }
        },
        &["this object of pool `Node` was given back before"],
    ),
    (
        "twice to a raw pool",
        || {
            let mut pool = RawPool::builder(Layout::new::<u64>()).name("numbers").build();
            let slot = pool.alloc();
            for _ in 0..2 {
                // SAFETY: the second call is not safe. It is expected to end the process.
                unsafe { pool.free(slot) };
            }
        },
        &["this object of pool `numbers` was given back before"],
    ),
];

#[cfg(unix)]
fn is_abort(status: ExitStatus) -> bool {
    std::os::unix::process::ExitStatusExt::signal(&status) == Some(libc::SIGABRT)
}

/// Windows knows no signals: `abort` ends a process with one of several codes.
#[cfg(not(unix))]
fn is_abort(status: ExitStatus) -> bool {
    !status.success()
}

#[test]
fn mistakes() {
    if let Some(case) = case() {
        let (_, run, _) = DEADLY.iter().find(|(name, ..)| *name == case).unwrap();
        return run();
    }
    for (name, _, words) in DEADLY {
        let output = run_alone("mistakes", name, "");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(is_abort(output.status), "{name}: {}: {said}", output.status);
        for word in words {
            assert!(said.contains(word), "{name}: {word:?} is not in {said}");
        }
    }
}

#[test]
fn what_is_left_at_the_end() {
    if case().is_some() {
        let pool = Pool::new();
        let _left = [pool.create(NODE), pool.create(NODE)];
        let _held = pool.insert(NODE);
        drop(pool.boxed(NODE));
        drop(pool);
        let shared = SharedPool::<u64>::builder().name("jobs").build();
        let _left = shared.create(1);
        drop(shared);
        // Objects with keys, and objects that a reset dropped, are no mistake.
        let mut pool = Pool::<u16>::builder().name("clean").build();
        let _key = pool.insert(1);
        drop(pool);
        pool = Pool::new();
        let _ = pool.create(1);
        pool.reset(Reset::FreeAll);
        return;
    }
    let output = run_alone("what_is_left_at_the_end", "left", "");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for line in [
        "pool `Node` ended with 2 objects of 32 bytes that were created and not destroyed",
        "pool `jobs` ended with 1 object of 8 bytes",
    ] {
        assert!(said.contains(line), "{line:?} is not in {said}");
    }
    assert_eq!(said.matches("ended with").count(), 2, "{said}");
}

#[test]
fn a_right_use_is_not_refused() {
    let mut pool: RawPool = RawPool::new(Layout::new::<u64>());
    for how in [Reset::RetainCapacity, Reset::RetainUpTo(100), Reset::FreeAll] {
        let slots: Vec<_> = (0..200).map(|_| pool.alloc()).collect();
        for &slot in &slots[..64] {
            // SAFETY: the slot was just taken.
            unsafe { pool.free(slot) };
        }
        pool.reset(how);
        let again: Vec<_> = (0..200).map(|_| pool.alloc()).collect();
        for slot in again {
            // SAFETY: the slot was just taken.
            unsafe { pool.free(slot) };
        }
    }
}

#[test]
fn a_trim_is_no_write() {
    let pool = Pool::new();
    let many: Vec<_> = (0..100).map(|_| pool.create([1u8; 4096])).collect();
    for &object in &many[1..] {
        destroy(&pool, object);
    }
    pool.trim();
    let again: Vec<_> = (0..99).map(|_| pool.boxed([2u8; 4096])).collect();
    drop(again);
    destroy(&pool, many[0]);
}
