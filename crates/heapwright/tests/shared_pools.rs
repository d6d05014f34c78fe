//! Pools that threads share, where threads end and processes fork.
//!
//! What only this finds: a lock that nobody in the child holds; a destructor of
//! thread-local data that runs after the thread left its desk; more threads than
//! there are desks.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

use std::cell::RefCell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use heapwright::pool::{SharedBoxed, SharedPool};

/// Uses a pool in every way.
fn use_pool(pool: &SharedPool<[u64; 4]>) {
    let held: Vec<_> = (0..500).map(|n| pool.boxed([n; 4])).collect();
    assert!(held.iter().enumerate().all(|(n, object)| **object == [n as u64; 4]));
    drop(held);
    assert!(pool.len() < 1_000_000);
    pool.trim();
    let mut other: SharedPool<String> = SharedPool::new();
    let _left = other.create(String::from("dropped with the pool"));
    other.for_each(|text| text.push('!'));
}

#[test]
fn a_child_of_many_threads_uses_pools() {
    static POOL: SharedPool<[u64; 4]> = SharedPool::new();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    use_pool(&POOL);
                }
            });
        }
        for _ in 0..200 {
            // SAFETY: the child uses pools, which is what is tested, and ends at once.
            match unsafe { libc::fork() } {
                -1 => panic!("no child"),
                0 => {
                    // SAFETY: no preconditions. A child that hangs dies of SIGALRM.
                    unsafe { libc::alarm(30) };
                    let run = || use_pool(&POOL);
                    let well = std::panic::catch_unwind(run).is_ok();
                    // SAFETY: no preconditions.
                    unsafe { libc::_exit(i32::from(!well)) };
                }
                child => {
                    let mut status = 0;
                    // SAFETY: `status` is a valid place for the answer.
                    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
                    assert_eq!(status, 0, "the child ended with status {status:#x}");
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn destructors_of_thread_local_data_use_pools() {
    static POOL: SharedPool<u64> = SharedPool::new();
    struct Late(SharedBoxed<'static, u64>);
    impl Drop for Late {
        fn drop(&mut self) {
            assert_eq!(*self.0, 5);
            let more: Vec<_> = (0..300).map(|n| POOL.boxed(n)).collect();
            drop(more);
        }
    }
    thread_local!(static HELD: RefCell<Option<Late>> = const { RefCell::new(None) });
    for _ in 0..100 {
        thread::spawn(|| HELD.with(|held| *held.borrow_mut() = Some(Late(POOL.boxed(5)))))
            .join()
            .unwrap();
    }
    assert_eq!(POOL.len(), 0);
    assert!(POOL.stats().capacity <= 65_536, "{:?}", POOL.stats());
}

#[test]
fn more_threads_than_desks() {
    let threads = 4200;
    let pool: SharedPool<usize> = SharedPool::new();
    let all = Barrier::new(threads);
    thread::scope(|scope| {
        for n in 0..threads {
            let (pool, all) = (&pool, &all);
            let run = move || {
                let held = [pool.boxed(n), pool.boxed(n)];
                all.wait();
                assert!(*held[0] == n && *held[1] == n);
            };
            thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, run).unwrap();
        }
    });
    assert_eq!(pool.len(), 0);
}
