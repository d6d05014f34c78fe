//! A process whose first allocations come from several threads at once. Each thread's cache must be
//! abandoned at the thread's end, so the heap must notice the end of even the first threads.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{Owned, case, pass_alone, stats};

const THREADS: usize = 3;
const PROCESSES: usize = 300;

#[test]
fn what_the_first_threads_had_comes_back() {
    if case().is_none() {
        for process in 0..PROCESSES {
            pass_alone("what_the_first_threads_had_comes_back", &process.to_string(), "");
        }
        return;
    }
    // The threads spin, because threads that sleep wake one after the other.
    let ready = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                ready.fetch_add(1, Ordering::Relaxed);
                while ready.load(Ordering::Relaxed) < THREADS {
                    std::hint::spin_loop();
                }
                Owned::malloc(100).free();
            });
        }
    });
    // A scope only waits for the functions of its threads, not for their ends.
    let deadline = Instant::now() + Duration::from_secs(5);
    while stats().caches_live > 0 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    let end = stats();
    assert_eq!(end.caches_live, 0, "of {} caches", end.caches_made);
    assert_eq!(end.live_blocks, 0);
}
