//! Dumps of heaps with generations, pins and moves, read back.

extern crate std;

use core::ffi::c_void;
use std::collections::HashMap;
use std::vec::Vec;

use heapwright_record::heap as record;

use super::super::heap;
use super::super::phase::Phase;
use super::super::raw::{Heap, Mutator, Options, Runtime, VERIFY_BARRIERS, VERIFY_HEAP};
use super::{attached, collect, leave, node, references, root, trace};

pub(super) struct Told {
    pub(super) heap: record::Heap,
    pub(super) pages: Vec<record::Page>,
    pub(super) objects: HashMap<usize, record::Object>,
}

/// Makes a dump of a heap, and checks its sums.
pub(super) fn dump(mutator: &Mutator) -> Told {
    let mut bytes = Vec::new();
    let sink = |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        true
    };
    // SAFETY: handles lead to all objects in use, and the sink calls nothing of the heap.
    assert!(unsafe { mutator.dump(sink) });
    let mut reader = record::Reader::new(&bytes).unwrap();
    let Some(record::Entry::Start(heap, ..)) = reader.next() else { panic!("no start") };
    let mut reported = Told { heap, pages: Vec::new(), objects: HashMap::new() };
    for entry in reader.by_ref() {
        match entry {
            record::Entry::Page(page, occupancy) => {
                assert!(page.old <= occupancy.taken());
                reported.pages.push(page);
            }
            record::Entry::Object(object) => {
                assert!(reported.objects.insert(object.address as usize, object).is_none());
            }
            _ => {}
        }
    }
    assert!(reader.is_whole());
    let mut old: HashMap<u64, u32> = HashMap::new();
    for object in reported.objects.values().filter(|object| object.old) {
        *old.entry(unit(object.address)).or_default() += 1;
    }
    for page in &reported.pages {
        assert_eq!(old.get(&page.address).copied().unwrap_or_default(), page.old);
    }
    reported
}

fn unit(address: u64) -> u64 {
    address >> 16 << 16
}

impl Told {
    fn is_old(&self, object: *mut u8) -> bool {
        self.objects[&object.addr()].old
    }

    fn page(&self, object: *mut u8) -> &record::Page {
        let address = unit(object.addr() as u64);
        self.pages.iter().find(|page| page.address == address).unwrap()
    }

    fn old_bytes(&self) -> u64 {
        let footprint = |page: &record::Page| match page.state {
            record::PageState::Large => page.bytes,
            _ => page.slot,
        };
        self.pages.iter().map(|page| u64::from(page.old) * footprint(page)).sum()
    }

    fn moved_in(&self) -> u64 {
        self.pages.iter().map(|page| page.moved_in).sum()
    }
}

const WIDTH: usize = if cfg!(miri) { 40 } else { 20_000 };
/// One of this many objects lives on.
const KEPT: usize = 20;

struct World {
    heap: Heap,
    mutator: Mutator,
    root: *mut *mut u8,
}

impl World {
    /// A heap with a full table, in which everything is old.
    fn new(options: Options) -> Self {
        let options = Options { verify: VERIFY_HEAP | VERIFY_BARRIERS, ..options };
        let runtime = Runtime { trace: Some(trace), ..Runtime::new() };
        let (heap, mutator) = attached(options, runtime);
        // After a deferral the heap keeps its marks, so minor collections stay minor.
        mutator.defer_majors();
        mutator.resume_majors();
        let table = node(&mutator, 0, WIDTH);
        let root = root(&mutator, table);
        let world = Self { heap, mutator, root };
        for place in 0..WIDTH {
            world.put(place, 2);
        }
        collect(&world.mutator);
        world
    }

    fn table(&self) -> *mut u8 {
        // SAFETY: a root of this heap.
        unsafe { self.root.read() }
    }

    fn put(&self, place: usize, count: usize) {
        let child = node(&self.mutator, 0, count);
        self.store(place, child);
    }

    fn store(&self, place: usize, child: *mut u8) {
        let slot = references(self.table()).wrapping_add(place);
        // SAFETY: a slot of the table, which is live.
        unsafe { self.mutator.write(self.table(), slot, child) };
    }

    fn at(&self, place: usize) -> *mut u8 {
        // SAFETY: a slot of the table, which is live.
        unsafe { references(self.table()).wrapping_add(place).read() }
    }

    fn minor(&self) {
        let before = self.heap.statistics().minor_cycles;
        self.mutator.defer_majors();
        self.mutator.ask();
        // SAFETY: handles lead to all objects in use.
        while !unsafe { self.mutator.step(1 << 40) } {}
        self.mutator.resume_majors();
        assert_eq!(self.heap.statistics().minor_cycles, before + 1);
    }

    fn end(self) {
        // SAFETY: made by `new`, and freed once.
        unsafe { self.mutator.free_root(self.root) };
        leave(self.mutator);
    }
}

#[test]
fn who_is_old_is_told() {
    // (A dump is slow under Miri.)
    for incremental in [false, true].into_iter().skip(usize::from(cfg!(miri))) {
        let world = World::new(Options { generations: true, incremental, ..Options::new() });
        let reported = dump(&world.mutator);
        assert!(
            reported.objects.len() == WIDTH + 1
                && reported.objects.values().all(|object| object.old)
        );
        assert_eq!((reported.heap.cycles, reported.heap.minor_cycles), (1, 0));
        assert_eq!(reported.heap.old, reported.heap.live);
        assert_eq!(reported.old_bytes(), reported.heap.old);

        // The new object is young, even after it has survived once. The remembered table stays old.
        world.put(7, 5);
        let young = world.at(7);
        for survived in 0..4 {
            let reported = dump(&world.mutator);
            assert_eq!((reported.is_old(world.at(7)), world.at(7)), (survived >= 2, young));
            assert_eq!(reported.heap.minor_cycles, survived);
            assert!(reported.is_old(world.table()) && reported.is_old(world.at(8)));
            // Stores a young object into the table, which loses its mark.
            world.put(9, 5);
            // For a large object, only the stored place is remembered, unless the store does not
            // name it.
            // SAFETY: both are objects of this heap, and the table leads to the child.
            unsafe { world.mutator.shade(world.table(), world.at(9)) };
            let inner: &heap::Heap = heap::of(world.heap.id()).unwrap();
            assert!(!inner.space.is_marked(world.table()));
            assert!(dump(&world.mutator).is_old(world.table()));
            assert!(!inner.space.is_marked(world.table()) && inner.space.is_marked(world.at(8)));
            world.minor();
        }
        let reported = dump(&world.mutator);
        assert_eq!(reported.old_bytes(), reported.heap.old);
        world.end();
    }
}

#[test]
fn without_generations_nobody_is_old() {
    let world = World::new(Options::new());
    let reported = dump(&world.mutator);
    assert!(
        reported.objects.len() == WIDTH + 1 && reported.objects.values().all(|object| !object.old)
    );
    assert_eq!(
        (reported.heap.old, reported.heap.minor_cycles, reported.heap.compactions),
        (0, 0, 0)
    );
    assert!(reported.pages.iter().all(|page| page.aside == record::Aside::No && page.pins == 0));
    world.end();
}

#[test]
#[cfg(not(miri))]
fn a_dump_in_the_midst_of_a_collection_changes_nothing() {
    const MANY: usize = 1_000;
    let world =
        World::new(Options { generations: true, incremental: true, step_ns: 1, ..Options::new() });
    let inner: &heap::Heap = heap::of(world.heap.id()).unwrap();
    for major in [false, false, true, false] {
        for place in 0..WIDTH / 2 {
            world.put(place, 2);
        }
        if !major {
            world.mutator.defer_majors();
        }
        world.mutator.ask();
        let (mut steps, mut dumps) = (0, [0; 4]);
        // SAFETY: handles lead to all objects in use.
        while !unsafe { world.mutator.step(20_000) } {
            steps += 1;
            let dumps = &mut dumps[inner.space.cycle.phase() as usize];
            if steps % 64 == 0 && steps < MANY || *dumps == 0 {
                *dumps += 1;
                let reported = dump(&world.mutator);
                // (Marks say throughout a minor collection which objects are old, but not in a
                // major one.)
                assert!(
                    major || reported.is_old(world.table()) && reported.is_old(world.at(WIDTH - 1))
                );
            }
            // After `MANY` steps no more work is added, so that short steps come to an end.
            if steps < MANY {
                world.put(steps % WIDTH / 2, 2);
            }
        }
        assert!(dumps[Phase::Marking as usize] > 0, "{dumps:?}");
        if !major {
            world.mutator.resume_majors();
        }
    }
    // SAFETY: handles lead to all objects in use.
    assert_eq!(unsafe { world.mutator.verify() }, 0);
    world.end();
}

#[test]
fn pins_and_moves_are_told() {
    for generations in [false, true].into_iter().skip(usize::from(cfg!(miri))) {
        let world = World::new(Options { generations, ..Options::new() });
        for place in (0..WIDTH).filter(|place| place % KEPT != 0) {
            world.store(place, core::ptr::null_mut());
        }
        let pinned = world.at(KEPT);
        assert!(world.mutator.pin(pinned) && world.mutator.pin(pinned));
        // SAFETY: handles lead to all objects in use.
        unsafe { world.mutator.compact() };
        assert_eq!(world.at(KEPT), pinned);

        let (reported, statistics) = (dump(&world.mutator), world.heap.statistics());
        let heap = reported.heap;
        assert_eq!(
            [
                heap.compactions,
                heap.moved_objects,
                heap.moved_bytes,
                heap.evacuated_pages,
                heap.kept_pages
            ],
            [
                statistics.compactions,
                statistics.moved_objects,
                statistics.moved_bytes,
                statistics.evacuated_pages,
                statistics.kept_pages
            ]
        );
        assert_eq!((heap.compactions, reported.page(pinned).pins), (1, 2));
        let pins: u64 = reported.pages.iter().map(|page| page.pins).sum();
        assert_eq!((pins, reported.moved_in()), (2, heap.moved_objects));
        assert!(cfg!(miri) || heap.moved_objects > 0 && heap.evacuated_pages > 0);
        assert!(reported.objects.values().all(|object| object.old == generations));
        assert!(reported.pages.iter().all(|page| page.aside == record::Aside::No));
        // SAFETY: pinned twice.
        unsafe { world.mutator.unpin(pinned) };
        // SAFETY: pinned twice.
        unsafe { world.mutator.unpin(pinned) };
        assert_eq!(dump(&world.mutator).page(pinned).pins, 0);
        world.end();
    }
}

#[test]
#[cfg(not(miri))]
fn pages_of_a_plan_are_told() {
    let options = Options { incremental: true, generations: true, ..Options::new() };
    let world = World::new(options);
    for place in (0..WIDTH).filter(|place| place % KEPT != 0) {
        world.store(place, core::ptr::null_mut());
    }
    // SAFETY: handles lead to all objects in use.
    unsafe { world.mutator.ask_compact() };
    let (mut candidates, mut evacuated) = (0, 0);
    // SAFETY: handles lead to all objects in use.
    while !unsafe { world.mutator.step(5_000) } {
        let reported = dump(&world.mutator);
        let count =
            |evacuation| reported.pages.iter().filter(|page| page.aside == evacuation).count();
        candidates = candidates.max(count(record::Aside::Candidate));
        evacuated = evacuated.max(count(record::Aside::Evacuated));
        let moved = reported.pages.iter().filter(|page| page.aside == record::Aside::Evacuated);
        assert!(moved.into_iter().all(|page| page.old == 0));
    }
    assert!(candidates > 1 && evacuated > 1, "{candidates} {evacuated}");
    // SAFETY: handles lead to all objects in use.
    assert_eq!(unsafe { world.mutator.verify() }, 0);
    world.end();
}

fn references_of(mutator: &Mutator) -> HashMap<usize, Vec<usize>> {
    let mut bytes = Vec::new();
    // SAFETY: handles lead to all objects in use, and the sink calls nothing of the heap.
    assert!(unsafe {
        mutator.dump(|piece| {
            bytes.extend_from_slice(piece);
            true
        })
    });
    let mut found: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut object = 0;
    for entry in record::Reader::new(&bytes).unwrap() {
        match entry {
            record::Entry::Object(at) => object = at.address as usize,
            record::Entry::Reference(to) => found.entry(object).or_default().push(to as usize),
            _ => {}
        }
    }
    found
}

unsafe extern "C" fn no_finalizer(_: *mut c_void, _: *mut c_void) {}

#[test]
fn what_guardians_and_finalizers_keep_is_led_to() {
    let options = Options { verify: VERIFY_HEAP, ..Options::new() };
    let (_heap, mutator) = attached(options, Runtime { trace: Some(trace), ..Runtime::new() });
    mutator.defer();
    let [guardian, registered, representative, context, below, dead] =
        core::array::from_fn(|_| node(&mutator, 0, 1));
    // SAFETY: the context has a reference.
    unsafe { references(context).write(below) };
    let cells = [guardian, registered].map(|object| {
        // SAFETY: they live.
        unsafe { mutator.new_root(object) }.unwrap()
    });
    // SAFETY: all of these objects live.
    unsafe {
        let number = mutator.new_guardian(guardian).unwrap();
        assert!(mutator.guard(number, registered, representative));
        assert!(mutator.guard(number, dead, dead));
        assert!(mutator.finalize_with(registered, no_finalizer, context, 0));
    }
    mutator.resume();
    for _ in 0..2 {
        let found = references_of(&mutator);
        let mut of_registered = found[&registered.addr()].clone();
        of_registered.sort_unstable();
        let mut kept = std::vec![representative.addr(), context.addr()];
        kept.sort_unstable();
        assert_eq!(of_registered, kept);
        assert_eq!(found[&context.addr()], [below.addr()]);
        // The guardian leads to the objects that can be retrieved, once they are inaccessible.
        let retrieved: Vec<usize> = found.get(&guardian.addr()).cloned().unwrap_or_default();
        assert!(retrieved.is_empty() || retrieved == [dead.addr()]);
        collect(&mutator);
    }
    assert_eq!(references_of(&mutator)[&guardian.addr()], [dead.addr()]);
    for cell in cells {
        // SAFETY: made here, and freed once.
        unsafe { mutator.free_root(cell) };
    }
    leave(mutator);
}

#[test]
fn the_verifier_follows_what_guardians_and_finalizers_keep() {
    for through in 0..3 {
        let heap =
            Heap::new(Options::new(), Runtime { trace: Some(trace), ..Runtime::new() }).unwrap();
        let mutator = heap.attach().unwrap();
        mutator.defer();
        let [guardian, object, kept] = core::array::from_fn(|_| node(&mutator, 0, 1));
        // SAFETY: they live.
        let cells = [guardian, object].map(|object| unsafe { mutator.new_root(object) }.unwrap());
        // SAFETY: all of these objects live.
        unsafe {
            let number = mutator.new_guardian(guardian).unwrap();
            match through {
                0 => assert!(mutator.guard(number, object, kept)),
                1 => assert!(mutator.guard(number, kept, kept)),
                _ => assert!(mutator.finalize_with(object, no_finalizer, kept, 0)),
            }
        }
        mutator.resume();
        collect(&mutator);
        // SAFETY: roots lead to all objects in use, or the guardian or the finalizer keeps them.
        assert_eq!(unsafe { mutator.verify() }, 0);
        // A reference into the middle of an object is invalid.
        // SAFETY: the kept object has a reference.
        unsafe { references(kept).write(object.wrapping_add(8)) };
        // SAFETY: roots lead to all objects in use, or the guardian or the finalizer keeps them.
        assert_eq!(unsafe { mutator.verify() }, 1, "{through}");
        // SAFETY: the kept object has a reference.
        unsafe { references(kept).write(core::ptr::null_mut()) };
        for cell in cells {
            // SAFETY: made here, and freed once.
            unsafe { mutator.free_root(cell) };
        }
        leave(mutator);
    }
}
