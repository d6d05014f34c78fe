//! The heap against a model: a shadow of every object and reference.
//!
//! ```text
//!   object   | serial | reference | reference | ... |        what the heap keeps
//!   shadow   serial -> address, kind, size, references       what the test knows
//! ```
//!
//! A random mutator makes objects of all sizes and kinds, stores references between them,
//! makes and frees handles, collects a little or wholly. After each full collection: what the shadow's
//! handles lead to is there, unchanged; what they do not lead to is gone after two; each
//! object that wanted to be freed was, once, exactly if it died.

mod once_wrong;

extern crate std;

use core::ffi::c_void;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::vec::Vec;

use proptest::prelude::*;

use super::raw::{
    Heap, Mutator, Options, Runtime, STRESS, Sweep, Tracer, VERIFY_BARRIERS, VERIFY_HEAP,
};
use super::{FREED, LEAF, Layout, TRACED};

const CASES: u32 = if cfg!(miri) { 2 } else { 48 };
const STEPS: usize = if cfg!(miri) { 60 } else { 400 };

/// What an object of these tests begins with.
#[repr(C)]
struct Head {
    serial: usize,
    /// References behind the head.
    count: usize,
}

/// Serials of objects that were freed, by heap (its data).
type Freed = Mutex<Vec<usize>>;

fn references(object: *mut u8) -> *mut *mut u8 {
    object.cast::<Head>().wrapping_add(1).cast()
}

unsafe extern "C" fn trace(tracer: &Tracer, object: *mut c_void, _data: *mut c_void) {
    let object = object.cast::<u8>();
    // SAFETY: every traced object of these tests begins with a head, or with zeroes.
    let count = unsafe { (*object.cast::<Head>()).count };
    if count > 40 {
        return tracer.mark_range(references(object), count);
    }
    for n in 0..count {
        // SAFETY: the head says so many follow.
        tracer.mark(unsafe { references(object).wrapping_add(n).read() });
    }
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
}

impl Model<'_> {
    fn make(&mut self, size: usize, kind: u32) {
        let size = size.max(size_of::<Head>());
        // SAFETY: everything wanted is led to by handles.
        let at = unsafe { self.mutator.alloc(size, kind) };
        assert!(!at.is_null());
        let count = if kind & LEAF == 0 { (size - size_of::<Head>()) / 8 } else { 0 };
        if kind & LEAF == 0 {
            for byte in 0..size {
                // SAFETY: the object has so many bytes.
                assert_eq!(
                    unsafe { at.wrapping_add(byte).read() },
                    0,
                    "traced objects arrive zeroed"
                );
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

    /// Nothing reachable is lost; nothing unreachable survives two collections.
    fn check(&mut self) {
        for _ in 0..2 {
            // SAFETY: everything wanted is led to by handles.
            unsafe { self.mutator.collect() };
        }
        let live = self.reachable();
        let mut found = HashSet::new();
        let mut walked = 0;
        // SAFETY: nothing is called.
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
    Check,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (prop_oneof![16usize..700, 16usize..40_000, Just(200_000)], 0u32..4)
            .prop_map(|(size, kind)| Op::Make(size, kind)),
        6 => (any::<usize>(), any::<usize>(), any::<Option<usize>>())
            .prop_map(|(parent, place, child)| Op::Store(parent, place, child)),
        4 => any::<usize>().prop_map(Op::Drop),
        3 => (0u64..20_000).prop_map(Op::Step),
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
    let sweep = prop_oneof![Just(Sweep::Lazy), Just(Sweep::ToTheEnd)];
    let verify = VERIFY_HEAP | VERIFY_BARRIERS;
    (layout, sweep, any::<bool>(), any::<bool>()).prop_map(
        move |(layout, sweep, incremental, stress)| {
            let verify = if stress { verify | STRESS } else { verify };
            Options {
                layout,
                sweep,
                incremental,
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
    let heap = Heap::new(options, runtime(&freed)).unwrap();
    let mutator = heap.attach().unwrap();
    let mut model = Model {
        mutator: &mutator,
        heap: &heap,
        freed: &freed,
        objects: HashMap::new(),
        handles: Vec::new(),
        next: 1,
    };
    for op in ops {
        match op {
            Op::Make(size, kind) => model.make(size, kind),
            Op::Store(..) | Op::Drop(_) if model.handles.is_empty() => {}
            Op::Store(parent, place, child) => model.store(parent, place, child),
            Op::Drop(handle) => model.drop_handle(handle),
            // SAFETY: everything wanted is led to by handles.
            Op::Step(budget) => _ = unsafe { mutator.step(budget) },
            Op::Check => model.check(),
        }
    }
    model.check();
    // SAFETY: nothing is used any more.
    unsafe { mutator.detach() };
    drop(heap);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]
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
    let heap = Heap::new(Options { least: 1 << 20, ..Options::new() }, runtime(&freed)).unwrap();
    let mutator = heap.attach().unwrap();
    let rounds = if cfg!(miri) { 3_000 } else { 3_000_000 };
    for _ in 0..rounds {
        // SAFETY: nothing is wanted.
        let object = unsafe { mutator.alloc(48, TRACED) };
        assert!(!object.is_null());
    }
    let statistics = heap.statistics();
    if !cfg!(miri) {
        assert!(
            statistics.cycles > 20 && statistics.peak_bytes < 4 << 20,
            "{}",
            statistics.peak_bytes
        );
    }
    // SAFETY: nothing is used any more.
    unsafe { mutator.detach() };
}
