//! Threads that live but do not allocate: their memory serves other threads, and goes back.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use common::{Owned, Random, alone, stats};
use heapwright::heap;

const MIB: usize = 1 << 20;

fn build() -> Vec<Owned> {
    (0..32 * MIB / 1000).map(|_| Owned::malloc(1000)).collect()
}

fn shuffle(blocks: &mut [Owned]) {
    let mut random = Random::new(11);
    for at in (1..blocks.len()).rev() {
        blocks.swap(at, random.below(at + 1));
    }
}

fn ours() -> usize {
    let now = stats();
    (now.rss - now.rss_not_ours) as usize
}

fn beside_an_idle_thread<T: Send + 'static>(
    first: impl FnOnce() -> T + Send + 'static,
    then: impl FnOnce(T),
) {
    let (end, ended): (Sender<()>, Receiver<()>) = channel();
    let (done, result) = channel();
    let idle = thread::spawn(move || {
        done.send(first()).unwrap();
        let _ = ended.recv();
    });
    then(result.recv().unwrap());
    drop(end);
    idle.join().unwrap();
    heap::trim(0);
}

#[test]
fn what_others_free_of_an_idle_threads_blocks_serves_them() {
    let _alone = alone();
    beside_an_idle_thread(build, |mut blocks| {
        let full = ours();
        shuffle(&mut blocks);
        blocks.into_iter().for_each(Owned::free);
        let own = build();
        let again = ours();
        assert!(again < full + 6 * MIB, "{again} bytes; {full} when the other thread held as much");
        own.into_iter().for_each(Owned::free);
    });
}

#[test]
fn what_an_idle_thread_has_left_over_serves_others() {
    let _alone = alone();
    let some = || {
        let mut blocks = build();
        shuffle(&mut blocks);
        let kept = blocks.split_off(blocks.len() - blocks.len() / 10);
        blocks.into_iter().for_each(Owned::free);
        kept
    };
    beside_an_idle_thread(some, |kept| {
        let before = ours();
        let own = build();
        let after = ours();
        let more = after.saturating_sub(before);
        assert!(more < 12 * MIB, "{more} bytes more for 32 MiB, of which 29 MiB were there");
        own.into_iter().for_each(Owned::free);
        kept.into_iter().for_each(Owned::free);
    });
}

/// Calls `then` beside an idle thread that has made blocks and freed them all. `then` gets the
/// number of resident bytes before that.
fn beside_a_thread_that_freed_all(then: impl FnOnce(usize)) {
    let _alone = alone();
    heap::trim(0);
    let before = ours();
    beside_an_idle_thread(|| build().into_iter().for_each(Owned::free), |()| then(before));
}

#[test]
fn a_trim_reaches_what_an_idle_thread_has_left_over() {
    beside_a_thread_that_freed_all(|before| {
        heap::trim(0);
        let left = ours().saturating_sub(before);
        assert!(left < MIB, "{left} bytes of an idle thread after a trim");
    });
}

#[test]
fn others_who_allocate_a_little_give_an_idle_threads_pages_back() {
    beside_a_thread_that_freed_all(|before| {
        // The thread's lists alone could serve these calls.
        let deadline = Instant::now() + Duration::from_secs(20);
        while ours() > before + 2 * MIB {
            assert!(Instant::now() < deadline, "{} bytes left, {before} before", ours());
            for _ in 0..20 {
                Owned::malloc(100).free();
                sleep(Duration::from_millis(2));
            }
        }
    });
}

#[test]
fn threads_that_take_each_others_slabs_lose_and_double_nothing() {
    let _alone = alone();
    let rounds = 30;
    let threads: Vec<_> = (0..4)
        .map(|seed| {
            thread::spawn(move || {
                let mut random = Random::new(seed);
                // Each thread alternates between many blocks and nearly none, at its own times.
                for _ in 0..rounds {
                    let mut blocks: Vec<Owned> =
                        (0..2000).map(|_| Owned::malloc(1 + random.below(3000))).collect();
                    shuffle(&mut blocks);
                    while blocks.len() > 100 {
                        blocks.pop().unwrap().free();
                    }
                    for _ in 0..500 {
                        let at = random.below(blocks.len());
                        blocks.swap_remove(at).free();
                        blocks.push(Owned::malloc(1 + random.below(3000)));
                    }
                    blocks.into_iter().for_each(Owned::free);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    heap::trim(0);
    assert_eq!(stats().live_blocks, 0, "{:?}", stats());
}
