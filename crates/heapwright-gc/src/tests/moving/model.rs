//! A graph of moving objects, against a shadow of it. Objects are made, stored, pinned, resized and
//! dropped between steps and compactions. Every reference leads where the shadow says.

extern crate std;

use core::ffi::c_void;
use core::ptr;
use std::collections::{HashMap, HashSet};
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::super::super::raw::{Heap, Mutator, Options, STRESS, VERIFY_BARRIERS, VERIFY_HEAP};
use super::super::super::{FREED, LEAF, Layout, TRACED};
use super::super::{alloc, attached, leave};
use super::{Node, Shared, load, node, runtime, slots, updating_runtime};

unsafe extern "C" fn finalize(object: *mut c_void, data: *mut c_void) {
    let serial = node(object.cast()).serial;
    // SAFETY: the test's data, which outlives its heap.
    unsafe { &*data.cast::<Shared>() }.lock().unwrap().finalized.push(serial);
}

fn byte(serial: usize, n: usize) -> u8 {
    (serial.wrapping_mul(31) ^ n.wrapping_mul(7)) as u8
}

#[derive(Clone)]
struct Shadow {
    leaf: bool,
    freed: bool,
    references: Vec<Option<usize>>,
    bytes: usize,
}

struct Model<'a> {
    mutator: &'a Mutator,
    heap: &'a Heap,
    seen: &'a Shared,
    shadows: HashMap<usize, Shadow>,
    roots: Vec<(*mut *mut u8, usize)>,
    weak: Vec<(*mut *mut u8, usize)>,
    pins: Vec<(*mut u8, usize)>,
    next: usize,
}

impl Model<'_> {
    fn root(&self, n: usize) -> (*mut u8, usize) {
        let (cell, serial) = self.roots[n % self.roots.len()];
        // SAFETY: a root of this heap.
        (unsafe { cell.read() }, serial)
    }

    fn make(&mut self, size: usize, kind: u32, rigid: bool) {
        let size = size.max(size_of::<Node>());
        let at = alloc(self.mutator, size, kind);
        assert!(!at.is_null());
        let leaf = kind & LEAF != 0;
        let room = size - size_of::<Node>();
        let count = if leaf { room } else { room / 8 };
        let serial = self.next;
        self.next += 1;
        let node = Node { serial, count: count as u32, rigid: u32::from(rigid), wanted: 0 };
        // SAFETY: fresh, and large enough.
        unsafe { at.cast::<Node>().write(node) };
        if leaf {
            for n in 0..count {
                // SAFETY: a byte of a fresh object, which is large enough.
                unsafe { slots(at).cast::<u8>().wrapping_add(n).write(byte(serial, n)) };
            }
        }
        // SAFETY: the object is live.
        self.roots.push((unsafe { self.mutator.new_root(at) }.unwrap(), serial));
        let references = std::vec![None; if leaf { 0 } else { count }];
        let bytes = if leaf { count } else { 0 };
        let freed = kind & FREED != 0;
        self.shadows.insert(serial, Shadow { leaf, freed, references, bytes });
        let mut seen = self.seen.lock().unwrap();
        if serial.is_multiple_of(13) && seen.mutator.is_some() {
            seen.kept = Some((at, serial));
        }
        drop(seen);
        if serial.is_multiple_of(7) {
            // SAFETY: the object is live.
            self.weak.push((unsafe { self.mutator.new_weak(at) }.unwrap(), serial));
        }
        if serial.is_multiple_of(11) {
            let data = ptr::from_ref(self.seen).cast_mut().cast();
            // SAFETY: the object is live.
            assert!(unsafe { self.mutator.finalize(at, finalize, data) });
        }
    }

    /// Stores into an object at the end of a path from a root.
    fn store(&mut self, parent: usize, hops: usize, place: usize, child: Option<usize>) {
        let (mut at, mut serial) = self.root(parent);
        for hop in 0..hops {
            let references = &self.shadows[&serial].references;
            let Some(next) = references.get(hop * 3 % references.len().max(1)).copied().flatten()
            else {
                break;
            };
            at = load(at, hop * 3 % references.len());
            serial = next;
        }
        let (child, child_serial) = match child {
            Some(child) => {
                let (at, serial) = self.root(child);
                (at, Some(serial))
            }
            None => (ptr::null_mut(), None),
        };
        let references = &mut self.shadows.get_mut(&serial).unwrap().references;
        if references.is_empty() {
            return;
        }
        let place = place % references.len();
        references[place] = child_serial;
        let slot = slots(at).wrapping_add(place);
        if place.is_multiple_of(2) {
            // SAFETY: a slot of a live object.
            unsafe { self.mutator.write(at, slot, child) };
        } else {
            // SAFETY: a slot of a live object, which nobody else writes.
            unsafe { slot.write(child) };
            // SAFETY: objects of the mutator's heap.
            unsafe { self.mutator.shade(at, child) };
        }
    }

    fn forget(&mut self, root: usize) {
        if self.roots.len() > 1 {
            let (cell, _) = self.roots.swap_remove(root % self.roots.len());
            // SAFETY: a root, freed once.
            unsafe { self.mutator.free_root(cell) };
        }
    }

    fn pin(&mut self, root: usize) {
        let (at, serial) = self.root(root);
        if self.pins.iter().all(|&(_, pinned)| pinned != serial) {
            assert!(self.mutator.pin(at));
            self.pins.push((at, serial));
            // SAFETY: the object is live; pins do not keep it alive.
            self.roots.push((unsafe { self.mutator.new_root(at) }.unwrap(), serial));
        }
    }

    fn resize(&mut self, root: usize, size: usize) {
        let (at, serial) = self.root(root);
        let shadow = &self.shadows[&serial];
        let least = size_of::<Node>() + 8 * shadow.references.len() + shadow.bytes;
        let size = size.max(least);
        // SAFETY: a live object.
        unsafe { (*at.cast::<Node>()).wanted = size };
        // SAFETY: the object is live, and only the test changes it.
        let there = unsafe { self.mutator.resize(at, size) };
        assert_eq!(there, size <= super::super::super::raw::object_size(at));
    }

    fn check(&mut self) {
        let mut waiting: Vec<(*mut u8, usize)> =
            (0..self.roots.len()).map(|n| self.root(n)).collect();
        waiting.extend(self.seen.lock().unwrap().kept);
        let mut seen = HashSet::new();
        let mut at_of = HashMap::new();
        let reported = (!cfg!(miri)).then(|| super::super::dump::dump(self.mutator));
        while let Some((at, serial)) = waiting.pop() {
            assert_eq!(*at_of.entry(serial).or_insert(at), at, "one object, one address");
            if !seen.insert(serial) {
                continue;
            }
            let shadow = &self.shadows[&serial];
            let found = node(at);
            assert_eq!(found.serial, serial);
            assert_eq!(self.heap.find(at), Some(at));
            assert!(
                reported.as_ref().is_none_or(|reported| reported.objects.contains_key(&at.addr()))
            );
            if shadow.leaf {
                assert_eq!(found.count as usize, shadow.bytes);
                for n in 0..shadow.bytes {
                    // SAFETY: within the object.
                    let there = unsafe { slots(at).cast::<u8>().wrapping_add(n).read() };
                    assert_eq!(there, byte(serial, n));
                }
            }
            for (place, child) in shadow.references.iter().enumerate() {
                match child {
                    Some(child) => waiting.push((load(at, place), *child)),
                    None => assert!(load(at, place).is_null()),
                }
            }
        }
        for &(at, serial) in &self.pins {
            assert_eq!(at_of[&serial], at, "what is pinned stays");
        }
        for &(cell, serial) in &self.weak {
            // SAFETY: a weak handle.
            let at = unsafe { cell.read() };
            assert!(at.is_null() || node(at).serial == serial);
            assert!(at_of.get(&serial).is_none_or(|&there| there == at));
        }
        let mut freed = self.seen.lock().unwrap();
        let mut once = HashSet::new();
        for serial in &freed.freed {
            assert!(once.insert(*serial), "freed once");
            assert!(self.shadows[serial].freed && !seen.contains(serial));
        }
        assert!(freed.finalized.iter().all(|serial| serial % 11 == 0));
        freed.finalized.clear();
    }
}

#[derive(Clone, Debug)]
enum Step {
    Make(usize, u32, bool),
    Store(usize, usize, usize, Option<usize>),
    Forget(usize),
    ForgetMany(usize),
    Pin(usize),
    Unpin(usize),
    Resize(usize, usize),
    Collect,
    Compact(bool),
    Ask,
    Budget(u64),
    Check,
}

fn step() -> impl Strategy<Value = Step> {
    let large = if cfg!(miri) { 70_000 } else { 150_000 };
    let size = prop_oneof![10 => 0usize..200, 4 => 200usize..3000, 1 => 30_000usize..large];
    let kind = prop_oneof![6 => Just(TRACED), 2 => Just(LEAF), 1 => Just(TRACED | FREED), 1 => Just(LEAF | FREED)];
    prop_oneof![
        24 => (size, kind, 0..12u32).prop_map(|(size, kind, rigid)| Step::Make(size, kind, rigid == 0)),
        24 => (any::<usize>(), 0usize..6, any::<usize>(), prop::option::weighted(0.9, any::<usize>()))
            .prop_map(|(parent, hops, place, child)| Step::Store(parent, hops, place, child)),
        8 => any::<usize>().prop_map(Step::Forget),
        1 => any::<usize>().prop_map(Step::ForgetMany),
        2 => any::<usize>().prop_map(Step::Pin),
        1 => any::<usize>().prop_map(Step::Unpin),
        3 => (any::<usize>(), 0usize..2000).prop_map(|(root, size)| Step::Resize(root, size)),
        1 => Just(Step::Collect),
        1 => any::<bool>().prop_map(Step::Compact),
        2 => Just(Step::Ask),
        8 => (1u64..20_000).prop_map(Step::Budget),
        2 => Just(Step::Check),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let layout = prop_oneof![
        Just(Layout::Fine),
        Just(Layout::Ruby),
        Just(Layout::Powers),
        Just(Layout::Single)
    ];
    (layout, any::<bool>(), any::<bool>(), 0..4u32, any::<bool>()).prop_map(
        |(layout, incremental, generations, stress, verify)| Options {
            layout,
            incremental,
            generations,
            compact: true,
            least: 256 << 10,
            step_ns: 2_000,
            // Verifying settles regions, which hides errors of unsettled regions.
            verify: if verify { VERIFY_HEAP | VERIFY_BARRIERS } else { 0 }
                | if stress == 0 { STRESS } else { 0 },
            ..Options::new()
        },
    )
}

fn run(options: Options, updates: bool, steps: Vec<Step>) {
    let seen = Shared::default();
    let runtime = if updates { updating_runtime(&seen) } else { runtime(&seen) };
    let (heap, mutator) = attached(options, runtime);
    if updates {
        seen.lock().unwrap().mutator = Some(ptr::NonNull::from(&mutator));
    }
    let mut model = Model {
        mutator: &mutator,
        heap: &heap,
        seen: &seen,
        shadows: HashMap::new(),
        roots: Vec::new(),
        weak: Vec::new(),
        pins: Vec::new(),
        next: 0,
    };
    model.make(64, TRACED, false);
    for step in steps {
        match step {
            Step::Make(size, kind, rigid) => model.make(size, kind, rigid),
            Step::Store(parent, hops, place, child) => model.store(parent, hops, place, child),
            Step::Forget(root) => model.forget(root),
            Step::ForgetMany(root) => {
                for n in 0..model.roots.len() / 2 {
                    model.forget(root.wrapping_add(n * 3));
                }
            }
            Step::Pin(root) => model.pin(root),
            Step::Unpin(pin) => {
                if !model.pins.is_empty() {
                    let (at, serial) = model.pins.swap_remove(pin % model.pins.len());
                    // The slot may hold another object by now: pins are counted by page.
                    if model.roots.iter().any(|&(_, root)| root == serial) {
                        // SAFETY: pinned once.
                        unsafe { mutator.unpin(at) };
                    }
                }
            }
            Step::Resize(root, size) => model.resize(root, size),
            // SAFETY: handles lead to all objects in use.
            Step::Collect => unsafe { mutator.collect() },
            // SAFETY: handles lead to all objects in use.
            Step::Compact(false) => unsafe { mutator.compact() },
            // SAFETY: handles lead to all objects in use.
            Step::Compact(true) => unsafe { mutator.compact_all() },
            // SAFETY: handles lead to all objects in use.
            Step::Ask => unsafe { mutator.ask_compact() },
            Step::Budget(budget) => {
                // SAFETY: handles lead to all objects in use.
                unsafe { mutator.step(budget) };
            }
            Step::Check => {
                // SAFETY: handles lead to all objects in use, whatever finalizers do.
                unsafe { mutator.run_finalizers(2) };
                model.check();
            }
        }
        // A pinned object must be reachable.
        let roots: HashSet<usize> = model.roots.iter().map(|&(_, serial)| serial).collect();
        model.pins.retain(|&(_, serial)| roots.contains(&serial));
    }
    model.check();
    // SAFETY: handles lead to all objects in use.
    unsafe { mutator.compact() };
    model.check();
    model.roots.drain(..).for_each(|(cell, _)| {
        // SAFETY: a root, freed once.
        unsafe { mutator.free_root(cell) };
    });
    model.pins.clear();
    model.check();
    let shadows = model.shadows;
    leave(mutator);
    drop(heap);
    let seen = seen.into_inner().unwrap();
    let freed: HashSet<usize> = seen.freed.iter().copied().collect();
    assert_eq!(freed.len(), seen.freed.len(), "freed once");
    assert!(shadows.iter().all(|(serial, shadow)| !shadow.freed || freed.contains(serial)));
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 4000, ..crate::testing::cases(if cfg!(miri) { 2 } else { 40 }) })]
    #[test]
    fn the_graph_is_the_same_wherever_it_is(
        options in options(),
        updates in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..if cfg!(miri) { 20 } else { 500 }),
    ) {
        run(options, updates, steps);
    }
}
