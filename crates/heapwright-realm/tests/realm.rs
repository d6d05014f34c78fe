//! The safe interface: realms with values of all sorts, under every way to collect.
//!
//! Examples that must not compile are in the documentation of `heapwright_realm`.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

use std::cell::Cell as Count;
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use heapwright::Rootable;
use heapwright::gc::raw::{Options, Runtime};
use heapwright::gc::{
    Cell, Ephemeron, Gc, Lock, Mutation, Object, Realm, Slice, Str, Trace, Tracer, Vector, Weak,
};
use proptest::prelude::*;

#[path = "common/realms.rs"]
mod realms;

use realms::{config, ways_to_collect};

/// Counts live values.
struct Lives(Rc<Count<usize>>);

impl Lives {
    fn one_of(count: &Rc<Count<usize>>) -> Self {
        count.set(count.get() + 1);
        Self(Rc::clone(count))
    }
}

impl Drop for Lives {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

type Nodes<'gc> = Lock<Vec<Option<Gc<'gc, Node<'gc>>>>>;

#[derive(Trace)]
enum Shape<'gc> {
    Nothing,
    Text(Str<'gc>),
    Two { left: Cell<Option<Gc<'gc, Node<'gc>>>>, right: Cell<Option<Gc<'gc, Node<'gc>>>> },
    Many(Slice<'gc, Cell<Option<Gc<'gc, Node<'gc>>>>>),
    Grows(Nodes<'gc>),
}

#[derive(Trace)]
struct Node<'gc> {
    serial: usize,
    shape: Shape<'gc>,
    #[trace(skip)]
    _lives: Lives,
}

#[derive(Trace)]
struct Root<'gc> {
    nodes: Slice<'gc, Cell<Option<Gc<'gc, Node<'gc>>>>>,
    watched: Lock<Vec<(usize, Weak<'gc, Node<'gc>>)>>,
}

type Nodery = Realm<Rootable!['gc => Root<'gc>]>;

fn edges<'gc>(node: Gc<'gc, Node<'gc>>) -> Vec<Option<Gc<'gc, Node<'gc>>>> {
    match &node.as_ref().shape {
        Shape::Nothing | Shape::Text(_) => Vec::new(),
        Shape::Two { left, right } => vec![left.get(), right.get()],
        Shape::Many(all) => all.iter().map(Cell::get).collect(),
        Shape::Grows(all) => all.borrow().clone(),
    }
}

#[derive(Clone, Debug)]
enum Op {
    Make(usize, u8),
    Store(usize, usize, usize),
    Forget(usize),
    Step(u64),
    Garbage(usize),
    Collect,
    Compact,
    AskCompact,
    Pin(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (any::<usize>(), 0u8..5).prop_map(|(root, shape)| Op::Make(root, shape)),
        8 => (any::<usize>(), any::<usize>(), any::<usize>())
            .prop_map(|(from, place, to)| Op::Store(from, place, to)),
        2 => any::<usize>().prop_map(Op::Forget),
        3 => (0u64..20_000).prop_map(Op::Step),
        2 => (0usize..3000).prop_map(Op::Garbage),
        1 => Just(Op::Collect),
        1 => Just(Op::Compact),
        2 => Just(Op::AskCompact),
        1 => any::<usize>().prop_map(Op::Pin),
    ];
    proptest::collection::vec(op, 1..if cfg!(miri) { 10 } else { 300 })
}

const PLACES: usize = 16;

fn run(options: Options, ops: Vec<Op>) {
    let count = Rc::new(Count::new(0));
    let mut realm = Nodery::with(options, |mc| Root {
        nodes: mc.alloc_slice(PLACES, |_| Cell::new(None)),
        watched: Lock::default(),
    });
    // The model: each serial's edges, and the root's.
    let mut graph: BTreeMap<usize, Vec<Option<usize>>> = BTreeMap::new();
    let mut roots: Vec<Option<usize>> = vec![None; PLACES];
    let mut next = 1;
    let mut pinned: Vec<(usize, usize)> = Vec::new();
    for op in ops {
        match op {
            Op::Make(place, shape) => {
                let (place, serial) = (place % PLACES, next);
                next += 1;
                let width = realm.mutate(|mc, root| {
                    let shape = match shape {
                        0 => Shape::Nothing,
                        1 => Shape::Text(mc.alloc_str(&format!("number {serial}"))),
                        2 => Shape::Two { left: Cell::new(None), right: Cell::new(None) },
                        3 => Shape::Many(mc.alloc_slice(3 + serial % 300, |_| Cell::new(None))),
                        _ => Shape::Grows(Lock::new(vec![None; 5])),
                    };
                    let node = mc.alloc(Node { serial, shape, _lives: Lives::one_of(&count) });
                    root.nodes[place].set(mc, root.nodes, Some(node));
                    let weak = mc.weak(node);
                    root.watched.borrow_mut(mc, root).push((serial, weak));
                    edges(node).len()
                });
                roots[place] = Some(serial);
                graph.insert(serial, vec![None; width]);
            }
            Op::Store(from, place, to) => {
                let [from, to] = [from % PLACES, to % PLACES];
                let Some(parent) = roots[from] else { continue };
                let child = roots[to];
                let place = realm.mutate(|mc, root| {
                    let (parent, child) = (root.nodes[from].get().unwrap(), root.nodes[to].get());
                    match &parent.as_ref().shape {
                        Shape::Nothing | Shape::Text(_) => None,
                        Shape::Two { left, right } => {
                            let cell = if place % 2 == 0 { left } else { right };
                            cell.set(mc, parent, child);
                            Some(place % 2)
                        }
                        Shape::Many(all) => {
                            let place = place % all.len();
                            all[place].set(mc, *all, child);
                            Some(place)
                        }
                        Shape::Grows(all) => {
                            let mut all = all.borrow_mut(mc, parent);
                            all.push(child);
                            Some(all.len() - 1)
                        }
                    }
                });
                let edges = graph.get_mut(&parent).unwrap();
                match place {
                    Some(place) if place == edges.len() => edges.push(child),
                    Some(place) => edges[place] = child,
                    None => {}
                }
            }
            Op::Forget(place) => {
                roots[place % PLACES] = None;
                realm.mutate(|mc, root| root.nodes[place % PLACES].set(mc, root.nodes, None));
            }
            Op::Step(budget) => _ = realm.step(Duration::from_nanos(budget)),
            Op::Garbage(texts) => {
                let texts = if cfg!(miri) { texts % 7 } else { texts };
                realm.mutate(|mc, _| (0..texts).for_each(|_| _ = mc.alloc_str(&"x".repeat(200))));
            }
            Op::AskCompact => realm.ask_compact(),
            Op::Pin(place) => realm.mutate(|mc, root| {
                if let Some(node) = root.nodes[place % PLACES].get() {
                    mc.pin(node);
                    pinned.push((node.serial, node.address()));
                }
            }),
            op @ (Op::Collect | Op::Compact) => {
                realm.collect();
                if matches!(op, Op::Compact) {
                    realm.compact()
                } else {
                    realm.collect()
                }
                pinned.retain(|(serial, _)| graph.contains_key(serial));
                check(&mut realm, &mut graph, &roots);
                realm.mutate(|_, root| {
                    for node in root.nodes.iter().filter_map(Cell::get) {
                        let mut pins = pinned.iter().filter(|(serial, _)| *serial == node.serial);
                        assert!(pins.all(|&(_, at)| at == node.address()), "what is pinned stays");
                    }
                });
                assert_eq!(count.get(), graph.len(), "what lives is dropped, or not");
            }
        }
    }
    realm.collect();
    realm.collect();
    check(&mut realm, &mut graph, &roots);
    drop(realm);
    assert_eq!(count.get(), 0, "all is dropped with the realm");
}

/// Checks that everything the roots lead to is unchanged, and removes the rest from the model.
fn check(
    realm: &mut Nodery,
    graph: &mut BTreeMap<usize, Vec<Option<usize>>>,
    roots: &[Option<usize>],
) {
    let mut live = BTreeMap::new();
    let mut grey: Vec<usize> = roots.iter().flatten().copied().collect();
    while let Some(serial) = grey.pop() {
        if live.insert(serial, graph[&serial].clone()).is_none() {
            grey.extend(graph[&serial].iter().flatten());
        }
    }
    *graph = live;
    realm.mutate(|mc, root| {
        let mut seen = HashMap::new();
        let mut grey: Vec<_> = root.nodes.iter().filter_map(Cell::get).collect();
        while let Some(node) = grey.pop() {
            if seen.insert(node.serial, node).is_some() {
                continue;
            }
            if let Shape::Text(text) = &node.shape {
                assert_eq!(&**text, format!("number {}", node.serial));
            }
            let edges = edges(node);
            let serials: Vec<_> = edges.iter().map(|to| to.map(|to| to.serial)).collect();
            assert_eq!(serials, graph[&node.serial]);
            grey.extend(edges.into_iter().flatten());
        }
        assert_eq!(seen.len(), graph.len());
        root.watched.borrow_mut(mc, root).retain(|(serial, weak)| {
            let node = weak.get();
            assert_eq!(node.map(|node| node.serial), graph.get(serial).map(|_| *serial));
            node.is_some()
        });
    });
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn a_realm_keeps_what_its_root_leads_to_and_nothing_else(
        options in ways_to_collect(128 << 10),
        ops in ops(),
    ) {
        run(options, ops);
    }
}

#[test]
fn garbage_is_collected_as_it_comes() {
    let mut realm =
        Realm::<Rootable!['gc => Cell<Option<Gc<'gc, [u64; 8]>>>]>::new(|_| Cell::new(None));
    for n in 0..if cfg!(miri) { 100 } else { 100_000 } {
        realm.mutate(|mc, root| {
            (0..10).for_each(|_| root.set(mc, root, Some(mc.alloc([n; 8]))));
        });
    }
    let statistics = realm.statistics();
    assert!(cfg!(miri) || statistics.cycles > 5);
    assert!(statistics.peak_bytes < 9 << 20, "{}", statistics.peak_bytes);
}

#[test]
fn a_mutation_that_panics_leaves_a_realm_that_collects() {
    let count = Rc::new(Count::new(0));
    type Root = Rootable!['gc => Lock<Vec<Gc<'gc, (u8, Node<'gc>)>>>];
    let mut realm = Realm::<Root>::new(|_| Lock::default());
    for round in 0..20 {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            realm.mutate(|mc, root| {
                let node =
                    |serial| Node { serial, shape: Shape::Nothing, _lives: Lives::one_of(&count) };
                root.borrow_mut(mc, root).push(mc.alloc((0, node(round))));
                // Half of an array is made, and not dropped.
                let _never = mc.alloc_slice(4, |n| if n < 2 { n } else { panic!() });
            });
        }));
        assert!(panicked.is_err());
        realm.collect();
    }
    assert_eq!(realm.mutate(|_, root| root.borrow().len()), 20);
    assert_eq!(count.get(), 20);
    drop(realm);
    assert_eq!(count.get(), 0);
}

/// Counts its traces, by the number in it. A wrong number shows that something else was traced as a
/// `Spy`.
struct Spy(usize);

const SPY: usize = 0x5059 << 32;
static SEEN: [AtomicUsize; 5] = [const { AtomicUsize::new(0) }; 5];
static WRONG: AtomicUsize = AtomicUsize::new(0);

// SAFETY: there are no references in it.
unsafe impl Trace for Spy {
    const TRACED: bool = true;
    fn trace(&self, _: &Tracer) {
        let seen = SEEN.get(self.0.wrapping_sub(SPY)).unwrap_or(&WRONG);
        seen.fetch_add(1, Ordering::Relaxed);
    }
}

fn seen(number: usize) -> usize {
    SEEN[number].load(Ordering::Relaxed)
}

#[derive(Trace)]
enum Either {
    Spied(Cell<Spy>),
    Numbers([usize; 2]),
}

#[derive(Trace)]
#[repr(C)]
struct Spied {
    either: Lock<Either>,
    sized_nothing: Cell<[Spy; 0]>,
    behind: Cell<Spy>,
    number: Spy,
}

fn change<'gc>(mc: &Mutation<'gc>, parent: impl Object<'gc>, of: &Spied, nothing: bool) {
    if nothing {
        of.sized_nothing.set(mc, parent, []);
        of.behind.set(mc, parent, Spy(SPY + 1));
        return;
    }
    if let Either::Spied(cell) = &*of.either.borrow() {
        cell.set(mc, parent, Spy(SPY));
    }
    *of.either.borrow_mut(mc, parent) = Either::Numbers([7; 2]);
}

#[test]
fn what_was_reported_is_traced_as_what_it_is_afterwards() {
    #[derive(Trace)]
    struct Root<'gc> {
        of: Spied,
        much: Vector<'gc, Gc<'gc, [u64; 128]>>,
        /// The last reported object is traced first.
        slice: Slice<'gc, Spied>,
    }
    let spied = |number| Spied {
        either: Lock::new(Either::Spied(Cell::new(Spy(SPY)))),
        sized_nothing: Cell::new([]),
        behind: Cell::new(Spy(SPY + 1)),
        number: Spy(SPY + number),
    };
    let options = Options { incremental: true, markers: 1, ..Options::new() };
    for slice in [false, true] {
        for nothing in [false, true] {
            let mut realm = Realm::<Rootable!['gc => Root<'gc>]>::with(options, |mc| Root {
                of: spied(2),
                slice: mc.alloc_slice(3, |n| spied(if n == 1 { 3 } else { 4 })),
                much: Vector::new(mc),
            });
            let objects = if cfg!(miri) { 500 } else { 4000 };
            realm.mutate(|mc, root| {
                (0..objects).for_each(|n| root.much.push(mc, mc.alloc([n; 128])));
            });
            realm.collect();
            // Steps until both were traced. Then not all is marked yet.
            let before = [2, 3].map(seen);
            realm.ask();
            while [2, 3].map(seen).iter().zip(before).any(|(now, before)| *now == before) {
                assert!(!realm.step(Duration::from_nanos(1)), "all is marked");
            }
            let before = [0, 1, 2, 3, 4].map(seen);
            realm.mutate(|mc, root| {
                if slice {
                    change(mc, root.slice, &root.slice[1], nothing);
                } else {
                    change(mc, root, &root.of, nothing);
                }
            });
            while !realm.step(Duration::from_millis(1)) {}
            assert_eq!(WRONG.load(Ordering::Relaxed), 0, "numbers were traced as a spy");
            let once_more: Vec<bool> =
                before.iter().enumerate().map(|(n, before)| seen(n) > *before).collect();
            // The object or the element is traced once more, and no other object.
            assert_eq!(once_more, [nothing, true, !slice, slice, false]);
        }
    }
}

#[test]
fn a_cell_of_another_object_is_refused() {
    type Root = Rootable!['gc => (Gc<'gc, Cell<u8>>, Gc<'gc, Cell<u8>>)];
    let mut realm = Realm::<Root>::new(|mc| (mc.alloc(Cell::new(1)), mc.alloc(Cell::new(2))));
    let refused = catch_unwind(AssertUnwindSafe(|| {
        realm.mutate(|mc, root| root.0.set(mc, root.1, 3));
    }));
    assert!(refused.is_err());
    assert_eq!(realm.mutate(|_, root| (root.0.get(), root.1.get())), (1, 2));
}

#[test]
#[cfg(not(miri))]
fn a_limit_is_a_refusal_and_nothing_is_lost() {
    type Root = Rootable!['gc => Lock<Vec<Gc<'gc, [u64; 100]>>>];
    let options = Options { most: 2 << 20, ..Options::new() };
    let mut realm = Realm::<Root>::with(options, |_| Lock::default());
    let kept = realm.mutate(|mc, root| {
        while let Ok(value) = mc.try_alloc([7; 100]) {
            root.borrow_mut(mc, root).push(value);
        }
        root.borrow().len()
    });
    assert!((1500..2600).contains(&kept), "{kept}");
    realm.mutate(|mc, root| {
        assert!(root.borrow().iter().all(|value| value.iter().all(|&n| n == 7)));
        root.borrow_mut(mc, root).truncate(10);
    });
    realm.collect();
    realm.mutate(|mc, root| assert!(mc.try_alloc([1; 100]).is_ok() && root.borrow().len() == 10));
}

const LARGE: usize = if cfg!(miri) { 70_000 } else { 200_000 };

#[test]
fn ephemerons_and_large_values_and_those_of_no_size() {
    type Table<'gc> = Lock<Vec<Ephemeron<'gc, usize, Slice<'gc, u8>>>>;
    type Root = Rootable!['gc => (Lock<Vec<Gc<'gc, usize>>>, Table<'gc>, Gc<'gc, ()>)];
    let mut realm = Realm::<Root>::new(|mc| (Lock::default(), Lock::default(), mc.alloc(())));
    realm.mutate(|mc, root| {
        let (keys, table, _) = root.as_ref();
        for n in 0..if cfg!(miri) { 2 } else { 6 } {
            let key = mc.alloc(n);
            keys.borrow_mut(mc, root).push(key);
            let large = mc.alloc_slice(LARGE, |at| (at % 251) as u8);
            let value = mc.alloc(large);
            table.borrow_mut(mc, root).push(mc.ephemeron(key, value));
        }
    });
    realm.collect();
    realm.mutate(|mc, root| root.as_ref().0.borrow_mut(mc, root).retain(|key| **key % 2 == 0));
    realm.collect();
    realm.mutate(|_, root| {
        let table = root.as_ref().1.borrow();
        for (n, entry) in table.iter().enumerate() {
            assert_eq!(entry.get().is_some(), n % 2 == 0);
            if let Some((key, value)) = entry.get() {
                assert_eq!((*key, value.len(), value[1000]), (n, LARGE, 247));
            }
        }
    });
    assert!(realm.statistics().large_bytes <= 3 * (4 << 16));
}

#[test]
fn a_dump_whose_sink_panics_leaves_a_realm_that_goes_on() {
    type Root = Rootable!['gc => Lock<Vec<Gc<'gc, (u64, Str<'gc>)>>>];
    for incremental in [false, true] {
        let options = Options { incremental, generations: true, ..Options::new() };
        let mut realm = Realm::<Root>::with(options, |_| Lock::default());
        realm.mutate(|mc, root| {
            for n in 0..if cfg!(miri) { 20 } else { 20_000 } {
                let text = mc.alloc_str("in the midst of marking");
                root.borrow_mut(mc, root).push(mc.alloc((n, text)));
            }
        });
        for piece in 0..if cfg!(miri) { 2 } else { 8 } {
            realm.ask();
            realm.step(Duration::from_nanos(1));
            let mut left = piece;
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                realm.dump(|_| {
                    assert!(left > 0, "no more room");
                    left -= 1;
                    true
                })
            }));
            assert!(cfg!(miri) || panicked.is_err() || piece > 3);
            realm.mutate(|mc, root| {
                let zeroes = std::hint::black_box([0u64; 64]);
                root.borrow_mut(mc, root)[0] = mc.alloc((7, mc.alloc_str("stored afterwards")));
                assert_eq!(std::hint::black_box(zeroes), [0; 64]);
            });
            assert!(realm.dump(|_| true), "whole");
            realm.collect();
            realm.mutate(|_, root| assert_eq!(&*root.borrow()[0].1, "stored afterwards"));
        }
    }
}

#[test]
fn no_option_is_too_large_or_too_small() {
    type Root = Rootable!['gc => Vector<'gc, Str<'gc>>];
    // Miri takes minutes for all combinations.
    let (combinations, rounds) = if cfg!(miri) { (vec![7], 4) } else { ((0..8).collect(), 20) };
    for bits in combinations {
        for (least, step_ns, factor_percent) in [(usize::MAX, u64::MAX, u32::MAX), (1, 1, 1)] {
            let options = Options {
                least,
                step_ns,
                factor_percent,
                markers: factor_percent,
                incremental: bits & 1 != 0,
                generations: bits & 2 != 0,
                compact: bits & 4 != 0,
                ..Options::new()
            };
            let mut realm = Realm::<Root>::with(options, |mc| Vector::of(mc, []));
            for n in 0..rounds {
                realm.mutate(|mc, root| {
                    (0..20).for_each(|m| root.push(mc, mc.format(format_args!("{n} {m}"))));
                });
                realm.ask_compact();
                realm.step(Duration::MAX);
            }
            realm.collect();
            realm.mutate(|_, root| {
                let last = root.get(rounds * 20 - 1).unwrap();
                assert_eq!(&*last, format!("{} 19", rounds - 1));
            });
        }
    }
    let heap = heapwright::gc::raw::Heap::new(Options::new(), Runtime::new()).unwrap();
    let mutator = heap.attach().unwrap();
    heap.balance(usize::MAX);
    heap.set_target(u32::MAX, usize::MAX, usize::MAX);
    for _ in 0..3 {
        heap.account(isize::MAX);
        // SAFETY: no object of the heap is read.
        assert!(!unsafe { mutator.alloc(100, heapwright::gc::LEAF) }.is_null());
        // SAFETY: no object of the heap is read.
        unsafe { mutator.collect() };
    }
    assert!(heap.statistics().cycles >= 3);
    // SAFETY: the mutator is not used any more.
    unsafe { mutator.detach() };
}

#[derive(Trace)]
struct Tree<'gc> {
    name: Str<'gc>,
    branches: Vec<Tree<'gc>>,
    by_name: HashMap<String, Box<Tree<'gc>>>,
}

#[test]
fn values_may_contain_their_own_kind() {
    let mut realm = Realm::<Rootable!['gc => Lock<Vec<Tree<'gc>>>]>::new(|_| Lock::default());
    realm.mutate(|mc, root| {
        let leaf =
            |name| Tree { name: mc.alloc_str(name), branches: Vec::new(), by_name: HashMap::new() };
        let mut tree = leaf("root");
        tree.branches.push(leaf("branch"));
        tree.by_name.insert("twig".to_owned(), Box::new(leaf("twig")));
        root.borrow_mut(mc, root).push(tree);
    });
    realm.collect();
    realm.mutate(|_, root| {
        let trees = root.borrow();
        let names = [&trees[0].name, &trees[0].branches[0].name, &trees[0].by_name["twig"].name];
        assert_eq!(names.map(|name| name.to_string()), ["root", "branch", "twig"]);
    });
}

#[test]
fn two_realms_and_a_dump() {
    type Root = Rootable!['gc => Gc<'gc, Str<'gc>>];
    let mut one = Realm::<Root>::new(|mc| mc.alloc(mc.alloc_str("one")));
    let mut two = Realm::<Root>::new(|mc| mc.alloc(mc.alloc_str("two")));
    let both = one.mutate(|_, one| two.mutate(|_, two| format!("{} {}", **one, **two)));
    assert_eq!(both, "one two");
    let mut bytes = Vec::new();
    assert!(one.dump(|piece| {
        bytes.extend_from_slice(piece);
        true
    }));
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("heapwright::gc::Str") || text.contains("Str"), "types have names");
}

#[derive(Trace, Debug)]
struct Ring<'gc> {
    name: u32,
    next: Cell<Option<Gc<'gc, Ring<'gc>>>>,
    others: Vector<'gc, Gc<'gc, Ring<'gc>>>,
}

#[test]
fn what_leads_to_itself_is_printed_and_that_ends() {
    let mut realm = Realm::<Rootable!['gc => u32]>::new(|_| 0);
    realm.mutate(|mc, _| {
        let others = Vector::new(mc);
        let ring = |name| mc.alloc(Ring { name, next: Cell::new(None), others });
        let all: Vec<_> = (0..10).map(ring).collect();
        for (n, &one) in all.iter().enumerate() {
            one.next.set(mc, one, Some(all[(n + 1) % 10]));
        }
        let said = format!("{:?}", all[3]);
        assert!((0..10).all(|name| said.contains(&format!("name: {name}"))), "{said}");
        assert_eq!(said.matches("Gc(0x").count(), 1, "{said}");
        // Each object now leads to all, so there are more paths than could be printed.
        all.iter().for_each(|&one| others.push(mc, one));
        assert!(format!("{:#?}", all[0]).len() < 100_000_000);
        // An object that leads to no other is printed whole, also twice, and after a panic.
        let one = mc.alloc(7);
        assert_eq!(format!("{:?}", (one, one)), "(7, 7)");
        let list = Vector::new(mc);
        list.push(mc, one);
        assert_eq!(format!("{list:?} {list:?}"), "[7] [7]");
    });
}

#[test]
fn a_long_run_collects_between_its_pieces() {
    for most in [usize::MAX, 1 << 20] {
        let options = Options { most, generations: true, ..Options::new() };
        let mut realm = Realm::<Rootable!['gc => Cell<u32>]>::with(options, |_| Cell::new(0));
        let mut pieces = 0;
        let sum = realm.run(1 << 20, |mc, root, fuel| {
            pieces += 1;
            while fuel.burn() {
                mc.alloc([7u64; 8]);
                root.put(root.get() + 1);
                if root.get() == 200_000 {
                    return Some(root.get());
                }
            }
            None
        });
        let told = realm.statistics();
        assert!(sum == 200_000 && pieces > 50, "{pieces}");
        assert!(told.cycles > 0 && told.peak_bytes < 8 << 20, "{} bytes", told.peak_bytes);
    }
    // Without allocation the number of operations ends a piece.
    let mut realm = Realm::<Rootable!['gc => Cell<u32>]>::new(|_| Cell::new(0));
    let mut pieces = Vec::new();
    realm.run(100, |_, root, fuel| {
        let mut operations = 0;
        while fuel.burn() {
            operations += 1;
        }
        pieces.push(operations);
        root.put(root.get() + 1);
        (root.get() == 3).then_some(())
    });
    assert_eq!(pieces, [100; 3]);
}

/// heapwright as another crate names it.
mod other {
    pub(crate) mod inner {
        pub(crate) use heapwright as hw;
    }
}

#[derive(Trace)]
#[trace(crate = other::inner::hw)]
struct Elsewhere<'gc>(Gc<'gc, u32>, #[trace(skip)] u8);

#[test]
fn a_derive_takes_heapwright_from_where_it_is_told() {
    let mut realm = Realm::<Rootable!['gc => Elsewhere<'gc>]>::new(|mc| Elsewhere(mc.alloc(5), 1));
    realm.collect();
    assert_eq!(realm.mutate(|_, root| *root.0 + u32::from(root.1)), 6);
}
