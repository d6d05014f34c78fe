//! Rings as queues, shuffled and shut: without a heap behind them.

extern crate std;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::VecDeque;
use std::vec::Vec;

use super::*;

/// A cache with empty rings, for as long as `run` takes.
fn with_cache(full: bool, run: impl FnOnce(&Cache)) {
    let layout = Layout::from_size_align(bytes(full), 64).expect("a layout");
    // SAFETY: the layout has a size.
    let at = unsafe { alloc_zeroed(layout) };
    // SAFETY: zeros are a cache without a place.
    let cache = unsafe { &mut *at.cast::<Cache>() };
    cache.begin(at.wrapping_add(size_of::<Cache>()).cast(), full);
    run(cache);
    // SAFETY: made above, and not used any more.
    unsafe { dealloc(at, layout) };
}

/// Of rings one in so many: Miri takes its time.
const STEP: usize = if cfg!(miri) { 30 } else { 1 };

/// A slot that nobody reads.
fn slot(number: usize) -> *mut u8 {
    ptr::without_provenance_mut(number * 16)
}

fn pop(ring: &Ring) -> usize {
    ring.place(ring.step::<HEAD>()).block.load(Ordering::Relaxed).addr() / 16
}

#[test]
fn a_ring_is_a_queue_across_the_wrap_of_its_counters() {
    with_cache(false, |cache| {
        for ring in cache.rings.iter().step_by(STEP) {
            let start = (u32::MAX - ring.mask / 2) & !(PLACE - 1);
            ring.head.store(start, Ordering::Relaxed);
            ring.tail.store(start, Ordering::Relaxed);
            let mut model = VecDeque::new();
            for number in 1..if cfg!(miri) { 150 } else { 500 } {
                ring.push::<false>(slot(number), ptr::null());
                model.push_back(number);
                if model.len() as u32 * PLACE > ring.full as u32 {
                    assert_eq!(Some(pop(ring)), model.pop_front());
                }
                let count = model.len() as i32 * PLACE as i32;
                assert_eq!(ring.count(), count);
                assert_eq!(ring.has_more_than::<KEEP>(), count > ring.stays);
            }
            ring.head.store(ring.tail.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    });
}

/// With `hardened:full` an entry changes places only with one that is there, and none is lost or doubled.
#[test]
fn a_shuffled_ring_keeps_its_entries() {
    with_cache(true, |cache| {
        for ring in cache.rings.iter().filter(|ring| ring.room < QUICK).step_by(STEP) {
            // The short way is closed until there are as many as stay.
            let (mut held, mut number) = (Vec::new(), 0);
            while ring.count() < ring.stays {
                ring.open();
                assert!(ring.has_more_than::<MOST>(), "{} of {}", ring.count(), ring.stays);
                number += 1;
                ring.put(ring.step::<TAIL>(), slot(number), ptr::null(), false);
                held.push(number);
            }
            ring.open();
            let mut in_order = true;
            for _ in 0..if cfg!(miri) { 50 } else { 1000 } {
                assert!(!ring.has_more_than::<MOST>());
                number += 1;
                ring.push::<true>(slot(number), ptr::null());
                held.push(number);
                let popped = pop(ring);
                let at = held.iter().position(|&one| one == popped);
                in_order &= at == Some(0);
                held.remove(at.expect("an entry that was there, once"));
            }
            assert!(!in_order);
            while ring.count() > 0 {
                let popped = pop(ring);
                let at = held.iter().position(|&one| one == popped);
                held.remove(at.expect("an entry that was there, once"));
            }
            assert!(held.is_empty());
        }
    });
}

#[test]
fn a_shut_ring_gives_and_takes_nothing() {
    for full in [false, true] {
        with_cache(full, |cache| {
            let ring = &cache.rings[2];
            for number in 0..ring.stays as usize / PLACE as usize + 1 {
                ring.put(ring.step::<TAIL>(), slot(number + 1), ptr::null(), false);
            }
            ring.open();
            assert!(ring.has_more_than::<KEEP>() && !ring.has_more_than::<MOST>());
            let inner = cache.slowly(2, |ring| {
                assert!(!ring.has_more_than::<KEEP>() && ring.has_more_than::<MOST>());
                // What a signal handler would do.
                (cache.slowly(2, |_| ()), cache.slowly(3, |_| ()), cache.busily(|| ()))
            });
            assert_eq!(inner, Some((None, None, None)));
            assert!(ring.has_more_than::<KEEP>() && !ring.has_more_than::<MOST>());
            // In the middle of a push with `hardened:full`.
            ring.most.store(SHUT, Ordering::Relaxed);
            assert!(ring.has_more_than::<MOST>() && cache.slowly(2, |_| ()).is_none());
        });
    }
}
