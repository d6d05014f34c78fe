//! Events, compared with collections: spans nest, follow one another, and agree with statistics.
//!
//! ```text
//!   Seen { events } <--event-- a heap: incremental, with generations, moving, or none of these
//! ```

extern crate std;

use core::ffi::c_void;
use std::sync::Mutex;
use std::vec::Vec;

use super::super::raw::{Heap, Mutator, Options, Runtime, Tracer};
use super::super::{BEGINS, COMPACTS, ENDS, EVENT_SIZE, Event, LEAF, MINOR, STOPPED, Span, TRACED};
use super::{attached, collect, leave};

const WORDS: usize = 4;
const ROUNDS: usize = if cfg!(miri) { 60 } else { 15_000 };

#[derive(Default)]
struct Seen(Mutex<Vec<Event>>);

// SAFETY: the pointers of events are only compared.
unsafe impl Sync for Seen {}

unsafe extern "C" fn trace(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
    // SAFETY: every traced object of these tests is `WORDS` words.
    unsafe { tracer.mark_range(object.cast(), WORDS) };
}

unsafe extern "C" fn event(event: &Event, data: *mut c_void) {
    // SAFETY: the test's list outlives its heap.
    unsafe { &*data.cast::<Seen>() }.0.lock().unwrap().push(*event);
}

fn heap_of(options: Options, seen: &Seen, large_bytes: usize) -> Heap {
    let data = core::ptr::from_ref(seen).cast_mut().cast();
    let runtime =
        Runtime { data, trace: Some(trace), event: Some(event), large_bytes, ..Runtime::new() };
    Heap::new(options, runtime).unwrap()
}

/// Options with which collections come often, and in small steps.
fn often() -> Options {
    Options { least: 128 << 10, step_ns: 20_000, ..Options::new() }
}

fn work(mutator: &Mutator) {
    // SAFETY: a handle leads to all objects in use.
    unsafe {
        let root = mutator.new_root(core::ptr::null_mut()).unwrap();
        for round in 0..ROUNDS {
            let object = mutator.alloc(8 * WORDS + 16 * (round % 7), TRACED).cast::<*mut u8>();
            assert!(!object.is_null());
            if round % 5 == 0 {
                mutator.write(object.cast(), object, *root);
                *root = if round % 3000 == 0 { core::ptr::null_mut() } else { object.cast() };
            }
            if round % 64 == 0 {
                mutator.step(10_000);
            }
        }
        mutator.free_root(root);
        mutator.collect();
    }
}

/// Returns whether a span may begin within the open spans. Sweeping runs beside pauses.
fn may_be_within(span: u32, open: &[u32]) -> bool {
    let is = |of: Span| span == of as u32;
    let has = |of: Span| open.contains(&(of as u32));
    if is(Span::Collection) {
        has(Span::Pause) && !has(Span::Sweep)
    } else if is(Span::Pause) {
        !has(Span::Mark) && !has(Span::Move)
    } else if is(Span::Trace) {
        has(Span::Collection) && has(Span::Pause)
    } else if is(Span::Roots) || is(Span::Weak) {
        has(Span::Trace) && has(Span::Mark) && !has(Span::Roots) && !has(Span::Weak)
    } else if is(Span::Mark) || is(Span::Move) {
        has(Span::Pause) && has(Span::Collection) && !has(Span::Mark) && !has(Span::Move)
    } else {
        is(Span::Sweep) && has(Span::Collection) && !has(Span::Trace)
    }
}

fn check(seen: &Seen, heap: &Heap) {
    // Another thread may sweep the last page before the pausing thread reports the pause's end.
    let mut events = seen.0.lock().unwrap().clone();
    events.sort_by_key(|event| event.time_ns);
    let mut open = Vec::new();
    let mut counts = [0u64; 10];
    let (mut minors, mut collection, mut pauses) = (0, 0, 0);
    let mut waited = 0;
    for event in &events {
        assert_eq!((event.size, event.edge & !1), (EVENT_SIZE, 0));
        assert!(event.thread != 0 && event.heap == events[0].heap, "{event:?}");
        if event.edge == BEGINS {
            assert!(may_be_within(event.span, &open), "{event:?} within {open:?}");
            open.push(event.span);
            counts[event.span as usize] += 1;
        } else {
            let at = open.iter().rposition(|&span| span == event.span);
            open.remove(at.unwrap_or_else(|| panic!("{event:?} did not begin: {open:?}")));
        }
        if event.span == Span::Collection as u32 && event.edge == BEGINS {
            collection += 1;
            minors += u64::from(event.flags & MINOR);
        }
        assert_eq!(event.collection, collection);
        if event.span == Span::Pause as u32 {
            assert_eq!(event.flags & STOPPED != 0, event.edge == BEGINS);
            match event.edge {
                BEGINS => waited += event.ns,
                _ => pauses += event.ns,
            }
        }
        // The thread that sweeps the last page reports without a mutator.
        let by_sweep = matches!(event.span, 1 | 8) && event.edge == ENDS || event.span == 8;
        assert_eq!(event.mutator.is_null(), by_sweep, "{event:?}");
    }
    assert_eq!(open, [], "all has ended");
    let statistics = heap.statistics();
    assert_eq!(counts[Span::Collection as usize], statistics.cycles);
    assert_eq!(counts[Span::Trace as usize], statistics.cycles);
    assert_eq!(counts[Span::Sweep as usize], statistics.cycles);
    assert_eq!(counts[Span::Pause as usize], statistics.pauses);
    assert_eq!(minors, statistics.minor_cycles);
    assert_eq!((pauses, waited), (statistics.pause_ns, statistics.safepoint_ns));
    assert!(counts[Span::Roots as usize] >= statistics.cycles);
    assert!(counts[Span::Weak as usize] >= statistics.cycles);
}

#[test]
fn spans_nest_and_are_as_many_as_statistics_count() {
    let plain = Options { markers: 1, ..often() };
    for options in [
        plain,
        Options { incremental: true, ..plain },
        Options { generations: true, ..plain },
        Options { incremental: true, generations: true, compact: true, ..plain },
        Options { markers: 0, ..plain },
    ] {
        let seen = Seen::default();
        let heap = heap_of(options, &seen, 0);
        let mutator = heap.attach().unwrap();
        work(&mutator);
        // SAFETY: no object is in use any more, and slots are reported as slots.
        unsafe { mutator.compact() };
        check(&seen, &heap);
        let events = seen.0.lock().unwrap().clone();
        let moves = |event: &&Event| event.span == Span::Move as u32 && event.edge == ENDS;
        let moved: u64 = events.iter().filter(moves).map(|event| event.bytes).sum();
        assert_eq!(moved, heap.statistics().moved_bytes);
        let compacts = events.iter().any(|event| event.flags & COMPACTS != 0);
        assert_eq!(compacts, events.iter().any(|event| event.span == Span::Move as u32));
        leave(mutator);
    }
}

#[test]
fn events_of_several_threads_are_in_one_order() {
    let seen = Seen::default();
    let options = Options { incremental: true, generations: true, ..often() };
    let heap = heap_of(options, &seen, 0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mutator = heap.attach().unwrap();
                work(&mutator);
                leave(mutator);
            });
        }
    });
    let mutator = heap.attach().unwrap();
    collect(&mutator);
    check(&seen, &heap);
    leave(mutator);
}

#[test]
fn large_objects_are_told_of_when_they_come_and_go() {
    const LEAST: usize = 100_000;
    let seen = Seen::default();
    let heap = heap_of(Options { markers: 1, ..Options::new() }, &seen, LEAST);
    let mutator = heap.attach().unwrap();
    let lives = |edge: u32| -> Vec<(usize, u64)> {
        let seen = seen.0.lock().unwrap();
        let of = |event: &&Event| event.span == Span::Large as u32 && event.edge == edge;
        seen.iter().filter(of).map(|event| (event.object.addr(), event.bytes)).collect()
    };
    // SAFETY: the handle leads to all objects in use.
    unsafe {
        let root = mutator.new_root(core::ptr::null_mut()).unwrap();
        assert!(!mutator.alloc(LEAST - 1, LEAF).is_null());
        *root = mutator.alloc(LEAST, LEAF);
        let dead = mutator.alloc(300_000, LEAF);
        assert!(!mutator.alloc(1000, LEAF).is_null());
        let made = [(root.read().addr(), LEAST as u64), (dead.addr(), 300_000)];
        assert_eq!((lives(BEGINS), lives(ENDS)), (made.to_vec(), Vec::new()));
        mutator.collect();
        assert_eq!((lives(BEGINS), lives(ENDS)), (made.to_vec(), made[1..].to_vec()));
        mutator.free_root(root);
        mutator.detach();
        drop(heap);
        assert_eq!(lives(ENDS), [made[1], made[0]]);
    }
}

#[test]
fn a_heap_that_nobody_listens_to_tells_nothing() {
    let seen = Seen::default();
    let data = core::ptr::from_ref(&seen).cast_mut().cast();
    let runtime = Runtime { data, trace: Some(trace), large_bytes: 1, ..Runtime::new() };
    let (heap, mutator) = attached(Options::new(), runtime);
    work(&mutator);
    leave(mutator);
    assert!(heap.statistics().cycles > 0 && seen.0.lock().unwrap().is_empty());
}
