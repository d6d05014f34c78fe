//! Runtimes' own features: kinds, memory outside of the heap, words and states of threads, and an
//! out-of-memory handler.

extern crate std;

use core::ffi::c_void;
use core::ptr;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::vec::Vec;

use super::super::raw::{
    self, Heap, Mutator, Options, Runtime, ThreadState, Tracer, VERIFY_BARRIERS, VERIFY_HEAP,
};
use super::super::{BEGINS, ENDS, Event, FREED, LEAF, Span, TRACED, USER};
use super::{attached, leave};

const WORDS: usize = 4;

struct Handle(*mut *mut u8);

// SAFETY: each handle is used by the thread that made it.
unsafe impl Send for Handle {}

#[derive(Default)]
struct Seen {
    /// How many objects were traced of each kind, since the trace began.
    kinds: Mutex<HashMap<u32, usize>>,
    /// The runtime's own space: words outside of the heap, each with a mark.
    space: Mutex<HashMap<usize, bool>>,
    strange: Mutex<Vec<usize>>,
    /// Whether a trace is under way. `pausing`: whether a pause is under way.
    tracing: Mutex<bool>,
    pausing: Mutex<bool>,
    roots: Mutex<Vec<usize>>,
    /// How often there was no memory. `let_go`: the handles that may be dropped.
    asked: Mutex<usize>,
    let_go: Mutex<Vec<Handle>>,
}

fn seen<'a>(data: *mut c_void) -> &'a Seen {
    // SAFETY: the test's data, which outlives its heap.
    unsafe { &*data.cast::<Seen>() }
}

unsafe extern "C" fn trace(tracer: &Tracer, object: *mut c_void, kind: u32, data: *mut c_void) {
    *seen(data).kinds.lock().unwrap().entry(kind).or_default() += 1;
    // SAFETY: every traced object of these tests is `WORDS` words.
    unsafe { tracer.mark_range(object.cast(), WORDS) };
}

unsafe extern "C" fn outside(tracer: &Tracer, reference: *mut c_void, data: *mut c_void) {
    let seen = seen(data);
    assert!(*seen.tracing.lock().unwrap(), "only while it traces");
    assert!(*seen.pausing.lock().unwrap(), "not within a barrier, while others are at work");
    match seen.space.lock().unwrap().get_mut(&reference.addr()) {
        Some(mark) => {
            if !core::mem::replace(mark, true) {
                // SAFETY: one of the test's words.
                tracer.mark(unsafe { reference.cast::<*mut u8>().read() });
            }
        }
        None => seen.strange.lock().unwrap().push(reference.addr()),
    }
}

unsafe extern "C" fn event(event: &Event, data: *mut c_void) {
    let seen = seen(data);
    if event.span == Span::Pause as u32 {
        *seen.pausing.lock().unwrap() = event.edge == BEGINS;
    }
    if event.span == Span::Trace as u32 {
        *seen.tracing.lock().unwrap() = event.edge == BEGINS;
        if event.edge == BEGINS {
            seen.kinds.lock().unwrap().clear();
            seen.strange.lock().unwrap().clear();
            seen.space.lock().unwrap().values_mut().for_each(|mark| *mark = false);
        } else if event.flags & super::super::MINOR == 0 {
            // The runtime's own sweep: unreported words are dead.
            seen.space.lock().unwrap().retain(|_, mark| *mark);
        }
    }
    assert!(event.edge == BEGINS || event.edge == ENDS);
}

unsafe extern "C" fn roots(tracer: &Tracer, data: *mut c_void) {
    for &root in seen(data).roots.lock().unwrap().iter() {
        tracer.mark(ptr::without_provenance_mut(root));
    }
}

fn runtime(of: &Seen) -> Runtime {
    Runtime {
        data: ptr::from_ref(of).cast_mut().cast(),
        trace_kind: Some(trace),
        outside: Some(outside),
        event: Some(event),
        roots: Some(roots),
        ..Runtime::new()
    }
}

#[test]
fn trace_is_handed_the_kind_and_kinds_lie_apart() {
    let of = Seen::default();
    let (_heap, mutator) = attached(Options { markers: 1, ..Options::new() }, runtime(&of));
    // SAFETY: handles lead to all objects in use.
    unsafe {
        for kind in 0..8 {
            for _ in 0..=kind {
                let object = mutator.alloc(8 * WORDS, kind);
                if kind & LEAF == 0 {
                    object.write_bytes(0, 8 * WORDS);
                }
                assert_eq!(raw::object_kind(object), Some(kind));
                mutator.new_root(object).unwrap();
            }
        }
        let large = mutator.alloc(1 << 20, LEAF | FREED | USER);
        assert_eq!(raw::object_kind(large), Some(7));
        mutator.collect();
        let kinds = [(TRACED, 1), (FREED, 3), (USER, 5), (FREED | USER, 7)];
        assert_eq!(*of.kinds.lock().unwrap(), HashMap::from(kinds));
        let mut pages = HashMap::new();
        mutator.walk(|object, _, kind| {
            assert_eq!(*pages.entry(object.addr() >> 16).or_insert(kind), kind);
            true
        });
        mutator.detach();
    }
    assert_eq!(raw::object_kind(ptr::from_ref(&of).cast()), None);
}

#[test]
fn references_to_outside_are_reported_and_what_is_there_leads_back() {
    for (incremental, generations) in [(false, false), (true, false), (true, true)] {
        let of = Seen::default();
        // The runtime's own space: two words. One of them leads to an object.
        let own: [AtomicUsize; 2] = Default::default();
        let address = |n: usize| own[n].as_ptr();
        let verify = VERIFY_HEAP | VERIFY_BARRIERS;
        let options =
            Options { incremental, generations, verify, least: 64 << 10, ..Options::new() };
        let (heap, mutator) = attached(options, runtime(&of));
        // SAFETY: the handle leads to all objects in use, directly or through words outside.
        unsafe {
            let root = mutator.new_root(mutator.alloc(8 * WORDS, TRACED)).unwrap();
            let object = root.read().cast::<*mut u8>();
            let kept = mutator.alloc(8 * WORDS, LEAF);
            kept.cast::<usize>().write(42);
            address(0).write(kept.addr());
            for n in 0..2 {
                of.space.lock().unwrap().insert(address(n).addr(), false);
            }
            let (first, strange) = (address(0).cast::<u8>(), ptr::from_ref(&of).cast_mut().cast());
            mutator.write(object.cast(), object, first);
            mutator.write(object.cast(), object.wrapping_add(1), strange);
            for _ in 0..3 {
                mutator.collect();
            }
            // The runtime's own sweep freed the unreachable word. The other word's object is there.
            let left: Vec<_> = of.space.lock().unwrap().keys().copied().collect();
            assert_eq!(left, [first.addr()]);
            assert_eq!(heap.find(kept), Some(kept));
            assert_eq!(kept.cast::<usize>().read(), 42);
            let seen: Vec<_> = of.strange.lock().unwrap().clone();
            if !generations {
                assert_eq!(seen, [strange.addr()]);
            }
            mutator.write(object.cast(), object, ptr::null_mut());
            for _ in 0..2 {
                mutator.collect();
            }
            assert!(of.space.lock().unwrap().is_empty());
            assert_eq!(heap.find(kept), None);
            mutator.detach();
        }
    }
}

/// Traces an object with a number `n` and references. Reports `n` one by one, and then a range.
unsafe extern "C" fn trace_some_by_one(tracer: &Tracer, object: *mut c_void, _: *mut c_void) {
    // SAFETY: every traced object of the test begins with a number.
    let count = unsafe { object.cast::<usize>().read() };
    let slots = object.cast::<*mut u8>().wrapping_add(1);
    for n in 0..count {
        // SAFETY: a slot of the object.
        unsafe { tracer.mark_slot(slots.wrapping_add(n)) };
    }
    if count > 0 {
        // SAFETY: nine more slots of the object follow.
        unsafe { tracer.mark_range(slots.wrapping_add(count), 9) };
    }
}

unsafe extern "C" fn nothing_is_outside(_: &Tracer, reference: *mut c_void, _: *mut c_void) {
    std::eprintln!("{reference:?} is outside");
    // (A panic would not reach the test.)
    std::process::abort();
}

#[test]
fn null_is_not_outside_wherever_a_chunk_ends() {
    let runtime = Runtime {
        trace: Some(trace_some_by_one),
        outside: Some(nothing_is_outside),
        ..Runtime::new()
    };
    for markers in [1, 2] {
        let (_heap, mutator) = attached(Options { markers, ..Options::new() }, runtime);
        // SAFETY: roots lead to all objects in use, and objects have room for the writes.
        unsafe {
            let leaf = mutator.new_root(mutator.alloc(16, LEAF)).unwrap();
            let root = mutator.new_root(ptr::null_mut()).unwrap();
            // (A chunk has fewer places than the longest object here.)
            for count in if cfg!(miri) { 1010..1024 } else { 1..1100 } {
                let object = mutator.alloc(8 * (count + 10), TRACED).cast::<usize>();
                (0..count + 9)
                    .for_each(|n| object.cast::<*mut u8>().wrapping_add(1 + n).write(*leaf));
                object.write(count);
                *root = object.cast();
                mutator.collect();
            }
            mutator.detach();
        }
    }
}

// (The test searches for a step during marking, which takes minutes under Miri.)
#[cfg(not(miri))]
#[test]
fn a_store_of_what_is_outside_is_reported_though_the_parent_was_traced() {
    let of = Seen::default();
    let options = Options { incremental: true, markers: 1, ..Options::new() };
    let (heap, mutator) = attached(options, runtime(&of));
    let word = std::boxed::Box::new(0usize);
    let own = ptr::from_ref(&*word).cast_mut().cast::<u8>();
    // SAFETY: the handle leads to all objects in use.
    unsafe {
        // A long list, so that marking takes steps.
        let root = mutator.new_root(ptr::null_mut()).unwrap();
        for _ in 0..200_000 {
            let object = mutator.alloc(8 * WORDS, TRACED).cast::<*mut u8>();
            object.write(*root);
            *root = object.cast();
        }
        mutator.collect();
        let first = root.read();
        of.space.lock().unwrap().insert(own.addr(), false);
        mutator.ask();
        let mut steps = 0;
        while heap.inner().space.cycle.phase() != super::super::phase::Phase::Marking
            || !heap.inner().space.is_marked(first)
        {
            mutator.step(1);
            steps += 1;
            assert!(steps < 1_000_000, "the step that marks the first object");
        }
        assert!(!of.space.lock().unwrap()[&own.addr()]);
        mutator.write(first, first.cast::<*mut u8>().wrapping_add(2), own);
        while !mutator.step(1_000_000) {}
        assert!(of.space.lock().unwrap()[&own.addr()], "reported, or it would have been swept");
        mutator.detach();
    }
}

/// Bytes of the objects that fill a heap. (Under Miri the window has 8 MiB.)
const FILLS: usize = if cfg!(miri) { 128 << 10 } else { 1 << 20 };

unsafe extern "C" fn let_one_go(_: *mut c_void, size: usize, kind: u32, data: *mut c_void) -> bool {
    let seen = seen(data);
    assert_eq!((size, kind), (FILLS, LEAF));
    *seen.asked.lock().unwrap() += 1;
    let Some(Handle(root)) = seen.let_go.lock().unwrap().pop() else { return false };
    // SAFETY: a handle's cell, which only this thread writes.
    unsafe { root.write(ptr::null_mut()) };
    true
}

#[test]
fn the_handler_is_asked_until_there_is_memory_or_it_gives_up() {
    let of = Seen::default();
    let options = Options { most: 8 * FILLS, markers: 1, ..Options::new() };
    let runtime = Runtime { out_of_memory: Some(let_one_go), ..runtime(&of) };
    let (heap, mutator) = attached(options, runtime);
    // SAFETY: handles lead to all objects in use.
    unsafe {
        let mut made = 0;
        loop {
            let object = mutator.alloc(FILLS, LEAF);
            if object.is_null() {
                break;
            }
            made += 1;
            let root = mutator.new_root(object).unwrap();
            // The handler may drop the first four objects.
            if made <= 4 {
                of.let_go.lock().unwrap().push(Handle(root));
            }
        }
        assert!(of.let_go.lock().unwrap().is_empty());
        // Each dropped handle made room for one more object. The last call made no room.
        assert_eq!(*of.asked.lock().unwrap(), 5);
        assert!((8..=12).contains(&made), "{made}");
        heap.set_target(0, 0, 16 * FILLS);
        assert!(!mutator.alloc(FILLS, LEAF).is_null());
        mutator.detach();
    }
}

struct Handed(*mut c_void);

// SAFETY: one thread at a time uses the mutator.
unsafe impl Send for Handed {}

#[test]
fn a_mutator_has_a_word_and_a_state() {
    let (heap, mutator) = attached(Options::new(), Runtime::new());
    assert!(mutator.data().is_null());
    let word = ptr::without_provenance_mut(0x1230);
    mutator.set_data(word);
    assert_eq!(mutator.data(), word);
    let states = || {
        let mut all = Vec::new();
        assert_eq!(heap.attached(|_, state| all.push(state)), all.len());
        all
    };
    assert_eq!(
        (mutator.state(), states()),
        (ThreadState::AtWork, Vec::from([ThreadState::AtWork]))
    );
    // SAFETY: the heap has no objects.
    unsafe {
        mutator.away(|| assert_eq!(states(), [ThreadState::Away]));
        // While the world is stopped, no mutator comes back, and `try_enter` does not wait.
        mutator.leave();
        std::thread::scope(|scope| {
            let heap = &heap;
            let other = scope.spawn(move || {
                let other = heap.attach().unwrap();
                other.leave();
                Handed(other.into_ptr())
            });
            let other = Mutator::from_ptr(other.join().unwrap().0);
            mutator.enter();
            heap.inner().stopped(mutator.inner(), || {
                assert!(!other.try_enter());
                assert_eq!(states(), [ThreadState::Away, ThreadState::AtWork]);
            });
            mutator.leave();
            assert!(other.try_enter(), "the world goes on");
            other.detach();
            mutator.enter();
        });
        mutator.detach();
        // The next mutator begins without a word.
        let mutator = heap.attach().unwrap();
        assert!(mutator.data().is_null());
        mutator.detach();
    }
}

#[test]
fn a_visit_of_mutators_may_ask_anything_of_the_heap() {
    let (heap, mutator) = attached(Options::new(), Runtime::new());
    // SAFETY: the heap has no objects.
    unsafe {
        mutator.away(|| {
            std::thread::scope(|scope| {
                let mut here = Vec::new();
                let other = scope.spawn(|| {
                    let other = heap.attach().unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    other.detach();
                });
                let count = heap.attached(|visited, _| {
                    assert!(heap.is_attached() && heap.statistics().mutators > 0);
                    let joined = heap.attach_away().unwrap();
                    assert!(heap.attached(|at, _| assert!(!at.is_null())) >= 2);
                    heap.set_target(0, 1 << 20, 0);
                    here.push(visited);
                    joined.enter();
                    joined.detach();
                });
                assert_eq!(here.len(), count);
                other.join().unwrap();
                let me = ptr::from_ref(mutator.inner()).cast_mut().cast();
                assert!(here.contains(&me), "visited");
            });
        });
        assert_eq!(heap.attached(|_, _| {}), 1);
        mutator.detach();
    }
    // After a panic in a visit every mutator can still detach.
    let mutator = heap.attach().unwrap();
    let visit = std::panic::AssertUnwindSafe(|| heap.attached(|_, _| panic!("in a visit")));
    assert!(std::panic::catch_unwind(visit).is_err());
    leave(mutator);
}

#[test]
fn a_mutator_that_is_away_may_come_back_in_another_thread() {
    let (heap, mutator) = attached(Options::new(), Runtime::new());
    // SAFETY: the heap has no objects in use.
    unsafe {
        mutator.leave();
        let handed = Handed(mutator.into_ptr());
        std::thread::scope(|scope| {
            let heap = &heap;
            scope.spawn(move || {
                let Handed(at) = { handed };
                let mutator = Mutator::from_ptr(at);
                mutator.enter();
                assert!(heap.is_attached());
                assert!(!mutator.alloc(64, TRACED).is_null());
                mutator.collect();
                mutator.detach();
            });
        });
    }
    assert!(!heap.is_attached());
}

/// A third thread collects, and waits for the first thread, so the first must not wait.
#[test]
fn a_mutator_is_made_for_another_thread_while_a_collection_waits_for_this_one() {
    let of = Seen::default();
    let heap = &Heap::new(Options::new(), runtime(&of)).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let (ready, is_ready) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mutator = heap.attach().unwrap();
            ready.send(()).unwrap();
            while !mutator.is_asked() {
                std::thread::yield_now();
            }
            let away = heap.attach_away().unwrap();
            tell.send(()).unwrap();
            // SAFETY: there are no objects; this thread leaves before it takes the other mutator.
            unsafe {
                mutator.safepoint();
                mutator.detach();
                away.enter();
                assert_eq!(away.state(), ThreadState::AtWork);
                away.detach();
            }
        });
        is_ready.recv().unwrap();
        scope.spawn(|| {
            let mutator = heap.attach().unwrap();
            // SAFETY: there are no objects.
            unsafe {
                mutator.collect();
                mutator.detach();
            }
        });
        if told.recv_timeout(std::time::Duration::from_secs(60)).is_err() {
            // The threads wait for each other, and the scope would wait for them.
            std::eprintln!("a mutator that is away is not made while the world stands still");
            std::process::abort();
        }
    });
}
