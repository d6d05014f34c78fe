//! The heap against a model: a shadow of every object and reference.
//!
//! ```text
//!   object   | serial | reference | reference | ... |        what the heap keeps
//!   shadow   serial -> address, kind, size, references       what the test knows
//! ```
//!
//! A random mutator makes objects of all sizes and kinds, stores references between them, makes and
//! frees handles, collects a little or wholly. After each full collection, objects that the
//! shadow's handles lead to are there, unchanged. The other objects are gone after two collections.
//! An object of a freed kind was freed once if it died, and not otherwise.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a runtime is unsafe from end to end: each test says once what it promises"
)]

mod ages;
mod between_steps;
mod dump;
mod events;
mod generations;
pub(super) mod ground;
mod inaccessible;
mod large;
mod long;
mod moving;
mod once_wrong;
mod runtimes;
mod settling;
// Each of its tests runs hundreds of collections.
#[cfg(not(miri))]
mod tight;
mod weak;

extern crate std;

use core::ffi::c_void;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::vec::Vec;

use proptest::prelude::*;

use super::raw::{Heap, Mutator, Options, Runtime, STRESS, Tracer, VERIFY_BARRIERS, VERIFY_HEAP};
use super::{FREED, LEAF, Layout, TRACED};

const STEPS: usize = if cfg!(miri) { 12 } else { 400 };
const LARGE: usize = if cfg!(miri) { 70_000 } else { 200_000 };
const MIDDLE: usize = if cfg!(miri) { 2_000 } else { 40_000 };

#[repr(C)]
struct Head {
    serial: usize,
    count: usize,
}

/// Serials of the objects that a heap has freed: the data of its runtime.
type Freed = Mutex<Vec<usize>>;

fn references(object: *mut u8) -> *mut *mut u8 {
    object.cast::<Head>().wrapping_add(1).cast()
}

unsafe extern "C" fn trace(tracer: &Tracer, object: *mut c_void, _data: *mut c_void) {
    let object = object.cast::<u8>();
    // SAFETY: every traced object of these tests begins with a head, or with zeroes.
    let count = unsafe { (*object.cast::<Head>()).count };
    if count > 40 {
        // SAFETY: the head says how many references follow.
        return unsafe { tracer.mark_range(references(object), count) };
    }
    for n in 0..count {
        // SAFETY: the head says how many references follow.
        tracer.mark(unsafe { references(object).wrapping_add(n).read() });
    }
}

fn attached(options: Options, runtime: Runtime) -> (Heap, Mutator) {
    let heap = Heap::new(options, runtime).unwrap();
    let mutator = heap.attach().unwrap();
    (heap, mutator)
}

/// An object that begins with a head, with `count` references, all null.
fn node(mutator: &Mutator, serial: usize, count: usize) -> *mut u8 {
    let at = alloc(mutator, size_of::<Head>() + 8 * count, TRACED);
    assert!(!at.is_null());
    // SAFETY: fresh, and large enough.
    unsafe { at.cast::<Head>().write(Head { serial, count }) };
    at
}

fn serial(object: *mut u8) -> usize {
    // SAFETY: the object is live.
    unsafe { (*object.cast::<Head>()).serial }
}

fn root(mutator: &Mutator, object: *mut u8) -> *mut *mut u8 {
    // SAFETY: the object is live, or null.
    unsafe { mutator.new_root(object) }.unwrap()
}

fn alloc(mutator: &Mutator, size: usize, kind: u32) -> *mut u8 {
    // SAFETY: handles lead to all objects in use, except this one, until the next call.
    unsafe { mutator.alloc(size, kind) }
}

fn collect(mutator: &Mutator) {
    // SAFETY: handles lead to all objects in use.
    unsafe { mutator.collect() };
}

fn leave(mutator: Mutator) {
    // SAFETY: nothing of the heap is used any more.
    unsafe { mutator.detach() };
}

/// Frees the root, which keeps nothing any more, and detaches the mutator.
fn leave_root(mutator: Mutator, root: *mut *mut u8) {
    // SAFETY: made by this test, and freed once.
    unsafe { mutator.free_root(root) };
    leave(mutator);
}

unsafe extern "C" fn free(object: *mut c_void, _size: usize, data: *mut c_void) {
    // SAFETY: every freed object of these tests begins with a head.
    let serial = unsafe { (*object.cast::<Head>()).serial };
    // SAFETY: the test's list outlives its heap.
    unsafe { &*data.cast::<Freed>() }.lock().unwrap().push(serial);
}

unsafe extern "C" fn type_name(
    _object: *const c_void,
    _data: *mut c_void,
) -> *const core::ffi::c_char {
    c"Node".as_ptr()
}

fn runtime(freed: &Freed) -> Runtime {
    Runtime {
        data: core::ptr::from_ref(freed).cast_mut().cast(),
        trace: Some(trace),
        free: Some(free),
        type_name: Some(type_name),
        ..Runtime::new()
    }
}

struct Shadow {
    at: *mut u8,
    kind: u32,
    references: Vec<Option<usize>>,
}

struct Model<'a> {
    mutator: &'a Mutator,
    heap: &'a Heap,
    freed: &'a Freed,
    objects: HashMap<usize, Shadow>,
    handles: Vec<(*mut *mut u8, usize)>,
    next: usize,
    stressed: bool,
}

impl Model<'_> {
    fn make(&mut self, size: usize, kind: u32) {
        let size = size.max(size_of::<Head>());
        let at = alloc(self.mutator, size, kind);
        assert!(!at.is_null());
        let count = if kind & LEAF == 0 { (size - size_of::<Head>()) / 8 } else { 0 };
        if kind & LEAF == 0 {
            for byte in 0..size {
                // SAFETY: within the bytes of the object.
                let byte = unsafe { at.wrapping_add(byte).read() };
                assert_eq!(byte, 0, "traced objects arrive zeroed");
            }
        }
        let serial = self.next;
        self.next += 1;
        // SAFETY: fresh, and large enough.
        unsafe { at.cast::<Head>().write(Head { serial, count }) };
        // SAFETY: the object is live.
        let handle = unsafe { self.mutator.new_root(at) }.unwrap();
        self.handles.push((handle, serial));
        self.objects.insert(serial, Shadow { at, kind, references: std::vec![None; count] });
    }

    fn store(&mut self, parent: usize, place: usize, child: Option<usize>) {
        let (_, parent) = self.handles[parent % self.handles.len()];
        let child = child.map(|child| self.handles[child % self.handles.len()].1);
        let child_at = child.map_or(core::ptr::null_mut(), |child| self.objects[&child].at);
        let shadow = self.objects.get_mut(&parent).unwrap();
        if shadow.references.is_empty() {
            return;
        }
        let place = place % shadow.references.len();
        shadow.references[place] = child;
        let slot = references(shadow.at).wrapping_add(place);
        // SAFETY: the parent has this reference.
        unsafe { self.mutator.write(shadow.at, slot, child_at) };
    }

    fn drop_handle(&mut self, handle: usize) {
        let (cell, _) = self.handles.swap_remove(handle % self.handles.len());
        // SAFETY: made by `make` and freed once.
        unsafe { self.mutator.free_root(cell) };
    }

    /// Makes `bytes` of garbage, so that collections come.
    fn churn(&self, bytes: usize) {
        let count = if cfg!(miri) || self.stressed { 3 } else { bytes / 512 };
        for _ in 0..count {
            assert!(!alloc(self.mutator, 512, TRACED).is_null());
        }
    }

    fn reachable(&self) -> HashSet<usize> {
        let mut seen = HashSet::new();
        let mut grey: Vec<_> = self.handles.iter().map(|&(_, serial)| serial).collect();
        while let Some(serial) = grey.pop() {
            if seen.insert(serial) {
                grey.extend(self.objects[&serial].references.iter().flatten());
            }
        }
        seen
    }

    /// Checks that no reachable object is lost, and no unreachable one survives two collections.
    fn check(&mut self) {
        for _ in 0..2 {
            collect(self.mutator);
        }
        let live = self.reachable();
        let mut found = HashSet::new();
        let mut walked = 0;
        // SAFETY: the closure calls nothing of the heap.
        let whole = unsafe {
            self.mutator.walk(|object, size, kind| {
                walked += 1;
                let head = object.cast::<Head>();
                let (serial, count) = ((*head).serial, (*head).count);
                let shadow = self.objects.get(&serial).expect("an object the test made");
                assert_eq!((shadow.at, shadow.kind), (object, kind));
                assert!(size >= size_of::<Head>() + 8 * count);
                assert!(found.insert(serial));
                true
            })
        };
        assert!(whole);
        assert_eq!(walked, found.len());
        assert_eq!(found, live);
        for (serial, shadow) in &self.objects {
            if !live.contains(serial) {
                continue;
            }
            assert_eq!(self.heap.find(shadow.at.wrapping_add(9)), Some(shadow.at));
            for (n, reference) in shadow.references.iter().enumerate() {
                // SAFETY: the object is live.
                let at = unsafe { references(shadow.at).wrapping_add(n).read() };
                assert_eq!(
                    at,
                    reference.map_or(core::ptr::null_mut(), |child| self.objects[&child].at)
                );
            }
        }
        let mut freed: Vec<_> = core::mem::take(&mut *self.freed.lock().unwrap());
        freed.sort_unstable();
        let mut dead: Vec<_> = self
            .objects
            .iter()
            .filter(|(serial, shadow)| shadow.kind & FREED != 0 && !live.contains(serial))
            .map(|(&serial, _)| serial)
            .collect();
        dead.sort_unstable();
        assert_eq!(freed, dead);
        self.objects.retain(|serial, _| live.contains(serial));
    }
}

#[derive(Clone, Debug)]
enum Op {
    Make(usize, u32),
    Store(usize, usize, Option<usize>),
    Drop(usize),
    Step(u64),
    /// Makes that many bytes of garbage, so that collections come, also minor collections.
    Churn(usize),
    Check,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (prop_oneof![8 => 16usize..700, 4 => 16usize..MIDDLE, 1 => Just(LARGE)], 0u32..4)
            .prop_map(|(size, kind)| Op::Make(size, kind)),
        6 => (any::<usize>(), any::<usize>(), any::<Option<usize>>())
            .prop_map(|(parent, place, child)| Op::Store(parent, place, child)),
        4 => any::<usize>().prop_map(Op::Drop),
        3 => (0u64..20_000).prop_map(Op::Step),
        3 => (0usize..1 << 20).prop_map(Op::Churn),
        1 => Just(Op::Check),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let layout = prop_oneof![
        Just(Layout::Fine),
        Just(Layout::Ruby),
        Just(Layout::Powers),
        Just(Layout::Single)
    ];
    let verify = VERIFY_HEAP | VERIFY_BARRIERS;
    (layout, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        move |(layout, incremental, generations, stress)| {
            // Miri is slow: it verifies some runs and stresses none.
            let verify = match (cfg!(miri), stress) {
                (true, false) => 0,
                (true, true) | (false, false) => verify,
                (false, true) => verify | STRESS,
            };
            Options {
                layout,
                incremental,
                generations,
                verify,
                least: 256 << 10,
                step_ns: 2_000,
                ..Options::new()
            }
        },
    )
}

fn run(options: Options, ops: Vec<Op>) {
    let freed = Freed::default();
    let (heap, mutator) = attached(options, runtime(&freed));
    let mut model = Model {
        mutator: &mutator,
        heap: &heap,
        freed: &freed,
        objects: HashMap::new(),
        handles: Vec::new(),
        next: 1,
        stressed: options.verify & STRESS != 0,
    };
    for op in ops {
        match op {
            Op::Make(size, kind) => model.make(size, kind),
            Op::Store(..) | Op::Drop(_) if model.handles.is_empty() => {}
            Op::Store(parent, place, child) => model.store(parent, place, child),
            Op::Drop(handle) => model.drop_handle(handle),
            // SAFETY: handles lead to all objects in use.
            Op::Step(budget) => _ = unsafe { mutator.step(budget) },
            Op::Churn(bytes) => model.churn(bytes),
            Op::Check => model.check(),
        }
    }
    model.check();
    leave(mutator);
    drop(heap);
}

proptest! {
    #![proptest_config(crate::testing::cases(48))]
    #[test]
    fn a_random_mutator_loses_nothing_and_keeps_nothing(
        options in options(),
        ops in proptest::collection::vec(op(), 1..STEPS),
    ) {
        run(options, ops);
    }
}

#[test]
fn garbage_is_collected_as_it_comes() {
    let freed = Freed::default();
    let (heap, mutator) = attached(Options { least: 1 << 20, ..Options::new() }, runtime(&freed));
    let rounds = if cfg!(miri) { 300 } else { 3_000_000 };
    for _ in 0..rounds {
        let object = alloc(&mutator, 48, TRACED);
        assert!(!object.is_null());
    }
    let statistics = heap.statistics();
    if !cfg!(miri) {
        assert!(
            statistics.cycles > 20 && statistics.peak_bytes < 4 << 20,
            "{}",
            statistics.peak_bytes
        );
        assert!(statistics.sweep_ns > 0, "no step sweeps here: allocation does");
        assert!(statistics.safepoint_ns >= statistics.safepoint_max_ns);
    }
    for pauses in [statistics.pause_histogram, statistics.pause_wall_histogram] {
        assert_eq!(pauses.iter().sum::<u64>(), statistics.pauses);
    }
    assert!(statistics.pause_wall_max_ns <= statistics.pause_ns);
    leave(mutator);
}

/// Makes a list of `length` pairs that a handle keeps. `None` without memory.
unsafe fn list(mutator: &Mutator, root: *mut *mut u8, length: usize) -> Option<()> {
    for serial in 0..length {
        let pair = alloc(mutator, 24, TRACED);
        if pair.is_null() {
            return None;
        }
        // SAFETY: fresh, and large enough.
        unsafe { pair.cast::<Head>().write(Head { serial, count: 1 }) };
        // SAFETY: the root's cell; the pair was allocated just now.
        unsafe { references(pair).write(root.read()) };
        // SAFETY: the root's cell, which its owner may write.
        unsafe { root.write(pair) };
    }
    Some(())
}

fn length(root: *mut *mut u8) -> usize {
    // SAFETY: a root of the heap.
    let mut at = unsafe { root.read() };
    let mut length = 0;
    let mut last = None;
    while !at.is_null() {
        // SAFETY: the list's pairs are live.
        let serial = unsafe { (*at.cast::<Head>()).serial };
        assert!(last.is_none_or(|last| last == serial + 1 || last == 0));
        last = Some(serial);
        length += 1;
        // SAFETY: a pair of the list, which is live.
        at = unsafe { references(at).read() };
    }
    length
}

#[test]
fn a_refusal_at_any_point_loses_nothing() {
    let most = if cfg!(miri) { 3 } else { 60 };
    for refused in 0..most {
        let freed = Freed::default();
        heapwright_substrate::refusals::refuse_after(Some(refused));
        let options = Options { least: 64 << 10, verify: VERIFY_HEAP, ..Options::new() };
        let Some(heap) = Heap::new(options, runtime(&freed)) else {
            heapwright_substrate::refusals::refuse_after(None);
            continue;
        };
        if let Some(mutator) = heap.attach() {
            // SAFETY: handles lead to all objects in use.
            unsafe {
                if let Some(root) = mutator.new_root(core::ptr::null_mut()) {
                    let rounds = if cfg!(miri) { 20 } else { 3_000 };
                    let _refused = list(&mutator, root, rounds);
                    let kept = length(root);
                    let _large = mutator.alloc(LARGE, LEAF);
                    for size in [16, 100, 500, 3000, 9000] {
                        let _one = mutator.alloc(size, TRACED | FREED);
                    }
                    mutator.collect();
                    assert_eq!(length(root), kept);
                    assert_eq!(mutator.verify(), 0);
                    heapwright_substrate::refusals::refuse_after(None);
                    list(&mutator, root, 100).expect("memory");
                    assert_eq!(length(root), kept + 100);
                    mutator.collect();
                    assert_eq!(length(root), kept + 100);
                    mutator.free_root(root);
                }
                mutator.detach();
            }
        }
        heapwright_substrate::refusals::refuse_after(None);
    }
}

#[test]
fn a_limit_may_change_while_it_is_reached() {
    let freed = Freed::default();
    // More pairs than fit below the limit: two pages of slots of 32 bytes.
    let (pairs, most) = (if cfg!(miri) { 6_000 } else { 100_000 }, 128 << 10);
    let (heap, mutator) = attached(Options { most, ..Options::new() }, runtime(&freed));
    // SAFETY: the handle leads to all objects in use.
    unsafe {
        let root = mutator.new_root(core::ptr::null_mut()).unwrap();
        assert!(list(&mutator, root, pairs).is_none());
        let kept = length(root);
        heap.set_target(0, 0, 0);
        list(&mutator, root, pairs).expect("memory");
        assert_eq!(length(root), kept + pairs);
        // The new limit is below the heap's bytes: allocations are refused, and nothing is lost.
        heap.set_target(0, 0, most);
        assert!(list(&mutator, root, pairs).is_none());
        assert!(length(root) >= kept + pairs);
        root.write(core::ptr::null_mut());
        mutator.collect();
        list(&mutator, root, 1_000).expect("room");
        mutator.free_root(root);
        mutator.detach();
    }
}

#[test]
fn marking_needs_no_memory() {
    // A wide tree needs chunks, but there is no memory for them.
    let freed = Freed::default();
    let (_heap, mutator) = attached(Options::new(), runtime(&freed));
    let width = if cfg!(miri) { 8 } else { 1500 };
    // SAFETY: handles lead to all objects in use.
    unsafe {
        let root = mutator.new_root(core::ptr::null_mut()).unwrap();
        let top = mutator.alloc(16 + 8 * width, TRACED);
        top.cast::<Head>().write(Head { serial: 0, count: width });
        *root = top;
        for n in 0..width {
            let middle = mutator.alloc(16 + 8 * 40, TRACED);
            middle.cast::<Head>().write(Head { serial: n, count: 40 });
            mutator.write(top, references(top).wrapping_add(n), middle);
            for m in 0..40 {
                let leaf = mutator.alloc(24, TRACED);
                leaf.cast::<Head>().write(Head { serial: m, count: 0 });
                mutator.write(middle, references(middle).wrapping_add(m), leaf);
            }
        }
        heapwright_substrate::refusals::refuse_after(Some(0));
        for _ in 0..3 {
            mutator.collect();
        }
        heapwright_substrate::refusals::refuse_after(None);
        let mut objects = 0;
        assert!(mutator.walk(|_, _, _| {
            objects += 1;
            true
        }));
        assert_eq!(objects, 1 + width * 41);
        assert_eq!(mutator.verify(), 0);
        mutator.free_root(root);
        mutator.detach();
    }
}

#[test]
fn several_mutators_share_a_heap() {
    let freed = Freed::default();
    let both = [false, true];
    for (incremental, generations) in both.into_iter().flat_map(|i| both.map(|g| (i, g))) {
        let verify = if cfg!(miri) { 0 } else { VERIFY_HEAP | VERIFY_BARRIERS };
        let options = Options {
            incremental,
            generations,
            verify,
            least: 512 << 10,
            step_ns: 20_000,
            ..Options::new()
        };
        let heap = Heap::new(options, runtime(&freed)).unwrap();
        let (threads, rounds) = if cfg!(miri) { (2, 2) } else { (4, 60) };
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let heap = &heap;
                scope.spawn(move || {
                    let mutator = heap.attach().unwrap();
                    // SAFETY: handles lead to all objects in use.
                    unsafe {
                        let root = mutator.new_root(core::ptr::null_mut()).unwrap();
                        for round in 0..rounds {
                            *root = core::ptr::null_mut();
                            let pairs = if cfg!(miri) { 30 } else { 2_000 + 500 * thread };
                            list(&mutator, root, pairs).unwrap();
                            for _ in 0..if cfg!(miri) { 5 } else { 3_000 } {
                                assert!(!mutator.alloc(16 + round * 8, LEAF).is_null());
                            }
                            if round % 16 == thread {
                                mutator.collect();
                            }
                            mutator.away(std::thread::yield_now);
                            assert_eq!(length(root), pairs);
                        }
                        mutator.free_root(root);
                        mutator.detach();
                    }
                });
            }
        });
        assert_eq!(heap.statistics().mutators, 0);
    }
}

#[test]
fn a_handle_may_be_freed_by_another_mutator() {
    let freed = Freed::default();
    let heap = Heap::new(Options::new(), runtime(&freed)).unwrap();
    let count = if cfg!(miri) { 70 } else { 5_000 };
    struct Sent(*mut *mut u8);
    // SAFETY: a handle may be used by any thread that has it.
    unsafe impl Send for Sent {}
    let (send, receive) = std::sync::mpsc::sync_channel(16);
    std::thread::scope(|scope| {
        let heap = &heap;
        scope.spawn(move || {
            let mutator = heap.attach().unwrap();
            for _ in 0..count {
                // SAFETY: its handle leads to the object.
                let cell = unsafe { mutator.new_root(mutator.alloc(16, LEAF)) }.unwrap();
                // SAFETY: blocks until the receiver has room, touching no object.
                unsafe { mutator.away(|| send.send(Sent(cell))) }.unwrap();
            }
            leave(mutator);
        });
        scope.spawn(move || {
            let mutator = heap.attach().unwrap();
            // SAFETY: blocks until the sender has sent, touching no object.
            while let Ok(sent) = unsafe { mutator.away(|| receive.recv()) } {
                // SAFETY: the sender made the handle, which is freed once.
                unsafe { mutator.free_root(sent.0) };
            }
            leave(mutator);
        });
    });
    assert_eq!(heap.statistics().handles, 0);
}

unsafe extern "C" fn resurrect(object: *mut c_void, context: *mut c_void) {
    // SAFETY: the test's root, which outlives the finalizer.
    unsafe { context.cast::<*mut u8>().write(object.cast()) };
}

#[test]
fn a_finalizer_is_given_its_object_whole() {
    let freed = Freed::default();
    let (heap, mutator) = attached(Options::new(), runtime(&freed));
    // SAFETY: handles lead to all objects in use.
    unsafe {
        let root = mutator.new_root(core::ptr::null_mut()).unwrap();
        list(&mutator, root, 10).unwrap();
        assert!(mutator.finalize(*root, resurrect, root.cast()));
        mutator.collect();
        assert_eq!(mutator.run_finalizers(9), 0, "it is led to");
        *root = core::ptr::null_mut();
        mutator.collect();
        assert_eq!(heap.statistics().finalizers_pending, 1);
        mutator.collect();
        assert_eq!(mutator.run_finalizers(9), 1);
        assert_eq!(length(root), 10, "all it leads to was kept");
        mutator.collect();
        assert_eq!(length(root), 10, "it was put somewhere");
        *root = core::ptr::null_mut();
        mutator.collect();
        assert_eq!(mutator.run_finalizers(9), 0, "once");
        mutator.free_root(root);
        mutator.detach();
    }
}

#[test]
fn steps_keep_to_their_budget_and_come_to_an_end() {
    let freed = Freed::default();
    let options = Options { incremental: true, least: 1 << 30, ..Options::new() };
    let (heap, mutator) = attached(options, runtime(&freed));
    // SAFETY: handles lead to all objects in use.
    unsafe {
        let root = mutator.new_root(core::ptr::null_mut()).unwrap();
        list(&mutator, root, if cfg!(miri) { 50 } else { 200_000 }).unwrap();
        assert!(!mutator.is_owed() && mutator.step(1_000), "nothing is due");
        mutator.external(2 << 30);
        assert!(mutator.is_owed());
        let mut steps = 1;
        while !mutator.step(50_000) {
            steps += 1;
        }
        assert!(cfg!(miri) || steps > 3, "{steps}");
        assert_eq!(heap.statistics().cycles, 1);
        assert_eq!(length(root), if cfg!(miri) { 50 } else { 200_000 });
        mutator.external(-(2 << 30));
        mutator.free_root(root);
        mutator.detach();
    }
}

#[cfg(not(miri))]
#[test]
fn what_is_allocated_elsewhere_is_paid_for_in_small_steps() {
    const PAID: usize = 64 << 10;
    let freed = Freed::default();
    // Marking in a step is bounded by bytes, except in a small heap's first step.
    let options =
        Options { incremental: true, least: 1 << 20, step_ns: u64::MAX / 4, ..Options::new() };
    let (heap, mutator) = attached(options, runtime(&freed));
    // SAFETY: handles lead to all objects in use.
    unsafe {
        let root = mutator.new_root(core::ptr::null_mut()).unwrap();
        list(&mutator, root, 200_000).unwrap();
        mutator.collect();
        let live = heap.statistics().live_bytes;
        let (inner, cycles) = (heap.inner(), heap.statistics().cycles);
        let (mut paid, mut steps, mut most) = (0, 0, 0);
        while heap.statistics().cycles == cycles {
            let marked = inner.marked_so_far();
            heap.account(PAID.cast_signed());
            mutator.pay(PAID);
            paid += PAID;
            if inner.space.cycle.phase() == super::phase::Phase::Marking {
                steps += 1;
                most = most.max(inner.marked_so_far() - marked);
            }
        }
        assert!(paid as u64 <= live, "{paid} of {live}: within what may be allocated");
        assert!(steps > 20 && most <= 2 * super::cycle::STEP, "{steps} steps, {most} bytes");
        heap.account(-paid.cast_signed());
        mutator.free_root(root);
        mutator.detach();
    }
}

#[test]
fn traced_objects_arrive_zeroed_unless_the_heap_is_uncleared() {
    for uncleared in [false, true] {
        let freed = Freed::default();
        let options = Options { uncleared, verify: VERIFY_HEAP, ..Options::new() };
        let (_heap, mutator) = attached(options, runtime(&freed));
        for size in [48, 4_000, LARGE] {
            let mut dirty = 0;
            // The first time all objects die. The second time their memory is used again.
            for _ in 0..2 {
                for _ in 0..4 {
                    // SAFETY: no object is in use when the next is allocated, and by then each is
                    // as `trace` expects it.
                    unsafe {
                        let at = mutator.alloc(size, TRACED);
                        let last = at.wrapping_add(size - 8).cast::<usize>();
                        dirty += usize::from(last.read() != 0);
                        last.write(0xAB);
                        at.cast::<Head>().write(Head { serial: 1, count: 0 });
                    }
                }
                for _ in 0..2 {
                    collect(&mutator);
                }
            }
            assert_eq!(dirty > 0, uncleared, "{size}");
        }
        leave(mutator);
    }
}
