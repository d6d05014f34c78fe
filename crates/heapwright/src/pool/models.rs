//! Shared pools under each of the process's cache models.
//!
//! A process chooses its model once, so a test for a model runs in a child process of this program.
//! If this process already has the model (`HEAPWRIGHT=cache=shared:2`, as for Miri), it runs here.

extern crate std;

use std::format;
use std::process::Command;
use std::vec::Vec;

use super::{Reset, SharedPool};
#[cfg(not(feature = "checked"))]
use crate::{
    os::rseq,
    registry::{self, Model},
};

/// Returns whether this process has the model: then the caller runs the test. Otherwise runs the
/// named tests in a child process with the model and other options in `HEAPWRIGHT`.
fn under(model: &str, names: &[&str]) -> bool {
    let model = format!("cache={model}");
    let now = std::env::var("HEAPWRIGHT").unwrap_or_default();
    let has = |option| now.split(',').any(|given| given == option);
    if model.split(',').all(has) {
        return true;
    }
    if !cfg!(miri) {
        let options = if now.is_empty() { model } else { format!("{now},{model}") };
        let child = this_program().args(names).env("HEAPWRIGHT", &options).output();
        let child = child.expect("the program starts");
        let said = std::string::String::from_utf8_lossy(&child.stdout).into_owned();
        assert!(child.status.success(), "{options}: {}\n{said}", child.status);
        assert!(!said.contains(" 0 passed"), "{options}: no test ran\n{said}");
    }
    false
}

/// Runs the child behind a runner, if one is set (`HEAPWRIGHT_TEST_RUNNER=qemu-aarch64 -L ...`).
fn this_program() -> Command {
    let this = std::env::current_exe().expect("tests are a program");
    let runner = std::env::var("HEAPWRIGHT_TEST_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    let Some(first) = words.next() else { return Command::new(this) };
    let mut command = Command::new(first);
    command.args(words).arg(this);
    command
}

#[cfg(not(feature = "checked"))]
const ROUNDS: usize = 126;

#[test]
fn shared_pools_pass_their_tests_under_every_model() {
    // Children do not run this test.
    if std::env::var("HEAPWRIGHT").is_ok_and(|now| now.contains("cache=")) {
        return;
    }
    let tests = [
        "pool::tests::a_shared",
        "pool::tests::threads_share",
        "pool::tests::objects_made_here",
        "pool::tests::thread_indices_are_passed",
        "pool::models::many_threads_leave",
        "pool::models::a_pool_that_is_dropped",
        "registry::tests",
    ];
    for model in ["exclusive", "shared:1", "shared:2", "shared", "percpu"] {
        assert!(!under(model, &tests));
    }
}

// Checked builds have no magazines.
#[cfg(not(feature = "checked"))]
#[test]
fn many_threads_leave_as_many_magazines_as_the_model_says() {
    let threads = if cfg!(miri) { 4 } else { 64 };
    let most = match registry::model() {
        Model::Exclusive => threads,
        Model::Shared(count) => count,
        Model::PerCpu(count) => {
            assert_eq!(count, rseq::possible_cpus());
            count
        }
    };
    let pool: SharedPool<u64> = SharedPool::new();
    let all = std::sync::Barrier::new(threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let held: Vec<_> = (0..10).map(|n| pool.boxed(n)).collect();
                all.wait();
                drop(held);
                all.wait();
            });
        }
    });
    let (magazines, slots) = pool.slots().magazines_now();
    assert!((1..=most).contains(&magazines), "{magazines} of {most}");
    assert!(slots <= magazines * ROUNDS);
    if registry::model() == Model::Exclusive {
        assert_eq!(magazines, threads, "threads that share would have fewer");
    }
    assert_eq!(pool.len(), 0);
    assert_eq!(pool.stats().live, 0);
}

#[test]
fn a_pool_that_is_dropped_leaves_empty_magazines_to_the_next() {
    for round in 0..if cfg!(miri) { 3 } else { 50 } {
        let mut pool: SharedPool<[u64; 3]> = SharedPool::new();
        assert_eq!(pool.slots().magazines_now().1, 0, "round {round}");
        let objects: Vec<_> = (0..100).map(|n| pool.create([n; 3])).collect();
        std::thread::scope(|scope| {
            for half in objects.chunks(50) {
                let objects: Vec<usize> = half.iter().map(|o| o.addr().get()).collect();
                let pool = &pool;
                scope.spawn(move || drop((pool.boxed([7; 3]), objects)));
            }
        });
        // SAFETY: created above, once.
        objects[..90].iter().for_each(|&object| unsafe { pool.destroy(object) });
        assert_eq!(pool.len(), 10);
        let mut sum = 0;
        pool.for_each(|object| sum += object[0]);
        assert_eq!(sum, (90..100).sum());
        if round % 2 == 0 {
            pool.reset(Reset::RetainCapacity);
            assert_eq!((pool.len(), pool.slots().magazines_now().1), (0, 0));
        }
    }
}

#[cfg(not(feature = "checked"))]
#[test]
fn threads_that_meet_make_more_magazines_up_to_the_number() {
    let name = "pool::models::threads_that_meet_make_more";
    // This test needs a process of its own: ended pools leave their magazines to later pools, and
    // the maximum is raised for all pools. No other test has these options.
    if !under("shared:2,stats=off", &[name]) {
        return;
    }
    let most = registry::shared_most();
    let pool: SharedPool<u64> = SharedPool::new();
    drop(pool.boxed(1));
    assert_eq!(pool.slots().made_magazines(), 1, "one thread needs one");
    // This thread keeps each magazine that it enters, so the next call makes another one.
    let enter = |made: usize| {
        let held = pool.slots().enter_one();
        assert_eq!((held.is_some(), pool.slots().made_magazines()), (made <= most, made.min(most)));
        held
    };
    let held: Vec<_> = (1..=most).map(enter).collect();
    // All magazines are held, and none is released yet.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(pool.slots().enter_one().is_none(), "nobody waits for ever");
            let slots = pool.slots().magazines_now().1;
            let two = [pool.boxed(2), pool.boxed(3)];
            assert_eq!((*two[0], *two[1]), (2, 3));
            drop(two);
            assert_eq!(pool.slots().magazines_now().1, slots, "served from the store");
            // With a higher maximum, the next thread gets a magazine.
            registry::raise_shared(most + 1);
            assert!(pool.slots().enter_one().is_some());
            assert_eq!(pool.slots().made_magazines(), most + 1);
        });
    });
    drop(held);
    assert_eq!(pool.len(), 0);
}

struct Counted<'a>(&'a std::sync::atomic::AtomicUsize, usize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn a_shared_pool_has_keys_that_threads_look_up_and_remove() {
    let drops = std::sync::atomic::AtomicUsize::new(0);
    let count = if cfg!(miri) { 12 } else { 2000 };
    let mut pool = SharedPool::new();
    // Some slots are used for the second time.
    drop((0..count / 2).map(|n| pool.boxed(Counted(&drops, n))).collect::<Vec<_>>());
    drops.store(0, std::sync::atomic::Ordering::Relaxed);
    let keys: Vec<_> = (0..count).map(|n| pool.insert(Counted(&drops, n))).collect();
    assert!(pool.remove(keys[0]) && !pool.remove(keys[0]));
    let removed = std::sync::atomic::AtomicUsize::new(1);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (pool, keys, removed) = (&pool, &keys, &removed);
            scope.spawn(move || {
                let mut held = Vec::new();
                for (n, &key) in keys.iter().enumerate() {
                    if let Some(object) = pool.get(key) {
                        assert_eq!(object.1, n, "a key leads to its own object");
                        held.push(object);
                    }
                    if n % 4 == thread && pool.remove(key) {
                        removed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        assert!(pool.get(key).is_none() && !pool.contains_key(key));
                    }
                    if held.len() > 5 {
                        held.clear();
                        pool.trim();
                    }
                }
            });
        }
    });
    let removed = removed.into_inner();
    assert_eq!(drops.load(std::sync::atomic::Ordering::Relaxed), removed);
    assert_eq!(pool.len(), count - removed);
    let left: Vec<_> = keys.iter().copied().filter(|&key| pool.contains_key(key)).collect();
    assert_eq!(left.len(), count - removed);
    // New objects in the old slots have other keys.
    let again: Vec<_> = (0..count).map(|n| pool.insert(Counted(&drops, n))).collect();
    assert!(again.iter().all(|key| !keys.contains(key)));
    core::mem::forget(pool.get(left[0]));
    assert!(pool.take(left[0]).is_none() && pool.take(left[1]).is_some());
    pool.reset(Reset::RetainCapacity);
    assert_eq!(drops.load(std::sync::atomic::Ordering::Relaxed), count * 2);
    assert!(keys.iter().chain(&again).all(|&key| pool.get(key).is_none()));
    let last = pool.insert(Counted(&drops, 7));
    assert!(pool.get(last).is_some_and(|object| object.1 == 7) && !again.contains(&last));
    assert!(pool.get(super::Key::default()).is_none());
    drop(pool);
    assert_eq!(drops.into_inner(), count * 2 + 1);
}
