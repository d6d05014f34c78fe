//! Tests of rings as queues, shuffled and shut, without a heap behind them.

extern crate std;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::VecDeque;
use std::vec::Vec;

use super::*;

fn with_cache(full: bool, run: impl FnOnce(&Cache)) {
    let shape = Shape { full, is_limited: false };
    let layout = Layout::from_size_align(bytes(shape), 64).expect("a layout");
    // SAFETY: the layout has a size.
    let at = unsafe { alloc_zeroed(layout) };
    // SAFETY: zeros are a cache without a place.
    let cache = unsafe { &mut *at.cast::<Cache>() };
    cache.begin(
        &crate::cache::hot::tests::NOTHING,
        at.wrapping_add(size_of::<Cache>()).cast(),
        shape,
    );
    run(cache);
    // SAFETY: made above, and not used any more.
    unsafe { dealloc(at, layout) };
}

/// Miri is slow.
const STEP: usize = if cfg!(miri) { 30 } else { 1 };

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
            let start = (u32::MAX - ring.mask.get() / 2) & !(PLACE - 1);
            ring.head.store(start, Ordering::Relaxed);
            ring.tail.store(start, Ordering::Relaxed);
            let mut model = VecDeque::new();
            for number in 1..if cfg!(miri) { 150 } else { 2000 } {
                ring.push::<false>(slot(number), ptr::null());
                model.push_back(number);
                if model.len() as u32 * PLACE > ring.full.get() as u32 {
                    assert_eq!(Some(pop(ring)), model.pop_front());
                }
                assert_eq!(ring.count(), model.len() as i32 * PLACE as i32);
                let head = ring.head.load(Ordering::Relaxed);
                for (ready, is_ready) in [(head.wrapping_add(PLACE), true), (head, false)] {
                    ring.ready.store(ready, Ordering::Relaxed);
                    assert_eq!(ring.has_ready(), is_ready);
                }
            }
            ring.head.store(ring.tail.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    });
}

/// An entry changes places only with a waiting entry, and no entry is lost or doubled.
#[test]
fn a_shuffled_ring_keeps_its_entries() {
    with_cache(true, |cache| {
        for ring in cache.rings.iter().filter(|ring| ring.room < QUICK).step_by(STEP) {
            let (mut held, mut number) = (Vec::new(), 0);
            while ring.count() < ring.stays.get() {
                number += 1;
                ring.push::<true>(slot(number), ptr::null());
                held.push(number);
            }
            // Too few entries waited for an exchange when the ring was opened.
            let first = ring.place(ring.head.load(Ordering::Relaxed));
            assert_eq!(first.block.load(Ordering::Relaxed), slot(1));
            let mut in_order = true;
            for _ in 0..if cfg!(miri) { 50 } else { 1000 } {
                ring.open(ring.head.load(Ordering::Relaxed), cache.reach);
                assert!(ring.reach.get() <= cache.reach);
                number += 1;
                ring.push::<true>(slot(number), ptr::null());
                held.push(number);
                let popped = pop(ring);
                let at = held.iter().position(|&one| one == popped);
                in_order &= at == Some(0);
                held.remove(at.expect("an entry that was there, once"));
            }
            assert!(cfg!(miri) || !in_order);
            while ring.count() > 0 {
                let popped = pop(ring);
                let at = held.iter().position(|&one| one == popped);
                held.remove(at.expect("an entry that was there, once"));
            }
            assert!(held.is_empty());
        }
    });
}

/// When enough entries wait, the oldest are ready.
#[test]
fn entries_wait_until_enough_others_do() {
    with_cache(false, |cache| {
        for class in (0..CLASSES).step_by(STEP) {
            cache.grown.set(0);
            let ring = &cache.rings[class];
            let shape = Shape { full: false, is_limited: false };
            let (stays, renewed) = (last_stays(class, shape), renewed(class, shape));
            for number in 1..=stays + renewed {
                assert!(!cache.renew(class) && !ring.has_ready());
                ring.push::<false>(slot(number), ptr::null());
            }
            // The ring may grow by its last steps first.
            let _ = cache.renew(class);
            assert!(ring.has_ready() || cache.renew(class));
            for number in 1..=renewed {
                assert!(ring.has_ready());
                assert_eq!(pop(ring), number);
            }
            assert!(!ring.has_ready() && !cache.renew(class));
            assert_eq!(ring.count(), (stays * PLACE as usize) as i32);
        }
    });
}

#[test]
fn a_ring_that_widens_keeps_its_entries() {
    let shape = Shape { full: true, is_limited: false };
    for class in (0..CLASSES).step_by(STEP) {
        let (room, last) = (first_room(class, shape), last_room(class, shape));
        for start in (0..last as u32).step_by(room / 4 + 1) {
            with_cache(true, |cache| {
                let ring = &cache.rings[class];
                let start = start.wrapping_sub(5).wrapping_mul(PLACE);
                ring.head.store(start, Ordering::Relaxed);
                ring.tail.store(start, Ordering::Relaxed);
                let (few, many) = (room - 4, last - 4);
                (1..=few).for_each(|number| ring.push::<false>(slot(number), ptr::null()));
                ring.widen((last_stays(class, shape) * PLACE as usize) as i32);
                assert_eq!(ring.mask.get(), (last as u32 - 1) * PLACE);
                (few + 1..=many).for_each(|number| ring.push::<false>(slot(number), ptr::null()));
                (1..=many).for_each(|number| assert_eq!(pop(ring), number));
            });
        }
    }
}

/// If the rings of other classes have grown, only a few entries of a class wait.
#[test]
fn a_thread_has_a_budget() {
    with_cache(false, |cache| {
        let shape = Shape { full: false, is_limited: false };
        cache.grown.set(budget(shape));
        for class in (0..CLASSES).step_by(STEP) {
            let ring = &cache.rings[class];
            let (stays, renewed) = (first_stays(class, shape), renewed(class, shape));
            for number in 1..=stays + renewed {
                assert!(!cache.renew(class));
                ring.push::<false>(slot(number), ptr::null());
            }
            assert!(cache.renew(class));
            assert_eq!(pop(ring), 1);
        }
    });
}

/// All entries come out in another order, except the newest.
#[test]
fn a_forked_child_takes_another_order() {
    with_cache(false, |cache| {
        let ring = &cache.rings[2];
        cache.grown.set(usize::MAX / 2);
        let count = ring.stays.get() as usize / PLACE as usize + 100;
        for number in 1..=count {
            ring.push::<false>(slot(number), ptr::null());
        }
        assert!(cache.renew(2) && ring.has_ready());
        ring.forget_order();
        assert!(!ring.has_ready());
        // A call that the fork interrupted changes nothing.
        ring.open(ring.head.load(Ordering::Relaxed).wrapping_add(PLACE), cache.reach);
        assert!(!ring.has_ready());
        assert!(cache.renew(2) && ring.has_ready());
        let order: Vec<_> = (0..count).map(|_| pop(ring)).collect();
        let newest = count - PENDING as usize;
        assert!(order[newest..].iter().copied().eq(newest + 1..=count));
        let in_place = (0..newest).filter(|&at| order[at] == at + 1).count();
        // On average one entry keeps its place. The probability of twenty is 10^-18.
        assert!(in_place < 20, "{in_place} of {count}");
        let mut sorted = order;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(1..=count));
    });
}

/// No entry is lost when freed slots change places.
#[test]
fn a_forked_child_with_few_entries_keeps_them() {
    with_cache(true, |cache| {
        let ring = &cache.rings[2];
        ring.widen(last_stays(2, Shape { full: true, is_limited: false }) as i32 * PLACE as i32);
        ring.stays.set(2 * cache.reach);
        let mut held: Vec<_> = (1..=4).collect();
        held.iter().for_each(|&number| ring.push::<true>(slot(number), ptr::null()));
        ring.forget_order();
        assert_eq!(cache.slowly(2, |_, _| ()), Some(()));
        for number in 5..100 {
            ring.push::<true>(slot(number), ptr::null());
            held.push(number);
        }
        let mut popped: Vec<_> = held.iter().map(|_| pop(ring)).collect();
        popped.sort_unstable();
        assert_eq!(popped, held);
    });
}

#[test]
fn a_shut_ring_gives_and_takes_nothing() {
    for full in [false, true] {
        with_cache(full, |cache| {
            let ring = &cache.rings[2];
            for number in 1..=3 * LEAST_WAIT as usize {
                ring.push::<false>(slot(number), ptr::null());
            }
            ring.open(ring.head.load(Ordering::Relaxed).wrapping_add(PLACE), cache.reach);
            assert!(ring.has_ready() && !ring.is_full());
            let inner = cache.slowly(2, |ring, _| {
                assert!(!ring.has_ready() && ring.is_full());
                // As in a signal handler.
                let inner = || cache.slowly(2, |_, _| ());
                (inner(), cache.slowly(3, |_, _| ()), cache.busily(|| ()))
            });
            assert_eq!(inner, Some((None, None, None)));
            assert!(ring.has_ready() && !ring.is_full());
            // The ring is in the middle of a push with `hardened:full`.
            ring.most.store(SHUT, Ordering::Relaxed);
            assert!(ring.is_full() && cache.slowly(2, |_, _| ()).is_none());
        });
    }
}
